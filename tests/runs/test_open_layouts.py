"""Open layouts settled by a probe: on a stand-in GPU on which each claim in turn is right, or none."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from cases.sealing import reseal
from emulator.batches import random_batch
from mmaprobe import formats
from mmaprobe.api import probe
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import claims
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.sparsity import kept_positions
from mmaprobe.cli import main
from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.known_answer import WrongAnswerError
from mmaprobe.devices.gpu.trial import serve
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.report.tables.findings import findings_code
from mmaprobe.runs.report_summary import document_of
from mmaprobe.runs.verbs import bring_up
from mmaprobe.survey import layouts
from mmaprobe.survey.layouts import settle, unsettled
from mmaprobe.toolchain.pack import open_pack
from stand_ins.fake_hip import FakeHip, device
from stand_ins.hip_gpu import plugged


def exact(made: Instruction, batch: Batch) -> Bits:
    """The product of sparse A and B, and C, in double precision, rounded once."""

    def values(name: str) -> np.ndarray:
        got = formats.decode(made.formats()[name], getattr(batch, name))
        return np.where(got.negative, -1.0, 1.0) * got.significand * np.exp2(got.exponent.astype(float))

    assert batch.metadata is not None
    a = np.zeros((*batch.a.shape[:-1], made.k))
    np.put_along_axis(a, kept_positions(made, batch.metadata), values("a"), -1)
    d = np.clip(np.nan_to_num(a @ values("b") + values("c")), -(2.0**31), 2.0**31 - 1).astype(np.int64)
    fmt = made.formats()["d"]
    return formats.encode(fmt, d < 0, np.abs(d), np.zeros_like(d), overflow="ieee" if fmt.is_float else "largest")


def gpu(home: str, truth: str) -> GpuDevice:
    return device(FakeHip(home, exact, truth=truth))


HALF, BYTES, WAVE32 = "v_smfmac_f32_16x16x64_bf16", "v_smfmac_i32_16x16x128_i8", "v_swmmac_f16_16x16x64_f16"
TRUTHS = [
    ("gfx950", HALF, "chunks"),
    ("gfx950", BYTES, "consecutive"),
    ("gfx950", "v_smfmac_f32_32x32x64_fp8_bf8", "chunks"),
    ("gfx1250", WAVE32, "beside"),
    ("gfx1250", WAVE32, "halves"),
    ("gfx1250", "v_swmmac_i32_16x16x128_iu8", "halves"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("home", "name", "truth"), TRUTHS)
def test_the_claim_that_is_right_is_found(home: str, name: str, truth: str) -> None:
    """Refused before with what to type; after the probe the plain id runs, by the claim, and no other claim does."""
    made = instruction(name, home)
    opened = gpu(home, truth)
    batch = random_batch(made, 1, 1)
    with pytest.raises(NotHereError, match=f"is open: .*; mmaprobe probe '{name}' --device hip:0 --question layout"):
        opened.run(made, batch)
    finding = settle(opened, made)
    assert (finding.status, finding.answer["claim"]) == ("bounded", truth), finding
    assert finding.answer["claims"][truth] == {"tiles": "as named", "one_hot": "as named"}
    assert finding.text.startswith(f"settled here: layout={truth}, not ")
    assert not unsettled(opened, made)
    assert (opened.run(made, batch) == exact(made, batch)).all()
    for each in claims(made, home):
        if each.modifier["layout"] != truth:
            with pytest.raises(WrongAnswerError):
                opened.run(each, batch)


@pytest.mark.parametrize(
    ("home", "name", "moved"),
    [
        ("gfx950", HALF, "by consecutive 32 of 32 values of A go elsewhere (row,k,chunk): a[0,0] meets 0,4,0; a[1,1] "),
        ("gfx1250", WAVE32, "by beside 32 of 32 values of A go elsewhere (row,k,chunk): a[0,0] meets 0,0,1; a[1,1] "),
    ],
)
def test_where_values_go_when_no_claim_is_right(home: str, name: str, moved: str) -> None:
    made = instruction(name, home)
    opened = gpu(home, "neither")
    found = probe(opened, made)
    assert list(found) == ["layout"]
    assert found["layout"].status == "contradictory"
    assert moved in found["layout"].text
    assert findings_code(found) == 5
    assert unsettled(opened, made)


def test_two_that_answer_right_settle_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = gpu("gfx950", "chunks")
    monkeypatch.setattr(layouts, "_wrong", lambda *given: "")
    monkeypatch.setattr(layouts, "probe_one_hot_alone", lambda *given: Finding("layout", "bounded", "as named", ""))
    found = settle(opened, instruction(HALF, "gfx950"))
    assert found.status == "inconclusive"
    assert found.text == "consecutive and chunks both answer right: nothing here tells them apart"
    assert unsettled(opened, instruction(HALF, "gfx950"))


def test_probe_command_settles_it(capsys: pytest.CaptureFixture[str]) -> None:
    """What a refusal tells one to type."""
    with plugged(FakeHip("gfx950", exact, truth="chunks")):
        assert main(["derive", HALF, "--device", "hip:0?trial=no"]) == 3
        refused = " ".join(capsys.readouterr().err.split())
        assert "--question layout settles it here" in refused
        assert main(["probe", HALF, "--device", "hip:0?trial=no", "--question", "layout"]) == 0
        assert "settled here: layout=chunks, not consecutive" in " ".join(capsys.readouterr().out.split())


def test_a_run_settles_it_and_goes_on(tmp_path: Path) -> None:
    """The step of layouts settles; what follows runs by the claim; a resumed run takes it from the evidence."""
    given = {"instruction": BYTES, "out": tmp_path, "vectors": 300}
    report = bring_up(gpu("gfx950", "chunks"), steps=("layouts", "recording"), **given)
    step = json.loads((tmp_path / "steps" / "layouts.json").read_text())
    assert step["result"]["findings"][BYTES]["answer"]["claim"] == "chunks"
    assert report.failure == 0
    assert report.steps[1].result["text"] == "1,000 vectors of 1 instruction"
    again = gpu("gfx950", "chunks")
    bring_up(again, steps=("layouts", "recording"), resume=True, **given)
    assert not unsettled(again, instruction(BYTES, "gfx950"))
    told = device(FakeHip("gfx950", exact, truth="chunks"), options=f"&layouts={tmp_path}/steps/layouts.json")
    assert told.supports(instruction(BYTES, "gfx950"))
    assert not told.supports(instruction(HALF, "gfx950"))
    (tmp_path / "steps" / "layouts.json").write_text(json.dumps(step).replace('"claim": "chunks"', '"claim": "plain"'))
    with pytest.raises(UsageError, match="sha256 is not that of the rest"):
        device(FakeHip("gfx950", exact), options=f"&layouts={tmp_path}/steps/layouts.json")
    step["result"]["findings"][BYTES]["answer"]["claim"] = "plain"
    reseal(tmp_path / "steps" / "layouts.json", step)
    with pytest.raises(UsageError, match=r"claim.* consecutive, chunks"):
        device(FakeHip("gfx950", exact), options=f"&layouts={tmp_path}/steps/layouts.json")


def test_the_first_run_of_each_claim_is_in_a_child() -> None:
    """It answers which claim gives known answers; the id without one is refused there, too."""

    def told(name: str) -> str:
        answered = io.StringIO()
        serve(gpu("gfx950", "chunks"), "gfx950", io.StringIO(f"{name}\n"), answered)
        return answered.getvalue().splitlines()[1]

    consecutive, chunks = claims(instruction(HALF, "gfx950"), "gfx950")
    assert told(consecutive.id).startswith("error WrongAnswerError ")
    assert told(chunks.id) == "ok 1"
    assert told(HALF).startswith("error NotHereError ")


@pytest.mark.needs("clang")
def test_a_pack_holds_every_claim(tmp_path: Path) -> None:
    """So that a machine without a compiler settles it too."""
    assert main(["compile", "--arch", "gfx950", "--instruction", HALF, "--jobs", "1", "--out", str(tmp_path)]) == 0
    made = instruction(HALF, "gfx950")
    kernels = open_pack(tmp_path).kernels
    assert sorted(kernels) == sorted(each.id for each in claims(made, "gfx950"))
    assert {tuple(each.opcodes) for each in kernels.values()} == {(HALF,)}
    packed = device(FakeHip("gfx950", exact), options=f"&pack={tmp_path}")
    assert packed.holds(made)
    assert unsettled(packed, made)


def test_a_run_leaves_out_what_it_cannot_settle(tmp_path: Path) -> None:
    report = bring_up(gpu("gfx950", "neither"), steps=("layouts", "recording"), instruction=BYTES, out=tmp_path)
    assert report.exit_code == 5
    assert "layout: no claim is right (consecutive, chunks)" in json.dumps(document_of(report))
