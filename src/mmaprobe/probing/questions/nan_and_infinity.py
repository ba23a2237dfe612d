"""NaN results: one fixed code, or a payload carried through, and which one wins.

Experiments, each in every operand position (``a0 b0 a1 ... c``), all other
operands 1: one NaN (quiet, signalling, negative); two quiet NaNs with unlike
payloads, for every pair of positions; a quiet and a signalling one, for every
neighbouring pair of the order found; an invalid operation (infinity times zero, infinities
of both signs) alone and beside a NaN.

Answer: ``{"rule": "canonical" | "propagate" | "other", "code": code of an invalid operation,
"priority": [positions, winner first] | None, "quiet": bool, "signalling_first": bool | None,
"invalid": [codes], "beside_invalid": {case: "nan" | "invalid"}, "infinity": bool}``.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.invalid_operations import code_wins, invalid_codes
from mmaprobe.probing.experiments.payloads import Position, kept_payload, order, positions, single
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession


async def probe_nan_and_infinity(session: ProbeSession) -> Finding:
    """The rule of NaN results (see the module)."""
    places = positions(session)
    if not places:
        return session.finding("inconclusive", None, "no operand format has a NaN")
    invalid, infinity, alone = await together(
        invalid_codes(session), _infinities(session), together(*(single(session, place) for place in places))
    )
    distinct = sorted(set(invalid.values()))
    answer: dict[str, Any] = {
        "rule": "other", "code": distinct[0] if len(distinct) == 1 else None, "priority": None, "quiet": None,
        "signalling_first": None, "invalid": distinct, "beside_invalid": {}, "infinity": infinity,
    }  # fmt: skip
    codes = {code for found in alone for code in found.values()}
    kept = [kept_payload(session, place, found) for place, found in zip(places, alone, strict=True)]
    if len(codes) == 1 and codes | set(distinct) == codes:
        code = next(iter(codes))
        answer |= {"rule": "canonical", "code": code}
        text = f"every NaN is {code:#x}{_infinity_text(answer)}"
        if None in kept:
            return session.finding("exact", answer, text)
        return session.finding("bounded", answer, f"{text}, which is also the payload of the operands' only NaN")
    if any(quiet is None for quiet in kept):
        return session.finding("inconclusive", answer, "NaN results are neither one code nor an operand's payload")
    answer |= {"rule": "propagate", "quiet": all(kept)}
    return await _priority(session, places, answer)


async def _priority(session: ProbeSession, places: list[Position], answer: dict[str, Any]) -> Finding:
    """Who wins among two NaNs, and beside an invalid operation."""
    (found, consistent, first), beside = await together(order(session, places), code_wins(session, places))
    answer["priority"] = found if consistent else None
    answer["signalling_first"] = first
    answer["beside_invalid"] = beside
    text = f"payload kept, {'quieted' if answer['quiet'] else 'as it is'}; "
    text += f"first of {' '.join(_shorten(found))}" if consistent else "no single order of operands decides"
    text += "; signalling first" if first else ""
    text += f"; invalid {', '.join(f'{code:#x}' for code in answer['invalid'])}" if answer["invalid"] else ""
    settled = consistent and answer["code"] is not None
    return session.finding("exact" if settled else "bounded", answer, text + _infinity_text(answer))


def _shorten(names: list[str]) -> list[str]:
    return names if len(names) <= 10 else [*names[:6], "...", *names[-3:]]


def _infinity_text(answer: dict[str, Any]) -> str:
    return "" if answer["infinity"] in (True, None) else "; an infinite operand does not make an infinity"


async def _infinities(session: ProbeSession) -> bool | None:
    """Whether one infinite operand of each sign in each position makes the infinity of that sign."""
    d = session.d
    if d.infinity_code is None:
        return None
    cases = [
        (place.put(session, infinity | (fmt.sign_mask if negative else 0)), negative)
        for place in positions(session, infinite=True)
        for fmt in [session.formats[place.operand]]
        for negative in (False, True)
        if (infinity := fmt.infinity_code) is not None
    ]
    if not cases:
        return None
    codes = await session.ask([vector for vector, _ in cases])
    expected = [d.infinity_code | (d.sign_mask if negative else 0) for _, negative in cases]
    session.note(cases[0][0], codes[0], "one infinite operand")
    return codes == expected


PROBE = Probe(
    order=210,
    asks="a NaN result: one code or a payload, whose, beside what",
    rivals="canonical, an order of operands",
    experiment=probe_nan_and_infinity,
    applies=lambda made: floats(made) and made.formats()["d"].nan_code is not None,
    otherwise=(None, "the result's format has no NaN"),
    sound=lambda answer: answer is None or answer["rule"] in ("canonical", "propagate"),
)
