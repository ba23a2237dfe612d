"""Published suites as tables: the device's word beside every published one."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from mmaprobe.catalog.lookup import short
from mmaprobe.probing.published.replicate import Replication
from mmaprobe.probing.published.suites import SuiteRow
from mmaprobe.report.tables.listing import table


def suite_tables(console: Console, replications: list[Replication]) -> None:
    """One table an instruction: experiment, edition, the device's word, the published words, what it shows.

    A published word that the device did not give stands with an exclamation mark.
    """
    console.print(replications[0].suite.title)
    for one in replications:
        heads = {
            column: column + (" (predicted)" if column in one.table.predicted else "") for column in one.table.columns
        }
        rows = [
            {"experiment": row.name, "edition": row.program, "device": _word(one, word)}
            | {heads[c]: _held(one, word, published) for c, published in zip(heads, row.words, strict=True)}
            | {"shows": one.suite.purpose(row)}
            for row, word in zip(one.table.rows, one.words, strict=True)
        ]
        edition = ("edition",) if any(row.program for row in one.table.rows) else ()
        columns = ("experiment", *edition, "device", *heads.values(), "shows")
        console.print(table(rows, columns, f"{short(one.instruction.id)}: {one.table.source}"))
        agreed = [column for column in heads if one.agrees(column)]
        console.print(f"every answer is that of: {', '.join(agreed) or 'no column'}\n")


def _word(one: Replication, word: int | None) -> str:
    """A result as hexadecimal digits of its format; ``-`` where the experiment cannot be said."""
    width = one.instruction.formats()["d"].container_bits // 4
    return "-" if word is None else f"{word:0{width}x}"


def _held(one: Replication, word: int | None, published: int | None) -> str:
    return _word(one, published) + ("!" if None not in (word, published) and word != published else "")


def suite_json(replications: list[Replication]) -> dict[str, Any]:
    """Every table with its words."""
    return {
        "suite": replications[0].suite.name,
        "title": replications[0].suite.title,
        "tables": [
            {
                "instruction": one.instruction.id,
                "source": one.table.source,
                "predicted": list(one.table.predicted),
                "agrees": [column for column in one.table.columns if one.agrees(column)],
                "rows": [_row(one, row, word) for row, word in zip(one.table.rows, one.words, strict=True)],
            }
            for one in replications
        ],
    }


def _row(one: Replication, row: SuiteRow, word: int | None) -> dict[str, Any]:
    published = {c: _word(one, said) for c, said in zip(one.table.columns, row.words, strict=True) if said is not None}
    return {
        "experiment": row.name, "edition": row.program, "device": None if word is None else _word(one, word),
        "published": published, "shows": one.suite.purpose(row),
    }  # fmt: skip
