"""Whether a fused sum is normalised only at its end.

Two anchors of 1.5 * 2**m carry a partial sum into the next binade, two of -1.5 * 2**m
take them away, one term is the last place kept, 2**(m - F).  Normalised at the end
the term comes out whole; an adder that shifts its partial sum right after the carry
has lost it.  Every way to give the five to five leaves is tried, since the order of
the adder is unknown.

Answer: ``{"delayed": bool | None}``; None where there is no fused sum, each addition then being
rounded on its own (the question intermediate_rounding).  Where nothing is cut within the window
the term is the lowest there is, and the finding is bounded.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.questions.accumulator_precision import kept_bits
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node

FIVE = 5
"""Leaves of the experiment."""

NOTHING_DELAYED = "no fused sum of five terms: nothing is delayed"


def _leaves(node: Node) -> list[Leaf]:
    return [child for child in node.children if not isinstance(child, Node)]


async def probe_normalisation(session: ProbeSession) -> Finding:
    """When a fused sum is normalised (see the module)."""
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree")
    nodes = [node for node in tree.walk() if node.fused and len(_leaves(node)) >= FIVE]
    if not nodes:
        return session.finding("exact", {"delayed": None}, NOTHING_DELAYED)
    kept = await kept_bits(session)
    leaves = _leaves(nodes[-1])
    known = [leaf for leaf in leaves if leaf in kept]
    bits = min((kept[leaf] for leaf in known), default=session.window)
    cut = len(known) >= FIVE and bits + 1 < session.window
    leaves, bits = (known, bits) if cut else (leaves, session.window - 1)
    m = session.high - 1
    some = [*leaves[:3], *leaves[-2:]]
    anchor, term = 3 * power(m - 1), power(m - bits)
    orders: list[dict[Leaf, Fraction]] = []
    for place in some:
        rest = [leaf for leaf in some if leaf != place]
        for up in combinations(rest, 2):
            orders.append({leaf: anchor if leaf in up else -anchor for leaf in rest} | {place: term})
    vectors = [v for t in orders if (v := session.try_vector(t)) is not None]
    if not vectors:
        return session.finding("inconclusive", {"delayed": None}, "the anchors do not exist in these formats")
    codes = await session.ask(vectors)
    whole = [value == term for value in session.decode(codes)]
    lost = whole.index(False) if False in whole else 0
    session.note(vectors[lost], codes[lost], f"two anchors that carry, 2^{m - bits}, the anchors taken away")
    if all(whole):
        text = "normalised at the end: the carry costs no place"
        return session.finding(
            "exact" if cut else "bounded",
            {"delayed": True},
            text if cut else f"{text} of the {bits} that exist below it",
        )
    text = f"a place was lost on a carry in {whole.count(False)} of {len(whole)} orders"
    return session.finding("exact", {"delayed": False}, text)


PROBE = Probe(
    order=120,
    asks="is a fused sum normalised only at its end",
    rivals="yes, no",
    experiment=probe_normalisation,
    applies=floats,
    otherwise=({"delayed": None}, NOTHING_DELAYED),
    sound=lambda answer: answer["delayed"] in (True, False, None),
)
