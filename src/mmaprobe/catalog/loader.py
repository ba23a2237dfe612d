"""Read the catalog's data files: one row is a product of axes and expands to many instructions.

A row is a table ``[[row]]``.  Its texts are templates: ``{k}`` is replaced by
what an axis binds or by the row's own field, ``{K}`` by the same in capitals.
``axes`` is a list of axes, an axis a list of tables, a table what it binds.
``[[row.on]]`` says on which architectures the row exists and what it becomes
there.  A row that contradicts itself is refused with the file and its number.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lanes import parse_lanes
from mmaprobe.catalog.lowering import Application, Lowering
from mmaprobe.errors import MmaprobeError, UsageError, near

SCHEMA = 1
_NUMBERS = ("m", "n", "k", "blocks", "chunk", "scale_size")
_FORMATS = ("a", "b", "c", "d", "scale")
_LISTS = ("controls", "requires")
_ROW = {"family", "opcode", "modifiers", "defaults", "axes", "source", "on", *_NUMBERS, *_FORMATS, *_LISTS}
_ON = {
    "architectures", "kind", "primitive", "unplaced", "step", "lanes", "start", "count",
    "convert", "add", "sort", "toolchain", "note",
}  # fmt: skip


@dataclass(frozen=True)
class Catalog:
    """Every instruction by id, and for each architecture its lowerings by instruction id."""

    instructions: Mapping[str, Instruction]
    lowerings: Mapping[str, Mapping[str, Lowering]]


def spell(opcode: str, modifiers: tuple[tuple[str, str], ...]) -> str:
    """The id: the opcode, then the modifiers in braces, keys sorted."""
    inside = ",".join(f"{key}={value}" if value else key for key, value in sorted(modifiers))
    return f"{opcode}{{{inside}}}" if inside else opcode


@cache
def catalog() -> Catalog:
    """The catalog that ships with the package, read once."""
    folder = resources.files("mmaprobe.catalog") / "data"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda f: f.name)
    return read({entry.name: entry.read_text("utf-8") for entry in files})


def read(texts: Mapping[str, str]) -> Catalog:
    """The catalog in these TOML texts, by file name; UsageError naming file and row where one is wrong."""
    instructions: dict[str, Instruction] = {}
    lowerings: dict[str, dict[str, Lowering]] = {}
    for file, text in texts.items():
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{file}: {error}") from None
        if data.get("schema") != SCHEMA:
            raise UsageError(f"{file}: schema {data.get('schema')!r}; this version reads {SCHEMA}")
        for name in data["architectures"]:
            lowerings.setdefault(name, {})
        for number, row in enumerate(data["row"], 1):
            where = f"{file}, row {number} ({row.get('family', 'no family')})"
            try:
                for made, ways in _expand(row, data):
                    _enter(made, ways, instructions, lowerings)
            except (MmaprobeError, KeyError, ValueError, TypeError) as error:
                reason = f"nothing binds {error}" if isinstance(error, KeyError) else error
                raise UsageError(f"{where}: {reason}") from None
    return Catalog(instructions, lowerings)


def _enter(
    made: Instruction, ways: list[Lowering],
    instructions: dict[str, Instruction], lowerings: dict[str, dict[str, Lowering]],
) -> None:  # fmt: skip
    if instructions.setdefault(made.id, made) != made:
        raise UsageError(f"{made.id} already names another instruction")
    for way in ways:
        if way.architecture not in lowerings:
            raise UsageError(f"unknown architecture {way.architecture!r}{near(way.architecture, lowerings)}")
        if made.id in lowerings[way.architecture]:
            raise UsageError(f"{made.id} is there twice on {way.architecture}")
        lowerings[way.architecture][made.id] = way


def _expand(row: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[tuple[Instruction, list[Lowering]]]:
    _known(row, _ROW)
    for choice in itertools.product(*row.get("axes", [])):
        bound: dict[str, Any] = {}
        for table in choice:
            bound |= table
        made = _instruction(row, bound)
        bound = {**bound, **{name: getattr(made, name) for name in (*_NUMBERS, *_FORMATS)}}
        ways = [way for on in row["on"] for way in _lowerings(on, bound, made, data)]
        if ways:
            yield made, ways


def _known(table: Mapping[str, Any], names: set[str]) -> None:
    for key in table:
        if key not in names:
            raise UsageError(f"unknown key {key!r}{near(key, names)}")


def _fill(template: Any, bound: Mapping[str, Any]) -> str:
    capitals = {key.upper(): str(value).upper() for key, value in bound.items()}
    return str(template).format_map({**capitals, **bound})


def _instruction(row: Mapping[str, Any], bound: Mapping[str, Any]) -> Instruction:
    fields: dict[str, Any] = {name: _fill(row[name], bound) for name in _FORMATS if name in row}
    fields |= {name: int(_fill(row[name], bound)) for name in _NUMBERS if name in row}
    fields.setdefault("c", None)
    bound = {**bound, **fields}
    opcode = _fill(row["opcode"], bound)
    defaults = row.get("defaults", {})
    written = {key: _fill(value, bound) for key, value in row.get("modifiers", {}).items()}
    modifiers = tuple(sorted((key, value) for key, value in written.items() if value != defaults.get(key)))
    lists: dict[str, Any] = {name: tuple(bound.get(name, row.get(name, ()))) for name in _LISTS}
    return Instruction(
        spell(opcode, modifiers), opcode, _fill(row["family"], bound),
        modifiers=modifiers, source=row.get("source", ""), **fields, **lists,
    )  # fmt: skip


def _lowerings(
    on: Mapping[str, Any], bound: Mapping[str, Any], made: Instruction, data: Mapping[str, Any]
) -> Iterator[Lowering]:
    _known(on, _ON)
    groups = data.get("groups", {})
    toolchains = data.get("toolchains", {})
    convert, add, sort = (_fill(on[key], bound) if key in on else None for key in ("convert", "add", "sort"))
    unplaced = (_fill(on["unplaced"], bound),) if "unplaced" in on else ()
    for name in on["architectures"]:
        name = _fill(name, bound)
        for architecture in groups.get(name, [name]):
            yield Lowering(
                made.id, architecture, on.get("kind", "native"), _applications(on, bound, made),
                on.get("toolchain", toolchains.get(architecture, toolchains.get("default", ""))),
                int(_fill(on.get("count", 1), bound)), convert, add, on.get("note", ""),
                unplaced, sort,
            )  # fmt: skip


def _applications(on: Mapping[str, Any], bound: Mapping[str, Any], made: Instruction) -> tuple[Application, ...]:
    if "primitive" not in on:
        return ()
    if "lanes" in on:
        pieces = [parse_lanes(part) for part in _fill(on["lanes"], bound).split(";")]
    else:
        step = int(_fill(on.get("step", made.k), bound))
        pieces = [tuple(range(first, first + step)) for first in range(0, made.k, step)]
    if sorted(lane for piece in pieces for lane in piece) != list(range(made.k)):
        raise UsageError(f"the lanes of {made.id} are not 0..{made.k - 1}, each once")
    name = _fill(on["primitive"], bound)
    start = on.get("start", "c")
    return tuple(Application(name, piece, "previous" if i else start) for i, piece in enumerate(pieces))
