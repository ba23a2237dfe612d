"""Runs as Parquet tables: one of runs, of instructions, of families of vectors, of mismatches, of coverage, of cells.

They hold what evidence says, a row each, for any program that reads Parquet (the extra ``cluster``).  ``function``
names a derived datapath by the first one, of all runs on its architecture, that is the same function: what is written
otherwise has another ``datapath`` and the same ``function``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmaprobe.baselines.facts import InstructionFacts, RunFacts, facts_of
from mmaprobe.baselines.instruction_changes import told_apart
from mmaprobe.baselines.run_list import ListedRun, list_runs
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.evidence.cell_counts import coverage_of
from mmaprobe.evidence.files import digest_of, json_text, write_bytes
from mmaprobe.evidence.folders import evidence_below, holds_evidence
from mmaprobe.evidence.store import Store
from mmaprobe.report.vectors import vector_text

RUNS = "runs.parquet"
SCHEMA = b"2"
"""What the tables say their schema is."""
KEY = b"mmaprobe schema"
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "runs": {
        "run": "string", "path": "string", "begun": "string", "device": "string", "unit": "string",
        "driver": "string", "architecture": "string", "version": "string", "seed": "int64", "finished": "bool_",
        "seconds": "float64", "instructions": "int64", "vectors": "int64", "mismatches": "int64",
    },
    "instructions": {
        "run": "string", "instruction": "string", "status": "string", "outcome": "string", "vectors": "int64",
        "mismatches": "int64", "datapath": "string", "function": "string",
    },
    "families": {
        "run": "string", "instruction": "string", "family": "string", "version": "int64", "vectors": "int64",
        "mismatches": "int64",
    },
    "mismatches": {
        "run": "string", "instruction": "string", "recipe": "string", "stable": "bool_", "vector": "string",
        "d": "string", "expected": "string",
    },
    "coverage": {
        "run": "string", "instruction": "string", "status": "string", "refuted": "int64", "equivalent": "int64",
        "open": "int64", "fresh": "int64", "answers": "int64", "excluded_one_in": "int64",
    },
    "cells": {
        "run": "string", "instruction": "string", "rule": "string", "cell": "string", "sampled": "int64",
        "vectors": "int64",
    },
}  # fmt: skip
"""The tables, and the type of each column."""
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class RunTables:
    """Arrow tables by name; ``left_out``: the runs that cannot be read, and why; ``copies`` of runs counted once."""

    tables: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()


def arrow() -> Any:
    """pyarrow; NotHereError without it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise NotHereError("tables of runs need pyarrow and duckdb; type: pip install 'mmaprobe[cluster]'") from None
    return pyarrow


def tables_of(folder: Path) -> RunTables:
    """The tables of the runs below a folder, or those that ``write_tables`` wrote there.

    Raises UsageError where the folder has neither, NotHereError without the extra ``cluster``.
    """
    if are_tables(folder):
        return RunTables({name: _read(folder / f"{name}.parquet") for name in COLUMNS})
    listed = list_runs(folder)
    pyarrow = arrow()
    rows, left_out, copies = _rows(listed)
    tables = {
        name: pyarrow.Table.from_pylist(rows[name], schema=_schema(pyarrow, columns))
        for name, columns in COLUMNS.items()
    }
    return RunTables(tables, tuple(left_out), tuple(copies))


def are_tables(folder: Path) -> bool:
    """Whether a folder holds tables, or runs; UsageError where it has neither, or both, of which one is older."""
    runs = holds_evidence(folder) if (folder / RUNS).exists() else bool(evidence_below(folder))
    if runs and (folder / RUNS).exists():
        raise UsageError(f"{folder} holds runs beside tables of runs ({RUNS}); keep these in a folder of their own")
    return not runs


def write_tables(found: RunTables, out: Path) -> list[tuple[Path, int]]:
    """The tables as ``out/NAME.parquet``, with their numbers of rows; CannotWriteError where that cannot be, UsageError
    where runs are in ``out``."""
    if holds_evidence(out):
        raise UsageError(f"{out} holds runs; choose a folder for tables alone with --out")
    written = []
    for name, table in found.tables.items():
        held = io.BytesIO()
        arrow().parquet.write_table(table, held)
        write_bytes(out / f"{name}.parquet", held.getvalue())
        written.append((out / f"{name}.parquet", table.num_rows))
    return written


def _schema(pyarrow: Any, columns: Mapping[str, str]) -> Any:
    fields = [(name, getattr(pyarrow, kind)()) for name, kind in columns.items()]
    return pyarrow.schema(fields, metadata={KEY: SCHEMA})


