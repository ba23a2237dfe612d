"""How the last sum becomes the result: fraction bits, rounding and ties.

Anchors of 1.5 * 2**h on leaves that meet in the last node, a small term of
x places on another (x in quarters, both signs of anchor and term).  Where the
last node aligns its terms, four anchors are added: the result's exponent is
then two above the terms', and quarters of a place survive the alignment.

Answer: ``{"fraction_bits": f, "rounding": [names that fit], "at_least": bool}``; one name when
exact, none and ``at_least`` where no term below the f-th bit reaches the rounding.
"""

from __future__ import annotations

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.anchor_places import AnchorPlace
from mmaprobe.probing.experiments.rounding import fit, fraction_bits, keep_evidence, watch
from mmaprobe.probing.experiments.tipping import tips
from mmaprobe.probing.questions.accumulator_precision import kept_bits
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Node, leaves_of
from mmaprobe.showing import counted


async def probe_result_rounding(session: ProbeSession) -> Finding:
    """Fraction bits and rounding of the result (see the module)."""
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree of two leaves or more")
    place, least = await _where(session, tree)
    bits = await fraction_bits(session, place, session.d.fraction_bits + 2)
    if bits is None:
        return session.finding("inconclusive", None, "no term below the anchor can be built")
    cases, quantum = await watch(session, place, bits, least)
    if not any((case.term / quantum).denominator > 1 for case in cases):
        answer = {"fraction_bits": bits, "rounding": [], "at_least": True}
        return session.finding("bounded", answer, f"{bits} or more: no term below that reaches the result")
    names = fit(cases, quantum)["sum"]
    keep_evidence(session, cases)
    answer = {"fraction_bits": bits, "rounding": names, "at_least": False}
    if not names:
        text = (
            f"{counted(bits, 'fraction bit')}, none of the 11 roundings alone: rounded twice, or by a rule of its own"
        )
        return session.finding("inconclusive", answer, text)
    text = f"{counted(bits, 'fraction bit')}, {' or '.join(names)}"
    if bits < session.d.fraction_bits and (least is None or least <= bits + 1):
        return session.finding("bounded", answer, f"{text}: by the result, or by what was cut before it")
    return session.finding("exact" if len(names) == 1 else "bounded", answer, text)


async def _where(session: ProbeSession, tree: Node) -> tuple[AnchorPlace, int | None]:
    """The place to watch, and the fraction bits below its anchor sum that an alignment leaves of the term.

    Where products reach too few exponents, C alone is the anchor, just high enough.
    """
    bits = session.d.fraction_bits
    lanes = tree.lanes
    if session.window < bits + 3 and "c" in tree.children and lanes:
        tipped = await tips(session, tree)
        place = AnchorPlace(("c",), lanes[0], None, session.low + bits + 2)
        return place, None if tipped is None else tipped.bits
    place = last_place(tree)
    least = await aligned_bits(session, tree, tree)
    return place, least if least is None else least + len(place.anchors).bit_length() - 1


async def roundings_that_fit(session: ProbeSession) -> tuple[str, ...]:
    """The names that the question leaves, found out once for all questions; empty where none could be read."""
    names: tuple[str, ...] = await session.fact("result rounding", _names)
    return names


async def _names(session: ProbeSession) -> tuple[str, ...]:
    answer = (await probe_result_rounding(session)).answer
    return tuple(answer["rounding"]) if answer else ()


def last_place(node: Node) -> AnchorPlace:
    """Anchors and term on leaves that meet only in this node; four anchors if it has that many terms."""
    heads = [leaves_of(child)[0] for child in sorted(node.children, key=lambda child: isinstance(child, Node))]
    count = 1 if not node.fused else 4 if len(heads) > 4 else 2
    return AnchorPlace(tuple(heads[1 : count + 1]), heads[0], None)


async def aligned_bits(session: ProbeSession, tree: Node, node: Node) -> int | None:
    """Fraction bits that the term of ``last_place`` keeps beside an equal anchor in a fused node; None: all."""
    return (await kept_bits(session)).get(last_place(node).term) if node.fused else None


PROBE = Probe(
    order=150,
    asks="how the last sum becomes the result",
    rivals="fraction bits and the eleven roundings",
    experiment=probe_result_rounding,
    applies=floats,
    otherwise=(None, "integers: nothing is rounded"),
    sound=lambda answer: answer is None or bool(answer["rounding"] or answer["at_least"]),
)
