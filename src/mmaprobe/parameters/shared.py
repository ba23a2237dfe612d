"""Entries that architectures share: the rows of ``data/shared/*.toml``.

A row ``[[primitive]]`` is a table of a parameter file, ``axes`` included, and
names in ``architectures`` where it holds (``catalog.architectures``).
``like`` names another primitive of the architecture in place of a datapath:
this one computes the same, and where nothing is known about that one, nothing
is about this.  An architecture's own file is stronger than a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from mmaprobe.catalog.architectures import Architectures, every
from mmaprobe.catalog.toml import counted, shipped
from mmaprobe.errors import UsageError
from mmaprobe.parameters.expand_axes import expand
from mmaprobe.parameters.files import SCHEMA, Entry, read_entry
from mmaprobe.parameters.table import Table


def shared_entries(architecture: str, own: Mapping[str, Entry]) -> dict[str, Entry]:
    """The shared entries of an architecture, by primitive; ``own`` are those of its file, which ``like`` may name."""
    found: dict[str, Entry] = {}
    for name, data in _shipped().items():
        found |= entries_of(data, name, architecture, {**found, **own}, every())
    return found


def parse_shared(text: str, name: str) -> Table:
    """The rows of a file's text; UsageError for one that is broken, truncated or newer than this version."""
    return counted(name, text, SCHEMA, "primitive")


def entries_of(
    data: Table, name: str, architecture: str, known: Mapping[str, Entry], here: Architectures
) -> dict[str, Entry]:
    """The entries of one file for an architecture; UsageError naming file, row and key of anything wrong.

    ``like`` may name what is ``known`` or an entry of a row before; ``here`` are the architectures that a row may name.
    """
    made: dict[str, Entry] = {}
    for number, row in enumerate(data["primitive"], 1):
        if not row.get("architectures"):
            raise UsageError(f"{name}, row {number}: key 'architectures' is missing or empty")
        try:
            holds = here.among(architecture, row["architectures"])
        except UsageError as error:
            raise UsageError(f"{name}, row {number}: {error}") from None
        if not holds:
            continue
        for entry in _entries(row, f"{name}, row {number}", architecture, {**made, **known}):
            if entry.primitive in made:
                raise UsageError(f"{name}, row {number}: {entry.primitive} is there twice")
            made[entry.primitive] = entry
    return made


def _entries(row: Table, where: str, architecture: str, known: Mapping[str, Entry]) -> Iterator[Entry]:
    plain = {key: value for key, value in row.items() if key != "architectures"}
    try:
        tables = expand(plain, {"architecture": architecture})
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    for table in tables:
        if "like" not in table:
            yield read_entry(table, where, architecture)
        elif table["like"] in known:
            yield read_entry(table, where, architecture, like=known[table["like"]])


@cache
def _shipped() -> dict[str, Table]:
    return {name: parse_shared(text, name) for name, text in shipped("mmaprobe.parameters", "data", "shared").items()}
