"""Devices: anything that runs an instruction on a batch."""
