"""Every ``wgmma`` kernel's data movement, executed thread by thread, against operands read by a second source."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from emulator import gmma
from emulator.batches import outcome
from emulator.host import movement
from emulator.warpgroup import Statement, run_warpgroup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import forms, instruction
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source

SM = "sm_90a"
FORMS = [form.first.id for form in forms(SM, "wgmma*")]
WIDTHS = (8, 64, 256)
ATOMS = (16, 32, 48, 96, 192)
"""Columns whose bytes choose each swizzle of a transposed B, in one atom and in several."""


def variants(identifier: str, widths: tuple[int, ...]) -> Iterator[Instruction]:
    """The form with these columns and every combination of modifiers that the PTX text gives it."""
    halves, signed = identifier.endswith((".f16.f16", ".bf16.bf16")), ".s32." not in identifier
    switches = [["", "a=regs"], ["", "scale_d=0"], *([["", f"neg_{x}"] for x in "ab"] if signed else [])]
    switches += [["", f"trans_{x}"] for x in "ab"] if halves else []
    for n, *chosen in itertools.product(widths, *switches):
        if {"a=regs", "trans_a"} <= set(chosen):
            continue
        opcode, inside = identifier.replace("n8k", f"n{n}k"), ",".join(filter(None, chosen))
        yield instruction(f"{opcode}{{{inside}}}" if inside else opcode, SM)


def expected(made: Instruction) -> Statement:
    """The statement of the PTX text for an id: counts of registers and immediates."""
    given, bits = made.id, {"f16": 16}.get(made.d, 32)
    float_a, halves = made.a[0] in "efbt" and made.a != "b1", made.a in ("f16", "bf16")
    turned = [int("trans_a" in given)] * ("a=regs" not in given) + [int("trans_b" in given)]
    signs = tuple(-1 if name in given else 1 for name in ("neg_a", "neg_b"))
    return Statement(
        "a=regs" in given, made.n * bits // 64, 0 if ".sp." in given else None, int("scale_d=0" not in given),
        signs if float_a else (), tuple(turned) if halves else (),
    )  # fmt: skip


@cache
def proven() -> set[str]:
    """The texts whose data movement was executed: signs change nothing in it."""
    return set()


def prove(made: Instruction) -> None:
    source = render(made, SM)
    assert Statement.of(source.text, made) == expected(made), made.id
    text = f"{made.m} {made.n} {made.k} {made.c} {movement(source)}"
    if text not in proven():
        assert outcome(run_warpgroup, source, made) == [], made.id
        proven().add(text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMS)
def test_operands_are_rebuilt(name: str) -> None:
    """A, B, C and metadata arrive where CuTe says, D comes from there, at three widths and with every modifier."""
    made = list(variants(name, WIDTHS))
    halves = made[0].a in ("f16", "bf16")
    assert len(made) == len(WIDTHS) * (48 if halves else 16 if expected(made[0]).signs else 4)
    for each in made:
        prove(each)


@pytest.mark.parametrize("name", [name for name in FORMS if ".f16.f16.f16" in name])
def test_every_swizzle_of_a_transposed_b(name: str) -> None:
    """B along N in rows of 16, 32, 64 and 128 bytes, one or several side by side."""
    for n in ATOMS:
        prove(instruction(f"{name.replace('n8k', f'n{n}k')}{{trans_b}}", SM))


@pytest.mark.long
@pytest.mark.parametrize("name", FORMS if os.environ.get("MMAPROBE_DEPTH") == "full" else FORMS[-1:])
def test_every_width(name: str) -> None:
    """Every N, A in shared memory and in registers, B along K and along N."""
    first = instruction(name, SM)
    widths = [8, 16, 24, *range(32, 257, 16)] if first.d == "s32" else range(8, 257, 8)
    modifiers = ["", "{a=regs}", *(["{trans_b}"] if first.a in ("f16", "bf16") else [])]
    for n, given in itertools.product(widths, modifiers):
        prove(instruction(name.replace("n8k", f"n{n}k") + given, SM))


GOLDEN = [
    # CuTe's own output for an f16 tile of 64 x 64: word, then lines and k of some elements and their bytes
    (0x4000004000010000, False, {(0, 0): 0, (0, 8): 16, (1, 0): 144, (1, 8): 128, (9, 8): 1152}),
    (0xC000001000010000, False, {(0, 8): 16, (4, 0): 144, (8, 0): 256}),
    (0x0000000800400000, False, {(1, 0): 16, (8, 0): 128, (0, 8): 1024}),
    (0x4000004000000000, True, {(1, 0): 2, (8, 1): 128, (0, 1): 144, (0, 8): 1024}),
]


@pytest.mark.parametrize(("word", "mn_major", "bytes_of"), GOLDEN)
def test_the_second_source_reads_golden_descriptors(
    word: int, mn_major: bool, bytes_of: dict[tuple[int, int], int]
) -> None:
    """Golden descriptors name the bytes that the PTX text's figures show."""
    memory = np.zeros((1, gmma.WINDOW), np.uint8)
    for number, byte in enumerate(bytes_of.values(), 1):
        memory[0, byte] = number
    (found,) = gmma.matrix(memory, 0, word, 64, 16, 16, mn_major)
    assert [found[place] for place in bytes_of] == list(range(1, len(bytes_of) + 1))
    assert np.count_nonzero(found) == len(bytes_of)


