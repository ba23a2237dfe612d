"""Kernels whose steps add several lanes at once, at one K: sizes to steps, steps to accumulators, primitives by bits.

A +M of one step is in its accumulator when the next one begins, so that every lane up to the end of its step is lost;
of the step in which the -M is, some lanes may be kept.  So two lanes of different steps of one accumulator meet in a
size that is a whole number of steps but for less than one, and two of different accumulators or ranges in one that is
exact.  What a step does inside is what its primitive says: it is run, and held against the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np

from mmaprobe.derivation.schedules.answers import ClassAnswers, computed
from mmaprobe.derivation.schedules.candidates import Candidate
from mmaprobe.derivation.schedules.cuts import Cut, cuts
from mmaprobe.derivation.schedules.dealings import dealt_out, fits
from mmaprobe.derivation.schedules.lane_orders import Table, lane_order
from mmaprobe.derivation.schedules.orders import Numbers, order_of
from mmaprobe.derivation.schedules.pairs import ClassView, Pairs, StepTable, joint
from mmaprobe.derivation.schedules.search import OrderRead, ask_grid, random_lanes, sampled, survey
from mmaprobe.parameters.schedule import Accumulators, GemmKernel, GemmStep, Join, Ranges
from mmaprobe.probing.gemm.calls import Asked

ROUNDS = 6
"""Calls that are made at most to tell kernels apart at one K."""
MOST_DEALT = 24
"""Ways to deal out the steps of one cut that are looked at, those of fewest accumulators."""
MOST_ALIKE = 4
"""Kernels of the same sizes that are carried to other K at most."""
WIDEST_ORDER = 64
"""Lanes of a step that are asked one against the other at most, to see which product each takes."""
Alike = list[GemmKernel]
"""Kernels that give the same bits at one K."""
Tail = Literal["zeros", "scalar"]


@dataclass(frozen=True)
class StepsRead:
    """What the sizes at one K say of steps: of every width that may be the kernels that deal them out so."""

    k: int
    pairs: Pairs
    dealt: tuple[tuple[int, GemmKernel], ...]


class StepSearch:
    """The steps of one class of elements; every call is kept in ``answers``."""

    def __init__(self, view: ClassView, known: Sequence[Candidate], answers: ClassAnswers, fmt: str) -> None:
        self._view, self._known, self._answers, self._fmt = view, known, answers, fmt
        self.read: list[StepsRead] = []
        self._placed = dict[tuple[int, int], list[tuple[Candidate, GemmStep]]]()

    def read_order(self, view: ClassView, k: int, fmt: str, rng: np.random.Generator) -> OrderRead:
        """Kernels of this K that give every bit asked at it; they may still differ elsewhere."""
        pairs = self._survey(k, rng)
        self._placed.clear()
        every = cuts(pairs, k)
        dealt = [
            (width, each) for width in self._possible(k) for each in dealt_out_steps(every, width, pairs, self._fmt)
        ]
        found = StepsRead(k, pairs, tuple(dealt))
        self.read.append(found)
        living = list[Alike]()
        for width in dict.fromkeys(width for width, _ in found.dealt):
            own = [kernel for each, kernel in found.dealt if each == width]
            living += self._with_primitives(width, own, k, rng)
        living, pairs = self._apart(living, pairs, k, rng)
        left = {each[0].step.datapath() for each in living}
        self._known = [each for each in self._known if not left or each.datapath in left]
        return OrderRead(k, pairs, tuple(kernel for each in living for kernel in each))

    def _survey(self, k: int, rng: np.random.Generator) -> Pairs:
        with keeping(self._view, self._answers):
            return joint([survey(self._view, k), self._view.ask(k, *random_lanes(self._view, k, rng))])

    def _possible(self, k: int) -> list[int]:
        """Widths of which a primitive gives what the lanes of the first step answer."""
        found, whole = [], GemmKernel("kernel", Ranges(), Join(self._fmt), Accumulators(self._fmt))
        for width in sorted({each.datapath.k for each in self._known}):
            if 1 < width < k and self._placed_at(0, width, whole, k):
                found.append(width)
        return found

    def _with_primitives(self, width: int, dealt: list[GemmKernel], k: int, rng: np.random.Generator) -> list[Alike]:
        """Of ways to deal out steps those alike at this K, with each primitive of this width, order of its lanes and
        tail that give all bits."""
        found = []
        for group in _grouped(dealt, width, k, rng):
            tails: tuple[Tail, ...] = ("zeros", "scalar")
            uneven = any(len(part) % width for part in group[0].ranges.of(k))
            for each, step in self._steps(width, group[0], k):
                for tail in tails[: 1 + uneven]:
                    made = [_stepped(one, step, each.datapath.d, self._fmt, tail) for one in group]
                    if not self._answers.miss(made[0], k):
                        found.append(made)
        return found

    def _steps(self, width: int, dealt: GemmKernel, k: int) -> list[tuple[Candidate, GemmStep]]:
        """The primitives of this width, each with the order of lanes by which it gives what was answered."""
        return self._placed_at(_second(dealt, k, width), width, dealt, k)

    def _placed_at(self, first: int, width: int, dealt: GemmKernel, k: int) -> list[tuple[Candidate, GemmStep]]:
        """The same of the step that begins with this lane."""
        if (first, width) not in self._placed:
            known = [each for each in self._known if each.datapath.k == width]
            table = self._table(first, width, k)
            placed = ((each, self._ordered(dealt, each, table)) for each in known)
            self._placed[first, width] = [(each, step) for each, step in placed if step is not None]
        return self._placed[first, width]

    def _table(self, first: int, width: int, k: int) -> StepTable | None:
        """Calls with +M on one lane of a step and -M on another, every pair of them, as one table; None where a step is
        too wide."""
        if width > WIDEST_ORDER:
            return None
        with keeping(self._view, self._answers):
            return self._view.ask_step(k, np.arange(width) + first)

    def _ordered(self, dealt: GemmKernel, candidate: Candidate, table: StepTable | None) -> GemmStep | None:
        """The primitive's step with its lanes in an order that gives the table; None where none does."""
        if table is None:
            return candidate.step
        kernel = _stepped(dealt, candidate.step, candidate.datapath.d, self._fmt, "zeros")
        foretold = table.of(lambda a, b: computed(kernel, self._answers.formats, a, b))
        order = lane_order(table.told, foretold)
        if order is None:
            return None
        return candidate.step if order == tuple(range(len(order))) else replace(candidate.step, order=order)

    def _apart(self, living: list[Alike], pairs: Pairs, k: int, rng: np.random.Generator) -> tuple[list[Alike], Pairs]:
        """Ask pairs of which the living say different sizes until all that are left say the same."""
        for _ in range(ROUNDS):
            if len(living) < 2:
                break
            p, q = sampled(k, rng)
            table = np.array([order_of(each[0], k).sizes(p, q) for each in living])
            where = rng.permutation(np.flatnonzero((table != table[0]).any(0)))
            if not len(where):
                break
            with keeping(self._view, self._answers):
                pairs = joint([pairs, ask_grid(self._view, k, p[where], q[where])])
            left = [each for each in living if not self._answers.miss(each[0], k)]
            if len(left) == len(living):
                break
            living = left
        return living, pairs


