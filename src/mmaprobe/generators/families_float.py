"""The floating families: what each vector aims at.  The reference; ``csrc/model/families.hpp`` repeats it bit for bit.

Every family is a function (domain, draws) -> (lanes, addend).  ``v`` are the
words of the vector, ``w[0]`` is the word that each lane decides its role with;
the remaining words become significands.  m is the anchor, the exponent of the
largest term; terms lie t below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mmaprobe.generators.domain import FULL, GRAZE_A, GRAZE_B, LOWBIT, ONES, POW2, TOP2, UPPER, Domain
from mmaprobe.generators.operands import Addend, Draws, Lanes, pick, pick16

DENSITY = np.array([32, 64, 192, 256])
"""Of 256 lanes so many are alive, by two bits of the vector."""
BIG = np.array([POW2, FULL, ONES, LOWBIT])
ANCHORS = np.array([POW2, POW2, FULL, TOP2])
PAIRS_ALONE = np.array([POW2, FULL, FULL, FULL])
FILLERS = np.array([POW2, FULL, FULL, TOP2])
TOPS = np.array([ONES, FULL, POW2, TOP2])
ALONE = np.array([FULL, POW2, ONES, LOWBIT])


def anchor(t: Domain, word: Any, near_top: Any) -> Any:
    """An anchor exponent: anywhere in its range, or within 8 of its top."""
    count = t.space.anchor_top - t.space.anchor_low + 1
    return t.space.anchor_top - np.where(near_top, pick(word, min(count, 8)), pick(word, count))


def three_lanes(word: Any, extra: Any, count: int) -> tuple[Any, Any, Any]:
    """Three lanes below ``count``, the second never the first, the third never the second (where there are enough)."""
    i = pick16(word >> 16, count)
    j = (i + 1 + pick16(word, count - 1)) % count
    return i, j, (j + 1 + pick16(extra, count - 1)) % count


def clustered(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """All exponents within a random width (0 to 45) below a random anchor."""
    v, w = d.v, d.w
    m = anchor(t, v[1], False)
    width = (pick(v[0], 46) >> (v[3] & 3)) + 1
    zero = ((v[3] & 4) != 0) & (((w[0] >> 1) & 31) == 0)
    lanes = Lanes(m - pick(w[0], width), (w[0] & 1) != 0, zero)
    c = v[10]
    return lanes, Addend(m - pick(c, width), (c & 1) != 0, ((c >> 1) & 15) == 0)


def cancel(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """Two equal terms of opposite sign (lanes, or a lane and C); others t below: anywhere, or around one t."""
    v, s = d.v, t.space
    style, role = v[0], d.w[0]
    low = np.clip(s.d_normal + pick16(v[7], 6), s.anchor_low, s.anchor_top)  # what is left is subnormal
    m = np.where((style >> 21) & 7, anchor(t, v[1], (style >> 16) & 1), low)
    i, j, _ = three_lanes(v[2], 0, s.live + t.c.present)
    lane = np.arange(s.live)
    anchored = (lane == i) | (lane == j)
    t0 = pick(v[3], 45)

    def below(word: Any) -> Any:
        jitter, far = pick16(word >> 16, 5) - 2, pick16(word >> 16, 43)
        return np.choose(style & 3, [far, t0 + jitter, t0 + 0 * far, s.d_fraction + 1 + jitter])

    def sign(word: Any) -> Any:
        return np.where(style & 4, style >> 13, word >> 8) & 1

    live = (role & 255) < DENSITY[(style >> 3) & 3]
    tiny = (style >> 7) & 1
    first = (style >> 8) & 1
    pair = np.where(s.live + t.c.present == 2, PAIRS_ALONE[(style >> 5) & 3], ANCHORS[(style >> 5) & 3])
    residue = (lane == j) & (pair == FULL) & ((style >> 20) & 1 != 0)  # equal in the upper half only
    pattern = np.where(anchored, np.where(residue, UPPER, pair), FILLERS[(style >> 9) & 3])
    exponent = np.where(anchored, m, np.where(live, m - below(role), s.product_low))
    negative = np.where(anchored, first ^ (lane == j), sign(role)) != 0
    lanes = Lanes(exponent, negative, ~anchored & ~live & (tiny == 0), pattern, pattern, anchored)
    mirror = np.where(i == s.live, j, np.where(j == s.live, i, -1))
    delta = np.array([0, 0, 0, 0, 0, 0, 1, -1])[(style >> 17) & 7]
    c = v[10]
    zero = (c & 255) >= DENSITY[(style >> 3) & 3]
    return lanes, Addend(m - below(c), sign(c) != 0, zero, FILLERS[(style >> 9) & 3], mirror, delta)


def ulp(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """One big term (C or a lane); the others near its last place, or around one t below it."""
    v, s, role = d.v, t.space, d.w[0]
    style = v[0]
    c_big = (style & 1) & t.c.present
    t0 = np.where(style & 2, s.d_fraction + 1, 1 + pick(v[3], 44))
    base = anchor(t, v[1], False)
    m = np.where(c_big & (style >> 2), np.minimum(base + t0, s.c_top), base)
    i = np.where(c_big, -1, pick16(v[2], s.live))
    big = np.arange(s.live) == i
    live = (role & 255) < DENSITY[(style >> 3) & 3]

    def small(word: Any) -> Any:
        return m - t0 - pick16(word >> 16, 5) + 2

    def sign(word: Any) -> Any:
        return np.where(style & 32, style >> 6, word >> 8) & 1

    large, fine = BIG[(style >> 8) & 3], np.where((role >> 9) & 1, FULL, POW2)
    one_sided = np.where(big, large, fine)
    lanes = Lanes(
        np.where(big, m, small(role)), np.where(big, style >> 7, sign(role)) & 1 != 0, ~big & ~live,
        one_sided, np.where(big & ((style >> 10) & 1 != 0), POW2, one_sided),
    )  # fmt: skip
    c = v[10]
    return lanes, Addend(
        np.where(c_big, m, small(c)), np.where(c_big, style >> 7, sign(c)) & 1 != 0,
        (c_big == 0) & ((c & 255) >= DENSITY[(style >> 3) & 3]),
        np.where(c_big, large, np.where((c >> 9) & 1, FULL, POW2)),
    )  # fmt: skip


def tie(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """A sum half way between two results (one half, or two quarters), and a sticky term far below, or none.

    The big term has no more bits than the result.  Where C is big the half is
    any product that exists, and C follows: also where products span little.
    """
    v, s = d.v, t.space
    style = v[0]
    lane = np.arange(s.live)
    i, j, third = three_lanes(v[2], v[3], s.live)
    narrow = s.product_top - s.d_fraction - 1 < s.product_low or s.live == 1
    c_big = (((style & 3) != 0) | narrow) & (t.c.present != 0)
    low, high = max(s.product_low, s.d_low - 1), min(s.product_top, s.c_top - s.d_fraction - 1)
    room = np.where(style & 0x70, max(high - low + 1, 1), min(max(high - low + 1, 1), 3))
    half_c = low + pick(v[1], room)
    m_lane = anchor(t, v[1], (style >> 16) & 1)
    half = np.where(c_big, half_c, np.maximum(m_lane, s.d_normal) - s.d_fraction - 1)
    m = np.where(c_big, half_c + 1 + s.d_fraction, m_lane)
    m = np.where(c_big & (half_c < s.d_low), s.d_low + pick16(v[10], s.d_fraction + 1), m)
    big = (lane == i) & ~c_big
    at_half = np.where(c_big, lane == i, lane == j) & ~big
    other = np.where(c_big, lane == j, lane == third) & ~big & ~at_half
    quarters = (style >> 7) & 1 & (s.live + c_big >= 3)
    sticky = half - 1 - np.where(style & 0x100, pick(v[7], 34), pick(v[7], 8))
    own = np.where((style >> 9) & 3, POW2, np.where((style >> 11) & 1, LOWBIT, ONES))  # ones: just below, one lower
    sign = np.where(at_half, style >> 12, np.where(quarters & other, style >> 12, style >> 13)) & 1
    lanes = Lanes(
        np.where(big, m, np.where(at_half, half - quarters - (own == ONES), np.where(quarters, half - 1, sticky))),
        np.where(big, style >> 14, sign) & 1 != 0,
        ~big & ~at_half & ~(other & (quarters | (style >> 15) & 1 != 0)),
        np.where(big, np.where(t.a.fraction > s.d_fraction, UPPER, FULL), np.where(at_half, own, POW2)), POW2,
    )  # fmt: skip
    c_sticky = ((style >> 17) & 3) == 0
    pattern = np.where(c_big & (t.c.fraction <= s.d_fraction), FULL, np.where(c_big, UPPER, POW2))
    return lanes, Addend(np.where(c_big, m, sticky), (style >> 14) & 1 != 0, ~c_big & ~c_sticky, pattern)


def zlad(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """Zero-exponent ladders: results at the last place, one lane far below, all else zero (or tiny).

    A quarter is the other question: zeros beside partners of every size, with few ordinary terms.
    """
    v, s, role = d.v, t.space, d.w[0]
    style = v[0]
    lane = np.arange(s.live)
    i, j, third = three_lanes(v[2], v[3], s.live)
    first, second = lane == i, (lane == j) & ((style >> 2) & 1 != 0)
    guess = s.d_normal - 4 - pick16(v[7], 5) - 22 - pick16(v[7] >> 16, 6)
    ladder = np.where(style & 8, guess, s.d_normal - pick(v[7], 64))
    rung = (lane == third) & ~first & ~second
    last = s.d_low - 1 + pick16(v[1], 3)
    exponent = np.where(first, last, np.where(second, s.d_low - 1 + pick16(v[1] >> 16, 3), ladder))
    used = first | second | rung
    tiny = (style >> 4) & 1 != 0
    plain = (style & 3) == 0
    m = anchor(t, v[1], False)
    sparse = (role & 7) == 0
    lanes = Lanes(
        np.where(plain, m - pick16(role >> 16, 30), np.where(used, exponent, s.product_low)),
        (role >> 8) & 1 != 0,
        np.where(plain, ~sparse, ~used & ~tiny),
        np.where(plain, FULL, POW2), np.where(plain, FULL, POW2),
    )  # fmt: skip
    c = v[10]
    low = s.d_low + pick16(c, 3)
    return lanes, Addend(
        np.where(plain, m - pick16(c, 30), low), (c >> 16) & 1 != 0, (c >> 17) & 3 != 0, np.where(plain, FULL, POW2)
    )


def tiny(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """One to three lanes near the lowest result, C near it or zero.

    A quarter straddles the lowest normal result: it, or the largest subnormal,
    in C or the second lane, and a lane less than one unit beside it; or one
    product alone less than a place below it.
    """
    v, s, role = d.v, t.space, d.w[0]
    style = v[0]
    lane = np.arange(s.live)
    i, j, third = three_lanes(v[2], v[3], s.live)
    edge = ((style >> 4) & 3 == 0) & (s.live + t.c.present >= 2)
    used = (lane == i) | ((lane == j) & ((style & 1) != 0)) | ((lane == third) & ((style & 2) != 0))
    near = s.d_low - 2 + pick16(role >> 16, s.d_fraction + 5)
    pattern = np.where(style & 8, FULL, POW2)
    graze = edge & ((style >> 9) & 3 == 0)
    low = np.where(graze, s.d_normal - 1, s.d_low - 1 - pick16(v[7], 3))
    beside = np.where(lane == i, low, s.d_normal)
    edge_lane = (lane == i) | ((lane == j) & (t.c.present == 0) & ~graze)
    lanes = Lanes(
        np.where(edge & edge_lane, beside, np.where(used, near, s.product_low)),
        np.where(edge, (style >> 6) ^ ((lane == i) & (style >> 7)), role) & 1 != 0,
        np.where(edge, ~edge_lane, ~used & ((style & 4) == 0)),
        np.where(graze, GRAZE_A, pattern), np.where(graze, GRAZE_B, pattern),
    )  # fmt: skip
    c = v[10]
    below = (style >> 8) & 1
    return lanes, Addend(
        np.where(edge, s.d_normal - below, s.d_low + pick16(c >> 16, s.d_fraction + 4)),
        np.where(edge, style >> 6, c) & 1 != 0, graze | (~edge & ((c & 6) == 0)), np.where(edge, below * ONES, pattern),
    )  # fmt: skip


def subnormals(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """Subnormal a, b or both against normal partners, product sizes around one target; C subnormal, zero or near."""
    v, s, role = d.v, t.space, d.w[0]
    style = v[0]
    near = s.d_low + pick(v[1], s.d_fraction + 6)
    m = np.where(style & 1, near, anchor(t, v[1], False))
    aim = m - pick16(role >> 16, 12) * ((style >> 1) & 1)
    side = np.where(style & 4, role & 3, (style >> 3) & 3)
    sub_a = t.a.low + pick16(role >> 2, t.a.fraction)
    sub_b = t.b.low + pick16(d.w[3] >> 16, t.b.fraction)
    exponent_a = np.where(side == 1, aim - sub_b, sub_a)
    exponent_b = np.where(side == 0, aim - sub_a, sub_b)
    mixed = ((role >> 4) & 3 == 0) & (style & 4 != 0)
    lanes = Lanes(aim, (role >> 15) & 1 != 0, mixed, FULL, FULL, False, side != 3, exponent_a, exponent_b)
    c = v[10]
    lowest = t.c.low + pick16(c >> 16, max(t.c.fraction, 1))
    kind = c & 3
    exponent = np.where((kind == 0) | (kind == 3), lowest, m - pick16(c >> 16, 12))
    return lanes, Addend(exponent, (c >> 2) & 1 != 0, kind == 1)


def extremes(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """Terms within 3 of the top, C too; exact cancellation of the largest products; overflow on the way."""
    v, s, role = d.v, t.space, d.w[0]
    style = v[0]
    lane = np.arange(s.live)
    i, j, _ = three_lanes(v[2], 0, s.live)
    top = np.where(style & 1, s.product_top, np.minimum(s.product_top, s.d_top + 1))
    pair = (lane == i) | ((lane == j) & ((style >> 1) & 1 != 0))
    live = pair | ((role & 255) < DENSITY[(style >> 2) & 3])
    negative = np.where(style & 16, style >> 5, role >> 8) & 1
    negative = np.where(lane == j, (style >> 5) & 1 ^ 1, np.where(lane == i, style >> 5, negative)) & 1
    pattern = np.where(pair, TOPS[(style >> 6) & 3], TOPS[(role >> 9) & 3])
    graze = pair & ((style >> 10) & 3 == 0)
    exponent = top - np.where(pair, pick16(v[3], 3), np.where(style & 0x100, 0, pick16(role >> 16, 4)))
    lanes = Lanes(
        np.where(live, exponent, top - 20 - pick16(role >> 16, 20)), negative != 0,
        ~live & ((style >> 9) & 1 != 0),
        np.where(graze, GRAZE_A, pattern), np.where(graze, GRAZE_B, pattern), pair,
    )  # fmt: skip
    c = v[10]
    mirror = np.where((c >> 8) & 3 == 0, i, -1)
    return lanes, Addend(t.c.top - pick16(c >> 16, 4), (c & 1) != 0, (c & 6) == 0, TOPS[(c >> 4) & 3], mirror, 0)


def conly(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """All products zero; C subnormal, at the top, near the result's lowest, zero, or anything."""
    v, s = d.v, t.space
    c = v[10]
    lanes = Lanes(s.product_low, np.where(v[0] & 1, v[0] >> 1, d.w[0]) & 1 != 0, True)
    anywhere = t.c.low + pick(v[1], t.c.top - t.c.low + 1)
    subnormal = t.c.low + pick(v[1], max(t.c.fraction, 1))
    in_result = np.minimum(s.d_low - 2 + pick(v[1], s.d_fraction + 6), t.c.top)
    top = t.c.top - pick(v[1], 4)
    result_top = np.minimum(s.d_top + 1, t.c.top) - pick(v[1], 2)
    choices = [subnormal, subnormal, t.c.normal + 0 * anywhere, top, anywhere, anywhere, in_result, result_top]
    return lanes, Addend(np.choose(c & 7, choices), (c >> 3) & 1 != 0, (c & 7) == 5, ALONE[(c >> 4) & 3])


