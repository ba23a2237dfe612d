"""Shapes that ptxas takes and CUTLASS refuses: marked in the catalog's data, asked last."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaprobe.catalog.doubts import doubt, doubts
from mmaprobe.catalog.lookup import instruction
from mmaprobe.runs.plan import plan_of
from stand_ins.bringup_run import Run
from stand_ins.fake_cuda import FakeCuda, device
from stand_ins.vendors import NVIDIA

pytestmark = pytest.mark.needs("cuda.bindings")

CASES = [  # opcode, shape, modifiers; what N must be a multiple of, 0 where CUTLASS takes the shape
    ("tcgen05.mma.cta_group::1.kind::f16.m128n8k16.f32.f16.f16{a=tmem}", 16),
    ("tcgen05.mma.cta_group::1.kind::f16.m128n248k16.f32.bf16.bf16{a=tmem,trans_b}", 16),
    ("tcgen05.mma.cta_group::1.kind::tf32.collector::a::fill.m128n24k8.f32.tf32.tf32{a=tmem}", 16),
    ("tcgen05.mma.cta_group::1.kind::f8f6f4.m128n40k32.f16.e4m3.e2m1{a=tmem}", 16),
    ("tcgen05.mma.cta_group::2.kind::f16.m256n16k16.f32.f16.f16{a=tmem}", 32),
    ("tcgen05.mma.sp.cta_group::1.kind::f8f6f4.m128n8k64.f32.e4m3.e4m3", 16),
    ("tcgen05.mma.sp.cta_group::2.kind::f8f6f4.m256n16k64.f32.e4m3.e4m3", 32),
    ("tcgen05.mma.sp.cta_group::2.kind::f8f6f4.m128n48k64.f32.e5m2.e3m2", 32),
    ("tcgen05.mma.cta_group::2.kind::tf32.m128n16k8.f32.tf32.tf32{a=tmem}", 32),
    ("tcgen05.mma.cta_group::2.kind::f8f6f4.m256n48k32.f32.e4m3.e4m3{a=tmem}", 32),
    ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.m128n8k32.f32.e4m3.e4m3.ue8m0{a=tmem}", 16),
    ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.m128n8k32.f32.e4m3.e4m3.ue8m0", 0),
    ("tcgen05.mma.cta_group::1.kind::f16.m128n8k16.f32.f16.f16", 0),
    ("tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16{a=tmem}", 0),
    ("tcgen05.mma.cta_group::1.kind::f16.m128n16k16.f32.f16.f16{a=tmem}", 0),
    ("tcgen05.mma.cta_group::2.kind::f16.m256n16k16.f32.f16.f16", 0),
    ("tcgen05.mma.sp.cta_group::1.kind::f8f6f4.m64n8k64.f32.e4m3.e4m3", 0),
    ("tcgen05.mma.sp.cta_group::2.kind::f8f6f4.m256n32k64.f32.e4m3.e4m3", 0),
    ("tcgen05.mma.sp.cta_group::1.kind::f16.m128n8k32.f32.f16.f16", 0),
]


@pytest.mark.parametrize(("name", "multiple"), CASES)
def test_what_cutlass_wants_of_n(name: str, multiple: int) -> None:
    made = instruction(name, "sm_100a")
    said = doubt(made)
    assert said.endswith(f" wants a multiple of {multiple}") if multiple else said == ""
    assert not multiple or said.startswith(f"N {made.n} is in doubt: CUTLASS 029bb3db, cute/arch/mma_sm100_umma.hpp (")


def test_every_doubt_is_about_something_that_the_catalog_has() -> None:
    """And what a case names is what its table says."""
    cases = [instruction(name, "sm_100a") for name, _ in CASES]
    assert len(doubts()) == 9
    assert all(any(each.concerns(made) for made in cases) for each in doubts())


GLOB = "tcgen05.mma.cta_group::1.kind::mxf4.*ue8m0*"


def test_they_are_asked_last() -> None:
    """After every other form and its variants; and where a glob names them first of their forms."""
    opened = device(FakeCuda(capability=(10, 0)))
    plan = plan_of(opened, GLOB)
    marks = [bool(doubt(made)) for made in plan.asked]
    assert marks == sorted(marks)
    assert set(marks) == {False, True}
    assert len({made.id for made in plan.asked}) == len(marks)
    named = plan_of(opened, "tcgen05.mma.cta_group::1.kind::*f16.m128n*k*.f32.*f16{a=tmem}").groups
    firsts = [bool(doubt(group[0])) for group in named]
    assert firsts == sorted(firsts)
    assert any(firsts)


def test_a_failure_of_one_says_so(tmp_path: Path) -> None:
    """What the device did and the doubt about it stand together in the evidence."""
    name = "tcgen05.mma.cta_group::1.kind::f16.m128n8k16.f32.f16.f16{a=tmem}"
    run = Run(NVIDIA, tmp_path)
    NVIDIA.pack(tmp_path / "blackwell", (name,), architecture="sm_100a")
    run.pack = tmp_path / "blackwell"
    assert run(NVIDIA.gpu(capability=(10, 0), fault="illegal"), glob=name) == 5
    error = run.store.parts[name].validation["error"]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in error
    assert error.endswith("(SM100_MMA_F16BF16_TS) wants a multiple of 16")
