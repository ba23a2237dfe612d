"""The summation tree of a dot product of thousands of lanes, in expected O(K log K) calls.

After FPRev (ATC'25) with random pivots.  A pivot i is drawn from a set of
leaves; for every other leaf j, +M on i and -M on j swallow every unit below the
lowest node that holds both.  The counts order the nodes on the way from i to
the root, and say which leaves join at which: each such set is split in turn.
At any node a random pivot falls into the parent of the largest half with
probability above 1/2, so a leaf is asked about O(log K) times, whatever the tree.

A set carries along one leaf outside, on the other side of the node where the
set joins: leaves that meet only where that one is lost are further terms of
one fused node.  A fused node of w terms takes w^2 / 2 calls.

Where the result cannot count all units of a set, units lie on a sample: that
orders the nodes roughly; then one call for as many leaves as can be counted,
with units on them, finds those above a node, by halving where there are any.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from mmaprobe.probing.long_sums.masked_calls import Ask, MaskedCalls, NoTreeError
from mmaprobe.probing.long_sums.tree_arrays import Builder, TreeArrays
from mmaprobe.showing import counted

Steps = Generator[list[Ask], Any, Any]
"""Work on one part: yields what it asks, is sent the counts, returns what it found."""


@dataclass(eq=False)
class LeafGroup:
    """Leaves that join the rest at one node; ``outside`` is a leaf on the other side of it (None: all leaves).

    ``paths``: the terms that join there (several: a fused node), None until they are known.
    """

    leaves: list[int]
    outside: int | None
    paths: list[Path] | None = None


@dataclass(eq=False)
class Path:
    """A term: its pivot, and the parts that join on the way up from it."""

    pivot: int
    parts: list[LeafGroup] = field(default_factory=list)


def read_tree(calls: MaskedCalls) -> TreeArrays:
    """The tree; sets of leaves that the budget did not reach are ``unknown`` nodes.

    All sets that are known are split at the same time, each round one batch of
    calls, largest sets first.  NoTreeError where the answers fit no tree of
    rounded additions.
    """
    order = [LeafGroup(list(range(calls.leaves)), None)]
    at_work: list[tuple[LeafGroup, Steps]] = [(order[0], _paths(calls, order[0]))]
    answers: list[list[list[int]] | None] = [None]
    while at_work:
        asked, new = list[tuple[LeafGroup, Steps, list[Ask]]](), list[LeafGroup]()
        for (part, steps), answer in zip(at_work, answers, strict=True):
            try:
                asked.append((part, steps, steps.send(answer)))
            except StopIteration as end:
                part.paths = end.value
                new += [below for path in part.paths for below in path.parts]
        order += new
        for part in new:
            steps = _paths(calls, part)
            try:
                asked.append((part, steps, next(steps)))
            except StopIteration as end:
                part.paths = end.value
        asked = _within(asked, calls.budget - calls.calls)
        counts = iter(calls.survivors([ask for _, _, asks in asked for ask in asks]))
        at_work = [(part, steps) for part, steps, _ in asked]
        answers = [[next(counts) for _ in asks] for _, _, asks in asked]
    return _assemble(order)


def _within(asked: list[tuple[LeafGroup, Steps, list[Ask]]], budget: int) -> list[tuple[LeafGroup, Steps, list[Ask]]]:
    """What can still be asked, largest sets first."""
    out = []
    for item in sorted(asked, key=lambda item: -len(item[0].leaves)):
        cost = sum(len(ask.others) for ask in item[2])
        if cost <= budget:
            budget -= cost
            out.append(item)
    return out


def _assemble(order: list[LeafGroup]) -> TreeArrays:
    """The tree of parts that come before the parts below them."""
    built = Builder()
    terms: dict[int, list[int]] = {}
    for part in reversed(order):
        if part.paths is None:
            leaves = [built.leaf(leaf) for leaf in part.leaves]
            terms[id(part)] = leaves if len(leaves) == 1 else [built.node(leaves, unknown=True)]
            continue
        tops = []
        for path in part.paths:
            top = built.leaf(path.pivot)
            for below in path.parts:
                top = built.node((top, *terms[id(below)]))
            tops.append(top)
        terms[id(part)] = tops
    return built.tree(terms[id(order[0])][0])


def _paths(calls: MaskedCalls, part: LeafGroup) -> Steps:
    """The terms of a part, each by a pivot; all of them only where the part was a single one or a fused node's."""
    paths = []
    rest = part.leaves
    while rest:
        pivot = rest[calls.random.randrange(len(rest))]
        members = [leaf for leaf in rest if leaf != pivot]
        sets, rest = yield from _split(calls, pivot, members, part.outside)
        paths.append(Path(pivot, [LeafGroup(leaves, pivot) for leaves in sets]))
    return paths


