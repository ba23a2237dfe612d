"""Every operand of every golden row: its layout is a bijection onto its matrix, with the register count of the row."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mmaprobe.catalog import layouts, lookup
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.shared_memory import matrix
from mmaprobe.errors import UsageError
from second_source.layout_rows import AMD, NVIDIA, amd, fragments, nvidia

FAMILIES = sorted({row["family"] for row in NVIDIA if not row["family"].startswith("wmma")})
OPEN = "the layout of {} is open"


def chosen(fragment: Fragment) -> list[dict[str, int]]:
    """Every combination of the choices of a fragment."""
    names = [name for name, _ in fragment.choices]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(v for _, v in fragment.choices))]


@cache
def check_bijection(fragment: Fragment) -> None:
    """Under every choice each element of the matrix has exactly its number of places, and no place lies outside."""
    for choice in chosen(fragment):
        held = fragment.held(**choice)
        index = [axis[held] for axis in fragment.coordinates(**choice).values()]
        for axis, (name, size) in zip(index, fragment.axes, strict=True):
            assert axis.min() >= 0, (fragment.name, name)
            assert axis.max() < size, (fragment.name, name)
        flat = np.ravel_multi_index(index, fragment.shape)
        counts = np.bincount(flat, minlength=fragment.elements)
        assert (counts == fragment.replication).all(), (fragment, choice)


@cache
def check_packing(fragment: Fragment) -> None:
    """What is packed comes back, from exactly the bits that the layout names."""
    rng = np.random.default_rng(0)
    for choice in (chosen(fragment)[0], chosen(fragment)[-1]):
        codes = rng.integers(0, 1 << min(fragment.width, 63), (2, *fragment.shape), np.uint64)
        words = fragment.pack(codes, **choice)
        assert words.shape == (2, fragment.lanes, fragment.registers)
        assert (fragment.unpack(words, **choice) == codes).all()
        full = fragment.pack(np.full(fragment.shape, (1 << fragment.width) - 1, np.uint64), **choice)
        ones = np.unpackbits(full.view(np.uint8)).sum()
        assert ones == fragment.elements * fragment.replication * fragment.width


def granted(instruction: Instruction, architecture: str, operand: str) -> Fragment | None:
    """The layout, checked; None where the catalog says that it is open."""
    found, refused = ask(instruction, architecture, operand)
    if found is None:
        assert OPEN.format(operand) in refused, refused
        assert "\n" not in refused
    else:
        check_bijection(found)
    return found


def ask(instruction: Instruction, architecture: str, operand: str) -> tuple[Fragment | None, str]:
    """The layout, or what the catalog says instead."""
    try:
        return layouts.layout(instruction, architecture, operand), ""
    except UsageError as error:
        return None, str(error)


def counts(operands: str) -> dict[str, tuple[int, int]]:
    """``d=4xf32 e=b32`` as {operand: (registers, bits of one)}."""
    found = re.findall(r"(\w+)=(?:(\d+)x)?[bfsu](\d+)", operands)
    return {name: (int(count or 1), int(bits)) for name, count, bits in found}


ROLES = {"a": "a", "b": "b", "c": "c", "d": "d", "e": "metadata", "sfa": "scale_a", "sfb": "scale_b"}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("family", [name for name in FAMILIES if name.startswith(("mma", "wgmma"))])
def test_nvidia_registers(family: str) -> None:
    """mma.sync and wgmma: every operand that the PTX form has in registers, against its register count."""
    seen = 0
    for row in (row for row in NVIDIA if row["family"] == family):
        for instruction in nvidia(row):
            for name, (registers, bits) in counts(row["operands"]).items():
                if name not in ROLES:
                    continue
                if name == "c" and instruction.family.startswith("wgmma"):
                    continue
                found = layouts.layout(instruction, "", ROLES[name])
                check_bijection(found)
                assert (found.registers, found.register_bits) == (registers, bits), (row["ptx"], name)
                seen += 1
    assert seen


@pytest.mark.parametrize("family", [name for name in FAMILIES if name.startswith("wgmma")])
def test_wgmma_places(family: str) -> None:
    """What is not in registers is in shared memory, and the metadata of sparse forms in one register."""
    for row in (row for row in NVIDIA if row["family"] == family):
        for instruction in nvidia(row):
            shared = ["b"] if "A regs" in row["extra"] else ["a", "b"]
            for operand in shared:
                assert matrix(instruction, operand).bytes
                with pytest.raises(UsageError, match="shared memory"):
                    layouts.layout(instruction, "sm_90a", operand)
            if "a" not in shared:
                with pytest.raises(UsageError, match="regs"):
                    matrix(instruction, "a")
            if row["sparse"]:
                found = granted(instruction, "sm_90a", "metadata")
                assert found is not None
                assert found.registers == 1


def plain_rows(family: str) -> list[dict[str, str]]:
    """A family's rows without what only schedules: collectors, ashift, masks."""
    rows = (row for row in NVIDIA if row["family"] == family)
    return list(
        {(re.split(r"\.(?:collector|ashift|decompress)", r["ptx"])[0], "tmem" in r["extra"]): r for r in rows}.values()
    )


