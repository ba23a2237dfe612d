"""What whole tiles aim at: rows aim, columns are flat.  The reference; ``csrc/cpu/generators/row_aims.hpp`` repeats it.

A tile is built from exponents of products.  ``beta(k)`` belongs to the tile, ``drift(j)`` to the column, E(i, k) to the
row:

    |b(k, j)| = 2**(beta(k) - drift(j)) * (1 + f(j))        |a(i, k)| = 2**(E(i, k) - beta(k)) * (1 + g(i, k))

so that the product's exponent is E(i, k) - drift(j) in every column, and C follows the column: what row i aims at
(two products that cancel, a tie, a sum at the lowest place) holds in all of its results.  Each row aims on its own.

A family is two functions: ``target`` says where the products of a tile lie and what its columns are like, ``row`` what
each row aims at.  Arrays are (tiles, 1) and (tiles, rows); words are halves of 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mmaprobe.generators.domain import FULL, GIVEN, GRAZE_A, GRAZE_B, LOWBIT, ONES, POW2, TOP2, UPPER, Domain
from mmaprobe.generators.families_circuit import COUNTED, circuit_fraction
from mmaprobe.generators.operands import Codes, Ints, pick16

DENSITY = np.array([32, 64, 192, 256])
"""Of 256 lanes so many are alive, by two bits of the row."""
BIG = np.array([POW2, FULL, ONES, LOWBIT])
ANCHORS = np.array([POW2, POW2, FULL, TOP2])
PAIRS_ALONE = np.array([POW2, FULL, FULL, FULL])
FILLERS = np.array([POW2, FULL, FULL, TOP2])
TOPS = np.array([ONES, FULL, POW2, TOP2])
ALONE = np.array([FULL, POW2, ONES, LOWBIT])
DELTA = np.array([0, 0, 0, 0, 0, 0, 1, -1])
"""Last places by which a C that mirrors a product is beside it."""
MORE_OF_GROUPS = 11
"""Binades that sums of scaled groups keep more than others: 35 below their largest term, not about 24; and as many
their lowest label, -139, lies lower (``Datapath`` of mxf4 and mxf4nvf4).  Some rows aim there, of units with scales."""
NARROW = 40
"""Products that span fewer binades span little: terms far below others need the lowest of them."""
NONE = -1
"""No lane."""
NO_FRACTION = np.uint64(0)
"""The fraction field of a power of two, as codes are."""
EVERY_FRACTION = 52
"""Fraction bits of the widest format, f64."""
SIXTEEN_BITS = 15
"""Fraction bits of significands whose products C can mirror exactly: ``tiles_aimed.addends`` cuts them to 16 bits."""


@dataclass
class TileTarget:
    """Where a tile's products lie: exponents ``low`` to ``high``; the exponents that a and b may have for that; four
    patterns of the columns' fractions; the most drift; which m rows may ask for (where not the same); whether columns
    turn signs, some b are zero, and lanes have a, b or both subnormal."""

    low: Any
    high: Any
    a: tuple[Any, Any]
    b: tuple[Any, Any]
    columns: Any
    drift: int = 0
    rows: tuple[Any, Any] | None = None
    turns: bool = True
    hollow: Any = False
    subnormal: bool = False


@dataclass
class Tiles:
    """A tile as its rows see it: the product exponents that rows may ask for and all lanes reach, the highest that all
    lanes reach, and the tile's own; its number in the counting of pairs, 32 random bits of it, and its rows and
    columns."""

    low: Ints
    high: Ints
    top: Ints
    aim: Ints
    turn: Codes
    word: Ints
    m: int
    n: int

    def counts(self, t: Domain) -> Any:
        """Whether the tile's pairs of significands are those whose turn it is: one tile in four, where they are few."""
        return ((self.turn & np.uint64(3)) == 1) & (t.a.fraction + t.b.fraction <= COUNTED)


