"""Operands as arrays of bit patterns: batches, what people hand over, what lies on a GPU."""
