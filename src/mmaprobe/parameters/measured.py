"""Which shipped primitives a run on the hardware measured: the rows of ``data/measured/*.toml``.

A row says which run, on what, and which primitives of an architecture it derived as the function that ships and
validated without a mismatch.  Such an entry keeps its datapath and its witnesses; its basis is ``measured``, its
evidence that run.  A parameter file that a run wrote whole (``x86-64+intel``) says so itself, entry by entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from mmaprobe.catalog.toml import counted, shipped
from mmaprobe.errors import UsageError
from mmaprobe.parameters.files import SCHEMA, Entry
from mmaprobe.parameters.table import Table


@dataclass(frozen=True)
class MeasuredRun:
    """What one run measured: ``device`` is the model name that it read there."""

    architecture: str
    run: str
    device: str
    primitives: tuple[str, ...]

    def of(self, entry: Entry) -> Entry:
        """An entry on the basis of the run, with what it rested on before."""
        said = f"run {self.run} on {self.device} derived this function and validated it without a mismatch"
        return replace(entry, basis="measured", evidence=self.run, source=f"{said}; before it: {entry.source}")


@cache
def measured_runs() -> tuple[MeasuredRun, ...]:
    """The rows that ship."""
    files = shipped("mmaprobe.parameters", "data", "measured")
    return tuple(row for name, text in files.items() for row in parse_runs(text, name))


def parse_runs(text: str, name: str) -> tuple[MeasuredRun, ...]:
    """The rows of a text; UsageError naming file, row and key of anything wrong, or where it is truncated."""
    rows = counted(name, text, SCHEMA, "run").get("run", [])
    return tuple(_row(row, f"{name}, row {number}") for number, row in enumerate(rows, 1))


def _row(row: Table, where: str) -> MeasuredRun:
    wanted = {"architecture", "run", "device", "primitives"}
    if row.keys() != wanted:
        raise UsageError(f"{where}: its keys are {', '.join(sorted(row))}, not {', '.join(sorted(wanted))}")
    return MeasuredRun(row["architecture"], row["run"], row["device"], tuple(row["primitives"]))


def with_measured(architecture: str, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries of an architecture, those that a run measured on its basis; UsageError where a row names another."""
    found = dict(entries)
    for each in measured_runs():
        if each.architecture != architecture:
            continue
        for name in each.primitives:
            if name not in found:
                raise UsageError(f"run {each.run} measured {name}, of which no parameters of {architecture} ship")
            found[name] = each.of(found[name])
    return found
