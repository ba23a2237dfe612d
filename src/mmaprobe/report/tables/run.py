"""The summary of a run on a terminal: one line an instruction where it is wide, a few where not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mmaprobe.report.console import ENDLESS, Folded
from mmaprobe.report.coverage import coverage_lines
from mmaprobe.report.datapath.phrases import COLUMNS
from mmaprobe.report.run_summary import InstructionRow, RunSummary, StepRow
from mmaprobe.showing import counted

WIDE = 150
"""Columns of a terminal from which on every phrase has a column of its own."""

_HEADINGS = {
    "order": "summation order",
    "precision": "precision",
    "rounding": "rounding",
    "subnormals": "subnormals",
    "specials": "special values",
}
REASONS = 3
"""Reasons why instructions do not run that are named."""
NAMES = 6
"""Instructions of each that are named."""
_NUMBERS = {"vectors": 10, "mismatches": 12, "time": 7}
"""Headings of the numbers and the least width of each."""

STYLES = {"equal": "green", "mismatch": "bold red", "changed": "yellow", "failed": "bold red"}
"""Of an outcome; any other one is yellow."""
SHOWN = 4
"""Mismatches of a table that are shown bit by bit; of more instructions each is a line."""


class SummaryTable:
    """Rich renderable of a summary; ``Console().print(SummaryTable(summary))``."""

    def __init__(self, summary: RunSummary) -> None:
        self.summary = summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.summary.rows
        if self.summary.notice:
            yield Folded(self.summary.notice, style="bold yellow")
        if rows:
            wide, room = _wide(rows), options.max_width
            least = wide.__rich_measure__(console, options.update(max_width=ENDLESS)).minimum
            yield wide if least <= room >= WIDE else _narrow(rows, room)
        yield from troubles(rows)
        if self.summary.steps:
            yield _steps(self.summary.steps)
        yield from _footer(self.summary)


def troubles(rows: Iterable[InstructionRow]) -> Iterator[Folded]:
    """What is wrong with each row that is not equal: the first mismatches bit by bit, all else in a line."""
    left = SHOWN
    for row in rows:
        style = STYLES.get(row.outcome, "yellow")
        if row.outcome == "equal" or not row.detail:
            continue
        if row.shown and left:
            left -= 1
            yield from (Folded(line, style=style if number == 0 else "") for number, line in enumerate(row.shown))
        else:
            yield Folded(f"{row.instruction}: {row.detail}", style=style)


def _wide(rows: tuple[InstructionRow, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("instruction", no_wrap=True)
    for name in COLUMNS:
        table.add_column(_HEADINGS[name], overflow="fold")
    _add_number_columns(table)
    for row in rows:
        table.add_row(Text(row.instruction), *(row.phrases.get(name, "") for name in COLUMNS), *_numbers(row))
    return table


def _steps(steps: tuple[StepRow, ...]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("step", "status", "time", "found"):
        table.add_column(name, justify="right" if name == "time" else "left", no_wrap=name == "time")
    for step in steps:
        style = "green" if step.status == "finished" else "yellow"
        table.add_row(Text(step.name), Text(step.status, style=style), f"{step.seconds:.1f} s", Text(step.text))
    return table


def _narrow(rows: tuple[InstructionRow, ...], width: int) -> RenderableType:
    """The numbers beside the instruction, or below an id that leaves them no room; its phrases in a paragraph below."""
    room = width - sum(_NUMBERS.values()) - len(_NUMBERS)
    parts: list[RenderableType] = [_head(Text("instruction"), *map(Text, _NUMBERS), style="bold")]
    parts.append(Padding(Text(", ".join(_HEADINGS.values()), style="dim"), (0, 0, 0, 2)))
    for row in rows:
        beside = len(row.instruction) <= room
        if not beside:
            parts.append(Folded(row.instruction, "bold"))
        parts.append(_head(Text(row.instruction if beside else "", style="bold"), *_numbers(row)))
        told = {name: text for name in COLUMNS if (text := row.phrases.get(name, "-")) != "-"}
        phrases = [f"subnormals {text}" if name == "subnormals" else text for name, text in told.items()]
        if phrases:
            parts.append(Padding(Text(" \u00b7 ".join(phrases), style="dim"), (0, 0, 0, 2)))
    return Group(*parts)


def _head(*cells: Text, style: str = "") -> Table:
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(overflow="fold", ratio=1)
    _add_number_columns(line)
    line.add_row(*cells, style=style)
    return line


def _add_number_columns(table: Table) -> None:
    for name, width in _NUMBERS.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)


def _numbers(row: InstructionRow) -> tuple[Text, Text, Text]:
    style = STYLES.get(row.outcome, "yellow")
    mismatches = Text(f"{row.mismatches:,}" if row.vectors else row.outcome, style=style)
    return Text(short_count(row.vectors)), mismatches, Text(_time(row.seconds))


def _time(seconds: float) -> str:
    """Seconds; evidence that is read again does not say them of each instruction."""
    return f"{seconds:.1f} s" if seconds else "-"


def short_count(count: int) -> str:
    """A count in at most six characters where it loses nothing: ``10 M``, ``1.25 M``, ``100 k``, else its digits."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size and count * 100 % size == 0:
            return f"{count / size:g} {unit}"
    return f"{count:,}"


def _footer(summary: RunSummary) -> list[RenderableType]:
    unequal = sum(row.outcome != "equal" for row in summary.rows)
    compared = f"{counted(summary.vectors, 'vector')} compared, {counted(summary.mismatches, 'mismatch')}"
    verdict = f"{counted(len(summary.rows), 'instruction')}, {compared}"
    verdict += f", {_time(summary.seconds)}" if summary.seconds else ""
    lines: list[RenderableType] = []
    if not summary.of_product:
        lines.append(Folded(verdict, style="bold red" if unequal else "bold green"))
    changed = [row.instruction for row in summary.rows if row.parameters == "changed"]
    if changed:
        lines.append(Folded("not what the shipped parameters say: " + ", ".join(changed), style="yellow"))
    lines += [Folded(line, style="dim") for line in (*summary.bounds,
                                                     *coverage_lines(summary.coverage))]  # fmt: skip
    lines += [Folded(f"not here: {line}", style="dim") for line in not_here_lines(summary.not_here)]
    if summary.evidence:
        lines.append(Folded(f"evidence: {summary.evidence}"))
    return [*lines, Folded(summary.meaning, style="dim")]


def not_here_lines(missing: Iterable[tuple[str, str]]) -> list[str]:
    """What does not run, a line for each of the first reasons."""
    groups: dict[str, list[str]] = {}
    for name, reason in missing:
        groups.setdefault(reason, []).append(name)
    lines = [f"{first_names(names)}: {reason}" for reason, names in groups.items()]
    rest = sum(map(len, list(groups.values())[REASONS:]))
    return lines[:REASONS] + ([f"{rest} more; --json gives every reason"] if rest else [])


def first_names(names: list[str]) -> str:
    """A few names, and how many there are beside them."""
    left = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f" and {left} more" if left > 0 else "")
