"""Parameter files: the datapath of each primitive of an architecture, each with its basis and witnesses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import tomli_w

from mmaprobe import formats
from mmaprobe.catalog.outside import read_tables
from mmaprobe.catalog.toml import read_toml, text_of
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.operands.batch import PER_RESULT, Witness
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.expand_axes import expand
from mmaprobe.parameters.modified import COVERED
from mmaprobe.parameters.table import Table, from_table, to_table

SCHEMA = 1
"""What a parameter file says its schema is."""
Basis = Literal["measured", "recorded", "published", "predicted"]
BASES = ("measured", "recorded", "published", "predicted")
CONTROLS = ("rounding", "ftz", "daz")


@dataclass(frozen=True)
class Entry:
    """What is known about one primitive.

    ``basis`` says where the datapath comes from: ``measured`` (``evidence`` is
    the id of the run), ``recorded`` (third-party hardware data), ``published``
    (a source) or ``predicted`` (a reason); ``source`` says it in words.
    ``notes`` speak of single fields: (dotted path, text), such as the class of
    values that cannot be told apart.  ``follows`` names the control state that
    the primitive obeys, ``covers`` modifiers that the basis is of too, where
    it is else a prediction what they do.  ``origin`` is the architecture whose
    file holds it.
    """

    primitive: str
    datapath: Datapath
    basis: Basis
    source: str
    evidence: str = ""
    follows: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    witnesses: tuple[Witness, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise UsageError(f"basis {self.basis!r}; it is one of {', '.join(BASES)}")
        if self.basis == "measured" and not self.evidence:
            raise UsageError("basis 'measured' needs the evidence id of the run")
        for key, known in (("follows", CONTROLS), ("covers", COVERED)):
            for name in getattr(self, key):
                if name not in known:
                    raise UsageError(f"{key} {brief(name)}; it is one of {', '.join(known)}")


@dataclass(frozen=True)
class ParameterFile:
    """The entries of one architecture, by primitive, and where the file as a whole comes from.

    ``catalog``: the tables that say what the architecture is, where it is none that ships (``catalog.outside``).
    """

    architecture: str
    entries: Mapping[str, Entry] = field(default_factory=dict)
    toolchain: str = ""
    source: str = ""
    catalog: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file's canonical text."""
        return hashlib.sha256(to_text(self).encode()).hexdigest()


def to_text(file: ParameterFile) -> str:
    """The file's canonical TOML: the same records give the same bytes.

    The last table, ``[end]``, counts the primitives: a truncated file lacks it.
    """
    head: Table = {"schema": SCHEMA, "architecture": file.architecture}
    head |= {key: value for key in ("toolchain", "source") if (value := getattr(file, key))}
    head |= {"catalog": [dict(tables) for tables in file.catalog]} if file.catalog else {}
    primitives = [_entry_table(entry) for entry in file.entries.values()]
    return tomli_w.dumps(head | {"primitive": primitives, "end": {"primitives": len(primitives)}}, indent=2)


def from_text(text: str, name: str, inherit: Mapping[str, Mapping[str, Entry]] | None = None) -> ParameterFile:
    """The file in ``text``; ``name`` is how errors call it.

    ``inherit`` holds the entries of the architectures that ``same_as`` may
    name: of one primitive, or of the whole file on a basis of its own.
    Raises UsageError naming the file and the line or key for anything broken,
    unknown or newer than this version; nothing is partly loaded.
    """
    data = read_toml(text, name)
    schema = data.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise UsageError(f"{name}: schema is {brief(schema)}; this version of mmaprobe reads up to {SCHEMA}")
    keys = {
        "schema",
        "architecture",
        "toolchain",
        "source",
        "same_as",
        "without",
        "basis",
        "common",
        "catalog",
        "primitive",
        "end",
    }
    _check_keys(data, keys, {"architecture"} | ({"basis", "source"} if "same_as" in data else set()), name)
    if not isinstance(data.get("primitive", []), list) or not isinstance(data.get("common", {}), dict):
        raise UsageError(f"{name}: primitive is a list of tables, and common a table")
    tables = [table for raw in data.get("primitive", []) for table in _expanded(raw, data.get("common", {}), name)]
    if data.get("end") != {"primitives": len(tables)}:
        raise UsageError(f"{name}: truncated: it holds {len(tables)} primitives and its [end] says {data.get('end')}")
    inherited = _whole_file(data, inherit, name) if "same_as" in data else {}
    own: dict[str, Entry] = {}
    for table in tables:
        entry = read_entry(table, name, data["architecture"], inherit)
        if entry.primitive in own:
            raise UsageError(f"{name}: {entry.primitive} is there twice")
        own[entry.primitive] = entry
    toolchain, source = data.get("toolchain", ""), data.get("source", "")
    return ParameterFile(data["architecture"], inherited | own, toolchain, source, _carried(data, name))


def _carried(data: Table, name: str) -> tuple[Table, ...]:
    """The tables that say what the architecture is, held against the form that they have."""
    carried = data.get("catalog", [])
    if not isinstance(carried, list) or not all(isinstance(tables, dict) for tables in carried):
        raise UsageError(f"{name}: catalog is a list of tables")
    return tuple(dict(read_tables(tables, f"{name}: catalog").data) for tables in carried)


def read_parameter_file(path: Path, inherit: Mapping[str, Mapping[str, Entry]] | None = None) -> ParameterFile:
    """The parameter file at ``path``."""
    return from_text(text_of(path), str(path), inherit)


