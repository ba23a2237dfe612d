"""Invalid operations: infinity times zero, infinities of both signs; alone and beside a NaN."""

from __future__ import annotations

import numpy as np

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.probing.experiments.payloads import MANY, Position, nans
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector


def invalid_vectors(session: ProbeSession) -> dict[str, tuple[Vector, set[str]]]:
    """Invalid operations: infinity times zero in each lane, infinities of both signs; with the operands they use."""
    a, b = session.formats["a"], session.formats["b"]
    out: dict[str, tuple[Vector, set[str]]] = {}
    for lane in range(session.k):
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
    if session.k > 1:
        minus = Position("a", 1).put(session, a.infinity_code | a.sign_mask, first)
        out["a0 and a1 infinite"] = minus, {"a0", "b0", "a1", "b1"}
    return out if b.is_float else {}


async def invalid_codes(session: ProbeSession) -> dict[str, int]:
    """The result of each invalid operation."""
    cases = invalid_vectors(session)
    vectors = [vector for vector, _ in cases.values()]
    codes = await session.ask(vectors)
    for (name, (vector, _)), code in (
        list(zip(cases.items(), codes, strict=True))[:1] + list(zip(cases.items(), codes, strict=True))[-1:]
    ):
        session.note(vector, code, name)
    return {name: code for name, code in zip(cases, codes, strict=True) if is_nan(session.d, code)}


def is_nan(fmt: Format, code: int) -> bool:
    """Whether a code is a NaN."""
    return bool(formats.is_nan(fmt, np.array([code], fmt.dtype))[0])


def _watched(places: list[Position], used: set[str]) -> list[Position]:
    """The positions beside an invalid operation that are asked: all others; of many the ends and the neighbours."""
    others = [place for place in places if place.name not in used]
    if len(others) <= MANY:
        return others
    near = next((n for n, place in enumerate(places) if place.name in used), 0)
    neighbours = places[max(near - 2, 0) : near + 4]
    return [place for place in others if place in neighbours or place in (*others[:2], *others[-3:])]


async def code_wins(session: ProbeSession, places: list[Position]) -> dict[str, str]:
    """For an invalid operation beside a NaN in each other position: which of the two the result shows."""
    cases = invalid_vectors(session)
    asked: list[tuple[str, Vector, Vector]] = []
    for name, (vector, used) in cases.items():
        for place in _watched(places, used):
            kinds = nans(session.formats[place.operand])
            beside = place.put(session, kinds.get("payload", kinds["quiet"]), vector)
            asked.append((f"{name}; NaN in {place.name}", vector, beside))
    alone = dict(zip(cases, await session.ask([vector for vector, _ in cases.values()]), strict=True))
    codes = await session.ask([beside for _, _, beside in asked])
    by_vector = {vector: alone[name] for name, (vector, _) in cases.items()}
    return {
        name: "invalid" if code == by_vector[vector] else "nan"
        for (name, vector, _), code in zip(asked, codes, strict=True)
    }
