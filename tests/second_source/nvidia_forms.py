"""What the compiler made of every NVIDIA form: one row a PTX form, from ``golden/nvidia_instructions.csv.xz``."""

from __future__ import annotations

import csv
import io
import lzma
import re
from collections import Counter
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "nvidia_instructions.csv.xz"
ROWS = list(csv.DictReader(io.StringIO(lzma.decompress(GOLDEN.read_bytes()).decode("utf-8"))))
ARCHITECTURES = [name for name in ROWS[0] if name.startswith("sm_")]


def matrix_opcodes(cell: str) -> dict[str, int]:
    """How often each matrix opcode stands in a cell, as primitives spell it.

    The steps of one sequence are one opcode; wgmma's tile and what is done to
    its operands (negation, transposition) are no part of a primitive.
    """
    counts: Counter[str] = Counter()
    for opcode, count in re.findall(r"\b([A-Z]+MMA[\w.]*)(?:\{[\w,]+\})? x(\d+)", cell):
        opcode = re.sub(r"\.STEP\d|\.64x\d+x\d+", "", opcode)
        counts[opcode] += int(count)
    return dict(counts)
