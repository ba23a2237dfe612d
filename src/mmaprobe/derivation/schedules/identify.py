"""From a product that can be asked to its schedule: orders of its elements, rules over K, regions, and what holds."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.answers import computed
from mmaprobe.derivation.schedules.carrying import Carried
from mmaprobe.derivation.schedules.certificate import FieldNeighbour
from mmaprobe.derivation.schedules.dealings import fits
from mmaprobe.derivation.schedules.holding import Held, hold
from mmaprobe.derivation.schedules.integers import identify_integers
from mmaprobe.derivation.schedules.pairs import ClassView, Heard, view_of
from mmaprobe.derivation.schedules.quantising import identify_quantised
from mmaprobe.derivation.schedules.regions import Map, fit_regions, kernels_by_length
from mmaprobe.derivation.schedules.search import OrderRead, read_order
from mmaprobe.derivation.schedules.settling import settle
from mmaprobe.derivation.schedules.stepping import find_stepped, holds_at_edges
from mmaprobe.derivation.schedules.values import Formats, agreeing, filled_up, telling
from mmaprobe.devices.products import MatrixProduct
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.schedule import GemmKernel, Region, Schedule, Scope
from mmaprobe.probing.gemm.calls import CallsSpentError, Hearing, ProductCalls
from mmaprobe.probing.gemm.elements import (
    SPREADS,
    EqualRows,
    MixedRows,
    ask_equal_rows,
    ask_mixed_rows,
    classes,
    draw_rows,
    value_rows,
)
from mmaprobe.probing.gemm.manners import MannerFinding, ask_manners
from mmaprobe.probing.gemm.soundness import check_soundness
from mmaprobe.showing import counted

BUDGET = 2000
"""Calls at most, where nothing else is said."""
MOST_KERNELS = 12
"""Kernels of one product that are looked for."""
MORE = 4
"""Calls of this kind that are made more where two steps are left."""
BISECTED = 48
"""Shapes in between at most that are looked at for where kernels end."""
RULES = 4
"""Rules that are tried one after the other where answers for the neighbours of one refute it."""
APART = 2
"""Calls of equal rows by which elements of one order are told apart first."""
MIXED = 4
"""Different rows, and columns, of a call that tells which known kernel elements are of."""
DRAWN = 24
"""Times at most that these are drawn until all known kernels answer each pair in other bits; else one pair is asked of
all elements."""
EDGES = ((31, 31), (17, -13))
"""What is added to M and N for other shapes whose elements are looked at, so that no piece of an axis is missed."""
OTHERS = ((29, 700), (20, 900), (650, 12), (37, 53), (23, 61), (7, 5), (3, 18))
"""Wide, high and small shapes that are looked at too, before those: an order that a few elements have, at an odd edge,
takes hundreds of calls, and they are cheap there."""

Rows = tuple[list[Bits], list[Bits]]
"""Rows x and columns y."""
Status = Literal["exact", "bounded", "wrong"]


@dataclass
class ElementClass:
    """A class of elements: where it was asked, its readings, and the kernel that computes it; None: none was found."""

    mask: NDArray[np.bool_]
    shape: tuple[int, int]
    asked: list[EqualRows]
    readings: list[OrderRead]
    kernel: GemmKernel | None
    neighbours: list[FieldNeighbour] = field(default_factory=list)


@dataclass
class Identification:
    """What was found: ``exact``, a schedule that holds at every shape tried; ``bounded``, what of it was read and
    ``why`` there is no more; ``wrong``: the product is none, ``why`` says how."""

    product: MatrixProduct
    status: Status = "bounded"
    schedule: Schedule | None = None
    kinds: list[ElementClass] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    calls: int = 0
    manners: list[MannerFinding] = field(default_factory=list)
    neighbours: list[FieldNeighbour] = field(default_factory=list)
    """Of sums of integers, which have no orders of elements."""


def identify(
    product: MatrixProduct, budget: int = BUDGET, seed: int = 0, hearing: Hearing | None = None
) -> Identification:
    """The schedule of a product; see ``Identification``.  ``hearing`` is told what is looked for, and of every call.

    UnrepeatedError where the same call is answered in two ways, DeviceError where the product fails, UsageError for
    formats that cannot be asked so.
    """
    calls, found = ProductCalls(product, budget, hearing), Identification(product)
    try:
        rng = np.random.default_rng(seed)
        if calls.of_integers:
            _of_integers(calls, found, rng)
        elif product.shape[2] < 2:
            raise UsageError(f"{product.name}: K is 1, and one product has no order; name another, as in ...&k=1000")
        else:
            _Search(calls, found, rng).run()
    except CallsSpentError:
        found.status = "bounded"
        found.why.append(f"a budget of {counted(budget, 'call')} was too small; more with --budget")
    found.calls = calls.count
    return found


def _of_integers(calls: ProductCalls, found: Identification, rng: np.random.Generator) -> None:
    """The same of integers."""

    def scope(shapes: Sequence[tuple[int, int, int]], held: int) -> Scope:
        return scope_of(calls.product, np.min(shapes, axis=0).tolist(), np.max(shapes, axis=0).tolist(), held)

    read = (identify_quantised if calls.a.is_float else identify_integers)(calls, scope, rng)
    found.why, found.schedule, found.held, found.neighbours = read.why, read.schedule, read.held, read.neighbours
    found.status = "wrong" if read.wrong else "exact" if read.exact else "bounded"
    if read.wrong:
        return
    found.manners = ask_manners(calls, calls.product.shape, np.random.default_rng(calls.product.shape[2]))
    unwritten = [each.said for each in found.manners if (each.question, each.status) == ("written", "differs")]
    if unwritten:
        found.status, found.schedule, found.why = "wrong", None, unwritten


def scope_of(product: MatrixProduct, least: Sequence[int], most: Sequence[int], held: int) -> Scope:
    """What was asked of a product: the smallest and largest M, N and K."""
    m, n, k = product.shape
    return Scope(
        library=product.name.partition(":")[2].partition(":")[0] or product.name, version=product.version,
        call=product.name.partition("?")[0], threads=product.threads or 1, environment=product.environment,
        processor=platform.machine(),
        source=f"identified at {m} x {n} x {k}, held at {counted(held, 'other shape')}",
        least_m=least[0], most_m=most[0], least_n=least[1], most_n=most[1], least_k=least[2], most_k=most[2],
    )  # fmt: skip


class _Search:
    """One identification under way."""

    def __init__(self, calls: ProductCalls, found: Identification, rng: np.random.Generator) -> None:
        self._calls, self._found, self._rng = calls, found, rng
        self._formats = Formats(calls.product.a, calls.product.b, calls.product.d)
        k = calls.product.shape[2]
        self._k = k
        self._rows = value_rows(calls, k, rng)
        self._maps: dict[tuple[int, int], Map] = {}
        self._apart: dict[tuple[int, int], str] = {}
        self._heard: dict[tuple[int, ...], Heard] = {}
        self._drawn: dict[int, tuple[Sequence[GemmKernel], Rows]] = {}

    def run(self) -> None:
        """All stages; what stops one is said in ``why``."""
        found, (m, n, k) = self._found, self._calls.product.shape
        self._calls.say("whether it is a product")
        found.why = check_soundness(self._calls, m, n, k, self._rng)
        found.manners = ask_manners(self._calls, (m, n, k), np.random.default_rng(k))
        found.why += [each.said for each in found.manners if (each.question, each.status) == ("written", "differs")]
        if found.why:
            found.status = "wrong"
            return
        self._look_at(m, n)
        if found.why:
            return
        for shape in (*OTHERS, *((m + i, n + j) for i, j in EDGES)):
            if min(shape) > 1:
                self._look_beside(*shape)
        self._bisect()
        regions = self._regions()
        if regions is None:
            found.why += [*self._apart.values(), "no rule that was tried says which elements each order is of"]
            return
        self._conclude(regions)

    def _bisect(self) -> None:
        """Where every D is of one kernel, by its columns or its rows, look at shapes in between until it is known where
        each kernel ends."""
        for _ in range(BISECTED):
            axis, kernels = kernels_by_length([*self._maps.values()]) or (0, {})
            gaps = [(a, b) for a, b in pairwise(kernels) if kernels[a] != kernels[b] and b - a > 1]
            if not gaps:
                return
            shape, asked = [*self._calls.product.shape[:2]], len(self._maps)
            shape[axis] = sum(gaps[0]) // 2
            self._look_beside(*shape)
            if len(self._maps) == asked or self._apart:
                return  # the product has no such shape, or an order there that no kernel has

    def _look_beside(self, m: int, n: int) -> None:
        """The same as ``_look_at`` of a shape that may have orders which are not found."""
        self._look_at(m, n)
        if self._found.why:
            self._apart[m, n] = self._found.why.pop()
            self._found.why.clear()

    def _look_at(self, m: int, n: int) -> None:
        """The kernels of all elements at one shape; those that are new are read there."""
        self._calls.say(f"elements of one order at {m} x {n}")
        try:
            number = self._known(m, n)
            if (number >= 0).all():
                self._maps[m, n] = number
                return
            asked = self._equal_rows(number < 0)
        except UsageError:
            return  # the product has no such shape
        groups = classes(asked)
        for each in np.unique(groups[number < 0]):
            mask = groups == each
            if len(self._found.kinds) >= MOST_KERNELS:
                self._found.why.append(f"more than {MOST_KERNELS} orders of elements")
                return
            number[mask] = len(self._found.kinds)
            self._found.kinds.append(self._read(mask, asked))
        self._maps[m, n] = number

    def _equal_rows(self, unknown: NDArray[np.bool_]) -> list[EqualRows]:
        """Calls of equal rows of every kind of values: two tell classes apart; of the others one call asks all, if the
        elements of a class with unknown ones answer alike there."""
        m, n = unknown.shape
        asked = [ask_equal_rows(self._calls, m, n, x, y) for x, y in self._rows[:APART]]
        xs, ys = zip(*self._rows[APART:], strict=True)
        in_turn = (np.arange(count) % len(xs) for count in (m, n))
        groups = classes(asked)
        mixed = ask_mixed_rows(self._calls, xs, ys, *in_turn).apart(groups, np.unique(groups[unknown]))
        return asked + (mixed or [ask_equal_rows(self._calls, m, n, x, y) for x, y in self._rows[APART:]])

    def _known(self, m: int, n: int) -> NDArray[np.intp]:
        """Of each element the number of the known kernel that computes it; -1: none."""
        number = np.full((m, n), -1, np.intp)
        kernels = [(index, kind.kernel) for index, kind in enumerate(self._found.kinds) if kind.kernel is not None]
        if not kernels:
            return number
        gives = np.ones((len(kernels), m, n), bool)
        for count in (MIXED, 1):
            rows = self._rows_apart([kernel for _, kernel in kernels], count)
            places = (self._rng.integers(0, count, length) for length in (m, n))
            gives &= self._giving(kernels, ask_mixed_rows(self._calls, *rows, *places))
            if (gives.sum(0) < 2).all():
                break
        return np.where(gives.any(0), np.array([index for index, _ in kernels])[gives.argmax(0)], -1)

    def _giving(self, kernels: Sequence[tuple[int, GemmKernel]], asked: MixedRows) -> NDArray[np.bool_]:
        """(kernels, M, N): which kernels give which elements."""
        crossed = [self._crossed(kernel, asked.xs, asked.ys) for _, kernel in kernels]
        return np.stack([asked.d == each[asked.of_row][:, asked.of_column] for each in crossed])

    def _rows_apart(self, kernels: Sequence[GemmKernel], count: int) -> Rows:
        """So many x and y of which every pair is answered in other bits by each of these kernels, if such are found: an
        element of a kernel that is not known answers some of the pairs as none of them does."""
        if self._drawn.get(count, ((), ([], [])))[0] == kernels:
            return self._drawn[count][1]
        best: Rows = [], []
        least = -1
        for number in range(DRAWN):
            drawn = [draw_rows(self._calls, self._k, self._rng, SPREADS[number % len(SPREADS)]) for _ in range(count)]
            rows = [x for x, _ in drawn], [y for _, y in drawn]
            every = np.stack([self._crossed(each, *rows).ravel() for each in kernels])
            apart = sum(len(np.unique(column)) for column in every.T)
            if apart > least:
                best, least = rows, apart
            if apart == every.size:
                break
        self._drawn[count] = kernels, best
        return best

    def _crossed(self, kernel: GemmKernel, xs: Sequence[Bits], ys: Sequence[Bits]) -> Bits:
        """What a kernel answers of every x and y."""
        return computed(kernel, self._formats, np.stack(xs), np.ascontiguousarray(np.stack(ys).T))

    def _read(self, mask: NDArray[np.bool_], asked: list[EqualRows]) -> ElementClass:
        """The kernel of a class of elements: steps of one product where they give its bits, else primitives."""
        view = view_of(self._calls, mask, self._k, self._heard.setdefault(mask.shape, Heard()))
        kind = ElementClass(mask, mask.shape, asked, [], None)
        why = self._read_products(kind, view)
        if kind.kernel is None:
            found = find_stepped(view, self._k, self._formats, kind.asked, self._rng)
            kind.neighbours = found.neighbours
            if found.kernel is None:
                where = f"D[{', '.join(map(str, np.argwhere(mask)[0]))}] at {'x'.join(map(str, mask.shape))}"
                self._found.why.append(f"{where}: {why}; {found.why}")
                return kind
            kind.kernel, kind.readings = found.kernel, found.readings
        kind.kernel = replace(kind.kernel, name=f"kernel{len(self._found.kinds)}")
        return kind

    def _read_products(self, kind: ElementClass, view: ClassView) -> str:
        """The kernel of single products that gives every bit asked; why there is none."""
        fmt, number = self._formats.sums[0], len(self._found.kinds) + 1
        self._calls.say(f"order {number} at K = {self._k}")
        first = read_order(view, self._k, fmt, self._rng)
        kind.readings = [first]
        if not first.kernels:
            return "no order of single products was found"
        carried = Carried(view, first, fmt, self._rng)
        self._calls.say(f"order {number} at other K")
        carried.settle()
        kind.readings = carried.readings
        if not carried.living:
            return "no rule that was tried cuts every K that was asked"
        living, why = carried.living, ""
        for _ in range(RULES):
            why, refuted = self._settled(living[0], kind, view)
            if not refuted:
                break
            living = [each for each in living[1:] if all(fits(each, read.pairs, read.k) for read in kind.readings)]
            if not living:
                break
        return why

    def _settled(self, rule: GemmKernel, kind: ElementClass, view: ClassView) -> tuple[str, bool]:
        """Makes it the kernel of a class, its values told; else why it is not, and whether another rule may be."""
        number = len(self._found.kinds) + 1
        self._calls.say(f"order {number}: how products and sums are rounded")
        steps = self._told_apart(rule, kind)
        if not steps:
            return "no step of single products gives its bits", False
        if not holds_at_edges(steps[0], view, self._formats, self._k, self._rng):
            return "no step of single products gives its bits of tiny values", False
        filled, more = filled_up(steps[0], self._formats, self._calls, self._k, kind.mask)
        kind.asked += more
        if not filled:
            return "no step of single products gives its bits of negative products that vanish", False
        self._calls.say(f"order {number}: neighbouring values")
        kind.neighbours = settle(filled[0], view, self._k, kind.readings, kind.asked, self._formats, self._rng)
        if not kind.neighbours:
            return "no rule that was tried gives the answers at which its neighbours differ", True
        kind.kernel = filled[0]
        return "", False

    def _told_apart(self, kernel: GemmKernel, kind: ElementClass) -> list[GemmKernel]:
        """The variants of a kernel that give the bits of every call, after some more where two steps are left."""
        asked, (m, n) = kind.asked, kind.mask.shape
        steps = agreeing(kernel, self._formats, asked, kind.mask)
        for _ in range(MORE):
            by = {each.step: each for each in steps}
            rows = telling([*by.values()], self._formats, self._calls, self._k, self._rng) if len(by) > 1 else None
            if rows is None:
                break
            try:
                asked.append(ask_equal_rows(self._calls, m, n, *rows))
            except UsageError:
                break  # the product has no such K
            steps = agreeing(kernel, self._formats, asked, kind.mask)
        return steps

    def _regions(self) -> tuple[Region, ...] | None:
        """The regions at all shapes, or at those that are larger than every one that has other orders: libraries have
        other code for small products."""
        found = self._found
        largest = max((m * n for m, n in self._apart), default=0)
        self._maps = {(m, n): each for (m, n), each in self._maps.items() if m * n > largest}
        used = sorted({int(index) for each in self._maps.values() for index in np.unique(each)})
        if not self._maps or -1 in used or self._calls.product.shape[:2] not in self._maps:
            return None
        found.kinds = [found.kinds[index] for index in used]
        kernels = [kind.kernel for kind in found.kinds if kind.kernel is not None]
        maps = [np.searchsorted(used, each) for each in self._maps.values()]
        blocks = [each for each in {kernel.ranges: None for kernel in kernels} if each.cut != "whole"]
        return fit_regions(maps, [kernel.name for kernel in kernels], blocks)

    def _least(self) -> tuple[int, int, int]:
        """The smallest M, N and K that the schedule is for: where small shapes have other orders, those of the smallest
        that has not."""
        if not self._apart:
            return 1, 1, 1
        return (*min(self._maps, key=lambda shape: shape[0] * shape[1]), self._k)

    def _conclude(self, regions: tuple[Region, ...]) -> None:
        """The schedule, and whether it holds at shapes that were not asked."""
        found, product = self._found, self._calls.product
        kernels = tuple(kind.kernel for kind in found.kinds if kind.kernel is not None)
        schedule = Schedule(product.a, product.b, product.d, Scope("unknown"), kernels, regions)
        self._calls.say("shapes that were not asked before")
        found.held = hold(self._calls, schedule, self._least(), self._rng)
        wrong = [each for each in found.held if each.differ]
        if wrong:
            found.why.append(f"it does not hold: {wrong[0]}")
            return
        found.schedule = replace(schedule, scope=self._scope())
        opens = [each for kind in found.kinds for each in kind.neighbours if each.verdict == "open"]
        found.status = "bounded" if opens else "exact"
        found.why += [f"{each.field} = {each.value} was not told apart" for each in opens]
        found.why += [f"not in the scope: {each}" for each in self._apart.values()]

    def _scope(self) -> Scope:
        """What was asked: the smallest and largest M, N and K."""
        product, held = self._calls.product, self._found.held
        shapes = [(*shape, self._k) for shape in self._maps] + [each.shape for each in held]
        shapes += [(*kind.shape, reading.k) for kind in self._found.kinds for reading in kind.readings]
        least = np.maximum(np.min(shapes, axis=0), self._least()).tolist()
        most = np.max(shapes, axis=0).tolist()
        return scope_of(product, least, most, len(held))
