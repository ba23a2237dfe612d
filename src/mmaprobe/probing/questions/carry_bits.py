"""Whether a sum of many terms finds room for its carries.

1, 2, 3 ... leaves hold the largest significand of the result that a product can have
at one exponent, so that their sum needs up to log2(K + 1) more bits above it.
Roundings cost an answer its last places, a carry without a place costs it half
or more: an answer more than a quarter away from the exact sum has lost one.

Answer: ``{"bits": n, "enough": bool}``: n carry bits were needed and there; ``enough``
where the largest sum that the instruction can make was right.
"""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.exact_values import UnrepresentableError, power, top_exponent
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf
from mmaprobe.showing import counted


async def probe_carry_bits(session: ProbeSession) -> Finding:
    """Room for carries (see the module)."""
    value = _largest(session)
    counts = range(1, len(session.leaves) + 1)
    terms: list[dict[Leaf, Fraction]] = [dict.fromkeys(session.leaves[:n], value) for n in counts]
    terms += [dict.fromkeys(session.leaves[-n:], -value) for n in counts if session.try_vector({0: -value})]
    vectors = [session.vector(t) for t in terms]
    codes = await session.ask(vectors)
    right = 0
    for vector, code, answer, term in zip(vectors, codes, session.decode(codes), terms, strict=True):
        exact = sum(term.values(), Fraction(0))
        if answer is None or abs(answer - exact) > abs(exact) / 4:
            session.note(vector, code, f"{counted(len(term), 'term')} of {value}")
            text = f"{counted(right, 'carry bit')}; the sum of {len(term)} terms has lost a carry"
            return session.finding("exact", {"bits": right, "enough": False}, text)
        right = max(right, top_exponent(exact) - top_exponent(abs(value)))
    session.note(vectors[counts[-1] - 1], codes[counts[-1] - 1], f"{counted(counts[-1], 'term')} of {value}")
    return session.finding(
        "exact", {"bits": right, "enough": True}, f"{counted(right, 'carry bit')}: as many as {counts[-1]} need"
    )


def _largest(session: ProbeSession) -> Fraction:
    """2 - 2**-n with the largest n that products and C have, near the middle of the range."""
    for bits in range(session.d.fraction_bits, -1, -1):
        value = (2 - power(-bits)) * power(min(0, session.high - 1))
        if session.try_vector(dict.fromkeys(session.leaves, value)) is not None:
            return value
    raise UnrepresentableError("no significand of all ones is a product and a C")


PROBE = Probe(
    order=130,
    asks="has the sum room for its carries",
    rivals="yes, no",
    experiment=probe_carry_bits,
    applies=floats,
    otherwise=(None, "integers: what is beyond the range is the question overflow"),
    sound=lambda answer: answer is None or answer["enough"],
)
