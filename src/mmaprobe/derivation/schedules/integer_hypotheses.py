"""Every way to add integers that is tried, and what is beside one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np

from mmaprobe.errors import UsageError
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.integer_sums import (
    NARROW,
    NO_BIAS,
    IntegerSums,
    LaneGroups,
    Rescale,
    ends,
    scale_number,
    scale_word,
)

LANES = (2, 3, 4, 8, 16)
"""Lanes of a group that are tried."""
STRIDES = (1, 2, 4, 8, 16, 32)
"""Lanes between two of a group that are tried."""
NARROWS = ("s16", "s8")
"""Formats of a group's sum that are tried."""
OFFSETS = (0, 128)
"""What is added to an operand of s8."""
TIMES = (1, 2, 4, 8, 16, 32)
"""Lanes, or runs of groups, after which a sum saturates."""


def most_of(a: str, b: str, sums: IntegerSums) -> int:
    """The size of the largest product, as it enters a group."""
    sides = []
    for name, zero, offset in ((a, sums.zero_a, sums.offset_a), (b, sums.zero_b, sums.offset_b)):
        taken = int(zero[0]) if sums.zeros == "before" else 0
        sides.append(max(abs(each - taken + offset) for each in ends(name)))
    return sides[0] * sides[1]


def grouped(a: str, b: str, plain: IntegerSums) -> Iterator[IntegerSums]:
    """The sums with every group whose sum may be outside of its format."""
    offsets = [(0, 0), *((x, 0) for x in OFFSETS[1:] if a == "s8"), *((0, x) for x in OFFSETS[1:] if b == "s8")]
    zeros: list[Any] = ["after", "before"] if plain.zero_a != ("0",) or plain.zero_b != ("0",) else ["before"]
    for lanes, stride, narrow, overflow in product(LANES, STRIDES, NARROWS, ("saturate", "wrap")):
        groups = LaneGroups(lanes, stride, narrow, overflow)  # type: ignore[arg-type]
        for (x, y), when in product(offsets, zeros):
            made = replace(plain, groups=groups, offset_a=x, offset_b=y, zeros=when)
            if lanes * most_of(a, b, made) > ends(narrow)[1]:
                yield made


def sum_hypotheses(a: str, b: str, plain: IntegerSums) -> Iterator[IntegerSums]:
    """All that wrap, the plainest first; ``plain`` has the format, the zero points and how D is rescaled."""
    yield plain
    if max(int(name[1:]) for name in (a, b)) <= NARROW:
        yield from grouped(a, b, plain)


def saturating(made: IntegerSums) -> Iterator[IntegerSums]:
    """The same sums, saturating at the end or on their way."""
    full = replace(made, overflow="saturate")
    yield full
    yield from (replace(full, every=made.block * each) for each in TIMES)


def beside_sums(sums: IntegerSums) -> Iterator[tuple[str, str, IntegerSums]]:
    """Field, value, and the sums with that field moved to a neighbouring value; what the record refuses is left out."""
    yield from _beside(sums, _values)
    if sums.groups is None and not sums.every:
        for narrow in NARROWS:
            yield "groups", f"2 lanes, {narrow}", replace(sums, groups=LaneGroups(2, 1, narrow))
    if sums.groups is not None and not sums.every:
        plain = replace(sums, groups=None, offset_a=0, offset_b=0, zeros="before")
        yield "groups", "none", plain


def _beside(record: Any, values: Any) -> Iterator[tuple[str, str, Any]]:
    for each in fields(record):
        own = getattr(record, each.name)
        if hasattr(own, "__dataclass_fields__"):
            below = [(f"{each.name}.{path}", word, made) for path, word, made in _beside(own, values)]
        else:
            below = [(each.name, str(value), value) for value in values(record, each.name, own)]
        for path, word, made in below:
            try:
                yield path, word, replace(record, **{each.name: made})
            except UsageError:
                continue


def _values(record: Any, name: str, own: Any) -> list[Any]:
    """Values beside one."""
    if name == "scale":
        return [(_scale(record, own[0], step), *own[1:]) for step in (-1, 1)]
    if name == "bias" and isinstance(record, Rescale):
        return [] if own == NO_BIAS else [(beside_word(own[0], step), *own[1:]) for step in (-1, 1)]
    if name in ("zero_a", "zero_b", "bias"):
        return [(str(int(own[0]) + step), *own[1:]) for step in (-1, 1)]
    if name == "zero":
        return [str(int(own) + step) for step in (-1, 1)]
    if name in ("offset_a", "offset_b"):
        return sorted({own - 1, own + 1, 0, 128} - {own})
    if name == "format":
        return [each for each in NARROWS if each != own] if isinstance(record, LaneGroups) else []
    if name in ("lowest", "highest"):
        return [] if own is None else [own - 1, own + 1]
    if isinstance(own, int):
        return sorted({own - 1, own + 1, own * 2} - {own})
    return [each for each in choices(record.__class__, name) if each != own] if isinstance(own, str) else []


def _scale(rule: Rescale, word: str, step: int) -> str:
    if rule.by == "fixed":
        return str(int(word) + step)
    return beside_word(word, step)


def beside_word(word: str, step: int) -> str:
    """The next number of f32 above one, or below it."""
    return scale_word(float(np.nextafter(np.float32(scale_number(word) or 0), np.float32(step * np.inf))))
