"""Rows and architectures from outside of the package: read, checked, and added to the catalog.

A catalog file, what a device says of itself and what a parameter file carries along have one form, that of the
catalog's data files, with ``[architectures]``, ``[groups]`` and layouts of their own (docs/new_unit.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from mmaprobe.catalog.architectures import every, extended
from mmaprobe.catalog.catalog import Catalog, CatalogEntry, Form, row_forms
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import ADDED_TABLES, check_sheet, sheet_of
from mmaprobe.catalog.loader import SCHEMA, DataFile, data_files
from mmaprobe.catalog.lookup import catalog
from mmaprobe.catalog.names import is_taken
from mmaprobe.catalog.row import ROW_FIELDS, Row
from mmaprobe.catalog.supplements import Supplement, added, all_or_nothing, keep
from mmaprobe.catalog.toml import read_toml, text_of
from mmaprobe.errors import UsageError, brief, near

MOST_FORMS = 10_000
"""Forms of one row on one architecture at most: more than all that ship, so that a wrong file ends soon."""
MOST_ELEMENTS = 1 << 20
"""Elements of one operand of one instruction at most: a batch holds many of them."""
SHIPPED = "what ships with mmaprobe"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PRIMITIVE = re.compile(r"[^\s\x00-\x1f]{1,1000}")
_TABLES: Mapping[str, str] = {
    "schema": "a number", "architectures": "a table", "groups": "a table", "toolchains": "a table", "where": "a table",
    "row": "a list of tables", "let": "a table", "cases": "a table", "container": "a list of tables",
    "fragment": "a list of tables", "absent": "a list of tables",
}  # fmt: skip


def add_catalog(path: str | Path) -> None:
    """Add the rows and architectures of a catalog file (docs/new_unit.md) to those that every command and call knows,
    or those that the evidence of a run carries along.

    What is known already does no harm.  UsageError naming the file and the row for anything broken or unknown, an id
    that is there twice, and what another file or device says otherwise; nothing of the file is added then.
    """
    data = read_toml(text_of(Path(path)), str(path))
    listed = data.get("catalog", [data])
    if _kind(listed) != "a list of tables":
        raise UsageError(f"{path}: catalog is {brief(listed)}; it must be a list of tables")
    add_all(listed, str(path))


def add_all(listed: Iterable[Mapping[str, Any]], origin: str) -> None:
    """Add the tables that a file carries along, all of them or none; UsageError of ``add_catalog``."""
    with all_or_nothing():
        for tables in listed:
            add(read_tables(tables, origin))


def parse_catalog(text: str, origin: str) -> Supplement:
    """The tables of a catalog file's text; UsageError naming its ``origin`` where they are broken or unknown."""
    return read_tables(read_toml(text, origin), origin)


def read_tables(data: Mapping[str, Any], origin: str) -> Supplement:
    """The supplement of these tables; UsageError for unknown ones, and for one that is of another kind."""
    for key, value in data.items():
        if key not in _TABLES:
            raise UsageError(f"{origin}: unknown key {key!r}{near(key, _TABLES)}")
        if _kind(value) != _TABLES[key]:
            raise UsageError(f"{origin}: {key} is {brief(value)}; it must be {_TABLES[key]}")
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{origin}: schema is {brief(data.get('schema'))}; this version of mmaprobe reads {SCHEMA}")
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError):
        raise UsageError(f"{origin}: a date, a time or a number without end is nothing that a catalog says") from None
    for name, entry in data.get("architectures", {}).items():
        if not _NAME.fullmatch(name):
            raise UsageError(f"{origin}: {brief(name)} is no name of an architecture: letters, digits, _ . and -")
        if not isinstance(entry, dict) or entry.keys() - {"like"} or not isinstance(entry.get("like", ""), str):
            raise UsageError(f'{origin}: architecture {name} is {brief(entry)}; it must be {{}} or {{ like = "ARCH" }}')
    for name, listed in data.get("groups", {}).items():
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise UsageError(f"{origin}: group {name} is {brief(listed)}; it must be a list of architectures")
    return Supplement(origin, data)


