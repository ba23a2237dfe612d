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
from mmaprobe.probing.invalid import code_wins, invalid_codes
from mmaprobe.probing.payloads import Position, kept_payload, order, positions, single
from mmaprobe.probing.session import Session

QUESTION = "nan_and_infinity"


def probe_nan(session: Session) -> Finding:
    """The rule of NaN results (see the module)."""
    if not session.is_float or session.d.nan_code is None:
        return session.finding(QUESTION, "exact", None, f"{session.d.name} has no NaN")
    places = positions(session)
    if not places:
        return session.finding(QUESTION, "inconclusive", None, "no operand format has a NaN")
    answer: dict[str, Any] = {
        "rule": "other", "code": None, "priority": None, "quiet": None, "signalling_first": None,
        "invalid": [], "beside_invalid": {}, "infinity": _infinities(session),
    }  # fmt: skip
    invalid = invalid_codes(session)
    answer["invalid"] = sorted(set(invalid.values()))
    answer["code"] = answer["invalid"][0] if len(answer["invalid"]) == 1 else None
    codes = {code for place in places for code in single(session, place).values()}
    if len(codes) == 1 and codes | set(invalid.values()) == codes:
        code = next(iter(codes))
        answer |= {"rule": "canonical", "code": code}
        return session.finding(QUESTION, "exact", answer, f"every NaN is {code:#x}{_infinity_text(answer)}")
    kept = [kept_payload(session, place) for place in places]
    if any(quiet is None for quiet in kept):
        text = "NaN results are neither one code nor an operand's payload"
        return session.finding(QUESTION, "inconclusive", answer, text)
    answer |= {"rule": "propagate", "quiet": all(kept)}
    return _priority(session, places, answer)


def _priority(session: Session, places: list[Position], answer: dict[str, Any]) -> Finding:
    """Who wins among two NaNs, and beside an invalid operation."""
    found, consistent, first = order(session, places)
    answer["priority"] = found if consistent else None
    answer["signalling_first"] = first
    answer["beside_invalid"] = code_wins(session, places)
    text = f"payload kept, {'quieted' if answer['quiet'] else 'as it is'}; "
    text += f"first of {' '.join(_shorten(found))}" if consistent else "no single order of operands decides"
    text += "; signalling first" if first else ""
    text += f"; invalid {', '.join(f'{code:#x}' for code in answer['invalid'])}" if answer["invalid"] else ""
    settled = consistent and answer["code"] is not None
    return session.finding(QUESTION, "exact" if settled else "bounded", answer, text + _infinity_text(answer))


def _shorten(names: list[str]) -> list[str]:
    return names if len(names) <= 10 else [*names[:6], "...", *names[-3:]]


def _infinity_text(answer: dict[str, Any]) -> str:
    return "" if answer["infinity"] in (True, None) else "; an infinite operand does not make an infinity"


def _infinities(session: Session) -> bool | None:
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
    codes = session.ask([vector for vector, _ in cases])
    expected = [d.infinity_code | (d.sign_mask if negative else 0) for _, negative in cases]
    session.note(cases[0][0], codes[0], "one infinite operand")
    return codes == expected
