"""How a fused sum cuts its terms when it aligns them to the largest.

Beside an anchor of +-1.5 * 2**m that the same sum takes away again, a term of
x last places (x in quarters up to 2.75, both signs), where the last place is
2**(m - F) with F as measured: what comes out is the term as cut.  Anchors and term are in
three groups where the sum has groups (the question summation_tree).

Answer: ``{"products": [names], "c": [names], "lanes": {lane: [names]}}``, of the eleven
roundings; None where the leaf is in no fused sum, ``lanes`` only where lanes differ.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.anchor_places import AnchorPlace, clean_place, inner_place
from mmaprobe.probing.experiments.pair_alignment import nothing_aligned
from mmaprobe.probing.experiments.rounding import FEW, PLACES, RoundingCase, fit, fraction_bits, keep_evidence, watch
from mmaprobe.probing.questions.accumulator_precision import collapse, kept_bits
from mmaprobe.probing.questions.summation_tree import shown_tree, tree_of
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf


async def probe_alignment_rounding(session: ProbeSession) -> Finding:
    """The rounding of aligned terms (see the module)."""
    none: dict[str, Any] = {"products": None, "c": None, "lanes": {}}
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree of two leaves or more")
    leaves = [leaf for leaf in session.leaves if tree.parent_of(leaf).fused]
    if not leaves:
        return await nothing_aligned(session, tree, none)
    kept, shown = await together(kept_bits(session), shown_tree(session))
    places = {leaf: clean_place(tree, shown.tree, leaf) for leaf in leaves}
    kept = {leaf: bits for leaf, bits in kept.items() if places.get(leaf) == inner_place(tree, leaf)}
    names = await together(*(_read(session, leaf, places[leaf], kept, leaf in leaves[:2]) for leaf in leaves))
    found = {leaf: some for leaf, some in zip(leaves, names, strict=True) if some is not None}
    if not found:
        return session.finding("bounded", none, "no cut within the window")
    answer = collapse({leaf: names for leaf, names in found.items() if leaf != "c"}) | {"c": found.get("c")}
    text = f"products {_by_lane(answer)}, C {_say(answer['c'])}"
    if any(not names for names in found.values()):
        return session.finding("inconclusive", answer, f"{text}: some term follows none of the 11 roundings")
    exact = all(len(names) == 1 for names in found.values()) and len(found) == len(leaves)
    return session.finding("exact" if exact else "bounded", answer, text)


async def _read(
    session: ProbeSession, leaf: Leaf, place: AnchorPlace | None, kept: dict[Leaf, int], whole: bool
) -> list[str] | None:
    """The roundings that explain a leaf's cut; None where no cut lies within the window."""
    if place is None:
        return None
    bits = kept[leaf] if leaf in kept else await fraction_bits(session, place, session.window_of(leaf))
    if bits is None or bits >= session.window_of(leaf):
        return None
    cases, quantum = await watch(
        session, place, bits, places=PLACES if whole else FEW, anchors=(1, -1) if whole else (1,)
    )
    if not any((case.term / quantum).denominator > 1 for case in cases):
        return None
    if leaf in ("c", 0):
        keep_evidence(session, cases)
    return fit(cases, quantum)["term"] or fit(_not_dropped(cases), quantum)["term"]


def _not_dropped(cases: list[RoundingCase]) -> list[RoundingCase]:
    """The cases whose term is not below all that leave a trace: the others may be cut off (the question cutoff)."""
    least = min((abs(case.term) for case in cases if case.got), default=Fraction(0))
    return [case for case in cases if abs(case.term) >= least]


def _by_lane(answer: dict[str, Any]) -> str:
    kinds: dict[str, list[str]] = {}
    for lane, names in answer["lanes"].items():
        kinds.setdefault(_say(names), []).append(lane)
    return "; ".join(f"{kind} in lanes {' '.join(lanes)}" for kind, lanes in kinds.items()) or _say(answer["products"])


def _say(names: list[str] | None) -> str:
    return "not cut" if names is None else " or ".join(names) or "none of the 11"


PROBE = Probe(
    order=80,
    asks="how a term is cut where it is aligned to the largest one",
    rivals="RU RD RZ RA RO, to nearest with six tie rules",
    experiment=probe_alignment_rounding,
    applies=floats,
    otherwise=({"products": None, "c": None, "lanes": {}}, "integers: nothing is aligned"),
)
