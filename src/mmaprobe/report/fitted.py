"""Tables that fit their console: no word is broken, an id least of all; what is too wide becomes a card a row."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from mmaprobe.report.console import ENDLESS

GAP = 2
"""Spaces between two columns."""
PADDED = 60
"""Columns of a cell to which others are padded, where there is no edge."""


@dataclass(frozen=True)
class FittedTable:
    """Rows of texts below their columns' names; ``numeric`` columns stand at the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    title: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= ENDLESS:
            yield Text("\n".join(self.lines()), no_wrap=True, overflow="ignore")
            return
        widths = self.widths(options.max_width)
        if widths is None:
            yield Text("\n".join(self.cards(options.max_width)), no_wrap=True, overflow="ignore")
            return
        drawn = Table(title=self.title or None, title_justify="left", box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for name, width, right in zip(self.columns, widths, self.numeric, strict=True):
            justify = "right" if right else "left"
            drawn.add_column(Text(name, style="bold"), justify=justify, width=width, overflow="fold")  # type: ignore[arg-type]
        for row in self.rows:
            drawn.add_row(*(Text(_from_its_words(text, width)) for text, width in zip(row, widths, strict=True)))
        yield drawn

    def lines(self) -> list[str]:
        """A line a row, for what has no edge: columns stand below each other, but for cells wider than ``PADDED``."""
        rows = [tuple(" ".join(text.split("\n")) for text in row) for row in (self.columns, *self.rows)]
        widths = [min(_longest(texts), PADDED) for texts in zip(*rows, strict=True)]
        told = [
            (
                f"{text:>{width}}" if right else f"{text:{width}}"
                for text, width, right in zip(row, widths, self.numeric, strict=True)
            )
            for row in rows
        ]
        return [*([self.title] if self.title else []), *((" " * GAP).join(cells).rstrip() for cells in told)]

    def widths(self, width: int) -> list[int] | None:
        """Of each column, so that all of them fit; None where the longest words of all are too wide together."""
        columns = [(name, *(row[at] for row in self.rows)) for at, name in enumerate(self.columns)]
        natural = [max(_longest(text.split("\n")) for text in texts) for texts in columns]
        least = [max(_longest(text.split()) for text in texts) for texts in columns]
        room = width - GAP * (len(columns) - 1)
        if sum(least) > room:
            return None
        over = sum(natural) - room
        while over > 0:
            at = max(range(len(natural)), key=lambda each: natural[each] - least[each])
            cut = min(over, max((natural[at] - least[at]) // 2, 1))
            natural[at] -= cut
            over -= cut
        return natural

    def _counts(self, row: tuple[str, ...]) -> list[tuple[str, str]]:
        """Names and numbers of a row that has little else."""
        found = [(n, t) for n, t, right in zip(self.columns, row, self.numeric, strict=True) if right]
        return found if 2 * len(found) > len(row) else []

    def cards(self, width: int) -> list[str]:
        """The rows one below the other: the first column as a heading, the others named; lines break between words.

        Of a row that is numbers above all, those that are not 0 stand in one line.
        """
        lines = [self.title] if self.title else []
        names = max(map(len, self.columns[1:]), default=0)
        for row in self.rows:
            lines += [*(lines and [""]), row[0]]
            counts = [f"{name}\xa0{text}" for name, text in self._counts(row) if text != "0"]
            if counts:
                lines += [f"{'':{GAP}}{line}" for line in _wrapped(" · ".join(counts), max(width - GAP, 1))]
            for name, text in zip(self.columns[1:], row[1:], strict=True):
                if not text or (name, text) in self._counts(row):
                    continue
                wrapped = _wrapped(text, max(width - names - 2 * GAP, 1))
                lines.append(f"{'':{GAP}}{name:{names}}{'':{GAP}}{wrapped[0]}".rstrip())
                lines += [f"{'':{names + 2 * GAP}}{line}" for line in wrapped[1:]]
        return lines


class RuledTable:
    """Rows that come one by one, a rule below their columns' names; none of it is cut off: cards where it is too
    wide."""

    def __init__(self, title: str, *columns: str) -> None:
        self.title, self.columns = title, columns
        self.rows: list[tuple[str, ...]] = []

    def add_row(self, *cells: str) -> None:
        """A row, whose last cells may be left out."""
        self.rows.append((*cells, *[""] * (len(self.columns) - len(cells))))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = Table(box=SIMPLE_HEAD, title=self.title, title_justify="left", title_style="bold", pad_edge=False)
        for column in self.columns:
            drawn.add_column(column, no_wrap=True)
        for row in self.rows:
            drawn.add_row(*map(Text, row))
        if console.measure(drawn, options=options.update(max_width=ENDLESS)).maximum <= options.max_width:
            yield drawn
        else:
            yield Text(f"{self.title}\n", style="bold")
            named = tuple(
                (f"{self.columns[0]} {row[0]}" if row[0][:1].isdigit() else row[0], *row[1:]) for row in self.rows
            )
            cards = FittedTable(self.columns, named, (False,) * len(self.columns)).cards(options.max_width)
            yield Text("\n".join([*cards, ""]), no_wrap=True, overflow="ignore")


def _longest(words: Sequence[str]) -> int:
    return max((Text(word).cell_len for word in words), default=0)


def _from_its_words(text: str, width: int) -> str:
    """A text whose lines begin with a word where they must be broken: rich breaks a word that a space pushes out."""
    lines = text.split("\n")
    return text if _longest(lines) <= width else "\n".join(line.strip() for line in lines)


def _wrapped(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace("\xa0", " ") for line in lines]
