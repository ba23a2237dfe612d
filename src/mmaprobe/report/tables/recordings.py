"""What a recording says of an instruction, field by field, for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from mmaprobe.derivation.certificate import NeighbourVerdict
from mmaprobe.derivation.recording import Reading
from mmaprobe.parameters.diff import outline
from mmaprobe.parameters.table import flatten, to_table
from mmaprobe.report.datapath.tree import datapath_text
from mmaprobe.report.tables.findings import MOST_REPAIRS
from mmaprobe.report.tables.listing import table
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted

COLUMNS = ("field", "value", "state", "could also be")


def print_reading(console: Console, reading: Reading) -> None:
    """The believed datapath, and of each field whether the recording settles, bounds or leaves it open."""
    found = reading.derivation
    left = f"leave {counted(len(reading.every), 'datapath')} of {len(reading.survivors)} kinds"
    console.print(
        f"{found.instruction}: {found.status}: {counted(found.vectors, 'recorded vector')}"
        + (f" {left}" if reading.every else "")
        + (f" ({found.reason})" if found.reason else ""),
    )  # fmt: skip
    datapath = found.datapath or found.closest
    if datapath is not None:
        console.print("believed:" if found.datapath else "closest:")
        console.print(datapath_text(datapath))
    if found.counterexample is not None:
        console.print(f"counterexample: {vector_text(found.counterexample)} -> {found.counterexample.d:#x}")
    for kind in found.kinds:
        console.print(f"differs {kind}; {vector_text(kind.witness)} -> {kind.witness.d:#x}")
    if found.repairs:
        console.print(f"one field changed: {'; '.join(map(str, found.repairs[:MOST_REPAIRS]))}")
    if found.datapath is not None:
        console.print(table(list(field_rows(reading)), COLUMNS))
        for line in structure_lines(reading):
            console.print(line)


def field_rows(reading: Reading) -> Iterator[dict[str, str]]:
    """A row a field: ``settled`` where every other value tried is refuted, ``bounded`` where some are, ``open`` where
    none is, ``of no matter`` where all mean the same."""
    datapath = reading.derivation.datapath
    values = dict(flatten(to_table(datapath, full=True))) if datapath is not None else {}
    entries = reading.derivation.certificate.entries
    for field in dict.fromkeys(entry.field for entry in entries):
        mine = [entry for entry in entries if entry.field == field]
        left = [entry.value for entry in mine if entry.verdict == "open"]
        value = values.get(field)
        yield {"field": field, "value": "-" if value is None else str(value), "state": state(mine),
               "could also be": ", ".join(ranges(left))}  # fmt: skip


def structure_lines(reading: Reading) -> Iterator[str]:
    """The other structures that are left, each with the values that its fields can have."""
    own = outline(reading.every[0].tree)
    for name in dict.fromkeys(outline(path.tree) for path in reading.every):
        if name != own:
            same = [dict(flatten(to_table(path, full=True))) for path in reading.every if outline(path.tree) == name]
            varied = [field for field in same[0] if len({str(each.get(field)) for each in same}) > 1]
            said = [f"{field} {', '.join(ranges([str(each.get(field, 'none')) for each in same]))}" for field in varied]
            yield f"also left: {name}" + (f" with {'; '.join(said)}" if said else "")


def state(entries: Sequence[NeighbourVerdict]) -> str:
    """What the verdicts on the values of one field amount to."""
    verdicts = {entry.verdict for entry in entries}
    if "open" in verdicts:
        return "bounded" if "refuted" in verdicts else "open"
    return "settled" if "refuted" in verdicts else "of no matter"


def ranges(values: Sequence[str]) -> list[str]:
    """Values with runs of whole numbers written as ``26..51``."""
    numbers = sorted({int(value) for value in values if value.lstrip("-").isdigit()})
    words = [value for value in values if not value.lstrip("-").isdigit()]
    found = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        some = [number for _, number in run]
        found.append(str(some[0]) if len(some) == 1 else f"{some[0]}..{some[-1]}")
    return found + list(dict.fromkeys(words))


def reading_json(reading: Reading) -> dict[str, Any]:
    """The derivation's form, the fields, and how many datapaths are left."""
    return reading.derivation.form() | {
        "instruction": reading.instruction.id,
        "survivors": len(reading.survivors),
        "datapaths": len(reading.every),
        "fields": list(field_rows(reading)),
    }
