"""Which instructions exist, where, what they lower to, and how their operands lie in registers."""
