"""The NumPy stages against hand-worked results, IEEE arithmetic and exact fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.models import numbers
from mmaprobe.models.stages import evaluate
from mmaprobe.models.trace import Trace
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Product,
    Zero,
)
from second_source.by_hand import C, code, dot, exact, lanes, p, random_bits, rounded, tensor_core

GENERATIONS = (tensor_core(23, 4, -131), tensor_core(24, 8, -132), tensor_core(25, 16, -133))
HALVES = (
    tensor_core(23, 4, -19, d="f16"),
    tensor_core(24, 8, -20, d="f16"),
    tensor_core(25, 16, -21, d="f16"),
)


ONE = p(0)

# (a, b, c, expected Volta | Turing to Ada | Hopper and later), f16 operands, f32 result. The probes:
# Fasi et al. 2021 (A to D), Khattak and Mikaitis 2025 (G), Valpey et al. (assoc to RTZ/RTN), MMA-Sim (equation 10).
F32_ROWS = {
    "A1 subnormal operands": ([p(-24)], [4], 0, "34800000 34800000 34800000"),
    "A2 subnormal C": ([], [], p(-149), "00000001 00000001 00000001"),
    "A5 small difference": ([p(-14), p(-15)], [1, -1], 0, "38000000 38000000 38000000"),
    "B1 exact product": ([1 - p(-11)], [1 - p(-11)], 0, "3f7fc004 3f7fc004 3f7fc004"),
    "B1 four products": ([1 - p(-11)] * 4, [1 - p(-11)] * 4, 0, "407fc004 407fc004 407fc004"),
    "B3-V": ([ONE] * 4, [p(-24)] * 4, 1, "3f800000 3f800002 3f800002"),
    "B3-A": ([0.5] * 4, [p(-24)] * 4, 1, "3f800000 3f800000 3f800001"),
    "B4 position 2": ([p(-24), 1, p(-24), p(-24)], [1] * 4, p(-24), "3f800000 3f800002 3f800002"),
    "C1": ([2, 1], [1, p(-23) + p(-24)], 0, "40000000 40000000 40000000"),
    "C2": ([-2, -1], [1, p(-23) + p(-24)], 0, "c0000000 c0000000 c0000000"),
    "D1": ([1], [1], -(1 - p(-24)), "34000000 33800000 33800000"),
    "D2": ([1] * 4, [p(-24)] * 4, 1 - p(-24), "3f800001 3f800001 3f800001"),
    "D3": ([1, -p(-24)], [1, 1], -1 + p(-24), "34000000 00000000 00000000"),
    "D4a": ([1, 1, p(-23), 1], [1] * 4, 1 + p(-22) + p(-23), "40800001 40800001 40800001"),
    "D4b": ([1, 1.5, 1.75, 1.875], [1] * 4, 1.875, "41000000 41000000 41000000"),
    "D4c": ([1] * 4, [1] * 4, 1 + p(-22) + p(-23), "40a00000 40a00000 40a00000"),
    "D4d": ([-1] * 4, [1] * 4, -(1 + p(-22) + p(-23)), "c0a00000 c0a00000 c0a00000"),
    "D5-V at 1": ([1] * 4, [p(-24)] * 4, 1, "3f800000 3f800002 3f800002"),
    "D5-A below 1": ([0.5] * 3 + [1.5], [p(-24)] * 4, 1 - p(-24), "3f800000 3f800001 3f800001"),
    "D5-A at 1": ([0.5] * 3 + [1.5], [p(-24)] * 4, 1, "3f800000 3f800000 3f800001"),
    "G1": ([1, 1], [p(-24)] * 2, 1, "3f800000 3f800001 3f800001"),
    "G1b": ([1, 0.5, 0.5], [p(-24)] * 3, 1, "3f800000 3f800000 3f800001"),
    "G4": ([1, 1], [p(-21) + p(-24)] * 2, 1 - p(-21), "3f800005 3f800005 3f800005"),
    "G5": ([1] * 3, [1] * 3, 1 + p(-23) + p(-22), "40800000 40800000 40800000"),
    "assoc": (
        [1.9990234375 * p(-9), 1.9990234375 * p(-1)],
        [1.9990234375 * p(-1)] * 2,
        1.0021368265151978 * p(15),
        "47004704 47004705 47004705",
    ),
    "RNE/RTP sub": ([1.5 * p(15)], [1.5 * p(14)], -1.0029296875 * p(15), "4e8ffeff 4e8ffeff 4e8ffeff"),
    "RNE/RTP add": ([1.0302734375 * p(15)], [1.748046875 * p(15)], 1.5009765625 * p(8), "4ee68613 " * 3),
    "RNE/RTZ sub": ([1.767578125 * p(15)], [-1.1142578125 * p(15)], 6.57421875, "cefc19d0 " * 3),
    "RTP/RTN sub": ([1.7939453125 * p(-12)], [-1.9619140625 * p(15)], 1.4921875 * p(-15), "c1e1407c " * 3),
    "RTZ/RTN sub": ([2], [1.9990234375 * p(-9)], -p(13), "c5fffff2 c5fffff1 c5fffff0"),
    "equation 10": ([-p(13), -0.5, -0.25, -0.125], [p(10), 1, 1, 1], p(23), "00000000 bf000000 bf400000"),
}


@pytest.mark.parametrize("name", F32_ROWS)
def test_published_generation_rows(name: str) -> None:
    a, b, c, expected = F32_ROWS[name]
    got = [f"{dot(path, [float(x) for x in a], [float(x) for x in b], c):08x}" for path in GENERATIONS]
    assert got == expected.split()


def test_a_row_whose_operand_no_f16_holds() -> None:
    """Valpey et al., "RNE/RTZ add": 1.0048828125 p(-15) needs eleven bits below p(-14), so tf32 has to carry it."""
    for fraction_bits, length, zero in ((23, 4, -131), (24, 8, -132), (25, 16, -133)):
        path = tensor_core(fraction_bits, length, zero, a="tf32")
        assert dot(path, [1.7822265625 * p(-3)], [1.0048828125 * p(-15)], 1.9951171875 * p(-8)) == 0x3BFF994F


def test_f16_results_round_once_to_nearest_even() -> None:
    for path in HALVES:
        assert dot(path, [p(-24)], [4.0]) == 0x0004
        assert dot(path, [p(-14)], [p(-1)]) == 0x0200
        assert dot(path, [1 - p(-11)] * 2, [1 - p(-11), p(-11)]) == 0x3BFF
        assert dot(path, [p(-24)] * 2, [0.5, 0.25]) == 0x0001


@pytest.mark.parametrize(("generation", "last"), [(0, 42), (1, 44), (2, 46)])
def test_zero_exponent_ladder_f16(generation: int, last: int) -> None:
    rungs = [dot(HALVES[generation], [p(-12), p(-24)], [p(-13), p(24 - k)]) for k in range(26, 49)]
    assert rungs == [1 if k <= last else 0 for k in range(26, 49)]


@pytest.mark.parametrize(("fraction_bits", "length", "zero", "last"), [(24, 8, -132, 156), (25, 16, -133, 158)])
def test_zero_exponent_ladder_bf16(fraction_bits: int, length: int, zero: int, last: int) -> None:
    path = tensor_core(fraction_bits, length, zero, a="bf16")
    rungs = [dot(path, [p(-75), -p(-80)], [p(-74), p(80 - k)]) for k in range(150, 165)]
    assert rungs == [0 if k <= last else 1 for k in range(150, 165)]


@pytest.mark.parametrize("necessary", range(2, 17))
def test_step_length_shows_in_carries(necessary: int) -> None:
    """G2: 1 + 2^-23 + 1 + 2^-23 keeps both low bits while they meet in one step."""
    for path, length in zip(GENERATIONS, (4, 8, 16), strict=True):
        wide = replace(path, k=16)
        a = [1.0] + [0.0] * (necessary - 2) + [p(-23)]
        result = dot(wide, a, [1.0] * necessary, 1 + p(-23))
        assert (result == 0x40000001) == (necessary <= length)


@pytest.mark.parametrize(
    ("value", "results"),
    [
        # in quarters of u above 1 -> units of u: RU RD RZ RA RNU RND RNZ RNA RNE RNO RO
        (3, (1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)),
        (1, (1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1)),
        (-3, (0, -1, 0, -1, -1, -1, -1, -1, -1, -1, -1)),
        (-1, (0, -1, 0, -1, 0, 0, 0, 0, 0, 0, -1)),
        (2, (1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1)),
        (6, (2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1)),
        (-2, (0, -1, 0, -1, 0, -1, 0, -1, 0, -1, -1)),
        (-6, (-1, -2, -1, -2, -1, -2, -1, -2, -2, -1, -1)),
        (0, (0,) * 11),
    ],
)
def test_all_roundings(value: int, results: tuple[int, ...]) -> None:
    """1 + n u/4 and its negative, as the final rounding, the first cut and the alignment."""
    sign = -1 if value < 0 else 1
    for rounding, units in zip(formats.ROUNDINGS, results, strict=True):
        expected = code("f32", sign + Fraction(units, 1 << 23))
        final = Encode(rounding=rounding)
        first = Encode(first=(23, rounding))
        rest = [1.0, abs(value) * p(-25) * sign]
        for to in (final, first):
            path = Datapath("f64", "f64", None, "f32", 2, Exact((lanes(0, 1),), to))
            assert dot(path, [sign, rest[1]], [1.0, 1.0]) == expected, (rounding, to)
        add = Datapath("f64", "f64", None, "f32", 1, Fma(Zero(), (0,), final))
        assert dot(add, [sign + rest[1]], [1.0]) == expected, rounding
        # one term cut at the alignment beside 2 - 2 = 0 at the largest exponent: quantum 2^-23
        cut = Datapath("f64", "f64", None, "f32", 3, Fused.alike((lanes(0, 1, 2),), 24, rounding, to=Encode()))
        assert dot(cut, [2.0, -2.0, sign + rest[1]], [1.0] * 3) == expected, rounding


@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
@pytest.mark.parametrize("distance", [30, 61, 62, 63, 64, 65, 200, 2000])
def test_far_alignment_shifts_round_as_anywhere(rounding: str, distance: int) -> None:
    for sign in (1, -1):
        path = Datapath("f64", "f64", None, "f64", 3, Fused.alike((lanes(0, 1, 2),), 20, rounding, to=Encode("f64")))
        up = rounding in ("RA", "RO") or rounding == ("RU" if sign > 0 else "RD")
        a = [2.0**500, -(2.0**500), sign * 2.0 ** (500 - distance) if distance < 1500 else sign * p(-1074)]
        assert dot(path, a, [1.0] * 3) == code("f64", sign * 2.0**480 if up else 0)


@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
@pytest.mark.parametrize("spread", [2, 30, None])
def test_fma_against_fractions(rounding: str, spread: int | None) -> None:
    path = Datapath("f32", "f32", "f32", "f32", 1, Fma(C, (0,), Encode(rounding=rounding, overflow="infinity")))
    a, b = (random_bits("f32", (400, 1), seed, spread) for seed in (1, 2))
    c = random_bits("f32", (400,), 3, spread)
    got = evaluate(path, Batch(a, b, c))
    checked = 0
    for x, y, z, d in zip(a[:, 0], b[:, 0], c, got, strict=True):
        if any(int(v) & 0x7F800000 == 0x7F800000 for v in (x, y, z)):
            continue
        value = rounded(exact("f32", int(x)) * exact("f32", int(y)) + exact("f32", int(z)), "f32", rounding)
        if abs(value) < Fraction(2) ** 128:
            assert exact("f32", int(d)) == value
            checked += 1
        else:
            assert int(d) & 0x7FFFFFFF == 0x7F800000
    assert checked > 200


@pytest.mark.parametrize("fmt", ["f32", "f64"])
@pytest.mark.parametrize("spread", [1, 60, None])
def test_add_and_product_against_ieee(fmt: str, spread: int | None) -> None:
    """1 x + y and the rounded product against this machine's own arithmetic, NaN results aside."""
    to = Encode(fmt)
    kind = np.float32 if fmt == "f32" else np.float64
    a, b = (random_bits(fmt, (3000, 1), seed, spread) for seed in (4, 5))
    add = Datapath(fmt, fmt, fmt, fmt, 1, Add(lanes_as_node(0), C, to))
    one = np.full_like(a, formats.get(fmt).one)
    multiply = Datapath(fmt, fmt, None, fmt, 1, Exact((lanes(0),), to), product=Product(to=to))
    with np.errstate(all="ignore"):
        total, product = a.view(kind) + b.view(kind), a.view(kind) * b.view(kind)
    for got, want in (
        (evaluate(add, Batch(a, one, b[:, 0])), total[:, 0]),
        (evaluate(multiply, Batch(a, b)), product[:, 0]),
    ):
        number = ~np.isnan(want)
        assert number.sum() > 2000
        np.testing.assert_array_equal(got[number], want.view(got.dtype)[number])


