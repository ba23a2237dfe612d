"""A campaign on a terminal: one line an instruction and control state, those that are not equal with the reason."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmaprobe.report.coverage import coverage_lines
from mmaprobe.report.run_summary import MEANING, RunSummary
from mmaprobe.report.tables.run import not_here_lines, short_count

STYLES = {"equal": "green", "mismatch": "bold red", "failed": "bold red"}


def print_campaign(console: Console, summary: RunSummary, lines: Iterable[str]) -> None:
    """The table, the reasons, the lines, what is not here, and where the evidence is."""
    if summary.notice:
        console.print(Text(summary.notice, style="bold yellow"))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("instruction", overflow="fold")
    for name in ("vectors", "mismatches"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in summary.rows:
        told = f"{row.mismatches:,}" if row.vectors else row.outcome
        style = STYLES.get(row.outcome, "yellow")
        table.add_row(Text(row.instruction), short_count(row.vectors), Text(told, style=style))
    console.print(table)
    for row in summary.rows:
        if row.outcome != "equal" and row.detail:
            console.print(Text(f"{row.instruction}: {row.detail}", style=STYLES.get(row.outcome, "yellow")))
    for line in (
        *lines,
        *coverage_lines(summary.coverage),
        *(f"not here: {line}" for line in not_here_lines(summary.not_here)),
    ):
        console.print(line, markup=False, soft_wrap=True)
    if summary.evidence:
        console.print(f"evidence: {summary.evidence}", markup=False, soft_wrap=True)
    console.print(Text(MEANING, style="dim"))
