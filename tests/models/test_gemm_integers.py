"""Sums of integers by a schedule: the model against the oracle's Python integers, and what the record refuses."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mmaprobe
from cases.integer_schedules import drawn_biased, drawn_rescaled, drawn_sums, integer_schedule
from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.parameters.epilogue import Input
from mmaprobe.parameters.integer_sums import IntegerSums, LaneGroups, Rescale, scale_number, scale_word
from mmaprobe.parameters.quantised import Quantised
from mmaprobe.parameters.schedule import Schedule, Scope, from_text, to_text
from mmaprobe.parameters.table import write_record
from oracle import integer_gemm as oracle

PAIRS = IntegerSums("s32", groups=LaneGroups(2))


def codes(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> Any:
    """Random codes, half of them the ends of the format."""
    fmt = formats.get(name)
    every = rng.integers(0, fmt.code_limit, shape)
    ends = rng.choice([fmt.largest, (fmt.largest + 1) % fmt.code_limit], shape)
    return np.where(rng.random(shape) < 0.5, ends, every).astype(fmt.dtype)


def same(made: Schedule, shape: tuple[int, int, int], rng: np.random.Generator) -> bool:
    m, n, k = shape
    a, b, table = codes(rng, made.a, (m, k)), codes(rng, made.b, (k, n)), write_record(made)
    d = mmaprobe.gemm(made)(a, b)
    wanted = [[oracle.element(table, a[i], b[:, j], j) for j in range(n)] for i in range(m)]
    return d.tolist() == wanted


@pytest.mark.sampled(8)
@pytest.mark.parametrize("number", range(60))
def test_the_model_is_the_oracle_in_python_integers(number: int) -> None:
    rng = np.random.default_rng(number)
    made = (drawn_rescaled if number % 2 else drawn_sums)(rng)
    for k in (1, 2, 7, 33, 70):
        assert same(made, (3, 4, k), rng), to_text(made)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(24))
def test_the_model_is_the_oracle_where_there_is_a_bias(number: int) -> None:
    rng = np.random.default_rng(100 + number)
    made = drawn_biased(rng, 4)
    for k in (1, 6, 33):
        assert same(made, (3, 4, k), rng), to_text(made)


def test_c_and_a_bias_are_added_before_the_sum_wraps_saturates_or_is_rescaled() -> None:
    rng = np.random.default_rng(2)
    a, b = codes(rng, "u8", (5, 9)), codes(rng, "s8", (9, 4))
    c = codes(rng, "s32", (5, 4)).view(np.int32)
    rows = rng.integers(-1 << 31, 1 << 31, 5).astype(np.int32)
    for overflow, d in itertools.product(("wrap", "saturate"), ("s32", "u8")):
        rule = None if d == "s32" else Rescale(("0x1.8p-25",), zero="100")
        sums: Any = IntegerSums("s32", overflow, bias=("by_row",), rescale=rule)
        made = Schedule(
            "u8", "s8", d, Scope("none"), c="s32", inputs=(Input("by_row", "s32", "row"),), integers=sums
        )  # fmt: skip
        assert from_text(to_text(made), "x.toml") == made
        found, table = mmaprobe.gemm(made)(a, b, c, by_row=rows), write_record(made)
        without = mmaprobe.gemm(made)(a, b, by_row=rows, rows=slice(2, 3))
        for i, j in itertools.product(range(5), range(4)):
            given = {"by_row": int(rows[i]), "c": int(c[i, j])}
            wanted = oracle.element(table, a[i], b[:, j], j, given)
            assert int(found[i, j]) % (1 << int(d[1:])) == wanted
            if i == 2:
                del given["c"]
                assert int(without[0, j]) % (1 << int(d[1:])) == oracle.element(table, a[i], b[:, j], j, given)


@pytest.mark.parametrize("of", ["matrix", "row"])
@pytest.mark.parametrize("by", ["divide", "multiply"])
@pytest.mark.parametrize("rounding", ["even", "away"])
def test_an_a_of_f32_is_quantised_by_its_ends_as_the_oracle_does(of: Any, by: Any, rounding: Any) -> None:
    rng = np.random.default_rng(3)
    for fmt, low, high in (("u8", -3.0, 5.0), ("s8", -1.0, 0.0), ("u8", 2.0, 3.0), ("u8", 0.0, 0.0), ("u8", -255, 0)):
        rule = Quantised(fmt, of, by, rounding)
        sums = IntegerSums(
            "s32", groups=LaneGroups(2), zeros="after", quantised=rule,
            rescale=Rescale(("0x1.9p-7", "0x1p-3", "0x1.234p-9"), bias=("0x1p-2",)),
        )  # fmt: skip
        made = Schedule("f32", "s8", "f32", Scope("none"), integers=sums)
        assert from_text(to_text(made), "x.toml") == made
        a = (low + (high - low) * rng.random((4, 9))).astype(np.float32)
        if high == 0 and low < -1:
            a = np.rint(a * 2) / np.float32(2)
        b, table = codes(rng, "s8", (9, 3)), write_record(made)
        d = mmaprobe.gemm(made)(a, b.view(np.int8)).view(np.uint32)
        bits = a.view(np.uint32)
        for i, j in itertools.product(range(4), range(3)):
            assert int(d[i, j]) == oracle.quantised_element(table, bits[i], bits.ravel(), b[:, j], j), (i, j)
        part = mmaprobe.gemm(made)(a, b.view(np.int8), rows=slice(1, 2)).view(np.uint32)
        assert (part == d[1:2]).all()


def test_what_an_a_of_f32_is_quantised_to_is_not_claimed_where_its_ends_are_none() -> None:
    sums = IntegerSums("s32", quantised=Quantised(), rescale=Rescale(("0x1p-7",)))
    model, b = mmaprobe.gemm(Schedule("f32", "s8", "f32", Scope("none"), integers=sums)), np.ones((2, 1), np.int8)
    with pytest.raises(UsageError, match=r"A\[0, 1\] is nan; what an A with it is quantised to is not claimed"):
        model(np.array([[1, np.nan]], np.float32), b)
    with pytest.raises(UsageError, match=r"A is from 0.0 to .*: the scale of that is no normal number"):
        model(np.array([[1e-40, 0]], np.float32), b)
    assert model(np.zeros((1, 2), np.float32), b).tolist() == [[0.0]]


def test_a_pair_of_bytes_saturates_and_a_wide_sum_wraps() -> None:
    a, b = np.full((1, 4), 255, np.uint8), np.full((4, 1), 127, np.int8)
    exact = integer_schedule("u8", "s8", "s32", IntegerSums("s32"))
    pairs = integer_schedule("u8", "s8", "s32", PAIRS)
    assert [int(mmaprobe.gemm(each)(a, b)[0, 0]) for each in (exact, pairs)] == [4 * 255 * 127, 2 * 32767]
    x = np.full((1, 2), -(1 << 15), np.int16)
    for overflow, wanted in (("wrap", -(1 << 31)), ("saturate", (1 << 31) - 1)):
        sums: Any = IntegerSums("s32", overflow)
        assert int(mmaprobe.gemm(integer_schedule("s16", "s16", "s32", sums))(x, x.T)[0, 0]) == wanted
    wide = np.array([[1 << 62, 1 << 62]], np.int64)
    plain = integer_schedule("s64", "s64", "s64", IntegerSums("s64"))
    assert int(mmaprobe.gemm(plain)(wide, np.ones((2, 1), np.int64))[0, 0]) == -(1 << 63)


def test_zero_points_come_off_the_sum() -> None:
    sums = IntegerSums("s32", groups=LaneGroups(2), zero_a=("3",), zero_b=("5",), zeros="after")
    made = integer_schedule("u8", "s8", "s32", sums)
    a, b = np.array([[7, 9, 2]], np.uint8), np.array([[-1], [6], [8]], np.int8)
    assert int(mmaprobe.gemm(made)(a, b)[0, 0]) == 4 * -6 + 6 * 1 + -1 * 3


def test_s4_comes_in_its_own_type_and_padding_of_codes_is_refused() -> None:
    made = integer_schedule("s4", "s4", "s32", IntegerSums("s32"))
    a = np.array([[-8, 7]], ml_dtypes.int4)
    d = mmaprobe.gemm(made)(a, np.array([[-8], [7]], ml_dtypes.int4))
    assert (d.dtype, int(d[0, 0])) == (np.dtype(np.int32), 113)


def test_zero_points_and_scales_are_handed_over_by_name() -> None:
    made = from_text(
        """
