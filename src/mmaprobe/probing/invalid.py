"""Invalid operations: infinity times zero, infinities of both signs; alone and beside a NaN."""

from __future__ import annotations

import numpy as np

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.probing.payloads import Position, nans
from mmaprobe.probing.session import Session
from mmaprobe.probing.vectors import Vector


def invalid_vectors(session: Session) -> dict[str, tuple[Vector, set[str]]]:
    """Invalid operations: infinity times zero in each lane, infinities of both signs; with the operands they use."""
    a, b = session.formats["a"], session.formats["b"]
    out: dict[str, tuple[Vector, set[str]]] = {}
    for lane in range(session.instruction.k):
        for x, y in (("a", "b"), ("b", "a")):
            infinity = session.formats[x].infinity_code
            if infinity is not None:
                vector = Position(y, lane).put(session, 0, Position(x, lane).put(session, infinity))
                out[f"{x}{lane} infinite, {y}{lane} zero"] = vector, {f"a{lane}", f"b{lane}"}
    if a.infinity_code is None:
        return out
    first = Position("a", 0).put(session, a.infinity_code)
    if session.instruction.c and (infinity := session.formats["c"].infinity_code) is not None:
        minus = Position("c").put(session, infinity | session.formats["c"].sign_mask, first)
        out["a0 and c infinite"] = minus, {"a0", "b0", "c"}
    if session.instruction.k > 1:
        minus = Position("a", 1).put(session, a.infinity_code | a.sign_mask, first)
        out["a0 and a1 infinite"] = minus, {"a0", "b0", "a1", "b1"}
    return out if b.is_float else {}


def invalid_codes(session: Session) -> dict[str, int]:
    """The result of each invalid operation."""
    cases = invalid_vectors(session)
    vectors = [vector for vector, _ in cases.values()]
    codes = session.ask(vectors)
    for (name, (vector, _)), code in (
        list(zip(cases.items(), codes, strict=True))[:1] + list(zip(cases.items(), codes, strict=True))[-1:]
    ):
        session.note(vector, code, name)
    return {name: code for name, code in zip(cases, codes, strict=True) if is_nan(session.d, code)}


def is_nan(fmt: Format, code: int) -> bool:
    """Whether a code is a NaN."""
    return bool(formats.decode(fmt, np.array([code], fmt.dtype)).kind[0] == formats.NAN)


def code_wins(session: Session, places: list[Position]) -> dict[str, str]:
    """For an invalid operation beside a NaN in each other position: which of the two the result shows."""
    out: dict[str, str] = {}
    for name, (vector, used) in invalid_vectors(session).items():
        alone = session.ask([vector])[0]
        others = [place for place in places if place.name not in used]
        kinds = [nans(session.formats[place.operand]) for place in others]
        marks = [kind.get("payload", kind["quiet"]) for kind in kinds]
        asked = [place.put(session, mark, vector) for place, mark in zip(others, marks, strict=True)]
        for place, code in zip(others, session.ask(asked), strict=True):
            out[f"{name}; NaN in {place.name}"] = "invalid" if code == alone else "nan"
    return out
