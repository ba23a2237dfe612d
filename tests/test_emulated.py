"""FP8 mma.sync where the compiler builds it from f16 instructions: one datapath against the parts one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, instructions, lowering, match
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from mmaprobe.generators.families import families_for, generate
from mmaprobe.models.engine import refusal
from mmaprobe.parameters.composition import compose
from mmaprobe.parameters.datapath import Operand, Product, Special
from mmaprobe.parameters.lookup import datapath_for, load

HOPPER = [made for made in instructions("sm_90a") if made.family == "mma.fp8"]
PARTS = {16: "mma.m16n8k8", 32: "mma.m16n8k16"}


def widened(name: str, codes: Bits) -> Bits:
    """FP8 codes as f16 codes of the same value."""
    fmt, f16 = formats.get(name), formats.get("f16")
    parts = formats.decode(fmt, codes)
    wide = formats.encode(f16, parts.negative, parts.significand, parts.exponent)
    sign = np.where(parts.negative, f16.sign_mask, 0)
    wide = np.where(parts.kind == formats.INFINITE, f16.infinity_code | sign, wide)
    return np.where(parts.kind == formats.NAN, f16.nan_code, wide).astype(np.uint16)


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
        (replace(inner, tree=replace(inner.tree, fraction_bits=10)), way, "labels of the two operands differ"),
    ]
    for datapath, changed, said in cases:
        with pytest.raises(UsageError, match=said):
            compose(datapath, changed, made)
    with pytest.raises(UsageError, match="an operand is no exact part of f16"):
        compose(inner, way, replace(made, b="bf16"))
