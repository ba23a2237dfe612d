"""How the summation tree is read."""
