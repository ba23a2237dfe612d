"""Few terms at a distance: vectors on which one rule of a sum shows, whatever the rest of its structure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints, code, room, scales_of, split, window
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits

Mask = NDArray[np.bool_]
GAP = 66
"""How far below the largest term the others go, in powers of two."""
KINDS = ("c and one", "two", "cancelling", "few", "clustered")


def few_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """C and one product; two products; two that cancel beside smaller ones; a few with C; all about one exponent.

    C is placed from the products: a narrow product never reaches C's exponents.  All other lanes are +0.
    """
    rng = np.random.default_rng([seed, 0xFE3])
    k, has_c = instruction.k, instruction.c is not None
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    low, high = window(instruction, a, b, d)
    rows = np.arange(count)
    kind = rng.integers(0, len(KINDS), count)
    lanes = np.argsort(rng.random((count, k)), axis=1)
    first, second = lanes[:, 0], lanes[:, min(1, k - 1)]
    anchor = rng.integers((low + high + 1) // 2, high + 1, count)
    below = rng.integers(0, GAP, (count, k))
    near = rng.random((count, 1)) < 0.5
    below = np.where(near, rng.integers(0, 5, (count, k)), below)
    exponents = anchor[:, None] - below
    exponents[rows, first] = anchor
    exponents = np.clip(exponents, low, high)
    live = (
        np.argsort(lanes, axis=1)
        < np.select(
            [kind == 0, kind == 1, kind == 2, kind == 3],
            [1, 2, 2 + rng.integers(1, 4, count), rng.integers(1, 4, count)],
            k,
        )[:, None]
    )
    pair = (kind == 2) & (k > 1)
    e_a, e_b = split(rng, exponents, a, b)
    batch: dict[str, Bits] = {"a": code(rng, a, e_a), "b": code(rng, b, e_b)}
    for name in ("a", "b"):
        batch[name][rows[pair], second[pair]] = batch[name][rows[pair], first[pair]]
    if b.sign_mask:
        batch["b"][rows[pair], second[pair]] ^= b.dtype.type(b.sign_mask)
    for name, fmt in (("a", a), ("b", b)):
        batch[name] = np.where(live, batch[name], 0).astype(fmt.dtype)
    shift = np.zeros(count, np.int64)
    if instruction.scale is not None:
        around = room(instruction, d, low, high)
        shift = np.where(rng.random(count) < 0.3, 0, rng.integers(around[0], around[1] + 1, count))
        batch |= scales_of(rng, instruction.scale, _apart(rng, instruction, shift, first), around)
    if has_c:
        batch["c"] = _c(rng, instruction, d, anchor + shift, kind)
    return Batch(**batch)


def _apart(rng: np.random.Generator, instruction: Instruction, shift: Ints, first: Ints) -> Ints:
    """How far each scale block moves its products: that of the first term so far, in half of the vectors all, in the
    others the rest lies anywhere below."""
    size = instruction.scale_size
    blocks = np.arange(instruction.k // size)
    apart = (rng.random((shift.size, 1)) < 0.5) & (blocks != first[:, None] // size)
    return shift[:, None] - np.where(apart, rng.integers(0, GAP, apart.shape), 0)


def _c(rng: np.random.Generator, instruction: Instruction, d: Format, anchor: Ints, kind: Ints) -> Bits:
    c = formats.get(instruction.c or "")
    gap = rng.integers(-GAP, GAP + 1, anchor.size)
    gap = np.where(rng.random(anchor.size) < 0.4, rng.integers(-4, 5, anchor.size), gap)
    lowest = max(c.min_exponent, d.min_exponent + 3)
    highest = min(c.max_exponent - 2, d.max_exponent - 4 - instruction.k.bit_length())
    found = code(rng, c, np.clip(anchor - gap, lowest, max(lowest, highest)))
    gone = (kind == 1) | (rng.random(anchor.size) < 0.3) & (kind != 0)
    return np.where(gone, 0, found).astype(c.dtype)
