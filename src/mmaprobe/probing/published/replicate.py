"""Published suites run again: each experiment on a device, in a chain of the instruction where it needs more lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, run_vectors
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.formats import Format
from mmaprobe.probing.published.suites import Suite, SuiteRow, Table
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.exact_values import code_of
from mmaprobe.probing.session.vectors import Vector, pack
from mmaprobe.showing import Row, Showing, counted


@dataclass(frozen=True, repr=False)
class Replication(Showing):
    """A table's answers on one instruction: the word of each row, None where the formats cannot say its operands."""

    suite: Suite
    table: Table
    instruction: Instruction
    words: tuple[int | None, ...]

    def in_a_line(self) -> str:
        """The suite, the instruction, and whose published words are its own."""
        same = [column for column in self.table.columns if self.agrees(column)]
        answers = f"answers as published of {', '.join(same)}" if same else "answers as nobody has published"
        return f"{self.suite.name} on {self.instruction.id}: {counted(len(self.words), 'experiment')}, {answers}"

    def as_row(self) -> Row:
        """The suite and whom the answers agree with."""
        agreeing = ", ".join(column for column in self.table.columns if self.agrees(column))
        return {"suite": self.suite.name, "instruction": self.instruction.id, "experiments": len(self.words),
                "agrees_with": agreeing}  # fmt: skip

    def as_rows(self) -> list[Row]:
        """The experiments: the device's word, then those published."""
        return [
            {"experiment": row.name, "word": word, **dict(zip(self.table.columns, row.words, strict=True))}
            for row, word in zip(self.table.rows, self.words, strict=True)
        ]

    def agrees(self, column: str) -> bool:
        """Whether every word that is published for a column is the device's, and there is one."""
        at = self.table.columns.index(column)
        pairs = [(row.words[at], word) for row, word in zip(self.table.rows, self.words, strict=True)]
        said = [(published, word) for published, word in pairs if published is not None and word is not None]
        return bool(said) and all(published == word for published, word in said)


def replicate(device: Device, suite: Suite, instruction: Instruction | None = None) -> list[Replication]:
    """The tables of a suite that fit the instruction; where None, each on every family of the device's instructions.

    UsageError where no table fits the instruction, NotHereError where the device runs none that fits.
    """
    if instruction is not None:
        fitting = [table for table in suite.tables if _fits(table, instruction)]
        if not fitting:
            known = ", ".join(dict.fromkeys(f"{t.operands} -> {t.result}" for t in suite.tables))
            raise UsageError(f"{suite.name} has no table for {instruction.id}; it has {known}")
        support = device.supports(instruction)
        if not support:
            raise NotHereError(f"{instruction.id} on {device.name}: {support.reason}")
        return [_run(device, suite, table, instruction) for table in fitting]
    found = [_run(device, suite, table, chosen) for table in suite.tables for chosen in _instructions(device, table)]
    if not found:
        raise NotHereError(f"{device.name} runs no instruction of the formats of {suite.name}")
    return found


def _fits(table: Table, instruction: Instruction) -> bool:
    spoken = instruction.a, instruction.b, instruction.d, instruction.scale
    wanted = table.operands, table.operands, table.result, table.scale
    return spoken == wanted and instruction.c in (table.result, None) and not instruction.chunk


def _instructions(device: Device, table: Table) -> Iterator[Instruction]:
    """The first instruction of each family that fits and runs, its plainest form."""
    seen: set[str] = set()
    for instruction in sorted(device.instructions(), key=lambda one: (len(one.modifiers), -one.k)):
        if instruction.family not in seen and _fits(table, instruction) and device.supports(instruction):
            seen.add(instruction.family)
            yield instruction


def _run(device: Device, suite: Suite, table: Table, instruction: Instruction) -> Replication:
    """One launch for all rows; another for those that have more lanes than the instruction, and so on."""
    ready = {number: links for number, row in enumerate(table.rows) if (links := _links(instruction, row))}
    words: dict[int, int] = {}
    depth = 0
    while some := [number for number, links in ready.items() if len(links) > depth]:
        vectors = [
            ready[number][depth] if depth == 0 else replace(ready[number][depth], c=words[number]) for number in some
        ]
        codes = run_vectors(device, instruction, pack(instruction, vectors)).tolist()
        words |= dict(zip(some, codes, strict=True))
        depth += 1
    return Replication(suite, table, instruction, tuple(words.get(number) for number in range(len(table.rows))))


def _links(instruction: Instruction, row: SuiteRow) -> list[Vector]:
    """The chain of vectors of an experiment; empty where a format lacks a value or a chain has no C to go through."""
    found, k = instruction.formats(), instruction.k
    a, b = (_codes(found[name], getattr(row, name)) for name in ("a", "b"))
    scale_a, scale_b = (_codes(found[n], getattr(row, n)) if n in found else () for n in ("scale_a", "scale_b"))
    c = None if instruction.c is None else code_of(found["c"], row.c)
    lanes = max(len(row.a), 1)
    if a is None or b is None or None in (scale_a, scale_b) or (c is None and (instruction.c or row.c or lanes > k)):
        return []
    out = []
    for start in range(0, lanes, k):
        pair = [Codes.listed((*codes[start : start + k], *(0,) * k)[:k]) for codes in (a, b)]
        out.append(Vector(pair[0], pair[1], c, scale_a or (), scale_b or ()))
    return out


def _codes(fmt: Format, given: Sequence[Fraction]) -> tuple[int, ...] | None:
    codes = tuple(code_of(fmt, value) for value in given)
    return None if None in codes else tuple(code for code in codes if code is not None)
