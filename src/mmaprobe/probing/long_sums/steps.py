"""What a long sum does at each place of its tree: bits that an addition keeps, products rounded before they are added.

* An addition of two keeps p bits where 1 beside 2**-(p-1) comes through and 1
  beside 2**-p does not; 1 is taken away again where the sum joins the next one.
* The product (1 + 2**-h)**2 = 1 + 2**(1-h) + 2**-2h beside -(1 + 2**(1-h))
  leaves 2**-2h where it enters the addition unrounded (a fused multiply-add,
  or a product that the format of the sum can hold), nothing where it was
  rounded.  h is the smallest for which the product has more bits than the sum
  keeps, or the largest that the operands allow.

That takes 2 calls a node and 1 a lane.  The last addition of all is rounded to
the result in any case: it is taken to keep as many bits as those below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mmaprobe.probing.long_sums.masked_calls import MaskedCalls, Terms
from mmaprobe.probing.long_sums.tree_arrays import TreeArrays
from mmaprobe.probing.session.exact_values import power


@dataclass(frozen=True)
class Arithmetic:
    """``bits[n]`` kept by each addition (None: not found), ``unrounded`` lanes, and those that could not be told."""

    bits: tuple[int | None, ...]
    unrounded: frozenset[int]
    open_lanes: frozenset[int]

    @property
    def complete(self) -> bool:
        return not self.open_lanes and None not in self.bits


@dataclass(frozen=True)
class _Place:
    """A leaf on each side of an addition, and one that joins next (None: the addition is the last)."""

    node: int
    one: int
    other: int
    away: int | None


def measure_steps(calls: MaskedCalls, tree: TreeArrays) -> Arithmetic:
    """Bits of every addition of two terms, and how each product enters; OverBudgetError where the calls run out."""
    places = [_place(tree, node) for node in range(tree.leaves, tree.root + 1) if len(tree.children(node)) == 2]
    inner = [place for place in places if place.away is not None]
    bits: dict[int, int | None] = dict.fromkeys(range(tree.leaves, tree.root + 1))
    bits |= _bits(calls, inner)
    if tree.leaves > 1 and len(tree.children(tree.root)) == 2:
        below = [bits[child] for child in tree.children(tree.root) if child >= tree.leaves]
        bits[tree.root] = max((b for b in below if b is not None), default=calls.formats["d"].fraction_bits + 1)
    unrounded, told = _products(calls, tree, bits)
    lanes = frozenset(range(calls.instruction.k))
    if calls.plain:  # no products: every term is its own
        return Arithmetic(tuple(bits.values()), lanes, frozenset())
    return Arithmetic(tuple(bits.values()), unrounded, lanes - told)


def _place(tree: TreeArrays, node: int) -> _Place:
    one, other = tree.children(node)
    above = tree.parents[node]
    beside = next((child for child in tree.children(above) if child != node), None) if above >= 0 else None
    return _Place(node, tree.firsts[one], tree.firsts[other], None if beside is None else tree.firsts[beside])


def _bits(calls: MaskedCalls, places: Sequence[_Place]) -> dict[int, int | None]:
    """The bits of each addition: those of one found by halving are tried on all, then those of one that differs, ..."""
    found: dict[int, int | None] = {}
    left = list(places)
    while left:
        bits = _halve(calls, left[0])
        tried = left if bits is not None else left[:1]
        kept = _kept(calls, [(place, w) for place in tried for w in (bits - 1, bits)]) if bits is not None else []
        fits = [place for n, place in enumerate(tried) if bits is None or (kept[2 * n] and not kept[2 * n + 1])]
        found |= {place.node: bits for place in (fits or left[:1])}
        left = [place for place in left if place.node not in found]
    return found


def _halve(calls: MaskedCalls, place: _Place) -> int | None:
    low, high = 0, calls.window - 4
    if not _kept(calls, [(place, low + 1)])[0] or _kept(calls, [(place, high)])[0]:
        return None
    low += 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _kept(calls, [(place, middle)])[0] else (low, middle)
    return high


def _kept(calls: MaskedCalls, asked: Sequence[tuple[_Place, int]]) -> list[bool]:
    """Whether 2**-w comes through beside 1 at each place (both far up, so that small ones exist)."""
    top = calls.high - 2
    vectors = []
    for place, w in asked:
        terms = {place.one: power(top), place.other: power(top - w)}
        vectors.append(terms if place.away is None else terms | {place.away: -power(top)})
    answers = calls.answers([({}, vectors)])
    return [answer == calls.code(power(top - w)) for answer, (_, w) in zip(answers, asked, strict=True)]


def _products(
    calls: MaskedCalls, tree: TreeArrays, bits: dict[int, int | None]
) -> tuple[frozenset[int], frozenset[int]]:
    """Lanes whose product enters unrounded, and all lanes of which that was told."""
    lanes, vectors, marks = list[int](), list[Terms](), list[Fraction]()
    room = min(calls.formats["a"].fraction_bits, calls.formats["b"].fraction_bits)
    for lane in range(0 if calls.plain else calls.instruction.k):
        above = tree.parents[lane]
        width = bits.get(above)
        if width is None or above < 0 or room < 2:
            continue
        h = min(room, (width + 1) // 2)
        beside = next(tree.firsts[child] for child in tree.children(above) if child != lane)
        product = (1 + power(-h)) ** 2
        lanes.append(lane)
        marks.append(power(-2 * h))
        vectors.append({lane: product, beside: power(-2 * h) - product})
    zero = calls.code(Fraction(0))
    answers = calls.answers([({}, vectors)])
    whole = frozenset(k for k, answer, mark in zip(lanes, answers, marks, strict=True) if answer == calls.code(mark))
    none = frozenset(k for k, answer in zip(lanes, answers, strict=True) if answer == zero)
    return whole, whole | none


def arithmetic_json(tree: TreeArrays, lanes: int, found: Arithmetic) -> dict[str, object]:
    """``bits`` of most additions; the others, each by leaves that meet there; lanes rounded first, and not told."""
    bits = Counter(found.bits).most_common(1)[0][0] if found.bits else None
    others = [
        {"leaves": [tree.firsts[child] for child in tree.children(node)], "bits": kept}
        for node, kept in enumerate(found.bits, tree.leaves)
        if kept != bits
    ]
    rounded = sorted(set(range(lanes)) - found.unrounded - found.open_lanes)
    return {"bits": bits, "other_bits": others, "rounded_products": rounded, "open_products": sorted(found.open_lanes)}
