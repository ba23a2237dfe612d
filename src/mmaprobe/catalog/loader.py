"""Read the catalog's data files: one row is a product of axes and expands to many instructions.

A row is a table ``[[row]]``.  Its texts are templates: ``{k}`` is replaced by
what an axis binds or by the row's own field, ``{K}`` by the same in capitals.
``axes`` is a list of axes, an axis a list of tables, a table what it binds;
a list of values in it stands for one table each.
``[[row.on]]`` says on which architectures the row exists and what it becomes
there.  A row that contradicts itself is refused with the file and its number.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.lanes import parse_lanes
from mmaprobe.catalog.lowering import Application, Lowering
from mmaprobe.catalog.modifiers import ROLES
from mmaprobe.errors import MmaprobeError, UsageError, near

SCHEMA = 1
_NUMBERS = ("m", "n", "k", "blocks", "chunk", "scale_size")
_FORMATS = ("a", "b", "c", "d", "scale")
_LISTS = ("controls", "requires", "takes")
_FLAGS = ("unordered",)
_ROW = {"family", "opcode", "modifiers", "defaults", "axes", "source", "on", *_NUMBERS, *_FORMATS, *_LISTS, *_FLAGS}
_ON = {
    "architectures", "kind", "primitive", "unplaced", "step", "lanes", "start", "count",
    "convert", "add", "sort", "toolchain", "note",
}  # fmt: skip


@dataclass(frozen=True)
class Catalog:
    """Every instruction by id, and for each architecture its lowerings by instruction id."""

    instructions: Mapping[str, Instruction]
    lowerings: Mapping[str, Mapping[str, Lowering]]

    def homes(self, identifier: str) -> list[str]:
        """The architectures that have an instruction."""
        return [name for name, ways in self.lowerings.items() if identifier in ways]


@dataclass(frozen=True, eq=False)
class Shelf:
    """One data file; its rows expand when an instruction of it is first asked for."""

    file: str
    data: Mapping[str, Any]

    @property
    def architectures(self) -> tuple[str, ...]:
        return tuple(self.data["architectures"])

    @cached_property
    def words(self) -> frozenset[str]:
        """The first words of the ids on this shelf."""
        return frozenset(first_word(row["opcode"]) for row in self.data["row"])

    @cached_property
    def catalog(self) -> Catalog:
        return merge([self])


def first_word(identifier: str) -> str:
    """An id up to its first dot or underscore."""
    return identifier.partition(".")[0].partition("_")[0]


@cache
def shelves() -> tuple[Shelf, ...]:
    """The data files that ship with the package, by name, parsed once and not yet expanded."""
    folder = resources.files("mmaprobe.catalog") / "data"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(_parse(entry.name, entry.read_text("utf-8")) for entry in files)


def read(texts: Mapping[str, str]) -> Catalog:
    """The catalog in these TOML texts, by file name; UsageError naming file and row where one is wrong."""
    return merge([_parse(file, text) for file, text in texts.items()])


def _parse(file: str, text: str) -> Shelf:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{file}: schema {data.get('schema')!r}; this version reads {SCHEMA}")
    return Shelf(file, data)


def merge(parts: Iterable[Shelf]) -> Catalog:
    """What stands on several shelves as one catalog; UsageError naming file and row where they disagree."""
    instructions: dict[str, Instruction] = {}
    lowerings: dict[str, dict[str, Lowering]] = {}
    for shelf in parts:
        for name in shelf.architectures:
            lowerings.setdefault(name, {})
        for number, row in enumerate(shelf.data["row"], 1):
            where = f"{shelf.file}, row {number} ({row.get('family', 'no family')})"
            try:
                for made, ways in _expand(row, shelf.data):
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
    for on in row["on"]:
        _known(on, _ON)
    for choice in itertools.product(*map(_choices, row.get("axes", []))):
        bound: dict[str, Any] = {}
        for table in choice:
            bound |= table
        made = _instruction(row, bound)
        words = _words({**bound, **{name: getattr(made, name) for name in (*_NUMBERS, *_FORMATS)}})
        ways = [way for on in row["on"] for way in _lowerings(on, words, made, data)]
        if ways:
            yield made, ways


def _choices(axis: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The choices of an axis: its tables, one with lists of values standing for each combination of them."""
    return [
        dict(zip(table, values, strict=True))
        for table in axis
        for values in itertools.product(
            *([value] if key in _LISTS or not isinstance(value, list) else value for key, value in table.items())
        )
    ]


