"""What is to be known of a field of a record, said where the field is: its words, its kind, when it means something.

Neighbours, simplifications, differences, checks, the search's choices and the tests' random records read it here, so
that a new field is varied, named, checked and drawn without a list elsewhere.  Choices are those of its type,
``Literal``; what is plain is its default.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from mmaprobe import formats

Kind = Literal[
    "word", "flag", "number", "rounding", "first", "overflow", "sign", "zero_exponent", "fraction_bits", "multiply",
    "lanes", "code", "priority", "offset", "rare", "pairs", "random_bits", "fixed",
]  # fmt: skip
"""How the values beside its own are found: other words, one more and one less, ...; ``rare``: as where nothing is
said; ``random_bits``: one more, one less, or as many as elsewhere; ``fixed``: by a change of the structure alone."""
Where = Literal[
    "always", "float", "cut", "flushed", "aligned", "payloads", "choices", "causes", "looked", "carried", "random_bits",
]  # fmt: skip
"""Where a field means something: in floats, where something is cut, where tiny results are flushed, where products are
aligned, where NaN payloads travel, where one of several is chosen, where codes are those of causes, where a rounding
looks at what is cut off, where a sum has a number of bits, where a rounding takes some of the random bits."""
_KEY = "described"


@dataclasses.dataclass(frozen=True)
class Described:
    """A field: ``words`` for it, ``place`` for what is within it; ``ends``: it is about the ends of the range;
    ``values``: what a person reads for its values, where these are no words of their own."""

    name: str
    words: str
    kind: Kind
    where: Where
    place: str
    ends: bool
    values: Mapping[Any, str]
    choices: tuple[str, ...]
    plain: Any


def says(
    words: str,
    kind: Kind = "fixed",
    where: Where = "always",
    place: str = "",
    ends: bool = False,
    values: Mapping[Any, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The metadata of a dataclass field that is described so."""
    return {_KEY: {"words": words, "kind": kind, "where": where, "place": place, "ends": ends, "values": values}}


@cache
def descriptions(record: type) -> dict[str, Described]:
    """The descriptions of a record's fields, by name."""
    hints = typing.get_type_hints(record)
    return {
        field.name: Described(
            field.name, choices=_choices(hints[field.name], field.metadata[_KEY]["kind"]), plain=field.default,
            **field.metadata[_KEY],
        )
        for field in dataclasses.fields(record)
    }  # fmt: skip


def _choices(hint: Any, kind: Kind) -> tuple[str, ...]:
    if kind == "rounding":
        return tuple(formats.ROUNDINGS)
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


@cache
def choices(record: type, name: str) -> tuple[Any, ...]:
    """The words that a field may hold, the plain one first."""
    field = descriptions(record)[name]
    return (field.plain, *(choice for choice in field.choices if choice != field.plain))


def value_in_words(record: Any, name: str) -> str:
    """What a person reads for the value of a field: the words that its description has for it, else the value."""
    kind: type = type(record)
    value = getattr(record, name)
    return descriptions(kind)[name].values.get(value, str(value))
