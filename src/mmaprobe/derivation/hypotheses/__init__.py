"""What is considered: structures, fields and their values, rules of NaNs."""
