"""Find a witness for every pair of shipped schedules of equal formats, and for every field of any moved to a neighbour.

``python tests/find_schedule_witnesses.py`` writes ``tests/golden/schedule_witnesses.json`` (minutes); the tests compute
both sides of each again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from cases.random_products import Modelled
from cases.schedule_neighbours import moved, shown_equal
from cases.schedule_witnesses import FILE, REFUSED, SumWitness, held, read, witness
from mmaprobe import formats
from mmaprobe.derivation.schedules.integers import beyond
from mmaprobe.derivation.schedules.orders import order_of
from mmaprobe.derivation.schedules.search import sampled
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.schedule import GemmKernel, Schedule, known_schedules, schedule_named
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.elements import draw_rows, least_rows, zero_rows
from mmaprobe.probing.gemm.integer_values import INTEGER_FAMILIES, integer_operands
from mmaprobe.probing.gemm.sizes import masks, narrow, window

ROWS = (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 18, 20, 23, 24, 28, 36)
COLUMNS = (
    2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 20, 24, 31, 32, 33, 40, 61, 64, 65, 321, 323, 329, 336, 337, 344, 640, 645,
    656, 664,
)  # fmt: skip
"""M and N of the shapes at which regions are compared."""
SHORT = (1, 2, 3, 4, 5, 6, 8, 9, 11, 12)
"""Ks at which values are tried."""
SHARED_AT = (17, 22, 30)
"""K at which what workers share is compared: the length into which a tile's K is cut hangs on it."""
TRIES = 60
"""Random rows and columns of each of these Ks."""