class keeping:
    """Inside, calls are kept, and go to the class's answers at the end."""

    def __init__(self, view: ClassView, answers: ClassAnswers) -> None:
        self._calls, self._answers = view.calls, answers
        self._kept: list[Asked] = []

    def __enter__(self) -> list[Asked]:
        self._before, self._calls.kept = self._calls.kept, self._kept
        return self._kept

    def __exit__(self, *_: object) -> None:
        self._calls.kept = self._before
        self._answers.add(self._kept)


def _grouped(dealt: Sequence[GemmKernel], width: int, k: int, rng: np.random.Generator) -> list[Alike]:
    """Kernels by the sizes that steps of this width give them, wherever they were compared."""
    p, q = sampled(k, rng)
    found = dict[bytes, Alike]()
    for each in dealt:
        found.setdefault(order_of(each, k, width).sizes(p, q).tobytes(), []).append(each)
    return [_plain(each) for each in found.values()]


def _plain(alike: Alike) -> Alike:
    """Of kernels of the same sizes those of one accumulator, where there are any, for then no steps are seen to be
    dealt out; else those of fewest accumulators."""
    one = [each for each in alike if each.accumulators.count == 1]
    return one or sorted(alike, key=lambda each: (each.accumulators.count, each.accumulators.block))[:MOST_ALIKE]


