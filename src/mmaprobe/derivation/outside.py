"""Where no datapath of the grammar was found to fit: the closest, mended as far as single changes mend it, where it
still differs, by kinds, and which change of one field would repair what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import NEIGHBOUR, Allowance, SpentError
from mmaprobe.derivation.disagreements import AnsweredVectors, Disagreement, Kind, kinds
from mmaprobe.derivation.session import check_repeats
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import Device, run_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Witness
from mmaprobe.generators import families_for
from mmaprobe.models.engine import as_fast, evaluate_many
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath, walk
from mmaprobe.parameters.neighbours import every_number, neighbourhood, neighbours, with_numbers
from mmaprobe.parameters.table import flatten, to_table
from mmaprobe.validation.shrink import shrink

MORE = 2000
"""Vectors of every family asked once more, so that repairs are counted over more than the search came by."""
MENDING = 40_000_000
"""Units of work of mending the closest datapath: about a second."""
MENDED = 80
"""Nodes of a tree that is mended, at most: of more the allowance does not pay for one step."""
FAR = 8
"""How far off a number is tried in a step of mending."""
NOTE = "the closest datapath differs"
Smallest = Callable[[int, Kind | None], Witness]
"""Of a vector's number the smallest one like it, of its kind, that is wrong as well."""
WRONG = 300
"""Vectors that it gets wrong, at most, over which one step of mending is chosen."""
RIGHT = 900
"""Vectors that it gets right, at most, among those."""
LIKELY = 6
"""Changes that are the best by these, of which all vectors choose."""
TRIED = 600
"""Neighbours that are tried as repairs, about, at most: trees of many nodes have thousands."""
COUNTED = 24
"""Repairs that are counted over all vectors, at most."""


@dataclass(frozen=True)
class Repair:
    """One field changed: of ``wrong`` mismatches ``repaired`` go away, and ``broken`` right answers become wrong."""

    field: str
    old: str
    value: str
    repaired: int
    wrong: int
    broken: int

    def __str__(self) -> str:
        harm = f" and breaks {self.broken}" if self.broken else ""
        return f"{self.field} {self.old} -> {self.value} repairs {self.repaired} of {self.wrong}{harm}"


@dataclass(frozen=True)
class Explanation:
    """The closest datapath, mended; the smallest vector that it gets wrong (d is the device's), the kinds of vectors
    that it gets wrong, and repairs, the best first.  Without a counterexample it agrees with everything asked."""

    closest: Datapath
    counterexample: Witness | None = None
    kinds: tuple[Disagreement, ...] = ()
    repairs: tuple[Repair, ...] = ()


def explain(
    device: Device, instruction: Instruction, closest: Datapath, seen: tuple[Batch, Bits], seed: int
) -> Explanation:
    """Where ``closest``, mended, fails: over the vectors seen and, where the device can still be asked, some more.

    UnstableError where it fails because an answer does not repeat.
    """
    vectors, answers, again = *seen, False
    try:
        fresh = hard_vectors(instruction, families_for(instruction), seed + 4242, MORE)
        more = run_vectors(device, instruction, fresh)
        vectors, answers, again = join([vectors, fresh]), np.concatenate([answers, more]), True
    except UsageError:  # a recording answers nothing else
        pass
    closest = mended(closest, vectors, answers, Allowance(MENDING))
    model = DatapathDevice(instruction, closest)

    def smallest(number: int, kind: Kind | None) -> Witness:
        first, answer = take(vectors, [number]), int(answers[number])
        if not again:
            return Witness.of(first, answer, NOTE)

        def differ(tried: Batch) -> NDArray[np.bool_]:
            got = run_vectors(device, instruction, tried)
            wrong = np.asarray(got != model.run_vectors(instruction, tried))
            return wrong if kind is None else wrong & kind.holds(AnsweredVectors(instruction, tried, got))

        small = shrink(instruction, first, differ)
        shown = int(run_vectors(device, instruction, small)[0])
        check_repeats(device, instruction, first, answer)
        check_repeats(device, instruction, small, shown)
        return Witness.of(small, shown, NOTE)

    return disagreements(instruction, closest, vectors, answers, smallest)


def disagreements(
    instruction: Instruction, path: Datapath, vectors: Batch, answers: Bits, smallest: Smallest
) -> Explanation:
    """Where the answers are not those of a datapath, of which kinds those vectors are, and what would repair them."""
    wrong = evaluate_many([path], vectors)[0] != answers
    if not wrong.any():
        return Explanation(path)
    named = []
    for kind in kinds(instruction, vectors, answers, wrong):
        of_it = kind.mask & wrong
        witness = smallest(int(np.flatnonzero(of_it)[0]), kind)
        names = tuple(fact.name for fact in kind.facts)
        named.append(Disagreement(names, int(of_it.sum()), int(kind.mask.sum()), int(wrong.sum()), witness))
    first = smallest(int(np.flatnonzero(wrong)[0]), None)
    return Explanation(path, first, tuple(named), repairs(path, vectors, answers))


