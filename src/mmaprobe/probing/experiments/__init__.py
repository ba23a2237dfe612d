"""Experiments that several questions make, and those that are asked outside of the suite."""
