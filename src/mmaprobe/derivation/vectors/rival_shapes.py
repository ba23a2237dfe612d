"""Shapes of few terms: each vector has an anchor, mostly at a number of the datapaths, and a few terms at such
distances below it; ``places`` holds four different terms of every vector.  The other lanes are zeros, or alike."""

from __future__ import annotations

import numpy as np

from mmaprobe.derivation.vectors.rival_terms import Ints, Terms
from mmaprobe.derivation.vectors.terms import ABSENT, ANY, FEW, FULL, HALF, NEXT, ONE, TIE

NARROW = 8
"""Binades above the lowest at which half of the rare terms are: narrow formats have no others below a cut."""


def ladder(terms: Terms, places: list[Ints]) -> None:
    """An anchor, a term that makes a tie of it, and others at the last kept bits below."""
    anchor = terms.anchor()
    precision = terms.pick(terms.places.reach)
    terms.fill(anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3))
    terms.put(places[2], anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3))
    tie = terms.flags() | terms.flags()
    terms.put(places[1], np.where(tie, anchor - precision + terms.jitter(-2, 1), ABSENT), kind=ONE)
    terms.put(places[0], anchor, kind=terms.choose(ONE, NEXT, FULL, ANY))


def cancel(terms: Terms, places: list[Ints]) -> None:
    """Two terms that cancel, or nearly, also beyond what the result can hold, and what is left below: anywhere, or in
    the result's range or at its low end where a last kept bit of the two lies there."""
    top, reach = terms.scaled_ends()[1], terms.pick(terms.places.reach)
    left = np.where(terms.flags(), terms.anchor(), terms.pick(terms.places.lows)) + terms.jitter(-2, 1)
    which = terms.jitter(0, 7)
    shown = (which > 1) & (which < 5) & (left + reach < top)
    anchor = np.select([which < 2, shown], [top - terms.jitter(0, 8), left + reach], terms.anchor())
    order = [places[2], places[0], places[1]]
    terms.c_first(order, terms.flags() & terms.flags())
    rest, first, second = order
    terms.fill(np.where(shown, left, anchor - terms.pick(terms.places.reach)) + terms.jitter(-3, 3))
    terms.put(rest, np.where(shown, left, anchor - terms.pick(terms.places.reach)) + terms.jitter(-3, 3))
    kind, sign = terms.choose(ONE, FULL, HALF, ANY, ANY), terms.flags()
    terms.put(first, anchor, sign, kind)
    near = np.where(terms.rng.integers(0, 4, terms.count) == 0, terms.jitter(-1, 1), 0)
    terms.put(second, anchor + near, ~sign, kind)


def graze(terms: Terms, places: list[Ints]) -> None:
    """Sums a hair below or above the lowest normal of one of the formats."""
    low = terms.pick(terms.places.lows) + terms.jitter(0, 1)
    reach = terms.pick(terms.places.reach)
    below = np.where(terms.flags(), low - reach + terms.jitter(-3, 2), low - terms.jitter(0, 3))
    sign = terms.flags()
    terms.fill(low - reach - terms.jitter(-3, 4))
    more = low - terms.pick(terms.places.reach) - terms.jitter(-3, 4)
    terms.put(places[2], np.where(terms.flags(), more, ABSENT))
    terms.put(places[1], below, np.where(terms.flags(), ~sign, sign))
    terms.put(places[0], low, sign, terms.choose(ONE, ONE, FULL, NEXT, ANY))


def zero(terms: Terms, places: list[Ints]) -> None:
    """Zeros that set the alignment: terms at the result's last place, and one at a zero's last kept bit."""
    last = terms.d.min_exponent - terms.d.fraction_bits
    zero = terms.pick(terms.places.zeros or terms.places.lows)
    tiny = zero - terms.pick(terms.places.reach) + terms.jitter(-3, 2)
    terms.fill(tiny - terms.jitter(0, 3))
    sign = terms.flags()
    terms.put(places[1], np.where(terms.flags(), last + terms.jitter(-1, 1), ABSENT), sign, ONE)
    first = np.where(terms.rng.integers(0, 4, terms.count) > 0, last + terms.jitter(-2, 0), ABSENT)
    terms.put(places[0], first, np.where(terms.flags(), sign, ~sign), ONE)
    terms.put(places[2], tiny, terms.flags(), terms.choose(ONE, ONE, FULL, ANY))  # of two terms it is the second


