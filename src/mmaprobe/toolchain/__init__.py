"""Kernels: render their source, compile it for an architecture, disassemble it, keep it in a pack."""
