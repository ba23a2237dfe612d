"""Vectors aimed at pairs: a datapath and the neighbours of it that nothing has told apart yet.

Every number that one of them holds (fraction bits, zero exponents, cut-offs, the
ends of its formats) is a *place*.  Each vector has an anchor, mostly at such a
place, and a few terms at such distances below it that the last kept bit, a tie, a
flush or an overflow of one of the datapaths decides; the other lanes are zeros of
either sign, equal to one of these terms, or tiny.  The search's own pools are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.rival_terms import Ints, Terms, places_of
from mmaprobe.derivation.vectors.terms import ABSENT, ANY, FEW, FULL, HALF, NEXT, ONE, TIE
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath

MORE = {"tails": 3, "alone": 2}
"""So many times as many vectors of a shape as of the others: of cuts of which little shows these tell most."""
NARROW = 8
"""Binades above the lowest at which half of the rare terms are: narrow formats have no others below a cut."""
DEEP = 40
"""Bits: where no number reaches deeper, there are no vectors of the largest terms beside the smallest."""


def can_attack(instruction: Instruction) -> bool:
    """Whether there are such vectors for an instruction: floats, dense."""
    return all(fmt.is_float for fmt in instruction.formats().values()) and not instruction.chunk


def attack_vectors(
    instruction: Instruction, datapath: Datapath, rivals: Sequence[Datapath], seed: int, count: int
) -> Batch:
    """About ``count`` vectors (floats only) that may tell ``rivals`` from ``datapath``, of each shape as many, and of
    some more (``MORE``)."""
    rng = np.random.default_rng([seed, 0xA77AC])
    places = places_of([datapath, *rivals])
    narrowed = len(datapath.steps) > 1 and any(path.result is not None for path in (datapath, *rivals))
    sums = instruction.c is not None and instruction.scale is None
    said = {"sums": sums, "depths": max(places.reach) > DEEP, "later": narrowed, "span": instruction.scale is not None}
    shapes = [shape for shape in SHAPES if said.get(shape, True)]
    each = {shape: MORE.get(shape, 1) * -(-count // len(shapes)) for shape in shapes}
    each |= {"sums": Terms.spare(instruction) * each["sums"]} if sums else {}
    made = [_made(Terms(instruction, places, rng, number, datapath.steps), shape) for shape, number in each.items()]
    return Batch(**{name: np.concatenate([getattr(b, name) for b in made]) for name, _ in made[0].items()})


def _made(terms: Terms, shape: str) -> Batch:
    places = terms.four()
    SHAPES[shape](terms, places)
    batch = terms.encoded()
    if shape == "specials":
        return terms.specials_into(batch, places)
    if shape in ("heap", "remainders"):
        return terms.remainders_into(batch, *places[2:])
    if shape == "conjugates":
        return terms.conjugates_into(batch, *places[:2])
    if shape == "sums":
        return terms.sums_into(batch)
    return terms.ties_into(batch, places[0]) if shape == "ties" else batch


# -- shapes: places holds four different terms of every vector


def _ladder(terms: Terms, places: list[Ints]) -> None:
    """An anchor, a term that makes a tie of it, and others at the last kept bits below."""
    anchor = terms.anchor()
    precision = terms.pick(terms.places.reach)
    terms.fill(anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3))
    terms.put(places[2], anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3))
    tie = terms.flags() | terms.flags()
    terms.put(places[1], np.where(tie, anchor - precision + terms.jitter(-2, 1), ABSENT), kind=ONE)
    terms.put(places[0], anchor, kind=terms.choose(ONE, NEXT, FULL, ANY))


def _cancel(terms: Terms, places: list[Ints]) -> None:
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


def _graze(terms: Terms, places: list[Ints]) -> None:
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


def _zero(terms: Terms, places: list[Ints]) -> None:
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


def _top(terms: Terms, places: list[Ints]) -> None:
    """Terms at the largest of the formats: their sums overflow or just do not."""
    top = terms.pick((*terms.places.highs, terms.highest())) + terms.jitter(-2, 0)
    sign = terms.flags()
    terms.c_first(places, terms.flags() & terms.flags())
    terms.fill(top - terms.pick(terms.places.reach) + terms.jitter(-3, 2))
    gap = np.where(terms.flags(), terms.pick(terms.places.reach) + terms.jitter(-1, 3), terms.jitter(0, 2))
    terms.put(places[2], top - terms.jitter(0, 2))
    terms.put(places[1], top - gap, np.where(terms.flags(), sign, ~sign))
    terms.put(places[0], top, sign, terms.choose(FULL, TIE, ONE, ANY))


def _low(terms: Terms, places: list[Ints]) -> None:
    """Products and c at the low ends of their formats, beside zeros of either sign."""
    lowest = terms.a.min_exponent + terms.b.min_exponent
    depth = terms.a.fraction_bits + terms.b.fraction_bits
    for place in places:
        where = np.where(terms.flags(), lowest - terms.jitter(0, depth), lowest + terms.jitter(0, 4))
        low = np.where(terms.flags(), terms.pick(terms.places.lows) + terms.jitter(-3, 2), where)
        terms.put(place, np.where(terms.rng.integers(0, 3, terms.count) == 0, ABSENT, low))
    same = terms.flags()[:, None] & terms.flags((terms.count, 1))
    terms.negative = np.where(same, terms.negative[:, :1], terms.negative)


def _order(terms: Terms, places: list[Ints]) -> None:
    """A large term and its opposite anywhere, every other lane within reach below them."""
    anchor = terms.anchor()
    terms.exponent[:] = anchor[:, None] - terms.rng.integers(0, max(terms.places.reach) + 4, terms.exponent.shape)
    kind, sign = terms.choose(ONE, FULL, ANY), terms.flags()
    terms.put(places[0], anchor, sign, kind)
    terms.put(places[1], anchor, ~sign, kind)


def _carry(terms: Terms, places: list[Ints]) -> None:
    """All ones, a last place that carries them over, half of the next, and a term at the last kept bits below."""
    anchor, sign = terms.anchor(), terms.flags()
    bits = terms.pick([reach for reach in terms.places.reach if reach > 1] or [1])
    terms.fill(anchor - terms.pick(terms.places.reach) - terms.jitter(0, 3))
    terms.put(places[3], anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3), kind=terms.choose(ONE, ANY))
    terms.put(places[2], anchor - bits + terms.jitter(-1, 1), sign, ONE)
    terms.put(places[1], anchor - bits + terms.jitter(-1, 0), sign, ONE)
    terms.put(places[0], anchor, sign, FULL)


def _labels(terms: Terms, places: list[Ints]) -> None:
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


def _specials(terms: Terms, places: list[Ints]) -> None:
    """Plain terms; special operands come on top."""
    _order(terms, places)


def _flush(terms: Terms, places: list[Ints]) -> None:
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


def _crowd(terms: Terms, places: list[Ints]) -> None:
    """Terms of one sign and of about one size in every lane: their sum carries far above each; one or two terms, often
    c, at a last kept bit below the sum, or the whole crowd at the last kept bits below one."""
    lanes = terms.instruction.k.bit_length()
    top = np.where(terms.flags(), terms.highest() - terms.jitter(0, 2), terms.anchor())
    anchor = top + lanes
    below = terms.flags()
    size = np.where(below, anchor - terms.pick(terms.places.reach) - terms.jitter(-1, lanes), top)
    terms.exponent[:] = size[:, None] - terms.rng.integers(0, 2, terms.exponent.shape)
    terms.negative[:] = terms.flags()[:, None]
    if terms.c is not None:
        terms.exponent[:, -1] = np.where(terms.flags(), ABSENT, anchor - terms.pick(terms.places.reach))
    terms.put(places[2], np.where(below, anchor - terms.pick(terms.places.reach) + terms.jitter(-1, 1), size))
    terms.put(places[1], anchor - terms.pick(terms.places.reach) + terms.jitter(-4, 3), terms.flags())
    terms.put(places[0], np.where(below, anchor, size), None, terms.choose(ONE, NEXT, FEW, ANY))


def _dust(terms: Terms, places: list[Ints]) -> None:
    """A term, a half of its last place, and below the last kept bit of the first a little in every other lane."""
    high = terms.highest() if terms.c is None else min(max(terms.c.max_exponent, terms.highest()), terms.d.max_exponent)
    anchor, sign = np.where(terms.flags(), high - terms.jitter(0, 2), terms.anchor()), terms.flags()
    terms.c_first(places, (anchor > terms.highest()) | (terms.jitter(0, 3) == 0))
    depth = anchor - terms.pick(terms.places.reach)
    terms.exponent[:] = depth[:, None] - terms.rng.integers(0, 5, terms.exponent.shape)
    terms.negative[:] = np.where(terms.flags(), sign, ~sign)[:, None]
    terms.put(
        places[1], anchor - terms.pick(terms.places.reach) - terms.jitter(-1, 1), None, terms.choose(ONE, ONE, FEW)
    )
    terms.put(places[0], anchor, sign, terms.choose(ONE, NEXT, FULL, FEW))


def _heap(terms: Terms, places: list[Ints]) -> None:
    """One, two, four, ... equal products side by side, whose sum is a power of two far above each; and the last bit of
    one of the smallest products, all else of which another takes away, or a small product."""
    k, order = terms.instruction.k, np.array([lane for lanes in terms.steps for lane in lanes])
    doublings = terms.rng.integers(0, len(terms.steps[0]).bit_length(), terms.count)
    size = np.int64(1) << doublings
    start = terms.rng.integers(0, k, terms.count) // size * size
    lanes = np.zeros(terms.exponent.shape, bool)
    lanes[:, order] = (np.arange(k) >= start[:, None]) & (np.arange(k) < (start + size)[:, None])
    least, digits = terms.a.min_exponent + terms.b.min_exponent, terms.a.fraction_bits + terms.b.fraction_bits
    low, reach = least + terms.jitter(0, 1) * terms.jitter(0, 2), terms.pick(terms.places.reach)
    each = np.where(terms.flags(), low - digits + reach + terms.jitter(0, 3) - doublings, terms.anchor())
    each = np.minimum(each, terms.highest())
    low = np.where(terms.flags(), np.maximum(each + doublings - reach + terms.jitter(-3, 1), least), low)
    sign = terms.flags()
    terms.exponent[:] = np.where(lanes, each[:, None], ABSENT)
    terms.negative[:] = np.where(lanes, sign[:, None], terms.negative)
    terms.kind[:] = np.where(lanes, ONE, terms.kind)
    last, other = terms.flags() | terms.flags(), terms.flags()
    terms.put(places[3], np.where(last, low, ABSENT), ~other, ONE)
    terms.put(places[2], low, other, np.where(last, ONE, terms.choose(ONE, NEXT, ANY)))


def _brim(terms: Terms, places: list[Ints]) -> None:
    """Every lane about its largest, of one sign, scaled until their sum is about the last place; c zero or there."""
    last = terms.d.min_exponent - terms.d.fraction_bits
    size = terms.highest() - terms.jitter(0, 1)
    terms.rescale(last - size - terms.instruction.k.bit_length() + terms.jitter(-2, 2))
    small = terms.rng.integers(0, 100, terms.exponent.shape) < terms.rng.integers(0, 70, (terms.count, 1))
    lower = np.where(small, terms.rng.integers(0, 7, small.shape), 0)
    terms.exponent[:] = (size + terms.shift[:, 0])[:, None] - lower
    terms.kind[:] = np.where(small | terms.flags((terms.count, 1)), ANY, FULL)
    terms.negative[:] = terms.flags()[:, None]
    terms.put(places[0], size + terms.shift[:, 0] - terms.jitter(0, 3), terms.flags(), ANY)
    if terms.c is not None:
        terms.exponent[:, -1] = np.where(terms.flags() | terms.flags(), ABSENT, last + terms.jitter(0, 3))


def _pairs(terms: Terms, places: list[Ints]) -> None:
    """One term of few digits, c or a product, beside another of few, or two; zeros elsewhere."""
    anchor, sign = terms.anchor(), terms.flags()
    terms.c_first(places, terms.flags())
    more = anchor - terms.pick(terms.places.reach) + terms.jitter(-1, 1)
    terms.put(places[2], np.where(terms.flags(), ABSENT, more), terms.flags(), terms.choose(ONE, ONE, FEW))
    terms.put(places[1], anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 8), ~sign, FEW)
    terms.put(places[0], anchor, sign, terms.choose(ONE, ONE, FEW, NEXT, FULL))


def _flushes(terms: Terms, places: list[Ints]) -> None:
    """In every step two terms at the lowest normal of a format, often side by side, of which little is left, mostly
    negative, or in steps after the first one term below it; the others zeros, mostly -0, or as low; c one of the two of
    the first step, or zero."""
    low = terms.pick(terms.places.lows)
    other = terms.rng.integers(0, 4, (terms.count, 1)) == 0
    near = low[:, None] + terms.rng.integers(0, 2, terms.exponent.shape)
    terms.exponent[:] = np.where(other & (terms.rng.integers(0, 3, near.shape) == 0), near, ABSENT)
    terms.negative[:] = (terms.rng.integers(0, 12, near.shape) > 0) ^ (terms.rng.integers(0, 8, (terms.count, 1)) == 0)
    alone = terms.flags()
    for number, lanes in enumerate(terms.steps):
        some = np.array([*lanes, *([terms.instruction.k] if terms.c is not None and number == 0 else [])])
        first, second = _two(terms, len(some))
        lone, down = (number > 0) & alone & terms.flags(), terms.jitter(0, 7) > 0
        above = low + np.where(down, 0, terms.jitter(0, 1))
        kinds = terms.choose(NEXT, ANY, FEW, FULL), np.where(down, ONE, terms.choose(ONE, NEXT, ANY, FEW, FULL))
        terms.put(some[second], np.where(lone, ABSENT, low), lone | ~down, kinds[1])
        terms.put(some[first], np.where(lone, low - terms.jitter(1, 30), above), down, kinds[0])


def _two(terms: Terms, count: int) -> tuple[Ints, Ints]:
    """Two of so many places of every vector, neighbours half of the time; one where there is one."""
    order = np.argsort(terms.rng.random((terms.count, count)), axis=1)
    first = order[:, 0]
    beside = np.where((first ^ 1) < count, first ^ 1, order[:, -1])
    return first, np.where(terms.flags(), beside, order[:, -1])


def _blocks(terms: Terms, places: list[Ints]) -> None:
    """Scale blocks of their own exponents: one about the result's last place, the others at a zero's last kept bits; c
    zero, or there."""
    blocks = max(terms.instruction.k // max(terms.instruction.scale_size, 1), 1)
    last = terms.d.min_exponent - terms.d.fraction_bits
    zero = terms.pick(terms.places.zeros or terms.places.lows)
    target = (zero - terms.pick(terms.places.reach))[:, None] + terms.rng.integers(-3, 4, (terms.count, blocks))
    large = terms.rng.integers(0, blocks, terms.count)
    target[np.arange(terms.count), large] = last + terms.jitter(-4, 4)
    terms.rescale(target if terms.instruction.scale is not None else target[:, 0])
    some = terms.rng.integers(0, 4, terms.exponent.shape) == 0
    terms.exponent[:] = np.where(some, 0, ABSENT)
    lanes = terms.instruction.k
    terms.exponent[:, :lanes] += np.where(
        some[:, :lanes], terms.shift - terms.rng.integers(0, 3, (terms.count, lanes)), 0
    )
    if terms.c is not None:
        terms.exponent[:, -1] = np.where(terms.flags() | terms.flags(), ABSENT, last + terms.jitter(0, 3))


def _span(terms: Terms, places: list[Ints]) -> None:
    """Of one scale block the largest products, which cancel, and some or all others the smallest, of any digits."""
    k, size = terms.instruction.k, terms.instruction.scale_size
    block = terms.rng.integers(0, k // size, terms.count)
    here = np.arange(k) // size == block[:, None]
    some = here & (terms.flags((terms.count, 1)) | (terms.rng.integers(0, 8, here.shape) == 0))
    small = terms.a.min_exponent + terms.b.min_exponent + terms.rng.integers(0, 3, here.shape)
    terms.exponent[:, :k] = np.where(some, small + terms.shift, ABSENT)
    terms.kind[:] = np.where(terms.flags((terms.count, 1)), ANY, NEXT)
    terms.negative = terms.flags(terms.negative.shape)
    shift = terms.shift[np.arange(terms.count), block * size]
    first, second = _two(terms, size)
    kind, sign, largest = terms.choose(ONE, FULL), terms.flags(), terms.highest() + shift - terms.pick((0, 0, 1))
    terms.put(block * size + first, largest, sign, kind)
    terms.put(block * size + second, largest, ~sign, kind)


def _ties(terms: Terms, places: list[Ints]) -> None:
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


def _conjugates(terms: Terms, places: list[Ints]) -> None:
    """1 or 1.5 of a power of two and a product of its own that is just less, made so later, which cancel: its last bit
    is left, or a last place where that is a tie; and a term below, or none."""
    terms.c_first(places, terms.flags())
    anchor, sign, three = terms.anchor(), terms.flags(), terms.flags()
    more = anchor - terms.pick(terms.places.reach) + terms.jitter(-3, 3)
    terms.put(places[2], np.where(terms.jitter(0, 3) == 0, more, ABSENT), terms.flags(), ONE)
    terms.put(places[1], anchor - np.where(three, 0, 1), ~sign, ONE)
    terms.put(places[0], anchor, sign, np.where(three, HALF, ONE))


def _remainders(terms: Terms, places: list[Ints]) -> None:
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


def _tails(terms: Terms, places: list[Ints]) -> None:
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


def _later(terms: Terms, places: list[Ints]) -> None:
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


def _depths(terms: Terms, places: list[Ints]) -> None:
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


def _alone(terms: Terms, places: list[Ints]) -> None:
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


def _sums(terms: Terms, places: list[Ints]) -> None:
    """Every lane anything within some binades; c follows once the sum of some of them is known."""
    width = terms.rng.integers(1, 10, (terms.count, 1))
    below = (terms.rng.random(terms.exponent.shape) * width).astype(np.int64)
    low, high = terms.a.min_exponent + terms.b.min_exponent, terms.highest()
    anchor = np.clip(terms.anchor(), low, high)
    anchor = np.where(terms.flags(), anchor, np.minimum(low + width[:, 0] + terms.jitter(0, 2), high))
    terms.exponent[:] = anchor[:, None] - below
    terms.kind[:] = np.where(terms.flags((terms.count, 1)), ANY, terms.kind)


Shape = Callable[[Terms, "list[Ints]"], None]
SHAPES: dict[str, Shape] = {
    "ladder": _ladder, "cancel": _cancel, "graze": _graze, "zero": _zero, "top": _top, "low": _low, "order": _order,
    "carry": _carry, "labels": _labels, "flush": _flush, "crowd": _crowd, "heap": _heap, "brim": _brim, "dust": _dust,
    "span": _span, "pairs": _pairs, "flushes": _flushes, "blocks": _blocks, "ties": _ties, "tails": _tails,
    "depths": _depths, "later": _later, "alone": _alone, "conjugates": _conjugates, "remainders": _remainders,
    "sums": _sums, "specials": _specials,
}  # fmt: skip
