"""How the last sum becomes the result: fraction bits, rounding and ties.

Anchors of 1.5 * 2**h on leaves that meet in the last node, a small term of
x places on another (x in quarters, both signs of anchor and term).  Where the
last node aligns its terms, four anchors are added: the result's exponent is
then two above the terms', and quarters of a place survive the alignment.

Answer: ``{"fraction_bits": f, "rounding": [names that fit]}``; one name when exact.
"""

from __future__ import annotations

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.rounding import Place, fit, fraction_bits, inner_place, keep_evidence, watch
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Node, leaves_of

QUESTION = "result_rounding"


def probe_result_rounding(session: Session) -> Finding:
    """Fraction bits and rounding of the result (see the module)."""
    if not session.is_float:
        return session.finding(QUESTION, "exact", {"fraction_bits": 0, "rounding": []}, "integer: nothing to round")
    tree = session.tree
    if tree is None:
        return session.finding(QUESTION, "inconclusive", None, "needs a summation tree of two leaves or more")
    place = last_place(tree)
    bits = fraction_bits(session, place, session.d.fraction_bits + 2)
    if bits is None:
        return session.finding(QUESTION, "inconclusive", None, "no term below the anchor can be built")
    least = aligned_bits(session, tree, tree)
    cases, quantum = watch(
        session, place, bits, least if least is None else least + len(place.anchors).bit_length() - 1
    )
    if not any((case.term / quantum).denominator > 1 for case in cases):
        return session.finding(QUESTION, "bounded", {"fraction_bits": bits, "rounding": []},
                               f"{bits} fraction bits; no term below the last place can be built")  # fmt: skip
    names = fit(cases, quantum)["sum"]
    keep_evidence(session, cases)
    answer = {"fraction_bits": bits, "rounding": names}
    if not names:
        return session.finding(QUESTION, "contradictory", answer, f"{bits} fraction bits, none of the 11 roundings")
    return session.finding(QUESTION, "exact" if len(names) == 1 else "bounded", answer,
                           f"{bits} fraction bits, {' or '.join(names)}")  # fmt: skip


def last_place(node: Node) -> Place:
    """Anchors and term on leaves that meet only in this node; four anchors if it has that many terms."""
    heads = [leaves_of(child)[0] for child in sorted(node.children, key=lambda child: isinstance(child, Node))]
    count = 1 if not node.fused else 4 if len(heads) > 4 else 2
    return Place(tuple(heads[1 : count + 1]), heads[0], None)


def aligned_bits(session: Session, tree: Node, node: Node) -> int | None:
    """Fraction bits that the term of ``last_place`` keeps beside an equal anchor in a fused node; None: all."""
    if not node.fused:
        return None
    place = inner_place(tree, last_place(node).term)
    return None if place is None else fraction_bits(session, place, session.window)
