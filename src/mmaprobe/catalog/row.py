"""One row of the catalog: a product of axes, any instruction of which is made when it is asked for.

Its texts are templates: ``{k}`` is replaced by what an axis binds or by the
row's own field, ``{K}`` by the same in capitals.  ``axes`` are listed one by
one; ``ranges`` are listed together and bound when an id names one of them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from string import Formatter
from typing import Any

from mmaprobe.catalog.architectures import Architectures
from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.lanes import parse_lanes
from mmaprobe.catalog.lowering import Application, Lowering
from mmaprobe.catalog.modifiers import ROLES
from mmaprobe.catalog.states import CONTROL_VALUES
from mmaprobe.errors import UsageError, brief, near

Choice = Mapping[str, Any]
Picks = tuple[int, ...]
"""The choice taken of each axis, by number."""

MOST_CHOICES = 1 << 16
"""Choices of one axis at most: a hundred times the longest axis of ours, so that a wrong file ends soon."""
_NUMBERS = ("m", "n", "k", "blocks", "chunk", "scale_size")
_FORMATS = ("a", "b", "c", "d", "scale", "random")
_LISTS = ("controls", "requires", "takes")
_WORDS = ("multiply",)
_FLAGS = ("unordered", "saturates")
_FIELDS = (*_FORMATS, *_NUMBERS, *_WORDS, *_FLAGS)
ROW_FIELDS = ("family", "source", *_FIELDS, *_LISTS)
"""What a row says of an instruction in the instruction's own words."""
_ROW = {"opcode", "modifiers", "defaults", "axes", "ranges", "on", *ROW_FIELDS}
_TEXTS = ("convert", "convert_c", "convert_d", "add", "sort")
_ON = {
    "architectures", "kind", "primitive", "unplaced", "step", "lanes", "start", "count",
    "targets", "toolchain", "note", *_TEXTS,
}  # fmt: skip
_KINDS: Mapping[str, type] = {
    "family": str, "opcode": str, "source": str, "modifiers": dict, "defaults": dict, "axes": list, "ranges": list,
    "on": list, "architectures": list, "primitive": str, "unplaced": str, **dict.fromkeys(_LISTS, list),
}  # fmt: skip
_CALLED: Mapping[type, str] = {str: "a text", dict: "a table", list: "a list"}
_NEEDED = {"family", "opcode", "m", "n", "k", "a", "b", "d", "on"}
ONLY = "only"
"""The key of a choice that exists on some architectures only."""


@dataclass(frozen=True)
class Segment:
    """A part of an id that one axis decides: its text for each choice of the axis.

    ``key`` is that of a modifier, ``None`` for a part of the opcode; ``default``
    is the value at which a modifier is left out.
    """

    axis: int
    texts: tuple[str, ...]
    key: str | None = None
    default: str | None = None


class Words(dict[str, Any]):
    """What templates may name: everything bound, and under its key in capitals the same in capitals."""

    def __missing__(self, key: str) -> str:
        if key.isupper() and key.lower() in self:
            return str(self[key.lower()]).upper()
        raise KeyError(key)

    def fill(self, template: Any) -> str:
        """The text with every name replaced; KeyError for one that nothing binds."""
        text = str(template)
        return text.format_map(self) if "{" in text else text


