"""Every ``mma.sync`` kernel's data movement, executed lane by lane, against fragments from a second source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.arrivals import wrong_operands
from emulator.warp import run_warp
from mmaprobe.catalog.lookup import architectures, forms
from mmaprobe.toolchain.render import render

NVIDIA = [name for name in architectures() if name.startswith("sm_")]
WARP = {form.first.id: (form.first, name) for name in NVIDIA for form in forms(name, "mma.*")}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", WARP)
def test_operands_are_rebuilt(name: str) -> None:
    """A, B, C, scales and metadata arrive where CuTe says, D comes from there, of the last, partial group too."""
    instruction, architecture = WARP[name]
    assert wrong_operands(run_warp, render(instruction, architecture), instruction) == []


DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
FP4 = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32"
FAULTS = [
    (DENSE, ["a"], "A", "8 * ((slot / 2) & 1)", "8 * ((slot / 4) & 1)"),
    (DENSE, ["a"], "A", "(lane & 3) * 2 + slot % 2", "(lane & 3) + slot % 2 * 4"),
    (DENSE, ["b"], "B", "(slot / 2) * 4", "(1 - slot / 2) * 4"),
    (DENSE, ["d"], "D", "8 * (slot >> 1)", "8 * (1 - (slot >> 1))"),
    (SPARSE, ["metadata"], "Metadata", "4 * ((lane & 3) & 1)", "4 * (1 - (lane & 1))"),
    (SCALED, ["scale_b"], "ScaleB", "slot & 1", "1 - (slot & 1)"),
    (FP4, ["a"], "A", "shift = 2", "shift = 0"),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("name", "operands", "struct", "right", "wrong"), FAULTS)
def test_a_wrong_layout_is_seen(name: str, operands: list[str], struct: str, right: str, wrong: str) -> None:
    """One term of one struct changed: a relabelled k, a swapped row, a wrong container."""
    instruction, architecture = WARP[name]
    source = render(instruction, architecture)
    before, found, after = source.text.partition(f"struct {struct} {{")
    assert found
    assert right in after.partition("};")[0], after.partition("};")[0]
    changed = replace(source, text=before + found + after.replace(right, wrong, 1))
    assert wrong_operands(run_warp, changed, instruction) == operands