@pytest.mark.parametrize("family", [name for name in FAMILIES if name.startswith("tcgen05")])
def test_tensor_memory(family: str) -> None:
    """tcgen05: D, A, scales and metadata each cover their matrix, or are said to be open and why."""
    kinds: Counter[str] = Counter()
    for row in plain_rows(family):
        for instruction in nvidia(row):
            in_shared = {"b"} if "A tmem" in row["extra"] else {"a", "b"}
            for operand in set(layouts.operands(instruction)) - in_shared - {"c"}:
                found = granted(instruction, "sm_100a", operand)
                kinds["open" if found is None else operand] += 1
                if operand == "d" and found is not None:
                    assert found.register_bits == 32
                    assert found.bits == 32
    assert kinds["d"]


@pytest.mark.parametrize("row", AMD, ids=[f"{row['spelled'].split()[0]}-{row['wave']}" for row in AMD])
def test_amd_registers(row: dict[str, str]) -> None:
    """Every operand of an AMD row on each of its architectures, against the registers in the disassembly."""
    stated = {
        "a": row["a_regs"], "b": row["b_regs"], "c": row["c_regs"], "d": row["d_regs"],
        "metadata": row["index_regs"], "scale_a": row["scale_regs"], "scale_b": row["scale_regs"],
    }  # fmt: skip
    for instruction, architecture in amd(row):
        for operand in layouts.operands(instruction):
            found = granted(instruction, architecture, operand)
            if found is None:
                assert architecture in ("gfx950", "gfx1250", "gfx1251"), (instruction.id, operand)
                continue
            narrow = {4: 4, 6: 6}.get(found.width, 8) if "f8f6f4" in instruction.id and operand in "ab" else 8
            assert found.registers == int(stated[operand]) * narrow // 8, (instruction.id, architecture, operand)
            assert found.lanes == int(row["wave"])


@pytest.mark.long
def test_packing() -> None:
    """A sample of every fragment: pack and unpack invert each other and touch no other bit."""
    assert {found.name for found in fragments()} == {record["name"] for record in layouts.records("fragment")}
    for found in fragments():
        if found.elements <= 8192:
            check_packing(found)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("architecture", [name for name in lookup.architectures() if name.startswith(("sm_", "gfx"))])
