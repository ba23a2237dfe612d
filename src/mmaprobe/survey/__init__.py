"""Derive what all instructions of a device compute, hold it against what ships, write it as a parameter file."""
