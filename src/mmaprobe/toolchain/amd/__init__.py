"""Kernels for AMD's GPUs: their text, compilers and disassembly."""
