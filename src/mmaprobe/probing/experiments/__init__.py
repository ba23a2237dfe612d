"""Experiments that several questions make."""
