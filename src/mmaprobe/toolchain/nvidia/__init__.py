"""Kernels for NVIDIA's GPUs: their text, compilers and disassembly."""
