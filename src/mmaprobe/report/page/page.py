"""The page of a run: its parts, put into the template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mmaprobe.evidence.store import MANIFEST, Header
from mmaprobe.report.coverage import coverage_lines
from mmaprobe.report.page.cards import Card
from mmaprobe.report.page.filling import filled
from mmaprobe.report.run_summary import RowOutcome, RunSummary
from mmaprobe.report.tables.open_questions import AnswerRow
from mmaprobe.report.tables.run import not_here_lines
from mmaprobe.showing import counted, of_which

UNEQUAL: dict[RowOutcome, tuple[str, str]] = {
    "mismatch": ("are", "not equal"), "changed": ("are", "not what the shipped parameter file says"),
    "failed": ("have", "failed"), "inconclusive": ("are", "inconclusive"), "unwritten": ("were", "not written"),
    "internal": ("have", "met an error of mmaprobe"),
}  # fmt: skip
"""What is said of instructions of each outcome but equal: a verb, and what they are."""
SIGNS = {"equal": "✓", "mismatch": "✗", "changed": "≠", "failed": "!", "inconclusive": "?"}
"""What stands before an outcome, so that its colour is not all that tells it."""


@dataclass(frozen=True)
class ShownChange:
    """One difference in meaning, with the smallest vector that shows it and both answers, where there is one."""

    name: str
    kind: str
    lines: tuple[str, ...]
    vector: str = ""
    old: str = ""
    new: str = ""


@dataclass(frozen=True)
class SideRow:
    """What two runs came to of one instruction; empty where a run does not tell of it."""

    instruction: str
    old: str
    new: str
    differs: bool


@dataclass(frozen=True)
class Beside:
    """Another run beside this one: its name, differences in meaning as lines with their vectors, and each instruction's
    counts there."""

    name: str
    total: str
    context: tuple[str, ...]
    changes: tuple[ShownChange, ...]
    rows: tuple[SideRow, ...]


@dataclass(frozen=True)
class PageContent:
    """Everything that a page shows; ``files`` are those of the evidence with their SHA-256, ``command`` repeats the
    run."""

    summary: RunSummary
    header: Header
    finished: bool
    cards: Sequence[Card]
    questions: Sequence[AnswerRow] = ()
    lines: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    beside: Beside | None = None


def render(content: PageContent) -> str:
    """The page's text; NotHereError without jinja2."""
    summary = content.summary
    return filled(
        "page.html",
        page=content,
        summary=summary,
        header=content.header,
        cards=content.cards,
        mismatches=[each for card in content.cards for each in card.mismatches],
        card_of={part.instruction: card.number for card in content.cards for part in card.parts},
        verdict=_verdict(summary),
        coverage=list(coverage_lines(summary.coverage)),
        not_here=not_here_lines(summary.not_here),
        device=list(_flat(content.header.identity)),
        toolchain=list(_flat(content.header.toolchain)),
        settings=list(_flat(content.header.settings)),
        signs=SIGNS,
        meaning=summary.meaning,
        manifest=MANIFEST,
    )


def counts(content: PageContent) -> dict[str, int]:
    """What the page shows, counted."""
    parts = [part for card in content.cards for part in card.parts]
    return {
        "cards": len(content.cards),
        "instructions": len(parts),
        "rivals": sum(len(part.certificate.rows) for part in parts if part.certificate is not None),
        "mismatches": sum(len(card.mismatches) for card in content.cards),
    }


def _verdict(summary: RunSummary) -> str:
    """How many vectors were compared and how they came out; of each outcome but equal how many instructions have it."""
    outcomes, rows = Counter(row.outcome for row in summary.rows), len(summary.rows)
    if not rows or not summary.vectors:
        return "Nothing was compared."
    said = f"{counted(summary.vectors, 'vector')} of {counted(rows, 'instruction')} were compared"
    if outcomes.keys() == {"equal"}:
        return f"{said}: every bit is the same."
    others = [
        f"{of_which(outcomes[name], rows, 'instruction', verb)} {what}"
        for name, (verb, what) in UNEQUAL.items()
        if name in outcomes
    ]
    return f"{said}: {'; '.join([counted(summary.mismatches, 'mismatch'), *others])}."


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values; a table inside as ``outer.inner``."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", each) for inner, each in _flat(value))
        else:
            yield str(name), str(value)
