"""Instructions that the compiler builds from others: one datapath against the parts one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, instructions, lowering, match
from mmaprobe.catalog.lowering import Application, Lowering
from mmaprobe.catalog.sparsity import selected_lanes
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from mmaprobe.generators.families import families_for, generate
from mmaprobe.models.engine import refusal
from mmaprobe.models.model import evaluator
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.chaining import chain, converted
from mmaprobe.parameters.composition import compose
from mmaprobe.parameters.datapath import Operand, Product, Special
from mmaprobe.parameters.lookup import basis_for, datapath_for, load
from mmaprobe.parameters.mutate import mutate

FloatArray = npt.NDArray[np.floating]

HOPPER = [made for made in instructions("sm_90a") if made.family == "mma.fp8"]
PARTS = {16: "mma.m16n8k8", 32: "mma.m16n8k16"}


def widened(name: str, codes: Bits) -> Bits:
    """FP8 codes as f16 codes of the same value."""
    fmt, f16 = formats.get(name), formats.get("f16")
    parts = formats.decode(fmt, codes)
    wide = formats.encode(f16, parts.negative, parts.significand, parts.exponent)
    sign = np.where(parts.negative, np.uint64(f16.sign_mask), np.uint64(0))
    wide = np.where(parts.kind == formats.INFINITE, np.uint64(f16.infinity_code) | sign, wide)
    return np.where(parts.kind == formats.NAN, np.uint64(f16.nan_code or 0), wide).astype(np.uint16)


def by_parts(made: Instruction, vectors: Batch) -> Bits:
    """The instruction as compiled: two f16 instructions from zero, then an IEEE addition of C."""
    device = open_model("sm_90a")
    half = instruction(f"{PARTS[made.k]}.{made.d}.f16.f16.{made.d}")
    a, b = widened(made.a, vectors.a), widened(made.b, vectors.b)
    assert vectors.c is not None
    t = np.zeros_like(vectors.c)
    for first in (0, 2):
        lanes = [k for k in range(made.k) if k % 4 in (first, first + 1)]
        t = device.run_vectors(half, Batch(a[:, lanes], b[:, lanes], t))
    kind = np.dtype(f"f{t.dtype.itemsize}")
    with np.errstate(all="ignore"):
        total = t.view(kind) + vectors.c.view(kind)
    nan = datapath_for("sm_90a", made).special.code
    d: Bits = np.where(np.isnan(total), t.dtype.type(nan), total.view(t.dtype))
    return d


@pytest.mark.parametrize("made", HOPPER, ids=lambda made: made.id)
def test_one_datapath_is_its_parts(made: Instruction) -> None:
    """Every family of hard vectors, mixed operand formats included."""
    device = open_model("sm_90a")
    assert refusal(device.datapath(made)) is None
    for family in families_for(made):
        vectors = generate(made, family, 11, 0, 3000)
        assert (device.run_vectors(made, vectors) == by_parts(made, vectors)).all(), family


SPARSE = [
    (architecture, made)
    for architecture in ("sm_90a", "sm_100a")
    for made in instructions(architecture)
    if made.chunk and lowering(made, architecture).convert == "f16"
]


@pytest.mark.parametrize("form", SPARSE, ids=lambda form: f"{form[0]} {form[1].id}")
def test_sparse_fp8_is_two_sparse_f16_instructions(form: tuple[str, Instruction]) -> None:
    """The first takes the even chunks, the second the odd ones; then an IEEE addition of C."""
    architecture, made = form
    device = open_model(architecture)
    half = instruction("mma.sp::ordered_metadata.m16n8k32.f32.f16.f16.f32")
    for family in families_for(made):
        v = generate(made, family, 17, 0, 500)
        assert v.c is not None
        assert v.metadata is not None
        a, b = widened(made.a, v.a).reshape(500, 16, 2), widened(made.b, v.b).reshape(500, 16, 4)
        t = np.zeros_like(v.c)
        for odd in (0, 1):
            part = [np.ascontiguousarray(x[:, odd::2]).reshape(500, -1) for x in (a, b, v.metadata)]
            t = device.run_vectors(half, Batch(part[0], part[1], t, metadata=part[2]))
        with np.errstate(all="ignore"):
            total = t.view(np.float32) + v.c.view(np.float32)
        d = np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))
        np.testing.assert_array_equal(device.run_vectors(made, v), d, family)
    assert basis_for(architecture, made) == ("measured" if architecture == "sm_90a" else "predicted")


def test_parts_of_a_sparse_instruction_are_whole_chunks() -> None:
    made = SPARSE[0][1]
    assert selected_lanes(made, (8, 9, 10, 11, 0, 1, 2, 3)) == (4, 5, 0, 1)
    for lanes in ((0, 1, 2), (2, 3, 4, 5), (0, 2, 1, 3)):
        with pytest.raises(UsageError, match="are not whole chunks of 4"):
            selected_lanes(made, lanes)


def test_small_operands_show_the_exponents_that_f16_gives_them() -> None:
    """Eight bits each from the lowest numbers: the label of a product is that of the converted operands."""
    rng = np.random.default_rng(5)
    for made in HOPPER:
        a, b = (
            rng.integers(0, 256, (4000, made.k), np.uint8) & rng.choice([0x83, 0x87, 0xFF], (4000, 1)) for _ in "ab"
        )
        vectors = Batch(a.astype(np.uint8), b.astype(np.uint8), np.zeros(4000, f"u{4 if made.d == 'f32' else 2}"))
        assert (open_model("sm_90a").run_vectors(made, vectors) == by_parts(made, vectors)).all(), made.id
    labels = {(made.a, made.b): datapath_for("sm_90a", made).product.label for made in HOPPER}
    assert labels == {
        ("e4m3", "e4m3"): "operands", ("e4m3", "e5m2"): "operands", ("e5m2", "e4m3"): "operands",
        ("e5m2", "e5m2"): "encoded",
    }  # fmt: skip


def test_native_parts_stay_native() -> None:
    for arch, emulated in (("sm_89", False), ("sm_90a", True), ("sm_100a", True), ("sm_120a", False)):
        made = match(arch, "mma.m16n8k32.f32.e4m3.e4m3.f32")[0]
        assert (lowering(made, arch).kind == "emulated") == emulated
        assert open_model(arch).supports(made)


def test_what_does_not_compose_is_refused() -> None:
    made = instruction("mma.m16n8k32.f32.e4m3.e5m2.f32")
    way = lowering(made, "sm_90a")
    inner = load("sm_90a").entries[way.primitives[0]].datapath
    cases = [
        (inner, replace(way, add="HADD2"), "HADD2 does not add C to the result"),
        (inner, replace(way, add=None), "does not add C"),
        (inner, replace(way, convert="bf16"), "operands become bf16"),
        (inner, replace(way, applications=(replace(way.applications[0], start="c"),)), "C is not added at the end"),
        (replace(inner, operand_a=Operand("zero")), way, "operand rules"),
        (replace(inner, product=Product(label="normalised")), way, "operand rules"),
        (replace(inner, special=Special("local")), way, "operand rules"),
        (mutate(inner, "tree.fraction_bits", "10"), way, "labels of the two operands differ"),
    ]
    for datapath, changed, said in cases:
        with pytest.raises(UsageError, match=said):
            compose({way.primitives[0]: datapath}, changed, made)
    with pytest.raises(UsageError, match="an operand is no exact part of f16"):
        compose({way.primitives[0]: inner}, way, replace(made, b="bf16"))


ROUTINE = [
    (architecture, made)
    for architecture in ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")
    for made in match(architecture, "mma.m8n8k4*.f16.f16.*")
]


def fma32(a: FloatArray, b: FloatArray, acc: FloatArray) -> FloatArray:
    """round32(a b + acc): the product exact in float64, the sum there rounded to odd, then to float32."""
    product, wide = a.astype(np.float64) * b, acc.astype(np.float64)
    total = product + wide
    back = total - product
    error = (product - (total - back)) + (wide - back)
    code = total.view(np.int64)
    to_odd = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & (code % 2 == 0)
    rounded: FloatArray = np.where(inexact, code + to_odd, code).view(np.float64).astype(np.float32)
    return rounded


def by_scalars(made: Instruction, vectors: Batch) -> Bits:
    """The instruction as compiled, in float32: two pairs of products (f16 results) or all four from +0, added to C."""
    assert vectors.c is not None
    a, b = (x.view(np.float16).astype(np.float32).T for x in (vectors.a, vectors.b))
    d: FloatArray = vectors.c.view(f"f{vectors.c.dtype.itemsize}").astype(np.float32)
    if made.d == "f16":
        d = d + fma32(a[1], b[1], a[0] * b[0])
        d = d + fma32(a[3], b[3], a[2] * b[2])
        half = d.astype(np.float16)
        return np.where(np.isnan(half), np.uint16(0x7FFF), half.view(np.uint16))
    t = np.zeros_like(d)
    for k in range(4):
        t = fma32(a[k], b[k], t)
    d = d + t
    return np.where(np.isnan(d), np.uint32(0x7FFFFFFF), d.view(np.uint32))


@pytest.mark.parametrize("form", ROUTINE, ids=lambda form: f"{form[0]} {form[1].id}")
def test_m8n8k4_without_a_matrix_unit_is_scalar_arithmetic(form: tuple[str, Instruction]) -> None:
    architecture, made = form
    device = open_model(architecture)
    assert refusal(device.datapath(made)) is None
    for family in families_for(made):
        vectors = generate(made, family, 23, 0, 1000)
        with np.errstate(all="ignore"):
            expected = by_scalars(made, vectors)
        np.testing.assert_array_equal(device.run_vectors(made, vectors), expected, family)
    assert basis_for(architecture, made) == "published"


def test_order_and_start_of_the_scalar_routine_show() -> None:
    """Sums of -0 and of 2^24 + 2^-24 - 2^24: f16 results start from a product, f32 results from +0."""
    zero, one, big = 0x8000, 0x3C00, 0x6C00
    f32, f16 = instruction("mma.m8n8k4.f32.f16.f16.f32"), instruction("mma.m8n8k4.f16.f16.f16.f16")
    minus = [np.full((1, 4), code, np.uint16) for code in (zero, one)]
    device = open_model("sm_80")
    assert device.run_vectors(f16, Batch(*minus, np.array([0x8000], np.uint16)))[0] == 0x8000
    assert device.run_vectors(f32, Batch(*minus, np.array([0x80000000], np.uint32)))[0] == 0
    a = np.array([[big, 0x0001, big | 0x8000, 0]], np.uint16)
    b = np.array([[big, one, big, 0]], np.uint16)
    c = np.array([0x3F800000], np.uint32)
    assert device.run_vectors(f32, Batch(a, b, c))[0] == 0x3F800000
    swapped = Batch(a[:, [0, 2, 1, 3]], b[:, [0, 2, 1, 3]], np.zeros(1, np.uint32))
    assert device.run_vectors(f32, swapped)[0] == np.float32(2.0**-24).view(np.uint32)


def wmma(d: str, c: str) -> Instruction:
    """A form of K = 16 on f16 operands, as the old interface has them."""
    return Instruction(f"wmma.{d}.{c}", "wmma", "wmma.f16", 16, 16, 16, "f16", "f16", c, d)


def ways(arch: str, d: str, c: str) -> tuple[Lowering, str]:
    """Its lowering on Volta (four parts) and on Turing (two), with their conversions, and the parts' instruction."""
    step, name = (4, "HMMA.884.{}.{}[f16,f16->{}]") if arch == "sm_70" else (8, "HMMA.1688.{0}[f16,f16->{2}]")
    inner = "f16" if (d, c) == ("f16", "f16") else "f32"
    first = c if arch == "sm_70" else inner
    parts = tuple(
        Application(name.format(inner.upper(), (inner if at else first).upper(), inner), tuple(range(at, at + step)),
                    "previous" if at else "c")
        for at in range(0, 16, step)
    )  # fmt: skip
    widen = "HADD2.F32" if first != c else None
    narrow = "F2F.F16.F32" if d != inner else None
    way = Lowering(f"wmma.{d}.{c}", arch, "split", parts, "ptxas", convert_c=widen, convert_d=narrow)
    return (
        way,
        f"mma.m8n8k4.row.col.{inner}.f16.f16.{{}}" if arch == "sm_70" else f"mma.m16n8k8.{inner}.f16.f16.{inner}",
    )


