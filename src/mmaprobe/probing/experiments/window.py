"""The range in which a device can be asked, and the plainest sums that every device must get right."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations

from mmaprobe.probing.experiments.ladders import count_good
from mmaprobe.probing.session.exact_values import power, say
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf

ENOUGH = 64
"""Bits of window that no unit's precision needs more of: an f64 has 53."""

GUARD = 3
"""Binades left above a lowered anchor, or below a last place."""

HEIGHTS = (4, 8, 12, 16, 24, 32, 40)
"""Exponents tried where 1 does not come out: beyond the widest window cut alike on all lanes."""

NEGATES = "; an instruction that negates an operand says so by a modifier, neg_a, neg_b or neg_c"
"""What to do about a sum that comes out with the other sign."""


def anchor_exponent(session: ProbeSession) -> int:
    """m: +-1.5 * 2**m exists as product and as C, and 4 such anchors do not overflow D; 0 for integers."""
    if not session.is_float:
        return 0
    a, b, d = session.formats["a"], session.formats["b"], session.d
    guard = 2 + max(len(session.leaves) - 1, 1).bit_length()
    tops = [a.max_exponent + b.max_exponent, d.max_exponent - guard]
    return min([*tops, session.formats["c"].max_exponent] if session.instruction.c else tops)


async def lower_anchor(session: ProbeSession) -> int | None:
    """The largest m, not above the anchor's, at which 2**m on one leaf takes the same from another away,
    and 1.5 * 2**m alone comes out as itself; None where none was found.

    A product or a sum that passes through a format of fewer exponents than the result's overflows on the way.
    """
    high = session.high
    if not session.is_float or len(session.leaves) < 2:
        return high
    ends = dict.fromkeys(((session.leaves[0], session.leaves[-1]), (session.leaves[0], session.leaves[1])))
    alone = list(dict.fromkeys(leaf for pair in ends for leaf in pair))

    async def bad(some: list[int]) -> list[bool]:
        cancelled, whole = await together(
            session.sums({i: power(m), j: -power(m)} for m in some for i, j in ends),
            session.sums({leaf: 3 * power(m - 1)} for m in some for leaf in alone),
        )
        out = []
        for n, m in enumerate(some):
            zero = all(value == 0 for value in cancelled[n * len(ends) : (n + 1) * len(ends)])
            same = all(value == 3 * power(m - 1) for value in whole[n * len(alone) : (n + 1) * len(alone)])
            out.append(not (zero and same))
        return out

    if not (await bad([high]))[0]:
        return high
    kinds = [f for f in (session.d, session.formats.get("c")) if f is not None]
    low = max([session.formats["a"].min_exponent + session.formats["b"].min_exponent] + [f.min_exponent for f in kinds])
    steps = list(range(high - 1, low - 1, -1))
    over = await count_good(steps, bad)
    return max(steps[over] - GUARD, low) if over < len(steps) else None


async def unit_exponent(session: ProbeSession) -> int:
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
    ends: list[Leaf] = list(dict.fromkeys((session.leaves[0], session.leaves[-1])))

    async def judge(some: list[int]) -> list[bool]:
        sums = await session.sums({leaf: power(e)} for e in some for leaf in ends)
        whole = [value == power(some[n // len(ends)]) for n, value in enumerate(sums)]
        return [all(whole[n : n + len(ends)]) for n in range(0, len(whole), len(ends))]

    if session.high - normal >= ENOUGH and (await judge([normal]))[0]:
        return normal
    steps = list(range(session.high, (normal if session.high - normal >= ENOUGH else bottom) - 1, -1))
    good = await count_good(steps, judge)
    return steps[good - 1] if good else normal


async def fault(session: ProbeSession) -> str | None:
    """Every leaf alone comes out as itself, and two neighbours as their sum; else what came instead."""
    one = Fraction(1)
    negative: list[Case] = [({leaf: -one}, -one) for leaf in session.leaves if session.try_vector({leaf: -one})]
    return await _wrong(session, [*_positive(session), *(negative if session.d.signed else [])])


async def complement(session: ProbeSession) -> str | None:
    """What a term and its opposite come out as, where they do not cancel and all that has one sign is right: as where
    a sum negates by ones' complement; else None."""
    one, (first, *_, last) = Fraction(1), session.leaves
    if not session.is_float or len(session.leaves) < 2 or await _wrong(session, _positive(session)):
        return None
    values = await session.sums([{first: one, last: -one}, {first: -one, last: one}])
    left = next((value for value in values if value), None)
    if left is None or None in values:
        return None
    return f"a term and its opposite do not cancel: 1 and -1 come out as {say(left)}"


async def complement_low(session: ProbeSession) -> int:
    """An exponent ``GUARD`` below the last place kept beside the anchor, in the sum that keeps the fewest bits.

    Where M and -M leave something, a unit beside them has vanished if it changes nothing; too small a unit would, too,
    for lack of bits of the result.  Where zeros beside -M are units of the last place, what is left is below M, and
    that place lower.
    """
    n = len(session.leaves)
    some = [session.leaves[i] for i in dict.fromkeys((0, 1, n // 2, n - 2, n - 1))]
    m, cases = power(session.high), list(permutations(some, 3))
    bare = await session.sums_at((m, -m), [(i, j) for i, j, _ in cases])

    async def judge(lows: list[int]) -> list[bool]:
        beside = await together(*(session.sums_at((m, -m, power(low)), cases) for low in lows))
        return [all(x != y for x, y in zip(bare, some, strict=True)) for some in beside]

    steps = range(session.high - 1, session.low - 1, -1)
    kept = await count_good(steps, judge)
    return max(steps[kept] - GUARD, session.low) if kept < len(steps) else session.low


Case = tuple[dict[Leaf, Fraction], Fraction]


def _positive(session: ProbeSession) -> list[Case]:
    one = Fraction(1)
    alone: list[Case] = [({leaf: one}, one) for leaf in session.leaves]
    return [*alone, *(({x: one, y: one}, 2 * one) for x, y in pairwise(session.leaves)), ({}, Fraction(0))]


async def _wrong(session: ProbeSession, cases: list[Case]) -> str | None:
    """The first of these sums that came out otherwise, and as what."""
    vectors = [session.vector(terms) for terms, _ in cases]
    for vector, answer, (_, expected) in zip(vectors, await session.values(vectors), cases, strict=True):
        if answer != expected:
            text = "NaN or infinity" if answer is None else say(answer)
            negates = NEGATES if answer == -expected else ""
            session.note(vector, session.bench.answers[vector], f"expected {say(expected)}, got {text}")
            return f"a sum that every unit gets right, {say(expected)}, came out as {text}{negates}"
    return None


async def lost_below(session: ProbeSession) -> int | None:
    """The exponent (of HEIGHTS) at which numbers come out of every leaf where 1 is cut alike on all lanes:
    zeros then show an exponent far above 1.  None where they are not, or nothing comes out."""
    leaves, lanes = session.leaves, range(session.k)
    ones = [await session.sums({lane: sign} for lane in lanes) for sign in (1, -1)]
    if any(len(set(answers)) > 1 for answers in ones) or [some[0] for some in ones] == [1, -1]:
        return None
    for n in HEIGHTS:
        vectors = [session.try_vector({leaf: sign * power(n)}) for sign in (1, -1) for leaf in leaves]
        ready = [vector for vector in vectors if vector is not None]
        expected = [sign * power(n) for sign in (1, -1) for _ in leaves]
        if len(ready) == len(vectors) and await session.values(ready) == expected:
            return n
    return None
