"""Block scales of whole tiles whose rows aim (``tiles_aimed``).  ``csrc/cpu/generators/scaled_tiles.hpp`` repeats it.

What a row aims at is an exponent of products, scales included:

    |b(k, j)| sb(g, j) = 2**(beta(k) - drift(j)) * ...      |a(i, k)| sa(i, g) = 2**(E(i, k) - beta(k)) * ...

for lane k of scale block g, so that rules see operands whose exponents span those of format and scale together.  The
scales of b belong to the tile, one for each block, and follow the column's drift; those of a to the row: the largest
term of each block fits the format.  What is then too small for it is the lowest value, or zero: terms that the row
aims at in a quarter of the rows, others in three quarters.

In one tile of four scales have fractions (where the format has any): of half of the rows and columns one each, of the
others one for each block.  A C that mirrors a product follows the one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mmaprobe.generators.domain import Domain
from mmaprobe.generators.operands import Codes, Ints, encode, pick16

NO_TERM = -(1 << 14)
"""Below every exponent: what a scale block without terms of the row's has for its largest."""
MOST_ROOM = 3
"""Binades that the largest term of a scale block lies below the largest operand at most."""
FEW_LOWEST = 0x1C0
"""Of b's lanes those without these bits of their number may be subnormal, one in eight."""
DROPS = 0x600
"""Bits of a row's number that say what of it is zero where it is too small for its scale."""
SCALE_TURN = 0x5CA1AB1E
"""Makes the words of special scales out of those of special operands."""


def under_scales(t: Domain) -> Domain:
    """The domain as rules for tiles see it: the exponents of operands with their scales."""
    s = t.scale
    a, b = (replace(f, low=f.low + s.low, normal=f.normal + s.normal, top=f.top + s.top) for f in (t.a, t.b))
    return replace(t, a=a, b=b)


def of_lanes(t: Domain, blocks: Any) -> Any:
    """What belongs to scale blocks, the last axis, by lane; 0 without scales."""
    return np.repeat(blocks, t.space.group_lanes, axis=-1) if t.space.groups else np.int64(0)


def tile_scales(t: Domain, drift: int, beta: Ints, words: Codes) -> tuple[Ints, Ints]:
    """Exponents of b's scales (tiles, K/S), before the column's drift, for operands with scales of exponents ``beta``;
    and the lowest that most of b's own then have, so that a makes up for half of what its format spans at most."""
    largest = beta.reshape(len(beta), t.space.groups, -1).max(axis=2)
    room = pick16(words.astype(np.int64), min(t.b.top - t.b.normal, MOST_ROOM) + 1)
    scale = np.clip(largest - t.b.top + room, t.scale.normal + drift, t.scale.top)
    span = (t.a.top - t.a.normal) // 2 + 1
    return scale, np.maximum(t.b.normal, t.b.top - room - span)


def row_scales(t: Domain, wanted: Ints, free: Any, otherwise: Any, words: Codes) -> Ints:
    """Exponents of a's scales (tiles, M, K/S) for lanes of exponents ``wanted``; ``free`` ones take what comes, and a
    block of these alone is made for ``otherwise``."""
    blocks = (*wanted.shape[:2], t.space.groups, t.space.group_lanes)
    largest: Ints = np.where(free, NO_TERM, wanted).reshape(blocks).max(axis=3)
    largest = np.where(largest == NO_TERM, otherwise.reshape(blocks)[..., 0], largest)
    own = words[..., :-1].astype(np.int64)
    room = np.where(own & 0x100, 0, pick16(own, min(t.a.top - t.a.normal, MOST_ROOM) + 1))
    found: Ints = np.clip(largest - t.a.top + room, t.scale.normal, t.scale.top)
    return found


def drops(words: Codes, alive: Any) -> Any:
    """Which terms are zero where they are too small for their scale (tiles, M, K), by the last of a row's words."""
    bits = words[..., -1:] & np.uint64(DROPS)
    return np.where(alive, bits == 0, bits != np.uint64(DROPS))


def scale_codes(t: Domain, exponents: Ints, words: Codes, fractions: Any) -> Codes:
    """Codes of scales (tiles, rows or columns, K/S); ``fractions``: whether the tile's have any."""
    mask = np.uint64((1 << t.scale.fraction) - 1)
    apart = (words[..., -1:] >> np.uint64(8)) & np.uint64(1) != 0
    fraction = np.where(apart, words[..., :-1], words[..., -1:]) & mask
    return encode(t.scale, False, exponents, np.where(fractions[:, :, None], fraction, np.uint64(0)))


def followed(t: Domain, words: Codes, fractions: Any) -> Codes:
    """The significand of the scale that C follows (tiles, rows or columns), of so many bits as the format's."""
    one = np.uint64(1 << t.scale.fraction)
    return one | np.where(fractions, words[..., -1] & (one - np.uint64(1)), np.uint64(0))


def times_scale(t: Domain, x: Codes, scale: Codes) -> tuple[Codes, Codes]:
    """A significand of 16 bits times that of its scale, cut to as many, and whether an exponent goes up."""
    product = (x * scale) >> np.uint64(t.scale.fraction)
    carry = product >> np.uint64(16)
    return product >> carry, carry
