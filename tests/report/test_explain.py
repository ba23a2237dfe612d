"""Explanations say every bit, in p-notation, and end with the evaluator's result."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.cli import main
from mmaprobe.errors import UsageError
from mmaprobe.models.hexfloat import hexfloat
from mmaprobe.models.stages import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.operands.literal import not_given, parse_item, parse_vector
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Product,
    Products,
    Scale,
    Special,
    Term,
    Zero,
)
from mmaprobe.report.datapath import explain

C = Accumulator()
HOPPER = Datapath(
    "f16", "f16", "f32", "f32", 16,
    Fused.alike((Products(tuple(range(16))), C), 25, "RZ", -133, Encode(rounding="RZ", zero="positive")),
)  # fmt: skip
FLUSHED = Encode(subnormals="signed_zero")
VDPBF16PS = Datapath("bf16", "bf16", "f32", "f32", 2, Fma(Fma(C, (1,), FLUSHED), (0,), FLUSHED))
CDNA3 = Datapath(
    "f16", "f16", "f32", "f32", 16,
    Fused(
        (Term(Fused.alike((Products(tuple(range(8))),), 24), 31, "RD"), Term(C, 24, "RD", -126, cutoff=25)),
        Encode(first=(31, "RD")),
    ),
    step=8, product=Product(overflow_exponent=128),
)  # fmt: skip
DPPS = Datapath(
    "f32", "f32", None, "f32", 4,
    Add(Add(Exact((Products((0,)),)), Exact((Products((1,)),)), Encode()),
        Add(Exact((Products((2,)),)), Exact((Products((3,)),)), Encode()), Encode()),
    product=Product(to=Encode()), special=Special("local"),
)  # fmt: skip
NVFP4 = Datapath(
    "e2m1", "e2m1", "f32", "f32", 32,
    Fused.alike(
        (Exact((Products(tuple(range(16))),), scaled=True), Exact((Products(tuple(range(16, 32))),), scaled=True), C),
        35, "RZ", -139, Encode(rounding="RZ"),
    ),
    scale=Scale("ue4m3", 16, "group"),
)  # fmt: skip
SUM = Datapath("s8", "u8", "s32", "s32", 4, Exact((C, Products((0, 1, 2, 3))), Encode("s32", overflow="wrap")))
CHAIN = Datapath("bf16", "bf16", "f32", "f32", 4, Add(Fma(Zero(), (0, 2), FLUSHED), Fma(C, (1, 3), FLUSHED), FLUSHED))
ALL = {
    "hopper": HOPPER,
    "vdpbf16ps": VDPBF16PS,
    "cdna3": CDNA3,
    "dpps": DPPS,
    "nvfp4": NVFP4,
    "sum": SUM,
    "chain": CHAIN,
}


def random_vector(path: Datapath, seed: int) -> Batch:
    rng = np.random.default_rng(seed)

    def draw(name: str, shape: tuple[int, ...]) -> Any:
        fmt = formats.get(name)
        codes = rng.integers(0, fmt.code_limit, shape, dtype=np.uint64, endpoint=False).astype(fmt.dtype)
        return np.where(rng.random(shape) < 0.3, fmt.dtype.type(0), codes)

    scales = {}
    if path.scale:
        shape = (1, path.k // path.scale.size)
        scales = {name: draw(path.scale.format, shape) for name in ("scale_a", "scale_b")}
    c = draw(path.c, (1,)) if path.c else None
    return Batch(draw(path.a, (1, path.k)), draw(path.b, (1, path.k)), c, **scales)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ALL)
def test_the_last_line_is_the_result(name: str) -> None:
    path = ALL[name]
    for seed in range(25):
        vector = random_vector(path, seed)
        last = explain.text(path, vector).splitlines()[-1]
        found = re.match(r"d = ([0-9a-f]+)  \S+", last)
        assert found, last
        assert int(found[1], 16) == int(evaluate(path, vector)[0])


def test_equation_10_line_by_line() -> None:
    vector = Batch(
        np.array([[-8192, -0.5, -0.25, -0.125] + [0] * 12], np.float16).view(np.uint16),
        np.array([[1024, 1, 1, 1] + [0] * 12], np.float16).view(np.uint16),
        np.array([2.0**23], np.float32).view(np.uint32),
    )
    lines = [" ".join(line.split()) for line in explain.text(HOPPER, vector).splitlines()]
    assert lines[0] == "f16 · f16 + f32 → f32, K = 16"
    for line in (
        "0 f000 -0x1p+13 6400 0x1p+10 -0x1p+23 23",
        "4 … 15 0000 0 0000 0 0 zero",
        "c 4b000000 0x1p+23 23",
        "fused 25 bits RZ → f32 RZ",
        "a2·b2 -0x1p-2 -2 -0x1p-2",
        "a3·b3 -0x1p-3 -3 -0 -0x1p-3",
        "a4·b4 … a15·b15 0 -133 0",
        "largest exponent 23, 25 bits below it: multiples of 2^-2",
        "exact sum -0x1.8p-1",
        "f32 RZ: -0x1.8p-1 bf400000 exact",
        "d = bf400000 -0x1.8p-1",
    ):
        assert line in lines, line


def test_a_sum_that_its_bits_do_not_hold_is_not_called_exact() -> None:
    tree = Fused((Term(Products((0, 1, 2, 3)), 10, shift_limit=8), Term(C, 10)), Encode(), carry_bits=1)
    path = Datapath("f16", "f16", "f32", "f32", 4, tree)
    one = np.full((1, 4), 0x3C00, np.uint16)
    said = explain.text(path, Batch(one, one, np.zeros(1, np.uint32)))
    assert "1 carry bit, wraps" in said
    assert "shifted 8 at most" in said
    assert "sum, as its bits hold it  -0x1p+2" in said
    assert "exact sum" not in said


def test_roundings_flushes_and_overflows_are_named() -> None:
    def vector(a: list[int], b: list[int], c: int) -> Batch:
        return Batch(np.array([a], np.uint16), np.array([b], np.uint16), np.array([c], np.uint32))

    inexact = explain.text(VDPBF16PS, vector([0x3F80, 0], [0x3F80, 0], 0x33000001))
    assert "off by 0x1.000002p-25" in inexact
    assert "tiny, flushed" in explain.text(VDPBF16PS, vector([0x0080, 0], [0x3F00, 0], 0))
    assert "overflow" in explain.text(VDPBF16PS, vector([0x7F00, 0], [0x7F00, 0], 0))
    assert "(canonical NaN rule)" in explain.text(VDPBF16PS, vector([0x7F80, 0], [0, 0], 0))


def test_integers_are_shown_as_integers() -> None:
    vector = Batch(
        np.array([[0x80, 1, 0, 0]], np.uint8), np.array([[255, 3, 0, 0]], np.uint8), np.array([0x80000000], np.uint32)
    )
    lines = [" ".join(line.split()) for line in explain.text(SUM, vector).splitlines()]
    for line in ("0 80 -128 ff 255 -32640 0", "c 80000000 -2147483648 0", "exact sum -2147516285"):
        assert line in lines, line
    assert lines[-2:] == ["s32 wraps: 2147451011 7fff8083 overflow", "d = 7fff8083 2147451011"]


@pytest.mark.parametrize("value", [0.0, 1.0, -1.5, 0.1, 2.0**-1074, -1.7976931348623157e308, 3.0])
def test_hexfloat_reads_back(value: float) -> None:
    numerator, denominator = value.as_integer_ratio()
    shown = hexfloat(value < 0, abs(numerator), 1 - denominator.bit_length())
    assert float.fromhex(shown) == value
    assert "." not in shown or not re.search(r"0p|\.p", shown)


TILE = Instruction("t", "t", "test", 1, 1, 4, "f16", "e4m3", "f32", "f32")


def test_vectors_are_typed_as_bits_or_values() -> None:
    vector = parse_vector(TILE, ["0x3c00,1.5*2", "-0x1.8p+1,nan,-0", "inf"])
    assert vector.a.tolist() == [[0x3C00, 0x3E00, 0x3E00, 0]]
    assert vector.b.tolist() == [[0xC4, 0x7F, 0x80, 0]]
    assert vector.c is not None
    assert vector.c.tolist() == [0x7F800000]
    every = parse_vector(TILE, ["0x3c00", "1.5", "1.5", "0", "-0x1.8p+1", "nan", "-0", "0", "inf"])
    for name, value in every.items():
        np.testing.assert_array_equal(value, getattr(vector, name))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1", "1"], r"takes 3 words, a b c .* or 9 items \(4 of a, 4 of b, 1 of c\); got 2"),
        (["1,2,3,4,5", "1", "0"], "operand a: 5 items for 4 places"),
        (["1", "0.1", "0"], "operand b: e4m3 does not hold 0.1 exactly"),
        (["1", "1e9", "0"], "e4m3 does not hold 1e9"),
        (["1", "inf", "0"], "e4m3 has no inf"),
        (["0x10000", "1", "0"], "0x10000 is outside the 16 bits of f16"),
        (["1", "x", "0"], "cannot read 'x'"),
        (["1*y", "1", "0"], r"cannot read '1\*y'"),
        (["1", "1", "1,1"], "operand c: 2 items for 1 place"),
    ],
)
def test_what_cannot_be_read_is_named(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_vector(TILE, words)


@pytest.mark.parametrize("name", ["f16", "e2m1", "ue8m0", "s8", "f64", "e4m3fnuz"])
def test_every_value_that_is_shown_can_be_typed(name: str) -> None:
    fmt = formats.get(name)
    codes = np.arange(256, dtype=np.uint64) * np.uint64(max(1, fmt.code_limit // 256))
    codes = np.unique(codes[codes < fmt.code_limit]).astype(fmt.dtype)
    parts = formats.decode(fmt, codes)
    for code, kind, negative, exponent, significand in zip(codes, *parts, strict=True):
        if kind in (formats.INFINITE, formats.NAN):
            continue
        item = hexfloat(bool(negative), int(significand), int(exponent))
        assert parse_item("t", fmt, item) == int(code)


def test_vectors_are_read_as_they_are_printed() -> None:
    plain = parse_vector(TILE, ["0x3c00,0x3e00*2", "0x1", "0x0"])
    named = parse_vector(TILE, ["b=0x1", "c=0x0", "a=0x3c00,0x3e00*2"])
    assert [(name, value.tolist()) for name, value in named.items()] == [
        (name, value.tolist()) for name, value in plain.items()
    ]
    assert not_given(TILE, ["a=0x3c00,0x3e00*2", "b=0x1", "c=0x0"]) == ["a: lane 3", "b: lanes 1 to 3"]
    assert not_given(TILE, ["1"] * 9) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a=0x1", "b=0x1"], "operand missing; add c=..."),
        (["a=0x1", "a=0x1", "c=0"], "a= comes twice; write a=... b=... c=..."),
        (["a=0x1", "0x1", "c=0"], "'0x1' has no name; write a=... b=... c=..."),
        (["x=0x1", "b=0x1", "c=0"], "x= is no operand; write"), (["a=", "b=1", "c=0"], "cannot read ''"),
    ],
)  # fmt: skip
def test_words_with_wrong_names_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as found:
        parse_vector(TILE, words)
    assert said in str(found.value)


def test_explain_says_which_lanes_are_zero(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", "sm_90a", "mma.m16n8k16.f32.f16.f16.f32", "a=1,2", "b=0x3c00*16", "c=0"]
    assert main(words) == 0
    assert "not given, and so 0: a: lanes 2 to 15\n" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["d"], said["vector"]) == (0x40400000, "a=0x3c00,0x4000,0x0*14 b=0x3c00*16 c=0x0")
