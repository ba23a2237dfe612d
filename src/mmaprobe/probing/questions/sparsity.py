"""Which elements of B the metadata names, in which order A's stored elements meet them.

For each legal metadata item, each chunk and each stored element of it: that element is 1, the
lanes of the chunk hold values all different, and the result is the value of the
lane that it met.  Then NaNs (or the largest values) in all lanes that the items do
not name must leave no trace.

Answer: ``{"chunk": n, "lanes": {item: [lane of each stored element]}, "unnamed": "ignored" | "seen"}``;
None for a dense instruction.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.exact_values import UnrepresentableError, code_of
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.showing import counted

MARKS = tuple(Fraction(n, 2) for n in (2, 4, 6, 8, 10, 12, 14, 16, -2, -4, -6, -8, 3, -3))
"""Values to tell lanes apart: every format has eight of them, none subnormal."""

SparseCase = tuple[int, int, int]
"""A metadata item, a chunk, a stored element of it."""


async def probe_sparsity(session: ProbeSession) -> Finding:
    """The selection of lanes (see the module)."""
    chunk = session.instruction.chunk
    marks = {value: code for value in MARKS if (code := code_of(session.formats["b"], value)) is not None}
    if len(marks) < chunk:
        raise UnrepresentableError(f"{session.instruction.b} has fewer than {counted(chunk, 'value')} that mark lanes")
    values, codes = list(marks)[:chunk], list(marks.values())[:chunk]
    items, chunks, half = legal_items(chunk), range(session.instruction.k // chunk), range(chunk // 2)
    cases = [(item, at, place) for item in items for at in chunks for place in half]
    vectors = [_one_hot(session, case, codes) for case in cases]
    met: dict[tuple[int, int], set[int | None]] = {}
    answers = await session.ask(vectors)
    for number, ((item, _, place), value) in enumerate(zip(cases, session.decode(answers), strict=True)):
        lane = values.index(value) if value in values else None
        if not met.get((item, place)):
            session.note(vectors[number], answers[number], f"item {item:#x}: stored element {place} meets lane {lane}")
        met.setdefault((item, place), set()).add(lane)
    lanes = {f"{item:#x}": [_only(met[item, place]) for place in half] for item in items}
    answer: dict[str, Any] = {"chunk": chunk, "lanes": lanes, "unnamed": await _unnamed(session, items)}
    if any(lane is None for some in lanes.values() for lane in some):
        return session.finding("contradictory", answer, "an item names no lane, or other ones in other chunks")
    text = ", ".join(f"{item}: {' '.join(map(str, some))}" for item, some in lanes.items())
    return session.finding("exact", answer, f"{text}; other lanes {answer['unnamed']}")


def _only(lanes: set[int | None]) -> int | None:
    return next(iter(lanes)) if len(lanes) == 1 else None


def _one_hot(session: ProbeSession, case: SparseCase, codes: list[int]) -> Vector:
    """1 in one stored element of A; the chunk's lanes of B hold the marks; everything else zero."""
    item, at, place = case
    chunk = session.instruction.chunk
    a, b = [0] * session.k, [0] * session.instruction.k
    a[at * (chunk // 2) + place] = session.formats["a"].one
    b[at * chunk : (at + 1) * chunk] = codes
    metadata = (item,) * (session.instruction.k // chunk)
    return replace(session.vector({}), a=Codes.listed(a), b=Codes.listed(b), metadata=metadata)


async def _unnamed(session: ProbeSession, items: tuple[int, ...]) -> str:
    """The worst values in the lanes that are not named: whether any result changes."""
    fmt = session.formats["b"]
    loud = next(code for code in (fmt.nan_code, fmt.infinity_code, fmt.largest) if code is not None)
    ones = session.vector(dict.fromkeys(range(session.k), 1))
    count = session.instruction.k // session.instruction.chunk
    quiet = [replace(ones, metadata=(item,) * count) for item in items]
    codes = await session.ask([*quiet, *(replace(vector, unnamed=loud) for vector in quiet)])
    session.note(replace(quiet[0], unnamed=loud), codes[len(quiet)], "NaN or the largest value in every unnamed lane")
    return "ignored" if codes[: len(quiet)] == codes[len(quiet) :] else "seen"


PROBE = Probe(
    order=40,
    asks="which lanes metadata names, whether the others leave a trace",
    rivals="lanes by item",
    experiment=probe_sparsity,
    applies=lambda made: made.chunk > 0,
    otherwise=(None, "dense: every lane is multiplied"),
    sound=lambda answer: answer is None or answer["unnamed"] in ("ignored", "seen"),
)