@pytest.mark.parametrize(("d", "c"), [("f16", "f16"), ("f32", "f16"), ("f16", "f32"), ("f32", "f32")])
@pytest.mark.parametrize("arch", ["sm_70", "sm_75"])
def test_parts_of_k_with_conversions_of_c_and_d(arch: str, d: str, c: str) -> None:
    device, made = open_model(arch), wmma(d, c)
    way, part = ways(arch, d, c)
    known = {name: load(arch).entries[name].datapath for name in way.primitives}
    whole = converted(chain(known, way), way, made)
    assert (whole.a, whole.c, whole.d, whole.k) == ("f16", c, d, 16)
    for family in families_for(made):
        vectors = generate(made, family, 5, 0, 500)
        acc = vectors.c
        assert acc is not None
        if way.convert_c:
            acc = acc.view(np.float16).astype(np.float32).view(np.uint32)
        for step in way.applications:
            held = {2: "f16", 4: "f32"}[acc.dtype.itemsize]
            lanes = list(step.lanes)
            acc = device.run_vectors(
                instruction(part.format(held)), Batch(vectors.a[:, lanes], vectors.b[:, lanes], acc)
            )
        if way.convert_d:
            with np.errstate(over="ignore"):
                narrow = acc.view(np.float32).astype(np.float16)
            acc = np.where(np.isnan(narrow), np.uint16(0x7FFF), narrow.view(np.uint16))
        assert (evaluator(whole)(whole, vectors) == acc).all(), family


def test_unknown_conversions_are_refused() -> None:
    way, _ = ways("sm_75", "f16", "f32")
    known = {name: load("sm_75").entries[name].datapath for name in way.primitives}
    whole = chain(known, way)
    for changed, d, c, said in (
        (replace(way, convert_d="F2F.BF16.F32"), "f16", "f32", "F2F.BF16.F32 does not make f16 of its result"),
        (replace(way, convert_c="HADD2.F32"), "f16", "f32", "HADD2.F32 does not make f32 of its C"),
    ):
        with pytest.raises(UsageError, match=said):
            converted(whole, changed, wmma(d, c))
    with pytest.raises(UsageError, match="cannot be chained"):
        chain({name: replace(path, c="bf16") for name, path in known.items()}, way)