def beside(terms: Terms, places: list[Ints]) -> None:
    """A product alone, made later about half of the result's lowest last place, its last bit below what a zero's label
    keeps; or that last place and, against it, a product of about half of a format's lowest last place.  All else is
    zeros, whose labels may cut either."""
    lane = places[0] % terms.instruction.k
    sign, alone = terms.flags(), terms.flags()
    against = terms.pick(terms.places.lows) - terms.jitter(0, 2)
    terms.put((lane + 1) % terms.instruction.k, np.where(alone, ABSENT, against), ~sign, terms.choose(ANY, FEW))
    last = np.full(terms.count, terms.d.min_exponent - terms.d.fraction_bits, np.int64)
    terms.put(lane, last, sign, ONE)


def top(terms: Terms, places: list[Ints]) -> None:
    """Terms at the largest of the formats: their sums overflow or just do not."""
    top = terms.pick((*terms.places.highs, terms.highest())) + terms.jitter(-2, 0)
    sign = terms.flags()
    terms.c_first(places, terms.flags() & terms.flags())
    terms.fill(top - terms.pick(terms.places.reach) + terms.jitter(-3, 2))
    gap = np.where(terms.flags(), terms.pick(terms.places.reach) + terms.jitter(-1, 3), terms.jitter(0, 2))
    terms.put(places[2], top - terms.jitter(0, 2))
    terms.put(places[1], top - gap, np.where(terms.flags(), sign, ~sign))
    terms.put(places[0], top, sign, terms.choose(FULL, TIE, ONE, ANY))


def low(terms: Terms, places: list[Ints]) -> None:
    """Products and c at the low ends of their formats, beside zeros of either sign."""
    lowest = terms.a.min_exponent + terms.b.min_exponent
    depth = terms.a.fraction_bits + terms.b.fraction_bits
    for place in places:
        where = np.where(terms.flags(), lowest - terms.jitter(0, depth), lowest + terms.jitter(0, 4))
        low = np.where(terms.flags(), terms.pick(terms.places.lows) + terms.jitter(-3, 2), where)
        terms.put(place, np.where(terms.rng.integers(0, 3, terms.count) == 0, ABSENT, low))
    same = terms.flags()[:, None] & terms.flags((terms.count, 1))
    terms.negative = np.where(same, terms.negative[:, :1], terms.negative)


def carry(terms: Terms, places: list[Ints]) -> None:
    """All ones, a last place that carries them over, half of the next, and a term at the last kept bits below."""
    anchor, sign = terms.anchor(), terms.flags()
    bits = terms.pick([reach for reach in terms.places.reach if reach > 1] or [1])
    terms.fill(anchor - terms.pick(terms.places.reach) - terms.jitter(0, 3))
    terms.put(places[3], anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3), kind=terms.choose(ONE, ANY))
    terms.put(places[2], anchor - bits + terms.jitter(-1, 1), sign, ONE)
    terms.put(places[1], anchor - bits + terms.jitter(-1, 0), sign, ONE)
    terms.put(places[0], anchor, sign, FULL)


def labels(terms: Terms, places: list[Ints]) -> None:
    """A product of a subnormal operand or two, and what cancels it, or half of its last place and the last bit of a
    term; and a last kept bit below what its label says, or the last bit of one of the two."""
    depth = terms.jitter(1, max(terms.a.fraction_bits, 1))
    a, b = terms.a, terms.b
    mixed = a.min_exponent + b.max_exponent, b.min_exponent + a.max_exponent
    label = terms.pick((*mixed, a.min_exponent + b.min_exponent))
    sign, half = terms.flags(), terms.flags()
    other, product, last = places[1], places[0], places[2]
    order = [other, product, last]
    terms.c_first(order, half & terms.flags())
    other, product, last = order
    terms.fill(label - terms.pick(terms.places.reach) - terms.jitter(0, 3))
    terms.put(last, label - terms.pick(terms.places.reach) + terms.jitter(-3, 1))
    below = np.where(half, terms.pick((terms.d.fraction_bits, *terms.places.reach)) + terms.jitter(0, 2), 0)
    kind = np.where(half, terms.choose(NEXT, NEXT, TIE, FEW), ONE)
    terms.put(other, label - depth - below, np.where(half, terms.flags(), sign), kind)
    terms.put(product, label - depth, ~sign, terms.choose(ONE, ONE, NEXT))


