"""What earlier runs found, beside what was found now: lists of runs, their differences in meaning, the gate, trends."""
