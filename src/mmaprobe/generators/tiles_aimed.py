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
from mmaprobe.generators.domain import GIVEN, GRAZE_A, Domain, Layout, fraction_masks
from mmaprobe.generators.families_circuit import ODD
from mmaprobe.generators.families_other import special_code
from mmaprobe.generators.families_tile import TILE_FAMILIES, Halves, Rows, Tiles, TileTarget
from mmaprobe.generators.operands import Codes, Ints, encode, pick16, with_sign

ELEMENT_MIX = 0x9E37
"""Odd, near 2**16 by the golden ratio (Knuth, TAOCP 3, 6.4): makes the roles of a row's lanes of their words."""
RESULT_MIX = (0x9E3779B1, 0x85EBCA77)
"""The first two primes of xxHash32: they mix a row's word and a column's to the word of one C."""
WIDE_MIX = 0x9E3779B97F4A7C15
"""Odd, 2**64 by the golden ratio (SplitMix64): spreads 32 bits to the 64 that a fraction of f64 needs."""
JITTER = np.array([3, 20])
"""How far b's exponents lie from one of them at most, by a bit of the tile; half of the lanes have that one."""


@dataclass
class Profile:
    """What belongs to a tile: exponents and signs of b's rows, which of them are zero, which meet subnormal a; the
    exponents of b that bound what all lanes reach, and of products that they were made for; grazing steps."""

    beta: Ints  # (tiles, K)
    negative: Any
    hollow: Any
    subnormal: Any
    aim: Ints  # (tiles, 1)
    least: Ints
    most: Ints
    step: Ints


def tile_codes(
    t: Domain, family: str, stream: int, seed: int, first: NDArray[np.uint64], m: int, n: int
) -> dict[str, Codes]:
    """a (tiles, M, K), b (tiles, K, N) and c (tiles, M, N) as uint64, of the tiles from the indices ``first`` on."""
    rule = TILE_FAMILIES[family]
    own = _draw(seed, stream, first[:, None], philox.TILE, 0)
    words = halves(own)
    target = rule.target(t, words)
    profile = tile_profile(t, target, words, _numbers(seed, stream, first[:, None], philox.TILE, t.space.k, 16, 1))
    index = first[:, None] + np.arange(m, dtype=np.uint64)
    drawn = _draw(seed, stream, index, philox.ROW, 0)
    rows = Halves(halves(drawn))
    turn = first[:, None] // np.uint64(max(m, n)) + np.uint64(seed * ODD & philox.ALL)
    tile = Tiles(*reach(target, profile), profile.aim, turn, own[3], m, n)
    aims = rule.row(t, rows, tile)
    column = _draw(seed, stream, first[:, None] + np.arange(n, dtype=np.uint64), philox.COLUMN, 0)
    a = row_codes(
        t, target, aims, rows, drawn, profile, _numbers(seed, stream, index, philox.ELEMENT, t.space.k, lane_bits(t.a))
    )
    given = rule.column(t, column, tile) if rule.column else np.uint64(0)
    b, drift, turned, fraction = column_codes(t, target, column, profile, given)
    found = {"a": a, "b": b}
    if t.c.present:
        found["c"] = addends(t, aims, drawn, column, profile, drift, turned, fraction)
    if rule.special:
        lay_specials(t, words, drawn, column, found)
    return found


def lane_bits(f: Layout) -> int:
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