def _kind(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return "a list of tables"
    return "a table" if isinstance(value, dict) else "a number" if type(value) is int else "something else"


def add(supplement: Supplement) -> None:
    """Add tables to the catalog where all in them holds and agrees with what is known; what is known already is left
    as it is.  UsageError of ``add_catalog``."""
    data = {name: table for name, table in supplement.data.items() if name not in ADDED_TABLES}
    data |= {name: _new_names(supplement, name) for name in ("architectures", "groups")}
    known = [(row, each.part("where")) for each in added() for row in each.data.get("row", ())]
    data["row"] = [row for row in data.get("row", ()) if (row, supplement.part("where")) not in known]
    _check_rows(DataFile(supplement.origin, data, extended(every(), Supplement(supplement.origin, data))))
    data |= _new_layouts(supplement)
    if any(data.get(name) for name in ("architectures", "groups", "row", *ADDED_TABLES)):
        keep(Supplement(supplement.origin, {name: table for name, table in data.items() if table}))


def add_instruction(made: Instruction, architecture: str, origin: str) -> None:
    """Add an instruction that a device has made itself, as a primitive of its own name on an architecture of the
    device's; UsageError where its id is there as something else."""
    said = {each.name: getattr(made, each.name) for each in fields(made) if each.name in ROW_FIELDS}
    plain = {each.name: each.default for each in fields(made)} | {"c": None}
    row = {
        name: list(value) if isinstance(value, tuple) else value for name, value in said.items() if value != plain[name]
    } | {
        "opcode": _as_template(made.opcode),
        "modifiers": {key: _as_template(value) for key, value in made.modifiers},
        "on": [{"architectures": [architecture], "primitive": _as_template(made.id)}],
    }
    add(Supplement(origin, {"schema": SCHEMA, "architectures": {architecture: {}}, "row": [row]}))


def _as_template(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def of(architecture: str) -> list[Mapping[str, Any]]:
    """All that was added about an architecture and those that it is told of with, as tables that ``add`` takes in this
    order; [] for one of which nothing was."""
    wanted, chosen = {architecture.partition("+")[0]}, set[Supplement]()
    while more := {each for each in added() if each not in chosen and _homes(each) & wanted}:
        chosen |= more
        wanted = wanted.union(*map(_homes, more))
    return [each.data for each in added() if each in chosen]


def carried(architecture: str) -> str:
    """The same as a file of its own, which ``add_catalog`` reads; "" where there is none."""
    found = of(architecture)
    return tomli_w.dumps({"catalog": found}, indent=2) if found else ""


def _homes(supplement: Supplement) -> set[str]:
    """The architectures that a supplement speaks of."""
    here = every()
    named = {home for name in (*supplement.part("architectures"), *supplement.part("groups")) for home in here.of(name)}
    rows = (Row(row, supplement.data, here).architectures for row in supplement.data.get("row", ()))
    return {each for name in named.union(*rows) for each in here.line(name)}


def _new_names(supplement: Supplement, table: str) -> dict[str, Any]:
    """The architectures or groups that are not known yet; UsageError for one that is known as something else."""
    groups, word = table == "groups", table[:-1]
    known: Mapping[str, Any] = every().groups if groups else every().like
    found = {}
    for name, said in supplement.part(table).items():
        meant = tuple(said) if groups else said.get("like", "")
        if known.get(name, meant) != meant:
            there = next((each.origin for each in added() if name in each.part(table)), SHIPPED)
            means = ", ".join(known[name]) if groups else f"like {known[name] or 'no other'}"
            raise UsageError(
                f"{supplement.origin}: {word} {name} is in {there} already, where it is {means}; "
                "give one of them another name"
            )
        if name not in known:
            if every().knows(name) or is_taken(name):
                raise UsageError(
                    f"{supplement.origin}: {word} {name}: that name means something already; give it another"
                )
            found[name] = said
    return found


def _new_layouts(supplement: Supplement) -> dict[str, Any]:
    """The tables of layouts, unless the same ones are known; UsageError for what is wrong with them."""
    data = {name: supplement.data[name] for name in ADDED_TABLES if name in supplement.data}
    if data in ({name: each.data[name] for name in ADDED_TABLES if name in each.data} for each in added()):
        return {}
    sheet = sheet_of(supplement)
    if sheet is not None:
        check_sheet(sheet)
    return data


def _check_rows(file: DataFile) -> None:
    """UsageError naming the file and the row: it contradicts itself, is too large, or has an id that is there."""
    seen = set[tuple[str, str]]()
    for number, row in enumerate(file.rows):
        homes = file.checked(number, partial(getattr, row, "architectures"))
        if not homes:
            file.checked(number, partial(_refuse, "it is on no architecture"))
        for home in sorted(homes):
            for form in file.checked(number, partial(row_forms, row, home, MOST_FORMS)):
                file.checked(number, partial(_check_form, form, (home, form.first.id) in seen))
                seen.add((home, form.first.id))


def _check_form(form: Form, twice: bool) -> None:
    made, home = form.first, form.way.architecture
    largest = max(made.m * made.k, made.k * made.n, made.m * made.n) * made.blocks
    if largest > MOST_ELEMENTS:
        _refuse(f"{made.id}: an operand of {largest:,} elements; at most {MOST_ELEMENTS:,}")
    for name in form.way.primitives:
        if not _PRIMITIVE.fullmatch(name):
            _refuse(f"{made.id}: {brief(name)} is no name of a primitive: it has spaces, or is none")
    if twice:
        _refuse(f"{made.id} is there twice on {home}")
    for entry in catalog().named(made.id):
        if home in entry.ways:
            _refuse(f"{made.id} is on {home} already, in {_home_of(made.id, home)}; {_apart(form, entry)}")


def _home_of(identifier: str, architecture: str) -> str:
    """The file or device that says of an id what it is on an architecture."""
    alone = ((file.file, Catalog((file,), every())) for file in data_files())
    return next(name for name, here in alone if any(architecture in entry.ways for entry in here.named(identifier)))


def _apart(form: Form, entry: CatalogEntry) -> str:
    """The first thing that two rows say otherwise of an id, and what to do."""
    there = entry.ways[form.way.architecture]
    for new, old in ((form.first, entry.instruction), (form.way, there)):
        for each in fields(new):
            said, before = getattr(new, each.name), getattr(old, each.name)
            if said != before and each.name not in ("source", "toolchain"):
                return f"{each.name} is {brief(said)} here and {brief(before)} there; use one of the two"
    return "it is written otherwise there; use one of the two"


def _refuse(why: str) -> None:
    raise UsageError(why)
