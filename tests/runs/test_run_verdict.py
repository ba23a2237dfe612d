"""What ``run`` calls equal: a device that differs from what is shipped, lacks something or was cut short is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import mmaprobe
from mmaprobe.cli import main
from mmaprobe.devices.base import Support, open_device
from mmaprobe.evidence.store import Store
from mmaprobe.runs import instructions, run_state
from mmaprobe.runs.report_summary import summary_of
from stand_ins.stepping import F16

X86 = "model:x86-64+intel"
FAULT = "mutant:x86-64/VDPBF16PS[bf16,bf16->f32]/operand_a.subnormals=keep"
SAID = "x86.vdpbf16ps is not what is shipped: subnormals of operand a: signed_zero -> keep"
NEW = "new, nothing is shipped for it: x86.pmaddwd"
HALF = "mutant:sm_90a/HMMA.16816.F32[f16,f16->f32]/tree.fraction_bits=24"


def test_a_device_that_differs_from_what_is_shipped_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One plain line names the field, in the table, in JSON and in JUnit; the same when the run goes on."""
    out, xml = str(tmp_path / "e"), tmp_path / "junit.xml"
    words = ["run", "-d", FAULT, "-i", "x86.vdpbf16ps", "-n", "2000", "--seed", "1", "--out", out]
    assert main([*words, "--junit", str(xml)]) == 1
    assert SAID in capsys.readouterr().out.splitlines()
    failure = ElementTree.parse(xml).getroot().find(".//failure")
    assert failure is not None
    assert "subnormals of operand a: signed_zero -> keep" in failure.get("message", "")
    assert main([*words, "--resume", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["exit_code"], document["remarks"]) == (1, [SAID])
    assert document["instructions"][0]["outcome"] == "changed"


def test_by_steps_it_is_1_too(tmp_path: Path) -> None:
    report = mmaprobe.bring_up(HALF, instruction=F16, vectors=2000, seed=1, out=tmp_path / "e", steps=["survey"])
    assert (report.exit_code, summary_of(report).exit_code) == (1, 1)
    (remark,) = summary_of(report).remarks
    named = "fraction bits kept below the largest exponent of the sum: 25 -> 24"
    assert remark.startswith(f"{F16} is not what is shipped: {named}")


def test_what_no_vector_of_the_search_tells_is_held_against_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The derivation ends in other words for what is shipped; the vectors of the validation judge, not the search."""
    monkeypatch.setattr("mmaprobe.survey.comparison.difference", lambda *_: None)
    report = mmaprobe.run(FAULT, instruction="x86.vdpbf16ps", vectors=20_000, seed=1, out=tmp_path / "e")
    assert report.mismatches > 0
    assert report.exit_code == 1


class Odd:
    """A device of some instructions of a model; the others it lacks, with a reason or without, or does not list."""

    def __init__(self, ids: tuple[str, ...], reason: str = "", listed: bool = True, architecture: str = "") -> None:
        self.inner, self.ids, self.reason, self.listed = open_device(X86), ids, reason, listed
        self.architecture, self.name = architecture, "odd"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def info(self) -> dict[str, str]:
        return {"architecture": self.architecture or "x86-64+intel"}

    def instructions(self) -> Any:
        return [made for made in self.inner.instructions() if made.id in self.ids or self.listed]

    def supports(self, made: Any) -> Support:
        return Support(made.id in self.ids, "" if made.id in self.ids else self.reason)


@pytest.mark.parametrize(("device", "options", "code", "remarks"), [
    (Odd(("x86.pmaddwd",), "needs amx"), {"check": True}, 0, ()),
    (Odd(("x86.pmaddwd",)), {}, 0, ("missing, and nobody says why: x86.pmaddubsw",)),
    (Odd(("x86.pmaddwd",)), {"check": True}, 1, ("missing, and nobody says why: x86.pmaddubsw",)),
    (Odd(("x86.pmaddwd",), listed=False), {"check": True}, 1, ("missing, and nobody says why: x86.pmaddubsw",)),
    (Odd(("x86.pmaddwd",), "needs amx"), {"least": 1}, 0, ()),
    (Odd(("x86.pmaddwd",), "needs amx"), {"least": 2}, 4, ("1 instruction compared, fewer than --least 2",)),
    (Odd(("x86.pmaddwd",), "-", architecture="z80"), {}, 0, (NEW,)),
    (Odd(("x86.pmaddwd",), "-", architecture="z80"), {"check": True}, 1, (NEW,)),
])  # fmt: skip
@pytest.mark.parametrize("steps", [False, True])
def test_what_is_missing_or_new(
    tmp_path: Path, device: Odd, options: dict[str, Any], code: int, remarks: tuple[str, ...], steps: bool
) -> None:
    given: dict[str, Any] = {"instruction": "x86.pmadd*", "vectors": 1000, "seed": 1, "out": tmp_path / "e", **options}
    more = {"steps": ["survey", "validation"]} if steps else {}
    report = (mmaprobe.bring_up if steps else mmaprobe.run)(device, **given, **more)
    assert (report.exit_code, summary_of(report).exit_code, summary_of(report).remarks) == (code, code, remarks)


@pytest.mark.parametrize(("reached", "code"), [(1000, 0), (999, 4)])
def test_a_budget_that_is_spent_has_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: int, code: int
) -> None:
    """0 where every instruction had the minimum, 4 below it; nobody says that nothing was compared."""
    monkeypatch.setattr(run_state, "LEAST_PER_MODE", 1000)
    whole = instructions.validate

    def cut(dut: Any, ref: Any, made: Any, vectors: int, seed: int, **more: Any) -> Any:
        from dataclasses import replace

        found = whole(dut, ref, made, min(vectors, reached), seed)
        return replace(found, planned=vectors, interrupted=True, stopped=True)

    monkeypatch.setattr(instructions, "validate", cut)
    report = mmaprobe.run(X86, instruction="x86.pmaddwd", vectors=5000, seed=1, budget=60, out=tmp_path / "e")
    assert (report.exit_code, summary_of(report).exit_code) == (code, code)
    said = "the instruction had its least 1,000 vectors"
    below = "1 of 1 instruction had less than 1,000 vectors"
    assert report.ended == f"the budget was spent; {below if code else said}"
    store = Store.open(tmp_path / "e")
    assert (store.finished, [part.status for part in store.parts.values()]) == (False, ["partial"])
    assert store.enough == (not code)
    assert "nothing was compared" not in str(summary_of(report))


def test_a_spent_budget_before_the_first_vector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "-d", X86, "-i", "x86.pmaddwd", "-n", "1000", "--budget", "0"]
    for more in ([], ["--steps", "all"]):
        assert main([*words, *more, "--out", str(tmp_path / f"e{len(more)}")]) == 4
        said = capsys.readouterr().out
        assert "the budget was spent; 1 of 1 instruction had less than 1,000 vectors" in said
        assert "nothing was compared" not in said
    stopped = mmaprobe.validate(X86, X86, "x86.pmaddwd", 1000, stop=lambda: True)
    assert (stopped.exit_code, stopped.verdict) == (4, "stopped before the first vector")


def test_a_run_that_was_done_in_time_is_finished(tmp_path: Path) -> None:
    """The budget ends while the last vectors are compared: nothing was cut short."""
    report = mmaprobe.run(X86, instruction="x86.pmaddwd", vectors=1000, seed=1, budget=60, out=tmp_path / "e")
    assert (report.exit_code, report.ended) == (0, "")


BAD = [
    (["--budget", "nan"], "--budget is nan"), (["--budget", "-1"], "--budget is -1"),
    (["--budget", "inf"], "--budget is inf"), (["--budget", "soon"], "--budget"),
    (["-n", "99999999999999999999"], "must not be negative, nor above"), (["-n", "-1"], "must not be negative"),
    (["--out", ""], "is empty"), (["--resume", "--out", "nowhere"], "no evidence"), (["--resume"], "--out FOLDER"),
    (["--least", "-1"], "--least"), (["--junit", ""], "is empty"), (["--seed", "99999999999999999999"], "seed"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), BAD, ids=[" ".join(options) for options, _ in BAD])
@pytest.mark.parametrize("steps", [[], ["--steps", "all"]], ids=["", "steps"])
def test_options_that_mean_nothing_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], said: str,
    steps: list[str],
) -> None:  # fmt: skip
    """On a CPU and by steps alike, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-d", X86, "-i", "x86.pmaddwd", "-n", "1000", *options, *steps]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), said in lines[0]) == (1, True), lines
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("steps", [False, True])
def test_the_same_of_the_api(tmp_path: Path, steps: bool) -> None:
    verb = mmaprobe.bring_up if steps else mmaprobe.run
    for bad in ({"budget": float("nan")}, {"budget": -1.0}, {"vectors": 10**20}, {"out": ""}, {"resume": True},
                {"resume": True, "out": tmp_path / "nowhere"}, {"least": -1}):  # fmt: skip
        with pytest.raises(mmaprobe.UsageError):
            verb("cuda:99", instruction="*", **bad)
