"""Whole tiles whose rows aim and whose columns are flat (``families_tile``): from aims to codes.

The reference: ``csrc/cpu/generators/aimed_tiles.hpp`` repeats it bit for bit.  A tile has the indices of the max(M, N)
vectors that it would be made of: ``first`` is the lowest, row i draws from ``first + i``, column j from ``first + j``,
the tile itself from ``first``; all by 7 rounds of Philox.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.generators import philox
from mmaprobe.generators.domain import GIVEN, GRAZE_A, CodeLayout, Domain, fraction_masks
from mmaprobe.generators.families_circuit import ODD
from mmaprobe.generators.families_other import special_code
from mmaprobe.generators.families_tile import TILE_FAMILIES, Halves, Rows, Tiles, TileTarget
from mmaprobe.generators.operands import Codes, Ints, encode, pick16, with_sign
from mmaprobe.generators.tiles_scaled import (
    FEW_LOWEST,
    SCALE_TURN,
    drops,
    followed,
    of_lanes,
    row_scales,
    scale_codes,
    tile_scales,
    times_scale,
    under_scales,
)

ELEMENT_MIX = 0x9E37
"""Odd, near 2**16 by the golden ratio (Knuth, TAOCP 3, 6.4): makes the roles of a row's lanes of their words."""
RESULT_MIX = (0x9E3779B1, 0x85EBCA77)
"""The first two primes of xxHash32: they mix a row's word and a column's to the word of one C."""
WIDE_MIX = 0x9E3779B97F4A7C15
"""Odd, 2**64 by the golden ratio (SplitMix64): spreads 32 bits to the 64 that a fraction of f64 needs."""
JITTER = np.array([3, 20])
"""How far b's exponents lie from one of them at most, by a bit of the tile; half of the lanes have that one."""