def lanes_as_node(lane: int) -> Exact:
    return Exact((lanes(lane),))


def test_f64_fma_is_exact_beyond_int64() -> None:
    path = Datapath("f64", "f64", "f64", "f64", 1, Fma(C, (0,), Encode("f64")))
    a, b = (random_bits("f64", (300, 1), seed, 40) for seed in (6, 7))
    c = random_bits("f64", (300,), 8, 60)
    for x, y, z, d in zip(a[:, 0], b[:, 0], c, evaluate(path, Batch(a, b, c)), strict=True):
        want = rounded(exact("f64", int(x)) * exact("f64", int(y)) + exact("f64", int(z)), "f64", "RNE")
        assert exact("f64", int(d)) == want


@pytest.mark.parametrize("path", [*GENERATIONS, *HALVES], ids=lambda path: f"{path.k}-{path.d}")
def test_python_integers_give_the_same_bits(path: Datapath, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (random_bits("f16", (600, path.k), seed) for seed in (9, 10))
    a[::2], b[::2] = random_bits("f16", (300, path.k), 11, 6), random_bits("f16", (300, path.k), 12, 6)
    batch = Batch(a, b, random_bits(path.d, (600,), 13))
    narrow = evaluate(path, batch)
    monkeypatch.setattr(numbers, "WORD", 0)
    np.testing.assert_array_equal(narrow, evaluate(path, batch))


def test_a_trace_does_not_change_the_result() -> None:
    path = Datapath("bf16", "bf16", "f32", "f32", 2, Fma(Fma(C, (1,), Encode()), (0,), Encode()))
    batch = Batch(random_bits("bf16", (200, 2), 14), random_bits("bf16", (200, 2), 15), random_bits("f32", (200,), 16))
    whole = evaluate(path, batch)
    for i in range(200):
        assert evaluate(path, batch.slice(i, i + 1), Trace())[0] == whole[i]
