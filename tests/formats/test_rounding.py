"""Encoding: every rounding and overflow rule against written-out tables, Fractions, ml_dtypes, gfloat, NumPy casts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gfloat import RoundMode, encode_float, round_float
from hypothesis import example, given
from hypothesis import strategies as st

from mmaprobe import formats
from oracle import numbers as oracle
from second_source.formats import BYTES, FLOATS, GFLOAT, INTEGERS, ML_DTYPES, SHORT

GFLOAT_ROUNDINGS = {
    "RZ": RoundMode.TowardZero, "RD": RoundMode.TowardNegative, "RU": RoundMode.TowardPositive,
    "RNE": RoundMode.TiesToEven, "RNA": RoundMode.TiesToAway,
}  # fmt: skip

# --- encode: every rounding around every code

# where a value lies between two neighbouring codes, in eighths of the gap
POSITIONS = {"on": 0, "just above": 1, "quarter": 2, "below half": 3, "half": 4, "above half": 5, "three quarters": 6}


def expected_step(rounding: str, position: int, negative: bool, lower_code: np.ndarray) -> Any:
    """Whether the magnitude goes to the upper neighbour: the rounding tables, written out."""
    odd = (lower_code & 1) == 1
    if position == 0:
        return np.zeros(lower_code.shape, bool)
    if rounding == "RO":
        return ~odd
    if rounding in ("RU", "RD", "RZ", "RA"):
        return np.full(lower_code.shape, {"RU": not negative, "RD": negative, "RZ": False, "RA": True}[rounding])
    if position != 4:
        return np.full(lower_code.shape, position > 4)
    fixed = {"RNU": not negative, "RND": negative, "RNZ": False, "RNA": True}
    return {"RNE": odd, "RNO": ~odd}[rounding] if rounding not in fixed else np.full(odd.shape, fixed[rounding])


def beyond(fmt: formats.Format, rounding: str, negative: bool, overflow: str) -> int:
    """Code (without sign) of a magnitude that rounded above the largest finite one."""
    special = fmt.infinity_code if fmt.infinity_code is not None else fmt.nan_code
    inward = rounding in ("RZ", "RO") or (rounding, negative) in (("RU", True), ("RD", False))
    if special is None or overflow == "largest" or (overflow == "ieee" and inward):
        return fmt.largest
    return special


@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
@pytest.mark.parametrize("name", SHORT)
def test_every_rounding_in_every_gap(name: str, rounding: str) -> None:
    """All finite codes, the gap below the smallest and the gap above the largest, both signs, 3 overflow rules."""
    fmt = formats.get(name)
    lower = np.arange((fmt.largest >> fmt.padding) + 1, dtype=np.int64)
    decoded = formats.decode(fmt, lower.astype(fmt.dtype))
    for position in POSITIONS.values():
        significand, exponent = decoded.significand * 8 + position, decoded.exponent - 3
        for negative in (False, True) if fmt.signed else (False,):
            upper = expected_step(rounding, position, negative, lower)
            for overflow in ("ieee", "infinity", "largest"):
                top = slice(None) if overflow == "ieee" else slice(-16, None)
                code = (lower + upper)[top]
                code = np.where(code > lower[-1], beyond(fmt, rounding, negative, overflow), code)
                sign = fmt.sign_mask if negative else 0
                want = np.where((code == 0) & (fmt.nan == "negative_zero"), 0, code | sign)
                signs = np.full(code.shape, negative)
                got = formats.encode(fmt, signs, significand[top], exponent[top], rounding, overflow)
                assert (got == want).all(), (position, negative, overflow)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
@pytest.mark.parametrize("name", BYTES)
def test_every_rounding_as_fractions(name: str, rounding: str) -> None:
    """Every gap of the 8-bit and narrower formats against exact comparison of Fractions, far overflow included."""
    fmt = formats.get(name)
    lower = np.arange(fmt.largest + 1, dtype=np.uint8)
    decoded = formats.decode(fmt, lower)
    offsets = np.array([0, 1, 1 << 8, (1 << 9) - 1, 1 << 9, (1 << 9) + 1, 3 << 8, (1 << 10) - 1])
    significand = (decoded.significand[:, None] * 1024 + offsets).ravel()
    exponent = np.repeat(decoded.exponent - 10, offsets.size)
    far = np.array([1, 3, 1, 1])
    significand = np.concatenate([significand, far])
    exponent = np.concatenate([exponent, np.array([-300, -200, 200, 4000])])
    for negative in (False, True) if fmt.signed else (False,):
        for overflow in ("ieee", "infinity", "largest") if rounding in ("RNE", "RZ", "RU") else ("ieee",):
            got = formats.encode(fmt, np.full(significand.shape, negative), significand, exponent, rounding, overflow)
            for s, e, code in zip(significand.tolist(), exponent.tolist(), got.tolist(), strict=True):
                value = s * Fraction(2) ** e * (-1 if negative else 1)
                assert code == oracle.encode_value(name, value, negative, rounding, overflow), (value, overflow)


@pytest.mark.parametrize("rounding", GFLOAT_ROUNDINGS)
@pytest.mark.parametrize("name", GFLOAT)
def test_every_rounding_as_gfloat(name: str, rounding: str) -> None:
    """Every gap of the narrow formats, one in 101 of f16 and bf16."""
    fmt, info = formats.get(name), GFLOAT[name]
    stride = 1 if name in BYTES else 101
    lower = np.arange(1 if fmt.subnormal else 0, fmt.largest, stride, dtype=fmt.dtype)
    decoded = formats.decode(fmt, lower)
    for position in POSITIONS.values():
        significand, exponent = decoded.significand * 8 + position, decoded.exponent - 3
        for negative in (False, True) if fmt.signed else (False,):
            got = formats.encode(fmt, np.full(lower.shape, negative), significand, exponent, rounding)
            values = np.ldexp(significand.astype(np.float64), exponent) * (-1 if negative else 1)
            for value, code in zip(values.tolist(), got.tolist(), strict=True):
                assert code == encode_float(info, round_float(info, value, GFLOAT_ROUNDINGS[rounding]))


# --- encode: casts of other libraries


@pytest.mark.parametrize("name", [name for name in ML_DTYPES if name != "f16"])
def test_casts_of_ml_dtypes(name: str) -> None:
    """f32 samples around every exponent of the format, RNE; overflow goes where ml_dtypes sends it.

    ue8m0: ml_dtypes takes ties to the larger power (gfloat and we: to the even code).
    """
    fmt = formats.get(name)
    rng = np.random.default_rng(4)
    fields = rng.integers(max(1, fmt.min_exponent + 127 - 14), min(255, fmt.max_exponent + 127 + 4), 1 << 16)
    codes = (fields.astype(np.uint32) << 23) | rng.integers(0, 1 << 23, 1 << 16, dtype=np.uint32)
    codes[::4] &= 0xFFF00000  # short fractions: ties
    codes[::2] |= 0x80000000 if fmt.signed else 0
    decoded = formats.decode(formats.get("f32"), codes)
    rounding = "RNA" if name == "ue8m0" else "RNE"
    got = formats.encode(fmt, decoded.negative, decoded.significand, decoded.exponent, rounding)
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = codes.view(np.float32).astype(ML_DTYPES[name]).view(fmt.dtype)
    assert (got == theirs).all()


@pytest.mark.parametrize(("wide", "name", "dtype"), [("f64", "f32", np.float32), ("f64", "f16", np.float16)])
def test_casts_of_numpy(wide: str, name: str, dtype: Any) -> None:
    fmt = formats.get(name)
    rng = np.random.default_rng(5)
    low, high = fmt.min_exponent - fmt.fraction_bits - 2 + 1023, fmt.max_exponent + 3 + 1023
    codes = rng.integers(low, high, 1 << 17).astype(np.uint64) << np.uint64(52)
    codes |= rng.integers(0, 1 << 52, 1 << 17, dtype=np.uint64)
    codes[::3] &= np.uint64(~((1 << (52 - fmt.fraction_bits - 1)) - 1) & (2**64 - 1))  # ties
    codes[::2] |= np.uint64(1 << 63)
    decoded = formats.decode(formats.get(wide), codes)
    got = formats.encode(fmt, decoded.negative, decoded.significand, decoded.exponent)
    with np.errstate(over="ignore"):
        theirs = codes.view(np.float64).astype(dtype).view(fmt.dtype)
    assert (got == theirs).all()


@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
@pytest.mark.parametrize("name", ["tf32", "e8m13", "f32", "f64"])
def test_wide_formats_as_fractions(name: str, rounding: str) -> None:
    """Samples near midpoints, subnormals and the largest value, as Python ints, against exact comparison."""
    fmt = formats.get(name)
    rng = np.random.default_rng(6)
    low = rng.integers(0, fmt.largest >> fmt.padding, 60, dtype=np.uint64)
    low[:6] = [0, 1, fmt.largest >> fmt.padding, (fmt.largest >> fmt.padding) - 1, 1 << fmt.fraction_bits, 2]
    decoded = formats.decode(fmt, low << np.uint64(fmt.padding))
    offset = rng.choice([0, 1, 1 << 18, (1 << 19) - 1, 1 << 19, (1 << 19) + 1, 3 << 18, (1 << 20) - 1], 60)
    significand = decoded.significand.astype(object) * (1 << 20) + offset.astype(object)
    exponent = decoded.exponent - 20
    negative = rng.integers(0, 2, 60).astype(bool)
    got = formats.encode(fmt, negative, significand, exponent, rounding)
    for s, e, sign, code in zip(significand, exponent.tolist(), negative.tolist(), got.tolist(), strict=True):
        value = s * Fraction(2) ** e * (-1 if sign else 1)
        assert code == oracle.encode_value(name, value, sign, rounding), value


# --- encode: integers, unsigned formats, object arrays


@pytest.mark.sampled(9)
@pytest.mark.parametrize("overflow", ["wrap", "largest"])
@pytest.mark.parametrize("name", INTEGERS)
@given(data=st.data())
def test_integers_wrap_or_saturate(name: str, overflow: str, data: st.DataObject) -> None:
    fmt = formats.get(name)
    near = [0, 1, fmt.largest, fmt.largest + 1, 2 * fmt.largest + 1, 2 * fmt.largest + 2, 2 * fmt.largest + 3]
    size = data.draw(st.sampled_from(near) | st.integers(0, 1 << 60))
    exponent = data.draw(st.sampled_from([0, 0, 0, -1, -2, 3]))
    negative = data.draw(st.booleans())
    rounding = data.draw(st.sampled_from(formats.ROUNDINGS))
    wide = np.array([size], object) if exponent > 0 or size >= 1 << 61 else np.array([size], np.int64)
    got = formats.encode(fmt, np.array([negative]), wide, np.array([exponent]), rounding, overflow)
    value = size * Fraction(2) ** exponent * (-1 if negative else 1)
    if fmt.kind == "magnitude" and value == 0:
        return
    assert int(got[0]) == oracle.encode_value(name, value, negative, rounding, overflow)


def test_values_without_a_code_become_nan() -> None:
    """Negative in an unsigned format, zero in one without zero (as ml_dtypes and gfloat have it)."""
    ue8m0, ue4m3 = formats.get("ue8m0"), formats.get("ue4m3")
    assert formats.encode(ue8m0, np.array([False, True]), np.array([0, 1]), np.array([0, 0])).tolist() == [255, 255]
    negative = formats.encode(ue4m3, np.array([True, True]), np.array([1, 0]), np.array([0, 0]))
    assert negative.tolist() == [0x7F, 0]
    with np.errstate(invalid="ignore"):
        theirs = np.array([0, -1], np.float32).astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)
    assert theirs.tolist() == [255, 255]


@given(
    name=st.sampled_from(FLOATS),
    rounding=st.sampled_from(formats.ROUNDINGS),
    overflow=st.sampled_from(["ieee", "infinity", "largest"]),
    numbers=st.lists(
        st.tuples(st.booleans(), st.integers(0, 61).flatmap(lambda n: st.integers(0, (1 << n) - 1)),
                  st.integers(-1200, 1200)), min_size=1, max_size=20),
)  # fmt: skip
def test_object_arrays_take_the_same_path(
    name: str, rounding: str, overflow: str, numbers: list[tuple[bool, int, int]]
) -> None:
    fmt = formats.get(name)
    negative, significand, exponent = (np.array(column) for column in zip(*numbers, strict=True))
    narrow = formats.encode(fmt, negative, significand.astype(np.int64), exponent, rounding, overflow)
    wide = formats.encode(fmt, negative, significand.astype(object), exponent, rounding, overflow)
    assert (narrow == wide).all()
    assert narrow.dtype == wide.dtype == fmt.dtype


@given(
    value=st.integers(0, 61).flatmap(lambda n: st.integers(0, (1 << n) - 1)), shift=st.integers(-2, 70),
    negative=st.booleans(), rounding=st.sampled_from(formats.ROUNDINGS),
)  # fmt: skip
def test_shift_right_is_exact_rounding(value: int, shift: int, negative: bool, rounding: str) -> None:
    size = value >> 2 if shift < 0 else value
    exact = oracle.round_to_multiple(Fraction(-size if negative else size), shift, rounding) / Fraction(2) ** shift
    for dtype in (np.int64, object):
        got = formats.shift_right(np.array([size], dtype), np.array([shift]), np.array([negative]), rounding)
        assert int(got[0]) == abs(exact)


@given(st.lists(st.integers(0, 61).flatmap(lambda n: st.integers(0, (1 << n) - 1)), min_size=1))
@example([(1 << n) - less for n in range(1, 61) for less in (0, 1)])
def test_bit_length(values: list[int]) -> None:
    want = [v.bit_length() for v in values]
    assert formats.bit_length(np.array(values, np.int64)).tolist() == want
    assert formats.bit_length(np.array(values, object)).tolist() == want
