"""Which orders a product adds in at many shapes: which elements share one, what changes them, and whose they are.

At each K the same few rows x and columns y are asked at every shape, so that elements of one order have the same bits
wherever they stand.  Each order is then read where most elements have it, and orders of several K that one rule gives
are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.carrying import by_rule, plainness
from mmaprobe.derivation.schedules.dealings import fits
from mmaprobe.derivation.schedules.pairs import ClassView
from mmaprobe.derivation.schedules.search import OrderRead, read_order
from mmaprobe.derivation.schedules.values import Formats, agreeing, computed
from mmaprobe.devices.products import MatrixProduct
from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import GemmKernel, Schedule
from mmaprobe.probing.gemm.calls import CallsSpentError, ProductCalls
from mmaprobe.probing.gemm.elements import EqualRows, ask_equal_rows, value_rows
from mmaprobe.showing import counted

BUDGET = 4000
"""Calls at most, where nothing else is said."""
MOST_SHAPES = 400
"""Shapes of one map at most."""
MOST_RULES = 400
"""Rules of an order that are kept, the plainest of them."""

Shape = tuple[int, int, int]
Codes = tuple[int, ...]
"""What an element answered to the calls of its K: the same of two elements, the same order, as far as these show."""


@dataclass
class MappedOrder:
    """An order of adding: where it was seen, by K, and the kernels by rule that agree with all of them; none where it
    was ``read`` and is outside of the grammar, or was not read."""

    seen: dict[int, set[Codes]]
    kernels: list[GemmKernel] = field(default_factory=list)
    read: bool = False


@dataclass
class MappedShape:
    """One shape: ``number`` (M, N) says the order of each element, ``rows`` how often each pattern of a row is there,
    by its number; ``schedules`` are those that give every bit."""

    threads: int
    shape: Shape
    asked: list[EqualRows]
    codes: NDArray[np.uint64]
    number: NDArray[np.intp]
    rows: dict[int, int] = field(default_factory=dict)
    schedules: tuple[str, ...] = ()

    def elements(self) -> dict[int, int]:
        """How many elements have each order, the most first."""
        numbers, counts = np.unique(self.number, return_counts=True)
        return {int(numbers[i]): int(counts[i]) for i in np.argsort(-counts, kind="stable")}


@dataclass(frozen=True)
class RowWitness:
    """A row x and a column y whose element is ``answers`` at two places (shape, row, column): no batch-invariance."""

    places: tuple[tuple[Shape, int, int], tuple[Shape, int, int]]
    answers: tuple[int, int]
    x: tuple[int, ...]
    y: tuple[int, ...]


@dataclass
class ProductMap:
    """``orders`` by number; ``absent``: shapes that the product has not, with the reason; ``unread``: why not every
    order was read."""

    product: str
    seed: int
    rows: list[MappedShape] = field(default_factory=list)
    orders: list[MappedOrder] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    unread: str = ""
    calls: int = 0

    def batches(self) -> Iterator[tuple[tuple[int, int, int], list[MappedShape]]]:
        """The shapes that differ in M alone, by threads, N and K."""
        found = dict[tuple[int, int, int], list[MappedShape]]()
        for each in self.rows:
            found.setdefault((each.threads, *each.shape[1:]), []).append(each)
        yield from found.items()


def map_product(
    products: Mapping[int, MatrixProduct],
    shapes: Sequence[Shape],
    schedules: Mapping[str, Schedule],
    budget: int = BUDGET,
    seed: int = 0,
    named: str = "",
) -> ProductMap:
    """A map of the product ``named`` so, which is given for each number of threads (0: as its name says).

    UsageError for too many shapes, or formats that cannot be asked; DeviceError where a product fails.
    """
    if len(shapes) * len(products) > MOST_SHAPES:
        raise UsageError(f"{len(shapes) * len(products):,} shapes; a map has at most {MOST_SHAPES}")
    every = {threads: ProductCalls(product, budget) for threads, product in products.items()}
    first = next(iter(products.values()))
    if every[min(every)].of_integers:
        raise UsageError(
            f"{first.name}: integers that wrap have no order to map; what their sums saturate in is found with: "
            f"mmaprobe gemm identify '{first.name}'"
        )
    found = ProductMap(named or first.name, seed)
    try:
        for k in sorted({shape[2] for shape in shapes}, reverse=True):  # of small K more rules are alike
            _ask(found, every, [shape for shape in shapes if shape[2] == k], seed)
            _read(found, every, k, seed)
    except CallsSpentError:
        found.unread = f"a budget of {counted(budget, 'call')} was too small; more with --budget"
    for row in found.rows:
        row.schedules = tuple(name for name, each in schedules.items() if _gives(each, row, first))
    _number_rows(found)
    found.calls = sum(calls.count for calls in every.values())
    found.rows.sort(key=lambda row: (row.threads, shapes.index(row.shape)))
    return found


def _ask(found: ProductMap, every: Mapping[int, ProductCalls], shapes: Sequence[Shape], seed: int) -> None:
    """What every shape of one K answers; elements that answer alike have one number."""
    for threads, calls in every.items():
        k = shapes[0][2]
        rng = np.random.default_rng((seed, k))
        values = value_rows(calls, k, rng)
        for m, n, _ in shapes:
            try:
                asked = [ask_equal_rows(calls, m, n, x, y) for x, y in values]
            except UsageError as error:
                found.absent.append(f"{m} x {n} x {k}: {error}")
                continue
            codes = np.stack([each.d.astype(np.uint64) for each in asked], axis=-1)
            found.rows.append(MappedShape(threads, (m, n, k), asked, codes, _numbers(found, codes, k)))


def _numbers(found: ProductMap, codes: NDArray[np.uint64], k: int) -> NDArray[np.intp]:
    """The number of each element's order; one that was not seen at this K is a new one."""
    kinds, inverse = np.unique(codes.reshape(-1, codes.shape[-1]), axis=0, return_inverse=True)
    numbers = []
    for kind in map(tuple, kinds.tolist()):
        known = next((i for i, each in enumerate(found.orders) if kind in each.seen.get(k, ())), len(found.orders))
        if known == len(found.orders):
            found.orders.append(MappedOrder({k: {kind}}))
        numbers.append(known)
    return np.array(numbers, np.intp)[inverse.ravel()].reshape(codes.shape[:2])


