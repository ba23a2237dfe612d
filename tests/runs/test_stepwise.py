"""A bring-up step by step: the order, slices, budget, resuming, and devices that break or are gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from mmaprobe.catalog.lookup import forms
from mmaprobe.catalog.modifiers import moves_operands
from mmaprobe.catalog.variants import asked, variants
from mmaprobe.devices.base import Support, open_device
from mmaprobe.devices.recording import LIST, OUTPUTS, WITNESSES, _members
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.evidence.store import Store
from mmaprobe.parameters.files import read_parameter_file
from mmaprobe.probing import QUESTIONS
from mmaprobe.runs import cpu, verbs
from mmaprobe.runs.recording import ARCHIVE
from mmaprobe.runs.result import Report
from mmaprobe.runs.run_state import RunState
from mmaprobe.runs.steps import LONGEST, RunStep
from stand_ins.stepping import F16, FEW, MODEL, NAMES, ONE, Changed, Heard, Ticking


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, list[str]]:
    """A run in one go, and its slices."""
    heard = Heard()
    report = mmaprobe.bring_up(MODEL, out=tmp_path_factory.mktemp("whole") / "e", listener=heard, **FEW)
    return report, heard.steps


@pytest.mark.long
def test_everything_in_order(whole: tuple[Report, list[str]]) -> None:
    """Steps run in their order; every instruction is derived, equals what is shipped, and is validated."""
    report, slices = whole
    assert slices == NAMES
    assert (report.exit_code, report.ended, report.mismatches) == (0, "", 0)
    store = Store.open(report.out)
    assert store.finished
    assert {step.status for step in store.steps.values()} == {"finished"}
    assert {part.comparison["outcome"] for part in store.parts.values()} <= {"same", "equivalent"}
    assert {part.vectors for part in store.parts.values()} == {3000}
    assert set(store.steps["layouts"].result["findings"]) == set(store.parts)


@pytest.mark.long
def test_going_on_after_each_step(tmp_path: Path, whole: tuple[Report, list[str]]) -> None:
    """A run ended after any step goes on with the next one, and finds the same as one in one go."""
    for number, name in enumerate(NAMES, 1):
        heard = Heard()
        mmaprobe.bring_up(MODEL, out=tmp_path / "e", resume=number > 1, steps=NAMES[:number], listener=heard, **FEW)
        assert heard.steps == [name]
    again = mmaprobe.bring_up(MODEL, out=tmp_path / "e", resume=True, **FEW)
    first, second = (Store.open(report.out).parts for report in (whole[0], again))
    assert {n: part.to_json("") for n, part in first.items()} == {n: part.to_json("") for n, part in second.items()}
    told, once = (_members(report.out / ARCHIVE) for report in (again, whole[0]))
    assert {name: told[name] for name in (OUTPUTS, WITNESSES)} == {name: once[name] for name in (OUTPUTS, WITNESSES)}
    lists = [json.loads(each[LIST]) | {"run": "", "sha256": ""} for each in (told, once)]
    assert lists[0] == lists[1]
    assert Store.open(tmp_path / "e").finished


@pytest.mark.long
def test_a_short_budget_gives_every_step_its_turn(tmp_path: Path) -> None:
    """All steps have a slice before any has a second one; what is left is done when the run goes on."""
    heard = Heard()
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", budget=3.2, clock=Ticking(), listener=heard, **FEW)
    assert report.ended == "the budget was spent; each of 2 instructions and control states had its least 3,000 vectors"
    assert heard.steps[: len(NAMES)] == NAMES
    assert all(left is not None and left < 192 for left in heard.left)
    store = Store.open(tmp_path / "e")
    assert not store.finished
    again = mmaprobe.bring_up(MODEL, out=tmp_path / "e", resume=True, **FEW)
    assert (again.exit_code, again.ended) == (0, "")
    assert Store.open(tmp_path / "e").finished


class Death(BaseException):
    """As SIGKILL: nothing catches it."""


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_killed_anywhere(tmp_path: Path, pieces: int) -> None:
    """A run that dies within a slice loses that slice at most; going on finds all of it."""

    class Killed(Heard):
        def at(self, text: str, left: float | None) -> None:
            super().at(text, left)
            if len(self.left) == pieces:
                raise Death

    steps = ["layouts", "main"]
    with pytest.raises(Death):
        mmaprobe.bring_up(MODEL, out=tmp_path / "e", listener=Killed(), steps=steps, **ONE)
    Store.open(tmp_path / "e")
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", resume=True, steps=steps, **ONE)
    assert (report.exit_code, report.vectors) == (0, 3000)


def test_steps_are_bounded_and_named(tmp_path: Path) -> None:
    def nothing(run: RunState) -> Iterator[None]:
        yield None

    with pytest.raises(UsageError, match="at most 180"):
        RunStep("long", "too long", LONGEST + 1, nothing)
    with pytest.raises(UsageError, match="no step 'layout'; did you mean layouts"):
        mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["layout"], **FEW)
    assert all(step.seconds <= LONGEST and step.purpose for step in verbs.STEPS)


def test_variants_show_every_choice() -> None:
    """Of a wgmma form: the smallest N, 64, the largest; every placement and modifier once."""
    (form,) = forms("sm_90a", "wgmma.*k16.f32.f16.f16")
    found = variants(form, "sm_90a")
    assert [made.n for made in found[:3]] == [8, 64, 256]
    assert {pair for made in found for pair in made.modifiers} == {
        ("a", "regs"), ("trans_a", ""), ("trans_b", ""), ("neg_a", ""), ("neg_b", ""), ("scale_d", "0")
    }  # fmt: skip
    assert len(found) == len(set(found)) == 10
    matching = asked("sm_90a", "wgmma.*k16.f32.f16.f16*")
    assert matching == {form.first.id: found}
    assert sum(map(len, asked("sm_90a", "*").values())) == 625
    assert not any(moves_operands(made) for every in asked("gfx942", "*").values() for made in every)


def test_layouts_of_other_sizes_and_modifiers(tmp_path: Path) -> None:
    mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["layouts"], instruction="wgmma.*k16.f32.f16.f16*")
    findings = Store.open(tmp_path / "e").steps["layouts"].result["findings"]
    assert len(findings) == 10
    assert {each["status"] for each in findings.values()} == {"bounded"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mmaprobe.cli import main

    words = ["run", "-d", MODEL, "--steps", "layouts,main", "-i", F16, "-n", "2000", "--out", str(tmp_path / "e")]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(step["name"], step["status"]) for step in found["steps"]] == [
        ("layouts", "finished"),
        ("main", "finished"),
    ]
    assert main([*words, "--resume"]) == 0
    assert "layouts" in capsys.readouterr().out


def test_questions_and_probes(tmp_path: Path) -> None:
    """Open questions are put to what the run is about alone; probes to each primitive, once."""
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["questions", "probes"], **ONE)
    asked = {answer.instruction for answer in report.answers if answer.status != "not here"}
    assert asked == {F16}
    assert "settled" in Store.open(tmp_path / "e").steps["questions"].text
    (part,) = Store.open(tmp_path / "e").parts.values()
    assert {finding.question for finding in part.findings} == set(QUESTIONS)


def test_what_is_handed_on(tmp_path: Path) -> None:
    """Parameters of a model are no measurement; the archive answers as a device, witnesses too."""
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["main", "recording"], **ONE)
    (entry,) = read_parameter_file(tmp_path / "e" / "parameters" / "sm_90a.toml").entries.values()
    assert (entry.basis, report.notes) == ("predicted", ())
    assert json.loads((tmp_path / "e" / "summary.json").read_text())["exit_code"] == 0
    summary = mmaprobe.validate(f"replay:{tmp_path / 'e' / 'recording.tar.gz'}", MODEL, F16, 10**6)
    assert summary.exit_code == 0
    assert summary.vectors >= 1000 + len(entry.witnesses)


@pytest.mark.long
def test_measured_on_hardware_alone(tmp_path: Path) -> None:
    """What silicon shows is measured, under the run's id; what its emulator does is not, and every report says so."""
    identity = {"architecture": "sm_90a", "uuid": "GPU-1"}
    for said, basis in (("yes", "measured"), ("no, emulated by tensim 1.0", "predicted")):
        out, it = tmp_path / basis, identity | {"silicon": said}
        report = mmaprobe.bring_up(Changed(info=lambda it=it: it, name="cuda:0"), out=out, steps=["survey"], **ONE)
        (entry,) = read_parameter_file(out / "parameters" / "sm_90a.toml").entries.values()
        assert (entry.basis, entry.evidence) == (basis, report.run if basis == "measured" else "")
        assert ("emulated by tensim 1.0" in entry.source) is (basis == "predicted")
        summary = json.loads((out / "summary.json").read_text())
        assert summary["identity"]["silicon"] == said
        assert bool(summary["notice"]) is (basis == "predicted")


