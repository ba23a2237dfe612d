"""Which exponent a product shows to an alignment.

Two lanes hold anchors +-P that cancel, a third the term 2**x: it comes out whole
down to the anchors' label less F.  P = 2**h gives the reference.  P = 2.25 * 2**h,
made of 1.5 * 1.5, keeps as much where the label is the sum of the operands'
exponents, one bit less where the product is normalised first.  P made of a
subnormal operand keeps as much as a normal one of the same value where operands
are normalised first, less where the label is that of the code.

Answer: ``{"label": "encoded" | "operands" | "normalised" | None, "product_normalised": bool | None,
"subnormal_operands": "encoded" | "normalised" | None}``; None: hidden in these formats.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.formats import Format
from mmaprobe.probing.experiments.ladders import count_good
from mmaprobe.probing.experiments.pair_alignment import nothing_aligned
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.chosen_operands import fused_lanes, with_operands
from mmaprobe.probing.session.exact_values import code_of, power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector

REACH = 80
"""Places below the anchors at which terms are tried."""

Anchor = tuple[int, int, int]
"""Codes of a and b, and b negated."""


async def probe_product_label(session: ProbeSession) -> Finding:
    """The label of products (see the module)."""
    none: dict[str, Any] = {"label": None, "product_normalised": None, "subnormal_operands": None}
    tree = await tree_of(session)
    lanes, _ = fused_lanes(tree)
    if tree is not None and not lanes:
        return await nothing_aligned(session, tree, none)
    if len(lanes) < 3:
        return session.finding("inconclusive", none, "needs three lanes in one fused sum")
    wide, narrow = await together(_wide(session, lanes), _subnormal(session, lanes))
    answer = none | {"product_normalised": wide, "subnormal_operands": narrow}
    if wide:
        answer["label"] = "normalised"
    elif wide is False and narrow is not None:
        answer["label"] = "encoded" if narrow == "encoded" else "operands"
    text = {True: "products are normalised first", False: "products keep e_a + e_b", None: "products: hidden"}[wide]
    text += "" if wide else f"; of subnormal operands {narrow or 'hidden'}"
    return session.finding("exact" if answer["label"] else "bounded", answer, text)


async def _wide(session: ProbeSession, lanes: list[int]) -> bool | None:
    """1.5 * 1.5 against 1 * 1 at the same exponents: one bit less is kept where the product is normalised."""
    a, b = session.formats["a"], session.formats["b"]
    for e in _exponents(session, a, b):
        pair = [_anchor(a, b, x * power(e), x) for x in (Fraction(1), Fraction(3, 2))]
        if pair[0] is None or pair[1] is None:
            continue
        plain, wide = await together(*(_lowest(session, lanes, p, e) for p in pair if p is not None))
        if plain is not None and wide is not None and wide - plain in (0, 1):
            return bool(wide - plain)
    return None


async def _subnormal(session: ProbeSession, lanes: list[int]) -> str | None:
    """A subnormal half of the lowest normal against a normal of the same value."""
    a, b = session.formats["a"], session.formats["b"]
    if not (a.subnormal and a.fraction_bits):
        return None
    half = a.min_exponent - 1
    for e in dict.fromkeys((b.max_exponent - 1, 0)):
        low, same = _anchor(a, b, power(half), power(e)), _anchor(a, b, 2 * power(half), power(e - 1))
        if low is None or same is None:
            continue
        code, plain = await together(_lowest(session, lanes, low, half + e), _lowest(session, lanes, same, half + e))
        if plain is not None and code is not None and code - plain in (0, 1):
            return "encoded" if code - plain else "normalised"
    return None


def _exponents(session: ProbeSession, a: Format, b: Format) -> list[int]:
    """Exponents of a (b at 0) from the top down, with the window below them."""
    top = min(a.max_exponent - 1, session.high - 2)
    return list(dict.fromkeys((top, 0)))


def _anchor(a: Format, b: Format, x: Fraction, y: Fraction) -> Anchor | None:
    codes = code_of(a, x), code_of(b, y), code_of(b, -y)
    return None if None in codes else (codes[0] or 0, codes[1] or 0, codes[2] or 0)


async def _lowest(session: ProbeSession, lanes: list[int], anchor: Anchor, top: int) -> int | None:
    """The exponent of the lowest term that comes out whole beside an anchor; None where all or none do."""
    x, y, z = lanes[0], lanes[1], lanes[-1]
    terms: dict[int, tuple[Vector, Vector]] = {}
    for e in range(top, max(session.low, top - REACH) - 1, -1):
        bare = session.try_vector({z: power(e)})
        if bare is not None:
            terms[e] = bare, with_operands(with_operands(bare, x, *anchor[:2]), y, anchor[0], anchor[2])

    async def judge(some: list[int]) -> list[bool]:
        values = session.decode(await session.ask([vector for e in some for vector in terms[e]]))
        return [value is not None and value == values[2 * n + 1] for n, value in enumerate(values[::2])]

    steps = list(terms)
    count = await count_good(steps, judge)
    if count in (0, len(steps)):
        return None
    shown = terms[steps[count - 1]][1]
    session.note(shown, (await session.ask([shown]))[0], "the lowest term kept beside two products that cancel")
    return steps[count - 1]


PROBE = Probe(
    order=100,
    asks="which exponent a product shows",
    rivals="encoded, of normalised operands, normalised",
    experiment=probe_product_label,
    applies=floats,
    otherwise=({"label": None, "product_normalised": None, "subnormal_operands": None}, "integers: nothing is aligned"),
    sound=lambda answer: answer["label"] in ("encoded", "operands", "normalised", None),
)
