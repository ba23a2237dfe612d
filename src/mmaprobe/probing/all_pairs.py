"""The summation tree from all pairs of the mask experiment, where a few rows do not tell."""

from __future__ import annotations

from itertools import combinations

from mmaprobe.probing.ladders import count_good
from mmaprobe.probing.masks import lost_leaves, mask
from mmaprobe.probing.rounds import together
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Node, build

BEYOND = 48
"""Places below the result's last one down to which traces are looked for."""


async def read_pairs(session: Session, window: int, strict: bool) -> Node | None:
    """The tree that fits all pairs in one window; where lossless sums leave a choice, unit by unit."""
    leaves = session.leaves
    pairs = list(combinations(leaves, 2))
    counts = await mask(session, pairs, window, strict)
    if counts is None:
        return None
    loss = {pair: len(leaves) - n for pair, n in counts.items()}
    tree = build(leaves, loss)
    choice = isinstance(tree, Node) and len(tree.walk()) > 1 and any(node.lossless for node in tree.walk())
    if strict and not choice:
        return tree if isinstance(tree, Node) else None
    first, second, *_, last = leaves
    rows = pairs if strict else [pair for pair in pairs if {first, second, last} & set(pair)]
    lost = await lost_leaves(session, window, rows, strict)
    tree = None if lost is None else build(leaves, loss, lost)
    if lost is None or not isinstance(tree, Node):
        return None
    return tree if all(tree.lost(i, j) == gone for (i, j), gone in lost.items()) else None


async def first_trace(session: Session) -> int | None:
    """The narrowest window in which a swallowed unit leaves a last place behind (directed roundings, to odd)."""
    leaves = session.leaves
    pairs = [(leaves[0], leaf) for leaf in leaves[1:]] + [(leaf, leaves[-1]) for leaf in leaves[1:-1]]
    pairs += [(j, i) for i, j in pairs]
    most = min(session.window, session.d.fraction_bits + BEYOND)
    windows = list(range(len(leaves).bit_length() + 1, most + 1))

    async def judge(some: list[int]) -> list[bool]:
        counts = await together(*(mask(session, pairs, window, True) for window in some))
        return [found is not None for found in counts]

    clean = await count_good(windows, judge)
    return windows[clean] if clean < len(windows) else None