def apart(instruction: Instruction, left: Sequence[Datapath], seed: int) -> tuple[Witness | None, ...]:
    """For each hypothesis that is left the smallest vector found on which it answers otherwise than the first, with its
    answer; None for the first, and where none of ``MORE`` vectors tells them apart."""
    pool = hard_vectors(instruction, families_for(instruction), seed + 4242, MORE)
    return tuple(_apart(instruction, left[0], path, pool) for path in left)


def _apart(instruction: Instruction, first: Datapath, path: Datapath, pool: Batch) -> Witness | None:
    def differ(tried: Batch) -> NDArray[np.bool_]:
        return np.asarray(np.not_equal(*evaluate_many([first, path], tried)))

    places = np.flatnonzero(differ(pool))
    if not places.size:
        return None
    small = shrink(instruction, take(pool, places[:1]), differ)
    return Witness.of(
        small, int(evaluate_many([path], small)[0, 0]), f"left 1 answers {int(evaluate_many([first], small)[0, 0]):#x}"
    )


def mended(closest: Datapath, vectors: Batch, answers: Bits, allowance: Allowance) -> Datapath:
    """The end of a chain of changes of one field or of the structure, each the one that leaves the fewest wrong, until
    none leaves fewer or the allowance has ended; of a tree of more than ``MENDED`` nodes itself."""
    right = evaluate_many([closest], vectors)[0] == answers
    mendable = sum(1 for _ in walk(closest.tree)) <= MENDED
    try:
        while mendable and not right.all():
            every = _better(closest, vectors, answers, right, allowance)
            now = allowance.evaluate(every, vectors) == answers
            best = int(now.sum(axis=1).argmax())
            if now[best].sum() <= right.sum():
                break
            closest, right = every[best], now[best]
    except SpentError:
        pass
    return closest


def _better(
    path: Datapath, vectors: Batch, answers: Bits, right: NDArray[np.bool_], allowance: Allowance
) -> list[Datapath]:
    """The neighbours as fast as the datapath, or the datapaths with one number farther off, that leave the fewest
    wrong, by some of the vectors that are wrong and right; the best first."""
    near = [each.datapath for each in neighbourhood(path) if as_fast(each.datapath, path)]
    allowance.spend_on(path, len(near) + 2 * (FAR - 1) * len(every_number(path)), NEIGHBOUR)
    near += with_numbers(path, FAR)
    left = _left_wrong(near, vectors, answers, right, allowance)
    return [near[i] for i in np.argsort(left, kind="stable")[:LIKELY].tolist()]


def _left_wrong(
    paths: list[Datapath], vectors: Batch, answers: Bits, right: NDArray[np.bool_], allowance: Allowance
) -> NDArray[np.float64]:
    """About how many answers each of these gets wrong, by some of those that another datapath has wrong and right."""
    left = np.zeros(len(paths))
    for mask, most in ((~right, WRONG), (right, RIGHT)):
        some = _spread(mask, most)
        if some.size:
            table = allowance.evaluate(paths, take(vectors, some)) != answers[some]
            left += table.mean(axis=1) * mask.sum()
    return left


def _spread(mask: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
    """Where the mask is set: at most so many of the places, as far apart as may be."""
    places = np.flatnonzero(mask)
    found: NDArray[np.int64] = places[np.linspace(0, len(places) - 1, min(most, len(places))).astype(int)]
    return found


def repairs(closest: Datapath, vectors: Batch, answers: Bits) -> tuple[Repair, ...]:
    """How many of the mismatches neighbours of ``closest`` repair (of more than ``TRIED`` every second, or third):
    those that the engine holds where it holds ``closest`` and that repair any of ``WRONG`` of them, and of these the
    ``COUNTED`` likeliest by these and ``RIGHT`` right answers; the best first.

    Best is the one that leaves the fewest answers wrong.
    """
    right = evaluate_many([closest], vectors)[0] == answers
    some, all_near = _spread(~right, WRONG), neighbours(closest)
    every = [each for each in all_near[:: len(all_near) // TRIED + 1] if as_fast(each.datapath, closest)]
    if not every or not some.size:
        return ()
    mends = (evaluate_many([each.datapath for each in every], take(vectors, some)) == answers[some]).any(axis=1)
    near = [each for each, any_mended in zip(every, mends, strict=True) if any_mended]
    left = _left_wrong([each.datapath for each in near], vectors, answers, right, Allowance(None)) if near else ()
    table = dict(flatten(to_table(closest, full=True)))
    found = []
    for field, value, path in (near[i] for i in np.argsort(left, kind="stable")[:COUNTED].tolist()):
        now = evaluate_many([path], vectors)[0] == answers
        old = table.get(field)
        counts = int((now & ~right).sum()), int((~right).sum()), int((right & ~now).sum())
        found.append(Repair(field, "none" if old is None else str(old), value, *counts))
    return tuple(sorted(found, key=lambda repair: (repair.broken - repair.repaired, repair.field, repair.value)))
