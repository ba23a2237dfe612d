"""The recorded run of an MI300X in MMA-Sim's notebook against the model of CDNA3, and what is published of CDNA1.

microsoft/MMA-Sim@0cb7846, tests/probe/probe_amd_cdna3.ipynb: v_mfma_f32_16x16x32_fp8_fp8, experiment by experiment.
Large terms are +-2^14, made of 2^7 and 2^7.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from second_source.by_hand import exact, p
from second_source.published import Values, chain, chains

FP8 = "v_mfma_f32_16x16x32_fp8_fp8"
LANES = 16
"""Products of a step; all but the first experiment leave the second step's at zero."""


def run(a: dict[int, tuple[float, float]], c: float = 0.0) -> float:
    """The result of products by lane."""
    rows: list[Values] = [[Fraction(0)] * LANES, [Fraction(0)] * LANES]
    for lane, pair in a.items():
        for row, x in zip(rows, pair, strict=True):
            row[lane] = Fraction(x)
    return float(exact("f32", chain("gfx942", FP8, *rows, Fraction(c))))


def power(e: int) -> tuple[float, float]:
    """2^14 times 2^-e as a product of two operands."""
    return p(7 - e // 2 - e % 2), p(7 - e // 2)


LARGE, MINUS = (p(7), p(7)), (p(7), -p(7))


def pairs(lanes: int, unit: tuple[float, float], c: float) -> tuple[list[tuple[int, int]], list[float]]:
    """+2^14 in lane i (-1: C), -2^14 in lane j, the unit elsewhere: the results of every i and j."""
    where, a, b, start = [], [], [], []
    for i in range(-1, lanes):
        for j in range(lanes):
            if i == j or 0 <= i < j:
                continue
            rows = [[Fraction(x)] * lanes for x in unit]
            rows[0][j], rows[1][j] = Fraction(MINUS[0]), Fraction(MINUS[1])
            if i >= 0:
                rows[0][i] = rows[1][i] = Fraction(LARGE[0])
            where.append((i, j))
            a.append(rows[0])
            b.append(rows[1])
            start.append(Fraction(p(14) if i < 0 else c))
    return where, chains("gfx942", FP8, a, b, start).view(np.float32).tolist()


def test_order_of_the_two_steps() -> None:
    """Units of 2^-18: 16 are left where both large terms are in the first half, none elsewhere."""
    where, found = pairs(32, (p(-9), p(-9)), p(-18))
    for (i, j), value in zip(where, found, strict=True):
        assert value == p(-18) * (16 if max(i, j) < 16 else 0), (i, j)


def test_order_inside_a_step() -> None:
    """Units of 2^-11 and C of 2^-10: 5 left where both lanes are even or both odd, 1 where not; with C large, 8."""
    where, found = pairs(LANES, (p(-6), p(-5)), p(-10))
    for (i, j), value in zip(where, found, strict=True):
        if i < 0:
            assert int(value / p(-11)) == 8, j
        else:
            assert int(value / p(-10)) == (5 if (i - j) % 2 == 0 else 1), (i, j)


@pytest.mark.parametrize("i", range(1, LANES))
def test_the_smallest_c_beside_a_pair_that_cancels(i: int) -> None:
    for j in range(i):
        kept = [e for e in range(30) if run({i: LARGE, j: MINUS}, p(14 - e)) == p(14 - e)]
        assert kept == list(range(25)), j


@pytest.mark.parametrize("lane", range(LANES))
def test_the_smallest_product_beside_a_pair_that_cancels(lane: int) -> None:
    others = [(i, j) for i in range(lane) for j in range(i)]
    for i, j in others[:: max(1, len(others) // 10)]:
        kept = [e for e in range(29) if run({lane: power(e), i: LARGE, j: MINUS}) == p(14 - e)]
        assert kept == list(range(25)), (i, j)
    for j in range(lane):
        assert run({lane: power(24), j: MINUS}, p(14)) == p(-10)
        assert run({lane: power(25), j: MINUS}, p(14)) == 0


ROUNDED = {
    "same parity": {0.25: 0, 0.5: 0, 0.75: 0, 1.5: 1, -0.25: 0, -0.5: 0, -0.75: 0, -1.5: -1},
    "other parity": {0.25: 0, 0.5: 0, 0.75: 0, 1.5: 1, -0.25: -1, -0.5: -1, -0.75: -1, -1.5: -2},
    "C": {0.25: 0, 0.5: 0, 0.75: 0, 1.5: 1, -0.0625: 0, -0.125: 0, -0.25: 0, -0.5: -1, -0.75: -1, -1.0: -1, -1.5: -2},
}
"""A small term in units of 2^-10 beside a pair that cancels: RZ, RD, and RD for a C that is not too small."""


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("where", ["same parity", "other parity"])
def test_rounding_of_products(where: str, first: int) -> None:
    lane = first + 4 if where == "same parity" else 1 - first
    for x, units in ROUNDED[where].items():
        assert run({first: LARGE, first + 2: MINUS, lane: (x * p(-5), p(-5))}) == units * p(-10), x


def test_rounding_of_c() -> None:
    for x, units in ROUNDED["C"].items():
        assert run({0: LARGE, 2: MINUS}, x * p(-10)) == units * p(-10), x


@pytest.mark.parametrize(
    "pair", [{0: (1.5 * p(7), 1.5 * p(7)), 2: (1.5 * p(7), -1.5 * p(7)), "at": 4}, {0: LARGE, 2: LARGE, "at": 1}],
    ids=["products above 2", "a sum above 2"],
)  # fmt: skip
def test_no_exponent_grows_before_the_end(pair: dict[object, object]) -> None:
    """Terms whose sum or product reaches the next power of two: what is kept beside them does not change."""
    terms: dict[int, tuple[float, float]] = {
        k: v for k, v in pair.items() if isinstance(k, int) and isinstance(v, tuple)
    }
    lane, c = (4, 0.0) if pair["at"] == 4 else (1, -2 * p(14))
    for e in range(20, 30):
        assert run(terms | {lane: power(e)}, c) == (p(14 - e) if e < 25 else 0), e


def test_a_negative_c_beside_one_product_or_two() -> None:
    words = ["0x1.ffffep13", "0x1.fffffp13", "0x1.fffff8p13", "0x1.fffffcp13", "0x1.fffffep13"]
    one, two = {0: LARGE}, {0: (p(6), p(7)), 1: (p(6), p(7))}
    for terms, sixth in ((one, "0x1.fffffep13"), (two, "0x1p14")):
        expected = [float.fromhex(word) for word in [*words, sixth, *["0x1p14"] * 4]]
        assert [run(terms, -p(14 - e)) for e in range(20, 30)] == expected


def test_result_is_rounded_to_nearest_even() -> None:
    units = {0.25: 0, 0.5: 0, 0.75: 1, 1.5: 2}
    for x, more in units.items():
        for sign in (1, -1):
            terms = {lane: (sign * p(5), p(7)) for lane in (0, 2, 4, 6)}
            assert run(terms, sign * x * p(-9)) == sign * (p(14) + more * p(-9)), x


@pytest.mark.parametrize(
    ("c", "product", "kept", "last", "dropped"),
    [("0x1p24", 1.0, "0x1.000002p24", 7, "0x1p24"), ("0x1.000008p24", 1.0, "0x1.00000ap24", 7, "0x1.000008p24"),
     ("0x1.fffff8p24", 10.0, "0x1.000002p25", 6, "0x1p25")],
)  # fmt: skip
def test_how_far_below_a_tie_is_seen(c: str, product: float, kept: str, last: int, dropped: str) -> None:
    for e in range(10):
        found = run({0: (product, 1.0), 2: (p(-(e // 2) - e % 2), p(-(e // 2)))}, float.fromhex(c))
        assert found == float.fromhex(kept if e <= last else dropped), e


def test_cdna1_rounds_an_exact_sum_once_near_overflow() -> None:
    """A prediction: the sum is the largest f32 by rounding; MMA-Sim 2.1.1 answers infinity (through a double)."""
    a = [Fraction(217 * 2**40), Fraction(217 * 2**30)]
    b = [Fraction(151 * 2**48), Fraction(151 * 2**43)]
    largest = exact("f32", 0x7F7FFFFF)
    assert chain("gfx908", "v_mfma_f32_16x16x8bf16", a, b, largest) == 0x7F7FFFFF
