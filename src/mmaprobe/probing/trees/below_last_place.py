"""Experiments just below the last place kept beside two anchors (``inner_groups`` says what they are for)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from mmaprobe import formats
from mmaprobe.probing.experiments.ladders import climb
from mmaprobe.probing.experiments.tipping import ladders_of
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node

Group = tuple[Leaf, ...]

WIDTHS = frozenset(fmt.fraction_bits for fmt in map(formats.get, ("f16", "bf16", "f32", "f64")))
"""Fraction bits that a rounded sum can keep."""

THREE = 3
"""Lanes of one sum that the experiments take."""


async def read_groups(session: ProbeSession, heads: Sequence[Leaf], lanes: Sequence[Leaf]) -> tuple[Group, ...]:
    """The lanes by group, each group by its first lane: those that joined beside one pair of anchors or another.

    Three pairs: what is in a group with the first lane and the next is not in one with the last.
    """
    first, second, last = heads[0], heads[1], heads[-1]
    pairs = [(first, second), (first, last), (first, heads[2]) if first not in lanes else (second, last)]
    tasks = (_partition(session, pair, [lane for lane in lanes if lane not in pair]) for pair in pairs)
    found = [set(group) for some in await together(*tasks) for group in some]
    groups: list[set[Leaf]] = []
    for some in [{lane} for lane in lanes] + found:
        met = [group for group in groups if group & some]
        groups = [*(group for group in groups if group not in met), some.union(*met)]
    ordered = (tuple(lane for lane in lanes if lane in group) for group in groups)
    return tuple(sorted(ordered, key=lambda group: lanes.index(group[0])))


async def _partition(session: ProbeSession, anchors: tuple[Leaf, Leaf], lanes: Sequence[Leaf]) -> list[list[Leaf]]:
    """Lanes that are added before they are cut beside the anchors: one against all, then the others in pairs.

    A lane in a group with one of the anchors may tell their sign; two of one group tell it alike.
    """
    kept = await kept_beside(session, anchors, lanes[-1]) if lanes else 0
    if kept < 1 or kept >= session.window:
        return []
    place, base = power(session.high - kept), anchored(session, anchors)
    first, *more = lanes
    one, other, (whole,), row = await together(
        *(
            session.sums([some | {lane: place / 2} for lane in lanes])
            for some in (base, anchored(session, anchors[::-1]))
        ),
        session.sums([base | dict.fromkeys(more, place / 2)]),
        _joined(session, anchors, [(first, lane) for lane in more], place),
    )
    alone = {lane: (x, y) for lane, x, y in zip(lanes, one, other, strict=True)}
    row = [[x, y] for x, y in row if alone[x] == alone[y]]
    if not row and whole is not None and one[0] is not None and whole == len(more) * one[0]:
        return []
    mine = {leaf for pair in row for leaf in pair} | {first}
    pairs = combinations([leaf for leaf in more if leaf not in mine], 2)
    found: list[list[Leaf]] = row + await _joined(
        session, anchors, [p for p in pairs if alone[p[0]] == alone[p[1]]], place
    )
    return found


async def _joined(
    session: ProbeSession, anchors: tuple[Leaf, Leaf], pairs: Sequence[tuple[Leaf, Leaf]], place: Fraction
) -> list[list[Leaf]]:
    """The pairs whose halves of a place are that place, whatever the signs of the anchors."""
    cases = []
    for some in (anchors, anchors[::-1]):
        base = anchored(session, (some[0], some[1]))
        cases.append(session.sums([base | {x: place / 2, y: place / 2} for x, y in pairs]))
    sums = zip(pairs, *(await together(*cases)), strict=True)
    return [[x, y] for (x, y), one, other in sums if one == other == place]


def anchored(session: ProbeSession, anchors: Sequence[Leaf]) -> dict[Leaf, Fraction]:
    return {anchors[0]: power(session.high), anchors[1]: -power(session.high)}


async def kept_beside(session: ProbeSession, anchors: tuple[Leaf, Leaf], term: Leaf) -> int:
    """Places below the anchors at which a term still comes out whole."""
    return await climb(
        session, 1, session.window,
        lambda t: anchored(session, anchors) | {term: power(session.high - t)},
        lambda t, value: value == power(session.high - t),
    )  # fmt: skip


async def joins_later(session: ProbeSession, acc: Leaf, lanes: Sequence[Leaf]) -> bool | None:
    """Whether products are added up before C, or the sum so far, joins them; None where it does not show.

    A tiny term of a sign that leaves no trace beside lanes, further down than a tie of their
    alignment could be, must tip the result; where one tips it beyond its last places but not as far
    down as beside lanes, the sum of the products was rounded first.
    """
    one, other, third = lanes[:THREE]
    beside, ways = await together(kept_beside(session, (one, other), third), ladders_of(session, Node((acc, *lanes))))
    if not 0 < beside < session.window - 2:
        return None
    below, base = power(session.high - beside - 2), anchored(session, (one, other))
    traces = await session.sums(base | {third: sign * below} for sign in (1, -1))
    clean = [sign for sign, value in zip((1, -1), traces, strict=True) if value == 0]
    reach = max((way.bits for (_, sign), way in ways.items() if way is not None and sign in clean), default=0)
    bits = session.d.fraction_bits + 1
    if reach in (beside, beside + 1):
        return None if abs(reach - 2 * bits) <= 1 else False  # a sum rounded first would reach as far
    return True if reach > max(bits, beside) or (reach > bits and reach not in WIDTHS) else None
