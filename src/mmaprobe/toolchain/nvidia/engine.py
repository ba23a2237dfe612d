"""The model's engine as a kernel: the same C++ headers that the CPU runs, in one self-contained source."""

from __future__ import annotations

from mmaprobe.toolchain.source import Source, flattened

MAIN = "cuda/engine.cuh"
NAME = "the engine"
"""What stands for the instruction in the engine's source."""


def engine_source(architecture: str, width: int) -> Source:
    """The interpreter of datapaths' programs (``models.program``) for an architecture, a thread a vector.

    ``width``: bits of the sums, as the program's header says it (64, 128, 320 or 640).
    """
    return Source(NAME, architecture, f"#define MMAPROBE_WIDTH {width}\n{flattened(MAIN)}", threads=32)
