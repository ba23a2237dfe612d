"""The sign of a zero result.

Answer: ``{"all_negative": s, "mixed": s, "cancel": s, "underflow": "signed" | "positive" | None,
"zero": "ieee" | "positive" | None}`` with s one of ``+``, ``-`` and None (not askable): every product
and C a negative zero; one product -0 among +0; exact cancellation of 1 and -1;
a negative product that rounds to zero.  ``zero`` sums it up: ``ieee`` (IEEE 754
section 6.3 under the result's rounding) or ``positive`` (never -0).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.zero_sign import negative_zero, zeros
from mmaprobe.probing.questions.result_rounding import roundings_that_fit
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.chosen_operands import with_operands
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf


async def probe_signed_zero(session: ProbeSession) -> Finding:
    """Signs of zero results (see the module)."""
    minus, plus = zeros(session, True), zeros(session, False)
    answer: dict[str, Any] = {
        "all_negative": None if minus is None else await _sign(session, [minus], "every term -0"),
        "mixed": None,
        "cancel": await _cancel(session),
        "underflow": await _underflow(session),
    }
    if minus is not None and plus is not None and len(session.leaves) > 1:
        lane = with_operands(plus, 0, minus.a[0], minus.b[0])
        answer["mixed"] = await _sign(session, [lane], "one product -0 among +0")
    down = "-" if await roundings_that_fit(session) == ("RD",) else "+"
    facts = (answer["all_negative"], answer["mixed"], answer["cancel"])
    ieee = all(fact in (None, expected) for fact, expected in zip(facts, ("-", down, down), strict=True))
    positive = all(fact in (None, "+") for fact in facts)
    answer["zero"] = None if ieee == positive else "ieee" if ieee else "positive"
    text = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in answer.items() if value is not None)
    settled = answer["zero"] is not None and None not in facts[:1]
    return session.finding("exact" if settled else "bounded", answer, text)


async def _sign(session: ProbeSession, vectors: list[Vector], text: str) -> str | None:
    """``-`` or ``+`` when every answer is a zero of that sign, else None."""
    codes = await session.ask(vectors)
    session.note(vectors[0], codes[0], text)
    if set(codes) <= {0}:
        return "+"
    return "-" if set(codes) == {session.d.sign_mask} else None


async def _cancel(session: ProbeSession) -> str | None:
    """1 - 1 for the first and the last two leaves, in both orders."""
    leaves = session.leaves
    if len(leaves) < 2:
        return None
    pairs: set[tuple[Leaf, Leaf]] = {(leaves[0], leaves[1]), (leaves[-1], leaves[-2]), (leaves[1], leaves[0])}
    vectors = [session.vector({x: 1, y: -1}) for x, y in sorted(pairs, key=str)]
    return await _sign(session, vectors, "1 - 1")


async def _underflow(session: ProbeSession) -> str | None:
    """A negative quarter of D's last place in each lane, among zeros of either sign.

    ``positive`` only where some product meets the last rounding itself: the
    sign of an underflow inside the tree is lost in the zeros added after it.
    """
    d = session.d
    if session.formats["a"].min_exponent + session.formats["b"].min_exponent > d.min_exponent - d.fraction_bits - 2:
        return None
    a, b = _product(session, -power(d.min_exponent - d.fraction_bits - 2))
    grounds = [ground for ground in (zeros(session, False), zeros(session, True)) if ground is not None]
    vectors = [with_operands(ground, lane, a, b) for ground in grounds for lane in range(session.k)]
    codes = await session.ask(vectors)
    if any(code not in (0, d.sign_mask) for code in codes):
        return None  # rounded away from zero
    sure = [(v, code) for v, code in zip(vectors, codes, strict=True) if code == d.sign_mask]
    shown, code = sure[0] if sure else (vectors[0], codes[0])
    session.note(shown, code, "a negative quarter of the last place")
    tree = await tree_of(session)
    last = tree is None or bool(tree.lanes)
    return "signed" if sure else "positive" if last else None


def _product(session: ProbeSession, value: Fraction) -> tuple[int, int]:
    """Operands of lane 0 whose product is ``value``."""
    vector = session.vector({0: value})
    return vector.a[0], vector.b[0]


PROBE = Probe(
    order=200,
    asks="the sign of a zero result",
    rivals="IEEE, never -0",
    experiment=probe_signed_zero,
    applies=lambda made: negative_zero(made.formats()["d"]) is not None,
    otherwise=(None, "the result's format has no negative zero"),
)
