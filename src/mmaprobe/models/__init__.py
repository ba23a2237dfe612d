"""Evaluate a datapath: NumPy stages (readable, any width) and the native engine (fast)."""
