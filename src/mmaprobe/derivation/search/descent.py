"""Downhill: from a datapath through groups of its fields, each in all its combinations, to ever smaller losses.

Every search that nears the device's answers step by step takes its steps here.  What can be varied together, and in
which order, is the caller's; a step is taken where the loss of the best combination is less than before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.search.loss import Found, Graded, combined
from mmaprobe.models.combinations import Axis, Combinations, Programs
from mmaprobe.parameters.datapath import Datapath

Group = tuple[Datapath, list[Axis]]
"""A datapath, and the fields that are varied together around it."""
Ways = Callable[[Datapath], Iterable[Group]]
"""The groups of fields around a datapath, those first that matter most."""
SWEEPS = 4
"""Sweeps through all groups at most, of which the last may only find that nothing is nearer; tuned by
``tests/recovery``."""


def around(path: Datapath, ways: Ways) -> Iterator[Combinations]:
    """The groups around a datapath that the engine can hold."""
    known: Programs = {}
    for base, axes in ways(path):
        found = combined(base, axes, known if base is path else None)
        if found is not None:
            yield found


def descend(start: Datapath, seen: Graded, ways: Ways, sweeps: int = SWEEPS, best: bool = False) -> Found:
    """The end of ``descent``."""
    *_, found = descent(start, seen, ways, sweeps, best)
    return found


def descent(start: Datapath, seen: Graded, ways: Ways, sweeps: int = SWEEPS, best: bool = False) -> Iterator[Found]:
    """The way downhill: the datapath reached and its loss at the start and after each group of fields.

    A step is taken at once, and the next group is one of the datapath reached; with ``best`` a sweep holds all groups
    of the datapath that it began with, and the best of their combinations is its one step.
    """
    path, loss, seen = start, seen.total(start), seen.wrong_first(start)
    yield path, loss
    for _ in range(sweeps):
        before, known = loss, Programs()
        at, groups, number = path, iter(ways(path)), 0
        while loss and (group := next(groups, None)) is not None:
            number += 1
            found = seen.nearest(*group, known if group[0] is at else None, loss)
            if found is not None and found[1] < loss:
                path, loss = found
                seen = seen.wrong_first(path)
                if not best:
                    at, groups, known = path, islice(ways(path), number, None), Programs()
            yield path, loss
        if loss in (0, before):
            return


def race(runs: Sequence[Iterator[Found]], allowance: Allowance) -> Iterator[tuple[int, Found]]:
    """Several ways downhill, a step at a time of the one that has cost least so far: the number of each and where it is
    now, until all have ended."""
    taken = dict.fromkeys(range(len(runs)), 0.0)
    while taken:
        i = min(taken, key=lambda number: taken[number])
        before = allowance.left
        found = next(runs[i], None)
        if found is None:
            del taken[i]
            continue
        taken[i] += before - allowance.left
        yield i, found