def flush(terms: Terms, places: list[Ints]) -> None:
    """Two terms at the lowest normal of a format that nearly cancel, beside zeros; where no product is so low, c and
    one of the lowest products, often the last one, so that last places of c are left: of a c just below a power of two
    its last place alone."""
    low, sign = terms.pick(terms.places.lows) + terms.jitter(0, 1), terms.flags()
    kind, down = terms.choose(NEXT, ANY, FEW, FULL), np.zeros(terms.count, np.int64)
    least = terms.scaled_ends()[0]
    if terms.c is not None and terms.instruction.scale is None:
        above = (low < least) & (terms.jitter(0, 3) > 0)
        low = np.where(above, least + terms.jitter(0, 3), low)
        terms.c_first(places, above)
        places[1][above & terms.flags()] = terms.steps[-1][-1]
        down = 1 * (above & (kind == FULL) & terms.flags())
    terms.put(places[1], low, ~sign, terms.choose(ONE, ANY, FEW, HALF))
    terms.put(places[0], low - down, sign, kind)


def pairs(terms: Terms, places: list[Ints]) -> None:
    """One term of few digits, c or a product, beside another of few, or two; zeros elsewhere."""
    anchor, sign = terms.anchor(), terms.flags()
    terms.c_first(places, terms.flags())
    more = anchor - terms.pick(terms.places.reach) + terms.jitter(-1, 1)
    terms.put(places[2], np.where(terms.flags(), ABSENT, more), terms.flags(), terms.choose(ONE, ONE, FEW))
    terms.put(places[1], anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 8), ~sign, FEW)
    terms.put(places[0], anchor, sign, terms.choose(ONE, ONE, FEW, NEXT, FULL))


def ties(terms: Terms, places: list[Ints]) -> None:
    """One product, made a tie on its own later, and a term far below it, or the two at the ends of a range; or c that
    is a tie, with such a term or alone."""
    terms.c_first(places, terms.jitter(0, 7) == 0)
    of_c, ends, top = places[0] == terms.instruction.k, terms.jitter(0, 2) == 0, terms.pick(terms.places.highs)
    top = np.where(of_c, top, np.minimum(top, terms.highest()))
    anchor = np.where(ends, top - terms.jitter(0, 1), terms.anchor())
    below = anchor - terms.pick(terms.places.reach) - terms.jitter(-2, 40)
    below = np.where(ends, terms.pick(terms.places.lows) + terms.jitter(0, 1), below)
    terms.put(places[1], np.where(of_c & terms.flags(), ABSENT, below), terms.flags())
    terms.put(places[0], anchor, kind=TIE)


def conjugates(terms: Terms, places: list[Ints]) -> None:
    """1 or 1.5 of a power of two and a product of its own that is just less, made so later, which cancel: its last bit
    is left, or a last place where that is a tie; and a term below, or none."""
    terms.c_first(places, terms.flags())
    anchor, sign, three = terms.anchor(), terms.flags(), terms.flags()
    more = anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3)
    terms.put(places[2], np.where(terms.jitter(0, 3) == 0, more, ABSENT), terms.flags(), ONE)
    terms.put(places[1], anchor - np.where(three, 0, 1), ~sign, ONE)
    terms.put(places[0], anchor, sign, np.where(three, HALF, ONE))