@dataclass(frozen=True, eq=False)
class Row:
    """A table ``[[row]]`` of a data file, with that file's toolchains and what its templates call architectures."""

    table: Mapping[str, Any]
    data: Mapping[str, Any]
    known: Architectures
    _groups: dict[tuple[int, Picks], dict[str, Picks]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _known(self.table, _ROW, _NEEDED)
        for axis in (*self.table.get("axes", ()), *self.table.get("ranges", ())):
            if not axis or not _are_tables(axis):
                raise UsageError(f"an axis is {brief(axis)}; it must be a list of tables")
        if not _are_tables(self.table["on"]):
            raise UsageError(f"on is {brief(self.table['on'])}; it must be a list of tables")
        for on in self.table["on"]:
            _known(on, _ON, {"architectures"})

    @cached_property
    def axes(self) -> tuple[tuple[Choice, ...], ...]:
        """The choices of each axis, those of the listed axes first."""
        named = (*self.table.get("axes", ()), *self.table.get("ranges", ()))
        found = tuple(tuple(itertools.islice(_choices(axis), MOST_CHOICES + 1)) for axis in named)
        if any(len(axis) > MOST_CHOICES for axis in found):
            raise UsageError(f"an axis has more than {MOST_CHOICES} choices")
        return found

    @property
    def listed(self) -> int:
        """How many axes are listed choice by choice."""
        return len(self.table.get("axes", ()))

    @cached_property
    def architectures(self) -> frozenset[str]:
        """The architectures outside which no instruction of the row exists."""
        return frozenset(home for on in self.table["on"] for name in on["architectures"] for home in self._reach(name))

    def _reach(self, name: str) -> Iterable[str]:
        """The architectures that a name in ``on`` may stand for, whatever the axes bind."""
        parts = [f"{{{part}}}" for _, part, _, _ in Formatter().parse(name) if part]
        axes = [axis for axis in self.axes if any(_binds(part, axis[0]) for part in parts)]
        chosen = (Words({key: value for choice in choices for key, value in choice.items()})
                  for choices in itertools.product(*axes))  # fmt: skip
        return [home for words in chosen for home in self._homes(words.fill(name))]

    def _homes(self, name: str) -> list[str]:
        """The architectures that a name stands for; ``[where]`` says it of names that the file's templates make."""
        return [home for each in self.data.get("where", {}).get(name, [name]) for home in self.known.of(each)]

    def allowed(self, axis: int, architecture: str | None) -> Picks:
        """The choices of an axis that exist on an architecture (on any, if ``None``)."""
        return tuple(
            number
            for number, choice in enumerate(self.axes[axis])
            if architecture is None or ONLY not in choice or architecture in self._only(choice)
        )

    @cached_property
    def everything(self) -> tuple[Picks, ...]:
        """All choices of each axis."""
        return tuple(tuple(range(len(axis))) for axis in self.axes)

    def forms(self, architecture: str) -> Iterator[tuple[Picks, int]]:
        """The choices of each form's first instruction on an architecture, and how many the form holds there."""
        allowed = [self.allowed(axis, architecture) for axis in range(len(self.axes))]
        ranges = allowed[self.listed :]
        count = math.prod(map(len, ranges))
        if count:
            first = tuple(options[0] for options in ranges)
            yield from (((*chosen, *first), count) for chosen in itertools.product(*allowed[: self.listed]))

    def _only(self, choice: Choice) -> list[str]:
        return [home for name in choice[ONLY] for home in self._homes(name)]

    @cached_property
    def segments(self) -> tuple[str | Segment, ...]:
        """The parts of an id in order: fixed text, or what an axis decides; modifiers last, by key."""
        parts = list(self._parts(self.table["opcode"], ()))
        defaults = self.table.get("defaults", {})
        for key, template in sorted(self.table.get("modifiers", {}).items()):
            inside = list(self._parts(template, ()))
            variable = next((part for part in inside if isinstance(part, Segment)), None)
            if len(inside) > 1:
                raise UsageError(f"modifier {key} is {template!r}; it is a text or one name in braces")
            texts = variable.texts if variable else (str(template),)
            parts.append(Segment(variable.axis if variable else -1, texts, key, defaults.get(key)))
        return tuple(parts)

    def grouped(self, place: int, offered: Picks) -> dict[str, Picks]:
        """The places, among the choices offered, that write the same text at a segment."""
        key = place, offered
        if key not in self._groups:
            part = self.segments[place]
            assert isinstance(part, Segment)
            groups: dict[str, list[int]] = {}
            for offset, number in enumerate(offered):
                groups.setdefault(part.texts[number], []).append(offset)
            self._groups[key] = {text: tuple(offsets) for text, offsets in groups.items()}
        return self._groups[key]

    def _parts(self, template: Any, inside: tuple[str, ...]) -> Iterator[str | Segment]:
        for literal, name, _, _ in Formatter().parse(str(template)):
            if literal:
                yield literal
            if name is None:
                continue
            axis = self._axis_of(name)
            if axis is not None:
                yield Segment(axis, tuple(Words(choice).fill(f"{{{name}}}") for choice in self.axes[axis]))
            elif name.lower() in self.table and name not in inside:
                parts = list(self._parts(self.table[name.lower()], (*inside, name)))
                yield from parts if name in self.table else map(_capitals, parts)
            else:
                raise KeyError(name)

    def _axis_of(self, name: str) -> int | None:
        homes = [number for number, axis in enumerate(self.axes) if _binds(f"{{{name}}}", axis[0])]
        if len(homes) > 1:
            raise UsageError(f"{name} is bound by two axes")
        return homes[0] if homes else None

    def bind(self, picks: Picks) -> Words:
        """What these choices bind."""
        bound = Words()
        for axis, number in zip(self.axes, picks, strict=True):
            bound |= axis[number]
        return bound

    def instruction(self, picks: Picks) -> Instruction:
        """The instruction of these choices; UsageError where it contradicts itself."""
        row, words = self.table, self.bind(picks)
        fields = {name: _field(name, words.get(name, words.fill(row[name]))) for name in _FIELDS if name in row}
        fields |= {name: fields.get(name) or None for name in ("c", "random")}
        words |= fields
        opcode = words.fill(row["opcode"])
        defaults = row.get("defaults", {})
        written = {key: words.fill(value) for key, value in row.get("modifiers", {}).items()}
        modifiers = tuple(sorted((key, value) for key, value in written.items() if value != defaults.get(key)))
        lists: dict[str, Any] = {name: tuple(map(words.fill, words.get(name, row.get(name, ())))) for name in _LISTS}
        _known(dict.fromkeys(lists["takes"]), ROLES)
        _known(dict.fromkeys(lists["controls"]), CONTROL_VALUES.keys())
        return Instruction(
            spell(opcode, modifiers), opcode, words.fill(row["family"]),
            modifiers=modifiers, source=row.get("source", ""), **fields, **lists,
        )  # fmt: skip

    def ways(self, picks: Picks, made: Instruction, architecture: str | None = None) -> list[Lowering]:
        """What the instruction of these choices becomes on one architecture, or on each that has it."""
        words = self.bind(picks)
        words |= {name: getattr(made, name) for name in (*_NUMBERS, *_FORMATS)}
        chosen = [axis[number] for axis, number in zip(self.axes, picks, strict=True)]
        limits = [set(self._only(choice)) for choice in chosen if ONLY in choice]
        found: list[Lowering] = []
        for on in self.table["on"]:
            homes = [home for name in on["architectures"] for home in self._homes(words.fill(name))]
            for home in homes:
                if architecture in (None, home) and all(home in limit for limit in limits):
                    found.append(self._way(on, words, made, home))
        return found

    def _way(self, on: Mapping[str, Any], words: Words, made: Instruction, architecture: str) -> Lowering:
        toolchains = self.data.get("toolchains", {})
        texts: dict[str, Any] = {name: words.fill(on[name]) or None for name in _TEXTS if name in on}
        return Lowering(
            made.id, architecture, on.get("kind", "native"), _applications(on, words, made),
            on.get("toolchain", self.known.pick(toolchains, architecture, toolchains.get("default", ""))),
            _whole("count", words.fill(on.get("count", 1))), note=on.get("note", ""),
            unplaced=(words.fill(on["unplaced"]),) if "unplaced" in on else (),
            targets=words.fill(on.get("targets", "all")), **texts,
        )  # fmt: skip


def _field(name: str, value: Any) -> Any:
    """The value of an instruction's field from its text."""
    if name in _FLAGS:
        if str(value).lower() not in ("true", "false"):
            raise UsageError(f"{name} is {brief(value)}; it must be true or false")
        return str(value).lower() == "true"
    return _whole(name, value) if name in _NUMBERS else value


def _whole(name: str, value: Any) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", str(value)):
        raise UsageError(f"{name} is {brief(value)}; it must be a whole number")
    return int(value)


def _applications(on: Mapping[str, Any], words: Words, made: Instruction) -> tuple[Application, ...]:
    if "primitive" not in on:
        return ()
    if "lanes" in on:
        chains = [[parse_lanes(part) for part in chain.split(";")] for chain in words.fill(on["lanes"]).split("|")]
        whole = sorted(lane for chain in chains for piece in chain for lane in piece) == list(range(made.k))
    else:
        step = _whole("step", words.fill(on.get("step", made.k)))
        whole = step > 0 and made.k % step == 0
        chains = [[tuple(range(first, first + step)) for first in range(0, made.k, step)]] if whole else []
    if not whole:
        raise UsageError(f"the lanes of {made.id} are not 0..{made.k - 1}, each once")
    first, _, rest = words.fill(on["primitive"]).partition(";")
    start: Any = words.fill(on.get("start", "c"))
    return tuple(
        Application(rest or first, piece, "previous") if i else Application(first, piece, start)
        for chain in chains
        for i, piece in enumerate(chain)
    )


def _choices(axis: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The choices of an axis: its tables, one with lists of values standing for each combination of them.

    A text such as ``8..256:8`` in such a list stands for its numbers.
    """
    for table in axis:
        values = (
            [value] if key in (*_LISTS, ONLY) or not isinstance(value, list) else list(_numbers(value))
            for key, value in table.items()
        )
        yield from (dict(zip(table, chosen, strict=True)) for chosen in itertools.product(*values))


def _numbers(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        yield from parse_lanes(value) if isinstance(value, str) and ".." in value else (value,)


def _binds(template: str, choice: Choice) -> bool:
    """Whether a choice binds every name of a template."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    return all(name in choice or (name.isupper() and name.lower() in choice) for name in names)


def _capitals(part: str | Segment) -> str | Segment:
    if isinstance(part, str):
        return part.upper()
    return Segment(part.axis, tuple(text.upper() for text in part.texts))


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _known(table: Mapping[str, Any], names: Set[str], needed: Set[str] = frozenset()) -> None:
    for key, value in table.items():
        if key not in names:
            raise UsageError(f"unknown key {key!r}{near(key, names)}")
        if not isinstance(value, _KINDS.get(key, object)):
            raise UsageError(f"{key} is {brief(value)}; it must be {_CALLED[_KINDS[key]]}")
    for key in sorted(needed - table.keys()):
        raise UsageError(f"key {key!r} is missing")
