"""Answers of a matrix product to its schedule."""