def _split(calls: MaskedCalls, pivot: int, members: list[int], outside: int | None) -> Steps:
    """Members by the node where they meet the pivot, lowest first; and those that meet it where ``outside`` joins."""
    if not members:
        return [], []
    if len(members) + (outside is not None) > calls.count:
        sets = yield from _sampled(calls, pivot, members)
        if outside is None:
            return sets, []
        ((beyond,),) = yield [Ask(pivot, [sets[-1][0]], [outside])]
        return (sets, []) if beyond else (sets[:-1], sets[-1])
    units = members if outside is None else [*members, outside]
    (left,) = yield [Ask(pivot, members, units)]
    sets, known, rest = [], 0, list[int]()
    by_loss = sorted((len(units) - count, leaf) for leaf, count in zip(members, left, strict=True))
    for loss, group in groupby(by_loss, key=lambda pair: pair[0]):
        leaves = [leaf for _, leaf in group]
        known += len(leaves)
        if loss == known:
            sets.append(leaves)
        elif loss == known + 1 == len(units) and outside is not None:
            rest = leaves
        else:
            raise NoTreeError(_misfit(calls, pivot, leaves[0], loss, known, len(units)))
    return sets, rest


def _misfit(calls: MaskedCalls, pivot: int, leaf: int, loss: int, known: int, units: int) -> str:
    if loss == 1:
        return f"nothing is lost within {counted(calls.window, 'bit')}: no order shows"
    return (
        f"with 2^{calls.high} on leaves {pivot} and {leaf} {loss} of {units} leaves are lost, "
        f"but {known} meet leaf {pivot} there or below"
    )


def _sampled(calls: MaskedCalls, pivot: int, members: list[int]) -> Steps:
    """Members by the node where they meet the pivot, lowest first, with no more units than can be counted."""
    if len(members) == 1:
        return [members]
    units = calls.random.sample(members, min(len(members), calls.count))
    (counts,) = yield [Ask(pivot, members, units)]
    by_loss = sorted((len(units) - count, leaf) for leaf, count in zip(members, counts, strict=True))
    sampled, sets = set(units), list[list[int]]()
    for _, group in groupby(by_loss, key=lambda pair: pair[0]):
        leaves = [leaf for _, leaf in group]
        seen = [leaf for leaf in leaves if leaf in sampled]
        if not seen:
            sets += yield from _sampled(calls, pivot, leaves)
            continue
        others = [leaf for leaf in leaves if leaf not in sampled]
        above = yield from _kept(calls, pivot, seen[0], others)
        sets.append([leaf for leaf in leaves if leaf not in above])
        if above:
            sets += yield from _sampled(calls, pivot, sorted(above))
    return sets


def _kept(calls: MaskedCalls, pivot: int, other: int, members: list[int]) -> Steps:
    """The members that come through with +M on the pivot and -M on ``other``, by counting and halving."""
    parts = [members[start : start + calls.count] for start in range(0, len(members), calls.count)]
    found: set[int] = set()
    while parts:
        halves: list[list[int]] = []
        counts = yield [Ask(pivot, [other], part) for part in parts]
        for part, (kept,) in zip(parts, counts, strict=True):
            if kept == len(part):
                found |= {*part}
            elif kept:
                middle = len(part) // 2
                halves += [part[:middle], part[middle:]]
        parts = halves
    return found
