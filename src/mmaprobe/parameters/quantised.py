"""An A of f32 that becomes one of integers by its own ends before it is multiplied, as a part of sums of integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mmaprobe.errors import UsageError
from mmaprobe.parameters import checks
from mmaprobe.parameters.described import says

FORMATS = ("u8", "s8")
"""Formats that an A of f32 may become."""


@dataclass(frozen=True)
class Quantised:
    """How an A of f32 becomes integers of a ``format`` with the ends p and q.

    l and h are the smallest and the largest number of the whole ``matrix``, or of each ``row``, or 0.  The scale is
    (h - l) / (q - p), each operation rounded to f32; 1 where both are 0.  The zero point is p - l / scale, a number x
    becomes x / scale (``divide``), or x times 1 / scale (``multiply``), rounded to ``even``, or ties ``away`` from
    zero, plus the zero point, which is rounded likewise; both are clamped to p and q.  The scale of the sum is then
    this one times that of the record, rounded to f32.
    """

    format: str = field(default="u8", metadata=says("format that A becomes"))
    of: Literal["matrix", "row"] = field(default="matrix", metadata=says("whose ends say the scale"))
    by: Literal["divide", "multiply"] = field(
        default="divide", metadata=says("whether a number is divided by the scale, or multiplied by one over it")
    )
    rounding: Literal["even", "away"] = field(default="even", metadata=says("how it is rounded to a whole number"))

    def __post_init__(self) -> None:
        checks.words("", self)
        if self.format not in FORMATS:
            raise UsageError(f"format is {self.format}; A of f32 becomes {' or '.join(FORMATS)}")
