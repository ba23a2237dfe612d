"""The summary of a run on standard output, of one that has just ended as of one that is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.cli.terminal import out

if TYPE_CHECKING:
    from mmaprobe.report.run_summary import RunSummary
    from mmaprobe.runs.open_questions.answers import Answer


def print_summary(summary: RunSummary, answers: Sequence[Answer], folder: Path, lines: Iterable[str] = ()) -> None:
    """The table, the answers to open questions, and in a line each what else is to be known."""
    from mmaprobe.report.tables.open_questions import questions_table
    from mmaprobe.report.tables.run import SummaryTable
    from mmaprobe.runs.open_questions.answer_rows import rows_of

    out().print(SummaryTable(summary))
    asked = [each for each in answers if each.status != "not here"]
    if asked:
        rows = rows_of(asked, summary.identity.get("architecture", ""))
        questions_table(out(), rows, str(folder / "steps" / "questions.json"))
    for line in (*summary.remarks, *lines):
        out().print(line)
