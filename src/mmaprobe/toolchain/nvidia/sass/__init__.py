"""Machine code of NVIDIA's GPUs: a disassembly as instructions, and a CTA of it run on symbols."""