def _read(found: ProductMap, every: Mapping[int, ProductCalls], k: int, seed: int) -> None:
    """The kernels of every order of this K, read where the most elements have it; one that a known rule gives is it."""
    rows = [row for row in found.rows if row.shape[2] == k]
    for number in sorted({int(each) for row in rows for each in np.unique(row.number)}):
        row = max(rows, key=lambda each: int((each.number == number).sum()))
        mask, calls = row.number == number, every[row.threads]
        if k < 2:
            continue
        formats = Formats(calls.a.name, calls.b.name, calls.d.name)
        try:
            reading = read_order(ClassView(calls, mask), k, formats.sums[0], np.random.default_rng((seed, number)))
        except UsageError as error:
            found.unread = str(error)
            continue
        order = found.orders[number]
        order.read = True
        rules = sorted(by_rule(reading), key=plainness)[:MOST_RULES]
        steps = agreeing(rules[0], formats, row.asked, mask) if rules else []
        order.kernels = [each for rule in rules for each in _like(rule, steps)]
        _merge(found, number, reading, {_ways(each) for each in steps})


def _ways(kernel: GemmKernel) -> tuple[object, ...]:
    """What a kernel has besides its order."""
    own, join = kernel.accumulators, kernel.join
    return kernel.step, own.format, own.start, join.format, join.start


def _like(kernel: GemmKernel, steps: Sequence[GemmKernel]) -> Iterator[GemmKernel]:
    """A kernel with the steps, starts and formats of others."""
    for each in steps:
        own, join = each.accumulators, each.join
        yield replace(
            kernel,
            accumulators=replace(kernel.accumulators, format=own.format, start=own.start),
            join=replace(kernel.join, format=join.format, start=join.start),
            step=each.step,
            promotion=kernel.promotion and replace(kernel.promotion, format=own.format),
        )