def _inherited(architecture: str, inherit: Mapping[str, Mapping[str, Entry]] | None, where: str) -> Mapping[str, Entry]:
    known = {} if inherit is None else inherit
    if architecture not in known:
        raise UsageError(f"{where} names {architecture!r}, which has no parameter file{near(architecture, known)}")
    return known[architecture]


def _whole_file(data: Table, inherit: Mapping[str, Mapping[str, Entry]] | None, name: str) -> dict[str, Entry]:
    """The entries of another architecture but those that match ``without``, on the basis that this file gives.

    Evidence about one architecture is none about another.
    """
    gone = data.get("without", [])
    try:
        there = _inherited(data["same_as"], inherit, f"{name}: same_as")
        for glob in gone:
            if not any(fnmatchcase(primitive, glob) for primitive in there):
                raise UsageError(f"without {glob!r}: no primitive of {data['same_as']} matches")
        kept = {name: entry for name, entry in there.items() if not any(fnmatchcase(name, glob) for glob in gone)}
        return _taken_over(kept, data["architecture"], data["basis"], data["source"])
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None


def alike(architecture: str, other: ParameterFile) -> ParameterFile:
    """What the parameters of another architecture predict of one that the catalog says is like it."""
    source = f"nothing is measured: the catalog has {architecture} like {other.architecture}"
    return ParameterFile(architecture, _taken_over(other.entries, architecture, "predicted", source), source=source)


def _taken_over(entries: Mapping[str, Entry], architecture: str, basis: Basis, source: str) -> dict[str, Entry]:
    return {
        name: Entry(name, entry.datapath, basis, source, follows=entry.follows, notes=entry.notes, origin=architecture)
        for name, entry in entries.items()
    }


def _expanded(table: Any, common: Mapping[str, Any], name: str) -> list[Table]:
    try:
        return expand(table, common)
    except UsageError as error:
        raise UsageError(f"{name}: {brief(table.get('name', 'a primitive without name'))}: {error}") from None


def _check_keys(table: Any, known: set[str], needed: set[str], where: str) -> None:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table, got {table!r}")
    for key in table:
        if key not in known:
            raise UsageError(f"{where}: unknown key {key!r}{near(key, known)}")
    for key in sorted(needed - table.keys()):
        raise UsageError(f"{where}: key {key!r} is missing")


_ENTRY_KEYS = {"name", "basis", "source", "evidence", "follows", "covers", "same_as", "notes", "datapath", "witness"}


def read_entry(
    table: Any,
    file: str,
    architecture: str,
    inherit: Mapping[str, Mapping[str, Entry]] | None = None,
    like: Entry | None = None,
) -> Entry:
    """The entry of one table; ``like``: the entry whose datapath it shares, in place of one of its own."""
    name = table.get("name", "a primitive without name") if isinstance(table, dict) else "primitive"
    where = f"{file}: {name}"
    _check_keys(table, _ENTRY_KEYS | ({"like"} if like else set()), {"name", "basis", "source"}, where)
    if ("datapath" in table) + ("same_as" in table) + (like is not None) != 1:
        raise UsageError(f"{where}: needs either a datapath or same_as")
    follows = table.get("follows", [])
    if "datapath" in table:
        datapath = from_table(table["datapath"], f"{where}: datapath")
    else:
        home = {name: like} if like else _inherited(table["same_as"], inherit, f"{where}: same_as")
        if name not in home:
            raise UsageError(f"{where}: {table['same_as']} knows no such primitive{near(name, home)}")
        datapath, follows = home[name].datapath, table.get("follows", home[name].follows)
    try:
        return Entry(
            name, datapath, table["basis"], table["source"], table.get("evidence", ""), tuple(follows),
            tuple(table.get("covers", [])), tuple(table.get("notes", {}).items()),
            tuple(_read_witness(item) for item in table.get("witness", [])), architecture,
        )  # fmt: skip
    except (UsageError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"key {error} is missing in a witness" if isinstance(error, KeyError) else error
        raise UsageError(f"{where}: {reason}") from None


def _entry_table(entry: Entry) -> Table:
    table: Table = {"name": entry.primitive, "basis": entry.basis, "source": entry.source}
    if entry.evidence:
        table["evidence"] = entry.evidence
    if entry.follows:
        table["follows"] = list(entry.follows)
    if entry.covers:
        table["covers"] = list(entry.covers)
    if entry.notes:
        table["notes"] = dict(entry.notes)
    table["datapath"] = to_table(entry.datapath)
    if entry.witnesses:
        table["witness"] = [_witness_table(entry.datapath, witness) for witness in entry.witnesses]
    return table


def _witness_table(datapath: Datapath, witness: Witness) -> Table:
    names = {"a": datapath.a, "b": datapath.b, "c": datapath.c, "d": datapath.d}
    if datapath.scale:
        names |= {"scale_a": datapath.scale.format, "scale_b": datapath.scale.format}
    if datapath.random:
        names["random"] = datapath.random
    table: Table = {}
    for role, value in vars(witness).items():
        if role == "note" or value is None or value == ():
            continue
        digits = formats.get(names.get(role) or "u8").container_bits // 4
        table[role] = " ".join(f"{code:0{digits}x}" for code in (value if isinstance(value, tuple) else (value,)))
    return table | ({"note": witness.note} if witness.note else {})


def _read_witness(table: Table) -> Witness:
    codes: dict[str, Any] = {key: tuple(int(word, 16) for word in text.split()) for key, text in table.items()
                             if key != "note"}  # fmt: skip
    codes |= {key: codes[key][0] for key in (*PER_RESULT, "d") if key in codes}
    return Witness(**{"c": None, **codes}, note=table.get("note", ""))