def tile_profile(t: Domain, target: TileTarget, words: list[Ints], drawn: Codes) -> Profile:
    """b's exponents: one that reaches the tile's product exponent, in half of the lanes others near it that do, too."""
    (a_low, a_high), (b_low, b_high) = target.a, target.b
    wanted = target.high - pick16(words[0], target.high - target.low + 1)
    aim = np.clip(wanted, a_low + b_low, a_high + b_high)
    low, high = np.maximum(b_low, aim - a_high), np.minimum(b_high, aim - a_low)
    flat = low + pick16(words[1], high - low + 1)
    word, jitter = drawn[:, 0].astype(np.int64), JITTER[words[2] & 1]
    beta = np.where(word & 32, flat, np.clip(flat + pick16(word, 2 * jitter + 1) - jitter, low, high))
    least, most = beta.min(axis=1, keepdims=True), beta.max(axis=1, keepdims=True)
    kind = (word >> 2) & 3 if target.subnormal else np.full(word.shape, 3)  # a, b, both are subnormal, or neither
    if target.subnormal:
        lowest = t.b.low + pick16(word, t.b.fraction)
        near = max(t.space.d_low, t.space.product_low) + pick16(word, t.space.d_fraction + 6)
        opposite = np.clip(np.where(word & 16, near, aim) - t.a.normal + 1, t.b.normal, t.b.top)
        beta = np.where(kind == 0, opposite, np.where(kind == 3, beta, lowest))
    bits = min(t.a.fraction // 2, 15)
    hollow = np.asarray(target.hollow) & ((word & 2) != 0)
    return Profile(beta, (word & 1) != 0, hollow, (kind == 0) | (kind == 2), aim, least, most, words[4] >> (16 - bits))


def reach(target: TileTarget, profile: Profile) -> tuple[Ints, Ints, Ints]:
    """The product exponents that rows may ask for and all lanes reach: the lowest, the highest; and the highest of all
    that all lanes reach."""
    (a_low, a_high), (wanted, most) = target.a, target.rows or (target.low, target.high)
    low, top = np.maximum(profile.most + a_low, wanted), profile.least + a_high
    return low, np.maximum(low, np.minimum(top, most)), top


def masked(f: Layout, pattern: Any, word: Codes, step: Ints, given: Any = 0) -> Codes:
    """The fraction field of a pattern from a random word of ``lane_bits``; grazing ones are ``step`` units from a power
    of two, GIVEN ones as told."""
    keep, fixed = (np.array(masks, np.uint64) for masks in fraction_masks(f.fraction))
    random = word >> np.uint64(lane_bits(f) - f.fraction)
    beside = np.where(pattern == GRAZE_A, (1 << f.fraction) - 2 * step, step).astype(np.uint64)
    grazing = beside & np.uint64((1 << f.fraction) - 1)
    found: Codes = np.where(np.asarray(pattern) >= GRAZE_A, grazing, (random & keep[pattern]) | fixed[pattern])
    return np.where(np.asarray(pattern) == GIVEN, given, found)


def widened(f: Layout, word: Ints) -> Codes:
    """A random word of ``lane_bits`` out of one of 32 bits."""
    code = word.astype(np.uint64)
    bits = lane_bits(f)
    return code >> np.uint64(16) if bits == 16 else code if bits == 32 else code * np.uint64(WIDE_MIX)


def row_codes(
    t: Domain, target: TileTarget, aims: Rows, r: Halves, drawn: list[Ints], profile: Profile, words: Codes
) -> Codes:
    """Codes of a (tiles, M, K).  Where b is zero, a is alive: half of it has the largest exponent, the rest any."""

    def each(value: Any) -> Any:
        return np.broadcast_to(value, r.r[0].shape)[:, :, None]

    lane, beta = np.arange(t.space.k), profile.beta[:, None]
    role = ((words & np.uint64(0xFFFF)).astype(np.int64) ^ each(r.r[6])) * ELEMENT_MIX & 0xFFFF
    alive = (role & 255) < each(aims.density)
    exponent = np.where(alive, each(aims.base) - pick16(role, each(aims.spread)), each(aims.dead))
    negative = np.where(each(aims.vary), (role >> 8) & 1, each(aims.negative)) != 0
    negative = negative ^ ((lane & 1) == each(aims.alternate))
    pattern, word, zero = each(aims.pattern), words, each(aims.zero) & ~alive
    shared = each(widened(t.a, drawn[2]))
    places = (aims.third, aims.second, aims.first)
    for place, own, sign, shape, common in zip(
        places, aims.exponents[::-1], aims.negatives[::-1], aims.patterns[::-1], (False, True, True), strict=True
    ):
        here = lane == each(place)
        exponent, negative = np.where(here, each(own), exponent), np.where(here, each(sign) != 0, negative)
        pattern, zero = np.where(here, each(shape), pattern), zero & ~here
        word = np.where(here & common, shared, word)
    zero = zero | (lane == each(aims.dropped))
    hollow = np.broadcast_to(profile.hollow[:, None], role.shape)
    largest = t.a.top - np.where(role & 0x200, 0, pick16(role, t.a.top - t.a.normal + 1))
    exponent = np.where(hollow, largest, exponent - beta)
    if target.subnormal:  # what cannot be as small as the row wants is zero
        lowest, here = t.a.low + pick16(role, t.a.fraction), np.broadcast_to(profile.subnormal[:, None], role.shape)
        exponent = np.where(here, lowest, exponent)
        zero |= (exponent < t.a.low) | (here & (exponent + beta > each(aims.base)))
    fraction = masked(t.a, pattern, word, profile.step[:, None], each(aims.given))
    codes = encode(t.a, negative ^ profile.negative[:, None], exponent, fraction)
    return np.where(zero & ~hollow, with_sign(t.a, negative ^ profile.negative[:, None], 0), codes)


def column_codes(
    t: Domain, target: TileTarget, column: list[Ints], profile: Profile, given: Any
) -> tuple[Codes, Ints, Any, Codes]:
    """Codes of b (tiles, K, N), and of each column the drift, whether it turns signs, and the fraction field.

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
        np.where(stray, part[:, ::-1, None], part[:, :, None]) for part in (profile.beta, profile.negative)
    )
    negative = negative ^ turn[:, None]
    codes = encode(t.b, negative, beta - drift[:, None], fraction[:, None])
    return np.where(profile.hollow[:, :, None], with_sign(t.b, negative, 0), codes), drift, turn, fraction


def addends(
    t: Domain,
    aims: Rows,
    drawn: list[Ints],
    column: list[Ints],
    profile: Profile,
    drift: Ints,
    turn: Any,
    fraction: Codes,
) -> Codes:
    """Codes of C (tiles, M, N): as the row aims, less the column's drift, turned as the column."""

    def each(value: Any) -> Any:
        return np.broadcast_to(value, drawn[0].shape)[:, :, None]

    word = mixed(each(drawn[3]) ^ column[0][:, None])
    drift, turn = drift[:, None], turn[:, None]
    negative = (np.where(each(aims.c_vary), (word >> 8) & 1, each(aims.c_negative)) != 0) ^ turn
    exponent = each(aims.c) - pick16(word, each(aims.c_spread)) - drift
    field = masked(t.c, each(aims.c_pattern), widened(t.c, word), profile.step[:, None], each(aims.c_given))
    plain = encode(t.c, negative, exponent, field)
    plain = np.where((word & 255) < each(aims.c_density), plain, with_sign(t.c, negative, 0))
    pattern = np.broadcast_to(aims.patterns[0], drawn[0].shape)
    own = masked(t.a, pattern, widened(t.a, drawn[2]), profile.step, aims.given)
    x, y = (top_fraction(f, part) for f, part in ((t.a, own[:, :, None]), (t.b, fraction[:, None])))
    product = x * y  # of 31 or 32 bits
    carry = product >> np.uint64(31)
    product = (product << (np.uint64(1) - carry)) & np.uint64(0x7FFFFFFF)
    cut = product << np.uint64(t.c.fraction - 31) if t.c.fraction > 31 else product >> np.uint64(31 - t.c.fraction)
    at = each(aims.exponents[0]) - drift + carry.astype(np.int64)
    moved = np.asarray(each(aims.delta), np.int64).astype(np.uint64) * np.uint64(1 << t.c.padding)
    opposite = encode(t.c, (each(aims.negatives[0]) == 0) ^ turn, at, cut) + moved
    return np.where(each(aims.mirror), opposite, plain)


def top_fraction(f: Layout, fraction: Codes) -> Codes:
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


def lay_specials(t: Domain, words: list[Ints], drawn: list[Ints], column: list[Ints], found: dict[str, Codes]) -> None:
    """Special values in place of codes of whole tiles."""
    mode, live = words[7] & 7, t.space.live
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
    if not t.c.present:
        return
    chosen = mixed(drawn[3][:, :, None] ^ column[0][:, None])
    word = mixed(chosen)
    only = NO_NUMBERS[mode][:, :, None] & ((word & 7) > 4)
    payload = mixed(word)
    code = special_code(t.c, np.where(only, word - 3, word) & 31, payload, payload)
    found["c"] = np.where((chosen >> 24) < C_DENSITY[mode][:, :, None], code, found["c"])
