"""The range in which a device can be asked, and the plainest sums that every device must get right."""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf
from mmaprobe.probing.terms import power, say

ENOUGH = 64
"""Bits of window that no unit's precision needs more of."""


def anchor_exponent(session: Session) -> int:
    """m: +-1.5 * 2**m exists as product and as C, and 4 such anchors do not overflow D; 0 for integers."""
    if not session.is_float:
        return 0
    a, b, d = session.formats["a"], session.formats["b"], session.d
    guard = 2 + max(len(session.leaves) - 1, 1).bit_length()
    tops = [a.max_exponent + b.max_exponent, d.max_exponent - guard]
    return min([*tops, session.formats["c"].max_exponent] if session.instruction.c else tops)


async def unit_exponent(session: Session) -> int:
    """The lowest exponent e such that 2**e' comes through unharmed from every kind of leaf, e' >= e.

    Measured: where the normal numbers leave a window below ``ENOUGH`` bits it reaches into the
    subnormals that the device keeps (whose label in an alignment is not their own exponent).
    0 for integers.
    """
    if not session.is_float:
        return 0
    a, b, d = session.formats["a"], session.formats["b"], session.d
    kinds = [f for f in (d, session.formats.get("c")) if f is not None]
    bottom = max([a.min_exponent + b.min_exponent - a.fraction_bits - b.fraction_bits]
                 + [f.min_exponent - f.fraction_bits for f in kinds])  # fmt: skip
    normal = max([a.min_exponent + b.min_exponent, *(f.min_exponent for f in kinds)])
    if session.high - normal >= ENOUGH:
        return normal
    ladder = list(range(normal, bottom - 1, -1))
    ends: list[Leaf] = list(dict.fromkeys((session.leaves[0], session.leaves[-1])))
    answers = await session.sums({leaf: power(e)} for e in ladder for leaf in ends)
    low = normal
    for position, exponent in enumerate(ladder):
        if any(v != power(exponent) for v in answers[position * len(ends) : (position + 1) * len(ends)]):
            break
        low = exponent
    return low


async def fault(session: Session) -> str | None:
    """Every leaf alone comes out as itself, and all together as their sum; else what came instead."""
    one = Fraction(1)
    cases: list[tuple[dict[Leaf, Fraction], Fraction]] = [({leaf: one}, one) for leaf in session.leaves]
    cases += [(dict.fromkeys(session.leaves, one), Fraction(len(session.leaves))), ({}, Fraction(0))]
    cases += [({leaf: -one}, -one) for leaf in session.leaves if session.try_vector({leaf: -one}) and session.d.signed]
    vectors = [session.vector(terms) for terms, _ in cases]
    for vector, answer, (_, expected) in zip(vectors, await session.values(vectors), cases, strict=True):
        if answer != expected:
            text = "NaN or infinity" if answer is None else say(answer)
            session.note(vector, session.bench.answers[vector], f"expected {say(expected)}, got {text}")
            return f"a sum that every unit gets right, {say(expected)}, came out as {text}"
    return None