schema = 1
a = "u8"
b = "s8"
d = "u8"
scope = { library = "none" }
inputs = [
  { name = "az", format = "u8", shape = "row" },
  { name = "bz", format = "s8", shape = "column" },
  { name = "scale", format = "f32", shape = "column" },
  { name = "dz", format = "u8" },
]
[integers]
format = "s32"
zero_a = "az"
zero_b = "bz"
rescale = { scale = "scale", zero = "dz" }
""",
        "x.toml",
    )
    rng = np.random.default_rng(1)
    a, b = codes(rng, "u8", (3, 9)), codes(rng, "s8", (9, 5)).view(np.int8)
    az, bz = rng.integers(0, 256, 3).astype(np.uint8), rng.integers(-128, 128, 5).astype(np.int8)
    scale = np.ldexp(1 + rng.random(5), -12).astype(np.float32)
    d = mmaprobe.gemm(made)(a, b, az=az, bz=bz, scale=scale, dz=7)
    table = write_record(made)
    for i, j in itertools.product(range(3), range(5)):
        given = {"az": int(az[i]), "bz": int(bz[j]), "scale": oracle.Fraction(float(scale[j])), "dz": 7}
        assert int(d[i, j]) == oracle.element(table, a[i], b[:, j].view(np.uint8), j, given)
    part = mmaprobe.gemm(made)(a, b, az=az, bz=bz, scale=scale, dz=7, rows=slice(1, 3), columns=slice(2, 4))
    assert (part == d[1:3, 2:4]).all()


def test_numbers_for_each_column_hold_for_that_n_alone() -> None:
    made = integer_schedule("s8", "s8", "f32", IntegerSums("s32", rescale=Rescale(("0x1p-3", "0x1p-4"))))
    one = np.ones((1, 8), np.int8)
    assert mmaprobe.gemm(made)(one, np.ones((8, 2), np.int8)).tolist() == [[1.0, 0.5]]
    with pytest.raises(UsageError, match="N is 3; the schedule has numbers for 2 columns"):
        mmaprobe.gemm(made)(one, np.ones((8, 3), np.int8))


def test_the_same_record_comes_back_from_its_text() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        made = (drawn_rescaled if rng.random() < 0.5 else drawn_sums)(rng)
        assert from_text(to_text(made), "x.toml") == made
    assert [scale_number(scale_word(each)) for each in (1.0, 0.1015625, 2.0**-140)] == [1.0, 0.1015625, 2.0**-140]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("format = 's32'\nevery = 4", "every is 4; a sum that wraps has the same bits whenever it does"),
        ("format = 's32'\noffset_a = 128", "offset_a is 128; it shows where groups"),
        ("format = 's32'\nzeros = 'after'", "zeros is after; there are no zero points"),
        ("format = 's32'\nzero_a = '3'\nzeros = 'after'", "zeros is after; it shows where groups"),
        (
            "format = 's32'\nrescale = {scale = '0x1p-3', by = 'fixed', rounding = 'up'}",
            "by = fixed takes whole numbers",
        ),
        ("format = 's16'", "d is s32, the sum is s16; without rescale D is the sum"),
        ("format = 'f32'", "format is f32; it must be an integer"),
        ("format = 's32'\ngroups = {lanes = 2, format = 's32'}", "format is s32; a group's sum has 16 bits at most"),
        ("format = 's32'\ngroups = {lanes = 0}", "lanes is 0; it must be a whole number from 1 to 64"),
        ("format = 's32'\nzero_a = 'az'", "integers.zero_a: 'az' is no number and no input"),
        ("format = 's32'\nzero_a = '300'", "integers.zero_a is 300; it must be a whole number from 0 to 255"),
        ("format = 's32'\nrescale = {scale = '0.1'}", "rescale.scale: '0.1' is no number and no input"),
        ("format = 's32'\nrescale = {scale = '7', by = 'fixed'}", "by is fixed; its rounding is away or up"),
        ("format = 's32'\nrescale = {scale = '0x1p-200'}", "it must be a number of f32 above 0"),
        ("format = 's32'\nrescale = {scale = '0x1p-3', lowest = 5, highest = 4}", "rescale.lowest is 5, above highest"),
        ("format = 's32'\noverflow = 'saturate'\ngroups = {lanes = 4}\nevery = 6", "must be a multiple of the lanes"),
        ("format = 's32'\nrescale = {scale = '0x1p-3', bias = '3'}", "bias has 3; by = f32 takes numbers of f32"),
        (
            "format = 's32'\nrescale = {scale = '0x1p-3', bias = '-0x1p+200'}",
            "bias has -0x1p+200; it must be a number of",
        ),
        (
            "format = 's32'\nrescale = {scale = '0x1p-3', bias_added = 'before'}",
            "bias_added is before; there is no bias",
        ),
        (
            "format = 's32'\nrescale = {scale = '7', by = 'fixed', rounding = 'up', bias = '0x1p+3'}",
            "by is fixed; its bias is one of integers",
        ),
        ("format = 's32'\nquantised = {}", "quantised: a is u8, d is s32; both must be f32, and rescale be there"),
        ("format = 's32'\nquantised = {format = 's4'}", "format is s4; A of f32 becomes u8 or s8"),
        ("format = 's32'\nzero_a = '3'\nquantised = {}", "zero_a is 3; an A that is quantised has the zero point of"),
        ("format = 's32'\nbias = 'biass'", "integers.bias: 'biass' is no number and no input"),
        (
            "format = 's32'\nbias = '3000000000'",
            "integers.bias is 3000000000; it must be a whole number from -2147483648",
        ),
        ("format = 's32'\nbias = '0x1p-3'", "integers.bias has 0x1p-3; it must be a whole number"),
        (
            "format = 's32'\nbias = '1 2 3'\nzero_b = '1 2'",
            "integers.zero_b 2 and integers.bias 3: numbers for columns must be as many, or one",
        ),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(text: str, said: str) -> None:
    head = 'schema = 1\na = "u8"\nb = "s8"\nd = "s32"\nscope = { library = "none" }\n'
    with pytest.raises(UsageError) as error:
        from_text(f"{head}[integers]\n{text}\n", "x.toml")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_integers_have_neither_kernels_nor_an_epilogue_nor_wide_operands_that_saturate() -> None:
    head = 'schema = 1\na = "s32"\nb = "s8"\nd = "s32"\nscope = { library = "none" }\n'
    with pytest.raises(UsageError, match="a is s32; where something saturates A and B have 16 bits at most"):
        from_text(head + "[integers]\nformat = 's32'\noverflow = 'saturate'\n", "x.toml")
    with pytest.raises(UsageError, match="amax: sums of integers have none"):
        from_text(head + "amax = 'sum'\n[integers]\nformat = 's32'\n", "x.toml")
    with pytest.raises(UsageError, match="c is 's16'; of integers C is added to the sum, and is s32 as it is"):
        from_text(head + "c = 's16'\n[integers]\nformat = 's32'\n", "x.toml")
    with pytest.raises(UsageError, match="kernels: missing"):
        from_text(head.replace("s32", "f32").replace("s8", "f32"), "x.toml")
