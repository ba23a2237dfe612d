"""Classes of a number: the values around the datapath's own that are provably the same function."""

from __future__ import annotations

from mmaprobe.equivalence.arguments import argument
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, numbers

WALK = 64
"""Values over which a class is followed to either side."""


def number_classes(datapath: Datapath) -> dict[str, str]:
    """By field, in words, the class of every number that has other values; each value has an argument that holds.

    ``<= -126, or none``; ``>= 32``; ``31 to 33``; ``any`` where neither end was met. An end is open where
    each of the next ``WALK`` values, or of those that a record takes, is the same function; ``or none`` where the
    number may be absent.
    """
    found = {}
    for field, value in numbers(datapath).items():
        if value is None:
            continue
        low, high = (_walk(datapath, field, value, sign) for sign in (-1, 1))
        none = bool(_same(datapath, field, "none"))
        if low or high or none:
            found[field] = _words(value, low, high) + ", or none" * none
    return found


def _words(value: int, low: int, high: int) -> str:
    if low == high == WALK:
        return "any"
    if high == WALK:
        return f">= {value - low}"
    if low == WALK:
        return f"<= {value + high}"
    return f"{value - low} to {value + high}" if low or high else str(value)


def _walk(datapath: Datapath, field: str, value: int, sign: int) -> int:
    for size in range(1, WALK + 1):
        same = _same(datapath, field, str(value + sign * size))
        if not same:
            return WALK if same is None and size > 1 else size - 1
    return WALK


def _same(datapath: Datapath, field: str, value: str) -> bool | None:
    """Whether a number can stand in the place of the datapath's own, be it that nothing reads it; None where no record
    takes it."""
    try:
        other = mutate(datapath, field, value)
    except UsageError:
        return None
    return other == datapath or argument(datapath, Neighbour(field, value, other)) is not None
