"""Render a kernel's source, compile it, disassemble it, read its lowering."""
