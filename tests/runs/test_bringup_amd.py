"""``mmaprobe run --device hip:0`` on a stand-in GPU: CDNA3's kinds of instruction, and ends that are AMD's own."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from mmaprobe.runs.verbs import STEPS
from stand_ins.bringup_run import Run, failed
from stand_ins.fake_hip import FakeHip
from stand_ins.hip_gpu import pack
from stand_ins.vendors import AMD, Sysfs

pytestmark = pytest.mark.needs("cuda.bindings")

FORMS = (
    "v_mfma_f32_16x16x16_f16",
    "v_mfma_f32_16x16x8_xf32",
    "v_mfma_f64_4x4x4_4b_f64",
    "v_mfma_i32_16x16x32_i8",
    "v_smfmac_f32_16x16x32_f16",
)
QUESTIONS = {"minus-zero-amd", "cdna3-sum", "nan-amd", "tf32-low-bits", "integer-overflow-amd"}


@pytest.mark.long
def test_the_kinds_of_cdna3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All steps in order, exit code 0: each kind's datapath is the shipped one, what is open is settled."""
    run = Run(AMD, tmp_path, FORMS)
    assert run(None, "--json", around=Sysfs(), glob="v_*", steps="all", vectors=2048) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(step["name"], step["status"]) for step in found["steps"]] == [(each.name, "finished") for each in STEPS]
    answers = run.store.steps["questions"].result["answers"]
    assert {each["question"] for each in answers if each["status"] == "settled"} >= QUESTIONS
    assert "failed" not in {each["status"] for each in answers}
    parts = run.store.parts
    assert set(parts) == set(FORMS)
    assert {part.comparison["outcome"] for part in parts.values()} <= {"same", "equivalent"}
    assert {(part.vectors >= 2048, part.mismatch_count) for part in parts.values()} == {(True, 0)}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(AMD, tmp_path)


@pytest.mark.long
def test_a_memory_fault_ends_the_child(run: Run) -> None:
    """ROCm's runtime ends the whole process; that is the instruction's failure, and the bring-up goes on."""
    run, gpu = run.both(), FakeHip()
    assert run(gpu, glob=AMD.both, trial="yes", child=f"abort of {AMD.signed}") == 5
    said = failed(run)
    assert "its first run on hip:0, in a child: process" in said
    assert "ended by SIGABRT after 0 bytes of its answer; its standard error ends: Memory access fault by GPU" in said
    assert run.store.parts[AMD.unsigned].status == "finished"


def test_a_pack_for_another_gpu(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeHip("gfx90a")) == 2
    said = capsys.readouterr().err.strip()
    assert "is for gfx942, this GPU is gfx90a; mmaprobe compile --arch gfx90a --out FOLDER makes one for it" in said
    assert "\n" not in said
    assert not run.out.exists()


def test_an_override_is_told_and_stamped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """RDNA3 under another target's name, waves of 32 lanes: the evidence says which chip it is, and of what name."""
    rdna3 = replace(AMD, gpu=partial(FakeHip, "gfx1100"), pack=partial(pack, architecture="gfx1100"),
                    signed="v_wmma_i32_16x16x16_iu8")  # fmt: skip
    run = Run(rdna3, tmp_path)
    assert run(None, around=Sysfs("gfx1101"), HSA_OVERRIDE_GFX_VERSION="11.0.0") == 0
    assert "hip:0 is gfx1101; HSA_OVERRIDE_GFX_VERSION makes it gfx1100" in caplog.text
    identity = run.store.header.identity
    assert (identity["architecture"], identity["hsa_override_gfx_version"]) == ("gfx1100", "11.0.0 on gfx1101")
    assert run(None, "--resume", around=Sysfs("gfx1100")) == 2
