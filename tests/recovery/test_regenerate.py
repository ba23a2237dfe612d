"""A chip of which no parameters ship: a run of it writes them, and they are the same functions as those that ship."""

from __future__ import annotations

from pathlib import Path

import pytest
from regenerate import regenerate

from mmaprobe.parameters.files import read_parameter_file
from mmaprobe.parameters.lookup import load
from mmaprobe.survey.file_comparison import compared

SAME = ("same", "written otherwise")


@pytest.mark.long
@pytest.mark.parametrize(
    ("architecture", "pattern", "primitives"),
    [
        ("gfx942", "v_mfma_*_4x4x4_*", {"MFMA.F16[f16,f16->f32,k4]", "MFMA.BF16[bf16,bf16->f32,k4]",
                                        "MFMA.F64[f64,f64->f64,k4]", "MFMA.I8[s8,s8->s32,k4]"}),
        ("sm_90a", "mma.*m16n8k8.*.f16.f16.*", {"HMMA.1688.F16[f16,f16->f16]", "HMMA.1688.F32[f16,f16->f32]"}),
    ],
)  # fmt: skip
def test_what_is_written_is_what_ships(architecture: str, pattern: str, primitives: set[str], tmp_path: Path) -> None:
    written = read_parameter_file(regenerate(architecture, tmp_path, pattern))
    found = dict(compared(load(architecture), written))
    assert found.keys() == written.entries.keys() == primitives
    assert {name: each.verdict for name, each in found.items() if each.verdict not in SAME} == {}
    assert {entry.basis for entry in written.entries.values()} == {"measured"}
