"""Shapes of many lanes: crowds of about one size, scale blocks of their own, a term or two in every step; ``places``
holds four different terms of every vector."""

from __future__ import annotations

import numpy as np

from mmaprobe.derivation.vectors.rival_terms import Ints, Terms
from mmaprobe.derivation.vectors.terms import ABSENT, ANY, FEW, FULL, NEXT, ONE


def order(terms: Terms, places: list[Ints]) -> None:
    """A large term and its opposite anywhere, every other lane within reach below them."""
    anchor = terms.anchor()
    terms.exponent[:] = anchor[:, None] - terms.rng.integers(0, max(terms.places.reach) + 4, terms.exponent.shape)
    kind, sign = terms.choose(ONE, FULL, ANY), terms.flags()
    terms.put(places[0], anchor, sign, kind)
    terms.put(places[1], anchor, ~sign, kind)


def crowd(terms: Terms, places: list[Ints]) -> None:
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


def dust(terms: Terms, places: list[Ints]) -> None:
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


def heap(terms: Terms, places: list[Ints]) -> None:
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


def brim(terms: Terms, places: list[Ints]) -> None:
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


def flushes(terms: Terms, places: list[Ints]) -> None:
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


def blocks(terms: Terms, places: list[Ints]) -> None:
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


def span(terms: Terms, places: list[Ints]) -> None:
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


def raised(terms: Terms, places: list[Ints]) -> None:
    """Products of one sign in every lane of the first steps, most about the largest, one in four down to the last place
    of their sum, which is far above each; in a later step one product about the last kept bits below that sum: what c
    does elsewhere, where there is none."""
    step = np.zeros(terms.instruction.k, np.int64)
    for number, lanes in enumerate(terms.steps):
        step[list(lanes)] = number
    first = 1 + (terms.rng.random(terms.count) * (len(terms.steps) - 1)).astype(np.int64)
    large = step < first[:, None]
    sum_of = terms.highest() + np.ceil(np.log2(large.sum(axis=1))).astype(np.int64)
    reach = sum_of + 1 - terms.d.fraction_bits
    lower = terms.highest() - (terms.rng.random(large.shape) * (terms.highest() - reach)[:, None]).astype(np.int64)
    some = terms.rng.integers(0, 4, large.shape) == 0
    terms.exponent[:] = np.where(large, np.where(some, lower, terms.highest()), ABSENT)
    terms.negative[:] = terms.flags()[:, None]
    terms.kind[:] = np.where(terms.flags((terms.count, 1)), ANY, terms.kind)
    later = np.argsort(terms.rng.random(large.shape) + large, axis=1)[:, 0]
    low = sum_of - terms.pick(terms.places.reach) + terms.jitter(-1, 3)
    terms.put(later, low, terms.flags(), terms.choose(ANY, FULL, NEXT, FEW))


def sums(terms: Terms, places: list[Ints]) -> None:
    """Every lane anything within some binades; c follows once the sum of some of them is known."""
    width = terms.rng.integers(1, 10, (terms.count, 1))
    below = (terms.rng.random(terms.exponent.shape) * width).astype(np.int64)
    low, high = terms.a.min_exponent + terms.b.min_exponent, terms.highest()
    anchor = np.clip(terms.anchor(), low, high)
    anchor = np.where(terms.flags(), anchor, np.minimum(low + width[:, 0] + terms.jitter(0, 2), high))
    terms.exponent[:] = anchor[:, None] - below
    terms.kind[:] = np.where(terms.flags((terms.count, 1)), ANY, terms.kind)


def _two(terms: Terms, count: int) -> tuple[Ints, Ints]:
    """Two of so many places of every vector, neighbours half of the time; one where there is one."""
    order = np.argsort(terms.rng.random((terms.count, count)), axis=1)
    first = order[:, 0]
    beside = np.where((first ^ 1) < count, first ^ 1, order[:, -1])
    return first, np.where(terms.flags(), beside, order[:, -1])
