"""What happens to products and partial sums before the last sum.

Products: a product too wide for the result's format, (1 + i)(1 + j), meets the
negative of its upper part; what is left is its exact lower part, or what a
rounding made of it.  Partial sums: in every node below the last one, an
anchor and a term of x last places, the anchor taken away by the leaf that
joins next.

Answer: ``{"product": "exact" | "rounded" | "fits" | None, "product_rounding": [names],
"rounded_lanes": [lanes], "sums": {"fraction_bits": f, "rounding": [names]} | None,
"nodes": [...]}``.  ``fits``: no product is wider than the result, exact or not.
``rounded_lanes``: those whose product was rounded (a chain that starts at zero rounds
its first).  ``nodes`` lists the partial sums one by one where they differ.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.places import Place, outside_leaf
from mmaprobe.probing.products import read_products
from mmaprobe.probing.result_rounding import aligned_bits, last_place
from mmaprobe.probing.rounding import fit, fraction_bits, keep_evidence, watch
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Node
from mmaprobe.probing.writing import to_json

QUESTION = "intermediate_rounding"


def probe_intermediate_rounding(session: Session) -> Finding:
    """Rounding of products and of partial sums (see the module)."""
    if not session.is_float:
        return session.finding(QUESTION, "exact", None, "integers: products and sums are exact")
    tree = session.tree
    if tree is None:
        return session.finding(QUESTION, "inconclusive", None, "needs a summation tree of two leaves or more")
    products = read_products(session, tree)
    nodes = [(node, *_read(session, tree, node)) for node in tree.walk()[1:]]
    kinds = {(bits, tuple(names)) for _, bits, names in nodes}
    answer: dict[str, Any] = products.answer() | {"sums": None, "nodes": []}
    if len(kinds) == 1:
        bits, names = next(iter(kinds))
        answer["sums"] = {"fraction_bits": bits, "rounding": list(names)}
    elif kinds:
        answer["nodes"] = [{"node": to_json(n), "fraction_bits": b, "rounding": r} for n, b, r in nodes]
    sums = "; ".join(f"{bits} fraction bits {' or '.join(names) or 'hidden'}" for bits, names in sorted(kinds, key=str))
    text = f"products {products.text()}; " + (f"partial sums {sums}" if kinds else "no partial sums")
    exact = products.kind is not None and all(len(names) == 1 for _, names in kinds)
    return session.finding(QUESTION, "exact" if exact else "bounded", answer, text)


def _read(session: Session, tree: Node, node: Node) -> tuple[int | None, list[str]]:
    """Fraction bits and the roundings that fit of one partial sum; no names where a cut hides its rounding."""
    top = last_place(node)
    away = outside_leaf(tree, node)
    place = Place(top.anchors, top.term, away)
    bits = fraction_bits(session, place, session.d.fraction_bits + 2)
    if bits is None or away is None:
        return None, []
    least = aligned_bits(session, tree, node)
    if least is not None:
        least += len(place.anchors).bit_length() - 1
    cases, quantum = watch(session, place, bits, least)
    keep_evidence(session, cases, 2)
    hidden = not any((case.term / quantum).denominator > 1 for case in cases)
    return bits, [] if hidden else fit(cases, quantum)["sum"]