def test_the_cpu_beside_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only beside a GPU of which everything is asked; its own evidence lies in a folder of its own."""
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["cpu"], instruction="*")
    assert report.steps[0].text.startswith("not asked")
    monkeypatch.setattr(cpu, "open_device", lambda name: Few("x86.pmaddwd"))
    gpu = Changed()
    gpu.resident, gpu.run_operands = (), print
    report = mmaprobe.bring_up(gpu, out=tmp_path / "gpu", steps=["cpu"], instruction="*")
    assert report.steps[0].text == "1 instruction, 0 mismatches in 100,000 vectors"
    assert Store.open(tmp_path / "gpu" / "cpu").finished


def test_an_interrupt_of_the_cpu_s_run_is_the_whole_run_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Few):
        def run(self, made: Any, batch: Any) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setattr(cpu, "open_device", lambda name: Interrupted("x86.pmaddwd"))
    gpu = Changed()
    gpu.resident, gpu.run_operands = (), print
    report = mmaprobe.bring_up(gpu, out=tmp_path / "e", steps=["cpu"], instruction="*")
    assert (report.exit_code, report.ended, report.steps[0].status) == (130, "interrupted", "partial")


class Few:
    """The model of a CPU with one instruction."""

    def __init__(self, identifier: str) -> None:
        self.inner, self.identifier = open_device("model:x86-64+intel"), identifier

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def instructions(self) -> Any:
        return [made for made in self.inner.instructions() if made.id == self.identifier]


def test_kernels_that_are_not_held_are_not_asked(tmp_path: Path) -> None:
    """Of a pack without an instruction the run does without; of one without any of them it says what makes them."""
    few = {"instruction": "wgmma.*k16.f32.f16.f16*", "steps": ["layouts"]}
    first, absent = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "not in the pack; mmaprobe compile ..."
    device = Changed(holds=lambda made: Support(made.id == first, absent))
    report = mmaprobe.bring_up(device, out=tmp_path / "e", **few)
    assert report.steps[0].text == "1 of 1 asked, 0 wrong, 9 more do not run here"
    with pytest.raises(NotHereError, match="mmaprobe compile"):
        mmaprobe.bring_up(Changed(holds=lambda made: Support(False, absent)), out=tmp_path / "n", **few)