def remainders(terms: Terms, places: list[Ints]) -> None:
    """A term, mostly c, half of its last place, and just below a last kept bit the last bit of a product, all else of
    which another product takes away; zeros elsewhere."""
    digits = terms.a.fraction_bits + terms.b.fraction_bits
    cut = np.where(terms.flags() | terms.flags(), terms.hidden(), terms.pick(terms.places.reach))
    depth = cut + terms.jitter(1, max(min(terms.a.fraction_bits, terms.b.fraction_bits), 1))
    low, high = terms.a.min_exponent + terms.b.min_exponent, terms.highest()
    anywhere = low + (terms.rng.random(terms.count) * (high - low)).astype(np.int64)
    exponent = np.minimum(np.where(terms.flags(), anywhere, low + terms.jitter(0, 3)), high)
    anchor = np.minimum(exponent - digits + depth, terms.d.max_exponent)
    terms.c_first(places, terms.flags() | terms.flags())
    half = np.where(terms.jitter(0, 3) > 0, terms.d.fraction_bits + 1, terms.pick(terms.places.reach))
    sign = terms.flags()
    terms.put(places[1], anchor - half, terms.flags(), ONE)
    terms.put(places[3], exponent, ~sign, ONE)
    terms.put(places[2], exponent, sign, ONE)
    terms.put(places[0], anchor, terms.flags(), terms.choose(ONE, NEXT, FULL, ANY))


def tails(terms: Terms, places: list[Ints]) -> None:
    """A term, mostly c, and half of a last place of its sum beside it; below the last kept bits, of the term or of the
    half in a sum inside, one term or two of one bit or few, which the tie shows or hides; zeros elsewhere."""
    lowest = max(terms.a.min_exponent + terms.b.min_exponent, terms.d.min_exponent - terms.d.fraction_bits)
    half = np.where(terms.flags() | terms.flags(), terms.d.fraction_bits + 1, terms.pick(terms.places.reach))
    cut = np.where(
        terms.flags(), terms.hidden() + terms.jitter(-1, 4), terms.pick(terms.places.reach) + terms.jitter(-1, 9)
    )
    if terms.places.inner and terms.places.outer:
        nested = terms.flags()
        half = np.where(nested, terms.pick(terms.places.outer) + 1, half)
        cut = np.where(nested, half + terms.pick(terms.places.inner) + terms.jitter(-3, 2), cut)
    depth = np.maximum(cut, half + 1)
    room = np.maximum(terms.highest() + half - lowest - depth, 1)
    room = np.where(terms.flags(), room, np.minimum(room, NARROW))
    anchor = lowest + depth + (terms.rng.random(terms.count) * room).astype(np.int64)
    anchor = np.minimum(anchor, terms.d.max_exponent - 1)
    terms.c_first(places, terms.flags() | terms.flags())
    terms.put(places[3], np.where(terms.flags(), ABSENT, anchor - depth + terms.jitter(-2, 8)), terms.flags(), ONE)
    terms.put(places[2], anchor - depth, terms.flags(), terms.choose(ONE, ONE, FEW, HALF))
    near, kind = terms.pick((-1, 0, 0, 0, 0, 0, 0, 0, 1, 2)), terms.choose(ONE, ONE, ONE, ONE, HALF)
    terms.put(places[1], anchor - half + near, terms.flags(), kind)
    terms.put(places[0], anchor, terms.flags(), terms.choose(ONE, NEXT, FULL, FEW, ANY))


def later(terms: Terms, places: list[Ints]) -> None:
    """In one step, mostly the first, a term, half of its last place and a little below a cut, often c; in a step after
    it what takes the term away, so that its last place is left, which the last conversion may hide else."""
    first, second, third, away = terms.apart()
    half = terms.pick(terms.places.shown) + 1
    low, high = terms.scaled_ends()
    low = np.maximum(low, terms.d.min_exponent - terms.d.fraction_bits) + half
    anchor = low + (terms.rng.random(terms.count) * (np.minimum(high, terms.d.max_exponent - 1) - low)).astype(np.int64)
    sign, kind = terms.flags(), terms.choose(ONE, ONE, FULL, NEXT)
    terms.put(third, anchor - terms.hidden() - terms.jitter(-1, 8), terms.flags(), ONE)
    terms.put(second, anchor - half, sign ^ (terms.jitter(0, 3) == 0), ONE)
    terms.put(first, anchor, sign, kind)
    terms.put(away, anchor, ~sign, kind)