W = "wgmma.mma_async.sync.aligned"
HALF = f"{W}.m64n64k16.f32.f16.f16"
TURNED = f"{W}.m64n256k16.f32.f16.f16{{trans_a,trans_b}}"
HELD = f"{W}.m64n8k32.f32.e4m3.e4m3{{a=regs}}"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n64k32.f16.f16.f16"
BYTES = "wgmma.mma_async.sp.sync.aligned.m64n64k64.s32.s8.u8"
BITS = f"{W}.m64n16k256.s32.b1.b1.and.popc"
FAULTS = [
    # instruction, operands that do not arrive, struct ("" anywhere), text, text instead
    (HALF, ["a"], "MatrixA", "(mn % 8) * 32", "(mn % 8) * 16"),
    (HALF, ["a"], "MatrixA", "& 1) << 4", "& 0) << 4"),
    (HALF, ["b"], "MatrixB", "& 1) << 4", "& 3) << 4"),
    (HALF, ["b"], "MatrixB", ">> 7", ">> 8"),
    (HALF, ["b"], "MatrixB", "k * 64 + line", "line * 16 + k"),
    (HALF, ["a"], "MatrixA", "0xc000001000010000", "0x8000001000010000"),
    (HALF, ["a"], "MatrixA", "0xc000001000010000", "0xc000002000010000"),
    (HALF, ["b"], "MatrixB", "% 262144u", "% 131072u"),
    (HALF, ["b"], "MatrixB", "/ 16u", "/ 32u"),
    (HALF, ["b"], "", "describe(start + START_B)", "describe(start)"),
    (HALF, ["b"], "", "describe(start + START_B)", "describe(start + START_B + 16)"),
    (HALF, ["a", "b"], "", "item * Matrix::elements", "item"),
    (HALF, ["d", "c"], "", "8 * (slot >> 2)", "16 * (slot >> 2)"),
    (HALF, ["d"], "D", "2 * (lane & 3)", "2 * (lane & 3 ^ 1)"),
    (HALF, ["a"], "", ", 1, 1, 0, 0;", ", 1, 1, 1, 0;"),
    (TURNED, ["a"], "", ", 1, 1, 1, 1;", ", 1, 1, 0, 1;"),
    (TURNED, ["b"], "MatrixB", "0x4000010000400000", "0x4000004001000000"),
    (TURNED, ["b"], "MatrixB", "(k % 8) * 128", "(k % 8 ^ 1) * 128"),
    (HELD, ["a"], "A", "((slot / 4) >> 1) * 4", "(1 - ((slot / 4) >> 1)) * 4"),
    (HELD, ["a"], "A", "16 * (lane >> 5)", "16 * (3 - (lane >> 5))"),
    (SPARSE, ["metadata"], "", ", 0, scale_d", ", 1, scale_d"),
    (SPARSE, ["metadata"], "Metadata", "4 * ((lane & 3) & 1)", "4 * (1 - (lane & 1))"),
    (SPARSE, ["b"], "MatrixB", "0x8000002000010000", "0xc000002000010000"),
    (BYTES, ["metadata"], "Metadata", "8 * ((lane & 3) >> 1) + slot", "8 * ((lane & 3) >> 1) + 7 - slot"),
    (BITS, ["a", "b"], "", "(e * Matrix::bits)", "(7 - e)"),
    (BITS, ["b"], "MatrixB", "line, int k) { return k * 16", "line, int k) { return (k ^ 1) * 16"),
]


def seeded(source: Source, struct: str, right: str, wrong: str) -> Source:
    """The source with one text of one struct changed."""
    before, inside, after = source.text, "", ""
    if struct:
        head, _, rest = source.text.partition(f"struct {struct} {{")
        inside, end, after = rest.partition("\n};")
        before, after = f"{head}struct {struct} {{", end + after
    else:
        before, inside = "", source.text
    assert right in inside, inside
    return replace(source, text=before + inside.replace(right, wrong) + after)


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("name", "lost", "struct", "right", "wrong"), FAULTS)
def test_a_wrong_layout_is_seen(name: str, lost: list[str], struct: str, right: str, wrong: str) -> None:
    """One term changed: an address, a swizzle, a field of a descriptor, a selector, a place in a register."""
    made = instruction(name, SM)
    source = render(made, SM)
    assert outcome(run_warpgroup, source, made) == []
    assert outcome(run_warpgroup, seeded(source, struct, right, wrong), made) == lost
