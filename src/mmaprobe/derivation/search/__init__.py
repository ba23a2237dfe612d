"""How hypotheses are held against answers, stage after stage."""
