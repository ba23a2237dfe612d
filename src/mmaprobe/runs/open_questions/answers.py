"""The answer to an open question, and its form in evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Witness
from mmaprobe.evidence.records_json import witness_from_json, witness_to_json

AnswerState = Literal["settled", "open", "not here", "failed"]


@dataclass(frozen=True)
class Shown:
    """A vector with the device's d, and what each claim says d is."""

    witness: Witness
    claims: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a device says to one question about one instruction (``""``: it has none of those that are asked about).

    ``settled``: ``claim`` holds, or, where it is empty, none of the claims does and ``finding`` says what
    was found.  ``open``: more than one claim agrees with every vector, or it could not be asked.
    ``failed``: the device failed, or contradicted itself.  ``vectors``: how many were asked.
    """

    question: str
    instruction: str
    status: AnswerState
    claim: str = ""
    finding: str = ""
    witnesses: tuple[Shown, ...] = ()
    vectors: int = 0

    @property
    def exit_code(self) -> int:
        return {"settled": 0, "open": 4, "not here": 0, "failed": 5}[self.status]


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """An answer as evidence keeps it; bit patterns are hexadecimal texts."""
    shown = [
        {"vector": witness_to_json(each.witness), "claims": [{"claim": n, "d": f"{d:#x}"} for n, d in each.claims]}
        for each in answer.witnesses
    ]
    words = {name: getattr(answer, name) for name in ("question", "instruction", "status", "claim", "finding")}
    return {**words, "vectors": answer.vectors, "witnesses": shown}


def answer_from_json(field: FileValue) -> Answer:
    """The answer that ``answer_to_json`` wrote."""
    shown = tuple(
        Shown(witness_from_json(each["vector"]), tuple((one["claim"].text, one["d"].bits) for one in each["claims"]))
        for each in field["witnesses"]
    )
    words = {name: field[name].text for name in ("question", "instruction", "claim", "finding")}
    return Answer(
        **words, status=field["status"].one_of(*get_args(AnswerState)), witnesses=shown, vectors=field["vectors"].whole
    )
