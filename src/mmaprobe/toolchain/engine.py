"""The model's engine as a kernel: the same C++ headers that the CPU runs, in one self-contained source."""

from __future__ import annotations

import re

from mmaprobe.toolchain.source import Source, template

MAIN = "cuda/engine.cuh"
NAME = "the engine"
"""What stands for the instruction in the engine's source."""

_INCLUDE = re.compile(r'^#include "([^"]+)"[^\n]*\n', re.MULTILINE)


def flattened(name: str, seen: set[str] | None = None) -> str:
    """A file of ``csrc`` with everything that it includes by name in its place, each once."""
    seen = set() if seen is None else seen
    if name in seen:
        return ""
    seen.add(name)
    folder = name.rpartition("/")[0]

    def included(found: re.Match[str]) -> str:
        inner = found[1] if "/" in found[1] else f"{folder}/{found[1]}"
        return flattened(inner, seen)

    return _INCLUDE.sub(included, template(name).replace("#pragma once\n", ""))


def engine_source(architecture: str, width: int) -> Source:
    """The interpreter of datapaths' programs (``models.program``) for an architecture, a thread a vector.

    ``width``: bits of the sums, as the program's header says it (64, 128, 320 or 640).
    """
    return Source(NAME, architecture, f"#define MMAPROBE_WIDTH {width}\n{flattened(MAIN)}", threads=32)
