"""Families that cut their operands out of a vector's own stream of bytes.

The reference; ``csrc/cpu/generators/{stream,cluster}.hpp`` repeat it bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mmaprobe.generators import philox
from mmaprobe.generators.domain import CodeLayout, Domain
from mmaprobe.generators.operands import Codes, Ints, pick16, split, with_sign

EVERY = ~np.uint64(0)
"""A mask that keeps every bit."""


UNIFORM_ORDER = ("a", "b", "c", "scale_a", "scale_b")
CLUSTERED_ORDER = ("c", "a", "b", "scale_a", "scale_b")


def operand_bytes(t: Domain, order: tuple[str, ...], offset: int, grain: int) -> tuple[list[tuple[str, int, int]], int]:
    """(operand, items, first byte) of each operand in a vector's stream from ``offset`` on, and the stream's length in
    bytes; operands begin at multiples of ``grain`` and of their items' size (grain 1: one close behind the other)."""
    s = t.space
    layouts = operand_layouts(t)
    counts = {"a": s.live, "b": s.k, "c": t.c.present, "scale_a": s.groups, "scale_b": s.groups}
    spans = []
    for name in order:
        if counts[name]:
            size = layouts[name].item
            step = max(grain, size) if grain > 1 else 1
            offset = -(-offset // step) * step
            spans.append((name, counts[name], offset))
            offset += counts[name] * size
    return spans, offset


def operand_layouts(t: Domain) -> dict[str, CodeLayout]:
    """The layout of each operand."""
    return {"a": t.a, "b": t.b, "c": t.c, "scale_a": t.scale, "scale_b": t.scale}


def cut(
    t: Domain,
    seed: int,
    stream: int,
    index: Any,
    order: tuple[str, ...],
    offset: int,
    grain: int,
    rounds: int = philox.ROUNDS,
) -> dict[str, Codes]:
    """Raw operands (n, items): the bytes of Philox blocks 0, 1, ... of each vector, little-endian, unused bits cut."""
    spans, length = operand_bytes(t, order, offset, grain)
    blocks = -(-length // 16)
    words = philox.draw(seed, stream, index[:, None], philox.VECTOR, np.arange(blocks)[None, :], rounds)
    data = np.stack(words, axis=2).astype("<u4").reshape(len(index), 4 * blocks).view(np.uint8)
    found = {}
    for name, count, first in spans:
        f = operand_layouts(t)[name]
        part = np.ascontiguousarray(data[:, first : first + count * f.item]).view(f"<u{f.item}").astype(np.uint64)
        found[name] = part & np.uint64((1 << f.bits) - 1)
    return found


def uniform(t: Domain, seed: int, stream: int, index: Any) -> dict[str, Codes]:
    """Raw bits: a, b, c and the scales one close behind the other."""
    return cut(t, seed, stream, index, UNIFORM_ORDER, 0, 1)


def highest_field(f: CodeLayout, exponent: Any) -> Any:
    """The exponent field of a value with this exponent; 0 for subnormals."""
    lift = int(f.implicit > 0)
    return np.maximum(exponent - f.normal, -lift) + lift


def cluster(f: CodeLayout, code: Codes, top: Any, width: Any, zeros: Any, fractions: Any = EVERY) -> Codes:
    """Raw codes with new exponent fields: ``floor(width * field / 2**bits)`` below ``top``, or 0 where that is less.

    Sign and fraction stay (the fraction where ``fractions``), and nothing
    exceeds the largest finite value.  Where ``zeros``, the codes with all ones
    in the lower 5 bits of their drawn field (or in all its bits) become zero.
    """
    bits = (f.largest >> f.fraction).bit_length()
    field = (code >> np.uint64(f.padding + f.fraction)) & np.uint64((1 << bits) - 1)
    drop = (field.astype(np.int64) * width) >> bits
    fraction = (code >> np.uint64(f.padding)) & np.uint64((1 << f.fraction) - 1) & fractions
    made = (np.maximum(top - drop, 0).astype(np.uint64) << np.uint64(f.fraction)) | fraction
    low = np.uint64(min(31, (1 << bits) - 1))
    gone = ((field & low) == low) & zeros
    made = np.where(gone, np.uint64(0), np.minimum(made, np.uint64(f.largest)))
    return with_sign(f, (code & np.uint64(f.sign)) != 0, made)


def clustered(t: Domain, seed: int, stream: int, index: Any) -> dict[str, Codes]:
    """Exponents within a random width (1 to 46) below a random anchor m: those of a within ``width_a`` below their
    share of m, those of b within ``width_b`` below the other, so that every pair of a row and a column of a tile is
    clustered; C within the width below m.  The first three words (with scales four) aim, the raw operands follow.
    Version 3 draws all of them by 7 rounds of Philox, version 2 by 10."""
    s = t.space
    rounds = philox.FEWER_ROUNDS if stream >> 16 >= 3 else philox.ROUNDS
    found = cut(t, seed, stream, index, CLUSTERED_ORDER, 16 if s.groups else 12, 4, rounds)
    v = [word.astype(np.int64)[:, None] for word in philox.draw(seed, stream, index, philox.VECTOR, 0, rounds)]
    m: Ints = s.anchor_top - pick16(v[0] >> 16, s.anchor_top - s.anchor_low + 1)
    width = pick16(v[1], 46) >> ((v[1] >> 16) & 3)
    zeros = ((v[1] >> 18) & 1) != 0
    width_a = pick16(v[2], width + 1)
    if t.c.is_float:
        c_top = highest_field(t.c, np.clip(m, t.c.low, t.c.top))
        found["c"] = cluster(t.c, found["c"], c_top, width + 1, True)
    if s.groups:
        reach = min(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1
        wanted = m - (t.a.top + t.b.top) + pick16(v[3], reach)
        wanted = np.clip(wanted, 2 * t.scale.normal, 2 * t.scale.top)
        parts = split(t.scale, t.scale, wanted, v[3] >> 16)
        vary = (v[2] >> 18) & 1
        fractions = np.where((v[2] >> 16) & 3 == 0, EVERY, np.uint64(0))
        for name, part, own in zip(("scale_a", "scale_b"), parts, (width_a, width - width_a), strict=True):
            top = highest_field(t.scale, part)
            found[name] = cluster(t.scale, found[name], top, own * vary + 1, False, fractions)
        m = m - wanted
    a, b = split(t.a, t.b, m, v[0])
    found["a"] = cluster(t.a, found["a"], highest_field(t.a, a), width_a + 1, zeros)
    found["b"] = cluster(t.b, found["b"], highest_field(t.b, b), width - width_a + 1, zeros)
    return found
