"""Making the sign of a zero term visible in the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from mmaprobe.formats import Format
from mmaprobe.probing.session.chosen_operands import with_operands
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.exact_values import code_of
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector


def zeros(session: ProbeSession, negative: bool) -> Vector | None:
    """The vector of which every product and C is a zero of this sign; None where a format lacks it.

    A product is +0 * (+-1): an operand that turns -0 into +0 does not hide it.
    """
    base = session.vector({})
    if not negative:
        return base
    k = session.k
    minus = [code_of(session.formats[name], Fraction(-1)) for name in ("a", "b")]
    c = negative_zero(session.formats["c"]) if session.instruction.c else None
    if minus == [None, None] or (session.instruction.c and c is None):
        return None
    if minus[1] is not None:
        return replace(base, b=Codes(k, minus[1]), c=c)
    return replace(base, a=Codes(k, minus[0] or 0), c=c)


def negative_zero(fmt: Format) -> int | None:
    """The code of -0; None where the format has none."""
    return fmt.sign_mask if fmt.is_float and fmt.signed and fmt.nan != "negative_zero" and fmt.subnormal else None


async def sign_shown(session: ProbeSession, put: Callable[[Vector], Vector], leaf: str = "lane") -> bool | None:
    """True if the term that ``put`` places counts as a negative zero, False as a positive one.

    A background of zeros is used in which replacing lane 0 (or C) by +0 or -0
    changes the sign of the result; None where no background shows it.
    """
    minus, plus = zeros(session, True), zeros(session, False)
    if minus is None or plus is None:
        return None
    for background in (minus, plus):
        vectors = [_zero(background, plus, leaf), _zero(background, minus, leaf), put(background)]
        as_plus, as_minus, seen = await session.ask(vectors)
        if as_plus != as_minus and seen in (as_plus, as_minus):
            session.note(vectors[2], seen, "a flushed negative subnormal among zeros")
            return seen == as_minus
    return None


def _zero(background: Vector, source: Vector, leaf: str) -> Vector:
    """``background`` with lane 0 (or C) taken from ``source``."""
    if leaf == "c":
        return replace(background, c=source.c)
    return with_operands(background, 0, source.a[0], source.b[0])
