"""Published suites of experiments (``data/*.toml``): their vectors, and what was published as the answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any

from mmaprobe.catalog.toml import read_toml
from mmaprobe.errors import UsageError, near

TERM = re.compile(r"([+-]?)(?:(?:([\d.]+)\*)?2\^(-?\d+)|([\d.]+))")
Values = tuple[Fraction, ...]


@dataclass(frozen=True)
class SuiteRow:
    """One experiment: operands as values, and the word published for each column of its table (None: not said)."""

    name: str
    program: str
    a: Values
    b: Values
    c: Fraction
    scale_a: Values
    scale_b: Values
    words: tuple[int | None, ...]


@dataclass(frozen=True)
class Table:
    """The experiments of one pair of formats; ``predicted``: columns that nobody has seen on a device."""

    source: str
    operands: str
    result: str
    scale: str | None
    columns: tuple[str, ...]
    predicted: tuple[str, ...]
    rows: tuple[SuiteRow, ...]


@dataclass(frozen=True)
class Suite:
    """A published suite; ``shows`` says by the first word of an experiment's name what it is for."""

    name: str
    title: str
    shows: dict[str, str]
    tables: tuple[Table, ...]

    def purpose(self, row: SuiteRow) -> str:
        """What an experiment is for."""
        return self.shows.get(row.name.split()[0], "")


def suites() -> tuple[str, ...]:
    """The names of the suites."""
    folder = resources.files("mmaprobe.probing.published") / "data"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


@cache
def suite(name: str) -> Suite:
    """The suite of this name; UsageError with the near names otherwise."""
    if name not in suites():
        raise UsageError(f"unknown suite {name!r}{near(name, suites())}; there are {', '.join(suites())}")
    text = (resources.files("mmaprobe.probing.published") / "data" / f"{name}.toml").read_text()
    form = read_toml(text, f"{name}.toml")
    return Suite(name, form["title"], form["shows"], tuple(_table(table) for table in form["table"]))


def _table(form: dict[str, Any]) -> Table:
    columns = tuple(form["columns"])
    return Table(
        form["source"], form["operands"], form["result"], form.get("scale"), columns, tuple(form["predicted"]),
        tuple(_row(row, columns) for row in form["rows"]),
    )  # fmt: skip


def _row(form: dict[str, Any], columns: tuple[str, ...]) -> SuiteRow:
    given = form["d"]
    words = [given] * len(columns) if isinstance(given, str) else given
    if len(words) != len(columns):
        raise UsageError(f"experiment {form['name']}: {len(words)} words for {len(columns)} columns")
    return SuiteRow(
        form["name"], form.get("program", ""), values(form["a"]), values(form["b"]), value(form["c"]),
        values(form.get("scale_a", "")), values(form.get("scale_b", "")),
        tuple(None if word == "-" else int(word, 16) for word in words),
    )  # fmt: skip


def value(text: str) -> Fraction:
    """``1.5*2^15``, ``1+2^-22``: a sum of numbers and multiples of powers of two, each number that of a double."""
    found = list(TERM.finditer(text))
    if "".join(match[0] for match in found) != text or not text:
        raise UsageError(f"{text!r} is no sum of numbers and powers of two")
    total = Fraction(0)
    for sign, factor, power, number in (match.groups() for match in found):
        size = Fraction(float(number or factor or 1)) * Fraction(2) ** int(power or 0)
        total += -size if sign == "-" else size
    return total


def values(text: str) -> Values:
    """``0.5 4@2^-24``: values, some of them several times."""
    out: list[Fraction] = []
    for item in text.split():
        times, _, one = item.rpartition("@")
        out += [value(one)] * int(times or 1)
    return tuple(out)
