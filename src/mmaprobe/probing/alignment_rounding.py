"""How a fused sum cuts its terms when it aligns them to the largest.

Beside an anchor of +-1.5 * 2**m that the same sum takes away again, a term of
x last places (x in quarters up to 2.75, both signs), where the last place is
2**(m - F) with F as measured: what comes out is the term as cut.

Answer: ``{"products": [names], "c": [names], "lanes": {lane: [names]}}``, of the eleven
roundings; None where the leaf is in no fused sum, ``lanes`` only where lanes differ.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.accumulator_precision import collapse
from mmaprobe.probing.places import inner_place
from mmaprobe.probing.rounding import fit, fraction_bits, keep_evidence, watch
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Node

QUESTION = "alignment_rounding"


def probe_alignment_rounding(session: Session) -> Finding:
    """The rounding of aligned terms (see the module)."""
    none: dict[str, Any] = {"products": None, "c": None, "lanes": {}}
    if not session.is_float:
        return session.finding(QUESTION, "exact", none, "integers: nothing is aligned")
    tree = session.tree
    if tree is None:
        return session.finding(QUESTION, "inconclusive", None, "needs a summation tree of two leaves or more")
    leaves = [leaf for leaf in session.leaves if tree.parent_of(leaf).fused]
    if not leaves:
        return session.finding(QUESTION, "exact", none, "no fused sum: nothing is aligned")
    found = {leaf: names for leaf in leaves if (names := _read(session, tree, leaf)) is not None}
    if not found:
        return session.finding(QUESTION, "bounded", none, "no cut within the window")
    answer = collapse({leaf: names for leaf, names in found.items() if leaf != "c"}) | {"c": found.get("c")}
    text = f"products {_say(answer['products'])}, C {_say(answer['c'])}"
    if any(not names for names in found.values()):
        return session.finding(QUESTION, "inconclusive", answer, f"{text}: some term follows none of the 11 roundings")
    exact = all(len(names) == 1 for names in found.values()) and len(found) == len(leaves)
    return session.finding(QUESTION, "exact" if exact else "bounded", answer, text)


def _read(session: Session, tree: Node, leaf: Leaf) -> list[str] | None:
    """The roundings that explain a leaf's cut; None where no cut lies within the window."""
    place = inner_place(tree, leaf)
    if place is None:
        return None
    bits = fraction_bits(session, place, session.window)
    if bits is None or bits >= session.window:
        return None
    cases, quantum = watch(session, place, bits)
    if not any((case.term / quantum).denominator > 1 for case in cases):
        return None
    if leaf in ("c", 0):
        keep_evidence(session, cases)
    return fit(cases, quantum)["term"]


def _say(names: list[str] | None) -> str:
    return "not cut" if names is None else " or ".join(names) or "none of the 11"
