"""Kernels found at one K to rules for every K: other K are asked where the rules left foretell different orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from mmaprobe.derivation.schedules.cuts import ORDERS, Order, agrees, rules
from mmaprobe.derivation.schedules.dealings import fits
from mmaprobe.derivation.schedules.orders import order_of
from mmaprobe.derivation.schedules.pairs import ClassView, joint
from mmaprobe.derivation.schedules.search import OrderRead, ask_grid, read_order, sampled
from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import GemmKernel, Ranges

LARGEST = 1 << 14
"""Largest K that is asked to tell rules apart, but for the one that was named."""
FACTORS = (4, 13)
"""Times the K named, at which a cut into less than three ranges is looked at again."""
POOL = 24
"""Ks that rules are compared at before one is asked."""
ROUNDS = 12
"""Ks that are asked at most to tell rules apart."""
BETWEEN = 24
"""Ks between one and two lengths at which rules are compared before one is asked."""
LENGTHS = 4
"""Lengths of rules about which K are compared."""
REPRESENTED = 40
"""Rules that foretell different orders, of which a call is made to tell apart as many as can be."""
PLAIN: tuple[Order, ...] = ("chain", "pairwise")
"""Orders in which three ranges are added alike."""
PREFERENCE = ("whole", "uniform", "residue_first", "halve_short", "halve_last", "ceil_split", "given")
"""Of rules that are alike wherever they were compared, the first."""
WHOLE = Ranges()
"""Stands for all rules that cut a K alike."""
Reading = Callable[[ClassView, int, str, np.random.Generator], OrderRead]
"""What reads the order of a class at one K."""


class Carried:
    """Readings of one class at several K, and the kernels by rule that agree with all of them."""

    def __init__(
        self, view: ClassView, first: OrderRead, fmt: str, rng: np.random.Generator, read: Reading = read_order
    ) -> None:
        self._view, self._fmt, self._rng, self._read_order = view, fmt, rng, read
        self.readings = [first]
        self.living = list[GemmKernel]()
        self._spent = set[int]()
        """Ks at which no call tells more apart."""

    def settle(self) -> None:
        """Ask other K until the kernels left foretell the same at all of them; none may be left."""
        k = self.readings[0].k
        self._hear(k)
        for factor in FACTORS:
            largest = max(self.readings, key=lambda each: each.k)
            own = self.living or (largest.kernels if len(self.readings) == 1 else ())
            if own and max(len(each.ranges.sizes(largest.k)) for each in own) < 3:
                self._read(min(factor * k + 3, max(LARGEST, k)))
        if len(self.readings) == 1:
            self.living = self._by_rule(self.readings[0], ())
        for _ in range(ROUNDS):
            groups, at = self._most_different()
            if len(groups) < 2:
                break
            if not self._ask(at, groups):
                self._spent.add(at)
        self.living.sort(key=plainness)

    def _hear(self, k: int) -> None:
        """Calls at other K that were made for other classes."""
        told = {at: joint(each) for at, each in self._view.overheard().items() if at != k}
        heard = [OrderRead(at, pairs, ()) for at, pairs in told.items() if len(pairs) and not pairs.misfits]
        self.living = self._by_rule(self.readings[0], heard) if heard else []
        if self.living:
            self.readings += [replace(each, kernels=(self.living[0],)) for each in heard]

    def _by_rule(self, reading: OrderRead, others: Sequence[OrderRead]) -> list[GemmKernel]:
        """The kernels of a reading by every rule that the others leave."""
        found = by_rule(reading, others)
        for other in others:
            found = fitting(found, other)
        return found

    def _read(self, k: int) -> None:
        """The order at a larger K, from the beginning; rules are those that both K leave."""
        if any(each.k == k for each in self.readings):
            return
        try:
            found = self._read_order(self._view, k, self._fmt, self._rng)
        except UsageError:
            return  # the product has no such K
        self.living = self._by_rule(found, self.readings)
        self.readings = [*self.readings, found]

    def _most_different(self) -> tuple[list[list[GemmKernel]], int]:
        """Of some K the one at which the kernels foretell most different orders, and those alike there."""
        k = self.readings[0].k
        largest = max(each.k for each in self.readings)
        pool = [each for length in self._lengths() for each in self._between(length)]
        pool += [*self._rng.integers(2, min(largest, LARGEST) + 1, POOL).tolist(), 2 * k + 1, k // 2 + 1, k - 1, k + 5]
        pool += [each for each in (4 * k + 1, 9 * k + 2) if each <= LARGEST]
        best: tuple[list[list[GemmKernel]], int] = ([], k)
        for each in sorted({*map(int, pool)} - self._spent):
            groups = alike(self.living, each, self._rng) if each > 1 else []
            if len(groups) > len(best[0]):
                best = groups, each
        return best

    def _lengths(self) -> list[int]:
        """A few of the lengths that the rules say: of K between one and two of them some are cut otherwise."""
        return sorted({each.ranges.length for each in self.living if each.ranges.length})[:LENGTHS]

    def _between(self, length: int) -> list[int]:
        """Of K between one and two lengths the one that the rules left cut most differently."""
        tried = np.unique(np.linspace(length + 1, 2 * length - 1, BETWEEN).astype(int) | 1).tolist()
        cuts = {each.ranges: None for each in self.living}
        return sorted(tried, key=lambda k: -len({each.sizes(k) for each in cuts}))[:1]

    def _ask(self, k: int, groups: list[list[GemmKernel]]) -> bool:
        """Ask a K where groups differ; whether that left fewer of them."""
        shown = groups[:REPRESENTED]
        p, q = sampled(k, self._rng)
        table = np.array([order_of(group[0], k).sizes(p, q) for group in shown])
        where = self._rng.permutation(np.flatnonzero((table != table[0]).any(0)))
        if not len(where):
            return False
        try:
            told = ask_grid(self._view, k, p[where], q[where])
        except UsageError:
            return False
        left = [group for group in groups if fits(group[0], told, k) and not told.misfits]
        self.readings.append(OrderRead(k, told, tuple(group[0] for group in left)))
        self.living = [each for group in left for each in group]
        return 0 < len(left) < len(groups)


def alike(living: Sequence[GemmKernel], k: int, rng: np.random.Generator) -> list[list[GemmKernel]]:
    """The kernels in groups that foretell the same sizes at K, wherever they were compared."""
    same = dict[object, list[GemmKernel]]()
    cut = {ranges: ranges.sizes(k) for ranges in {each.ranges for each in living}}
    for each in living:
        lengths = cut[each.ranges]
        key = (lengths, each.join.order if len(lengths) > 2 else "", each.accumulators, each.promotion)
        same.setdefault(key, []).append(each)
    if len(same) > 4 * REPRESENTED:
        return list(same.values())
    p, q = sampled(k, rng)
    merged = dict[bytes, list[GemmKernel]]()
    for group in same.values():
        merged.setdefault(order_of(group[0], k).sizes(p, q).tobytes(), []).extend(group)
    return list(merged.values())


def fitting(rules: Sequence[GemmKernel], reading: OrderRead) -> list[GemmKernel]:
    """The kernels that say the sizes of a reading; of those that cut its K alike one is compared."""
    told = dict[tuple[tuple[int, ...], GemmKernel], bool]()
    left = []
    for each in rules:
        key = each.ranges.sizes(reading.k), replace(each, ranges=WHOLE)
        if key not in told:
            told[key] = fits(each, reading.pairs, reading.k)
        if told[key]:
            left.append(each)
    return left


def by_rule(reading: OrderRead, others: Sequence[OrderRead] = ()) -> list[GemmKernel]:
    """The kernels of a reading with every rule that cuts its K so, in every order that is alike for so many ranges, and
    whose ranges the answers at other K are of: two ranges are cut so by thousands of rules."""
    found, known = dict[GemmKernel, None](), dict[tuple[object, ...], list[tuple[Ranges, Order]]]()
    for kernel in reading.kernels:
        lengths, own = kernel.ranges.lengths, kernel.join.order
        orders = ORDERS if len(lengths) == 2 else PLAIN if len(lengths) == 3 and own in PLAIN else ()
        if (lengths, own) not in known:
            every = product(rules(lengths, reading.k), dict.fromkeys((own, *orders)))
            known[lengths, own] = _cutting(every, others)
        for rule, order in known[lengths, own]:
            found[replace(kernel, ranges=rule, join=replace(kernel.join, order=order))] = None
    return list(found)


def _cutting(every: Iterable[tuple[Ranges, Order]], others: Sequence[OrderRead]) -> list[tuple[Ranges, Order]]:
    """The rules and orders of ranges that agree with the answers at other K."""
    told, left = dict[tuple[object, ...], bool](), []
    for rule, order in every:
        for other in others:
            key = other.k, (sizes := rule.sizes(other.k)), order
            if key not in told:
                told[key] = agrees(sizes, order, other.pairs, other.k)
            if not told[key]:
                break
        else:
            left.append((rule, order))
    return left


def plainness(kernel: GemmKernel) -> tuple[int, ...]:
    """The plainest kernel first: rule, order, accumulators, and the smallest numbers."""
    ranges, own = kernel.ranges, kernel.accumulators
    return (
        int(kernel.promotion is not None), PREFERENCE.index(ranges.cut), int(kernel.join.order != "chain"), own.count,
        own.run, own.late, own.block, int(own.join != "chain"), int(own.rest != "first"), int(ranges.half == "up"),
        ranges.unit, ranges.length or 0, ranges.parts or 0,
    )  # fmt: skip
