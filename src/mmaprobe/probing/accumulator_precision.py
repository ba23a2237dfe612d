"""How many fraction bits a term keeps beside the largest one.

A term 2**(m-t) meets an anchor of exponent m which is taken away again by a
leaf that joins later (or in the same fused sum): the largest t at which the
term comes out whole, for every lane and for C.  In a fused sum that is F, in a
chain or a tree of rounded additions it is the fraction bits of the partial sum.

Where the window is too narrow or nothing joins later, the last node's rounding
is used as the detector: beside an anchor in C, with or without half a last
place on another lane, a tiny term tips the result; the smallest that does is
the last bit kept (``tips``).

Answer: ``{"products": F, "c": F, "lanes": {lane: F}, "at_least": [names]}``;
``products`` is None where lanes differ (then ``lanes`` lists them) or none could
be asked; a name in ``at_least`` marks a lower bound.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.places import inner_place
from mmaprobe.probing.rounding import fraction_bits
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Node
from mmaprobe.probing.terms import power
from mmaprobe.probing.tipping import tips

QUESTION = "accumulator_precision"


def probe_accumulator_precision(session: Session) -> Finding:
    """Fraction bits of products and of C beside the largest term (see the module)."""
    if not session.is_float:
        return session.finding(QUESTION, "exact", None, "integers: sums are exact")
    tree = session.tree
    if tree is None:
        return session.finding(QUESTION, "inconclusive", None, "needs a summation tree of two leaves or more")
    kept = kept_bits(session, tree)
    below = {leaf for leaf, bits in kept.items() if bits >= session.window}
    products = {leaf: bits for leaf, bits in kept.items() if leaf != "c"}
    limits = ({"c"} & below) | ({"products"} if any(leaf in below for leaf in products) else set())
    if not products or "products" in limits:
        tipped = tips(session, tree)
        if tipped is not None and tipped.bits >= max(products.values(), default=0):
            products = dict.fromkeys(range(session.instruction.k), tipped.bits)
            limits = limits - {"products"} | ({"products"} if tipped.bounded else set())
    answer = collapse(products) | {"c": kept.get("c"), "at_least": sorted(limits)}
    if answer["products"] is None and not answer["lanes"]:
        return session.finding(QUESTION, "inconclusive", answer, "no term can be watched beside a larger one")
    return session.finding(QUESTION, "bounded" if limits else "exact", answer, _text(answer))


def kept_bits(session: Session, tree: Node) -> dict[Leaf, int]:
    """Fraction bits kept by each leaf that has an inner place."""
    out: dict[Leaf, int] = {}
    known = 0
    for leaf in session.leaves:
        place = inner_place(tree, leaf)
        most = session.window if leaf == "c" or not known else min(session.window, known + 3)
        bits = None if place is None else fraction_bits(session, place, most)
        if bits == known + 3 and place is not None:
            bits = fraction_bits(session, place, session.window)
        if place is None or bits is None:
            continue
        out[leaf] = bits
        known = bits if leaf != "c" else known
        if leaf in ("c", 0):
            note = f"2^{session.high - bits} beside 1.5 * 2^{session.high}: the last place kept"
            terms = place.terms(3 * power(session.high - 1), power(session.high - bits))
            session.witness(terms, note)
            lost = place.terms(3 * power(session.high - 1), power(session.high - bits - 1))
            if session.try_vector(lost) is not None:
                session.witness(lost, "half of that: not kept whole")
    return out


def collapse(products: dict[Leaf, Any]) -> dict[str, Any]:
    """One value for all lanes, or None and the values by lane."""
    same = len({repr(value) for value in products.values()}) == 1
    lanes = {} if same else {str(leaf): value for leaf, value in products.items()}
    return {"products": next(iter(products.values())) if same else None, "lanes": lanes}


def _text(answer: dict[str, Any]) -> str:
    def say(name: str) -> str:
        return f"{'>= ' if name in answer['at_least'] else ''}{answer[name]}"

    lanes = answer["lanes"]
    products = f"by lane {lanes}" if lanes else say("products")
    beside = f", C {say('c')}" if answer["c"] is not None else ""
    return f"fraction bits kept: products {products}{beside}"
