"""``run --plan``: a run is of the plan's instructions, and validates each as the plan says, or it is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.campaigns import shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.planned_run import PlannedRun
from mmaprobe.catalog import lookup
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError
from mmaprobe.evidence.store import Store
from mmaprobe.runs.planned import PlannedResult
from mmaprobe.survey.smoke import FAMILY

MODEL, DOT, PLAIN = "model:x86-64+intel", "x86.vpdpbusd", "x86.pmaddubsw"
WRONG = "mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return write(tmp_path, vectors="12_000", least_vectors="2_000", witnesses="true", generators='["codes", "uniform"]')


def write(folder: Path, **keys: str) -> Path:
    said = {"instructions": f'["{DOT}", "{PLAIN}"]', "least_instructions": "2"} | keys
    path = folder / "mine.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in said.items()))
    return path


def run(*words: str | Path) -> int:
    return main(["run", "--device", MODEL, "--seed", "5", *map(str, words)])


def families(store: Store, name: str) -> dict[str, Any]:
    return dict(store.parts[name].validation["families"])


def test_a_run_is_of_its_plan(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run("--plan", mine, "--out", out, "--json") == 0
    store = Store.open(out)
    assert {*store.parts} == {DOT, PLAIN}  # each in its default control state
    for name in (DOT, PLAIN):
        found = families(store, name)
        assert {*found} - {FAMILY} == {"codes", "uniform"}
        assert sum(each["vectors"] for family, each in found.items() if family != FAMILY) == 12_000
        assert store.parts[name].datapath is not None
    assert families(store, DOT)[FAMILY]["vectors"] > 0
    assert store.header.settings["validation"]["name"] == "mine"
    assert json.loads(capsys.readouterr().out)["exit_code"] == 0
    mine.write_text(mine.read_text().replace("12_000", "13_000"))
    assert run("--plan", mine, "--out", out, "--resume") == 2
    assert "was begun with other settings" in capsys.readouterr().err


def test_an_instruction_takes_the_place_of_the_plans(mine: Path, tmp_path: Path) -> None:
    assert run("--plan", mine, "--out", tmp_path / "one", "--instruction", PLAIN) == 0
    assert {*Store.open(tmp_path / "one").parts} == {PLAIN}


def test_fewer_instructions_than_the_plan_wants_are_red(tmp_path: Path) -> None:
    plan = write(tmp_path, vectors="3_000", least_instructions="3", instructions=f'["{PLAIN}"]')
    assert run("--plan", plan, "--out", tmp_path / "few") == 4


def test_a_planted_difference_goes_before_each_instruction(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(dut: object, ref: object, made: Any, seed: int, enumerated: str) -> int:
        asked.append(made.id)
        return 1

    monkeypatch.setattr(shard, "check_canary", noted)
    assert run("--plan", mine, "--out", tmp_path / "out") == 0
    assert asked == [DOT, PLAIN]


def compared(dut: str, plan: ValidationPlan, stop: Callable[[], bool] = lambda: False) -> PlannedResult:
    device, ref = open_device(dut), open_device(MODEL)
    return PlannedRun(plan).compare(device, ref, lookup.instruction("x86.dpps"), 5, lambda _: None, stop)


ROUNDED = ValidationPlan("mine", ("x86.dpps",), 1, vectors=20_000, least_vectors=20_000, witnesses=True)


def test_witnesses_and_vectors_that_differ_are_counted() -> None:
    found = compared(WRONG, ROUNDED).summary
    assert found is not None
    counts = dict(found.families)
    assert counts[FAMILY].mismatches > 0
    assert found.mismatches > counts[FAMILY].mismatches
    assert found.vectors == 20_000 + counts[FAMILY].vectors


def test_a_run_whose_budget_ends_stops_what_it_compares() -> None:
    found = compared(MODEL, ROUNDED, lambda: True).summary
    assert found is not None
    assert (found.stopped, [*dict(found.families)]) == (True, [FAMILY])


def test_what_cannot_be_asked_is_the_instructions_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise NotHereError("no compiler takes it")

    monkeypatch.setattr(shard, "check_canary", refused)
    assert compared(MODEL, ROUNDED) == PlannedResult(None, "no compiler takes it", 3)


def test_a_run_by_steps_validates_by_the_plan(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "steps"
    assert run("--plan", mine, "--out", out, "--steps", "validation") in (0, 4)
    store = Store.open(out)
    assert {*store.parts} == {DOT, PLAIN}
    for part in store.parts.values():
        counts: Counter[str] = Counter()
        for each in part.validation["runs"]:
            counts.update({family: count["vectors"] for family, count in each["families"].items()})
        assert {*counts} <= {"codes", "uniform", FAMILY}
        assert sum(count for family, count in counts.items() if family != FAMILY) == 12_000
        assert part.validation["witnessed"] == counts[FAMILY]


WRONG_CALLS = [
    ({}, ["--vectors", "7"], "--vectors goes without --plan, which says it"),
    ({}, ["--least", "7"], "--least goes without --plan, which says it"),
    ({"reference": f'"{MODEL}"'}, [], "names a reference, and a run compares with what it derives"),
    ({"instructions": '["x86.none*"]'}, [], "has no instruction 'x86.none*'"),
    ({"generators": '["scales"]'}, [], "no generator 'scales'"),
    ({}, ["--steps", "selftest"], "--plan says how the step validation compares, and --steps leaves that out"),
]


@pytest.mark.parametrize(("keys", "words", "said"), WRONG_CALLS, ids=[said[:20] for _, _, said in WRONG_CALLS])
def test_what_does_not_go_together_is_one_line(
    keys: dict[str, str], words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write(tmp_path, **({"vectors": "2_000"} | keys))
    assert run("--plan", plan, "--out", tmp_path / "out", *words) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "said"), [("exhaustive", "counts narrow formats through"), ("qick", "did you mean")])
def test_a_plan_that_is_none_of_a_run_is_refused(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--plan", name) == 2
    assert said in capsys.readouterr().err
