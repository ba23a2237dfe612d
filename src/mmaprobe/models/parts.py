"""Operands in parts of a narrower format (docs/datapath.md, section 2): the factors of every product of parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmaprobe.models.numbers import ABSENT, Numbers, beside
from mmaprobe.models.rounding import encode
from mmaprobe.models.special import Bools, NanRule
from mmaprobe.parameters.datapath import Encode, Split


def parts_of(a: Numbers, b: Numbers, split: Split, rule: NanRule) -> tuple[Numbers, Numbers]:
    """Of operands (n, K) the factors (n, K * pairs) of all products of parts, those of a lane side by side."""
    first, second = (_parts(x, split, rule) for x in (a, b))
    alone = (
        _special(first[0]) | _special(second[0]) if split.infinities == "whole" else np.zeros(a.negative.shape, bool)
    )
    factors = []
    for i, j in split.parts:
        none = alone if (i, j) != (0, 0) else np.zeros_like(alone)
        factors.append((_without(first[i], none), _without(second[j], none)))
    k, count = a.negative.shape[1], len(factors)
    lanes = [number * k + lane for lane in range(k) for number in range(count)]
    return tuple(beside(side).take(lanes) for side in zip(*factors, strict=True))  # type: ignore[return-value]


def _special(x: Numbers) -> Bools:
    return np.asarray(x.infinite | x.nan.flag)


def _without(x: Numbers, none: Bools) -> Numbers:
    """The values, +0 where ``none``."""
    nan = x.nan._replace(flag=x.nan.flag & ~none)
    significand, label = np.where(none, 0, x.significand), np.where(none, ABSENT, x.label)
    infinite, negative = x.infinite & ~none, x.negative & ~none
    return replace(x, significand=significand, label=label, infinite=infinite, negative=negative, nan=nan)


def _parts(x: Numbers, split: Split, rule: NanRule) -> list[Numbers]:
    """The parts of x, as many as some pair names: each the rest of x rounded, which is then less by it."""
    found: list[Numbers] = []
    for _ in range(1 + max(max(pair) for pair in split.parts)):
        part = encode(x, Encode(split.format, split.rounding), rule).numbers
        found.append(part)
        x = _rest(x, part)
    return found


def _rest(x: Numbers, part: Numbers) -> Numbers:
    """x - part: +0 where it is zero, an infinity of the other sign for an infinite part."""
    low = np.minimum(x.exponent, np.where(part.significand == 0, x.exponent, part.exponent))
    whole = x.significand << np.where(x.significand == 0, 0, x.exponent - low)
    taken = part.significand << np.where(part.significand == 0, 0, part.exponent - low)
    rest = np.where(x.negative, -whole, whole) - np.where(part.negative, -taken, taken)
    significand = np.where(part.infinite, 0, abs(rest))
    return replace(
        x, negative=np.where(part.infinite, ~part.negative, rest < 0), significand=significand, exponent=low,
        infinite=part.infinite,
    )  # fmt: skip
