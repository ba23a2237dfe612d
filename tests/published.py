"""Tables of published results (``golden/published.toml``): values in words, chains of instructions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mmaprobe
from by_hand import code
from mmaprobe.catalog.batch import Bits

TABLES: dict[str, Any] = tomllib.loads((Path(__file__).parent / "golden" / "published.toml").read_text())
TERM = re.compile(r"([+-]?)(?:(?:([\d.]+)\*)?2\^(-?\d+)|([\d.]+))")
Values = list[Fraction]


def value(text: str) -> Fraction:
    """``1.5*2^15``, ``1+2^-22``: a sum of numbers and multiples of powers of two, each number that of a double."""
    found = list(TERM.finditer(text))
    assert "".join(match[0] for match in found) == text, text
    total = Fraction(0)
    for sign, factor, power, number in (match.groups() for match in found):
        size = Fraction(float(number or factor or 1)) * Fraction(2) ** int(power or 0)
        total += -size if sign == "-" else size
    return total


def values(text: str) -> Values:
    """``0.5 4@2^-24``: values, some of them several times."""
    out: Values = []
    for item in text.split():
        times, _, one = item.rpartition("@")
        out += [value(one)] * int(times or 1)
    return out


@dataclass(frozen=True)
class Row:
    """One vector of one table on the units of one column, and the word that came out."""

    source: str
    name: str
    program: str
    column: str
    predicted: bool
    on: tuple[str, ...]  # ARCHITECTURE/INSTRUCTION
    a: str
    b: str
    c: str
    d: str

    def __str__(self) -> str:
        words = (self.source.split(",")[0], self.program, self.name, self.column, "prediction" * self.predicted)
        return ", ".join(word for word in words if word)


def rows() -> Iterator[Row]:
    """Every row of every table on each column that it says something of."""
    for table in TABLES["table"]:
        units = TABLES["columns"][table["operands"]]
        columns = table.get("columns", list(units))
        for row in table["rows"]:
            words = [row["d"]] * len(columns) if isinstance(row["d"], str) else row["d"]
            for column, word in zip(columns, words, strict=True):
                if word != "-":
                    on = tuple(unit.format(d=table["result"]) for unit in units[column])
                    predicted = column in table["predicted"]
                    yield Row(
                        table["source"], row["name"], row.get("program", ""), column, predicted, on,
                        row["a"], row["b"], row["c"], word,
                    )  # fmt: skip


model_of = cache(mmaprobe.model)
code_of = cache(code)


def codes(fmt: str, given: list[Values]) -> Bits:
    """Rows of values as codes of a format, each of which holds its value exactly."""
    known = {x: code_of(fmt, x) for row in given for x in row}
    return np.array([[known[x] for x in row] for row in given], mmaprobe.formats.get(fmt).dtype)


def chains(arch: str, form: str, a: list[Values], b: list[Values], c: Values, **scales: list[int]) -> Bits:
    """The results of vectors of one length: missing lanes are +0, more lanes than K are a chain of the instruction."""
    model = model_of(arch, form)
    made = model.instruction
    d = codes(made.c or made.d, [c])[0]
    lanes = range(0, max(len(a[0]), 1), made.k)
    short = [Fraction(0)] * (len(lanes) * made.k - len(a[0]))
    operands = [codes(fmt, [row + short for row in given]) for fmt, given in ((made.a, a), (made.b, b))]
    extra = {name: np.array([words] * len(c), np.uint8) for name, words in scales.items()}
    for first in lanes:
        d = model.dot(*(x[:, first : first + made.k] for x in operands), d, **extra)
    return d


def chain(arch: str, form: str, a: Values, b: Values, c: Fraction, **scales: list[int]) -> int:
    """``chains`` of one vector."""
    return int(chains(arch, form, [a], [b], [c], **scales)[0])
