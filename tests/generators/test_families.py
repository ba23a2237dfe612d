"""Families of generated vectors: what each really hits."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from cases.generators import F16, FLOATS, FMA, INTEGERS, by_id
from mmaprobe import formats
from mmaprobe.generators import generate, plan
from mmaprobe.generators.operands import bit_length, normalised_product


def values(name, codes):
    """Exact values as Fractions (None: infinite or NaN), and the decoded kinds."""
    decoded = formats.decode(formats.get(name), codes)
    parts = (decoded.kind, decoded.negative, decoded.exponent, decoded.significand)

    def exact(kind, negative, exponent, significand):
        if kind in (formats.INFINITE, formats.NAN):
            return None
        size = Fraction(int(significand)) * Fraction(2) ** int(exponent)
        return -size if negative else size

    return np.frompyfunc(exact, 4, 1)(*parts), decoded.kind


def exponent_of(value):
    guess = abs(value).numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= abs(value) else guess - 1


def outcome(terms, d):
    """What the exact sum of a vector's terms is to the result format."""
    total, largest = sum(terms), max(map(abs, terms))
    if not largest:
        return ["all_zero"]
    if not total:
        return ["zero"]
    place = Fraction(2) ** (max(exponent_of(total), d.min_exponent) - d.fraction_bits)
    rest = abs(total) / place % 1
    found = ["inexact"] if rest else []
    found += ["cancelled"] if abs(total) * 256 <= largest else []
    found += ["subnormal" if exponent_of(total) < d.min_exponent else "normal"]
    found += ["overflow"] if exponent_of(total) > d.max_exponent else []
    found += ["tie"] if rest == Fraction(1, 2) else []
    found += ["near_tie"] if 0 < abs(rest - Fraction(1, 2)) < Fraction(1, 16) else []
    return found


def classify(instruction, family, count):
    """Share of vectors by what they are; subnormal operands as subnormal_a, _b, _c."""
    batch = generate(instruction, family, 11, 0, count)
    operands = {name: values(getattr(instruction, name), codes) for name, codes in batch.items() if name in "abc"}
    scale = [np.ones((count, 1), object)] * 2
    if instruction.scale:
        pair = (values(instruction.scale, codes)[0] for codes in (batch.scale_a, batch.scale_b))
        scale = [np.repeat(value, instruction.scale_size, axis=1) for value in pair]
    tally: Counter[str] = Counter()
    for row in range(count):
        tally.update(f"subnormal_{name}" for name, (_, kind) in operands.items() if (kind[row] == 2).any())
        parts = [np.ravel(value[row]) for value, _ in operands.values()] + [part[row] for part in scale]
        if any(value is None for part in parts for value in part):
            tally["special"] += 1
            continue
        terms = list(parts[0] * parts[1] * parts[-1] * parts[-2])
        tally.update(outcome(terms + (list(parts[2]) if instruction.c else []), formats.get(instruction.d)))
    return Counter({name: number / count for name, number in tally.items()})


def product_window(instruction):
    """Binary places between the largest and the smallest product."""
    parts = [
        formats.get(name) for name in (instruction.a, instruction.b, *[instruction.scale] * bool(instruction.scale))
    ]
    return sum(f.max_exponent - f.min_exponent + f.fraction_bits for f in parts)


def reaches_below_normal(instruction):
    """Whether products can be as small as the lowest result."""
    low = sum(
        formats.get(name).min_exponent - formats.get(name).fraction_bits for name in (instruction.a, instruction.b)
    )
    d = formats.get(instruction.d)
    return low + (-250 if instruction.scale == "ue8m0" else 0) < d.min_exponent - d.fraction_bits


@pytest.mark.sampled(9)
@pytest.mark.parametrize("instruction", [i for i in FLOATS if i.scale != "ue4m3"], **by_id)
def test_families_hit_what_they_are_named_for(instruction):
    count = 150 if instruction.k < 32 else 60
    tie = classify(instruction, "tie", count)
    assert tie["tie"] > 0.25
    assert tie["near_tie"] > 0.05
    cancel = classify(instruction, "cancel", count)
    if product_window(instruction) > 20:  # e2m1 and e3m2 products span too little to cancel deeply
        assert cancel["cancelled"] + cancel["zero"] > 0.3
        assert cancel["cancelled"] > 0.1
    low = classify(instruction, "subnormals", count)
    assert low["subnormal_a"] > 0.3
    assert low["subnormal_b"] > 0.3
    ladder = classify(instruction, "zlad", count)
    if reaches_below_normal(instruction):
        assert low["subnormal"] > 0.2
        assert ladder["subnormal"] > 0.5
        assert classify(instruction, "tiny", count)["subnormal"] > 0.4
    d = formats.get(instruction.d)
    if formats.get(instruction.a).max_exponent + formats.get(instruction.b).max_exponent > d.max_exponent:
        assert classify(instruction, "extremes", count)["overflow"] > 0.3
    if instruction.c:
        alone = classify(instruction, "conly", count)
        assert alone["subnormal"] > 0.2
        assert alone["normal"] > 0.2
    assert classify(instruction, "zeros", count)["all_zero"] > 0.4
    assert classify(instruction, "clustered", count)["normal"] > 0.8


