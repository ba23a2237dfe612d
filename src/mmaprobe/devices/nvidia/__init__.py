"""NVIDIA's GPUs: the device ``cuda:N``."""
