"""The TOML form of a datapath: records to tables of text and numbers, and back.

Lanes are written ``0..15`` or ``1,0``; a leaf of the tree is ``"c"``,
``"zero"`` or its lanes; a term without rules of its own is its node, whose rules
it has (``shorthand``).  None is ``"none"``.  Fields at their default are left out.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from mmaprobe.catalog.lanes import format_lanes, parse_lanes
from mmaprobe.catalog.toml import check_levels
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.parameters import datapath as records
from mmaprobe.parameters.datapath import NODES, Accumulator, Datapath, Exact, Fused, Node, Products, Zero
from mmaprobe.parameters.shorthand import WrittenFused, WrittenTerm, spelt_out, written

Table = dict[str, Any]
_NODES: dict[str, type] = {"fma": records.Fma, "add": records.Add, "fused": WrittenFused, "exact": records.Exact}
_NODE_NAMES = {kind: name for name, kind in _NODES.items()}
_COUNT = re.compile("[0-9]{1,9}")
_PLACES = ("of", "lanes", "acc", "x", "y")
"""Keys of nodes that are written as a word."""
_HEXADECIMAL = ("code", "factor_code", "mask")


class Hexadecimal(int):
    """An integer that is written in hexadecimal."""

    def __str__(self) -> str:
        return hex(self)


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Name and default of every field of a record."""
    return tuple((field.name, field.default) for field in dataclasses.fields(kind))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def to_table(datapath: Datapath, full: bool = False) -> Table:
    """The table of a datapath; ``full`` writes every field, also those at their default."""
    return _write_record(datapath, full, written)


def spelt_out_table(datapath: Datapath) -> Table:
    """The table of a datapath with every field, each rule of an aligned sum at its terms."""
    return _write_record(datapath, True, spelt_out)


def from_table(table: Table, where: str = "datapath") -> Datapath:
    """The datapath of a table; UsageError names the key path for anything wrong, unknown or missing."""
    check_levels(table, where)
    made: Datapath = _read_record(Datapath, table, where)
    return made


def read_record(kind: type, table: Any, where: str) -> Any:
    """A record of this kind from its table; UsageError of ``from_table``."""
    return _read_record(kind, table, where)


def write_record(record: Any) -> Table:
    """The table of a record, which ``read_record`` reads back."""
    return _write_record(record, False, written)


