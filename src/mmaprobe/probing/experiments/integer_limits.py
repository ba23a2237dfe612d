"""Integers: whether a sum beyond the result's range wraps or is limited, at the end or on the way."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.exact_values import UnrepresentableError, code_of, values_of
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf


async def integer_limits(session: ProbeSession) -> Finding:
    """``wrap`` or ``saturate`` beyond either end of the range (None: the operands cannot reach it)."""
    answer: dict[str, Any] = {"positive": await end(session, 1), "negative": await end(session, -1)}
    text = ", ".join(f"{name} {value or 'out of reach'}" for name, value in answer.items())
    if "other" in answer.values():
        return session.finding("contradictory", answer, text)
    return session.finding("exact", answer, text)


async def end(session: ProbeSession, sign: int) -> str | None:
    """The largest sum of this sign that the operands can make, if it lies beyond the range."""
    d = session.d
    limit = Fraction(d.largest) if sign > 0 else Fraction(-d.largest - 1 if d.signed else 0)
    extreme = _extreme(session, sign)
    terms: dict[Leaf, Fraction] = dict.fromkeys(range(session.k), extreme)
    if session.instruction.c:
        terms["c"] = limit
    total = sum(terms.values(), Fraction(0))
    if (total - limit) * sign <= 0:
        return None
    vector = session.vector(terms)
    code = (await session.ask([vector]))[0]
    session.note(vector, code, f"the exact sum is {total}")
    if code == code_of(d, limit):
        return "saturate"
    return "wrap" if code == int(total) & ((1 << d.bits) - 1) else "other"


def _extreme(session: ProbeSession, sign: int) -> Fraction:
    """The product of largest magnitude and this sign, 0 where there is none."""
    ends = []
    for name in ("a", "b"):
        fmt = session.formats[name]
        codes = [0, fmt.largest, *([1 << (fmt.bits - 1)] if fmt.signed and fmt.kind == "integer" else [])]
        ends.append([v for code in codes for v in values_of(fmt, np.array([code], fmt.dtype)) if v is not None])
    products = [x * y for x in ends[0] for y in ends[1]]
    return max(products) if sign > 0 else min(products)


async def integer_order(session: ProbeSession) -> Finding:
    """Integers: exact sums have no order, unless saturation happens on the way."""
    answer = {"kind": "exact", "terms": list(session.leaves)}
    if set(await together(end(session, 1), end(session, -1))) <= {"wrap", None}:
        return session.finding("exact", answer, "one integer sum modulo 2^n: no order can be seen")
    try:
        stepwise = await _saturates_on_the_way(session)
    except UnrepresentableError as why:
        return session.finding("bounded", answer, f"an exact integer sum; limits out of reach: {why}")
    if stepwise:
        unknown = {"kind": "unknown", "terms": list(session.leaves)}
        return session.finding("inconclusive", unknown, "limited on the way: not one exact sum")
    return session.finding("exact", answer, "one exact integer sum: no order can be seen")


async def _saturates_on_the_way(session: ProbeSession) -> bool:
    """C at its limit, +x on lane i, -x on lane j: an exact sum returns to C for every pair of lanes."""
    if not session.instruction.c or session.k < 2:
        return False
    top = Fraction(session.d.largest)
    pairs = [(i, j) for i in range(session.k) for j in range(session.k) if i != j]
    answers = await session.sums({"c": top, i: 64, j: -64} for i, j in pairs)
    await session.witness({"c": top, pairs[0][0]: 64, pairs[0][1]: -64}, "the limit, +64, -64")
    return any(answer != top for answer in answers)
