"""Integer and binary instructions of NVIDIA, native and emulated, against NumPy: exact products, one sum, limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, instructions, lowering
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.models.model import model
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.exact_sums import compose_exact, is_exact_sum
from mmaprobe.parameters.lookup import basis_for, datapath_for, load
from oracle.sparse import selected

ARCHITECTURES = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_107a", "sm_120a")
LOW, HIGH = -(1 << 31), (1 << 31) - 1
EDGES = [0, 1, -1, LOW, LOW + 1, HIGH, HIGH - 1, LOW + 255, HIGH - 255]


def values(name: str, codes: Bits) -> NDArray[np.int64]:
    """The integers that codes stand for; of bits the bits."""
    width = formats.get(name).bits
    low = codes.astype(np.int64) & ((1 << width) - 1)
    return low - ((low >> (width - 1)) << width) if formats.get(name).signed else low


def by_numpy(made: Instruction, v: Batch) -> Bits:
    """d of separate vectors by the words of the id."""
    a, b = values(made.a, v.a), values(made.b, v.b)
    if v.metadata is not None:
        rows = zip(b.tolist(), v.metadata.tolist(), strict=True)
        b = np.array([selected(row, items, made.chunk) for row, items in rows])
    words = made.opcode.split(".")
    if "popc" in words:
        assert ("xor" in words) != ("and" in words)
        product = a ^ b if "xor" in words else a & b
    else:
        product = a * b
    assert v.c is not None
    exact = product.sum(axis=1) + v.c.view(np.int32)
    limited = "satfinite" in words or "saturate" in made.modifier
    return (exact.clip(LOW, HIGH) if limited else exact).astype(np.uint32)


def integer_forms() -> Iterator[tuple[str, Instruction]]:
    """Every integer form and the architectures where it is made differently."""
    known: set[tuple[Any, ...]] = set()
    for architecture in ARCHITECTURES:
        for made in instructions(architecture):
            way = lowering(made, architecture)
            kind = (made.a, made.b, made.k, made.chunk, made.saturates, made.multiply, way.kind, way.primitives)
            if made.d == "s32" and made.a != "ti16" and kind not in known:
                known.add(kind)
                yield architecture, made


FORMS = list(integer_forms())


def test_every_kind_is_there() -> None:
    pairs = {(made.a, made.b) for _, made in FORMS}
    assert pairs == {*((a, b) for w in "84" for a in (f"s{w}", f"u{w}") for b in (f"s{w}", f"u{w}")), ("b1", "b1")}
    assert {lowering(made, architecture).kind for architecture, made in FORMS} >= {"native", "emulated"}
    assert len(FORMS) > 100


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form[0]} {form[1].id}")
def test_models_are_exact(form: tuple[str, Instruction]) -> None:
    architecture, made = form
    m = model(architecture, made.id)
    for family in families_for(made):
        v = generate(made, family, 13, 0, 60)
        np.testing.assert_array_equal(m.run_vectors(v), by_numpy(made, v), family)


@pytest.mark.parametrize("limit", ["", "satfinite."])
@pytest.mark.parametrize(("a", "b"), [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")])
def test_every_pair_of_bytes_at_every_limit(a: str, b: str, limit: str) -> None:
    """One live lane, all 65,536 pairs, and C at and next to the limits of 32 bits."""
    made = instruction(f"mma.m16n8k16.{limit}s32.{a}.{b}.s32")
    m = model("sm_80", made.id)
    codes = np.arange(1 << 16)
    left, right = np.zeros((1 << 16, 16), np.uint8), np.zeros((1 << 16, 16), np.uint8)
    left[:, 5], right[:, 5] = codes >> 8, codes & 255
    product = values(a, left[:, 5]) * values(b, right[:, 5])
    for c in EDGES:
        exact = product + c
        expected = (exact.clip(LOW, HIGH) if limit else exact).astype(np.uint32)
        d = m.dot(left, right, np.full(1 << 16, c, np.int64).astype(np.uint32))
        np.testing.assert_array_equal(d, expected, str(c))


def test_the_whole_sum_is_limited_not_its_parts() -> None:
    """C above the limit after half of the products and back below it after the rest."""
    a, b = np.zeros(64, np.uint8), np.full(64, 7, np.uint8)
    a[:32], a[32:] = 7, 9  # 32 times 49, then 32 times -49
    c = np.array(HIGH - 10, np.uint32)
    for architecture, kind in (("sm_80", "native"), ("sm_90a", "emulated")):
        for limit in ("", "satfinite."):
            made = instruction(f"mma.m16n8k64.{limit}s32.s4.s4.s32")
            assert lowering(made, architecture).kind == kind
            assert model(architecture, made.id).dot(a, b, c) == HIGH - 10
            alone = "measured" if architecture == "sm_90a" else "published"  # IMMA.16832, which it is made of
            assert basis_for(architecture, made) == ("predicted" if limit else alone)
    note = dict(load("sm_80").entries["IMMA.16864.S4.S4.SAT[s4,s4->s32]"].notes)
    assert "as every such sum of an H100 is" in note["tree.to.overflow"]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("way", ["and", "xor"])
def test_bits_are_packed_words_counted(architecture: str, way: str) -> None:
    made = instruction(f"mma.m16n8k256.s32.b1.b1.s32.{way}.popc")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 2, (200, 256)).astype(np.uint8) for _ in "ab")
    c = rng.integers(0, 1 << 32, 200, np.uint32)
    words = [np.packbits(x, axis=1) for x in (a, b)]
    both = words[0] & words[1] if way == "and" else words[0] ^ words[1]
    count = np.array([int.from_bytes(row.tobytes(), "big").bit_count() for row in both], np.uint32)
    np.testing.assert_array_equal(model(architecture, made.id).dot(a, b, c), count + c)


def test_an_instruction_says_what_its_datapath_does() -> None:
    for architecture, made in FORMS:
        path = datapath_for(architecture, made)
        assert path.product.multiply == made.multiply
        assert path.tree.to.overflow == ("largest" if made.saturates else "wrap")  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="multiply is 'and', which only bits take, not s8, s8"):
        replace(instruction("mma.m16n8k32.s32.s8.s8.s32"), multiply="and")


def test_only_exact_sums_compose_without_places() -> None:
    made = instruction("mma.m16n8k64.s32.s4.u4.s32")
    way = lowering(made, "sm_90a")
    entries = load("sm_90a").entries
    inner = entries[way.primitives[0]].datapath
    assert is_exact_sum(inner)
    assert compose_exact(inner, way, made) == load("sm_80").entries["IMMA.16864.S4.U4[s4,u4->s32]"].datapath
    limited = entries["IMMA.16832.S8.U8.SAT[s8,u8->s32]"].datapath
    assert not is_exact_sum(limited)
    assert not is_exact_sum(entries["HMMA.16816.F32[f16,f16->f32]"].datapath)
    few = Lowering(made.id, "sm_90a", "emulated", (), "t", 1, unplaced=way.unplaced)
    cases = [
        (replace(inner, a="u8"), way, "it does not hold s4, u4 and s32"),
        (inner, few, "1 of 32 lanes are too few"),
        (
            replace(inner, product=replace(inner.product, overflow_exponent=7)),
            way,
            "its products are no plain products",
        ),
    ]
    for datapath, changed, said in cases:
        with pytest.raises(UsageError, match=said):
            compose_exact(datapath, changed, made)
    file = load("sm_90a")
    inside = replace(entries[way.primitives[0]], datapath=limited)
    with pytest.raises(UsageError, match=r"no datapath is known for .*s4\.u4.* \(emulated: IMMA\.16832\.S8\.U8"):
        datapath_for("sm_90a", made, replace(file, entries={**entries, inside.primitive: inside}))