def flatten(table: Table, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of every leaf of a table; list items are numbered."""
    for key, value in table.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, list):
            value = {str(i): item for i, item in enumerate(value)}
        if isinstance(value, dict):
            yield from flatten(value, here)
        else:
            yield here, value


def fields_said(datapath: Datapath) -> int:
    """How many fields of a datapath are not as they are where nothing is said."""
    return sum(1 for _ in flatten(to_table(datapath)))


def rules_said(datapath: Datapath) -> int:
    """How many numbers and rules a datapath says: what groups share is one, which lanes they have is none."""
    leaves = ((path.rpartition(".")[2], value) for path, value in flatten(to_table(datapath)))
    return len({(name, value) for name, value in leaves if not name.isdecimal() and name not in _PLACES})


def fields(datapath: Datapath) -> list[tuple[str, Any]]:
    """Every field of a datapath as (dotted path, value), defaults included; node names are not fields."""
    leaves = flatten(to_table(datapath, full=True))
    return [(path, value) for path, value in leaves if path.rpartition(".")[2] != "node"]


def set_field(datapath: Datapath, path: str, value: Any, own: bool = False) -> Datapath:
    """The datapath with one field changed: ``set_field(d, "tree.to.rounding", "RNE")``.

    ``own``: a term of an aligned sum has nothing from its node; ``none`` is no cut there, not the node's.
    Raises UsageError with the near paths for an unknown one, and for a value
    that the datapath refuses.
    """
    check_levels(value, path)
    try:
        made: Datapath = _with_field(datapath, path.split("."), value, spelt_out if own else written, "datapath")
    except UsageError:
        raise
    except (KeyError, IndexError, ValueError, TypeError):
        known = [name for name, _ in fields(datapath)]
        raise UsageError(f"no field {brief(path)}{near(path, known, 6)}") from None
    return made


Writing = Callable[[Fused], WrittenFused]


def _with_field(record: Any, keys: list[str], value: Any, sum_form: Writing, where: str) -> Any:
    """A record with the field changed: of the records on the way only the last is written as a table and read, the
    nodes below it as they are."""
    found = _inside(record, keys)
    if found is None:
        table = _write_record(sum_form(record) if isinstance(record, Fused) else record, True, None)
        holder: Any = table
        *parents, last = keys
        for key in parents:
            holder = holder[int(key)] if isinstance(holder, list) else holder[key]
        position: Any = int(last) if isinstance(holder, list) else last
        holder[position]  # a field that is not there must not be added
        holder[position] = value
        return _read_node(table, where) if isinstance(record, NODES) else _read_record(type(record), table, where)
    inner, rest, put = found
    changed = _with_field(inner, rest, value, sum_form, ".".join((where, *keys[: len(keys) - len(rest)])))
    try:
        return put(changed)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _inside(record: Any, keys: list[str]) -> tuple[Any, list[str], Callable[[Any], Any]] | None:
    """The record that a path leads into, the rest of the path, and what puts a changed one in its place; None where
    the path ends in this record, or in what is written as a part of it."""
    name, *rest = keys
    found: tuple[Any, list[str], Callable[[Any], Any]]
    if name == "terms" and isinstance(record, (Fused, Exact)):
        of_term = isinstance(record, Fused)
        if len(rest) < 2 + of_term or (of_term and rest[1] != "of"):
            return None
        i, terms = int(rest[0]), tuple[Any, ...](record.terms)

        def put(changed: Any) -> Any:
            whole = dataclasses.replace(terms[i], of=changed) if of_term else changed
            return dataclasses.replace(record, terms=(*terms[:i], whole, *terms[i + 1 :]))  # type: ignore[arg-type]

        found = terms[i].of if of_term else terms[i], rest[1 + of_term :], put
    else:
        found = getattr(record, name, None), rest, lambda changed: dataclasses.replace(record, **{name: changed})
    leaf = not rest or not dataclasses.is_dataclass(found[0]) or isinstance(found[0], (Accumulator, Zero, Products))
    return None if leaf else found


def _write_record(value: Any, full: bool, sum_form: Writing | None) -> Table:
    table: Table = {"node": _NODE_NAMES[type(value)]} if type(value) in _NODE_NAMES else {}
    for name, default in _fields(value.__class__):
        item = getattr(value, name)
        if full or item != default:
            hexadecimal = name in _HEXADECIMAL and item is not None
            table[name] = Hexadecimal(item) if hexadecimal else _write(item, full, sum_form)
    return table


def _write(value: Any, full: bool, sum_form: Writing | None) -> Any:
    """A value as a table says it; without ``sum_form`` a node stays what it is."""
    if value is None:
        return "none"
    if sum_form is None and isinstance(value, NODES):
        return value
    if isinstance(value, Accumulator):
        return "c"
    if isinstance(value, Zero):
        return "zero"
    if isinstance(value, Products):
        return format_lanes(value.lanes)
    if isinstance(value, Fused):
        assert sum_form is not None
        return _write_record(sum_form(value), full, sum_form)
    if isinstance(value, WrittenTerm) and not full and value == WrittenTerm(value.of):
        return _write(value.of, full, sum_form)
    if dataclasses.is_dataclass(value):
        return _write_record(value, full, sum_form)
    if isinstance(value, tuple):
        if value and all(isinstance(item, int) for item in value):
            return format_lanes(value)
        if all(isinstance(item, (int, str)) for item in value):
            return " ".join(map(str, value))
        return [_write(item, full, sum_form) for item in value]
    return value


def _read_record(kind: type, table: Any, where: str) -> Any:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table, got {brief(table)}")
    hints = _hints(kind)
    values: Table = {}
    for key, raw in table.items():
        if key == "node" and kind in _NODE_NAMES:
            continue
        if key not in hints:
            named = f"{where}.{key}" if isinstance(key, str) and key.isidentifier() else f"{where}: {brief(key)}"
            raise UsageError(f"{named}: unknown key{near(key, hints)}")
        values[key] = _read(hints[key], raw, f"{where}.{key}")
    for name, default in _fields(kind):
        if name not in values and default is dataclasses.MISSING:
            raise UsageError(f"{where}.{name}: missing")
    try:
        made = kind(**values)
        return made.read() if isinstance(made, WrittenFused) else made
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _read(hint: Any, raw: Any, where: str) -> Any:
    if hint == Node:
        return _read_node(raw, where)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        if raw == "none":
            return None
        hint, *words = (part for part in typing.get_args(hint) if part is not type(None))
        if any(raw in typing.get_args(word) for word in words if isinstance(raw, str)):
            return raw
    if hint is WrittenTerm and not (isinstance(raw, dict) and "of" in raw):
        return WrittenTerm(_read_node(raw, where))
    if dataclasses.is_dataclass(hint):
        return _read_record(typing.cast(type, hint), raw, where)
    if typing.get_origin(hint) is tuple:
        return _read_tuple(typing.get_args(hint), raw, where)
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        if raw not in choices:
            raise UsageError(f"{where}: {brief(raw)}; it must be one of {', '.join(choices)}")
        return raw
    if not isinstance(raw, hint) or (isinstance(raw, bool) and hint is not bool):
        raise UsageError(f"{where}: expected {hint.__name__}, got {brief(raw)}")
    return int(raw) if hint is int else raw


def _read_tuple(parts: tuple[Any, ...], raw: Any, where: str) -> tuple[Any, ...]:
    if parts[0] == Node or dataclasses.is_dataclass(parts[0]):
        if not isinstance(raw, list):
            raise UsageError(f"{where}: expected a list, got {brief(raw)}")
        return tuple(_read(parts[0], item, f"{where}.{i}") for i, item in enumerate(raw))
    if not isinstance(raw, str):
        raise UsageError(f"{where}: expected text, got {brief(raw)}")
    if parts == (int, str):
        number, _, word = raw.partition(" ")
        if not _COUNT.fullmatch(number):
            raise UsageError(f"{where}: expected a number and a rounding such as '31 RD', got {brief(raw)}")
        return int(number), word
    return _lanes(raw, where) if parts[0] is int else tuple(raw.split())


def _read_node(raw: Any, where: str) -> Any:
    if isinstance(raw, NODES):  # of a table made here
        return raw
    if isinstance(raw, str):
        return {"c": Accumulator(), "zero": Zero()}.get(raw) or Products(_lanes(raw, where))
    name = raw.get("node") if isinstance(raw, dict) else None
    if not isinstance(name, str) or name not in _NODES:
        kinds = ", ".join(_NODES)
        expected = f"'c', 'zero', lanes, or a table whose node is one of {kinds}"
        raise UsageError(f"{where}: expected {expected}; got {brief(raw)}")
    return _read_record(_NODES[name], raw, where)


def _lanes(raw: str, where: str) -> tuple[int, ...]:
    try:
        return parse_lanes(raw)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