def depths(terms: Terms, places: list[Ints]) -> None:
    """A large term, half of its last place or what cancels it beside it, and the lowest bit that c, or a product, can
    have, or that the result shows, alone or as the last of a longer one, once or twice; zeros elsewhere."""
    order = [places[2], places[0], places[1]]
    terms.c_first(order, terms.flags())
    of_c, k = terms.c or terms.d, terms.instruction.k
    last, first, near = order
    terms.apart_of_blocks(last, first)
    lowest, top = terms.scaled_ends()
    low = np.where(last == k, of_c.min_exponent - of_c.fraction_bits, lowest) + terms.jitter(0, 2)
    shown = terms.d.min_exponent - terms.d.fraction_bits + terms.pick((-1, -1, 0, 1))
    low = np.where(terms.flags() | (last == k), low, np.maximum(low, shown))
    highest = np.where(first == k, top + terms.d.fraction_bits + 1, top)
    sign, beside = terms.flags(), terms.pick((0, 0, 1, 1, 2))
    both = np.where((first == k) | (near == k), min(top, of_c.max_exponent), top)
    anchor = np.where(beside == 0, both, np.minimum(highest, terms.d.max_exponent - 1)) - terms.pick((0, 0, 0, 1, 2, 3))
    below = np.where(beside == 0, 0, terms.d.fraction_bits + 1)
    of_last = terms.flags()
    bits = np.where(last == k, of_c.fraction_bits, terms.a.fraction_bits + terms.b.fraction_bits)
    longer = terms.flags()  # of operands without subnormals no product is the lowest bit alone
    low += longer * (1 + (terms.rng.random(terms.count) * bits).astype(np.int64))
    terms.put(places[3], np.where(terms.flags(), low, ABSENT), of_last, ONE)
    terms.put(last, low, of_last, np.where(longer, terms.choose(NEXT, FULL, ANY), ONE))
    terms.put(near, np.where(beside == 2, ABSENT, anchor - below), np.where(beside == 0, ~sign, terms.flags()), ONE)
    terms.put(first, anchor, sign, np.where(beside == 0, ONE, terms.choose(ONE, NEXT, FULL)))


def alone(terms: Terms, places: list[Ints]) -> None:
    """One term, mostly c, at a zero's last kept bit or at the low end of a format, or half of a last place below it,
    which one rounding takes there and another not, or a product of a subnormal operand, or all products such ones,
    beside zeros of its sign, or the lowest products, all or all but a few: what is left of it is a sign."""
    of_product = terms.jitter(0, 3) == 0
    terms.c_first(places, (terms.flags() | terms.flags()) & ~of_product)
    zero = terms.pick(terms.places.zeros or terms.places.lows) - terms.pick(terms.places.reach)
    low = np.where(terms.flags() | terms.flags(), zero, terms.pick(terms.places.lows)) + terms.jitter(-2, 1)
    least = terms.a.min_exponent + terms.b.min_exponent
    low = np.where(of_product, least - terms.jitter(0, terms.a.fraction_bits + terms.b.fraction_bits), low)
    below = (terms.jitter(0, 3) == 0) & ~of_product
    low = np.where(below, terms.pick(terms.places.lows) - 1, low)
    every, vanish = of_product & terms.flags(), ~of_product & (terms.jitter(0, 3) == 0)
    others = np.select([every, vanish], [low, np.full(terms.count, terms.scaled_ends()[0])], ABSENT)
    terms.exponent[:, : terms.instruction.k] = others[:, None]
    sign = terms.flags()
    terms.negative[:] = sign[:, None] ^ (terms.rng.integers(0, 8 * terms.terms, terms.negative.shape) == 0)
    terms.put(places[0], low, sign, np.where(below, TIE, terms.choose(ONE, NEXT, FULL, FULL, ANY)))
