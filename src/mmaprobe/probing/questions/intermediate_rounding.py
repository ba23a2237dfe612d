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
from mmaprobe.probing.experiments.anchor_places import Place, outside_leaf
from mmaprobe.probing.experiments.rounding import FEW, PLACES, fit, fraction_bits, keep_evidence, keeps, watch
from mmaprobe.probing.questions.products import read_products
from mmaprobe.probing.questions.result_rounding import aligned_bits, last_place
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import Session
from mmaprobe.probing.tree import Node
from mmaprobe.probing.trees.tree_json import to_json

WIDER = 40
"""Fraction bits by which a partial sum may be wider than the result and be measured."""


async def probe_intermediate_rounding(session: Session) -> Finding:
    """Rounding of products and of partial sums (see the module)."""
    if not session.is_float:
        return session.finding("exact", None, "integers: products and sums are exact")
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree of two leaves or more")
    inner = tree.walk()[1:]
    products, first = await together(read_products(session, tree), _first(session, tree, inner))
    expected = first[0][0] if first else None
    others = await together(*(_read(session, tree, node, expected) for node in inner[len(first) :]))
    nodes = [(node, *read) for node, read in zip(inner, [*first, *others], strict=True)]
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
    return session.finding("exact" if exact else "bounded", answer, text)


async def _first(session: Session, tree: Node, inner: list[Node]) -> list[tuple[int | None, list[str]]]:
    """The partial sum next to the last one, at length; the others are then held against it."""
    return [await _read(session, tree, node) for node in inner[:1]]


async def _read(session: Session, tree: Node, node: Node, expected: int | None = None) -> tuple[int | None, list[str]]:
    """Fraction bits and the roundings that fit of one partial sum; no names where a cut hides its rounding."""
    top = last_place(node)
    away = outside_leaf(tree, node)
    place = Place(top.anchors, top.term, away)
    if away is None:
        return None, []
    bits, places = expected, FEW
    if bits is None or not await keeps(session, place, bits):
        bits, places = await fraction_bits(session, place, session.d.fraction_bits + WIDER), PLACES
    if bits is None:
        return None, []
    least = await aligned_bits(session, tree, node)
    if least is not None:
        least += len(place.anchors).bit_length() - 1
    cases, quantum = await watch(session, place, bits, least, places)
    keep_evidence(session, cases, 2)
    hidden = not any((case.term / quantum).denominator > 1 for case in cases)
    return bits, [] if hidden else fit(cases, quantum)["sum"]
