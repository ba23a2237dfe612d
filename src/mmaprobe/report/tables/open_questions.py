"""Answers to the open questions as text for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from mmaprobe import formats
from mmaprobe.evidence.records import Witness
from mmaprobe.report.tables.listing import table
from mmaprobe.report.vectors import vector_text


@dataclass(frozen=True)
class AnswerVector:
    """A vector with the device's d, and the d of each claim; ``format``: of d."""

    witness: Witness
    claims: tuple[tuple[str, int], ...]
    format: str


@dataclass(frozen=True)
class AnswerRow:
    """One answer: what is asked, of which instruction, the claims' names, what the device says."""

    question: str
    asks: str
    instruction: str
    claims: tuple[str, ...]
    status: str
    says: str
    vectors: tuple[AnswerVector, ...]


def questions_table(console: Console, rows: Sequence[AnswerRow], where: str = "") -> None:
    """One line an answer; below, the vectors that settle it, with d and what each claim says; or ``where`` they are."""
    lines = [
        {"question": row.question, "instruction": row.instruction, "claims": "; ".join(row.claims),
         "status": row.status, "the device says": row.says} for row in rows
    ]  # fmt: skip
    console.print(table(lines, ("question", "instruction", "claims", "status", "the device says")))
    for row in rows if not where else ():
        for vector in row.vectors:
            console.print(f"\n{row.question}, {row.instruction}: {vector_text(vector.witness)}")
            console.print(f"  d = {word(vector.format, vector.witness.d)}{_claimed(vector)}")
    settled = sum(row.status == "settled" for row in rows)
    asked = sum(row.status != "not here" for row in rows)
    there = f"; the vectors: {where}" if where else ""
    console.print(f"\n{settled} of {asked} answers settled; {len(rows) - asked} not here{there}")


def _claimed(vector: AnswerVector) -> str:
    said = [f"{word(vector.format, d)} by {name!r}" for name, d in vector.claims]
    return f"; {', '.join(said)}" if said else f" ({vector.witness.note})" if vector.witness.note else ""


def word(format: str, code: int) -> str:
    """A code as hexadecimal digits of its format's container."""
    return f"{code:0{formats.get(format).container_bits // 4}x}"