@dataclass
class Rows:
    """Aims of rows.  Lanes ``first`` and ``second`` share a fraction word, ``third`` has its own, other lanes lie
    ``spread`` below ``base``, ``density`` of 256 of them; the rest is zero or has the exponent ``dead``.  ``given``:
    the fraction field of the pattern GIVEN; lanes of the parity ``alternate`` have the other sign; lane ``dropped`` is
    zero.

    C: minus the product of ``first`` where ``mirror``, ``delta`` last places beside it; else as far below ``c`` as
    ``c_spread`` says, in ``c_density`` of 256 results.  ``vary``: signs differ by lane; else they are ``negative``.
    """

    first: Any = NONE
    second: Any = NONE
    third: Any = NONE
    exponents: tuple[Any, Any, Any] = (0, 0, 0)
    negatives: tuple[Any, Any, Any] = (0, 0, 0)
    patterns: tuple[Any, Any, Any] = (POW2, POW2, POW2)
    base: Any = 0
    spread: Any = 1
    density: Any = 0
    pattern: Any = FULL
    vary: Any = 1
    negative: Any = 0
    zero: Any = True
    dead: Any = 0
    given: Any = NO_FRACTION
    alternate: Any = NONE
    dropped: Any = NONE
    mirror: Any = False
    delta: Any = 0
    c: Any = 0
    c_spread: Any = 1
    c_density: Any = 256
    c_pattern: Any = POW2
    c_vary: Any = 0
    c_negative: Any = 0
    c_given: Any = NO_FRACTION


@dataclass
class Halves:
    """Words of the rows, 16 bits each; ``r`` 0 and 7 are styles, 2 to 4 lanes, 1 and 7 exponents."""

    r: list[Ints] = field(default_factory=list)

    def bit(self, place: int) -> Any:
        """A bit of the style."""
        return (self.r[0] >> place) & 1

    def two(self, place: int) -> Any:
        """Two bits of the style."""
        return (self.r[0] >> place) & 3

    def late(self, place: int, count: int = 1) -> Any:
        """Bits of the second style."""
        return (self.r[7] >> place) & ((1 << count) - 1)

    def lanes(self, count: int) -> tuple[Any, Any, Any]:
        """Three lanes below ``count``; neighbours differ where there are enough."""
        i = pick16(self.r[2], count)
        j = after(i, self.r[3], count)
        return i, j, after(j, self.r[4], count)

    def anchor(self, t: Domain, tile: Tiles) -> Any:
        """The exponent of the largest term: anywhere that all lanes reach, or (an eighth) within 8 of its top, or (an
        eighth) as near as can be to the lowest normal result, so that what is left is subnormal."""
        kind, count = self.r[1] & 7, tile.high - tile.low + 1
        low = np.clip(t.space.d_normal + pick16(self.r[1], 6), tile.low, tile.high)
        high = tile.high - pick16(self.r[1], np.where(kind == 1, np.minimum(count, 8), count))
        return np.where(kind == 0, low, high)


def after(lane: Any, word: Any, count: int) -> Any:
    """Another lane."""
    found = lane + 1 + pick16(word, count - 1)
    return found - np.where(found >= count, count, 0)


def normals(t: Domain) -> dict[str, Any]:
    """Exponents of normal operands; b keeps room for the most drift."""
    return {"a": (t.a.normal, t.a.top), "b": (t.b.normal + most_drift(t), t.b.top)}