def _known(table: Mapping[str, Any], names: Set[str]) -> None:
    for key in table:
        if key not in names:
            raise UsageError(f"unknown key {key!r}{near(key, names)}")


def _words(bound: Mapping[str, Any]) -> dict[str, Any]:
    """What templates may name: everything bound, and under its key in capitals the same in capitals."""
    return {key.upper(): str(value).upper() for key, value in bound.items()} | dict(bound)


def _fill(template: Any, words: Mapping[str, Any]) -> str:
    text = str(template)
    return text.format_map(words) if "{" in text else text


def _instruction(row: Mapping[str, Any], bound: Mapping[str, Any]) -> Instruction:
    words = _words(bound)
    fields: dict[str, Any] = {name: _fill(row[name], words) for name in _FORMATS if name in row}
    fields |= {name: int(_fill(row[name], words)) for name in _NUMBERS if name in row}
    fields |= {name: {"true": True, "false": False}[_fill(row[name], words).lower()] for name in _FLAGS if name in row}
    fields.setdefault("c", None)
    words |= _words(fields)
    opcode = _fill(row["opcode"], words)
    defaults = row.get("defaults", {})
    written = {key: _fill(value, words) for key, value in row.get("modifiers", {}).items()}
    modifiers = tuple(sorted((key, value) for key, value in written.items() if value != defaults.get(key)))
    lists: dict[str, Any] = {
        name: tuple(_fill(item, words) for item in bound.get(name, row.get(name, ()))) for name in _LISTS
    }
    _known(dict.fromkeys(lists["takes"]), ROLES)
    return Instruction(
        spell(opcode, modifiers), opcode, _fill(row["family"], words),
        modifiers=modifiers, source=row.get("source", ""), **fields, **lists,
    )  # fmt: skip


def _lowerings(
    on: Mapping[str, Any], words: Mapping[str, Any], made: Instruction, data: Mapping[str, Any]
) -> Iterator[Lowering]:
    groups = data.get("groups", {})
    toolchains = data.get("toolchains", {})
    named = [_fill(name, words) for name in on["architectures"]]
    homes = [home for name in named for home in groups.get(name, [name])]
    if not homes:
        return
    convert, add, sort = (_fill(on[key], words) if key in on else None for key in ("convert", "add", "sort"))
    unplaced = (_fill(on["unplaced"], words),) if "unplaced" in on else ()
    applications = _applications(on, words, made)
    for architecture in homes:
        yield Lowering(
            made.id, architecture, on.get("kind", "native"), applications,
            on.get("toolchain", toolchains.get(architecture, toolchains.get("default", ""))),
            int(_fill(on.get("count", 1), words)), convert, add, on.get("note", ""),
            unplaced, sort,
        )  # fmt: skip


def _applications(on: Mapping[str, Any], words: Mapping[str, Any], made: Instruction) -> tuple[Application, ...]:
    if "primitive" not in on:
        return ()
    if "lanes" in on:
        pieces = [parse_lanes(part) for part in _fill(on["lanes"], words).split(";")]
    else:
        step = int(_fill(on.get("step", made.k), words))
        pieces = [tuple(range(first, first + step)) for first in range(0, made.k, step)]
    if sorted(lane for piece in pieces for lane in piece) != list(range(made.k)):
        raise UsageError(f"the lanes of {made.id} are not 0..{made.k - 1}, each once")
    name = _fill(on["primitive"], words)
    start = on.get("start", "c")
    return tuple(Application(name, piece, "previous" if i else start) for i, piece in enumerate(pieces))