def _read(path: Path) -> Any:
    """One table; UsageError where it is none of ours, truncated, or of another schema."""
    pyarrow = arrow()
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise UsageError(f"{path}: no Parquet table that can be read: {' '.join(str(error).split())[:80]}") from None
    expected = _schema(pyarrow, COLUMNS[path.stem])
    if not table.schema.equals(expected) or (table.schema.metadata or {}).get(KEY) != SCHEMA:
        raise UsageError(f"{path}: not the table of this schema; mmaprobe evidence export writes it anew")
    return table


def _rows(listed: list[ListedRun]) -> tuple[Rows, list[str], list[str]]:
    """The rows of every table, the oldest run first, what is left out, and what is there twice."""
    rows: Rows = {name: [] for name in COLUMNS}
    left_out, copies, functions, seen = list[str](), list[str](), _Functions(), dict[str, Path]()
    for each in listed:
        if each.wrong:
            left_out.append(f"{each.path}: {each.wrong}")
            continue
        if each.run in seen:
            copies.append(f"{each.path}: the same run as {seen[each.run]}")
            continue
        try:
            store = Store.open(each.path)
            facts = facts_of(store)
        except UsageError as error:
            left_out.append(str(error))
            continue
        seen[each.run] = each.path
        rows["runs"].append(_run_row(each, store, facts))
        for name, said in facts.instructions.items():
            _add_instruction(rows, each.run, name, said, functions.name(each.architecture, said))
    return rows, left_out, copies


def _run_row(listed: ListedRun, store: Store, facts: RunFacts) -> dict[str, Any]:
    parts = [each.part for each in facts.instructions.values()]
    unit = listed.unit if "uuid" in listed.identity else " ".join(filter(None, (listed.device, listed.unit)))
    seconds = sum(step.seconds for step in store.steps.values())
    return {
        "run": listed.run, "path": str(listed.path), "begun": listed.begun, "device": listed.device, "unit": unit,
        "driver": listed.driver, "architecture": listed.architecture, "version": listed.version, "seed": listed.seed,
        "finished": listed.finished, "seconds": seconds or None, "instructions": len(parts),
        "vectors": sum(part.vectors for part in parts), "mismatches": sum(part.mismatch_count for part in parts),
    }  # fmt: skip


def _add_instruction(rows: Rows, run: str, name: str, said: InstructionFacts, function: str | None) -> None:
    part, which = said.part, {"run": run, "instruction": name}
    rows["instructions"].append(which | {
        "status": part.status, "outcome": said.outcome, "vectors": part.vectors, "mismatches": part.mismatch_count,
        "datapath": _digest(said), "function": function,
    })  # fmt: skip
    for family, count in _families(part.validation):
        rows["families"].append(which | {
            "family": family, "version": count.get("version"), "vectors": count["vectors"],
            "mismatches": count["mismatches"],
        })  # fmt: skip
    for mismatch in part.mismatches:
        rows["mismatches"].append(which | {
            "recipe": mismatch.recipe, "stable": mismatch.stable, "vector": vector_text(mismatch.vector),
            "d": f"{mismatch.vector.d:#x}", "expected": f"{mismatch.expected:#x}",
        })  # fmt: skip
    counted = coverage_of(part.validation)
    rows["cells"] += [
        which | {"rule": rule, "cell": cell, "sampled": counted.sampled, "vectors": count}
        for rule, cells in counted.cells.items() for cell, count in cells.items()
    ]  # fmt: skip
    form = part.datapath or {}
    certificate = form.get("certificate")
    if certificate:
        coverage = certificate.get("coverage", {})
        rows["coverage"].append(which | {
            "status": form.get("status"), "refuted": certificate.get("refuted"),
            "equivalent": certificate.get("equivalent"), "open": sum(map(len, certificate.get("open", {}).values())),
            **{key: coverage.get(key) for key in ("fresh", "answers", "excluded_one_in")},
        })  # fmt: skip


def _families(validation: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Each family of each comparison of a part, with its counts."""
    for run in validation.get("runs", [validation]):
        yield from run.get("families", {}).items()


def _digest(said: InstructionFacts) -> str | None:
    table = (said.part.datapath or {}).get("datapath")
    return digest_of(json_text(table).encode())[:12] if table else None


class _Functions:
    """The functions met so far of every instruction of an architecture, each with the datapath that came first."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[tuple[InstructionFacts, str]]] = {}

    def name(self, architecture: str, said: InstructionFacts) -> str | None:
        """The digest of the first datapath that is the same function; None where nothing was derived."""
        digest = _digest(said)
        if said.datapath is None or digest is None:
            return None
        known = self._known.setdefault((architecture, said.part.instruction), [])
        for first, name in known:
            if told_apart(first, said).verdict != "another function":
                return name
        known.append((said, digest))
        return digest
