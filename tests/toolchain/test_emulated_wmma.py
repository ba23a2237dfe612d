"""Every ``wmma`` kernel's data movement, executed lane by lane, against memory read as the PTX text says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.batches import outcome
from emulator.wmma import Warp, run_wmma
from mmaprobe.catalog.lookup import architectures, forms
from mmaprobe.toolchain.render import render

NVIDIA = [name for name in architectures() if name.startswith("sm_")]
WMMA = {form.first.id: (form.first, name) for name in reversed(NVIDIA) for form in forms(name, "wmma.*")}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("name", WMMA)
def test_operands_are_rebuilt(name: str) -> None:
    """A, B and C arrive where the PTX text says, D comes from there, of two items."""
    made, architecture = WMMA[name]
    assert outcome(run_wmma, render(made, architecture), made) == []


FRAGMENTS = {
    # registers of A and of B by format and shape (PTX ISA 9.1, matrix fragments for WMMA)
    "f16": {"m16n16k16": (8, 8), "m32n8k16": (8, 8), "m8n32k16": (8, 8)},
    "bf16": {"m16n16k16": (4, 4), "m32n8k16": (8, 2), "m8n32k16": (2, 8)},
    "s8": {"m16n16k16": (2, 2), "m32n8k16": (4, 1), "m8n32k16": (1, 4)},
    "u8": {"m16n16k16": (2, 2), "m32n8k16": (4, 1), "m8n32k16": (1, 4)},
    "tf32": {"m16n16k8": (4, 4)}, "f64": {"m8n8k4": (1, 1)},
    "s4": {"m8n8k32": (1, 1)}, "u4": {"m8n8k32": (1, 1)}, "b1": {"m8n8k128": (1, 1)},
}  # fmt: skip
RESULTS = {"f16": 4, "f32": 8, "s32": 8, "f64": 2}
"""Registers of C and D; of s32 in m8n8 2."""


@pytest.mark.parametrize("name", WMMA)
def test_statements_are_those_of_the_ptx_text(name: str) -> None:
    """Counts of registers, formats and the order of A and B; C and D by rows."""
    made, architecture = WMMA[name]
    found = Warp(render(made, architecture), made).accesses
    small = made.m * made.n == 64
    expected = FRAGMENTS[made.a][f"m{made.m}n{made.n}k{made.k}"]
    assert (found["a"].registers, found["b"].registers) == expected
    for operand, fmt in (("c", made.c), ("d", made.d)):
        assert fmt
        assert (found[operand].registers, found[operand].by_row) == (2 if small else RESULTS[fmt], True)
    assert [found[operand].fmt for operand in "abcd"] == [made.a, made.b, made.c, made.d]
    assert f".{'row' if found['a'].by_row else 'col'}.{'row' if found['b'].by_row else 'col'}." in name


W = "wmma.mma.sync.aligned"
ROWS = f"{W}.row.row.m32n8k16.f32.f16"
COLUMNS = f"{W}.col.col.m8n32k16.s32.s8.s8.s32"
NIBBLES = f"{W}.row.col.m8n8k32.s32.s4.s4.s32"
BITS = "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"
WIDE = f"{W}.row.col.m8n8k4.f64.f64.f64.f64"
FAULTS = [
    # instruction, operands that do not arrive, text, text instead
    (ROWS, ["a"], "wmma.load.a.sync.aligned.row", "wmma.load.a.sync.aligned.col"),
    (ROWS, ["b"], "[%1], 16;", "[%1], 32;"),
    (ROWS, ["b"], "k * 16 + line", "(k ^ 1) * 16 + line"),
    (ROWS, ["c"], "[%2], 8;", "[%1], 8;"),
    (ROWS, ["d"], "[%3], {d0", "[%2], {d0"),
    (COLUMNS, ["a"], "k * 16 + line", "k * 16 + (line ^ 1)"),
    (COLUMNS, ["d", "c"], "line * 32 + k) * 32", "line * 32 + (k ^ 8)) * 32"),
    (NIBBLES, ["a", "b", "c"], "(e * Matrix::bits)", "(4 - e * Matrix::bits)"),
    (NIBBLES, ["a", "b"], "line * 32 + k) * 4", "line * 32 + (k ^ 2)) * 4"),
    (BITS, ["a", "b", "c"], "(e * Matrix::bits)", "(7 - e)"),
    (WIDE, ["d", "a", "b", "c"], "item * Matrix::elements", "0 * Matrix::elements"),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("name", "lost", "right", "wrong"), FAULTS)
def test_a_wrong_layout_is_seen(name: str, lost: list[str], right: str, wrong: str) -> None:
    """One term changed: an order, a stride, a place, a packed element."""
    made, architecture = WMMA[name]
    source = render(made, architecture)
    assert right in source.text, source.text
    assert outcome(run_wmma, replace(source, text=source.text.replace(right, wrong)), made) == lost


def test_an_unaligned_line_is_seen() -> None:
    """Eight halves a row would be natural for this B, whose fragment is 32 bytes."""
    made, architecture = WMMA[ROWS]
    source = render(made, architecture)
    natural = source.text.replace("k * 16 + line", "k * 8 + line").replace("[%1], 16;", "[%1], 8;")
    with pytest.raises(AssertionError, match="lines off the fragment's bytes"):
        outcome(run_wmma, replace(source, text=natural), made)
