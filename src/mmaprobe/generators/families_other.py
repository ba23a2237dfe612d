"""Families that choose codes rather than exponents: special values mixed in, integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmaprobe.generators import philox
from mmaprobe.generators.domain import CodeLayout, Domain
from mmaprobe.generators.operands import Codes, Draws, Ints, pick16, raw_code, with_sign


def special_code(f: CodeLayout, kind: Any, high: Any, low: Any) -> Codes:
    """A special value by 5 random bits, the largest value in place of what the format lacks.

    Bits 0 to 2: infinity (2 of 8), quiet NaN (2), signalling NaN, zero,
    subnormal, largest or lowest normal.  Bit 3 is the sign; bit 4 asks for a
    payload of one bit.
    """
    which, negative, short = kind & 7, (kind >> 3) & 1 != 0, (kind >> 4) & 1 != 0
    random = (np.asarray(high, np.uint64) << np.uint64(32)) | np.asarray(low, np.uint64)
    full = np.uint64((1 << f.fraction) - 1)
    payload = (random >> np.uint64(1)) >> np.uint64(63 - f.fraction)
    payload = np.where(short, np.uint64(1) << (random % np.uint64(max(f.fraction, 1))), payload) & full
    quiet = np.uint64((1 << f.fraction) >> 1)
    largest, top = np.uint64(f.largest), np.uint64(f.infinity)
    has_nan = f.nan_rule == 1
    signalling = payload & ~quiet
    signalling = np.where(signalling == 0, np.uint64(1), signalling)
    only_nan = {0: largest, 1: largest, 2: np.uint64(f.largest + 1), 3: np.uint64(0)}[f.nan_rule]
    quiet_nan = top | quiet | payload if has_nan else only_nan + 0 * payload
    signalling_nan = top | signalling if has_nan else only_nan + 0 * payload
    infinite = (top if f.infinity else largest) + 0 * payload
    normal = np.uint64(1 << f.fraction) + 0 * payload
    code = np.choose(which, [infinite, infinite, quiet_nan, quiet_nan, signalling_nan, 0 * payload, payload,
                             np.where(short, normal, largest)])  # fmt: skip
    coded = with_sign(f, negative, code)
    if f.nan_rule == 3:  # the only NaN is the code of a negative zero
        coded = np.where((which >= 2) & (which <= 4), np.uint64(f.sign), coded)
    return coded


def overlay_specials(t: Domain, d: Draws, found: dict[str, Codes]) -> None:
    """Replace codes by special values: one slot, two slots (infinities and NaNs only), or a quarter of all operands;
    sometimes a scale."""
    s, style = t.space, d.v[0]
    slots = 2 * s.live + (1 if t.c.is_float else 0)
    words = d.lanes(philox.OVERLAY, s.live)
    first, second = pick16(d.v[2] >> 16, slots), pick16(d.v[2], slots)
    mode = style & 3
    second = np.where(mode == 2, second, first)
    lane = np.arange(s.live)

    def kind(word: Any) -> Any:
        return np.where((mode == 2) & ((word & 7) > 4), word - 3, word) & 31

    def chosen(slot: Any, word: Any) -> Any:
        return np.where(mode == 3, (word >> 8) & 3 == 0, (slot == first) | (slot == second))

    a = special_code(t.a, kind(words[0]), words[1], words[1])
    found["a"] = np.where(chosen(2 * lane, words[0]), a, found["a"])
    b = special_code(t.b, kind(words[2]), words[3], words[3])
    found["b"] = np.where(chosen(2 * lane + 1, words[2]), b, found["b"])
    if t.c.is_float:
        c = special_code(t.c, kind(d.v[11]), d.v[8], d.v[9])
        found["c"] = np.where(chosen(2 * s.live, d.v[11]), c, found["c"][:, None])[:, 0]
    if s.groups:
        group = pick16(d.v[7], s.groups)
        hit = (np.arange(s.groups) == group) & ((d.v[7] >> 16) & 7 == 0)
        for name, bit in (("scale_a", 19), ("scale_b", 20)):
            code = special_code(t.scale, (d.v[7] >> 21) & 31, d.v[5], d.v[6])
            found[name] = np.where(hit & ((d.v[7] >> bit) & 1 != 0), code, found[name])


def edge_code(f: CodeLayout, word: Any) -> Any:
    """A boundary value of an integer format by 3 random bits: lowest, highest, next to them, -1, 0, 1."""
    ones = (1 << f.bits) - 1
    low, high = f.sign, ones ^ f.sign
    return np.array([low, high, (low + 1) & ones, high - 1 if f.bits > 1 else high, ones, 0, 1, high], np.uint64)[
        word & 7
    ]


def near_limit(f: CodeLayout, word: Any, distance: Any) -> Codes:
    """A value close to the highest or lowest of an integer format: at a distance of a random number of bits."""
    ones = np.uint64((1 << f.bits) - 1)
    away = (np.asarray(distance, np.uint64) & ones) >> np.asarray(word >> 1, np.uint64) % np.uint64(f.bits)
    limit = np.where(word & 1, np.uint64(f.sign), ones ^ np.uint64(f.sign))
    return np.where(word & 1, limit + away, limit - away) & ones


def integers(t: Domain, d: Draws, share: int) -> dict[str, Codes]:
    """Boundary values in ``share`` of 4 operands, raw bits in the others; half of the vectors repeat one pair in all
    lanes where every operand is a boundary; C close to its limits."""
    v, w = d.v, d.w
    same = ((v[0] & 1) != 0) & (share == 4)
    role_a, role_b = np.where(same, v[4], w[0]), np.where(same, v[5], w[3])
    edge_a = ((w[0] >> 8) & 3) < share
    edge_b = ((w[3] >> 8) & 3) < share
    found = {
        "a": np.where(edge_a, edge_code(t.a, role_a), raw_code(t.a, w[1], 0)),
        "b": np.where(edge_b, edge_code(t.b, role_b), raw_code(t.b, w[2], 0)),
    }
    if t.c.present:
        kind = v[10] & 3
        edge = edge_code(t.c, v[10] >> 2)
        close = near_limit(t.c, v[10] >> 8, v[8])
        found["c"] = np.where(kind == 0, edge, np.where(kind == 3, raw_code(t.c, v[8], v[9]), close))[:, 0]
    return found


def widen_integer(t: Domain, d: Draws, b: Codes, where: Ints) -> Codes:
    """b of all K elements: the live ones in place, raw bits where A is not kept."""
    words = d.lanes(philox.IDLE, t.space.k)
    full = raw_code(t.b, words[1], 0)
    np.put_along_axis(full, where, b, axis=1)
    return full
