"""Making the sign of a zero term visible in the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mmaprobe.probing.session import Session, Vector


def zeros(session: Session, negative: bool) -> Vector | None:
    """The vector of which every product and C is a zero of this sign; None where a format lacks it."""
    base = session.vector({})
    if not negative:
        return base
    minus = {name: negative_zero(session, name) for name in ("a", "b", "c") if name in session.formats}
    name = "a" if minus["a"] is not None else "b"
    code, c = minus[name], minus.get("c")
    if code is None or ("c" in minus and c is None):
        return None
    other = "b" if name == "a" else "a"
    one = session.formats[other].one
    k = session.instruction.k
    return Vector(**{name: (code,) * k, other: (one,) * k}, c=c)


def negative_zero(session: Session, name: str) -> int | None:
    """The code of -0 of an operand; None where its format has none."""
    fmt = session.formats[name]
    return fmt.sign_mask if fmt.is_float and fmt.signed and fmt.nan != "negative_zero" and fmt.subnormal else None


def sign_shown(session: Session, put: Callable[[Vector], Vector], leaf: str = "lane") -> bool | None:
    """True if the term that ``put`` places counts as a negative zero, False as a positive one.

    A background of zeros is used in which replacing lane 0 (or C) by +0 or -0
    changes the sign of the result; None where no background shows it.
    """
    minus, plus = zeros(session, True), zeros(session, False)
    if minus is None or plus is None:
        return None
    for background in (minus, plus):
        vectors = [_zero(background, plus, leaf), _zero(background, minus, leaf), put(background)]
        as_plus, as_minus, seen = session.ask(vectors)
        if as_plus != as_minus and seen in (as_plus, as_minus):
            session.note(vectors[2], seen, "a flushed negative subnormal among zeros")
            return seen == as_minus
    return None


def _zero(background: Vector, source: Vector, leaf: str) -> Vector:
    """``background`` with lane 0 (or C) taken from ``source``."""
    if leaf == "c":
        return replace(background, c=source.c)
    return replace(background, a=(source.a[0], *background.a[1:]), b=(source.b[0], *background.b[1:]))
