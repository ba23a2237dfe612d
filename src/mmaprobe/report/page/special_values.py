"""What a datapath does with what is no plain number: infinities, NaNs, zeros of both signs, the ends of the range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.hexfloat import code_value
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath

Codes = Mapping[str, int]
"""Some elements of a vector by name: a0, b0, a1, b1, c; the others are +0."""


@dataclass(frozen=True)
class SpecialAnswer:
    """What was put in, in words, the code that comes out, and its value."""

    asked: str
    code: str
    value: str


def special_answers(datapath: Datapath) -> list[SpecialAnswer]:
    """The answers of a datapath of floats to the vectors that its formats can say; of integers none."""
    a, b, d = (formats.get(name) for name in (datapath.a, datapath.b, datapath.d))
    if not (a.is_float and b.is_float and d.is_float) or datapath.k < 2:
        return []
    asked = list(_asked(datapath, a, b, formats.get(datapath.c) if datapath.c else None))
    batch = _batch(datapath, [codes for _, codes in asked])
    try:
        (answers,) = evaluate_many([datapath], batch)
    except UsageError:  # a number format without a one to scale by
        return []
    digits = -(-d.container_bits // 4)
    return [
        SpecialAnswer(words, f"{code:#0{digits + 2}x}", code_value(d, code))
        for (words, _), code in zip(asked, map(int, answers), strict=True)
    ]


def _asked(datapath: Datapath, a: Format, b: Format, c: Format | None) -> Iterator[tuple[str, Codes]]:
    """Vectors in words, with their codes."""
    one_a, one_b = _one(a), _one(b)
    if a.infinity_code is not None:
        yield "infinity · 1", {"a0": a.infinity_code, "b0": one_b}
        yield "infinity · 0", {"a0": a.infinity_code}
        minus = a.infinity_code | a.sign_mask
        yield "infinity · 1 + (-infinity) · 1", {"a0": a.infinity_code, "b0": one_b, "a1": minus, "b1": one_b}
    if a.nan_code is not None:
        yield "NaN · 1", {"a0": a.nan_code, "b0": one_b}
        yield "NaN · 0", {"a0": a.nan_code}
    if a.quiet_bit:
        payload = a.nan_code or 0
        yield "signalling NaN with payload 1, · 1", {"a0": payload ^ a.quiet_bit | 1 << a.padding, "b0": one_b}
    if c is not None and c.nan_code is not None:
        yield "NaN in c", {"c": c.nan_code | (1 << c.padding)}
    if c is not None and c.infinity_code is not None and a.infinity_code is not None:
        yield "infinity · 1 + c = -infinity", {"a0": a.infinity_code, "b0": one_b, "c": c.infinity_code | c.sign_mask}
    if c is not None and c.signed and c.is_float:
        yield "all products +0, c = -0", {"c": c.sign_mask}
        yield "the smallest number in c", {"c": 1 << c.padding}
        yield "the largest number in c + largest · largest", {"a0": a.largest, "b0": b.largest, "c": c.largest}
    if a.has_sign_bit:
        yield "-1 · 1 + 1 · 1", {"a0": one_a | a.sign_mask, "b0": one_b, "a1": one_a, "b1": one_b}
    if a.subnormal:
        yield "the smallest number of a · 1", {"a0": 1 << a.padding, "b0": one_b}
        yield "smallest · smallest", {"a0": 1 << a.padding, "b0": 1 << b.padding}
    yield "largest · largest", {"a0": a.largest, "b0": b.largest}


def _one(fmt: Format) -> int:
    """The code of 1, or of what comes closest."""
    return int(formats.encode(fmt, np.array([False]), np.array([1]), np.array([0]))[0])


def _batch(datapath: Datapath, asked: list[Codes]) -> Batch:
    """The vectors; every scale is 1, every random bit 0."""
    named: dict[str, Any] = {"a": datapath.a, "b": datapath.b, "c": datapath.c}
    shapes = {"a": (len(asked), datapath.k), "b": (len(asked), datapath.k), "c": (len(asked),)}
    made: dict[str, Any] = {
        name: np.zeros(shapes[name], formats.get(of).dtype) for name, of in named.items() if of is not None
    }
    for row, codes in enumerate(asked):
        for element, code in codes.items():
            place = (row, int(element[1:])) if element[1:] else row
            made[element[0]][place] = code
    batch = Batch(**made)
    if datapath.scale is not None:
        scale = formats.get(datapath.scale.format)
        ones = np.full((len(asked), datapath.k // datapath.scale.size), _one(scale), scale.dtype)
        batch = replace(batch, scale_a=ones, scale_b=ones)
    if datapath.random is not None:
        batch = replace(batch, random=np.zeros(len(asked), formats.get(datapath.random).dtype))
    return batch
