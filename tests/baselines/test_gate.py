"""``mmaprobe run --baseline``: red for a difference that nobody accepted, and for an acceptance of nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cases.nights import BF16, GPU, KEEPS, MADD, MODEL, answered, night, part, questions, shipped
from cases.sealing import reseal
from mmaprobe.baselines.devices import other_device, surroundings
from mmaprobe.baselines.difference import compare_runs
from mmaprobe.baselines.facts import facts_of
from mmaprobe.baselines.gate import Baseline, GateVerdict, judged
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.evidence.gate_record import RECORD
from mmaprobe.evidence.store import Header, Store

DEVICE = "model:x86-64+intel"
RUN = ["run", "-d", DEVICE, "-i", MADD, "-n", "1000", "--seed", "1"]
IDENTITY = dict(open_device(DEVICE).info())


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("real") / "e"
    assert main([*RUN, "--out", str(out)]) == 0
    return out


def gated(out: Path, baseline: Path, *more: str) -> int:
    """The exit code of a run beside a baseline."""
    return main([*RUN, "--out", str(out), "--baseline", str(baseline), *more])


def fake(path: Path, *parts: Any, **more: Any) -> Path:
    """A baseline of the device that never was run."""
    return night(path, *parts, **({"device": DEVICE, "identity": IDENTITY} | more))


def record(out: Path) -> Any:
    return json.loads((out / RECORD).read_text())


def test_the_same_again_is_green(tmp_path: Path, real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gated(tmp_path / "e", real) == 0
    assert "no difference in meaning; of 1 instruction both say the same" in capsys.readouterr().out
    assert (record(tmp_path / "e")["changes"], record(tmp_path / "e")["exit_code"]) == ([], 0)
    assert main(["evidence", "verify", str(tmp_path / "e")]) == 0


def test_a_change_is_red_and_green_where_it_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = fake(tmp_path / "old", part(MADD, shipped(MADD, ("tree.to.overflow", "largest"))))
    red, green, xml = tmp_path / "red", tmp_path / "green", tmp_path / "junit.xml"
    assert gated(red, old, "--junit", str(xml)) == 1
    told = capsys.readouterr().out
    assert f"{MADD}: datapath\n" in told
    assert "a change that is expected: --accept-change NAME" in told
    failure = ElementTree.parse(xml).getroot().find(".//testcase[@name='beside the baseline']/failure")
    assert failure is not None
    assert failure.get("message") == f"changed, and not accepted: {MADD}"
    assert main(["evidence", "verify", str(red)]) == 1
    capsys.readouterr()
    assert gated(green, old, "--accept-change", "x86.pmadd*", "--json", "--junit", str(xml)) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["exit_code"], document["baseline"]["exit_code"]) == (0, 0)
    assert [(each["name"], each["accepted"]) for each in record(green)["changes"]] == [(MADD, True)]
    case = ElementTree.parse(xml).getroot().find(".//testcase[@name='beside the baseline']")
    assert case is not None
    assert list(case) == []
    assert main(["evidence", "verify", str(green)]) == 0
    assert main(["evidence", "show", str(green)]) == 0
    assert f"  accepted: {MADD}: datapath" in capsys.readouterr().out


def test_fewer_instructions_on_either_side_are_red(tmp_path: Path, real: Path) -> None:
    more = fake(tmp_path / "more", *Store.open(real).parts.values(), part(BF16))
    assert gated(tmp_path / "a", more) == 1
    assert [(each["name"], each["kind"]) for each in record(tmp_path / "a")["changes"]] == [(BF16, "vanished")]
    less = fake(tmp_path / "less", part(BF16))
    assert gated(tmp_path / "b", less) == 1
    assert gated(tmp_path / "c", less, "--accept-change", MADD) == 1
    assert gated(tmp_path / "d", less, "--accept-change", MADD, "--accept-change", BF16) == 0


def test_an_acceptance_of_nothing_is_red(tmp_path: Path, real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gated(tmp_path / "e", real, "--accept-change", MADD) == 1
    assert f"--accept-change {MADD}: nothing of that name changed; leave it out" in capsys.readouterr().out
    assert (record(tmp_path / "e")["stale"], record(tmp_path / "e")["exit_code"]) == ([MADD], 1)
    assert main(["evidence", "verify", str(tmp_path / "e")]) == 1
    assert main(["evidence", "show", str(tmp_path / "e")]) == 0
    assert f"accepted, but nothing changed: {MADD}" in capsys.readouterr().out


def judge(tmp_path: Path, accept: Sequence[str]) -> GateVerdict:
    old = night(tmp_path / "1", part(BF16, shipped()), steps=(questions(answered("carry", "settled", "all")),))
    new = night(tmp_path / "2", part(BF16, shipped(BF16, KEEPS)), part(MADD), day=2,
                steps=(questions(answered("carry", "settled", "none")),))  # fmt: skip
    facts = [facts_of(Store.open(path)) for path in (old, new)]
    return judged(Baseline(old, facts[0], tuple(accept)), compare_runs(*facts))


@pytest.mark.parametrize(("accept", "refused", "stale", "code"), [
    ([], [MADD, BF16, "carry"], [], 1),
    ([MADD], [BF16, "carry"], [], 1),
    ([BF16], [MADD], [], 1),  # with what is answered about it
    (["carry", MADD], [BF16], [], 1),
    (["x86.*"], [], [], 0),
    (["*"], [], [], 0),
    (["x86.*", "x86.dpps"], [], ["x86.dpps"], 1),
    (["x86.*", "car"], [], ["car"], 1),
])  # fmt: skip
def test_what_an_acceptance_takes_in(
    tmp_path: Path, accept: list[str], refused: list[str], stale: list[str], code: int
) -> None:
    verdict = judge(tmp_path, accept)
    assert [each.name for each in verdict.refused] == refused
    assert len(verdict.accepted) + len(verdict.refused) == 3
    assert (list(verdict.stale), verdict.exit_code, bool(verdict.failure)) == (stale, code, bool(code))


def bent(path: Path, how: str) -> Path:
    """A baseline of the device that no run may begin with."""
    told: dict[str, dict[str, Any]] = {
        "unfinished": {"finished": False},
        "another architecture": {"identity": IDENTITY | {"architecture": "x86-64"}},
        "another device": {"device": "model:x86-64"},
        "a GPU": {"device": "cuda:0", "identity": GPU},
    }
    parts = [] if how == "empty" else [part(MADD)]
    fake(path, *parts, **told.get(how, {}))
    manifest, file = path / "manifest.json", path / "instructions" / f"{MADD}.json"
    if how == "changed":
        file.write_text(file.read_text().replace("finished", "partial"))
    elif how == "cut":
        manifest.write_text(manifest.read_text()[:80])
    elif how == "newer":
        reseal(manifest, json.loads(manifest.read_text()) | {"schema": 99})
    elif how == "missing":
        manifest.unlink()
    elif how == "without digests":
        document = json.loads(manifest.read_text()) | {"schema": 1}
        manifest.write_text(
            json.dumps({key: value for key, value in document.items() if key not in ("sha256", "files")})
        )
        inner = json.loads(file.read_text()) | {"schema": 1}
        file.write_text(json.dumps({key: value for key, value in inner.items() if key != "sha256"}))
    return path


REFUSED = {
    "unfinished": "is not finished",
    "empty": "holds no instruction",
    "changed": "is not the file that manifest.json names",
    "cut": "truncated, or not JSON",
    "newer": "this package reads up to 2",
    "missing": "No such file",
    "without digests": "was written without digests",
    "another architecture": "architecture was x86-64, is x86-64+intel",
    "another device": f"device was model:x86-64, is {DEVICE}",
    "a GPU": "uuid was GPU-1, is not said",
}


@pytest.mark.parametrize("how", REFUSED)
def test_a_baseline_that_is_none_is_refused_before_the_run_begins(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gated(tmp_path / "e", bent(tmp_path / "old", how)) == 2
    assert REFUSED[how] in capsys.readouterr().err
    assert not (tmp_path / "e").exists()


def test_a_run_is_not_held_against_itself(tmp_path: Path, real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gated(real, real, "--resume") == 2
    assert "it would be held against itself" in capsys.readouterr().err


def test_words_that_accept_nothing_are_refused_before_the_run_begins(
    tmp_path: Path, real: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gated(tmp_path / "e", real, "--accept-change", "x86.pmadwd") == 2
    assert "names nothing of the baseline or the device; did you mean x86.pmaddwd" in capsys.readouterr().err
    assert main([*RUN, "--out", str(tmp_path / "e"), "--accept-change", MADD]) == 2
    assert "--baseline RUN" in capsys.readouterr().err
    assert not (tmp_path / "e").exists()


def test_what_is_wrong_with_a_baseline_is_said_without_the_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "-d", "process:/nowhere/program", "--baseline", str(bent(tmp_path / "old", "empty"))]) == 2
    assert "holds no instruction" in capsys.readouterr().err


@pytest.mark.parametrize(("change", "other"), [
    ({"driver": "999", "vbios": "2", "clock_sm_mhz": "1"}, False), ({"uuid": "GPU-2"}, True),
    ({"mig": "1g.10gb"}, True), ({"architecture": "sm_100a"}, True), ({"model_name": "NVIDIA H200"}, True),
    ({"stepping": "2"}, True),
])  # fmt: skip
def test_which_devices_are_one(change: dict[str, str], other: bool) -> None:
    """A GPU by its UUID, whatever its number is; what has none by its name, too."""
    one = Header("cuda:0", GPU, "1", 0)
    assert bool(other_device(one, replace(one, device="cuda:3", identity=GPU | change))) is other
    assert other_device(one, Header("model:sm_90a", MODEL, "1", 0))
    assert other_device(Header("cpu", {}, "1", 0), Header("process:cpu", {}, "1", 0)) == (
        "device was cpu, is process:cpu; silicon was silicon, is unknown"
    )


def test_silicon_and_its_emulator_are_two_devices() -> None:
    """Of one name, number and chip; another version of the emulator is the same one, as another driver is."""
    before = Header("hip:0", GPU, "1", 0)
    silicon, old, new = (replace(before, identity=GPU | {"silicon": said}) for said in
                         ("yes", "no, emulated by rocjitsu 0.3", "no, emulated by rocjitsu 0.4"))  # fmt: skip
    assert other_device(before, silicon) == other_device(old, new) == ""
    for one in (before, silicon):
        assert other_device(one, new) == "silicon was silicon, is emulated"
    assert surroundings(old, new) == ["silicon: no, emulated by rocjitsu 0.3 -> no, emulated by rocjitsu 0.4"]


@pytest.mark.parametrize(("ends", "code"), [("5", 5), ("130", 130)])
def test_a_worse_end_stays_the_end(
    tmp_path: Path, real: Path, monkeypatch: pytest.MonkeyPatch, ends: str, code: int
) -> None:
    from mmaprobe.runs import result

    more = fake(tmp_path / "more", *Store.open(real).parts.values(), part(BF16))
    monkeypatch.setattr(result.Report, "exit_code", property(lambda _: int(ends)))
    if code == 130:
        monkeypatch.setattr(result.Report, "interrupted", True, raising=False)
    assert gated(tmp_path / "e", more) == code