def test_every_catalog_instruction_finds_its_layouts(architecture: str) -> None:
    """Whatever the catalog holds: a layout, a matrix in shared memory, or one line that says opaque or open."""
    here = lookup.instructions(architecture)
    for instruction in here[:: 1 + len(here) // 250]:
        for operand in layouts.operands(instruction):
            found, refused = ask(instruction, architecture, operand)
            if "shared memory" in refused:
                matrix(instruction, operand)
            else:
                assert found or "is opaque: " in refused or "is open: " in refused, refused


@pytest.mark.parametrize(
    ("mark", "operand", "reason"),
    [(".ashift", "a", "which rows of A .ashift moves"), (".decompress::lut::b", "b", "48-byte blocks")],
)
def test_tcgen05_that_moves_or_unpacks_is_open(mark: str, operand: str, reason: str) -> None:
    row = next(row for row in NVIDIA if mark in row["ptx"] and "A tmem" in row["extra"])
    made = next(iter(nvidia(row)))
    with pytest.raises(UsageError, match=f"the layout of {operand} is open: .*{reason}"):
        layouts.layout(made, "sm_107a", operand)
    if operand == "b":
        with pytest.raises(UsageError, match=reason):
            matrix(made, "b")


@pytest.mark.parametrize(
    ("k", "operand", "reason"),
    [(192, "metadata", "beyond one MMA"), (192, "scale_a", "scales of K 96"), (256, "scale_b", "sm_107a's doubled K")],
)
def test_longer_k_of_tcgen05_is_open(k: int, operand: str, reason: str) -> None:
    """K of sm_103a and sm_107a beyond sm_100a's is said to be open, not given sm_100a's map."""
    row = next(row for row in NVIDIA if row["family"] == "tcgen05.sp.mxf4")
    made = replace(next(iter(nvidia(row))), k=k)
    with pytest.raises(UsageError, match=f"the layout of {operand} is open: .*{reason}"):
        layouts.layout(made, "sm_107a", operand)


def test_wmma_is_opaque() -> None:
    wanted = lookup.instruction("wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32")
    with pytest.raises(UsageError, match=r"is opaque: wmma.load and wmma.store alone"):
        layouts.layout(wanted, "sm_80", "a")


def test_an_operand_that_is_not_there() -> None:
    wanted = lookup.instruction("mma.m16n8k16.f32.f16.f16.f32")
    with pytest.raises(UsageError, match="has no operand 'metadata'; it has a, b, c, d"):
        layouts.layout(wanted, "sm_80", "metadata")


def test_choices() -> None:
    """Immediates pick lanes and bytes; a modifier of the instruction is the one in force."""
    row = next(row for row in NVIDIA if row["family"] == "mma.mxf4")
    found = layouts.layout(next(nvidia(row)), "sm_120a", "scale_a")
    assert dict(found.choices) == {"thread_id": (0, 1), "byte_id": (0, 2)}
    with pytest.raises(UsageError, match="byte_id is one of 0, 2; 1"):
        found.held(byte_id=1)
    with pytest.raises(UsageError, match="no choice 'thread'; did you mean thread_id"):
        found.held(thread=1)


@pytest.mark.parametrize(
    ("wanted", "architecture", "operand", "choice"),
    [
        ("v_mfma_scale_f32_16x16x128_f8f6f4{op_sel=100,op_sel_hi=010}", "gfx950", "scale_a", ("byte", (1, 0, 2, 3))),
        ("v_mfma_scale_f32_16x16x128_f8f6f4{op_sel=100,op_sel_hi=010}", "gfx950", "scale_b", ("byte", (2, 0, 1, 3))),
        ("v_wmma_f16_16x16x16_f16{op_sel=001}", "gfx1100", "d", ("op_sel", (1, 0))),
        ("v_smfmac_f32_16x16x32_f16{abid=2}", "gfx942", "metadata", ("abid", (2, 0, 1, 3))),
    ],
)
def test_modifiers_choose(wanted: str, architecture: str, operand: str, choice: tuple[str, tuple[int, ...]]) -> None:
    """The value in force, which comes first, is the one that the id's braces name."""
    found = layouts.layout(lookup.instruction(wanted), architecture, operand)
    assert choice in found.choices
