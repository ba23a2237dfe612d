"""Where C enters: which lanes are summed before it, with it, after it.

Read from the summation tree, which the mask experiment measured; the witnesses
put +M in C and -M in one lane each, units elsewhere: lanes that C meets later
survive.

Answer: ``{"enters": "first" | "last" | "inside" | "with all" | "absent", "before": [lanes],
"with": [lanes], "after": [lanes]}``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.questions.summation_tree import shown_tree
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, leaves_of
from mmaprobe.showing import counted


async def probe_c_position(session: ProbeSession) -> Finding:
    """Where C enters (see the module)."""
    lanes: list[Any] = list(range(session.k))
    if not session.is_float:
        answer: dict[str, Any] = {"enters": "with all", "before": [], "with": lanes, "after": []}
        return session.finding("bounded", answer, "an integer sum: its order does not show")
    found = await shown_tree(session)
    tree = found.tree
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree")
    siblings = [child for child in tree.parent_of("c").children if child != "c"]
    beside = [child for child in siblings if isinstance(child, int)]
    before = sorted(leaf for child in siblings for leaf in leaves_of(child) if leaf not in beside)
    after = [lane for lane in lanes if lane not in beside and lane not in before]
    enters = {(True, True): "inside", (True, False): "last", (False, True): "first", (False, False): "with all"}
    answer = {"enters": enters[bool(before), bool(after)], "before": before, "with": sorted(beside), "after": after}
    if session.k > 1:
        for lane in (0, session.k - 1):
            terms: dict[Leaf, Fraction] = {"c": power(session.high), lane: -power(session.high)}
            await session.witness(terms, f"+M in C, -M in lane {lane}, units elsewhere", power(session.low))
    text = (
        f"C enters {answer['enters']}: {counted(len(before), 'lane')} before, {len(beside)} with it, {len(after)} after"
    )
    if found.reason:
        return session.finding("bounded", answer, f"{text}; {found.reason}")
    return session.finding("exact", answer, text)


PROBE = Probe(
    order=60,
    asks="where C enters",
    rivals="first, last, inside, with all",
    experiment=probe_c_position,
    applies=lambda made: made.c is not None,
    otherwise=({"enters": "absent", "before": [], "with": [], "after": []}, "the instruction has no C"),
    sound=lambda answer: answer["enters"] in ("first", "last", "inside", "with all", "absent"),
)
