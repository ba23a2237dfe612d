"""The wide search: every field of a datapath varied on its own or with another, downhill in wrong answers.

The grids of the narrow search tie fields together (one precision and one
rounding for all terms, one policy for all results).  Here each part has its own,
too many for one grid: from the closest datapath known, every group of fields is
tried in all its combinations, and the search moves to the one with the fewest
wrong answers until none is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.search.loss import Budget
from mmaprobe.derivation.survivors import Living
from mmaprobe.errors import UsageError
from mmaprobe.models.grid import Grid, Known
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Encode

Group = tuple[Datapath, list[roles.Axis]]
Spend = Callable[[int], None]
SWEEPS = 4
LANES = 16
"""So many vectors each combination of a group meets, about."""


def descend(start: Datapath, vectors: Batch, answers: Bits, plain: bool, allowance: Allowance) -> tuple[Datapath, int]:
    """The datapath reached downhill and how many answers it gets wrong; ``plain``: only numbers and roundings vary."""
    *_, (path, misses) = descent(start, vectors, answers, plain, allowance)
    return path, misses


def descent(
    start: Datapath, vectors: Batch, answers: Bits, plain: bool, allowance: Allowance, spend: Spend | None = None
) -> Iterator[tuple[Datapath, int]]:
    """The way downhill: where it stands, and how many answers are wrong there, after each group of fields.

    ``spend`` is told how many lanes each group evaluates, about; it may stop the search.
    """
    current = start
    known: Known = {}
    misses = int((allowance.evaluate([current], vectors) != answers).sum())
    yield current, misses
    for _ in range(SWEEPS):
        before, number = misses, 0
        while misses and (group := next(islice(groups(current, plain), number, None), None)) is not None:
            base, fields = group
            if spend is not None:
                spend(math.prod(map(len, fields)) * base.k * LANES)
            found = _best(base, fields, known if base is current else {}, vectors, answers, allowance)
            if found is not None and found[1] < misses:
                (current, misses), known = found, {}
                yield current, misses
            else:
                yield current, misses
            number += 1
        if misses in (0, before):
            return


def race(
    starts: list[Datapath], vectors: Batch, answers: Bits, turns: int, budget: Budget
) -> Iterator[tuple[int, Datapath]]:
    """Several ways downhill, a group of fields of each in turn, ``turns`` at most: the number of a start and the
    datapath that gets everything right, as they come."""
    ways = (descent(start, vectors, answers, True, budget.allowance, budget.spend) for start in starts)
    runs = list(enumerate(ways))
    for _ in range(turns):
        left = []
        for i, run in runs:
            path, misses = next(run, (None, 0))
            if path is not None and misses:
                left.append((i, run))
            elif path is not None:
                yield i, path
        runs = left


def grids(path: Datapath, plain: bool) -> Iterator[Grid]:
    """The groups around a datapath that the engine can hold."""
    known: Known = {}
    for base, group in groups(path, plain):
        found = _grid(base, group, known if base is path else {})
        if found is not None:
            yield found


def _grid(base: Datapath, group: list[roles.Axis], known: Known) -> Grid | None:
    try:
        return Grid(base, group, known)
    except (UsageError, ValueError):
        return None


def _best(
    base: Datapath, group: list[roles.Axis], known: Known, vectors: Batch, answers: Bits, allowance: Allowance
) -> tuple[Datapath, int] | None:
    """The combination with the fewest wrong answers."""
    grid = _grid(base, group, known)
    if grid is None:
        return None
    living, misses = Living.of([grid], allowance).closest(vectors, answers, 1)
    if not len(living):
        return None
    best = int(misses.argmin())
    mask = np.arange(len(misses)) == best
    return next(iter(living.kept(mask))), int(misses[best])


def groups(path: Datapath, plain: bool) -> Iterator[Group]:
    """Groups of fields to vary together, those that matter most first; fields as they stand when it is taken."""
    terms, parts = roles.term_roles(path), roles.parts_of(path)
    if not plain:
        yield from _ends(path, terms, parts)
    for role in terms:
        yield path, [roles.widths(role, field_choices.may_be_uncut(path)), roles.modes(role)]
    for part in parts:
        yield path, [roles.roundings(part)]
    for first, second in combinations(terms, 2):
        yield path, [roles.widths(first, False), roles.widths(second, False)]
        yield path, [roles.modes(first), roles.modes(second)]
    for role in (role for role in terms if role[0] == "group"):
        yield path, [roles.widths(role, field_choices.may_be_uncut(path)), roles.first_cuts(path, "root")]
    for part in parts:
        for role in terms:
            yield path, [roles.modes(role), roles.roundings(part)]
        yield path, [roles.first_cuts(path, part), roles.roundings(part)]
    yield from _conversions(path)
    yield path, list(roles.products(path))


def _ends(path: Datapath, terms: list[tuple[str, bool]], parts: list[str]) -> Iterator[Group]:
    operands = [field_choices.operand(name) for name in ("a", "b", "c") if name != "c" or path.c is not None]
    values = field_choices.zero_exponents(path)
    for part in parts:
        yield path, [*operands, *roles.endings(part)]
        yield path, [*roles.endings(part), roles.roundings(part)]
    for role in terms:
        yield path, [roles.zeros(role, values)]
        yield path, [roles.zeros(role, values), roles.widths(role, False)]
    for role in terms:
        yield path, [roles.cutoffs(role), roles.widths(role, False)]


def _conversions(path: Datapath) -> Iterator[Group]:
    """Another format between the steps, and none."""
    if path.result is not None:
        yield replace(path, result=None), [roles.roundings("root")]
    for name in formats.FORMATS:
        fmt = formats.get(name)
        if fmt.is_float and fmt.nan == "ieee" and fmt.container_bits >= 16:
            wide = roles.encodes("sums", lambda to, n=name: replace(to, format=n))(path)  # type: ignore[misc]
            yield (
                replace(wide, result=path.result or Encode(path.d)),
                [roles.roundings("sums"), roles.roundings("result")],
            )
