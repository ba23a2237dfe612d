"""What a derivation asks: vectors on which hypotheses differ."""