def _merge(found: ProductMap, number: int, reading: OrderRead, ways: set[tuple[object, ...]]) -> None:
    """The order is one of another K where a rule of that one gives it, too; the rules that give both are left of it."""
    order = found.orders[number]
    for known, each in enumerate(found.orders):
        if each.seen.keys() & order.seen.keys():
            continue  # two of one K are two
        both = [made for made in each.kernels if _ways(made) in ways and fits(made, reading.pairs, reading.k)]
        if both:
            each.kernels = both
            each.seen |= order.seen
            order.seen = {}
            for row in found.rows:
                row.number[row.number == number] = known
            return


def _gives(schedule: Schedule, row: MappedShape, product: MatrixProduct) -> bool:
    """Whether a schedule gives every bit of what a shape answered."""
    formats = Formats(product.a, product.b, product.d)
    if (
        (schedule.a, schedule.b, schedule.d) != (formats.a, formats.b, formats.d)
        or schedule.inputs
        or schedule.epilogue
    ):
        return False
    m, n, k = row.shape
    try:
        schedule.scope.check(m, n, k)
    except UsageError:
        return False
    expected = dict[GemmKernel, NDArray[np.uint64]]()
    for kernel, rows, columns in schedule.areas(m, n, k):
        if kernel not in expected:
            expected[kernel] = np.array(computed(kernel, formats, row.asked), np.uint64)
        if (row.codes[np.ix_(rows, columns)] != expected[kernel]).any():
            return False
    return True


def _number_rows(found: ProductMap) -> None:
    """Rows of one N and K that have the same orders in all columns have one number, whatever M and threads."""
    known = dict[tuple[int, int, bytes], int]()
    for row in found.rows:
        for pattern in row.number:
            number = known.setdefault((*row.shape[1:], pattern.tobytes()), len(known))
            row.rows[number] = row.rows.get(number, 0) + 1


def row_witness(rows: Sequence[MappedShape]) -> RowWitness | None:
    """Of shapes that differ in M alone two elements of one column whose bits differ; None where a row has the same
    bits in all of them."""
    first = rows[0]
    for row in rows:
        wrong = np.argwhere((row.codes != first.codes[0]).any(axis=-1))
        if len(wrong):
            i, j = map(int, wrong[0])
            call = int(np.flatnonzero(row.codes[i, j] != first.codes[0, j])[0])
            asked = row.asked[call]
            answers = int(first.codes[0, j, call]), int(row.codes[i, j, call])
            places = (first.shape, 0, j), (row.shape, i, j)
            return RowWitness(places, answers, tuple(asked.x.tolist()), tuple(asked.y.tolist()))
    return None


@dataclass(frozen=True)
class AxisChange:
    """Two shapes that differ in one axis, the nearest at which the orders are others; None: they never are."""

    axis: str
    at: tuple[MappedShape, MappedShape] | None


def axis_changes(found: ProductMap) -> list[AxisChange]:
    """For every axis that has several values, whether it changes which orders there are."""
    values = {
        name: [(row.threads, *row.shape)[place] for row in found.rows]
        for place, name in enumerate(("threads", "M", "N", "K"))
    }
    changes = []
    for place, (name, every) in enumerate(values.items()):
        if len(set(every)) < 2:
            continue
        changes.append(AxisChange(name, _first_change(found.rows, place)))
    return changes


def _first_change(rows: Sequence[MappedShape], place: int) -> tuple[MappedShape, MappedShape] | None:
    def others(row: MappedShape) -> tuple[int, ...]:
        key = [row.threads, *row.shape]
        del key[place]
        return tuple(key)

    def along(row: MappedShape) -> int:
        return (row.threads, *row.shape)[place]

    groups = dict[tuple[int, ...], list[MappedShape]]()
    for row in rows:
        groups.setdefault(others(row), []).append(row)
    for group in groups.values():
        ordered = sorted(group, key=along)
        for before, after in pairwise(ordered):
            if before.elements().keys() != after.elements().keys():
                return before, after
    return None
