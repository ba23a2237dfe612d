"""Schedules of sums of integers: random ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mmaprobe.parameters.integer_sums import IntegerSums, LaneGroups, Rescale, ends, scale_word
from mmaprobe.parameters.schedule import Schedule, Scope

OPERANDS = (("u8", "s8"), ("s8", "s8"), ("u8", "u8"), ("s4", "s4"), ("s16", "s16"), ("s8", "u8"), ("u8", "s8"))
"""Formats of A and B."""


def integer_schedule(a: str, b: str, d: str, sums: IntegerSums) -> Schedule:
    return Schedule(a, b, d, Scope("none"), integers=sums)


def drawn_sums(rng: np.random.Generator) -> Schedule:
    """A random one without rescaling."""
    a, b = OPERANDS[int(rng.integers(len(OPERANDS)))]
    fmt = str(rng.choice(["s32", "s32", "s16"]))
    sums = IntegerSums(fmt)
    if rng.random() < 0.6:
        lanes, stride = int(rng.choice([2, 2, 2, 3, 4, 8])), int(rng.choice([1, 1, 1, 2, 4, 16]))
        made: Any = str(rng.choice(["saturate", "saturate", "saturate", "wrap"]))
        groups = LaneGroups(lanes, stride, "s8" if a == "s4" else "s16", made)
        sums = replace(sums, groups=groups)
        if rng.random() < 0.3 and a == "s8":
            sums = replace(sums, offset_a=128)
    if rng.random() < 0.3 and fmt == "s16":
        sums = replace(sums, overflow="saturate")
        if rng.random() < 0.5:
            sums = replace(sums, every=sums.block * int(rng.choice([1, 2, 4])))
    if rng.random() < 0.3:
        zeros: Any = str(rng.choice(["before", "after"])) if sums.ordered else "before"
        marks = (str(int(rng.integers(ends(each)[0], ends(each)[1] + 1))) for each in (a, b))
        sums = replace(sums, zero_a=(next(marks),), zero_b=(next(marks),), zeros=zeros)
    if not sums.ordered:
        sums = replace(sums, offset_a=0, zeros="before")
    return integer_schedule(a, b, fmt, sums)


def drawn_rescaled(rng: np.random.Generator) -> Schedule:
    """A random one whose D is u8, s8 or f32."""
    made = drawn_sums(rng)
    while made.a == "s4" or made.d != "s32" or made.a == "s16":
        made = drawn_sums(rng)
    d = str(rng.choice(["u8", "s8", "f32"]))
    scale = scale_word(float(np.ldexp(1 + rng.random() if rng.random() < 0.7 else 1.0, int(rng.integers(-16, -6)))))
    rule = Rescale((scale,))
    if d != "f32":
        low, high = ends(d)
        rounding: Any = str(rng.choice(["even", "even", "away", "up", "down", "zero"]))
        added: Any = str(rng.choice(["after", "before"]))
        rule = replace(rule, rounding=rounding, zero=str(int(rng.integers(low // 2, high // 2))), zero_added=added)
        if rng.random() < 0.3:
            rule = Rescale(
                (str(int(rng.integers(1 << 30, 1 << 31))),), "fixed", int(rng.integers(7, 14)), "away", rule.zero
            )
        if rng.random() < 0.2:
            rule = replace(rule, lowest=int(rule.zero))
    assert made.integers is not None
    return replace(made, d=d, integers=replace(made.integers, rescale=rule))


def drawn_biased(rng: np.random.Generator, n: int = 1) -> Schedule:
    """A random one, rescaled or not, with a bias: one number, or one for each of ``n`` columns."""
    made = (drawn_rescaled if rng.random() < 0.5 else drawn_sums)(rng)
    sums = made.integers
    assert sums is not None
    count = n if rng.random() < 0.5 else 1
    if sums.rescale is not None and sums.rescale.by == "f32" and rng.random() < 0.4:
        added: Any = str(rng.choice(["before", "after"]))
        size = 2.0 ** (8 if added == "before" else -1 if made.d == "f32" else 5)
        biases = tuple(scale_word(float(each)) for each in size * rng.standard_normal(count))
        return replace(
            made, integers=replace(sums, rescale=replace(sums.rescale, bias=biases, bias_added=added))
        )  # fmt: skip
    most = 1 << int(rng.integers(3, min(int(sums.format[1:]), 18) - 1))
    words = tuple(str(each) for each in rng.integers(-most, most, count, endpoint=True))
    return replace(made, integers=replace(sums, bias=words))
