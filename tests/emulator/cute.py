"""CuTe's layouts of operands in registers: thread and value to row and column, as Shape and Stride pairs.

Source: CUTLASS 7107b0553, include/cute/atom/mma_traits_sm70 to sm120: ``ALayout``, ``BLayout``, ``CLayout`` and
``ELayout`` of each atom; ``tests/catalog/test_layouts_nvidia.py`` holds their numbers one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


def leaves(tree: Any) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for branch in tree for leaf in leaves(branch)]


def cute(shape: Any, stride: Any, number: int) -> int:
    """CuTe's map of one mode: the number in mixed radix, first digit fastest, times the strides."""
    out = 0
    for size, step in zip(leaves(shape), leaves(stride), strict=True):
        out += number % size * step
        number //= size
    return out


def places(shape: Any, stride: Any) -> Places:
    """The offset of each (thread, value)."""
    threads, values = (int(np.prod(leaves(mode))) for mode in shape)
    first = np.array([cute(shape[0], stride[0], t) for t in range(threads)])
    second = np.array([cute(shape[1], stride[1], v) for v in range(values)])
    return first[:, None] + second


def lines_by_k(lines: int, k: int, per: int) -> Places:
    """Operand A (rows) or B (columns) of ``mma``: thread and value to line + lines * k, ``per`` elements a register.

    Lines come in eights over the quads; A of 16 rows alternates its two eights register by register.
    """
    quads = k // (4 * per)
    if lines == 16:
        return places(((4, 8), (per, 2, quads)), ((lines * per, 1), (lines, 8, lines * 4 * per)))
    return places(((4, 8), (per, quads)), ((lines * per, 1), (lines, lines * 4 * per)))


def rows_by_n(rows: int, n: int) -> Places:
    """C and D of ``mma``: thread and value to row + rows * column."""
    return places(((4, 8), (2, rows // 8)), ((2 * rows, 1), (rows, 8)))


def volta(operand: str, by_line: bool, fmt: str) -> tuple[Places, Places]:
    """(product, place) of Volta's m8n8k4; thread t of one is lane (t & 3) + 16 (t >> 2), of product p 4 p further."""
    if operand in ("a", "b"):
        found = places((8, 4), (1, 8)) if by_line else places(((4, 2), 4), ((8, 4), 1))
    elif fmt == "f16":
        found = places((8, 8), (1, 8))
    else:
        found = places(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))
    lanes = np.arange(32)
    return lanes >> 2 & 3, found[(lanes & 3) + 4 * (lanes >> 4)]
