"""The summation tree one unit at a time, where the counts of the mask experiment do not tell.

Roundings that leave traces of what they swallow (directed ones, to odd) make no counts, but
beside +M and -M a single unit that was swallowed never comes out as itself.  For one leaf i
and every other leaf j the leaves that vanish are the node in which i and j meet, or, where
that sums without loss, the two of its terms that hold them: the smallest of these sets gives
the next node on the way of i to the root.  What joins there is read in turn.  K**2 vectors of
a chain or of one fused sum, no more than K**2 log K of a tree.  Units beside pairs that were not
read must then vanish as the tree says.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, pairwise

from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node, leaves_of
from mmaprobe.probing.trees.mask import lost_leaves, vanished

Part = Node | Leaf
FEW = 8
"""Leaves of which all triples are held against the tree; of more leaves, so many times their number."""


async def read_units(session: ProbeSession) -> Node | None:
    """The tree that every set agrees with; None where there is none."""
    tree = await _read(session, session.leaves)
    return tree if isinstance(tree, Node) and await _holds(session, tree) else None


async def _holds(session: ProbeSession, tree: Node) -> bool:
    """Whether single units beside other pairs vanish as the tree says: all of them, or many at random."""
    leaves = session.leaves
    if len(leaves) > FEW:
        source = random.Random(session.bench.seed)
        chosen = [source.sample(leaves, 3) for _ in range(FEW * len(leaves))]
        cases = [(i, j, k) for i, j, k in chosen] + [(i, j, leaves[0]) for i, j in pairwise(leaves[1:])]
    else:
        cases = [(i, j, k) for i, j in combinations(leaves, 2) for k in leaves if k not in (i, j)]
    m = power(session.high)
    gone, bare = await together(
        vanished(session, cases), session.sums_at((m, -m), dict.fromkeys((i, j) for i, j, _ in cases))
    )
    told = all((k in tree.lost(i, j)) == each for (i, j, k), each in zip(cases, gone, strict=True))
    return told and (session.complement is not None or set(bare) == {0})


async def _read(session: ProbeSession, leaves: Sequence[Leaf]) -> Part | None:
    """The tree of these leaves, which are one sum."""
    first, *others = leaves
    if not others:
        return first
    pairs = [(first, leaf) for leaf in others]
    lost = await lost_leaves(session, pairs, leaves)
    if lost is None:
        return None
    here: Part = first
    while others:
        inside = set(leaves_of(here))
        joins = min((lost[first, leaf] - inside for leaf in others), key=len)
        if not joins or any(not inside <= lost[first, leaf] for leaf in others):
            return None
        witness = next(leaf for leaf in others if leaf in joins)
        apart = [leaf for leaf in others if witness not in lost[first, leaf]]
        members = [leaf for leaf in others if leaf in joins or leaf in apart]
        if apart:
            sets = {frozenset(lost[first, leaf] - inside) for leaf in members}
            groups = [[leaf for leaf in members if leaf in some] for some in sets]
        else:
            groups = await _split(session, first, members)
        if sorted(map(str, members)) != sorted(str(leaf) for group in groups for leaf in group):
            return None
        parts = await together(*(_read(session, group) for group in groups))
        if any(part is None for part in parts):
            return None
        here = Node((here, *parts), bool(apart))
        others = [leaf for leaf in others if leaf not in members]
    fits = isinstance(here, Node) and all(here.lost(first, leaf) == lost[first, leaf] for leaf in leaves[1:])
    return here if fits else None


async def _split(session: ProbeSession, outside: Leaf, members: Sequence[Leaf]) -> list[list[Leaf]]:
    """The terms of a node among its members: two of one term meet without a leaf that is outside of both."""
    pairs = list(combinations(members, 2))
    lost = await lost_leaves(session, pairs, (outside,)) if pairs else {}
    groups: list[list[Leaf]] = []
    for leaf in members:
        mine = next((g for g in groups if lost is not None and outside not in lost[g[0], leaf]), None)
        if mine is None:
            groups.append([leaf])
        else:
            mine.append(leaf)
    return groups
