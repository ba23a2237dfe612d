"""Whole units against what was recorded of them, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.errors import UsageError
from mmaprobe.models.stages import evaluate
from mmaprobe.models.trace import Trace
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Datapath,
    Encode,
    Exact,
    Fused,
    Term,
)
from second_source.by_hand import VDPBF16PS, C, code, dot, exact, lanes, p, raw, tensor_core

EVEN, ODD = tuple(range(0, 16, 2)), tuple(range(1, 16, 2))
GTR = Datapath(
    "e4m3fnuz", "e4m3fnuz", "f32", "f32", 16,
    Fused(
        (Term(Fused.alike((Fused.alike((lanes(*EVEN),), 24), Fused.alike((lanes(*ODD),), 24)), 24, "RD"),
              31, "RD"),
         Term(C, 24, "RD", -126, cutoff=25)),
        Encode(first=(31, "RD")),
    ),
)  # fmt: skip
U = p(7)


@pytest.mark.parametrize(
    ("x", "same", "other"), [(0.25, 0, 0), (0.75, 0, 0), (1.5, 1, 1), (-0.25, 0, -1), (-0.75, 0, -1), (-1.5, -1, -2)]
)
def test_grouped_products_cut_toward_zero_inside_and_down_between(x: float, same: int, other: int) -> None:
    """Recorded on MI300X, in units of 2^-10 beside +-2^14: RZ within a parity, RD between them."""
    for position, units in ((2, same), (3, other)):
        a, b = [0.0] * 16, [0.0] * 16
        a[0], b[0], a[4], b[4] = U, U, -U, U
        a[position], b[position] = x * p(-5), p(-5)
        assert float(exact("f32", dot(GTR, a, b))) == units * p(-10)


def test_c_is_dropped_far_below_the_products() -> None:
    """Recorded on MI300X: 2^14 - 2^(14-e) for e = 20..25, then nothing."""
    expected = ["1.ffffep+13", "1.fffffp+13", "1.fffff8p+13", "1.fffffcp+13", "1.fffffep+13", "1.fffffep+13", "1p+14"]
    for e, value in zip(range(20, 27), expected, strict=True):
        assert dot(GTR, [U], [U], -p(14 - e)) == code("f32", float.fromhex(f"0x{value}"))
    cancelled = [U, 0, 0, 0, -U], [U, 0, 0, 0, U]
    for x, units in ((0.25, 0), (0.75, 0), (1.5, 1), (-0.25, 0), (-0.125, 0), (-0.5, -1), (-1.0, -1), (-1.5, -2)):
        assert float(exact("f32", dot(GTR, *cancelled, x * p(-10)))) == units * p(-10)


def test_exact_sum_with_one_rounding() -> None:
    """CDNA1: a cancellation no alignment survives, and the value next to overflow."""
    path = Datapath("bf16", "bf16", "f32", "f32", 2, Exact((lanes(0, 1), C), Encode()))
    assert dot(path, [-p(13), -0.5], [p(10), 1.0], p(23)) == code("f32", -0.5)
    a, b = [217 * p(40), 217 * p(30)], [151 * p(48), 151 * p(43)]
    assert dot(path, a, b, float.fromhex("0x1.fffffep+127")) == 0x7F7FFFFF
    chained = Datapath("f16", "f16", "f32", "f32", 4, Exact((lanes(0, 1, 2, 3), C), Encode()))
    assert dot(chained, [-p(13), -0.5, -0.25, -0.125], [p(10), 1, 1, 1], p(23)) == code("f32", -0.875)


def test_vdpbf16ps_adds_the_odd_pair_first() -> None:
    tiny = p(-24)
    assert dot(VDPBF16PS, [tiny, -1.0], [1.0, 1.0], 1.0) == code("f32", tiny)
    assert dot(VDPBF16PS, [-1.0, tiny], [1.0, 1.0], 1.0) == 0
    assert raw(VDPBF16PS, [0x8001, 0], [0x3F80, 0], 0x80000001) == 0  # -0 * 1 + (0 + -0)
    assert raw(VDPBF16PS, [0x8001, 0x8000], [0x3F80, 0x3F80], 0x80000001) == 1 << 31


def test_f16_accumulators_round_between_steps() -> None:
    """8 + 2^-8 is a tie of f16, met once a step."""
    values = [8.0, p(-8)] + [0.0] * 6 + [p(-8)]
    assert dot(replace(tensor_core(24, 8, -20, d="f16"), k=16), values, [1.0] * 9) == code("f16", 8)
    assert dot(tensor_core(25, 16, -21, d="f16"), values, [1.0] * 9) == code("f16", 8 + p(-7))


def test_operands_that_do_not_fit_are_named() -> None:
    path = VDPBF16PS
    a, c = np.zeros((3, 2), np.uint16), np.zeros(3, np.uint32)
    for batch, message in (
        (Batch(a, a[:, :1], c), r"operand b: this datapath takes \(3, 2\), got \(3, 1\)"),
        (Batch(a, a, None), r"operand c: this datapath takes \(3,\), got none"),
        (Batch(a, a, c, scale_a=a), "operand scale_a: this datapath takes none"),
    ):
        with pytest.raises(UsageError, match=message):
            evaluate(path, batch)
    with pytest.raises(UsageError, match="a trace follows one vector, got 3"):
        evaluate(path, Batch(a, a, c), Trace())
    assert evaluate(path, Batch(a[:0], a[:0], c[:0])).shape == (0,)
