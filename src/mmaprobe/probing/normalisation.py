"""Whether a fused sum is normalised only at its end.

Two anchors of 1.5 * 2**m carry the sum into the next binade, one term of the last place
kept, 2**(m - F), and a lane of -3 * 2**m that takes the anchors away.  Normalised at the
end the term comes out whole; an adder that shifts its partial sum right after the
carry has lost it.  Every order of the four over the sum's leaves that starts with
the anchors is tried.

Answer: ``{"delayed": bool | None}``; None where there is no fused sum, each addition then being
rounded on its own (the question intermediate_rounding), or where nothing is cut.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.accumulator_precision import kept_bits
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf
from mmaprobe.probing.summation_tree import tree_of
from mmaprobe.probing.terms import power


async def probe_normalisation(session: Session) -> Finding:
    """When a fused sum is normalised (see the module)."""
    tree = await tree_of(session) if session.is_float else None
    if session.is_float and tree is None:
        return session.finding("inconclusive", None, "needs a summation tree")
    nodes = [node for node in tree.walk() if node.fused and len(node.children) > 3] if tree else []
    if not nodes:
        return session.finding("exact", {"delayed": None}, "no fused sum of four terms: nothing is delayed")
    leaves = [child for child in nodes[0].children if not hasattr(child, "children")]
    kept = await kept_bits(session)
    lanes = [leaf for leaf in leaves if leaf != "c" and leaf in kept]
    bits = min((kept[leaf] for leaf in lanes), default=session.window)
    if len(lanes) < 4 or bits + 1 >= session.window:
        return session.finding("inconclusive", {"delayed": None}, "no cut within the window: no place to lose")
    m = session.high - 2
    anchor, term = 3 * power(m - 1), power(m + 1 - bits)
    some: list[Leaf] = [lanes[0], lanes[1], lanes[-2], lanes[-1]]
    orders: list[dict[Leaf, Fraction]] = []
    for x, y, z, w in permutations(some):
        orders.append({x: anchor, y: anchor / 2, z: term, w: -anchor * 3 / 2})
    vectors = [v for t in orders if (v := session.try_vector(t)) is not None]
    if not vectors:
        return session.finding("inconclusive", {"delayed": None}, "the anchors do not exist in these formats")
    codes = await session.ask(vectors)
    whole = [value == term for value in session.decode(codes)]
    lost = whole.index(False) if False in whole else 0
    session.note(vectors[lost], codes[lost], f"two anchors that carry, 2^{m + 1 - bits}, the anchors taken away")
    if all(whole):
        return session.finding("exact", {"delayed": True}, "normalised at the end: the carry costs no place")
    text = f"a place was lost on a carry in {whole.count(False)} of {len(whole)} orders"
    return session.finding("exact", {"delayed": False}, text)