def zeros(t: Domain, d: Draws) -> tuple[Lanes, Addend]:
    """Signed zeros: all products -0 (40 %) or mixed, sometimes the smallest product beside them; C zero or lowest."""
    v, s, role = d.v, t.space, d.w[0]
    style = v[0]
    all_negative = pick(style, 10) < 4
    i = pick16(v[2], s.live)
    under = (np.arange(s.live) == i) & ((style & 3) == 0)
    negative = all_negative | ((role & 1) != 0)
    sub_a, sub_b = t.a.low + pick16(v[3], 3), t.b.low + pick16(v[3] >> 16, 3)
    lanes = Lanes(s.product_low, negative, ~under, POW2, POW2, False, under, sub_a, sub_b)
    c = v[10]
    return lanes, Addend(t.c.low, np.where(style & 4, all_negative, (c & 1) != 0), (c & 6) != 0, POW2)


FLOAT_FAMILIES: dict[str, Callable[[Domain, Draws], tuple[Lanes, Addend]]] = {
    "cancel": cancel, "ulp": ulp, "tie": tie, "clustered": clustered, "zlad": zlad, "tiny": tiny,
    "subnormals": subnormals, "extremes": extremes, "conly": conly, "zeros": zeros, "specials": clustered,
}  # fmt: skip
"""Specials starts as clustered and then has codes replaced."""