def test_specials_hold_every_kind_of_nan():
    batch = generate(FMA, "specials", 1, 0, 4000)
    nan = np.concatenate([codes.ravel() for _, codes in batch.items()])
    nan = nan[(nan & 0x7FFFFFFF) > 0x7F800000]
    quiet = (nan & 0x400000) != 0
    assert quiet.any()
    assert (~quiet).any()
    assert len(np.unique(nan)) > 300
    assert {0x7F800000, 0xFF800000, 0, 0x80000000} <= set(
        np.concatenate([x.ravel() for _, x in batch.items()]).tolist()
    )


def test_zeros_have_all_signs():
    batch = generate(F16, "zeros", 1, 0, 2000)
    product = (batch.a ^ batch.b) >> 15
    zero = (((batch.a & 0x7FFF) == 0) | ((batch.b & 0x7FFF) == 0)).all(axis=1)
    assert ((product == 1).all(axis=1) & zero & (batch.c == 0x80000000)).mean() > 0.1
    assert ((product == 0).any(axis=1) & (product == 1).any(axis=1) & zero).mean() > 0.2


def test_integer_extremes_overflow_and_stay_inside():
    batch = generate(INTEGERS[0], "extremes", 2, 0, 4000)
    total = (batch.a.astype(np.int64) * batch.b.view(np.int8)).sum(axis=1) + batch.c.view(np.int32)
    outside = (total > 2**31 - 1) | (total < -(2**31))
    assert 0.05 < outside.mean() < 0.95
    assert {0, 1, 127, 128, 129, 255} <= set(np.unique(batch.b).tolist())


def test_products_of_significands():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 53, 500, dtype=np.uint64) >> rng.integers(0, 53, 500, dtype=np.uint64)
    y = rng.integers(0, 1 << 53, 500, dtype=np.uint64) >> rng.integers(0, 53, 500, dtype=np.uint64)
    x[0], y[0] = 1, 1
    top, exponent = normalised_product(x, y)
    for u, v, got, e in zip(x.tolist(), y.tolist(), top.tolist(), exponent.tolist(), strict=True):
        exact = u * v
        if exact:
            assert e == exact.bit_length() - 1
            assert got == (exact << 128 >> (e + 65))
    assert bit_length(np.array([0, 1, 2**53 + 1, 2**64 - 1], np.uint64)).tolist() == [0, 1, 54, 64]


def test_tiny_straddles_the_lowest_normal_result():
    """Values between the largest that rounds down to a subnormal and the lowest normal: what tells tininess rules."""
    batch = generate(FMA, "tiny", 2, 0, 6000)
    a, b, c = (values("f32", codes)[0].ravel() for codes in (batch.a, batch.b, batch.c))
    short = [(1 - abs(x) * 2**126) * 2**24 for x in a * b + c]  # in units of half a place below the lowest normal
    assert sum(Fraction(1, 2) < x < 1 for x in short) > 20
    assert sum(0 < x < Fraction(1, 2) for x in short) > 20
    product = [(1 - abs(x) * 2**126) * 2**24 for x in a * b]
    assert sum(0 < x < Fraction(1, 2) for x in product) > 20


def test_the_shares_of_a_validation():
    """What each family gets of 1,170,000 vectors; a share that changes changes what every campaign looked at."""
    shares = {"cancel": 19, "tie": 15, "clustered": 14, "ulp": 14, "zlad": 10, "subnormals": 9, "extremes": 5,
              "specials": 5, "conly": 3, "tiny": 3, "uniform": 3, "zeros": 3, "multiplier": 8,
              "carries": 6}  # fmt: skip
    assert {family: count for family, _, count in plan(F16, 1_170_000)} == {
        family: 10_000 * share for family, share in shares.items()
    }