def most_drift(t: Domain) -> int:
    """How far columns lie apart at most: a quarter of what b spans, or 3."""
    return min(3, (t.b.top - t.b.normal) // 4)


def anything(t: Domain) -> dict[str, Any]:
    """Every exponent of finite operands."""
    return {"a": (t.a.low, t.a.top), "b": (t.b.low, t.b.top)}


def near(t: Domain, low: Any, high: Any) -> dict[str, Any]:
    """The operands' exponents for products of these exponents: subnormal ones only where no others reach them."""
    deep = np.asarray(low) < t.a.normal + t.b.normal
    return {
        "low": low, "high": high,
        "a": (np.where(deep, t.a.low, t.a.normal), t.a.top), "b": (np.where(deep, t.b.low, t.b.normal), t.b.top),
    }  # fmt: skip


def at_anchor(t: Domain, columns: Any) -> TileTarget:
    """Products where sums are ordinary: in the upper third where products span little, so that there is room below."""
    s = t.space
    low = s.anchor_low if s.product_top - s.product_low >= NARROW else s.anchor_top - (s.anchor_top - s.anchor_low) // 3
    rows = (s.anchor_low, s.anchor_top)
    return TileTarget(low, s.anchor_top, columns=columns, drift=most_drift(t), rows=rows, **normals(t))


def cancel_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products where sums are ordinary."""
    return at_anchor(t, FILLERS)


def cancel(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """Two equal terms of opposite sign (lanes, or a lane and C); others below: anywhere, or around one distance."""
    live, m = t.space.live, r.anchor(t, tile)
    count = live + t.c.present
    i, j, _ = r.lanes(count)
    distance, kind = pick16(r.r[7], 45), r.two(0)
    last = t.space.d_fraction - 1 + MORE_OF_GROUPS * (r.late(4) & (t.space.groups > 0))
    offset = np.choose(kind, [0 * m, distance - 2, distance, last + 0 * m])
    spread = np.array([43, 5, 1, 5])[kind]
    pair = (PAIRS_ALONE if count == 2 else ANCHORS)[r.two(5)]
    upper = np.where((pair == FULL) & (r.bit(14) != 0), UPPER, pair)  # equal in the upper half only
    sign, fillers, density = r.bit(8), FILLERS[r.two(9)], DENSITY[r.two(3)]
    base, vary, negative = m - offset, 1 - r.bit(2), r.bit(15)
    return Rows(
        np.where(i == live, j, i), np.where((i == live) | (j == live), NONE, j),
        exponents=(m, m, m), negatives=(np.where(i == live, 1 - sign, sign), 1 - sign, 0),
        patterns=(np.where(i == live, upper, pair), upper, POW2),
        base=base, spread=spread, density=density, pattern=fillers, vary=vary, negative=negative,
        zero=r.bit(7) == 0, dead=t.space.product_low, mirror=(i == live) | (j == live), delta=DELTA[(r.r[0] >> 11) & 7],
        c=base, c_spread=spread, c_density=density, c_pattern=fillers, c_vary=vary, c_negative=negative,
    )  # fmt: skip


def ulp_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products where sums are ordinary."""
    return at_anchor(t, np.array([POW2, POW2, FULL, ONES]))


def ulp(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """One big term (C or a lane); the others near its last place, or around one distance below it."""
    s, anchor = t.space, r.anchor(t, tile)
    c_big = r.bit(0) & t.c.present
    last = s.d_fraction + 1 + MORE_OF_GROUPS * (r.late(4) & (s.groups > 0))
    distance = np.where(r.bit(1), last, 1 + pick16(r.r[7], 44))
    m = np.where(c_big & r.bit(2), np.minimum(anchor + distance, s.c_top), anchor)
    large, fine = BIG[r.two(8)], np.where(r.bit(11), FULL, POW2)
    density, vary, sign = DENSITY[r.two(3)], 1 - r.bit(5), r.bit(7)
    base = m - distance + 2
    return Rows(
        np.where(c_big, NONE, pick16(r.r[2], s.live)), exponents=(m, m, m), negatives=(sign, sign, sign),
        patterns=(large, large, large), base=base, spread=5, density=density, pattern=fine, vary=vary,
        negative=r.bit(6), c=np.where(c_big, m, base), c_spread=np.where(c_big, 1, 5),
        c_density=np.where(c_big, 256, density), c_pattern=np.where(c_big, large, fine),
        c_vary=np.where(c_big, 0, vary), c_negative=np.where(c_big, sign, r.bit(6)),
    )  # fmt: skip


def tie_range(t: Domain) -> tuple[int, int]:
    """Exponents of a product that is half a last place of some C."""
    s = t.space
    low, high = max(s.product_low, s.d_low - 1), min(s.product_top, s.c_top - s.d_fraction - 1)
    return low, max(low, high)


def tie_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products where sums are ordinary and everywhere below, for halves."""
    low, _ = tie_range(t)
    a, b = (t.a.low, t.a.top), normals(t)["b"]
    low, high = min(low, t.space.anchor_low), t.space.anchor_top
    return TileTarget(low, high, a, b, np.array([POW2] * 4), most_drift(t), (low, high))


def tie(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """A sum half way between two results (one half, or two quarters), and a sticky term far below, or none.

    The big term has no more bits than the result.  Where C is big the half is any product that all lanes reach, and C
    follows: also where products span little.
    """
    s, (low, high) = t.space, tie_range(t)
    i, j, third = r.lanes(s.live)
    narrow = s.product_top - s.d_fraction - 1 < s.product_low or s.live == 1 or s.groups == 1
    in_blocks = r.late(3) & (s.groups > 0)  # a half of a block's largest term is out of its reach
    bottom = np.clip(tile.low, low, high)
    reach = np.clip(tile.high, low, high) - bottom + 1
    c_big = ((r.two(0) != 0) | narrow | (in_blocks != 0)) & (t.c.present != 0)
    room = np.where(r.late(0, 3) == 0, np.minimum(reach, 3), reach)
    half_c, lane_m = bottom + pick16(r.r[1], room), np.clip(r.anchor(t, tile), s.anchor_low, s.anchor_top)
    lane_m = np.maximum(lane_m, np.minimum(tile.high, tile.low + s.d_fraction + 3))  # the half is in reach, too
    half = np.where(c_big, half_c, np.maximum(lane_m, s.d_normal) - s.d_fraction - 1)
    m = np.where(c_big, half_c + 1 + s.d_fraction, lane_m)
    m = np.where(c_big & (half_c < s.d_low), s.d_low + pick16(r.r[4], s.d_fraction + 1), m)
    quarters = r.bit(7) & (s.live + c_big >= 3)
    sticky = half - 1 - pick16(r.r[7], np.where(r.bit(8), 34, 8))
    own = np.where(r.two(9) != 0, POW2, np.where(r.bit(11), LOWBIT, ONES))
    other = np.where((quarters | r.bit(15)) != 0, np.where(c_big, j, third), NONE)
    return Rows(
        np.where(c_big, NONE, i), np.where(c_big, i, j), other,
        exponents=(m, half - quarters - (own == ONES), np.where(quarters, half - 1, sticky)),
        negatives=(r.bit(14), r.bit(12), np.where(quarters, r.bit(12), r.bit(13))),
        patterns=(UPPER if t.a.fraction > s.d_fraction else FULL, own, POW2),
        c=np.where(c_big, m, sticky), c_density=np.where(c_big, 256, 64), c_negative=r.bit(14),
        c_pattern=np.where(c_big, FULL if t.c.fraction <= s.d_fraction else UPPER, POW2),
    )  # fmt: skip


def zlad_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products at the lowest place of the result; in a tile of eight some b are zero beside partners of every size."""
    s = t.space
    return TileTarget(
        columns=np.array([POW2, POW2, POW2, FULL]), rows=(s.anchor_low, s.anchor_top), hollow=words[5] & 7 == 0,
        **near(t, s.d_low - 1, s.d_low + 1),
    )  # fmt: skip


def zlad(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """Zero-exponent ladders: results at the last place, one lane far below, all else zero (or tiny); or few ordinary
    terms among zeros."""
    s = t.space
    i, j, third = r.lanes(s.live)
    plain = r.two(0) == 0
    m, last = r.anchor(t, tile), s.d_low - 1 + pick16(r.r[1], 3)
    guess = s.d_normal - 26 - pick16(r.r[7], 10) - 2 * MORE_OF_GROUPS * (r.late(4) & (s.groups > 0))
    rung = np.where(r.bit(3), guess, s.d_normal - pick16(r.r[7], 64))
    low = s.d_low + pick16(r.r[4], 3)
    pattern = np.where(plain, FULL, POW2)
    return Rows(
        np.where(plain, NONE, i), np.where(plain | (r.bit(2) == 0), NONE, j),
        np.where(plain | (third == i), NONE, third),
        exponents=(last, s.d_low - 1 + pick16(r.r[7] << 3, 3), rung), negatives=(r.bit(5), r.bit(6), r.bit(7)),
        base=m, spread=30, density=np.where(plain, 32, 0), pattern=pattern,
        zero=plain | (r.bit(4) == 0), dead=s.product_low,
        c=np.where(plain, m, low), c_spread=np.where(plain, 30, 1), c_density=64, c_pattern=pattern, c_vary=1,
    )  # fmt: skip


def tiny_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products near the lowest results."""
    s = t.space
    return TileTarget(columns=np.array([POW2, POW2, FULL, GRAZE_B]), **near(t, s.d_low - 3, s.d_low + s.d_fraction + 2))


def tiny(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """One to three lanes near the lowest result, C near it or zero; a quarter straddles the lowest normal result: it,
    or the largest subnormal, in C or the second lane, and a lane less than one unit beside it, or one product alone
    that grazes it."""
    s = t.space
    i, j, third = r.lanes(s.live)
    edge = (r.two(4) == 0) & (s.live + t.c.present >= 2)
    graze = edge & (r.two(11) == 0)
    pattern = np.where(r.bit(3), FULL, POW2)
    lowest, below = s.d_low - 1 - pick16(r.r[7], 3), r.bit(8)
    near_low = [s.d_low - 2 + pick16(word, s.d_fraction + 5) for word in (r.r[1], r.r[7], r.r[1] ^ r.r[7])]
    beside = np.where(edge, NONE, np.where(r.bit(0), j, NONE))
    if not t.c.present:
        beside = np.where(edge & ~graze, j, beside)
    sign = r.bit(6)
    return Rows(
        i, beside, np.where(edge | (r.bit(1) == 0), NONE, third),
        exponents=(np.where(edge, np.where(graze, s.d_normal - 1, lowest), near_low[0]),
                   np.where(edge, s.d_normal, near_low[1]), near_low[2]),
        negatives=(sign ^ r.bit(7), np.where(edge, sign, r.bit(9)), r.bit(10)),
        patterns=(np.where(graze, GRAZE_A, pattern), pattern, pattern),
        zero=edge | (r.bit(2) == 0), dead=s.product_low,
        c=np.where(edge, s.d_normal - below, s.d_low + s.d_fraction + 3),
        c_spread=np.where(edge, 1, s.d_fraction + 4), c_density=np.where(graze, 0, np.where(edge, 256, 192)),
        c_pattern=np.where(edge, np.where(below, ONES, POW2), pattern),
        c_vary=np.where(edge, 0, 1), c_negative=sign,
    )  # fmt: skip


def subnormals_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Ordinary products; of each lane a, b or both are subnormal, or neither need be."""
    s = t.space
    return TileTarget(
        s.anchor_low, s.anchor_top, (t.a.normal, t.a.top), (t.b.normal, t.b.top), np.array([FULL] * 4),
        rows=(s.product_low, s.anchor_top), subnormal=True,
    )  # fmt: skip


def subnormals(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """Subnormal a, b or both, product sizes around one target, half of them near the lowest results; C subnormal, zero
    or near."""
    s, kind = t.space, r.two(6)
    lowest = (kind == 0) | (kind == 3)
    anywhere = np.where(r.late(0), tile.aim, s.anchor_top - pick16(r.r[1], s.anchor_top - s.anchor_low + 1))
    m = np.where(r.bit(0), max(s.d_low, s.product_low) + pick16(r.r[1], s.d_fraction + 6), anywhere)
    return Rows(
        base=m, spread=np.where(r.bit(1), 12, 1), density=np.where(r.bit(2), 192, 256),
        c=np.where(lowest, t.c.low + max(t.c.fraction, 1) - 1, m),
        c_spread=np.where(lowest, max(t.c.fraction, 1), 12), c_density=np.where(kind == 1, 0, 256),
        c_pattern=FULL, c_vary=1,
    )  # fmt: skip


def extremes_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products within 3 of the top: of what products reach, or of what results hold."""
    s = t.space
    top = np.where(words[5] & 1, s.product_top, min(s.product_top, s.d_top + 1))
    return TileTarget(top - 2, top, columns=np.array([ONES, FULL, POW2, GRAZE_B]), **anything(t))


def extremes(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """Terms within 3 of the top, C too; exact cancellation of the largest products; overflow on the way."""
    s = t.space
    i, j, _ = r.lanes(s.live)
    top = np.minimum(np.where(r.bit(0), s.product_top, min(s.product_top, s.d_top + 1)), tile.top)
    m, sign, vary = top - pick16(r.r[1], 3), r.bit(5), 1 - r.bit(4)
    pair, fillers = np.where(r.two(14) == 0, GRAZE_A, TOPS[r.two(6)]), TOPS[r.two(10)]
    return Rows(
        i, np.where(r.bit(1), j, NONE), exponents=(m, m, m), negatives=(sign, 1 - sign, 0),
        patterns=(pair, pair, POW2), base=top, spread=np.where(r.bit(8), 1, 4), density=DENSITY[r.two(2)],
        pattern=fillers, vary=vary, negative=sign, zero=r.bit(9) != 0, dead=top - 20 - pick16(r.r[4], 20),
        mirror=(r.late(0, 2) == 0) & (t.c.present != 0), c=t.c.top, c_spread=4, c_density=192,
        c_pattern=TOPS[r.two(12)], c_vary=1,
    )  # fmt: skip


def conly_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products of nothing: a is zero, or in half of the tiles some b, beside partners of every size."""
    return TileTarget(
        t.space.product_low, t.space.product_top, columns=FILLERS, hollow=words[5] & 1 != 0, **anything(t)
    )


def conly(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """All products zero; C subnormal, at the top, near the result's lowest, zero, or anything."""
    s, c, kind = t.space, t.c, (r.r[0] >> 4) & 7
    fraction, every = max(c.fraction, 1), c.top - c.low + 1
    in_result = s.d_low - 2 + s.d_fraction + 5
    result_top = min(s.d_top + 1, c.top)
    highest = [c.low + fraction - 1] * 2 + [c.normal, c.top, c.top, c.top, min(in_result, c.top), result_top]
    spreads = [fraction, fraction, 1, 4, every, every, s.d_fraction + 6, 2]
    return Rows(
        vary=1 - r.bit(0), negative=r.bit(1), c=np.array(highest)[kind], c_spread=np.array(spreads)[kind],
        c_density=np.where(kind == 5, 0, 256), c_pattern=ALONE[r.two(8)], c_vary=1,
    )  # fmt: skip


def zeros_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Zeros beside partners of every size, in half of the tiles beside the smallest ones."""
    s = t.space
    small = words[5] & 1 != 0
    return TileTarget(
        s.product_low, np.where(small, s.product_low + 4, s.product_top),
        (t.a.low, np.where(small, t.a.low + 2, t.a.top)), (t.b.low, np.where(small, t.b.low + 2, t.b.top)),
        np.array([POW2] * 4), turns=False, hollow=words[5] & 2 != 0,
    )  # fmt: skip


def zeros(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """Signed zeros: all products -0 (40 %) or mixed, sometimes the smallest product beside them; C zero or lowest."""
    s = t.space
    all_negative = pick16(r.r[1], 10) < 4
    under = np.where(r.two(0) == 0, pick16(r.r[2], s.live), NONE)
    least = s.product_low + pick16(r.r[7], 5)
    return Rows(
        under, exponents=(least, least, least), negatives=(all_negative | (r.bit(3) != 0), 0, 0),
        vary=~all_negative, negative=all_negative, pattern=POW2,
        c=t.c.low, c_density=64, c_vary=1 - r.bit(2), c_negative=all_negative,
    )  # fmt: skip


def specials_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products where sums are ordinary."""
    return at_anchor(t, np.array([FULL] * 4))


def specials(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """All exponents within a random width (0 to 45) below an anchor; special values are laid over (``tiles_aimed``)."""
    m, width = r.anchor(t, tile), (pick16(r.r[7], 46) >> r.two(0)) + 1
    return Rows(
        base=m, spread=width, density=np.where(r.bit(2), 248, 256), c=m, c_spread=width, c_density=240, c_pattern=FULL,
        c_vary=1,
    )  # fmt: skip


def multiplier_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Products where sums are ordinary, of significands that columns give."""
    return at_anchor(t, np.array([GIVEN] * 4))


def multiplier(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """Significands that a multiplier may get wrong (``families_circuit.multiplier``): a's of the row, b's of the
    column, or in one tile of four all pairs in turn.  Half of the rows have them in all lanes, signs by turns; a
    quarter in one, with C zero or far below; a quarter in one, with C the opposite of the product."""
    s, live, fa = t.space, t.space.live, t.a.fraction
    counted, tc = tile.counts(t), tile.turn >> np.uint64(2)
    mode = np.where(counted, 0, r.two(0))
    word = r.r[4] | r.r[5] << 16
    place = pick16(r.r[7], fa + 1)
    x = circuit_fraction(fa, np.minimum((r.r[0] >> 2) & 7, 6), place, word.astype(np.uint64) >> np.uint64(32 - fa))
    x = np.where(((r.r[0] >> 2) & 7) == 7, tile.word.astype(np.uint64) >> np.uint64(32 - fa), x)
    turn: Any = tc * np.uint64(tile.m) + np.arange(tile.m, dtype=np.uint64)
    x = np.where(counted, turn & np.uint64((1 << fa) - 1), x)
    together, even = mode < 2, live % 2 == 0
    opposite = (t.c.is_float != 0) & ((mode == 3) | (together & (s.d_fraction < fa + t.b.fraction + 2)))
    dropped = np.where(opposite & together & even, np.where(r.bit(8), 0, live - 1), NONE)
    unpaired = np.where((dropped == NONE) & even, live - 1, NONE)
    m, sign = r.anchor(t, tile), r.bit(5)
    return Rows(
        np.where(together, unpaired, pick16(r.r[2], live)), exponents=(m, m, m), negatives=(sign, sign, sign),
        patterns=(GIVEN, GIVEN, GIVEN), base=m, density=np.where(together, 256, 0), pattern=GIVEN, vary=0,
        negative=sign, given=x, alternate=np.where(together, np.where(dropped == 0, 0, 1), NONE), dropped=dropped,
        mirror=opposite, c=t.c.low, c_density=np.where((mode == 2) & (r.bit(6) != 0), 256, 0), c_negative=r.bit(7),
    )  # fmt: skip


def multiplier_columns(t: Domain, column: list[Ints], tile: Tiles) -> Codes:
    """b's significands, as the rows' are chosen."""
    fb, number = t.b.fraction, np.arange(tile.n, dtype=np.uint64)
    kind, place, shift = column[3] & 7, pick16(column[3] >> 16, fb + 1), np.uint64(32 - fb)
    y = circuit_fraction(fb, np.minimum(kind, 6), place, column[1].astype(np.uint64) >> shift)
    y = np.where(kind == 7, tile.word.astype(np.uint64) >> shift, y)
    block = (tile.turn >> np.uint64(2)) * np.uint64(tile.m) >> np.uint64(t.a.fraction)
    counted = (block * np.uint64(tile.n) + number) & np.uint64((1 << fb) - 1)
    return np.where(tile.counts(t), counted, y)


def carries_target(t: Domain, words: list[Ints]) -> TileTarget:
    """Ordinary products and all below that a reaches; columns are powers of two, a quarter of them random."""
    ordinary = at_anchor(t, np.array([POW2, POW2, POW2, FULL]))
    return replace(ordinary, a=(t.a.low, t.a.top), rows=(t.space.product_low, t.space.anchor_top))


def carries(t: Domain, r: Halves, tile: Tiles) -> Rows:
    """Two terms, lanes or a lane and C: a run of ones and a term whose bit meets the lowest of them, or zeros and a
    term of opposite sign; in half of the rows a third term is the largest (``families_circuit.carries``)."""
    s, live, fa, fc = t.space, t.space.live, t.a.fraction, t.c.fraction
    places = live + t.c.present
    large, small, third = r.lanes(places)
    far = (r.bit(3) != 0) & (third != large) & (places > 2)
    top = np.maximum(r.anchor(t, tile), np.minimum(tile.low + t.a.normal - t.a.low, tile.high))
    far_c, above = far & (third == live), pick16(r.r[5], s.d_fraction + 4)
    lane_m = top - np.where(far & ~far_c, np.minimum(above, np.maximum(top - tile.low, 0)), 0)
    distance = pick16(r.r[7], s.d_fraction + fa + t.b.fraction + 4)
    room = np.maximum(np.where(large == live, s.c_top - lane_m, lane_m - tile.low), 0)  # C is above what lanes reach
    distance = np.where(small < live, np.minimum(distance, room), distance)
    lift = np.where(large == live, distance, 0)
    m, top = lane_m + lift, np.where(far_c, np.minimum(top + above, s.c_top), top + lift)
    fraction = np.where(large < live, fa, fc)
    full = (np.uint64(1) << fraction.astype(np.uint64)) - np.uint64(1)
    length = pick16(r.r[6], fraction + 1).astype(np.uint64)
    ones = ((np.uint64(1) << length) - np.uint64(1)) << np.maximum(fraction - distance, 0).astype(np.uint64) & full
    borrow, negative, filled = r.bit(0), r.bit(1), np.where(r.bit(2), ONES, POW2)
    run = np.where(borrow != 0, full & ~ones, ones)
    c_sign = np.where(large == live, negative, np.where(small == live, negative ^ borrow, r.bit(4)))
    return Rows(
        np.where(large == live, NONE, large), np.where(small == live, NONE, small),
        np.where(far & ~far_c, third, NONE), exponents=(m, m - distance, top),
        negatives=(negative, negative ^ borrow, r.bit(4)), patterns=(GIVEN, filled, POW2),
        given=run & np.uint64((1 << fa) - 1), c=np.where(large == live, m, np.where(small == live, m - distance, top)),
        c_density=np.where((large == live) | (small == live) | far_c, 256, 0), c_negative=c_sign,
        c_pattern=np.where(large == live, GIVEN, np.where(small == live, filled, POW2)),
        c_given=run & np.uint64((1 << fc) - 1),
    )  # fmt: skip


@dataclass(frozen=True)
class TileFamily:
    """Where a family's tiles lie, what their rows aim at, the fractions that columns are given, the most fraction bits
    of a and b and the fewest binades of products that it can do with, and whether special values are laid over."""

    target: Callable[[Domain, list[Ints]], TileTarget]
    row: Callable[[Domain, Halves, Tiles], Rows]
    column: Callable[[Domain, list[Ints], Tiles], Codes] | None = None
    most_fraction: int = EVERY_FRACTION
    least_span: int = 0
    special: bool = False

    def can_aim(self, t: Domain) -> bool:
        """Whether a format's products are what the family can do with."""
        span = t.space.product_top - t.space.product_low
        return max(t.a.fraction, t.b.fraction) <= self.most_fraction and span >= self.least_span


TILE_FAMILIES: dict[str, TileFamily] = {
    "cancel": TileFamily(cancel_target, cancel), "ulp": TileFamily(ulp_target, ulp),
    "tie": TileFamily(tie_target, tie), "zlad": TileFamily(zlad_target, zlad), "tiny": TileFamily(tiny_target, tiny),
    "subnormals": TileFamily(subnormals_target, subnormals), "extremes": TileFamily(extremes_target, extremes),
    "conly": TileFamily(conly_target, conly), "zeros": TileFamily(zeros_target, zeros),
    "specials": TileFamily(specials_target, specials, special=True),
    "multiplier": TileFamily(multiplier_target, multiplier, multiplier_columns, SIXTEEN_BITS),
    "carries": TileFamily(carries_target, carries, least_span=NARROW),
}  # fmt: skip
"""Families that have a rule for whole tiles."""