@dataclass
class TileWords:
    """Random words of tiles, their rows and columns: four of each, numbers of lanes and of a's elements, numbers of
    scale blocks, one of 16 bits each (the last of a row's or column's belongs to all)."""

    tile: list[Ints]  # (tiles, 1)
    lanes: Codes
    row: list[Ints]  # (tiles, M)
    column: list[Ints]  # (tiles, N)
    elements: Codes
    tile_scales: Codes
    row_scales: Codes
    column_scales: Codes

    @classmethod
    def drawn(cls, t: Domain, stream: int, seed: int, first: NDArray[np.uint64], m: int, n: int) -> TileWords:
        """Those of the tiles from the indices ``first`` on."""
        k, scaled, at = t.space.k, bool(t.space.groups), first[:, None]
        rows, columns = (at + np.arange(count, dtype=np.uint64) for count in (m, n))

        def numbers(index: Any, purpose: int, count: int, start: int, bits: int = 16) -> Codes:
            return _numbers(seed, stream, index, purpose, count, bits, start)

        blocks = t.space.groups + scaled
        return cls(
            _draw(seed, stream, at, philox.TILE, 0), numbers(at, philox.TILE, k, 1)[:, 0],
            _draw(seed, stream, rows, philox.ROW, 0), _draw(seed, stream, columns, philox.COLUMN, 0),
            numbers(rows, philox.ELEMENT, k, 0, lane_bits(t.a)),
            numbers(at, philox.TILE, t.space.groups, 1 + -(-k // 8))[:, 0],
            numbers(rows, philox.ROW, blocks, 1), numbers(columns, philox.COLUMN, blocks, 1),
        )  # fmt: skip


@dataclass
class Columns:
    """Of each column the drift, whether it turns signs and has the lanes in opposite order, and the fraction field."""

    drift: Ints
    turn: Any
    stray: Any  # (tiles, N, 1)
    fraction: Codes


@dataclass
class Profile:
    """What belongs to a tile: exponents (with the scales') and signs of b's rows, which of them are zero, which meet
    subnormal a; the exponents of b that bound what all lanes reach, and of products that they were made for; grazing
    steps; the exponents of b's scales, and whether scales have fractions."""

    beta: Ints  # (tiles, K)
    negative: Any
    hollow: Any
    subnormal: Any
    aim: Ints  # (tiles, 1)
    least: Ints
    most: Ints
    step: Ints
    scale: Ints  # (tiles, K/S)
    fractions: Any  # (tiles, 1)


def tile_codes(
    t: Domain, family: str, stream: int, seed: int, first: NDArray[np.uint64], m: int, n: int
) -> dict[str, Codes]:
    """a (tiles, M, K), b (tiles, K, N), c (tiles, M, N), scale_a (tiles, M, K/S) and scale_b (tiles, K/S, N) as uint64,
    of the tiles from the indices ``first`` on."""
    rule, reached = TILE_FAMILIES[family], under_scales(t)
    drawn = TileWords.drawn(t, stream, seed, first, m, n)
    words = halves(drawn.tile)
    target = rule.target(reached, words)
    profile = tile_profile(t, target, words, drawn)
    turn = first[:, None] // np.uint64(max(m, n)) + np.uint64(seed * ODD & philox.ALL)
    tile = Tiles(*reach(target, profile), profile.aim, turn, drawn.tile[3], m, n)
    rows = Halves(halves(drawn.row))
    aims = rule.row(reached, rows, tile)
    a, scale_a = row_codes(t, target, aims, rows, drawn, profile)
    given = rule.column(t, drawn.column, tile) if rule.column else np.uint64(0)
    b, column = column_codes(t, target, drawn.column, profile, given)
    found = {"a": a, "b": b}
    if t.c.present:
        found["c"] = addends(t, aims, drawn, profile, column)
    if t.space.groups:
        scale_b = np.where(column.stray, profile.scale[:, None, ::-1], profile.scale[:, None])
        found["scale_a"] = scale_codes(t, scale_a, drawn.row_scales, profile.fractions)
        found["scale_b"] = scale_codes(
            t, scale_b - column.drift[:, :, None], drawn.column_scales, profile.fractions
        ).swapaxes(1, 2)
    if rule.special:
        lay_specials(t, words, drawn, found)
    return found


def lane_bits(f: CodeLayout) -> int:
    """Bits of the random word that a fraction is cut from: 16 for items of up to two bytes, else those of the item."""
    return max(16, 8 * f.item)


def halves(words: list[Ints]) -> list[Ints]:
    """The two halves of each word, the lower first."""
    return [part for word in words for part in (word & 0xFFFF, word >> 16)]


def _draw(seed: int, stream: int, index: Any, purpose: int, number: Any) -> list[Ints]:
    words = philox.draw(seed, stream, index, purpose, number, philox.FEWER_ROUNDS)
    return [word.astype(np.int64) for word in words]


def _numbers(seed: int, stream: int, index: Any, purpose: int, count: int, bits: int, start: int = 0) -> Codes:
    """``count`` numbers of so many bits out of the blocks from ``start`` on, little-endian: (..., count)."""
    blocks = -(-count * bits // 128)
    words = philox.draw(seed, stream, index[..., None], purpose, np.arange(start, start + blocks), philox.FEWER_ROUNDS)
    data = np.stack(words, axis=-1).astype("<u4").reshape(*index.shape, 4 * blocks)
    return data.view(f"<u{bits // 8}")[..., :count].astype(np.uint64)


def tile_profile(t: Domain, target: TileTarget, words: list[Ints], drawn: TileWords) -> Profile:
    """b's exponents: one that reaches the tile's product exponent, in half of the lanes others near it that do, too."""
    (a_low, a_high), (b_low, b_high) = target.a, target.b
    wanted = target.high - pick16(words[0], target.high - target.low + 1)
    aim = np.clip(wanted, a_low + b_low, a_high + b_high)
    low, high = np.maximum(b_low, aim - a_high), np.minimum(b_high, aim - a_low)
    flat = low + pick16(words[1], high - low + 1)
    word, jitter = drawn.lanes.astype(np.int64), JITTER[words[2] & 1]
    beta = np.where(word & 32, flat, np.clip(flat + pick16(word, 2 * jitter + 1) - jitter, low, high))
    scale, own = np.zeros((len(beta), 0), np.int64), np.int64(0)
    if t.space.groups:
        scale, least = tile_scales(t, target.drift, beta, drawn.tile_scales)
        own = of_lanes(t, scale)
        beta = np.clip(beta - own, np.where(word & FEW_LOWEST, of_lanes(t, least), t.b.low), t.b.top) + own
    least, most = beta.min(axis=1, keepdims=True), beta.max(axis=1, keepdims=True)
    kind = (word >> 2) & 3 if target.subnormal else np.full(word.shape, 3)  # a, b, both are subnormal, or neither
    if target.subnormal:
        lowest = t.b.low + pick16(word, t.b.fraction) + own
        near = max(t.space.d_low, t.space.product_low) + pick16(word, t.space.d_fraction + 6)
        opposite = np.clip(np.where(word & 16, near, aim) - t.a.normal + 1, t.b.normal, t.b.top)
        opposite = beta if t.space.groups else opposite  # a's scale makes up for what a lacks
        beta = np.where(kind == 0, opposite, np.where(kind == 3, beta, lowest))
    bits = min(t.a.fraction // 2, 15)
    hollow = np.asarray(target.hollow) & ((word & 2) != 0)
    return Profile(
        beta, (word & 1) != 0, hollow, (kind == 0) | (kind == 2), aim, least, most, words[4] >> (16 - bits),
        scale, (words[3] & 3) == 0,
    )  # fmt: skip


def reach(target: TileTarget, profile: Profile) -> tuple[Ints, Ints, Ints]:
    """The product exponents that rows may ask for and all lanes reach: the lowest, the highest; and the highest of all
    that all lanes reach."""
    (a_low, a_high), (wanted, most) = target.a, target.rows or (target.low, target.high)
    low, top = np.maximum(profile.most + a_low, wanted), profile.least + a_high
    return low, np.maximum(low, np.minimum(top, most)), top


def masked(f: CodeLayout, pattern: Any, word: Codes, step: Ints, given: Any = 0) -> Codes:
    """The fraction field of a pattern from a random word of ``lane_bits``; grazing ones are ``step`` units from a power
    of two, GIVEN ones as told."""
    keep, fixed = (np.array(masks, np.uint64) for masks in fraction_masks(f.fraction))
    random = word >> np.uint64(lane_bits(f) - f.fraction)
    beside = np.where(pattern == GRAZE_A, (1 << f.fraction) - 2 * step, step).astype(np.uint64)
    grazing = beside & np.uint64((1 << f.fraction) - 1)
    found: Codes = np.where(np.asarray(pattern) >= GRAZE_A, grazing, (random & keep[pattern]) | fixed[pattern])
    return np.where(np.asarray(pattern) == GIVEN, given, found)


def widened(f: CodeLayout, word: Ints) -> Codes:
    """A random word of ``lane_bits`` out of one of 32 bits."""
    code = word.astype(np.uint64)
    bits = lane_bits(f)
    return code >> np.uint64(16) if bits == 16 else code if bits == 32 else code * np.uint64(WIDE_MIX)


def row_codes(
    t: Domain, target: TileTarget, aims: Rows, r: Halves, drawn: TileWords, profile: Profile
) -> tuple[Codes, Ints]:
    """Codes of a (tiles, M, K) and exponents of its scales (tiles, M, K/S).  Where b is zero, a is alive: half of it
    has the largest exponent, the rest any."""

    def each(value: Any) -> Any:
        return np.broadcast_to(value, r.r[0].shape)[:, :, None]

    lane, beta, words = np.arange(t.space.k), profile.beta[:, None], drawn.elements
    role = ((words & np.uint64(0xFFFF)).astype(np.int64) ^ each(r.r[6])) * ELEMENT_MIX & 0xFFFF
    alive = (role & 255) < each(aims.density)
    exponent = np.where(alive, each(aims.base) - pick16(role, each(aims.spread)), each(aims.dead))
    negative = np.where(each(aims.vary), (role >> 8) & 1, each(aims.negative)) != 0
    negative = negative ^ ((lane & 1) == each(aims.alternate))
    pattern, word, zero = each(aims.pattern), words, each(aims.zero) & ~alive
    shared = each(widened(t.a, drawn.row[2]))
    places = (aims.third, aims.second, aims.first)
    for place, own, sign, shape, common in zip(
        places, aims.exponents[::-1], aims.negatives[::-1], aims.patterns[::-1], (False, True, True), strict=True
    ):
        here = lane == each(place)
        exponent, negative = np.where(here, each(own), exponent), np.where(here, each(sign) != 0, negative)
        pattern, zero = np.where(here, each(shape), pattern), zero & ~here
        word = np.where(here & common, shared, word)
    dead = ~alive & ~np.any([lane == each(place) for place in places], axis=0) | (exponent < t.space.product_low)
    zero = zero | (lane == each(aims.dropped))
    hollow, here = (np.broadcast_to(part[:, None], role.shape) for part in (profile.hollow, profile.subnormal))
    here = here & target.subnormal
    largest = t.a.top - np.where(role & 0x200, 0, pick16(role, t.a.top - t.a.normal + 1))
    lowest, free = t.a.low + pick16(role, t.a.fraction), hollow | here
    exponent, scale, below, lost = exponent - beta, np.zeros(0, np.int64), np.int64(0), np.asarray(target.subnormal)
    if t.space.groups:
        scale = row_scales(
            t, exponent, zero | free, np.broadcast_to(each(aims.base) - beta, role.shape), drawn.row_scales
        )
        below, lost = of_lanes(t, scale), lost | drops(drawn.row_scales, ~dead)
    exponent = np.where(free, np.where(hollow, largest, lowest), exponent - below)
    zero |= lost & (exponent < t.a.low)  # what cannot be as small as the row wants is zero
    zero |= here & (exponent + below + beta > each(aims.base))
    fraction = masked(t.a, pattern, word, profile.step[:, None], each(aims.given))
    codes = encode(t.a, negative ^ profile.negative[:, None], exponent, fraction)
    return np.where(zero & ~hollow, with_sign(t.a, negative ^ profile.negative[:, None], 0), codes), scale


def column_codes(
    t: Domain, target: TileTarget, column: list[Ints], profile: Profile, given: Any
) -> tuple[Codes, Columns]:
    """Codes of b (tiles, K, N), and what columns are like.

    One column in 16 has the lanes in opposite order, so that rows meet what they do not aim at.
    """
    style = column[2]
    patterns = np.broadcast_to(target.columns, (len(style), 4))
    pattern = np.take_along_axis(patterns, style & 3, 1)
    drift = np.maximum(pick16(style >> 16, 2 * target.drift + 1) - target.drift, 0)
    turn = ((style >> 2) & 1 != 0) & target.turns
    fraction = masked(t.b, pattern, widened(t.b, column[1]), profile.step, given)
    stray = ((style >> 3) & 15 == 0)[:, None]
    beta, negative = (
        np.where(stray, part[:, ::-1, None], part[:, :, None])
        for part in (profile.beta - of_lanes(t, profile.scale), profile.negative)
    )
    negative = negative ^ turn[:, None]
    own = np.int64(0) if t.space.groups else drift[:, None]  # else it is the scale's
    codes = encode(t.b, negative, beta - own, fraction[:, None])
    codes = np.where(profile.hollow[:, :, None], with_sign(t.b, negative, 0), codes)
    return codes, Columns(drift, turn, stray.swapaxes(1, 2), fraction)


def addends(t: Domain, aims: Rows, drawn: TileWords, profile: Profile, column: Columns) -> Codes:
    """Codes of C (tiles, M, N): as the row aims, less the column's drift, turned as the column."""

    def each(value: Any) -> Any:
        return np.broadcast_to(value, drawn.row[0].shape)[:, :, None]

    word = mixed(each(drawn.row[3]) ^ drawn.column[0][:, None])
    drift, turn = column.drift[:, None], column.turn[:, None]
    negative = (np.where(each(aims.c_vary), (word >> 8) & 1, each(aims.c_negative)) != 0) ^ turn
    exponent = each(aims.c) - pick16(word, each(aims.c_spread)) - drift
    field = masked(t.c, each(aims.c_pattern), widened(t.c, word), profile.step[:, None], each(aims.c_given))
    plain = encode(t.c, negative, exponent, field)
    plain = np.where((word & 255) < each(aims.c_density), plain, with_sign(t.c, negative, 0))
    pattern = np.broadcast_to(aims.patterns[0], drawn.row[0].shape)
    own = masked(t.a, pattern, widened(t.a, drawn.row[2]), profile.step, aims.given)
    x, y = top_fraction(t.a, own), top_fraction(t.b, column.fraction)
    up: Any = np.uint64(0)
    if t.space.groups:
        x, up_x = times_scale(t, x, followed(t, drawn.row_scales, profile.fractions))
        y, up_y = times_scale(t, y, followed(t, drawn.column_scales, profile.fractions))
        up = up_x[:, :, None] + up_y[:, None]
    product = x[:, :, None] * y[:, None]  # of 31 or 32 bits
    carry = product >> np.uint64(31)
    product = (product << (np.uint64(1) - carry)) & np.uint64(0x7FFFFFFF)
    cut = product << np.uint64(t.c.fraction - 31) if t.c.fraction > 31 else product >> np.uint64(31 - t.c.fraction)
    at = each(aims.exponents[0]) - drift + (carry + up).astype(np.int64)
    moved = np.asarray(each(aims.delta), np.int64).astype(np.uint64) * np.uint64(1 << t.c.padding)
    opposite = encode(t.c, (each(aims.negatives[0]) == 0) ^ turn, at, cut) + moved
    return np.where(each(aims.mirror), opposite, plain)


def top_fraction(f: CodeLayout, fraction: Codes) -> Codes:
    """The significand of a fraction field, cut to 16 bits."""
    field = fraction >> np.uint64(f.fraction - 15) if f.fraction > 15 else fraction << np.uint64(15 - f.fraction)
    return field | np.uint64(1 << 15)


def mixed(word: Any) -> Any:
    """32 bits out of 32, each of which hangs on all."""
    word = word * RESULT_MIX[0] & 0xFFFFFFFF
    return (word ^ (word >> 15)) * RESULT_MIX[1] & 0xFFFFFFFF


IN_ROWS = np.array([1, 1, 0, 0, 0, 1, 1, 0]) != 0
"""Whether every row of a tile has a special a, by three bits of the tile."""
IN_COLUMNS = np.array([0, 0, 1, 1, 0, 1, 1, 0]) != 0
"""Whether every column has a special b, by the same bits."""
IN_ONE_LANE = np.array([0, 0, 0, 0, 0, 0, 1, 0]) != 0
"""Where all of them lie in one lane, by the same bits."""
MANY = np.array([0, 0, 0, 0, 0, 0, 0, 1]) != 0
"""Where a quarter of a and b are special instead, by the same bits."""
NO_NUMBERS = np.array([1, 0, 1, 0, 0, 1, 0, 0]) != 0
"""Where they are infinities and NaNs alone, by the same bits."""
C_DENSITY = np.array([0, 0, 0, 0, 192, 32, 32, 64])
"""Of 256 results so many have a special C, by the same bits."""


def lay_specials(t: Domain, words: list[Ints], drawn_words: TileWords, found: dict[str, Codes]) -> None:
    """Special values in place of codes of whole tiles."""
    mode, live, drawn, column = words[7] & 7, t.space.live, drawn_words.row, drawn_words.column
    common = pick16(words[6], live)
    both = (("a", drawn[1], drawn[2], IN_ROWS[mode]), ("b", column[3], column[1], IN_COLUMNS[mode]))
    for name, kinds, places, alive in both:
        f, kind, place = t.a if name == "a" else t.b, mixed(kinds), mixed(places)
        lane, at = np.arange(live), np.where(IN_ONE_LANE[mode], common, pick16(place >> 16, live))
        own = mixed(kind[:, :, None] ^ (lane * ELEMENT_MIX))
        many = MANY[mode][:, :, None]
        word = np.where(many, own, kind[:, :, None])
        here = np.where(many, (own >> 8) & 3 == 0, (lane == at[:, :, None]) & alive[:, :, None])
        only = NO_NUMBERS[mode][:, :, None] & ((word & 7) > 4)
        payload = mixed(word)
        code = special_code(f, np.where(only, word - 3, word) & 31, payload, payload)
        turned = found[name] if name == "a" else found[name].swapaxes(1, 2)
        placed = np.where(here, code, turned)
        found[name] = placed if name == "a" else placed.swapaxes(1, 2)
    if t.space.groups:
        lay_special_scales(t, drawn[1], column[3], found)
    if not t.c.present:
        return
    chosen = mixed(drawn[3][:, :, None] ^ column[0][:, None])
    word = mixed(chosen)
    only = NO_NUMBERS[mode][:, :, None] & ((word & 7) > 4)
    payload = mixed(word)
    code = special_code(t.c, np.where(only, word - 3, word) & 31, payload, payload)
    found["c"] = np.where((chosen >> 24) < C_DENSITY[mode][:, :, None], code, found["c"])


def lay_special_scales(t: Domain, rows: Ints, columns: Ints, found: dict[str, Codes]) -> None:
    """Special values in place of one scale of a row in 16, and of a column in 16."""
    for name, kinds in (("scale_a", rows), ("scale_b", columns)):
        word = mixed(kinds ^ SCALE_TURN)
        here = (np.arange(t.space.groups) == pick16(word >> 8, t.space.groups)[:, :, None]) & (word >> 28 == 0)[
            :, :, None
        ]
        payload = mixed(word)
        code = special_code(t.scale, word & 31, payload, payload)[:, :, None]
        turned = found[name] if name == "scale_a" else found[name].swapaxes(1, 2)
        placed = np.where(here, code, turned)
        found[name] = placed if name == "scale_a" else placed.swapaxes(1, 2)
