"""What is added before what inside the sums that the mask experiment sees.

Far below M everything is lost, so the mask sees the sum that swallows, not how it is made.  Just
below the last place kept that shows.  +-M on two leaves, half of that place on lanes x and y:
the place itself comes out where x and y were added first, nothing or twice the place where
each was cut alone.  Lanes that stand alone beside one pair of anchors, perhaps because
they are in a group with one of them, are asked again beside another pair.

C, or the sum so far, joins a finished sum of the products where a product leaves its trace
further below C (``tipping``) than below another product; where it leaves it just as far, C is
aligned with them, though it may keep more bits than they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node, leaves_of
from mmaprobe.probing.trees.below_last_place import (
    THREE,
    WIDTHS,
    Group,
    anchored,
    joins_later,
    kept_beside,
    read_groups,
)

Part = Node | Leaf
FOUR = 4
"""Leaves that the experiments take."""


@dataclass(frozen=True)
class SumReading:
    """What one sum turned out to be: groups of its lanes, whether the rest joins their finished sum,
    the child whose terms are terms of this sum, whether that stayed open, and the last place kept."""

    groups: tuple[Group, ...] = ()
    later: bool = False
    opened: Part | None = None
    doubt: bool = False
    place: int = 0


async def with_groups(session: ProbeSession, tree: Node) -> tuple[Node, bool]:
    """The tree with the groups of its sums; whether something about them stays open."""
    kinds: dict[tuple[int, int], list[Node]] = {}
    for node in tree.walk():
        if not node.lossless:
            kinds.setdefault((len(node.lanes), len(node.children)), []).append(node)
    readings = await together(*(_alike(session, nodes) for nodes in kinds.values()))
    found = {
        id(n): r for nodes, some in zip(kinds.values(), readings, strict=True) for n, r in zip(nodes, some, strict=True)
    }
    shown = _rebuilt(tree, found)
    return (shown if isinstance(shown, Node) else tree), any(reading.doubt for reading in found.values())


def _rebuilt(part: Part, found: dict[int, SumReading]) -> Part:
    if not isinstance(part, Node):
        return part
    reading = found.get(id(part), SumReading())
    children: list[Part] = []
    for child in part.children:
        inner = _rebuilt(child, found)
        children += inner.children if child is reading.opened and isinstance(inner, Node) else [inner]
    if reading.opened is not None:
        return Node(tuple(children), aligned=True)
    lanes = {lane for group in reading.groups for lane in group}
    others = [child for child in children if isinstance(child, Node) or child not in lanes]
    groups = [group[0] if len(group) == 1 else Node(group, aligned=True) for group in reading.groups]
    if reading.later and others:
        return Node((*others, Node(tuple(groups), aligned=True) if len(groups) > 1 else groups[0]))
    return Node((*others, *groups), part.lossless, part.fused)


async def _alike(session: ProbeSession, nodes: Sequence[Node]) -> list[SumReading]:
    """Sums of as many lanes each: the first is read; the others are when they do not do as it did."""
    if len(nodes) < FOUR:
        readings: list[SumReading] = await together(*(_read(session, node) for node in nodes))
        return readings
    first = await _read(session, nodes[0])
    if not first.place or len(first.groups) < len(nodes[0].lanes):
        return [first, *(await together(*(_read(session, node) for node in nodes[1:])))]
    others = await together(*(_held(session, node, first) for node in nodes[1:]))
    return [first, *others]


async def _held(session: ProbeSession, node: Node, first: SumReading) -> SumReading:
    """What was read of another sum without groups, where half places on all lanes are as many times one."""
    lanes = node.lanes
    base, half = anchored(session, (_heads(node)[0], lanes[0])), power(session.high - first.place - 1)
    inner = [lane for lane in lanes if lane not in base]
    whole, one = await session.sums([base | dict.fromkeys(inner, half), base | {inner[0]: half}])
    if whole is None or one is None or whole != len(inner) * one:
        return await _read(session, node)
    return SumReading(tuple((lane,) for lane in lanes), first.later, place=first.place)


def _heads(node: Node) -> list[Leaf]:
    return [*(leaves_of(child)[0] for child in node.children if not isinstance(child, int)), *node.lanes]


async def _read(session: ProbeSession, node: Node) -> SumReading:
    lanes, heads = node.lanes, _heads(node)
    others = len(heads) > len(lanes)
    if len(lanes) >= THREE and len(heads) >= FOUR:
        tasks = [read_groups(session, heads, lanes), kept_beside(session, (heads[0], heads[1]), lanes[-1])]
        groups, place, *later = await together(*tasks, *([joins_later(session, heads[0], lanes)] if others else []))
        return SumReading(groups, bool(later and later[0]), place=place if others else 0)
    if len(node.children) > 2:
        return SumReading()
    doubt = False
    for child, other in (node.children, node.children[::-1]):
        inner = child.lanes if isinstance(child, Node) else []
        if isinstance(child, Node) and len(inner) >= THREE and not child.lossless:
            last = await joins_later(session, leaves_of(other)[0], inner)
            if last is False:
                return SumReading(opened=child)
            doubt = doubt or last is None
        elif isinstance(child, Node) and len(inner) == len(child.children) == 2:
            kept = await kept_beside(session, (inner[0], leaves_of(other)[0]), inner[1])
            doubt = doubt or (kept > session.d.fraction_bits and kept not in WIDTHS)
    return SumReading(doubt=doubt)
