"""The units of a picture: models by name, and the long dot products that they compute."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for

Floats = NDArray[np.float64]
Kind = Literal["errors", "bias", "fp8"]
WORD = 53
"""Bits of a float64's significand."""
HALF = 26
"""Significands of at most so many bits have products that a float64 holds."""


@dataclass(frozen=True)
class PicturedUnit:
    """A datapath with the title that it has in a picture."""

    title: str
    datapath: Datapath


def units(kind: Kind, named: Sequence[str]) -> list[PicturedUnit]:
    """The units ``ARCH/INSTRUCTION`` that are named, else those that ship for a kind of picture.

    UsageError for a name that is none, and for a unit that cannot go on with its own result.
    """
    if named:
        return [_chained(PicturedUnit(name, _datapath(name))) for name in named]
    return [
        _chained(PicturedUnit(each["title"], _datapath(f"{each['architecture']}/{each['instruction']}")))
        for each in _shipped()[kind]
    ]


@cache
def _shipped() -> dict[str, list[dict[str, str]]]:
    text = resources.files(__package__).joinpath("data", "units.toml").read_text("utf-8")
    return tomllib.loads(text)


def _datapath(name: str) -> Datapath:
    architecture, _, wanted = name.partition("/")
    if not wanted:
        raise UsageError(f"{name!r}: write ARCH/INSTRUCTION, as in sm_90a/mma.m16n8k16.f32.f16.f16.f32")
    return datapath_for(architecture, instruction(wanted, architecture))


def _chained(unit: PicturedUnit) -> PicturedUnit:
    path = unit.datapath
    narrow = all(
        formats.get(name).is_float and formats.get(name).fraction_bits < HALF for name in (path.a, path.b, path.d)
    )
    if path.c is None or path.c != path.d or path.scale is not None or not narrow:
        raise UsageError(
            f"{unit.title}: the picture adds long dot products of floats of at most {HALF} bits, each result the C of "
            "the next call; this unit has no such C, takes scales, or is wider"
        )
    return unit


def encoded(fmt: Format, values: Floats) -> Bits:
    """Values rounded to a format, to nearest even."""
    mantissa, exponent = np.frexp(values)
    significand = np.ldexp(abs(mantissa), WORD).astype(np.int64)
    return formats.encode(fmt, values < 0, significand, exponent.astype(np.int64) - WORD)


def decoded(fmt: Format, codes: Bits) -> Floats:
    """Finite codes as float64."""
    found = formats.decode(fmt, codes)
    size = np.ldexp(found.significand.astype(np.float64), found.exponent)
    return np.where(found.negative, -size, size)


@dataclass(frozen=True)
class LongDots:
    """Results and exact values of the same long dot products, by how many terms: arrays (terms, vectors); ``largest``:
    of a single call the exponent of each vector's largest product."""

    terms: tuple[int, ...]
    results: Floats
    exact: Floats
    largest: Floats = field(default_factory=lambda: np.zeros(0))


def long_dots(unit: PicturedUnit, a: Floats, b: Floats, terms: Sequence[int]) -> LongDots:
    """Dot products of the first so many terms, each call adding to the result of the one before; the exact ones are of
    the operands as the unit's formats hold them.  Terms are rounded up to whole calls."""
    path = unit.datapath
    codes = [encoded(formats.get(name), values) for name, values in ((path.a, a), (path.b, b))]
    products = decoded(formats.get(path.a), codes[0]) * decoded(formats.get(path.b), codes[1])
    ends = [min(-(-count // path.k) * path.k, a.shape[1] // path.k * path.k) for count in terms]
    d: Any = formats.get(path.d)
    acc: Bits = np.zeros(len(a), d.dtype)
    rows: dict[int, Floats] = {}
    for start in range(0, max(ends), path.k):
        call = slice(start, start + path.k)
        (acc,) = evaluate_many([path], Batch(codes[0][:, call], codes[1][:, call], acc))
        if start + path.k in ends:
            rows[start + path.k] = decoded(d, acc)
    exact = np.array([[math.fsum(row[:end]) for row in products] for end in ends])
    return LongDots(tuple(ends), np.array([rows[end] for end in ends]), exact)


def one_call(unit: PicturedUnit, a: Floats, b: Floats, c: Floats) -> LongDots:
    """The results of one call on a (vectors, K), b and c, with the exact ones of the operands as the formats hold
    them."""
    path = unit.datapath
    named: Any = zip((path.a, path.b, path.c), (a, b, c), strict=True)
    codes = [encoded(formats.get(name), values) for name, values in named]
    (results,) = evaluate_many([path], Batch(*codes))
    first, second, third = (
        decoded(formats.get(name or ""), each) for name, each in zip((path.a, path.b, path.c), codes, strict=True)
    )
    products = first * second
    exact = np.array([math.fsum((*row, one)) for row, one in zip(products, third, strict=True)])
    largest = np.floor(np.log2(abs(products).max(1)))
    return LongDots((path.k,), decoded(formats.get(path.d), results)[None], exact[None], largest)