def _stepped(kernel: GemmKernel, step: GemmStep, own: str, second: str, tail: Tail) -> GemmKernel:
    """The kernel with the steps of a primitive, whose accumulators are of format ``own``."""
    promotion = kernel.promotion and replace(kernel.promotion, format=second)
    accumulators = replace(kernel.accumulators, format=own)
    return replace(kernel, step=step, accumulators=accumulators, promotion=promotion, tail=tail)


def dealt_out_steps(every: Sequence[Cut], width: int, pairs: Pairs, fmt: str) -> list[GemmKernel]:
    """Kernels of these cuts, the first of which is one range, whose accumulators get steps of so many lanes.

    As of single products: one range that is dealt out, and promoted accumulators, where nothing plainer agrees."""
    plain = [kernel for kernel in dealt_steps(every[0], width, pairs, fmt, False) if kernel.accumulators.count == 1]
    for promoted in (False,) if plain else (False, True):
        for among in (every[1:], [] if plain else every[:1]):
            found = [kernel for cut in among for kernel in dealt_steps(cut, width, pairs, fmt, promoted)]
            if found:
                return plain + found
    return plain


def dealt_steps(cut: Cut, width: int, pairs: Pairs, fmt: str, promoted: bool) -> Iterator[GemmKernel]:
    """Kernels of one cut; ranges are in lanes."""
    lengths, order = cut
    counts = tuple(-(-length // width) for length in lengths)
    ranges = Ranges("given", lengths=lengths)
    if max(counts) == 1:
        yield GemmKernel("kernel", ranges, Join(fmt, order), Accumulators(fmt))
        return
    steps = in_steps(lengths, counts, width, pairs)
    if steps is None:
        return
    fitting = (kernel for kernel in dealt_out(counts, order, steps, fmt, promoted) if fits(kernel, steps))
    for kernel in islice(fitting, MOST_DEALT):
        yield replace(kernel, ranges=ranges)


def in_steps(lengths: tuple[int, ...], counts: tuple[int, ...], width: int, pairs: Pairs) -> Pairs | None:
    """Pairs of lanes of one range and different steps as pairs of steps; None where lanes of a step answer otherwise,
    or no pair is of two steps."""
    number = np.repeat(np.arange(len(lengths)), lengths)
    starts, first = (np.r_[0, np.cumsum(each)[:-1]] for each in (lengths, counts))
    p, q = ((lane - starts[number[lane]]) // width + first[number[lane]] for lane in (pairs.p, pairs.q))
    kept = (number[pairs.p] == number[pairs.q]) & (p != q)
    if not kept.any():
        return None
    p, q, size = p[kept], q[kept], -(-pairs.size[kept] // width)
    steps = joint([Pairs(p, q, size)])
    key = np.minimum(p, q) * (int(first[-1]) + counts[-1]) + np.maximum(p, q)
    same = len(np.unique(key * (int(size.max()) + 1) + size)) == len(steps)
    return steps if same else None


def _second(dealt: GemmKernel, k: int, width: int) -> int:
    """The first lane of a step that an accumulator is in already, or of the first one."""
    lanes = dealt.ranges.of(k)[0]
    whole = len(lanes) // width
    own = dealt.accumulators.dealt(whole)[0] if whole else np.zeros(0, np.intp)
    return int(own[1]) * width if len(own) > 1 else 0


def tree_of(pairs: Pairs, lanes: Numbers) -> str:
    """How lanes meet, as brackets: lanes that meet in the smallest sums innermost."""
    index = {int(lane): at for at, lane in enumerate(lanes)}
    size: Table = np.zeros((len(lanes), len(lanes)), np.int64)
    for p, q, met in zip(pairs.p.tolist(), pairs.q.tolist(), pairs.size.tolist(), strict=True):
        if p in index and q in index:
            size[index[p], index[q]] = size[index[q], index[p]] = met
    return _bracketed([*range(len(lanes))], size, lanes)


def _bracketed(members: list[int], size: Table, lanes: Numbers) -> str:
    most = max((int(size[x, y]) for x in members for y in members), default=0)
    groups = list[list[int]]()
    for each in members:
        near = [group for group in groups if any(0 < size[each, other] < most for other in group)]
        groups = [group for group in groups if group not in near] + [sorted([each, *(x for g in near for x in g)])]
    if len(groups) in (1, len(members)):
        return (
            "(" + " ".join(str(lanes[each]) for each in members) + ")" if len(members) > 1 else str(lanes[members[0]])
        )
    inner = [_bracketed(group, size, lanes) for group in sorted(groups)]
    return "(" + " ".join(inner) + ")"
