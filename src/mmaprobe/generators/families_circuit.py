"""Families that aim at one fault of a circuit: a pair of codes, a pair of significands, a carry, in one lane.

The reference; ``csrc/model/circuit.hpp`` repeats it bit for bit.

Their vectors hide nothing behind larger terms.  *Together*, every live lane multiplies the same pair, with signs that
alternate, so that all but one or two of the products cancel and what one lane gets wrong is left over.  *Alone*, one
lane multiplies it and all others zeros.  Scales are 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmaprobe.generators import philox
from mmaprobe.generators.domain import CodeLayout, Domain
from mmaprobe.generators.families_float import anchor
from mmaprobe.generators.operands import Codes, Ints, encode, mirrored, pick16, split

ODD = 0x9E3779B97F4A7C15
"""A seed moves where the counting of pairs begins by this many pairs."""
NARROW = 16
"""Pairs of codes of so many bits in all are counted through."""
COUNTED = 20
"""Pairs of significands of so many fraction bits in all are counted through in a quarter of ``multiplier``."""
GROUP_BITS = 6
"""2**6 vectors in a row share exponents and places, so that rows and columns of a tile make pairs, too."""


@dataclass
class Circuit:
    """A vector's pairs, each (n, 1): the codes ``a`` and ``b`` of lane ``lane`` (-1: of all but ``dropped``, by turns
    with ``b_other``), those of lane ``other`` (-1: none) and of lane ``third``, and C."""

    a: Any
    b: Any
    lane: Any
    c: Any = 0
    dropped: Any = -1
    a_other: Any = 0
    b_other: Any = 0
    other: Any = -1
    a_third: Any = 0
    b_third: Any = 0
    third: Any = -1

    def lanes(self, t: Domain) -> tuple[Codes, Codes]:
        """Codes of a and b of the live lanes: (n, live) each."""
        k, live = np.arange(t.space.live), t.space.live
        together, alone, other = self.lane < 0, k == self.lane, k == self.other
        first, dropped = np.where(np.equal(self.dropped, 0), 1, 0), k == self.dropped
        unpaired = (k == live - 1) & np.less(self.dropped, 0)
        minus = together & (((k + first) & 1) != 0) & ~unpaired
        held = np.where(together, ~dropped, alone)
        third = k == self.third
        a = np.where(held, self.a, np.where(other, self.a_other, np.where(third, self.a_third, np.uint64(0))))
        b = np.where(minus & held | other, self.b_other, np.where(third, self.b_third, np.uint64(0)))
        return a, np.where(held & ~minus, self.b, b)


def codes(t: Domain, seed: int, stream: int, index: Any) -> Circuit:
    """Every pair of codes in turn, by the index: together, then alone in one lane, that of the next two rounds of all
    pairs one further.  Pairs with an infinity or a NaN are always alone; C is zero.

    2**(bits of a and b) vectors have all pairs in all lanes; alone it takes as many rounds again as there are lanes.
    """
    bits = t.a.bits + t.b.bits
    n = (index + np.uint64(seed * ODD & philox.ALL)) & np.uint64((1 << bits) - 1)
    lap = index >> np.uint64(bits)
    x = n & np.uint64((1 << t.a.bits) - 1)
    y = ((n >> np.uint64(t.a.bits)) + x) & np.uint64((1 << t.b.bits) - 1)
    alone = ((lap & np.uint64(1)) != 0) | is_special(t.a, x) | is_special(t.b, y)
    lane = ((n + (lap >> np.uint64(1))) % np.uint64(t.space.live)).astype(np.int64)
    return Circuit(x, y, np.where(alone, lane, -1), b_other=negated(t.b, y))


def multiplier(t: Domain, seed: int, stream: int, index: Any) -> Circuit:
    """Significands that a multiplier may get wrong: all ones, walking ones and zeros, ones above or below a place,
    0101..., squares, random bits, each against each.  By turns together; together with all pairs of significands in
    turn, where they are few; alone with C zero or far below; alone with C the product's opposite, as far as C holds it.

    Together, C is such an opposite, too, where the result could not hold a sum of two products, and the first or the
    last of an even number of lanes is left out.
    """
    s, fa, fb = t.space, t.a.fraction, t.b.fraction
    v, g = _words(seed, stream, index)
    group = (index >> np.uint64(GROUP_BITS)).astype(np.uint64)
    mode, turn = (group & np.uint64(3)).astype(np.int64), group >> np.uint64(2)
    style = v[0]
    x = circuit_fraction(fa, style & 7, pick16(v[1], fa + 1), _random(fa, v[4], v[5]))
    y = circuit_fraction(fb, (style >> 3) & 7, pick16(v[1] >> 16, fb + 1), _random(fb, v[6], v[7]))
    square = x >> np.uint64(max(fa - fb, 0)) << np.uint64(max(fb - fa, 0))
    y = np.where(((style >> 3) & 7) == 7, square, y)
    n = (turn << np.uint64(GROUP_BITS) | index & np.uint64((1 << GROUP_BITS) - 1)) + np.uint64(seed * ODD & philox.ALL)
    counted = (mode == 1) & (fa + fb <= COUNTED)
    x = np.where(counted, n & np.uint64((1 << fa) - 1), x)
    y = np.where(counted, ((n >> np.uint64(fa)) + x) & np.uint64((1 << fb) - 1), y)
    ea, eb = split(t.a, t.b, anchor(t, g[0], False), g[1])
    a, b = encode(t.a, (style >> 6) & 1, ea, x), encode(t.b, (style >> 7) & 1, eb, y)
    alone = mode >= 2
    opposite = (t.c.is_float != 0) & ((mode == 3) | (~alone & (s.d_fraction < fa + fb + 2)))
    ends = np.where((turn & np.uint64(1)) != 0, 0, s.live - 1)
    dropped = np.where(opposite & ~alone & (s.live % 2 == 0), ends, -1)
    c: Any = np.uint64(0)
    if t.c.is_float:
        below = np.where((mode == 2) & ((style >> 9) & 1 != 0), encode(t.c, (style >> 8) & 1, t.c.low, 0), np.uint64(0))
        c = np.where(opposite, mirrored(t, a, b, 0, 0), below)
    lane = np.where(alone, (turn % np.uint64(s.live)).astype(np.int64), -1)
    return Circuit(a, b, lane, c, dropped, b_other=negated(t.b, b))


def carries(t: Domain, seed: int, stream: int, index: Any) -> Circuit:
    """Two terms, lanes or a lane and C, each place in turn the larger: a run of ones of any length, and a term at any
    distance whose bit meets the lowest of them, so that a carry runs through all; or zeros and a term of opposite sign,
    so that a borrow does.  In half of the vectors a third term, a power of two, is the largest by any distance.  Of
    integers see ``_integer_carries``."""
    if not t.a.is_float:
        return _integer_carries(t, seed, stream, index)
    s = t.space
    places = s.live + t.c.is_float
    v, g = _words(seed, stream, index)
    group = (index >> np.uint64(GROUP_BITS)).astype(np.uint64)
    large = (group % np.uint64(places)).astype(np.int64)
    further = (group // np.uint64(places) % np.uint64(places - 1)).astype(np.int64)
    small = (large + 1 + further) % places
    third = (group // np.uint64(places * (places - 1)) % np.uint64(max(places - 2, 1))).astype(np.int64)
    third = third + (third >= np.minimum(large, small))
    third = third + (third >= np.maximum(large, small))
    style, top = v[0], anchor(t, g[0], False)
    far = ((style >> 3) & 1 != 0) & (places > 2)
    m = top - np.where(far, pick16(v[2], s.d_fraction + 4), 0)
    fraction = np.where(large < s.live, t.a.fraction, t.c.fraction)
    distance = pick16(v[1] >> 16, s.d_fraction + t.a.fraction + t.b.fraction + 4)
    unsigned = fraction.astype(np.uint64)
    full = (np.uint64(1) << unsigned) - np.uint64(1)
    length = pick16(v[1], fraction + 1).astype(np.uint64)
    lowest = np.maximum(fraction - distance, 0).astype(np.uint64)
    ones = ((np.uint64(1) << length) - np.uint64(1)) << lowest & full
    borrow, negative, filled = style & 1, (style >> 1) & 1, (style >> 2) & 1 != 0
    run = np.where(borrow != 0, full & ~ones, ones)
    ea, eb = split(t.a, t.b, m, g[1])
    ea_small, eb_small = split(t.a, t.b, m - distance, g[1])
    ea_top, eb_top = split(t.a, t.b, top, g[1])
    tail = np.where(filled, np.uint64((1 << t.a.fraction) - 1), np.uint64(0))
    c: Any = np.uint64(0)
    if t.c.is_float:
        c_tail = np.where(filled, np.uint64((1 << t.c.fraction) - 1), np.uint64(0))
        below = np.where(far & (third == s.live), encode(t.c, (style >> 4) & 1, top, 0), np.uint64(0))
        below = np.where(small == s.live, encode(t.c, negative ^ borrow, m - distance, c_tail), below)
        c = np.where(large == s.live, encode(t.c, negative, m, run), below)
    return Circuit(
        encode(t.a, negative, ea, run & np.uint64((1 << t.a.fraction) - 1)), encode(t.b, False, eb, 0), large, c,
        a_other=encode(t.a, negative ^ borrow, ea_small, tail), b_other=encode(t.b, False, eb_small, 0), other=small,
        a_third=encode(t.a, (style >> 4) & 1, ea_top, 0), b_third=encode(t.b, False, eb_top, 0),
        third=np.where(far, third, -1),
    )  # fmt: skip


def _integer_carries(t: Domain, seed: int, stream: int, index: Any) -> Circuit:
    """A power of two in one lane after the other, and C: a run of ones of any length from there on, so that a carry
    runs through all; or, where the product is negative, a run of zeros, so that a borrow does.  The other bits of C are
    zeros or random; in half of the vectors another lane holds a power of two as well."""
    live, bits = t.space.live, t.c.bits
    v, g = _words(seed, stream, index)
    group = (index >> np.uint64(GROUP_BITS)).astype(np.uint64)
    lane = (group % np.uint64(live)).astype(np.int64)
    other = (lane + 1 + (group // np.uint64(live) % np.uint64(max(live - 1, 1))).astype(np.int64)) % live
    style = v[0]
    places = [f.bits - (f.sign != 0) for f in (t.a, t.b)]
    in_a, in_b = pick16(g[0], places[0]), pick16(g[1], places[1])
    place = in_a + in_b
    negative = ((style >> 1) & 1 != 0) & (t.a.sign | t.b.sign != 0)
    filled, more = (style >> 2) & 1 != 0, (style >> 3) & 1 != 0
    length = pick16(v[1], bits - place + 1).astype(np.uint64)
    ones = ((np.uint64(1) << length) - np.uint64(1)) << place.astype(np.uint64)
    rest = np.where(filled, v[4].astype(np.uint64), np.uint64(0)) & ~ones
    b = np.where((t.b.bits == 1) & ((style >> 4) & 1 != 0), np.uint64(0), _power(t.b, in_b, negative & (t.a.sign == 0)))
    return Circuit(
        _power(t.a, in_a, negative & (t.a.sign != 0)), b, lane, np.where(negative, rest, rest | ones),
        a_other=_power(t.a, pick16(v[5], places[0]), False), b_other=_power(t.b, pick16(v[6], places[1]), False),
        other=np.where(more & (live > 1), other, -1),
    )  # fmt: skip


def _power(f: CodeLayout, place: Any, negative: Any) -> Codes:
    """The code of an integer 2**place, or of its opposite."""
    power = np.uint64(1) << place.astype(np.uint64)
    found: Codes = np.where(negative, np.uint64(1 << f.bits) - power, power)
    return found


CIRCUIT_FAMILIES: dict[str, Callable[[Domain, int, int, Any], Circuit]] = {
    "codes": codes, "multiplier": multiplier, "carries": carries,
}  # fmt: skip


def circuit(t: Domain, family: str, seed: int, stream: int, index: Any) -> dict[str, Codes]:
    """Operand codes of the live lanes, C and scales."""
    made = CIRCUIT_FAMILIES[family](t, seed, stream, index[:, None])
    found = dict(zip("ab", made.lanes(t), strict=True))
    if t.c.present:
        found["c"] = np.broadcast_to(np.asarray(made.c, np.uint64), (len(index), 1))[:, 0]
    if t.space.groups:
        one = np.broadcast_to(encode(t.scale, False, 0, 0), (len(index), t.space.groups))
        found |= {"scale_a": one, "scale_b": one}
    return found


def _words(seed: int, stream: int, index: Any) -> tuple[list[Ints], list[Ints]]:
    """Eight words of each vector, and four of its group."""
    blocks = [philox.draw(seed, stream, index, philox.VECTOR, number) for number in range(2)]
    group = philox.draw(seed, stream, index >> np.uint64(GROUP_BITS), philox.SHARED, 0)
    return [word.astype(np.int64) for block in blocks for word in block], [word.astype(np.int64) for word in group]


def is_special(f: CodeLayout, code: Codes) -> Any:
    """Whether codes of up to 8 bits are infinities or NaNs."""
    if not f.is_float:
        return np.zeros(code.shape, bool)
    if f.nan_rule == 3:
        return code == np.uint64(f.sign)
    return (code & np.uint64((f.sign or 1 << 64) - 1)) > np.uint64(f.largest)


def negated(f: CodeLayout, code: Codes) -> Codes:
    """The codes with the other sign; as they are where there is none, or none of a zero."""
    if not f.is_float:
        return code
    one_zero = (f.nan_rule == 3) & ((code & np.uint64(f.sign - 1)) == 0)
    return np.where(one_zero, code, code ^ np.uint64(f.sign))


def _random(fraction: int, high: Any, low: Any) -> Codes:
    """A fraction field from 64 random bits (two words)."""
    random: Codes = (high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)) >> np.uint64(1)
    return random >> np.uint64(63 - fraction)


def circuit_fraction(fraction: int, kind: Any, place: Any, random: Codes) -> Codes:
    """Fraction fields: random (0 and 7), all ones, a one at a place or a zero, ones above it or below it, 0101..."""
    full = np.uint64((1 << fraction) - 1)
    place = place.astype(np.uint64)
    bit = (np.uint64(1) << place) >> np.uint64(1)
    below = (np.uint64(1) << place) - np.uint64(1)
    turns = np.uint64(0x5555555555555555) << (place & np.uint64(1))
    found: Codes = np.choose(
        kind, [random, full, bit & full, ~bit & full, ~below & full, below & full, turns & full, random]
    )
    return found
