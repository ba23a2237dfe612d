"""Whole tiles in which every pair of codes has its turn.

The reference; ``csrc/cpu/generators/code_tiles.hpp`` repeats it.

Row i has the code of a, and column j that of b, that vectors ``first + i`` and ``first + j`` of the family ``codes``
have, so that every row meets every column: 2**(bits of a and b) indices meet each pair min(M, N) times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.generators import philox
from mmaprobe.generators.domain import Domain
from mmaprobe.generators.families_circuit import GROUP_BITS, ODD, is_special, negated
from mmaprobe.generators.operands import Codes, encode


def code_tiles(t: Domain, seed: int, first: NDArray[np.uint64], m: int, n: int) -> dict[str, Codes]:
    """a (tiles, M, K), b (tiles, K, N) and c (tiles, M, N), which is zero, of the tiles from the indices ``first`` on;
    scales are 1.

    In even rounds of all pairs they lie in all lanes, b's signs by turns, so that products cancel but for one or two;
    codes of infinities and NaNs, and in odd rounds all, in one lane, the next in each 2**6 indices, and one further in
    each two rounds.
    """
    bits, live = t.a.bits + t.b.bits, t.space.live
    lap = first >> np.uint64(bits)
    lane = ((first >> np.uint64(GROUP_BITS)) + (lap >> np.uint64(1))) % np.uint64(live)
    here = (np.arange(live) == lane[:, None].astype(np.int64))[:, None, :]
    odd = ((lap & np.uint64(1)) != 0)[:, None]

    def numbers(count: int) -> Any:
        counted: Any = first[:, None] + np.arange(count, dtype=np.uint64) + np.uint64(seed * ODD & philox.ALL)
        return counted & np.uint64((1 << bits) - 1)

    mask_a, mask_b = (np.uint64((1 << f.bits) - 1) for f in (t.a, t.b))
    x, beside = numbers(m) & mask_a, numbers(n)
    y = ((beside >> np.uint64(t.a.bits)) + (beside & mask_a)) & mask_b
    a = np.where(here | ~(odd | is_special(t.a, x))[:, :, None], x[:, :, None], np.uint64(0))
    alone = (odd | is_special(t.b, y))[:, :, None]
    turned = (np.arange(live) % 2 != 0) & (np.arange(live) != live - 1) & ~alone
    b = np.where(here | ~alone, np.where(turned, negated(t.b, y)[:, :, None], y[:, :, None]), np.uint64(0))
    found = {"a": a, "b": b.swapaxes(1, 2)}
    if t.c.present:
        found["c"] = np.zeros((len(first), m, n), np.uint64)
    if t.space.groups:
        one, groups = encode(t.scale, False, 0, 0), t.space.groups
        found["scale_a"] = np.broadcast_to(one, (len(first), m, groups))
        found["scale_b"] = np.broadcast_to(one, (len(first), groups, n))
    return found
