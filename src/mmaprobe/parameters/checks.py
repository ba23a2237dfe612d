"""What a field of a record may hold: each check is silent, or a UsageError naming field, value and legal ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from operator import attrgetter
from typing import Any

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief
from mmaprobe.formats import Format
from mmaprobe.parameters.described import descriptions


def one_of(what: str, value: object, choices: Sequence[str]) -> None:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise UsageError(f"{what} is {brief(value)}; it must be one of {', '.join(choices)}")


def words(what: str, record: Any) -> None:
    """Every field of a record that holds one of a few words."""
    read, legal = _legal(record.__class__)
    try:
        if read(record) in legal:
            return
    except TypeError:  # no word at all
        pass
    for name, each in descriptions(record.__class__).items():
        if each.choices:
            one_of(f"{what} {name}".strip(), getattr(record, name), each.choices)


@cache
def _legal(record: type) -> tuple[attrgetter[Any], frozenset[Any]]:
    """What reads the words of a record together, and all combinations that it may find."""
    found = {name: each.choices for name, each in descriptions(record).items() if each.choices}
    every = product(*found.values()) if len(found) > 1 else next(iter(found.values()))
    return attrgetter(*found), frozenset(every)


def whole(what: str, value: object, least: int, most: int, optional: bool = False) -> None:
    """A whole number from ``least`` to ``most``, or None where that is a choice."""
    if value is None and optional:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        ends = f"0x{least:x} to 0x{most:x}" if least == 0 and most > 1 << 16 else f"{least} to {most}"
        raise UsageError(f"{what} is {brief(value)}; it must be a whole number from {ends}{' or none' * optional}")


def flag(what: str, value: object) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise UsageError(f"{what} is {brief(value)}; it must be true or false")


def a(kind: type | tuple[type, ...], what: str, value: object, optional: bool = False) -> None:
    """A record of this kind."""
    if not isinstance(value, kind) and not (value is None and optional):
        kinds = ", ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        raise UsageError(f"{what} is {brief(value)}; it must be a record: {kinds}{' or none' * optional}")


def items(what: str, value: object, kind: type | tuple[type, ...]) -> None:
    """A tuple, not empty, of records of this kind."""
    if not isinstance(value, tuple) or not value:
        raise UsageError(f"{what}: {brief(value)}; it must be a tuple with at least one item")
    for index, item in enumerate(value):
        a(kind, f"{what}.{index}", item)


def lanes(what: str, value: object, most: int) -> None:
    """A tuple of lanes, not empty, none twice."""
    if not isinstance(value, tuple) or not value:
        raise UsageError(f"{what}: {brief(value)}; it must be a tuple with at least one lane")
    for lane in value:
        whole(what, lane, 0, most - 1)
    if len(set(value)) != len(value):
        raise UsageError(f"{what}: a lane is there twice")


def number_format(what: str, name: object) -> Format:
    """The name of a format."""
    try:
        found: Any = name
        return formats.get(found)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None


def result_format(what: str, name: object) -> Format:
    """The name of a format that a sum can be rounded to."""
    fmt = number_format(what, name)
    if not _is_result(fmt):
        raise UsageError(f"{what} is {fmt.name}; a result has a sign and a fraction or is an integer: {_RESULT_NAMES}")
    return fmt


def _is_result(fmt: Format) -> bool:
    """Whether a sum can be rounded to a format."""
    return fmt.kind == "integer" or (fmt.is_float and fmt.signed and fmt.subnormal and fmt.fraction_bits > 0)


_RESULT_NAMES = ", ".join(name for name, fmt in formats.FORMATS.items() if _is_result(fmt))
