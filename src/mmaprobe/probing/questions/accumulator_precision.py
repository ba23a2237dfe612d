"""How many fraction bits a term keeps beside the largest one.

A term 2**(m-t) meets an anchor of exponent m which is taken away again by a
leaf that joins later (or in the same fused sum): the largest t at which the
term comes out whole, for every lane and for C.  In a fused sum that is F, in a
chain or a tree of rounded additions it is the fraction bits of the partial sum.

Where the window is too narrow or nothing joins later, the last node's rounding
is used as the detector: beside an anchor in C, with or without half a last
place on another lane, a tiny term tips the result; the smallest that does is
the last bit kept (``tips``).

The bits are counted from the anchor's own exponent; where block scales alone are the
label of a product (the question block_scales) C keeps as many more as the anchor is above 1.

Answer: ``{"products": F, "c": F, "lanes": {lane: F}, "at_least": [names]}``;
``products`` is None where lanes differ (then ``lanes`` lists them) or none could
be asked; a name in ``at_least`` marks a lower bound.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.anchor_places import AnchorPlace, inner_place
from mmaprobe.probing.experiments.pair_alignment import bits_of_c, bits_shown
from mmaprobe.probing.experiments.rounding import fraction_bits, keeps
from mmaprobe.probing.experiments.tipping import tips
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node
from mmaprobe.showing import counted


async def probe_accumulator_precision(session: ProbeSession) -> Finding:
    """Fraction bits of products and of C beside the largest term (see the module)."""
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree of two leaves or more")
    kept = dict(await kept_bits(session))
    await _show(session, tree, kept)
    below = {leaf for leaf, bits in kept.items() if bits >= session.window_of(leaf)}
    if not kept and (own := await bits_of_c(session, tree)) is not None:
        kept["c"] = own[0]
        below |= set() if own[1] else {"c"}
    if "c" in kept and "c" not in below and kept["c"] >= session.window:
        alone = power(session.high - kept["c"] - 1)
        below |= set() if await session.sums([{"c": alone}]) == [alone] else {"c"}  # the range of a sum ends there
    products = {leaf: bits for leaf, bits in kept.items() if leaf != "c"}
    limits = ({"c"} & below) | ({"products"} if any(leaf in below for leaf in products) else set())
    if not products or "products" in limits:
        tipped = await tips(session, tree)
        if tipped is not None and tipped.bits >= max(products.values(), default=0):
            products = dict.fromkeys(range(session.k), tipped.bits)
            limits = limits - {"products"} | ({"products"} if tipped.bounded else set())
            code = (await session.ask([tipped.shown]))[0]
            session.note(tipped.shown, code, f"the result is tipped by a term {counted(tipped.bits, 'bit')} down")
    answer = collapse(products) | {"c": kept.get("c"), "at_least": sorted(limits)}
    if answer["products"] is None and not answer["lanes"]:
        if answer["c"] is not None:
            return session.finding(
                "bounded", answer, f"fraction bits kept: C {_say(answer, 'c')}; products do not show"
            )
        shown = await bits_shown(session, tree)
        if shown is None:
            return session.finding("inconclusive", answer, "no term can be watched beside a larger one")
        answer |= {"products": shown, "at_least": ["products"]}
        return session.finding("bounded", answer, f"{_text(answer)}: as many as the result")
    return session.finding("bounded" if limits else "exact", answer, _text(answer))


async def kept_bits(session: ProbeSession) -> dict[Leaf, int]:
    """Fraction bits kept by each leaf that has an inner place, found out once for all questions."""
    found: dict[Leaf, int] = await session.fact("kept bits", _kept)
    return found


async def _kept(session: ProbeSession) -> dict[Leaf, int]:
    """A ladder for C and for the first lane; the other lanes are held against the first."""
    tree = await tree_of(session)
    places = {} if tree is None else {leaf: inner_place(tree, leaf) for leaf in session.leaves}
    there = {leaf: place for leaf, place in places.items() if place is not None}
    lanes = [leaf for leaf in there if leaf != "c"]
    ladders = [leaf for leaf in there if leaf == "c" or leaf in lanes[:1]]
    out = dict(zip(ladders, await together(*(_ladder(session, there[x]) for x in ladders)), strict=True))
    known = out[lanes[0]] if lanes else None
    if known is not None:
        alike = await together(*(keeps(session, there[leaf], known) for leaf in lanes[1:]))
        out |= {leaf: known for leaf, same in zip(lanes[1:], alike, strict=True) if same}
    others = [leaf for leaf in there if leaf not in out]
    out |= zip(others, await together(*(_ladder(session, there[leaf]) for leaf in others)), strict=True)
    return {leaf: out[leaf] for leaf in there if out[leaf] is not None}


async def _ladder(session: ProbeSession, place: AnchorPlace) -> int | None:
    return await fraction_bits(session, place, session.window_of(place.term))


async def _show(session: ProbeSession, tree: Node, kept: dict[Leaf, int]) -> None:
    """Witnesses for C and lane 0: the last place kept, and half of it."""
    for leaf in [leaf for leaf in ("c", 0) if leaf in kept]:
        place = inner_place(tree, leaf)
        for bits, note in ((kept[leaf], "the last place kept"), (kept[leaf] + 1, "not kept whole")):
            terms = {} if place is None else place.terms(3 * power(session.high - 1), power(session.high - bits))
            if session.try_vector(terms) is not None:
                await session.witness(terms, f"2^{session.high - bits} beside 1.5 * 2^{session.high}: {note}")


def collapse(products: dict[Leaf, Any]) -> dict[str, Any]:
    """One value for all lanes, or None and the values by lane."""
    same = len({repr(value) for value in products.values()}) == 1
    lanes = {} if same else {str(leaf): value for leaf, value in products.items()}
    return {"products": next(iter(products.values())) if same else None, "lanes": lanes}


def _say(answer: dict[str, Any], name: str) -> str:
    return f"{'>= ' if name in answer['at_least'] else ''}{answer[name]}"


def _text(answer: dict[str, Any]) -> str:
    lanes = answer["lanes"]
    products = f"by lane {lanes}" if lanes else _say(answer, "products")
    beside = f", C {_say(answer, 'c')}" if answer["c"] is not None else ""
    return f"fraction bits kept: products {products}{beside}"


PROBE = Probe(
    order=70,
    asks="fraction bits kept beside the largest term, of products and of C",
    rivals="a number, or at least that",
    experiment=probe_accumulator_precision,
    applies=floats,
    otherwise=(None, "integers: sums are exact"),
)
