"""What becomes of a result beyond the largest finite value, and of a partial sum or a product beyond it.

Answer, floats: ``{"positive": w, "negative": w, "inner": "finite" | "overflows" | "absent" | None,
"product": ...}`` with w one of ``infinity``, ``largest``, ``nan``, ``other``: C (or a product) at the largest
value plus as much again; a partial sum or a single product above the largest,
taken back below it by the term that joins next.  Integers: ``{"positive": "wrap" | "saturate",
"negative": ...}``; None where the operands cannot reach the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.anchor_places import outside_leaf
from mmaprobe.probing.experiments.integer_limits import integer_limits
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.exact_values import power, values_of
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, leaves_of


async def probe_overflow(session: ProbeSession) -> Finding:
    """Overflow of results, partial sums and products (see the module)."""
    if not session.is_float:
        return await integer_limits(session)
    names = ("positive", "negative", "inner", "product")
    asked = await together(_beyond(session, 1), _beyond(session, -1), _inner(session), _product(session))
    answer: dict[str, Any] = dict(zip(names, asked, strict=True))
    text = "; ".join(_said(answer))
    reached = answer["positive"] is not None and answer["negative"] is not None
    return session.finding("exact" if reached else "bounded", answer, text)


ENDS = {"infinity": "an infinity", "largest": "the largest number", "nan": "a NaN", "other": "another number"}
INNER = {
    "finite": "partial sums beyond it stay finite", "mixed": "some partial sums beyond it become infinite",
    "overflows": "partial sums beyond it become infinite", "absent": "there are no partial sums",
}  # fmt: skip
PRODUCT = {
    "finite": "a product beyond it stays finite", "overflows": "a product beyond it becomes infinite",
    "absent": "no product reaches beyond it",
}  # fmt: skip


def _said(answer: dict[str, Any]) -> Iterator[str]:
    """An answer in words."""
    both = answer["positive"], answer["negative"]
    if both == (None, None):
        yield "no result of these operands is beyond the largest number"
    elif both[0] == both[1]:
        yield f"beyond the largest number, of either sign: {ENDS[both[0]]}"
    else:
        signed = [f"{sign}: {ENDS[end]}" for sign, end in zip("+-", both, strict=True) if end is not None]
        yield f"beyond the largest number, {', '.join(signed)}"
    if answer["inner"] is not None:
        yield INNER[answer["inner"]]
    if answer["product"] is not None:
        yield PRODUCT[answer["product"]]


async def _beyond(session: ProbeSession, sign: int) -> str | None:
    """The largest value (or its power of two) twice: on C and a lane, or on two lanes, or as one product."""
    d = session.d
    top = power(d.max_exponent)
    leaves = session.leaves
    largest = values_of(d, np.array([d.largest], d.dtype))[0] or top
    tries: list[dict[Leaf, Fraction]] = [
        {x: sign * p, leaves[-1]: sign * top} for x in leaves[:1] for p in (largest, top)
    ]
    tries += [dict.fromkeys(leaves, sign * top), {leaves[-1]: 2 * sign * top}]
    vector = next((v for t in tries if (v := session.try_vector(t)) is not None), None)
    if vector is None:
        return None
    code = (await session.ask([vector]))[0]
    session.note(vector, code, "beyond the largest result")
    return name_of(session, code, sign)


def name_of(session: ProbeSession, code: int, sign: int) -> str:
    """``infinity``, ``largest`` or ``nan`` where the code is that of this sign; else ``other``."""
    d = session.d
    negative = d.sign_mask if sign < 0 else 0
    if d.infinity_code is not None and code == d.infinity_code | negative:
        return "infinity"
    if code == d.largest | negative:
        return "largest"
    kind = formats.decode(d, np.array([code], d.dtype)).kind[0]
    return "nan" if kind == formats.NAN else "other"


async def _inner(session: ProbeSession) -> str | None:
    """In each node below the last: twice the top power of two, less that power on the leaf that joins next."""
    tree = await tree_of(session)
    inner = [] if tree is None else tree.walk()[1:]
    if tree is None or not inner:
        return "absent"
    top = power(session.d.max_exponent)
    vectors = []
    for node in inner:
        away = outside_leaf(tree, node)
        x, y = (leaves_of(child)[0] for child in node.children[:2])
        vector = None if away is None else session.try_vector({x: top, y: top, away: -top})
        if vector is None:
            return None
        vectors.append(vector)
    codes = await session.ask(vectors)
    finite = [value == top for value in session.decode(codes)]
    session.note(vectors[0], codes[0], "2^emax + 2^emax, then - 2^emax")
    return "finite" if all(finite) else "mixed" if any(finite) else "overflows"


async def _product(session: ProbeSession) -> str | None:
    """One product of twice the top power of two and its opposite half, in two leaves that meet first."""
    a, b, d = session.formats["a"], session.formats["b"], session.d
    if a.max_exponent + b.max_exponent <= d.max_exponent:
        return "absent"
    tree = await tree_of(session)
    if tree is None:
        return None
    top = power(d.max_exponent)
    lane = session.k - 1
    beside = next(leaves_of(child)[0] for child in tree.parent_of(lane).children if child != lane)
    vector = session.try_vector({lane: 2 * top, beside: -top})
    if vector is None:
        return None
    code = (await session.ask([vector]))[0]
    session.note(vector, code, "a product of 2^(emax + 1), and -2^emax beside it")
    return "finite" if session.decode([code])[0] == top else "overflows"


PROBE = Probe(
    order=220,
    asks="what becomes of a result beyond the largest, and on the way",
    rivals="infinity, largest, wrap, saturate",
    experiment=probe_overflow,
    sound=lambda answer: "other" not in answer.values(),
)
