"""The summary of a run as Markdown, for the page that a CI shows of a job: what is wrong comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mmaprobe.evidence.files import write_bytes
from mmaprobe.report.coverage import coverage_lines
from mmaprobe.report.run_summary import AGAIN, InstructionRow, RunSummary
from mmaprobe.showing import counted, counted_states

MOST_ROWS = 2000
"""Rows of a page: GitHub shows at most 1 MiB."""
MOST_TEXT = 300
"""Characters of a reason, beside the command that asks it again."""


def to_markdown(summary: RunSummary, lines: Iterable[str] = (), failure: str = "") -> str:
    """A heading, the lines, the table, and why each row is no success.

    ``failure``: what else than the summary makes the run red.
    """
    said = [*_head(summary, failure), *(f"- {_plain(line)}" for line in (*lines, *coverage_lines(summary.coverage)))]
    return "\n".join([*said, "", *_table(summary), "", *_reasons(summary), _plain(summary.meaning), ""])


def _head(summary: RunSummary, failure: str) -> Iterator[str]:
    """What was compared, and whether all of it is equal."""
    wrong = sum(row.outcome != "equal" for row in summary.rows)
    verdict = f"exit code {summary.exit_code}" if summary.exit_code else "failed" if failure else "passed"
    yield f"### {_plain(summary.device)} {_plain(summary.identity.get('architecture', ''))}: {verdict}"
    yield ""
    yield from [f"- {_plain(summary.notice)}"] * bool(summary.notice)
    yield f"- {counted(summary.vectors, 'vector')}, {counted(summary.mismatches, 'mismatch')}"
    yield f"- of {counted_states(len(summary.rows))} {wrong} not equal"
    yield from [f"- {_plain(line)}" for line in (*summary.bounds, *[failure] * bool(failure))]
    yield f"- seed {summary.seed}, mmaprobe {_plain(summary.version)}"


def _table(summary: RunSummary) -> Iterator[str]:
    yield "| instruction | outcome | vectors | mismatches | excluded at 95 % | cells |"
    yield "|---|---|--:|--:|--:|--:|"
    ordered = sorted(summary.rows, key=lambda row: row.outcome == "equal")
    for row in ordered[:MOST_ROWS]:
        said = f"1 in {row.excluded:,}" if row.excluded else ""
        cells = f"{row.coverage.hit} of {row.coverage.reachable}" if row.coverage.sampled else ""
        counts = f"{row.vectors:,} | {row.mismatches:,} | {said} | {cells}"
        yield f"| `{_cell(row.instruction)}` | {row.outcome} | {counts} |"
    if len(ordered) > MOST_ROWS:
        yield f"| and {len(ordered) - MOST_ROWS:,} more | | | | | |"


def _reasons(summary: RunSummary) -> Iterator[str]:
    """In a list, what is wrong with a row, what the run as a whole has to say, and what is not here."""
    rows = [row for row in summary.rows if row.outcome != "equal" and row.detail]
    said = [f"- `{_cell(row.instruction)}`: {_plain(_short(row))}" for row in rows[:MOST_ROWS]]
    said += [f"- {_plain(line)}" for line in summary.remarks]
    said += [f"- not here: {counted(len(summary.not_here), 'instruction')}"] * bool(summary.not_here)
    yield from [*said, ""] if said else ()


def _short(row: InstructionRow) -> str:
    """A reason, of a long one both ends; the command that asks it again is whole, or nobody could type it."""
    said, again, command = row.detail.partition(AGAIN)
    if len(said) > MOST_TEXT:
        said = f"{said[: MOST_TEXT // 2]} ... {said[-(MOST_TEXT // 2) :]}"
    return said + again + command


def _plain(text: str) -> str:
    """A text of which Markdown makes neither tags nor cells nor lines, nor italics between two asterisks."""
    said = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("`", "'")
    return said.replace("|", "\\|").replace("*", "\\*")


def _cell(text: str) -> str:
    """A text between backquotes in a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")


def write(
    summary: RunSummary,
    path: Path,
    lines: Iterable[str] = (),
    failure: str = "",
) -> None:
    """``to_markdown`` at ``path``; CannotWriteError where it cannot be written."""
    write_bytes(path, to_markdown(summary, lines, failure).encode(), "choose another file with --markdown")
