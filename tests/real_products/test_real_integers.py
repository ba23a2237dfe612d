"""Rescaled products of integers against PyTorch's quantised linear and ONNX Runtime's: shapes, scales and zero points
that were not asked, every element."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import libraries
import numpy as np
import pytest
from test_real_products import PRODUCTS, SEED, shapes_of, unlike

import mmaprobe
from mmaprobe.derivation.schedules.identify import Identification, identify
from mmaprobe.devices.products import open_product
from mmaprobe.parameters.epilogue import Input
from mmaprobe.parameters.integer_sums import NO_BIAS, IntegerSums, LaneGroups, Rescale
from mmaprobe.parameters.quantised import Quantised
from mmaprobe.parameters.schedule import Schedule, Scope, schedule_named
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.integer_values import INTEGER_FAMILIES, integer_operands

HERE = Path(__file__).parent
RESCALED = schedule_named(HERE / "integers_rescaled.toml")
SCALES = ((0.5, 0.01, 8.0), (1.0, 0.00390625, 16.0), (0.0173, 0.0091, 0.31), (0.1, 0.2, 37.5))
"""Scales of A, B and D; of the second ones products are ties."""
ENGINES = ("fbgemm", "qnnpack", "mlas")


def needs_this_processor() -> None:
    reason = unlike(PRODUCTS["mlas_avx2_u8s8"])
    if reason:
        pytest.skip(f"integers_rescaled: {reason}")


def answered(engine: str, a: Any, b: Any, scales: tuple[float, ...], zero_a: int, zero: int) -> Any:
    if engine == "mlas":
        return libraries.mlas_quantised(a, b, scales, zero_a, zero)
    import torch

    return libraries.quantised(engine, torch.from_numpy(a), torch.from_numpy(b), scales, zero_a, zero).numpy()


def exact() -> Any:
    """The schedule whose groups do not saturate."""
    assert RESCALED.integers is not None
    return replace(RESCALED, integers=replace(RESCALED.integers, groups=None, zeros="before"))


@pytest.mark.libraries
@pytest.mark.parametrize("engine", ENGINES)
def test_no_bit_of_a_rescaled_product_differs(engine: str) -> None:
    needs_this_processor()
    made = exact() if engine == "qnnpack" else RESCALED
    model, rng, elements = mmaprobe.gemm(made), np.random.default_rng(SEED), 0
    scope = replace(RESCALED.scope, least_k=1, most_m=300, most_n=300, most_k=2000)
    for number, (m, n, k) in enumerate(shapes_of(scope, rng)):
        scales, zero_a, zero = SCALES[number % len(SCALES)], (0, 128, 7)[number % 3], (0, 100, 255)[number // 3 % 3]
        for spread in (256, 8):
            a = rng.integers(max(0, zero_a - spread), min(256, zero_a + spread), (m, k)).astype(np.uint8)
            b = rng.integers(max(-128, -spread), min(128, spread), (k, n)).astype(np.int8)
            scale = np.float32(scales[0]) * np.float32(scales[1]) / np.float32(scales[2])
            ours = model(a, b, zero_a=zero_a, scale=np.float32(scale), zero=zero)
            theirs = answered(engine, a, b, scales, zero_a, zero)
            assert (ours == theirs).all(), (m, n, k, scales, zero_a, zero, int((ours != theirs).sum()))
            elements += m * n
    print(f"{engine}: {elements:,} elements at 20 shapes, 0 differ")


def biased(engine: str) -> Any:
    """The schedule of an engine with a bias for each column, which is handed over."""
    made = exact() if engine == "qnnpack" else RESCALED
    sums = made.integers
    assert sums is not None
    assert sums.rescale is not None
    if engine in ("qnnpack", "mlas"):
        return replace(
            made, inputs=(*made.inputs, Input("bias", "s32", "column")), integers=replace(sums, bias=("bias",))
        )  # fmt: skip
    rule = replace(sums.rescale, bias=("bias",), bias_added="before")
    return replace(
        made, inputs=(*made.inputs, Input("bias", "f32", "column")), integers=replace(sums, rescale=rule)
    )  # fmt: skip


@pytest.mark.libraries
@pytest.mark.parametrize("engine", ENGINES)
def test_no_bit_differs_where_a_bias_is_added(engine: str) -> None:
    """QGemm and QNNPACK add one of s32 to the sum; FBGEMM adds it, over the scales of A and B, in f32."""
    needs_this_processor()
    made = biased(engine)
    model, rng, elements = mmaprobe.gemm(made), np.random.default_rng(SEED + 1), 0
    scope = replace(RESCALED.scope, least_k=1, most_m=300, most_n=300, most_k=2000)
    for number, (m, n, k) in enumerate(shapes_of(scope, rng)):
        scales, zero_a, zero = SCALES[number % len(SCALES)], (0, 128, 7)[number % 3], (0, 100, 255)[number // 3 % 3]
        of_sums = np.float32(scales[0]) * np.float32(scales[1])
        whole = rng.integers(-1 << 15, 1 << 15, n).astype(np.int32)
        bias: Any = whole
        if engine == "qnnpack":
            bias = whole * of_sums
            whole = np.rint(bias * (np.float32(1) / of_sums)).astype(np.int32)
        elif engine == "fbgemm":
            bias = (rng.standard_normal(n) * 4000 * of_sums).astype(np.float32)
            whole = bias / of_sums
        for spread in (256, 8):
            a = rng.integers(max(0, zero_a - spread), min(256, zero_a + spread), (m, k)).astype(np.uint8)
            b = rng.integers(max(-128, -spread), min(128, spread), (k, n)).astype(np.int8)
            scale = np.float32(of_sums / np.float32(scales[2]))
            ours = model(a, b, zero_a=zero_a, scale=scale, zero=zero, bias=whole)
            if engine == "mlas":
                theirs = libraries.mlas_quantised_gemm(a, b, scales, zero_a, zero, bias)
            else:
                import torch

                given = torch.from_numpy(a), torch.from_numpy(b)
                theirs = libraries.quantised(engine, *given, scales, zero_a, zero, bias).numpy()
            assert (ours == theirs).all(), (m, n, k, scales, zero_a, zero, int((ours != theirs).sum()))
            elements += m * n
    print(f"{engine}: {elements:,} elements at 20 shapes, 0 differ")


@pytest.mark.libraries
@pytest.mark.parametrize("of_sum", [True, False])
def test_no_bit_of_a_d_of_f32_differs_where_a_bias_is_added(of_sum: bool) -> None:
    """QGemm to f32 adds a bias of s32 to the sum; MatMulIntegerToFloat one of f32 to D."""
    needs_this_processor()
    sums = IntegerSums(
        "s32", groups=LaneGroups(2), zero_a=("100",), zeros="after", bias=("bias",) if of_sum else ("0",),
        rescale=Rescale(("scale",), bias=NO_BIAS if of_sum else ("bias",)),
    )  # fmt: skip
    inputs = Input("scale", "f32"), Input("bias", "s32" if of_sum else "f32", "column")
    model = mmaprobe.gemm(Schedule("u8", "s8", "f32", Scope("a test"), inputs=inputs, integers=sums))
    rng, elements = np.random.default_rng(SEED + 2), 0
    scope = replace(RESCALED.scope, least_k=1, most_m=300, most_n=300, most_k=2000)
    for number, (m, n, k) in enumerate(shapes_of(scope, rng)):
        scales = SCALES[number % len(SCALES)][:2]
        scale = np.float32(scales[0]) * np.float32(scales[1])
        bias: Any = rng.integers(-1 << 15, 1 << 15, n).astype(np.int32)
        if not of_sum:
            bias = (rng.standard_normal(n) * 1000 * scale).astype(np.float32)
        for spread in (256, 8):
            a = rng.integers(max(0, 100 - spread), min(256, 100 + spread), (m, k)).astype(np.uint8)
            b = rng.integers(max(-128, -spread), min(128, spread), (k, n)).astype(np.int8)
            ours = model(a, b, scale=scale, bias=bias)
            if of_sum:
                theirs = libraries.mlas_quantised_gemm(a, b, scales, 100, 0, bias)
            else:
                theirs = libraries.mlas_integers_to_float_with_bias(a, b, scales, bias)
            assert (ours.view("u4") == theirs.view("u4")).all(), (m, n, k, scales, int((ours != theirs).sum()))
            elements += m * n
    print(f"D of f32: {elements:,} elements at 20 shapes, 0 differ")


DYNAMIC = IntegerSums(
    "s32", groups=LaneGroups(2), zeros="after", quantised=Quantised(), rescale=Rescale(("scale",))
)  # fmt: skip
"""DynamicQuantizeMatMul of ONNX Runtime."""


@pytest.mark.libraries
@pytest.mark.parametrize("with_bias", [False, True])
def test_no_bit_differs_where_a_is_quantised_by_its_ends(with_bias: bool) -> None:
    needs_this_processor()
    sums, inputs = DYNAMIC, [Input("scale", "f32")]
    if with_bias:
        sums = replace(sums, rescale=Rescale(("scale",), bias=("bias",)))
        inputs.append(Input("bias", "f32", "column"))
    made = Schedule("f32", "s8", "f32", Scope("a test"), inputs=tuple(inputs), integers=sums)
    model, rng, elements = mmaprobe.gemm(made), np.random.default_rng(SEED + 3), 0
    scope = replace(RESCALED.scope, least_k=1, most_m=300, most_n=300, most_k=2000)
    product = open_product(f"function:{HERE / 'libraries.py'}:mlas_dynamic?format=f32&format_b=s8&result=f32")
    for number, (m, n, k) in enumerate(shapes_of(scope, rng)):
        scale = np.float32(SCALES[number % len(SCALES)][1])
        bias = {"bias": (100 * rng.standard_normal(n)).astype(np.float32)} if with_bias else {}
        for family in (*INTEGER_FAMILIES, "normal"):
            a, b = integer_operands(ProductCalls(product, 0), family.replace("normal", "small"), (m, n, k), rng)
            a, b = a.view(np.float32), b.view(np.int8)
            if family == "normal":
                a = (rng.standard_normal((m, k)) * 10.0 ** rng.integers(-4, 4) + number % 3 - 1).astype(np.float32)
                b = rng.integers(-128, 128, (k, n)).astype(np.int8)
            ours = model(a, b, scale=scale, **bias)
            theirs = libraries.mlas_dynamic(a, b, float(scale), bias.get("bias"))
            assert (ours.view("u4") == theirs.view("u4")).all(), (m, n, k, family, int((ours != theirs).sum()))
            elements += m * n
    print(f"A quantised: {elements:,} elements at 20 shapes, 0 differ")


@pytest.mark.libraries
def test_zero_points_of_columns_are_held_and_found() -> None:
    """MatMulInteger of ONNX Runtime with a zero point for each column of B."""
    needs_this_processor()
    sums = IntegerSums("s32", groups=LaneGroups(2), zero_a=("zero_a",), zero_b=("zero_b",), zeros="after")
    inputs = Input("zero_a", "u8"), Input("zero_b", "s8", "column")
    model = mmaprobe.gemm(Schedule("u8", "s8", "s32", Scope("a test"), inputs=inputs, integers=sums))
    rng, elements = np.random.default_rng(SEED + 4), 0
    target = f"function:{HERE / 'libraries.py'}:mlas_integers_with_column_zeros?format=u8&format_b=s8&result=s32"
    product = open_product(f"{target}&m=64&n=16&k=300&threads=1")
    for m, n, k in shapes_of(replace(RESCALED.scope, least_k=1, most_m=300, most_n=300, most_k=2000), rng):
        zero_a, zero_b = int(rng.integers(256)), rng.integers(-128, 128, n).astype(np.int8)
        for family in INTEGER_FAMILIES:
            a, b = integer_operands(ProductCalls(product, 0), family, (m, n, k), rng)
            ours = model(a, b.view(np.int8), zero_a=zero_a, zero_b=zero_b)
            theirs = libraries.mlas_integers_with_column_zeros(a, b.view(np.int8), zero_a, zero_b)
            assert (ours.view("i4") == theirs).all(), (m, n, k, family)
            elements += m * n
    print(f"zero points of columns: {elements:,} elements at 20 shapes, 0 differ")
    found = identify(product)
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert found.schedule.integers is not None
    wanted = tuple(str(each * 37 % 256 - 128) for each in range(16))
    assert (found.schedule.integers.zero_a, found.schedule.integers.zero_b) == (("100",), wanted)


def sums_of(call: str, n: int) -> tuple[Identification, IntegerSums]:
    """What is found of a function of ``libraries.py``, at 64 x N x 300 and by one thread, and its sums of integers."""
    found = identify(open_product(f"function:{HERE / 'libraries.py'}:{call}&m=64&n={n}&k=300&threads=1"))
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert found.schedule.integers is not None
    return found, found.schedule.integers


@pytest.mark.libraries
@pytest.mark.parametrize("call", ["mlas_dynamic", "mlas_dynamic_with_bias"])
def test_a_library_that_quantises_a_is_identified(call: str) -> None:
    needs_this_processor()
    sums = sums_of(f"{call}?format=f32&format_b=s8&result=f32", 16)[1]
    assert sums.rescale is not None
    assert (sums.quantised, sums.groups, sums.zeros) == (Quantised(), LaneGroups(2), "after")
    assert (sums.rescale.scale, sums.rescale.bias == NO_BIAS) == (("0x1.47ae14p-7",), call == "mlas_dynamic")


@pytest.mark.libraries
@pytest.mark.parametrize(
    ("call", "groups", "said"),
    [
        ("mlas_quantised?format=u8&format_b=s8&result=u8", True, "0x1.47ae14p-11"),
        ("fbgemm_quantised?array=torch&format=u8&format_b=s8&result=u8", True, "0x1.47ae14p-11"),
        ("qnnpack_quantised?array=torch&format=u8&format_b=s8&result=u8", False, "0x1.47ae14p-11"),
        ("mlas_integers_to_float?format=u8&format_b=s8&result=f32", True, "0x1.47ae14p-10"),
        ("mlas_integers_with_zeros?format=u8&format_b=s8&result=s32", True, ""),
    ],
)
def test_a_library_is_identified(call: str, groups: bool, said: str) -> None:
    needs_this_processor()
    sums = sums_of(call, 64)[1]
    assert (sums.groups is not None) == groups
    assert sums.groups is None or (sums.groups.lanes, sums.groups.stride, sums.groups.format) == (2, 1, "s16")
    assert (sums.rescale.scale if sums.rescale else ("",)) == (said,)
    if "zeros" in call:
        assert (sums.zero_a, sums.zero_b, sums.zeros) == (("100",), ("-3",), "after")


@pytest.mark.libraries
@pytest.mark.parametrize(
    ("call", "of_sum"),
    [
        ("mlas_quantised_gemm?format=u8&format_b=s8&result=u8", True),
        ("qnnpack_quantised_with_bias?array=torch&format=u8&format_b=s8&result=u8", True),
        ("fbgemm_quantised_with_bias?array=torch&format=u8&format_b=s8&result=u8", False),
        ("mlas_quantised_gemm_to_float?format=u8&format_b=s8&result=f32", True),
        ("mlas_integers_to_float_with_bias?format=u8&format_b=s8&result=f32", False),
    ],
)
def test_a_library_with_a_bias_is_identified(call: str, of_sum: bool) -> None:
    needs_this_processor()
    found, sums = sums_of(call, 16)
    assert sums.rescale is not None
    assert (sums.groups is None) == call.startswith("qnnpack")
    if of_sum:
        assert sums.bias == tuple(str(each) for each in libraries.biases(16))
    assert (sums.bias == ("0",), sums.rescale.bias == NO_BIAS) == (not of_sum, of_sum)
    assert {each.shape[1] for each in found.held} == {16}


@pytest.mark.libraries
def test_onednn_adds_other_pairs_where_k_is_longer_than_256_and_is_left_open() -> None:
    """Of K above 256 with a remainder of 1 or 2 by 4 other pairs saturate: no schedule is claimed."""
    needs_this_processor()
    target = f"{HERE / 'libraries.py'}:onednn_quantised?array=torch&format=u8&format_b=s8&result=u8"
    found = identify(open_product(f"function:{target}&m=64&n=64&k=300&threads=1"))
    assert (found.status, found.schedule) == ("bounded", None)
    assert "it does not hold" in found.why[0]
