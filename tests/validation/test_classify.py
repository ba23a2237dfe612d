"""How two answers differ, in words: every pair of codes of small formats against exact values, wide ones by chance."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.validation.classify import kinds

SMALL = ["e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e3m2", "e2m3", "e2m1", "ue4m3", "ue8m0"]


def values(fmt: Format) -> list[Fraction | str]:
    """The value of every code; ``nan``, ``inf`` and ``-inf`` as words."""
    found = formats.decode(fmt, np.arange(fmt.code_limit, dtype=fmt.dtype))
    return [
        "nan" if kind == formats.NAN else ("-inf" if minus else "inf") if kind == formats.INFINITE
        else (-1) ** int(minus) * int(size) * Fraction(2) ** int(exponent)
        for kind, minus, exponent, size in zip(*found, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_every_pair_of_small_formats(name: str) -> None:
    """Ulps are the steps between two values among all that the format has."""
    fmt = formats.get(name)
    every = values(fmt)
    steps = {value: step for step, value in enumerate(sorted({v for v in every if isinstance(v, Fraction)}))}
    for one, other in product(range(0, fmt.code_limit, 5), range(1, fmt.code_limit, 3)):
        x, y = every[one], every[other]
        said = kinds(fmt, one, other)
        if one == other:
            assert said == ()
            continue
        assert said[1:] == (
            (f"one bit (bit {(one ^ other).bit_length() - 1})",) if (one ^ other).bit_count() == 1 else ()
        )
        if isinstance(x, Fraction) and isinstance(y, Fraction):
            ulps = abs(steps[x] - steps[y])
            words = f"{ulps} ulp{'s' if ulps > 1 else ''}" if ulps else "ignored bits" if x else "sign of zero"
            assert said[0] == words or (not ulps and fmt.ignored_high and said[0] == "ignored bits")
        elif x == y == "nan":
            assert said[0] == "NaN code"
        else:
            assert said[0].startswith("special: ")


@pytest.mark.parametrize(("name", "answer", "expected", "said"), [
    ("f32", 0x3F800001, 0x3F800000, ("1 ulp", "one bit (bit 0)")),
    ("f32", 0x3F7FFFFF, 0x3F800000, ("1 ulp",)),
    ("f32", 0x80000001, 0x00000001, ("2 ulps", "one bit (bit 31)")),
    ("f32", 0x80000000, 0x00000000, ("sign of zero", "one bit (bit 31)")),
    ("f32", 0x7FC00000, 0x7FFFFFFF, ("NaN code",)),
    ("f32", 0x7F800000, 0x7F7FFFFF, ("special: infinity for a number",)),
    ("f32", 0x3F800000, 0x7F800000, ("special: a number for infinity", "one bit (bit 30)")),
    ("f32", 0xFF800000, 0x7F800000, ("special: the other infinity", "one bit (bit 31)")),
    ("f32", 0x7FC00000, 0x7F800000, ("special: NaN for infinity", "one bit (bit 22)")),
    ("tf32", 0x3F800001, 0x3F800000, ("ignored bits", "one bit (bit 0)")),
    ("tf32", 0x3F802000, 0x3F800000, ("1 ulp", "one bit (bit 13)")),
    ("s32", 0xFFFFFFFF, 0x00000001, ("difference -2",)),
    ("s32", 0x80000000, 0x7FFFFFFF, ("difference -4,294,967,295",)),
    ("u32", 0xFFFFFFFF, 0x00000001, ("difference +4,294,967,294",)),
    ("s64", 1 << 63, 0, ("difference -9,223,372,036,854,775,808", "one bit (bit 63)")),
])  # fmt: skip
def test_words(name: str, answer: int, expected: int, said: tuple[str, ...]) -> None:
    assert kinds(formats.get(name), answer, expected) == said


@given(st.sampled_from(["f16", "bf16", "f32", "f64"]), st.data())
def test_ulps_of_wide_formats(name: str, data: st.DataObject) -> None:
    """Neighbours are one ulp apart, distances add up, and the order of the two answers does not matter."""
    fmt = formats.get(name)
    codes = st.integers(0, fmt.largest)
    low, middle, high = sorted(data.draw(st.tuples(codes, codes, codes)))
    minus = low | fmt.sign_mask
    assert ulps(fmt, low, middle) + ulps(fmt, middle, high) == ulps(fmt, low, high)
    assert ulps(fmt, minus, high) == low + high == ulps(fmt, high, minus)
    if high < fmt.largest:
        assert kinds(fmt, high, high + 1)[0] == "1 ulp"


def ulps(fmt: Format, one: int, other: int) -> int:
    said = (*kinds(fmt, one, other), "0 ulps")[0]
    return 0 if said == "sign of zero" else int(said.split()[0].replace(",", ""))


@given(st.sampled_from(["s8", "u8", "s32", "u32", "s64"]), st.data())
def test_differences_of_integers(name: str, data: st.DataObject) -> None:
    fmt = formats.get(name)
    one, other = data.draw(st.tuples(*[st.integers(0, fmt.code_limit - 1)] * 2))
    half = fmt.code_limit // 2 if fmt.signed else fmt.code_limit
    x, y = (code - fmt.code_limit if code >= half else code for code in (one, other))
    assert kinds(fmt, one, other)[:1] == ((f"difference {x - y:+,}",) if one != other else ())
