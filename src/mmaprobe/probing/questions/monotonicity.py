"""Whether a larger operand can give a smaller result.

C just below a power of two and C at it, beside equal terms (and the last of them three times
as large) around the last places kept: below the power of two they may count, at
it they may be cut.  Then the same with one lane in place of C.  A decrease is a witness; none is no proof.

Answer: ``{"monotone": bool, "pairs": n}``.
"""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf
from mmaprobe.showing import counted

REACH = 8
"""Places below the result's last one at which equal terms are tried."""


async def probe_monotonicity(session: ProbeSession) -> Finding:
    """Decreases of the result where an operand grows (see the module)."""
    pairs = [
        pair
        for sign in (1, -1)
        for leaf in dict.fromkeys((session.leaves[0], 0))
        for pair in _pairs(session, leaf, sign)
    ]
    if not pairs:
        return session.finding("inconclusive", None, "no two neighbours at a power of two exist in these formats")
    codes = await session.ask([vector for pair in pairs for vector in pair])
    values = session.decode(codes)
    for number, pair in enumerate(pairs):
        small, large = values[2 * number : 2 * number + 2]
        if small is not None and large is not None and small > large:
            for place in (0, 1):
                session.note(pair[place], codes[2 * number + place], f"the {('smaller', 'larger')[place]} operand")
            answer = {"monotone": False, "pairs": len(pairs)}
            return session.finding("exact", answer, "a larger operand gives a smaller result")
    answer = {"monotone": True, "pairs": len(pairs)}
    return session.finding("bounded", answer, f"no decrease in {counted(len(pairs), 'pair')} of neighbours")


def _pairs(session: ProbeSession, leaf: Leaf, sign: int) -> list[tuple[Vector, Vector]]:
    """Vectors whose ``leaf`` grows from one neighbour to the next, over terms on all other leaves."""
    bits = session.d.fraction_bits
    lowest = session.low + bits + REACH
    m = lowest if leaf == "c" else min(session.high - 1, max(lowest, 0))
    out = []
    rest = [x for x in session.leaves if x not in (leaf, "c")]
    for place in range(1, REACH + 1):
        unit = sign * power(m - bits - place)
        for last in (1, 3):
            others: dict[Leaf, Fraction] = {x: unit * (last if x == rest[-1] else 1) for x in rest}
            steps = [power(m) - power(m - 1 - width) for width in range(bits, 0, -1)]
            below = next((v for s in steps if (v := session.try_vector(others | {leaf: sign * s})) is not None), None)
            at = session.try_vector(others | {leaf: sign * power(m)})
            if below is not None and at is not None:
                out.append((below, at) if sign > 0 else (at, below))
    return out


PROBE = Probe(
    order=170,
    asks="can a larger operand give a smaller result",
    rivals="yes, no",
    experiment=probe_monotonicity,
    applies=lambda made: floats(made) and (made.c is not None or made.selected > 1),
    otherwise=({"monotone": True, "pairs": 0}, "an exact sum is monotone"),
    sound=lambda answer: answer["monotone"] in (True, False),
)
