"""The published suites on the models: which units a column stands for (``golden/units.toml``), chains of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mmaprobe
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.published.suites import suite
from second_source.by_hand import code

COLUMNS: dict[str, Any] = tomllib.loads((Path(__file__).parents[1] / "golden" / "units.toml").read_text())["columns"]
SUITES = ("fasi2021", "gnft2025", "valpey2025", "lookup1980", "zeros2026")
Values = tuple[Fraction, ...]


@dataclass(frozen=True)
class Row:
    """One vector of one table on the units of one column, and the word that came out."""

    source: str
    name: str
    program: str
    column: str
    predicted: bool
    on: tuple[str, ...]  # ARCHITECTURE/INSTRUCTION
    a: Values
    b: Values
    c: Fraction
    d: str

    def __str__(self) -> str:
        words = (self.source.split(",")[0], self.program, self.name, self.column, "prediction" * self.predicted)
        return ", ".join(word for word in words if word)


def rows() -> Iterator[Row]:
    """Every row of every table on each column that it says something of."""
    for table in (table for name in SUITES for table in suite(name).tables):
        digits = mmaprobe.formats.get(table.result).container_bits // 4
        for row in table.rows:
            for column, word in zip(table.columns, row.words, strict=True):
                if word is not None:
                    on = tuple(unit.format(d=table.result) for unit in COLUMNS[table.operands][column])
                    yield Row(
                        table.source, row.name, row.program, column, column in table.predicted, on,
                        row.a, row.b, row.c, f"{word:0{digits}x}",
                    )  # fmt: skip


model_of = cache(mmaprobe.model)
code_of = cache(code)


def codes(fmt: str, given: Sequence[Sequence[Fraction]]) -> Bits:
    """Rows of values as codes of a format, each of which holds its value exactly."""
    known = {x: code_of(fmt, x) for row in given for x in row}
    return np.array([[known[x] for x in row] for row in given], mmaprobe.formats.get(fmt).dtype)


def chains(
    arch: str,
    form: str,
    a: Sequence[Sequence[Fraction]],
    b: Sequence[Sequence[Fraction]],
    c: Sequence[Fraction],
    **scales: list[int],
) -> Bits:
    """The results of vectors of one length: missing lanes are +0, more lanes than K are a chain of the instruction."""
    model = model_of(arch, form)
    made = model.instruction
    d = codes(made.c or made.d, [c])[0]
    lanes = range(0, max(len(a[0]), 1), made.k)
    short = [Fraction(0)] * (len(lanes) * made.k - len(a[0]))
    operands = [codes(fmt, [[*row, *short] for row in given]) for fmt, given in ((made.a, a), (made.b, b))]
    extra = {name: np.array([words] * len(c), np.uint8) for name, words in scales.items()}
    for first in lanes:
        d = model.dot(*(x[:, first : first + made.k] for x in operands), d, **extra)
    return d


def chain(arch: str, form: str, a: Sequence[Fraction], b: Sequence[Fraction], c: Fraction, **scales: list[int]) -> int:
    """``chains`` of one vector."""
    return int(chains(arch, form, [a], [b], [c], **scales)[0])
