"""Rounding, overflow, flushes, zeros, operands, products, steps, scales: each rule of docs/datapath.md by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import (
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Operand,
    Product,
    Scale,
    Special,
)
from second_source.by_hand import C, code, dot, exact, f32_sum, fma, lanes, p, raw

INF, QNAN = 0x7F800000, 0x7FC00000


@pytest.mark.parametrize(
    ("to", "positive", "negative"),
    [
        (Encode(rounding="RNE"), INF, INF | 1 << 31),
        (Encode(rounding="RZ"), 0x7F7FFFFF, 0xFF7FFFFF),
        (Encode(rounding="RO"), 0x7F7FFFFF, 0xFF7FFFFF),
        (Encode(rounding="RU"), INF, 0xFF7FFFFF),
        (Encode(rounding="RD"), 0x7F7FFFFF, 0xFF800000),
        (Encode(rounding="RZ", overflow="infinity"), INF, 0xFF800000),
        (Encode(rounding="RNE", overflow="largest"), 0x7F7FFFFF, 0xFF7FFFFF),
    ],
)
def test_overflow(to: Encode, positive: int, negative: int) -> None:
    for path in (fma(to), f32_sum(to)):
        assert raw(path, [0x7F000000], [0x40000000], 0x00000000) == positive
        assert raw(path, [0xFF000000], [0x40000000], 0x00000000) == negative


def test_overflow_without_infinity() -> None:
    special = Special(code=0x7F)
    for overflow, finite in (("infinity", 0x7F), ("largest", 0x7E), ("ieee", 0x7F)):
        to = Encode("e4m3", overflow=overflow)  # type: ignore[arg-type]
        path = Datapath("f16", "f16", None, "e4m3", 1, Exact((lanes(0),), to), special=special)
        assert dot(path, [448.0], [1.0]) == 0x7E
        assert dot(path, [464.0], [1.0]) == 0x7E  # the tie goes to the even 448
        assert dot(path, [480.0], [1.0]) == finite
        assert raw(path, [0x7C00], [0x3C00]) == finite
    small = Datapath("f16", "f16", None, "e2m1", 1, Exact((lanes(0),), Encode("e2m1", overflow="infinity")))
    assert dot(small, [-100.0], [1.0]) == 0xF
    assert raw(small, [0xFC00], [0x3C00]) == 0xF


def test_flush_before_and_after_rounding() -> None:
    """2^-126 (1 - 2^-26) rounds to the lowest normal, so it is tiny before rounding only."""

    def d(value: float, subnormals: str, tininess: str) -> int:
        to = Encode(subnormals=subnormals, tininess=tininess)  # type: ignore[arg-type]
        return dot(Datapath("f64", "f64", None, "f32", 1, Exact((lanes(0),), to)), [value], [1.0])

    lowest, just_below, tie = p(-126), p(-126) * (1 - p(-26)), p(-126) * (1 - p(-25))
    below = p(-126) * (1 - p(-24))  # 24 bits hold it, the subnormals do not: it is tiny, though it rounds up
    for tininess in ("before", "after"):
        assert d(lowest, "zero", tininess) == 0x00800000
        assert d(below, "keep", tininess) == 0x00800000
        assert d(below, "zero", tininess) == d(-below, "zero", tininess) == 0
        assert d(-below, "signed_zero", tininess) == 1 << 31
        assert d(p(-140), "signed_zero", tininess) == 0
    for value in (just_below, tie):
        assert d(value, "signed_zero", "after") == 0x00800000
        assert d(-value, "signed_zero", "before") == 1 << 31
    # "encoded" asks whether the result is a subnormal; these all round up to the lowest normal
    for value in (below, just_below, tie):
        assert d(value, "signed_zero", "encoded") == 0x00800000
    assert d(-p(-127), "signed_zero", "encoded") == 1 << 31


def test_sign_of_zero_results() -> None:
    minus = 1 << 31
    for to, sums in (
        (Encode(), (0, 0, minus, 0)),
        (Encode(rounding="RD"), (0, minus, minus, minus)),
        (Encode(zero="positive"), (0, 0, 0, 0)),
        (Encode(rounding="RD", zero="positive"), (0, 0, 0, 0)),
    ):
        one = 0x3F800000
        fused = Datapath("f32", "f32", "f32", "f32", 1, Fused.alike((lanes(0), C), 24, to=to))
        add = Datapath("f32", "f32", "f32", "f32", 1, Add(Exact((lanes(0),)), C, to))
        for path in (fma(to), f32_sum(to), fused, add):
            got = (
                raw(path, [0], [one], 0),
                raw(path, [minus], [one], 0),
                raw(path, [minus], [one], minus),
                raw(path, [one], [one], one | minus),
            )
            assert got == sums, path.tree


def test_sign_of_underflow() -> None:
    tiny = [0x80000001], [0x00000001], 0
    for to, got in (
        (Encode(), 1 << 31),
        (Encode(underflow="positive"), 0),
        (Encode(zero="positive"), 1 << 31),
        (Encode(subnormals="zero"), 0),
        (Encode(subnormals="signed_zero"), 1 << 31),
        (Encode(rounding="RD"), 0x80000001),
        (Encode(rounding="RA", subnormals="signed_zero"), 1 << 31),
    ):
        assert raw(fma(to), *tiny) == raw(f32_sum(to), *tiny) == got


def test_first_cut_then_rounding() -> None:
    """1 + 2^-24 + 2^-40 is above the tie; cut to 31 bits it is the tie, and to even it goes down."""
    wide = Datapath("f64", "f64", None, "f32", 1, Exact((lanes(0),), Encode()))
    cut = replace(wide, tree=Exact((lanes(0),), Encode(first=(31, "RD"))))
    value = 1 + p(-24) + p(-40)
    assert dot(wide, [value], [1.0]) == 0x3F800001
    assert dot(cut, [value], [1.0]) == 0x3F800000
    assert dot(cut, [-value], [1.0]) == 0xBF800001  # toward -infinity the cut moves it past the tie
    # below the lowest normal the quantum stays 2^(-126 - 31)
    low = p(-140) + p(-150) + p(-158)
    assert dot(wide, [low], [1.0]) == code("f32", p(-140) + p(-149))
    assert dot(cut, [low], [1.0]) == code("f32", p(-140))


def test_a_last_conversion_after_the_last_step() -> None:
    path = Datapath(
        "f16", "f16", "f32", "f16", 2, Fma(C, (0,), Encode("f32", rounding="RZ")), step=1, result=Encode("f16")
    )
    # 1 + 2^-11 is a tie of f16; with 2^-30 the f32 step loses what would lift it
    assert dot(path, [p(-11), p(-15)], [1.0, p(-15)], 1.0) == 0x3C00
    assert dot(path, [p(-11), p(-10)], [1.0, p(-10)], 1.0) == 0x3C01


def test_operand_masks_and_flushes() -> None:
    def product(a: Operand, b: Operand = Operand()) -> Datapath:  # noqa: B008
        return Datapath("f16", "f16", None, "f32", 1, Exact((lanes(0),), Encode()), operand_a=a, operand_b=b)

    assert raw(product(Operand()), [0x8001], [0x3C00]) == code("f32", -p(-24))
    assert raw(product(Operand("signed_zero")), [0x8001], [0x3C00]) == 1 << 31
    assert raw(product(Operand("zero")), [0x8001], [0x3C00]) == 0
    assert raw(product(Operand("zero")), [0x8000], [0x3C00]) == 0
    assert raw(product(Operand("zero")), [0x8400], [0x3C00]) == code("f32", -p(-14))
    assert raw(product(Operand(mask=0x7FFF)), [0xBC00], [0x3C00]) == 0x3F800000
    assert raw(product(Operand("zero", 0xFF00)), [0x00FF], [0x7C00]) == QNAN | 0x003FFFFF  # zero times infinity


def test_operand_c_is_flushed_but_not_the_accumulator() -> None:
    path = Datapath("f32", "f32", "f32", "f32", 2, Fma(C, (0,), Encode()), step=1, operand_c=Operand("zero"))
    one = 0x3F800000
    assert raw(path, [0, 0], [one, one], 1) == 0
    assert raw(path, [1, 0], [one, one], 0) == 1


def test_steps_take_lanes_in_order() -> None:
    up = Datapath("f32", "f32", "f32", "f32", 4, Fma(C, (0,), Encode()), step=1)
    down = replace(up, order=(3, 2, 1, 0))
    pairs = replace(up, step=2, tree=Fma(C, (1, 0), Encode()))
    values = [1.0, p(-24), p(-24), -1.0]
    ones = [1.0] * 4
    assert dot(up, values, ones) == 0
    assert dot(down, values, ones) == code("f32", p(-23))
    assert dot(pairs, values, ones) == code("f32", p(-24))


def test_labels_of_subnormal_and_carrying_products() -> None:
    """Three terms: 1, -1 and p = 1.5 * 1.5 (label 0 or 1) or a subnormal product, 2 fraction bits."""

    def kept(label: str, a: list[float], bits: int) -> float:
        path = Datapath(
            "f16", "f16", None, "f32", 3, Fused.alike((lanes(0, 1, 2),), bits, to=Encode()),
            product=Product(label=label),  # type: ignore[arg-type]
        )  # fmt: skip
        return float(exact("f32", dot(path, a[:3], a[3:])))

    carrying = [1.5, p(-2), 0.0, 1.5, 1.0, 0.0]
    assert [kept(label, carrying, 2) for label in ("encoded", "operands", "normalised")] == [2.5, 2.5, 2.0]
    subnormal = [p(-24), p(-14), 0.0, p(10), p(-2), 0.0]  # 2^-14 with e = -14 + 10, beside 2^-16
    assert kept("encoded", subnormal, 10) == p(-14)
    assert kept("operands", subnormal, 10) == kept("normalised", subnormal, 10) == p(-14) + p(-16)


def test_product_overflow_and_product_rounding() -> None:
    limited = Datapath(
        "bf16", "bf16", "f32", "f32", 2, Fused.alike((lanes(0, 1), C), 24, to=Encode()),
        product=Product(overflow_exponent=128),
    )  # fmt: skip
    huge = [p(127), -p(126)]
    assert dot(limited, huge, [1.0, 2.0]) == 0
    assert dot(limited, huge, [2.0, 2.0]) == INF
    assert dot(limited, [p(127), -p(127)], [2.0, 2.0]) == QNAN | 0x003FFFFF
    separate = Datapath(
        "f32", "f32", "f32", "f32", 1, Add(Exact((lanes(0),)), C, Encode()), product=Product(to=Encode())
    )
    together = fma()
    a, b, c = 1 + p(-23), 1 + p(-23), -(1 + p(-22))
    assert dot(separate, [a], [b], c) == 0
    assert dot(together, [a], [b], c) == code("f32", p(-46))


def test_block_scales_on_products() -> None:
    path = Datapath(
        "e4m3", "e4m3", "f32", "f32", 4,
        Fused.alike((lanes(0, 1, 2, 3), C), 25, zero_exponent=-133, to=Encode(rounding="RZ")),
        scale=Scale("ue8m0", 2),
    )  # fmt: skip
    one = [127, 127]
    assert dot(path, [1.0] * 4, [1.0] * 4, 0.5, scale_a=[128, 127], scale_b=[127, 124]) == code("f32", 4 + 0.25 + 0.5)
    assert dot(path, [1.0] * 4, [1.0] * 4, 0, scale_a=[255, 127], scale_b=one) == 0x7FFFFFFF
    # a scale of 2^-30 takes its block below the other's window
    assert dot(path, [1.0] * 4, [1.0] * 4, 0, scale_a=[127, 97], scale_b=one) == code("f32", 2)


def test_group_scales_label_the_group_with_their_exponents_alone() -> None:
    """Two groups of two: the first cancels yet keeps its label, the second is cut by it."""
    group = tuple(Exact((lanes(2 * i, 2 * i + 1),), scaled=True) for i in range(2))
    path = Datapath(
        "e2m1", "e2m1", "f32", "f32", 4, Fused.alike((*group, C), 4, "RZ", -139, Encode(rounding="RZ")),
        scale=Scale("ue4m3", 2, "group"),
    )  # fmt: skip
    unit, eight, eighth = 0x38, 0x50, 0x20

    def run(a: list[float], scale_a: list[int], c: float = 0) -> float:
        return float(exact("f32", dot(path, a, [1.0] * 4, c, scale_a=scale_a, scale_b=[unit, unit])))

    assert run([1, 1, 1, 1], [unit, unit], 0.5) == 4.5
    assert run([3, -3, 0, 1], [eight, eighth]) == 0  # E = 3, quantum 1/2: 1/8 is cut
    assert run([0, -0.0, 0, 1], [eight, eighth]) == 0.125  # only zeros in the first group: no label
    assert run([6, 6, 0, 0], [unit, unit], p(-5)) == 12  # E = 0 although the sum is 12
    assert run([6, 6, 0, 0], [unit, unit], p(-4)) == 12 + p(-4)
    assert run([6, 6, 1, 0], [0x3F, unit]) == 12 * 1.875 + 1
    zero_scale = dot(path, [6, 6, 0, 1], [1.0] * 4, 0, scale_a=[0, eighth], scale_b=[unit, unit])
    assert zero_scale == code("f32", 0.125)
    assert dot(path, [1] * 4, [1.0] * 4, 0, scale_a=[0xFF, unit], scale_b=[unit, unit]) == 0x7FFFFFFF
    assert dot(path, [1] * 4, [1.0] * 4, 0, scale_a=[0x80 | unit, unit], scale_b=[unit, unit]) == code("f32", 4)


def test_integer_sums_wrap_or_saturate() -> None:
    wrap = Datapath("u8", "s8", "s32", "s32", 4, Exact((lanes(0, 1, 2, 3), C), Encode("s32", overflow="wrap")))
    limit = replace(wrap, tree=Exact((lanes(0, 1, 2, 3), C), Encode("s32", overflow="largest")))
    top = 0x7FFFFFFF
    assert raw(wrap, [255] * 4, [127] * 4, top) == (top + 4 * 255 * 127) & 0xFFFFFFFF
    assert raw(limit, [255] * 4, [127] * 4, top) == top
    assert raw(limit, [255] * 4, [128] * 4, 1 << 31) == 1 << 31
    assert raw(wrap, [1, 2, 3, 4], [255, 1, 0, 2], 5) == 5 - 1 + 2 + 8
    word = Datapath("u8", "s8", None, "s16", 2, Exact((lanes(0, 1),), Encode("s16", overflow="largest")))
    assert raw(word, [255, 255], [127, 127]) == 0x7FFF
    assert raw(word, [255, 255], [128, 128]) == 0x8000
    assert raw(word, [10, 1], [255, 3]) == (3 - 10) & 0xFFFF


@pytest.mark.parametrize(("multiply", "expected"), [("and", 7 + 1), ("xor", 7 + 2)])
def test_single_bit_lanes(multiply: str, expected: int) -> None:
    path = Datapath(
        "b1", "b1", "s32", "s32", 4, Exact((lanes(0, 1, 2, 3), C), Encode("s32", overflow="wrap")),
        product=Product(multiply=multiply),  # type: ignore[arg-type]
    )  # fmt: skip
    assert raw(path, [0, 0, 1, 1], [0, 1, 0, 1], 7) == expected


@pytest.mark.parametrize(
    ("sign", "of_one", "of_minus_zero", "of_nan"),
    [("keep", 0x3F800000, 1 << 31, 0xFFC00001), ("flip", 0xBF800000, 0, 0x7FC00001),
     ("clear", 0x3F800000, 0, 0x7FC00001), ("set", 0xBF800000, 1 << 31, 0xFFC00001)],
)  # fmt: skip
def test_the_sign_bit_changes_before_the_operand_is_read(
    sign: Any, of_one: int, of_minus_zero: int, of_nan: int
) -> None:
    """Of A, of B and of C: a number, a zero, a NaN that is handed on."""
    one, minus_zero, nan = 0x3F800000, 1 << 31, 0xFFC00001
    local = Special("local", QNAN, ("a", "b", "acc"))
    for place, name in enumerate(("operand_a", "operand_b", "operand_c")):
        path = fma(special=local, **{name: Operand(sign=sign)})
        for given, expected in ((one, of_one), (minus_zero, of_minus_zero), (nan, of_nan)):
            a, b, c = [(given, one, minus_zero), (one, given, minus_zero), (minus_zero, one, given)][place]
            assert raw(path, [a], [b], c) == expected, (name, hex(given))


def test_formats_without_a_sign_bit_have_no_negation() -> None:
    for fmt in ("e4m3fnuz", "s8"):
        to = Encode("f32") if fmt != "s8" else Encode("s32", overflow="wrap")
        with pytest.raises(UsageError, match=f"operand sign is 'flip'; {fmt} has no sign bit"):
            Datapath(fmt, fmt, None, to.format, 1, Exact((lanes(0),), to), operand_a=Operand(sign="flip"))
    with pytest.raises(UsageError, match="an absent operand has no sign bit"):
        Datapath("f16", "f16", None, "f32", 1, Exact((lanes(0),), Encode()), operand_c=Operand(sign="set"))
