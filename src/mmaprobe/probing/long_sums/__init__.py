"""How sums of thousands of lanes are added."""
