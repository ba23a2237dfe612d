"""The summation tree from a few rows of the mask experiment instead of all pairs.

A first leaf against every other one gives the sizes of the nodes on its way to
the root, and which leaves join at each.  Two leaves that join at different nodes
meet at the higher one, so only those that join at the same node are open: a few
of them are asked in pairs; of many, one is held against the others, and where it
meets each at that node a ladder tells whether the others meet earlier (sums made
below the alignment survive where their terms alone are cut).  Rows of two more
leaves and as many pairs at random must then agree with the tree.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

from mmaprobe.probing.experiments.ladders import climb
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Loss, Node, build
from mmaprobe.probing.trees.mask import Pair, lost_leaves, mask

FEW = 8
"""Leaves of one node of which all pairs are asked; of more, one row of them."""


async def read_branches(session: ProbeSession) -> Node | None:
    """The tree in the session's window; None where something did not fit: single units must tell."""
    leaves = session.leaves
    pivot, second, last = leaves[0], leaves[1], leaves[-1]
    rows: list[Pair] = [(pivot, leaf) for leaf in leaves[1:]]
    checks: list[Pair] = [(second, leaf) for leaf in leaves[2:]] + [(leaf, last) for leaf in leaves[2:-1]]
    source = random.Random(session.bench.seed)
    chosen = (sorted(source.sample(range(1, len(leaves)), 2)) for _ in leaves)
    checks += [(leaves[first], leaves[other]) for first, other in chosen]
    measured, counts = await together(_losses(session, rows + checks), _counts(session))
    if measured is None or not counts:
        return None
    joins: dict[int, list[Leaf]] = {}
    for leaf in leaves[1:]:
        joins.setdefault(measured[pivot, leaf], []).append(leaf)
    insides = await together(*(_inside(session, size, group) for size, group in joins.items()))
    loss: Loss = {}
    for i, j in combinations(leaves[1:], 2):
        loss[i, j] = loss[j, i] = max(measured[pivot, i], measured[pivot, j])
    for leaf in leaves[1:]:
        loss[pivot, leaf] = loss[leaf, pivot] = measured[pivot, leaf]
    for inside in insides:
        if inside is None:
            return None
        loss |= inside
    return await _agreed(session, loss, measured, rows + checks[: len(leaves) - 2])


async def _agreed(session: ProbeSession, loss: Loss, measured: Loss, rows: list[Pair]) -> Node | None:
    """The tree of ``loss`` if everything measured agrees; lossless sums that leave a choice are asked unit by unit."""
    if any(loss[pair] != size for pair, size in measured.items()):
        return None
    tree = build(session.leaves, loss)
    if not isinstance(tree, Node):
        return None
    if len(tree.walk()) > 1 and any(node.lossless for node in tree.walk()):
        lost = await lost_leaves(session, rows)
        tree = None if lost is None else build(session.leaves, loss, lost)
        if not isinstance(tree, Node) or any(tree.lost(i, j) != gone for (i, j), gone in (lost or {}).items()):
            return None
    return tree


async def _counts(session: ProbeSession) -> bool:
    """Whether the result can count as many units as there are leaves."""
    unit = power(session.low)
    return await session.sums([{}], unit) == [len(session.leaves) * unit]


async def _losses(session: ProbeSession, pairs: list[Pair]) -> Loss | None:
    counts = await mask(session, pairs)
    return None if counts is None else {pair: len(session.leaves) - count for pair, count in counts.items()}


async def _inside(session: ProbeSession, size: int, group: Sequence[Leaf]) -> Loss | None:
    """The losses among leaves that join the first leaf at the same node, of this size."""
    first, *others = group
    if len(group) > FEW:
        row = await _losses(session, [(first, leaf) for leaf in others])
        if row is not None and set(row.values()) == {size} and await _flat(session, group):
            return {pair: size for x, y in combinations(group, 2) for pair in ((x, y), (y, x))}
    return await _losses(session, list(combinations(group, 2)))


async def _flat(session: ProbeSession, group: Sequence[Leaf]) -> bool:
    """Whether none of ``group`` meet before their node, the first of them known to meet none.

    Beside +-M, units on all others are as many times what a unit on one gives, at every height
    around the last one kept.
    """
    m = session.high
    anchors: dict[Leaf, int] = {session.leaves[0]: 1, group[0]: -1}
    base = {leaf: sign * power(m) for leaf, sign in anchors.items()}
    many = group[1:]
    kept = await climb(
        session, 1, session.window,
        lambda t: base | {many[-1]: power(m - t)}, lambda t, value: value == power(m - t),
    )  # fmt: skip
    heights = range(max(kept, 1), min(kept + len(group).bit_length() + 1, session.window) + 1)
    one = await session.sums(base | {many[-1]: power(m - t)} for t in heights)
    every = await session.sums(base | dict.fromkeys(many, power(m - t)) for t in heights)
    return all(x is not None and y == len(many) * x for x, y in zip(one, every, strict=True))
