"""Number formats: layouts and decoding against ml_dtypes, gfloat, NumPy and first principles; round trips."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from gfloat import decode_float

from mmaprobe import formats
from mmaprobe.errors import UsageError
from oracle import numbers as oracle
from second_source.formats import FLOATS, GFLOAT, INTEGERS, ML_DTYPES, SHORT


def values_of(decoded: formats.Decoded) -> np.ndarray:
    """float64 values of a decoded array (exact below 53 significant bits), infinities and NaN included."""
    value = np.ldexp(decoded.significand.astype(np.float64), decoded.exponent)
    value = np.where(decoded.kind == formats.INFINITE, np.inf, value)
    value = np.where(decoded.kind == formats.NAN, np.nan, value)
    return np.where(decoded.negative, -value, value)


def all_codes(name: str) -> np.ndarray:
    fmt = formats.get(name)
    return np.arange(1 << fmt.bits, dtype=np.uint64).astype(fmt.dtype) << fmt.padding


def same_values(x: np.ndarray, y: np.ndarray) -> bool:
    """Equal bit for bit but for the payload of NaN."""
    nan = np.isnan(x)
    return bool((nan == np.isnan(y)).all() and (x[~nan].view(np.uint64) == y[~nan].view(np.uint64)).all())


# --- layout


def test_unknown_format_lists_near_names() -> None:
    with pytest.raises(UsageError, match=r"did you mean.*e4m3"):
        formats.get("e4m4")


def test_every_format_of_the_plan_is_there() -> None:
    names = "f64 f32 tf32 f16 bf16 e5m2 e4m3 e5m2fnuz e4m3fnuz e3m2 e2m3 e2m1 ue8m0 ue4m3 ue5m3 e8m13"
    integers = "s8 u8 s16 u16 s4 u4 b1 s32 u32 s64 ti16"
    assert sorted(formats.FORMATS) == sorted(f"{names} {integers}".split())
    assert all(fmt.name == name for name, fmt in formats.FORMATS.items())


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("e5m10f", (16, 15, 0x7FFF, None, None)), ("e5m2f", (8, 15, 0x7F, None, None)),
        ("e3m4ieee", (8, 3, 0x6F, 0x70, 0x78)), ("e5m6fn", (12, 15, 0x7FE, None, 0x7FF)),
        ("e4m3b11fnuz", (8, 11, 0x7F, None, 0x80)), ("ue4m4f", (8, 7, 0xFF, None, None)),
        ("e11m52f", (64, 1023, 0x7FFF_FFFF_FFFF_FFFF, None, None)), ("e1m2b1f", (4, 1, 0x7, None, None)),
        ("e4m3b16f", (8, 16, 0x7F, None, None)), ("e4m3b22fn", (8, 22, 0x7E, None, 0x7F)),
        ("e5m2b2046ieee", (8, 2046, 0x7B, 0x7C, 0x7E)),
    ],
)  # fmt: skip
def test_a_name_declares_a_format(name: str, layout: tuple[Any, ...]) -> None:
    fmt = formats.get(name)
    assert (fmt.bits, fmt.bias, fmt.largest, fmt.infinity_code, fmt.nan_code) == layout
    assert fmt.name == name
    assert name not in formats.FORMATS
    assert formats.get(name) is fmt


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("e5m10ieee", "format e5m10ieee is called f16"), ("e4m3fn", "format e4m3fn is called e4m3"),
        ("e3m2f", "format e3m2f is called e3m2"), ("e5m2b16fnuz", "is called e5m2fnuz"),
        ("e5m10b15f", "format e5m10b15f is called e5m10f"), ("ue8m0fn", "is called ue8m0"),
        ("e12m3f", "12 exponent and 3 fraction bits; a format can have 1 to 11 and 1 to 52"),
        ("e5m53f", "1 to 11 and 1 to 52"), ("e5m0f", "1 to 11 and 1 to 52"), ("ue5m3ieee", "ends with f or fn"),
        ("e1m2f", "a bias of 0 leaves no code for 1"), ("ue4m3b16f", "a bias of 16 leaves no code for 1"),
        ("e4m3b2047f", "a bias of 2047; a format can have 2046"), ("e4m3b9999f", "a bias of 9999"),
        ("e05m10f", "unknown format 'e05m10f'"), ("e5m10", "unknown format 'e5m10'"),
        ("e5m10b015f", "unknown format"), ("e5m10f ", "unknown format"), ("E5M10F", "unknown format"),
        (None, "unknown format None"), (["e5m10f"], "unknown format"), ("e" + "9" * 5000 + "m3f", "unknown format"),
    ],
)  # fmt: skip
def test_a_name_that_declares_none_is_refused_in_words(name: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        formats.get(name)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", FLOATS)
def test_derived_codes(name: str) -> None:
    fmt = formats.get(name)
    assert fmt.largest == oracle.largest_code(name) << fmt.padding
    assert fmt.min_exponent == oracle.lowest_exponent(name)
    assert fmt.max_exponent == oracle.floor_log2(oracle.finite(name, oracle.largest_code(name)))
    assert fmt.infinity_code == oracle.infinity_code(name, False)
    one = min(0, fmt.max_exponent)
    assert oracle.decode(name, fmt.one) == oracle.Num(Fraction(2) ** one, False, one)
    if fmt.nan_code is None:
        assert not any(isinstance(oracle.decode(name, code), oracle.Nan) for code in range(1 << fmt.bits))
    else:
        assert isinstance(oracle.decode(name, fmt.nan_code), oracle.Nan)
    if fmt.signed:
        assert oracle.decode(name, fmt.one | fmt.sign_mask) == oracle.Num(-(Fraction(2) ** one), True, one)


# --- decode


@pytest.mark.parametrize("name", ML_DTYPES)
def test_decode_every_code_as_ml_dtypes(name: str) -> None:
    codes = all_codes(name)
    with np.errstate(invalid="ignore"):
        theirs = codes.view(ML_DTYPES[name]).astype(np.float64)
    assert same_values(values_of(formats.decode(formats.get(name), codes)), theirs)


@pytest.mark.parametrize("name", ["tf32", "e8m13"])
def test_decode_every_code_as_padded_f32(name: str) -> None:
    """All 2**19 (2**22) codes, with the padding bits set at random: they are dropped."""
    fmt = formats.get(name)
    codes = all_codes(name)
    with np.errstate(invalid="ignore"):
        theirs = codes.view(np.float32).astype(np.float64)
    noise = np.random.default_rng(1).integers(0, 1 << fmt.padding, codes.shape, dtype=np.uint32)
    assert same_values(values_of(formats.decode(fmt, codes | noise)), theirs)


@pytest.mark.parametrize(("name", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_decode_samples_as_numpy(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    fmt = formats.get(name)
    codes = rng.integers(0, 1 << fmt.bits, 1 << 18, dtype=np.uint64, endpoint=False).astype(fmt.dtype)
    edges = np.array([0, 1, fmt.largest, fmt.infinity_code, fmt.nan_code, fmt.quiet_bit], dtype=np.uint64)
    codes[:12] = np.concatenate([edges, edges | np.uint64(fmt.sign_mask)]).astype(fmt.dtype)
    with np.errstate(invalid="ignore"):
        theirs = codes.view(dtype).astype(np.float64)
    assert same_values(values_of(formats.decode(fmt, codes)), theirs)


@pytest.mark.parametrize("name", GFLOAT)
def test_decode_every_code_as_gfloat(name: str) -> None:
    codes = all_codes(name)
    theirs = np.array([decode_float(GFLOAT[name], int(code)).fval for code in codes])
    assert same_values(values_of(formats.decode(formats.get(name), codes)), theirs)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*SHORT, *(n for n in INTEGERS if formats.get(n).bits <= 16)])
def test_decode_every_code_as_oracle(name: str) -> None:
    fmt = formats.get(name)
    codes = all_codes(name)
    got = formats.decode(fmt, codes)
    for i, code in enumerate(codes.tolist()):
        want = oracle.decode(name, code)
        if isinstance(want, oracle.Nan):
            assert got.kind[i] == formats.NAN
        elif isinstance(want, oracle.Inf):
            assert (got.kind[i], got.negative[i]) == (formats.INFINITE, want.negative)
        else:
            size = int(got.significand[i]) * Fraction(2) ** int(got.exponent[i])
            assert (-size if got.negative[i] else size, got.negative[i]) == (want.value, want.negative)
            if fmt.is_float and size:
                assert int(got.exponent[i]) + fmt.fraction_bits == want.label


def test_ue4m3_ignores_the_top_bit() -> None:
    codes = np.arange(256, dtype=np.uint8)
    low, e4m3 = formats.decode(formats.get("ue4m3"), codes), formats.decode(formats.get("e4m3"), codes & 0x7F)
    for ours, theirs in zip(low, e4m3, strict=True):
        assert (ours == theirs).all()
    assert formats.get("ue4m3").code_limit == 256, "a code with the top bit set is taken, not refused"


def test_wide_integers() -> None:
    codes = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32)
    got = formats.decode(formats.get("s32"), codes)
    assert values_of(got).tolist() == [0, 1, 2**31 - 1, -(2**31), -1]
    wide = np.array([0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], np.uint64)
    got = formats.decode(formats.get("s64"), wide)
    assert got.significand.tolist() == [0, 1, 2**63 - 1, 2**63, 1]
    assert got.negative.tolist() == [False, False, False, True, True]
    assert formats.encode(formats.get("s64"), got.negative, got.significand, got.exponent).tolist() == wide.tolist()


@pytest.mark.parametrize(
    ("base", "by", "name"),
    [
        ("e4m3", 5, "e4m3b12fn"), ("e4m3", 127, "e4m3b134fn"), ("e5m2", 15, "e5m2b30ieee"), ("e2m1", 3, "e2m1b4f"),
        ("e4m3fnuz", 3, "e4m3b11fnuz"), ("f16", 2031, "e5m10b2046ieee"), ("ue5m3", 9, "ue5m3b24fn"),
    ],
)  # fmt: skip
def test_a_larger_bias_makes_every_number_smaller(base: str, by: int, name: str) -> None:
    """The same specials and signs, and 2**-by times the number of every code, subnormals too."""
    made = formats.downscaled(formats.get(base), by)
    assert made.name == name
    own, other = (formats.decode(formats.get(fmt), all_codes(base)) for fmt in (name, base))
    for x, y in ((own.kind, other.kind), (own.negative, other.negative), (own.significand, other.significand)):
        assert (x == y).all()
    assert (own.exponent == other.exponent - by).all()


@pytest.mark.parametrize(
    ("base", "by", "said"),
    [
        ("s8", 1, "no name declares it"), ("tf32", 1, "no name declares it"), ("ue4m3", 1, "no name declares it"),
        ("e4m3", 2040, "a bias of 2047"), ("ue8m0", 200, "no code for 1"),
    ],
)  # fmt: skip
def test_what_is_not_scaled_down(base: str, by: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        formats.downscaled(formats.get(base), by)


# --- encode: round trip


@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
@pytest.mark.parametrize("name", SHORT)
def test_round_trip_of_every_code(name: str, rounding: str) -> None:
    fmt = formats.get(name)
    codes = all_codes(name)
    got = formats.decode(fmt, codes)
    keep = got.kind < formats.INFINITE
    back = formats.encode(fmt, got.negative[keep], got.significand[keep], got.exponent[keep], rounding)
    assert (back == codes[keep]).all()
    assert back.dtype == fmt.dtype


@pytest.mark.parametrize("name", ["tf32", "e8m13", "f32", "f64"])
def test_round_trip_of_sampled_codes(name: str) -> None:
    fmt = formats.get(name)
    codes = np.random.default_rng(3).integers(0, 1 << fmt.bits, 1 << 16, dtype=np.uint64).astype(fmt.dtype)
    codes = codes << fmt.padding
    got = formats.decode(fmt, codes)
    keep = got.kind < formats.INFINITE
    for rounding in formats.ROUNDINGS:
        back = formats.encode(fmt, got.negative[keep], got.significand[keep], got.exponent[keep], rounding)
        assert (back == codes[keep]).all()


@pytest.mark.parametrize("name", INTEGERS)
def test_round_trip_of_integers(name: str) -> None:
    fmt = formats.get(name)
    step = 65521 << (fmt.bits - 32) if fmt.bits > 16 else 1
    codes = (np.arange(65536, dtype=np.uint64) * np.uint64(step)).astype(fmt.dtype) if step > 1 else all_codes(name)
    if fmt.kind == "magnitude":
        codes = codes[(codes & 0x7800) == 0]
    got = formats.decode(fmt, codes)
    back = formats.encode(fmt, got.negative, got.significand, got.exponent)
    negative_zero = got.negative & (got.significand == 0)
    assert (back == codes)[~negative_zero].all()


@pytest.mark.parametrize("name", [name for name, fmt in formats.FORMATS.items() if fmt.is_float])
def test_what_is_a_nan_or_a_zero_is_what_decoding_says(name: str) -> None:
    """Every code of up to 16 bits; of wider ones those at all ends, and random ones."""
    fmt = formats.get(name)
    rng = np.random.default_rng(5)
    if fmt.container_bits <= 16:
        codes = np.arange(min(fmt.code_limit, 1 << fmt.container_bits)).astype(fmt.dtype)
    else:
        ends = [0, fmt.sign_mask, fmt.infinity_code or 0, fmt.nan_code or 0, fmt.largest, 1, fmt.code_limit - 1]
        near = [(code + step) % fmt.code_limit for code in ends for step in (-1, 0, 1)]
        codes = np.array([*near, *rng.integers(0, fmt.code_limit, 4000, np.uint64).tolist()], np.uint64).astype(
            fmt.dtype
        )
    kind = formats.decode(fmt, codes).kind
    np.testing.assert_array_equal(formats.is_nan(fmt, codes), kind == formats.NAN)
    np.testing.assert_array_equal(formats.is_zero(fmt, codes), kind == formats.ZERO)
