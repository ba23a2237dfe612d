"""How a result shows itself: one line where it is printed, a table in a notebook, rows for pandas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby, islice
from typing import Any, TypeVar

from mmaprobe.errors import NotHereError, printable

Row = Mapping[str, Any]
MOST_LINES = 24
"""Results that are printed one below the other; of more the first, and how many are left."""
T = TypeVar("T", bound="Showing")
MOST_ROWS = 60
"""Rows of a table in a notebook; what is left out is counted, and ``to_frame`` has it."""


class Code(int):
    """A bit pattern: shown in hexadecimal."""

    def __str__(self) -> str:
        return f"{self:#x}"


class Showing(ABC):
    """A result that says itself in one line; what it holds is a table."""

    @abstractmethod
    def in_a_line(self) -> str:
        """What it is and what it found."""

    def as_row(self) -> Row:
        """What it says among others of its kind."""
        return {"result": self.in_a_line()}

    def as_rows(self) -> Sequence[Row]:
        """What it holds."""
        return [self.as_row()]

    def to_frame(self) -> Any:
        """What it holds as a pandas DataFrame; NotHereError where pandas is not installed."""
        return frame(self.as_rows())

    def __repr__(self) -> str:
        return f"<{printable(self.in_a_line())}>"

    def _repr_html_(self) -> str:
        return html_table(self.in_a_line(), self.as_rows())


class Results(list[T], Showing):
    """Results of one kind: a list, and a table of a row each."""

    def in_a_line(self) -> str:
        """How many there are."""
        return counted(len(self), "result")

    def as_rows(self) -> Sequence[Row]:
        """A row for each."""
        return [each.as_row() for each in self]

    def __repr__(self) -> str:
        return f"[{_lines(map(repr, self[:MOST_LINES]), len(self))}]"


class NamedResults(dict[str, T], Showing):
    """Results by name: a dictionary, and a table of a row each."""

    def in_a_line(self) -> str:
        """How many there are."""
        return counted(len(self), "result")

    def as_rows(self) -> Sequence[Row]:
        """A row for each."""
        return [each.as_row() for each in self.values()]

    def __repr__(self) -> str:
        shown = (f"{name!r}: {each!r}" for name, each in islice(self.items(), MOST_LINES))
        return f"{{{_lines(shown, len(self))}}}"


def _lines(shown: Iterable[str], count: int) -> str:
    """Results one below the other; what is left out is counted."""
    left = [f"... and {count - MOST_LINES:,} more"] if count > MOST_LINES else []
    return ",\n ".join([*shown, *left])


def codes_text(codes: Iterable[int]) -> str:
    """Lanes as the command line takes them: ``x*n`` for a run."""
    runs = [(code, len(list(group))) for code, group in groupby(codes)]
    return ",".join(f"{code:#x}" if count == 1 else f"{code:#x}*{count}" for code, count in runs)


def counted(number: int, noun: str) -> str:
    """``1 instruction``, ``2,000 instructions``, ``0 mismatches``."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a word that forms it regularly."""
    return noun + ("es" if noun.endswith(("ch", "sh", "ss", "x")) else "s")


def another(noun: str) -> str:
    """``another seed``, ``other settings``."""
    return f"{'other' if noun.endswith('s') else 'another'} {noun}"


def human(count: int) -> str:
    """A count as people say it, three digits of it: ``12.3 M``, ``340``."""
    for limit, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= limit - limit // 2000:  # three digits of it are those of the unit
            return f"{count / limit:.3g} {unit}" if count % limit else f"{count // limit} {unit}"
    return str(count)


def per_second(rate: float) -> str:
    """A rate as people say it, whatever its size: ``5.1 M/s``, ``12 k/s``, ``340/s``, ``0.25/s``."""
    return f"{human(round(rate))}/s" if rate >= 10 else f"{rate:.2g}/s"


def of_which(number: int, whole: int, noun: str, verb: str) -> str:
    """``1 of 12 vectors differs``, ``2 of 12 vectors differ``: the verb is that of several."""
    if number == 1:
        verb = {"are": "is", "have": "has", "were": "was"}.get(verb, verb + "s")
    return f"{number:,} of {whole:,} {plural(noun)} {verb}"


def mismatches_in(mismatches: int, vectors: int) -> str:
    """``1 mismatch in 2,000 vectors``."""
    return f"{counted(mismatches, 'mismatch')} in {counted(vectors, 'vector')}"


def counted_states(number: int) -> str:
    """``1 instruction``, ``2,000 instructions and control states``: of how many something is told, each state by
    itself."""
    return counted(number, "instruction") + " and control states" * (number != 1)


def html_table(caption: str, rows: Sequence[Row]) -> str:
    """A table without any style of its own, whose texts are texts and nothing else."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    lines = ["".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in names) for row in rows[:MOST_ROWS]]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    left = len(rows) - MOST_ROWS
    more = f"<p>and {left:,} more rows: to_frame() has them all</p>" if left > 0 else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<p>{escape(printable(caption))}</p>{table}{more}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple) and value and all(isinstance(each, int) for each in value):
        return codes_text(value)
    return f"{value:,}" if type(value) is int else printable(str(value))


def frame(rows: Sequence[Row]) -> Any:
    """The rows as a pandas DataFrame; NotHereError where pandas is not installed."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise NotHereError("to_frame makes a pandas DataFrame, and pandas is not here: pip install pandas") from None
    return DataFrame(list(map(dict, rows)))
