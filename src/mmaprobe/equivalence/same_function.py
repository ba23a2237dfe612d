"""Prove that two datapaths are the same function: a chain of changes from one to the other, each with an argument.

Where no one argument spans them, both are written canonically (``sum_order``), and what then differs is taken over from
the other part by part. The checker accepts every step, or there is no proof; without one nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.checker import Argument, refute
from mmaprobe.equivalence.record_rules import changed_fields
from mmaprobe.equivalence.sum_order import canonical
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.neighbours import Neighbour
from mmaprobe.parameters.table import Table, from_table, spelt_out_table


@dataclass(frozen=True)
class ProofStep:
    """Two datapaths that an argument shows to be the same function."""

    old: Datapath
    new: Datapath
    argument: Argument

    @property
    def holds(self) -> bool:
        """Whether the checker accepts it."""
        return not refute(self.old, self.new, self.argument)


Looking = Callable[[Datapath], None]
"""Told of every datapath for which an argument is looked for; it may raise, and so end the search for a proof."""


def _unpaid(path: Datapath) -> None:
    """Nothing is kept of what is looked for."""


def same_function(one: Datapath, other: Datapath, looking: Looking = _unpaid) -> tuple[ProofStep, ...] | None:
    """The steps of a proof that two datapaths are the same function; () for one record, None where none is found."""
    if one == other:
        return ()
    direct = _step(one, other, looking)
    if direct is not None:
        return (direct,)
    first, last = (_to_canonical(path, looking) for path in (one, other))
    if first is None or last is None:
        return None
    between = _walk(canonical(one), canonical(other), looking)
    return None if between is None else (*first, *between, *last)


def _to_canonical(path: Datapath, looking: Looking) -> tuple[ProofStep, ...] | None:
    if canonical(path) == path:
        return ()
    found = _step(path, canonical(path), looking)
    return None if found is None else (found,)


def _walk(here: Datapath, there: Datapath, looking: Looking) -> tuple[ProofStep, ...] | None:
    """Steps of which each leaves less that differs; None where no such one has an argument."""
    steps: list[ProofStep] = []
    while here != there:
        found = next(filter(None, (_step(here, nearer, looking) for nearer in _nearer(here, there))), None)
        if found is None:
            return None
        steps.append(found)
        here = found.new if found.old == here else found.old
    return tuple(steps)


def _step(here: Datapath, nearer: Datapath, looking: Looking) -> ProofStep | None:
    """The change with an argument, which may be one from there to here."""
    for old, new in ((here, nearer), (nearer, here)):
        for field in sorted(changed_fields(old, new)):
            looking(old)
            found = argument(old, Neighbour(field, "", new))
            if found is not None:
                return ProofStep(old, new, found)
    return None


def _nearer(here: Datapath, there: Datapath) -> Iterator[Datapath]:
    """The other datapath; then this one with its tree; with one field of it, or all of one record or one node."""
    yield there
    with suppress(UsageError):
        whole = replace(here, tree=there.tree, step=there.step, order=there.order)
        if whole not in (here, there):
            yield whole
    changed, table = sorted(changed_fields(here, there)), spelt_out_table(there)
    records = dict.fromkeys(path.rpartition(".")[0] for path in changed)
    nodes = dict.fromkeys(record.rpartition(".terms.")[0] for record in records)
    for group in ((path,) for path in changed):
        yield from _taken_over(here, table, group)
    for place in dict.fromkeys((*records, *nodes)):
        yield from _taken_over(here, table, tuple(path for path in changed if path.startswith(f"{place}.")))


def _taken_over(here: Datapath, table: Table, paths: tuple[str, ...]) -> Iterator[Datapath]:
    """The datapath with these fields from the table of another; none where that is no datapath, or changes nothing."""
    made = spelt_out_table(here)
    try:
        for path in paths:
            *parents, last = path.split(".")
            _at(made, parents)[last] = _at(table, parents)[last]
        found = from_table(made)
    except (UsageError, KeyError, IndexError, TypeError):
        return
    if found != here:
        yield found


def _at(table: Any, keys: list[str]) -> Any:
    for key in keys:
        table = table[int(key)] if isinstance(table, list) else table[key]
    return table
