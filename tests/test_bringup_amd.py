"""``mmaprobe run --device hip:0`` on a stand-in GPU: CDNA3's kinds of instruction, and ends that are AMD's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bringup_run import Run
from mmaprobe.bringup.stepwise import STEPS
from vendors import AMD, Sysfs

FORMS = (
    "v_mfma_f32_16x16x16_f16",
    "v_mfma_f32_16x16x16_bf16",
    "v_mfma_f32_16x16x32_fp8_fp8",
    "v_mfma_f32_16x16x8_xf32",
    "v_mfma_f64_4x4x4_4b_f64",
    "v_mfma_i32_16x16x32_i8",
    "v_smfmac_f32_16x16x32_f16",
)


def test_the_kinds_of_cdna3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All steps in order, exit code 0: each kind's datapath is the shipped one, and every question is settled."""
    run = Run(AMD, tmp_path, FORMS)
    assert run(None, "--json", around=Sysfs(), glob="v_*", steps="all", vectors=2048) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(step["name"], step["status"]) for step in found["steps"]] == [(each.name, "finished") for each in STEPS]
    parts = run.store.parts
    assert set(parts) == set(FORMS)
    assert {part.comparison["outcome"] for part in parts.values()} <= {"same", "equivalent"}
    assert {(part.vectors >= 2048, part.mismatch_count) for part in parts.values()} == {(True, 0)}
