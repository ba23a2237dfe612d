"""A campaign on a terminal: one line an instruction and control state, those that are not equal with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmaprobe.report.console import Folded
from mmaprobe.report.coverage import coverage_lines
from mmaprobe.report.run_summary import InstructionRow, RunSummary
from mmaprobe.report.tables.run import STYLES, not_here_lines, short_count, troubles

NUMBERS = 24
"""Characters that the numbers of a row take beside its id, at least."""


def _print_rows(console: Console, rows: Sequence[InstructionRow]) -> None:
    """A line a row; a longer id than leaves room for the numbers stands above them."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("instruction", "vectors", "mismatches"):
        table.add_column(name, justify="left" if name == "instruction" else "right", no_wrap=True)
    apart = max((len(row.instruction) for row in rows), default=0) > console.width - NUMBERS
    for row in rows:
        told = Text(f"{row.mismatches:,}" if row.vectors else row.outcome, style=STYLES.get(row.outcome, "yellow"))
        if apart:
            console.print(row.instruction)
            numbers = (f"  {short_count(row.vectors)} vectors, ", told, " mismatches" if row.vectors else "")
            console.print(Text.assemble(*numbers))
        else:
            table.add_row(Text(row.instruction), short_count(row.vectors), told)
    if not apart:
        console.print(table)


def print_campaign(console: Console, summary: RunSummary, lines: Iterable[str]) -> None:
    """The table, the reasons, the lines, what is not here, and where the evidence is."""
    if summary.notice:
        console.print(Folded(summary.notice, style="bold yellow"))
    _print_rows(console, summary.rows)
    for trouble in troubles(summary.rows):
        console.print(trouble)
    for line in (
        *lines,
        *summary.bounds,
        *coverage_lines(summary.coverage),
        *(f"not here: {line}" for line in not_here_lines(summary.not_here)),
    ):
        console.print(line)
    if summary.evidence:
        console.print(f"evidence: {summary.evidence}")
    console.print(Folded(summary.meaning, style="dim"))
