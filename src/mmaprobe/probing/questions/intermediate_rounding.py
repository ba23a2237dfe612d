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

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.formats import ROUNDINGS
from mmaprobe.probing.experiments.anchor_places import AnchorPlace, outside_leaf
from mmaprobe.probing.experiments.rounding import FEW, PLACES, fit, fraction_bits, keep_evidence, keeps, round_to, watch
from mmaprobe.probing.questions.result_rounding import aligned_bits, last_place
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.chosen_operands import with_operands
from mmaprobe.probing.session.exact_values import Value, code_of, power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf, Node, leaves_of
from mmaprobe.probing.trees.tree_json import to_json
from mmaprobe.showing import counted

WIDER = 40
"""Fraction bits by which a partial sum may be wider than the result and be measured."""


async def probe_intermediate_rounding(session: ProbeSession) -> Finding:
    """Rounding of products and of partial sums (see the module)."""
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree of two leaves or more")
    inner = tree.walk()[1:]
    products, first = await together(_products(session, tree), _first(session, tree, inner))
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
    sums = "; ".join(
        f"{counted(bits, 'fraction bit')} {' or '.join(names) or 'hidden'}" for bits, names in sorted(kinds, key=str)
    )
    text = f"products {products.text()}; " + (f"partial sums {sums}" if kinds else "no partial sums")
    exact = products.kind is not None and all(len(names) == 1 for _, names in kinds)
    return session.finding("exact" if exact else "bounded", answer, text)


async def _first(session: ProbeSession, tree: Node, inner: list[Node]) -> list[tuple[int | None, list[str]]]:
    """The partial sum next to the last one, at length; the others are then held against it."""
    return [await _read(session, tree, node) for node in inner[:1]]


async def _read(
    session: ProbeSession, tree: Node, node: Node, expected: int | None = None
) -> tuple[int | None, list[str]]:
    """Fraction bits and the roundings that fit of one partial sum; no names where a cut hides its rounding."""
    top = last_place(node)
    away = outside_leaf(tree, node)
    place = AnchorPlace(top.anchors, top.term, away)
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


@dataclass(frozen=True)
class _Products:
    """``kind``: exact, rounded, fits (no product is wider than the result) or None (not readable)."""

    kind: str | None
    rounding: tuple[str, ...] = ()
    lanes: tuple[int, ...] = ()

    def answer(self) -> dict[str, Any]:
        return {"product": self.kind, "product_rounding": list(self.rounding), "rounded_lanes": list(self.lanes)}

    def text(self) -> str:
        if self.kind == "fits":
            return "fit the result's format"
        if self.kind != "rounded":
            return self.kind or "not readable"
        return f"rounded {' or '.join(self.rounding)} in lanes {', '.join(map(str, self.lanes))}"


async def _products(session: ProbeSession, tree: Node) -> _Products:
    """Every lane's wide products, beside the negative of their upper part on the leaf that they meet first."""
    f = min(session.formats["a"].fraction_bits, session.formats["b"].fraction_bits)
    spare = 2 * f - session.d.fraction_bits
    if spare < 2 or session.formats["a"] != session.formats["b"]:
        return _Products("fits" if spare < 0 else None)
    quantum = power(-session.d.fraction_bits)
    lanes = [_lane(session, tree, lane, f, spare) for lane in range(session.k)]
    if not all(lanes):
        return _Products(None)
    rounded: list[int] = []
    names, odd = set(ROUNDINGS), False
    answers = await together(*(session.values([vector for vector, _, _ in asked]) for asked in lanes))
    for lane, (asked, came) in enumerate(zip(lanes, answers, strict=True)):
        if all(answer == product - upper for answer, (_, product, upper) in zip(came, asked, strict=True)):
            continue
        fits = {r for r in names if _explains(r, came, asked, quantum)}
        odd = odd or not fits
        names, rounded = fits or names, [*rounded, lane]
        shown = asked[0][0]
        session.note(shown, (await session.ask([shown]))[0], f"a wide product in lane {lane} against its upper part")
    if not rounded:
        first = lanes[0][0][0]
        session.note(first, (await session.ask([first]))[0], "a wide product against its upper part: the rest remains")
        return _Products("exact")
    return _Products(None if odd else "rounded", tuple(r for r in ROUNDINGS if r in names), tuple(rounded))


def _explains(
    rounding: str, answers: list[Value], asked: list[tuple[Vector, Fraction, Fraction]], quantum: Fraction
) -> bool:
    return all(
        answer == round_to(product, quantum, rounding) - upper
        for answer, (_, product, upper) in zip(answers, asked, strict=True)
    )


def _lane(session: ProbeSession, tree: Node, lane: int, f: int, spare: int) -> list[tuple[Vector, Fraction, Fraction]]:
    """Products +-(1 + i)(1 + j) whose lower part is a quarter, a half, three quarters of D's last place."""
    beside: Leaf = next(leaves_of(child)[0] for child in tree.parent_of(lane).children if child != lane)
    a, b = session.formats["a"], session.formats["b"]
    out = []
    for shift in (0, 1):  # an odd, then an even last place of the upper part
        for quarters in (1, 2, 3):
            left, right = power(shift - f), quarters * power(spare - 2 - shift - f)
            for sign in (1, -1):
                product, upper = sign * (1 + left) * (1 + right), sign * (1 + left + right)
                codes = code_of(a, sign * (1 + left)), code_of(b, 1 + right)
                base = session.try_vector({beside: -upper})
                if base is None or codes[0] is None or codes[1] is None:
                    continue
                out.append((with_operands(base, lane, codes[0], codes[1]), product, upper))
    return out


PROBE = Probe(
    order=140,
    asks="are products exact, and how are partial sums rounded",
    rivals="fraction bits and the eleven roundings",
    experiment=probe_intermediate_rounding,
    applies=floats,
    otherwise=(None, "integers: products and sums are exact"),
)
