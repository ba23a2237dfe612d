"""Answers to the open questions as rows of a report, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmaprobe.catalog.lookup import instruction, short
from mmaprobe.errors import UsageError
from mmaprobe.report.tables.open_questions import AnswerRow, AnswerVector
from mmaprobe.runs.open_questions.answers import Answer, answer_to_json
from mmaprobe.runs.open_questions.claims import named

SCHEMA = 1
"""What a document of answers says its schema is."""


def rows_of(answers: Sequence[Answer], architecture: str) -> list[AnswerRow]:
    """The answers of a device of this architecture as rows."""
    return [_row(answer, architecture) for answer in answers]


def _row(answer: Answer, architecture: str) -> AnswerRow:
    (question,) = named((answer.question,))
    claims = tuple(claim.name for claim in question.claims_on(architecture))
    says = f"{answer.claim} ({answer.finding})" if answer.claim else answer.finding
    shown = answer.witnesses if answer.status != "failed" else ()
    vectors = tuple(AnswerVector(each.witness, each.claims, _result(answer, architecture)) for each in shown)
    return AnswerRow(question.name, question.asks, short(answer.instruction), claims, answer.status, says, vectors)


def _result(answer: Answer, architecture: str) -> str:
    try:
        return instruction(answer.instruction, architecture).d
    except UsageError as error:
        raise UsageError(f"an answer about {answer.instruction!r}: {error}") from None


def answers_json(answers: Sequence[Answer], device: str, identity: dict[str, str], seed: int) -> dict[str, Any]:
    """All answers of a device."""
    return {
        "schema": SCHEMA,
        "kind": "mmaprobe open questions",
        "device": device,
        "identity": dict(identity),
        "seed": seed,
        "answers": [answer_to_json(answer) for answer in answers],
        "exit_code": answers_code(answers),
    }


def answers_code(answers: Sequence[Answer]) -> int:
    """5 where the device failed, 4 where nothing was settled, else 0."""
    statuses = {answer.status for answer in answers}
    if "failed" in statuses:
        return 5
    return 0 if "settled" in statuses else 4