def lengths(kernels: Sequence[GemmKernel], least: int) -> list[int]:
    """Ks at which kernels may differ, the smallest first."""
    found = {*range(2, 40), 1000, 1001}
    for length in {each.ranges.length for each in kernels if each.ranges.length}:
        near = (length, 2 * length, 3 * length, 4 * length, length * 3 // 2, length * 7 // 4, length * 5 // 2)
        found |= {k + step for k in near for step in (-1, 0, 1, 3, 5, 10, 18)}
    return sorted({max(k, least) for k in found})


def shapes(*schedules: Schedule) -> Iterator[tuple[int, int]]:
    """M and N in the scopes of all, few elements first."""
    least_m, least_n = (max(getattr(each.scope, f"least_{axis}") for each in schedules) for axis in "mn")
    every = {(max(m, least_m), max(n, least_n)) for m, n in product(ROWS, COLUMNS)}
    yield from sorted(every, key=lambda shape: (shape[0] * shape[1], shape))


def kernels_at(schedule: Schedule, m: int, n: int, k: int = 0) -> np.ndarray:
    """Of each element the kernel; ``k`` where workers share it."""
    found = np.empty((m, n), object)
    for kernel, rows, columns in schedule.areas(m, n, k):
        for i, j in product(rows, columns):
            found[i, j] = kernel
    return found


def separate(p: Schedule, q: Schedule, short: bool = False) -> SumWitness | None:
    """The first witness found of which q gives other bits than p, or none; ``short``: values of few lanes first."""
    if p.integers is not None:
        return by_integers(p, q)
    seen = set[tuple[GemmKernel, GemmKernel]]()
    ks = SHARED_AT if any(kernel.ranges.cut == "stream_k" for kernel in p.kernels) else (0,)
    for (m, n), k in product(shapes(p, q), ks):
        own = kernels_at(p, m, n, k)
        try:
            other = kernels_at(q, m, n, k)
        except UsageError as error:
            i, j = map(int, re.findall(r"\((\d+), (\d+)\)", str(error))[0])
            return by_values(p, q, own[i, j], own[i, j], (m, n), (i, j))
        for i, j in np.ndindex(m, n):
            pair = own[i, j], other[i, j]
            if pair in seen or pair[0] == pair[1]:
                continue
            seen.add(pair)
            found = by_values(p, q, *pair, (m, n), (i, j)) if short and differs_short(*pair) else None
            found = found or by_masks(p, q, *pair, (m, n), (i, j), k) or by_values(p, q, *pair, (m, n), (i, j))
            if found is not None:
                return found
    return None


def differs_short(one: GemmKernel, two: GemmKernel) -> bool:
    """Whether kernels may differ at a few lanes: by their steps, starts or accumulators."""
    return (one.step, one.accumulators, one.join.start) != (two.step, two.accumulators, two.join.start)


def by_masks(
    p: Schedule, q: Schedule, one: GemmKernel, two: GemmKernel, sides: tuple[int, int], at: tuple[int, int], only: int
) -> SumWitness | None:
    """Two lanes that meet in sums of other sizes, at the smallest K, or at this one (0: any)."""
    calls = ProductCalls(Modelled(p), 0)
    for k in [only] if only else lengths((one, two), max(p.scope.least_k, q.scope.least_k)):
        lanes = sampled(k, np.random.default_rng(k))
        differ = np.flatnonzero(order_of(one, k).sizes(*lanes) != order_of(two, k).sizes(*lanes))
        if not len(differ):
            continue
        x, y = (each[differ[:1]] for each in lanes)
        room = window(calls, k)
        a, b = (each.ravel() for each in masks(calls, k, x, y, room))
        unit = [
            int(calls.bits(np.array([np.ldexp(1.0, e)]), fmt)[0])
            for e, fmt in ((room.a, calls.a), (room.unit - room.a, calls.b))
        ]
        chosen = sorted((int(x[0]), int(y[0])))
        found = SumWitness(
            (*sides, k), at, (unit[0], unit[1]), tuple(chosen), tuple(a[chosen].tolist()), tuple(b[chosen].tolist())
        )
        told = told_apart(found, p, q)
        if told is not None:
            return told
    return None


def narrow_rows(calls: ProductCalls, k: int, number: int, rng: np.random.Generator) -> tuple[Bits, Bits]:
    """x and y: opposed ones, zeros and vanishing ones, and those about the smallest number of the sums."""
    zeros = zero_rows(calls, k)
    if number < len(zeros):
        return zeros[number]
    return least_rows(calls, k, range(k), rng) if number % 2 else draw_rows(calls, k, rng, 1 + number % 9)


def by_values(
    p: Schedule, q: Schedule, one: GemmKernel, two: GemmKernel, sides: tuple[int, int], at: tuple[int, int]
) -> SumWitness | None:
    """Few random products, zeros of both signs among them; of a narrow D those that show what it hides."""
    fmt, rng, calls = formats.get(p.a), np.random.default_rng(1), ProductCalls(Modelled(p), 0)
    for k in sorted({max(k, p.scope.least_k, q.scope.least_k) for k in SHORT}):
        told = told_apart(vanishing(calls, (*sides, k), at), p, q)
        if told is not None:
            return told
        for number in range(TRIES):
            few = min(k, 12)
            if narrow(calls.d):
                x, y = (each.tolist() for each in narrow_rows(calls, few, number, rng))
            else:
                values = rng.standard_normal((2, few)) if number % 2 else rng.choice([0.0, -0.0, 1.0, -1.0], (2, few))
                x, y = values.astype(f"f{fmt.dtype.itemsize}").view(fmt.dtype).tolist()
            found = SumWitness((*sides, k), at, (fmt.sign_mask, fmt.one), tuple(range(few)), tuple(x), tuple(y))
            told = told_apart(found, p, q)
            if told is not None:
                return told
    return None


def by_integers(p: Schedule, q: Schedule) -> SumWitness | None:
    """A row and a column of integers, of few lanes, or of so many that their sum leaves its format."""
    rng, calls, sums = np.random.default_rng(1), ProductCalls(Modelled(p), 0), p.integers
    assert sums is not None
    for k, family in product((*SHORT, 17, 70), INTEGER_FAMILIES * TRIES):
        a, b = integer_operands(calls, family, (1, 1, k), rng)
        few = SumWitness((1, 1, k), (0, 0), (0, 0), tuple(range(k)), tuple(a[0].tolist()), tuple(b[:, 0].tolist()))
        told = told_apart(few, p, q)
        if told is not None:
            return told
    x, y, k = beyond(p.a, p.b, sums)
    return told_apart(SumWitness((1, 1, k), (0, 0), (x, y), (0,), (x,), (y,)), p, q)


def vanishing(calls: ProductCalls, shape: tuple[int, int, int], at: tuple[int, int]) -> SumWitness:
    """Negative products alone of which each vanishes, so that a sum is -0; zeros where the formats have none."""
    x, y = zero_rows(calls, 1)[int(len(zero_rows(calls, 1)) > 1)]
    return SumWitness(shape, at, (int(x[0]), int(y[0])), (0,), (int(x[0]),), (int(y[0]),))


def told_apart(found: SumWitness, p: Schedule, q: Schedule) -> SumWitness | None:
    """The witness with the bits that p gives, where q gives others."""
    own = found.answer(p)
    return replace(found, d=own) if own not in (REFUSED, found.answer(q)) else None


def main() -> None:
    """Find what the file lacks."""
    shipped = {name: schedule_named(name) for name in known_schedules()}
    stored = read() if FILE.exists() else {"pairs": [], "witnesses": {}}
    pairs, every = [], {}
    for first, second in combinations(shipped, 2):
        p, q = shipped[first], shipped[second]
        if (p.a, p.b, p.d) == (q.a, q.b, q.d):
            found = separate(p, q, short=True)
            assert found is not None, f"nothing separates {first} and {second}"
            pairs.append([first, second, *found.row(), found.answer(q)])
            print(first, second, found.shape)
    for name, schedule in held().items():
        every[name] = [
            each for each in map(witness, stored["witnesses"].get(name, [])) if each.answer(schedule) == each.d
        ]
        for path, value, other in moved(schedule):
            if any(each.answer(other) != each.d for each in every[name]) or shown_equal(schedule, other):
                continue
            found = separate(schedule, other)
            print(name, path, value, None if found is None else found.shape, flush=True)
            if found is not None:
                every[name].append(found)
        rows = {one: [each.row() for each in kept] for one, kept in every.items()}
        FILE.write_text(_text(pairs, stored["witnesses"] | rows), "utf-8")


def _text(pairs: list[list[object]], rows: dict[str, list[list[object]]]) -> str:
    """One witness a line."""
    lines = ",\n".join(f"  {json.dumps(each)}" for each in pairs)
    parts = ",\n".join(
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(each)}" for each in kept) + "\n  ]"
        for name, kept in rows.items()
    )
    return f'{{"pairs": [\n{lines}\n ],\n "witnesses": {{\n{parts}\n }}\n}}\n'


if __name__ == "__main__":
    main()
