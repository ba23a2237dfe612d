"""What becomes of container bits that a format has no use for: tf32's low bits.

The operand is 1 with some of them set, against 1: ``ignored`` where the result is 1,
``rounded`` where it is 1 or the next number by the rounding, ``used`` where the bits count.
A NaN whose payload lies only there is an infinity if they are ignored before it is read.

Answer: ``{"a": w, "b": w, "nan_payload": "infinity" | "nan" | None}`` with w one of ``absent``,
``ignored``, ``rounded``, ``used``, ``other``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.formats import Format
from mmaprobe.probing.experiments.invalid_operations import is_nan
from mmaprobe.probing.session.chosen_operands import with_operands
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession


async def probe_container_bits(session: ProbeSession) -> Finding:
    """Bits of the container below the format (see the module)."""
    answer: dict[str, Any] = {name: await _use(session, name) for name in ("a", "b")}
    answer["nan_payload"] = await _payload(session) if session.formats["a"].padding else None
    text = ", ".join(f"{name.replace('_', ' ')} {how}" for name, how in answer.items() if how is not None)
    return session.finding("contradictory" if "other" in answer.values() else "exact", answer, text)


def _put(session: ProbeSession, name: str, code: int) -> Any:
    """The code in lane 0 of one operand, against 1; all else zero."""
    a, b = session.formats["a"].one, session.formats["b"].one
    return with_operands(session.vector({}), 0, code if name == "a" else a, code if name == "b" else b)


async def _use(session: ProbeSession, name: str) -> str:
    fmt = session.formats[name]
    if not fmt.padding:
        return "absent"
    spare = (1 << fmt.padding) - 1
    half = 1 << (fmt.padding - 1)
    extra = (1, half - 1, half, half + 1, spare)
    signs = (0, fmt.sign_mask)
    vectors = [_put(session, name, fmt.one | sign | bits) for sign in signs for bits in extra]
    codes = await session.ask(vectors)
    for vector, code, bits in list(zip(vectors, codes, extra * 2, strict=True))[2:5]:
        session.note(vector, code, f"1 with the spare bits {bits:#x}")
    sizes = [None if value is None else abs(value) for value in session.decode(codes)]
    step = power(-fmt.fraction_bits)
    if sizes == [Fraction(1)] * len(sizes):
        return "ignored"
    if sizes == [1 + bits * step / (spare + 1) for bits in extra * 2]:
        return "used"
    return "rounded" if all(size in (1, 1 + step) for size in sizes) else "other"


async def _payload(session: ProbeSession) -> str | None:
    """A NaN with no payload but the spare bits."""
    fmt: Format = session.formats["a"]
    if fmt.infinity_code is None:
        return None
    vector = _put(session, "a", fmt.infinity_code | 1)
    code = (await session.ask([vector]))[0]
    session.note(vector, code, "a NaN whose payload lies in the spare bits")
    return "nan" if is_nan(session.d, code) else "infinity" if code == session.d.infinity_code else "other"


PROBE = Probe(
    order=230,
    asks="bits of the container that the format has no use for (tf32)",
    rivals="ignored, rounded, used",
    experiment=probe_container_bits,
    applies=lambda made: any(made.formats()[name].padding for name in ("a", "b")),
    otherwise=({"a": "absent", "b": "absent", "nan_payload": None}, "no operand's container is wider than its format"),
    sound=lambda answer: "other" not in answer.values(),
)
