"""``--all-gpus``: every GPU has the whole plan, one line each, and a wrong one is named by UUID and multiprocessor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mmaprobe.campaigns import all_gpus, engines
from mmaprobe.campaigns.all_gpus import GpuResult, exit_code_of, validate_all_gpus, visible_gpus
from mmaprobe.campaigns.campaign import put_together
from mmaprobe.campaigns.engines import Engine, EngineOptions, run_order
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import run_shard, work_of
from mmaprobe.campaigns.shard_file import read_shard
from mmaprobe.campaigns.verbs import CampaignOptions
from mmaprobe.cli import main
from mmaprobe.devices import listed
from mmaprobe.devices.base import Device, Serial, open_device
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.evidence.store import Store
from mmaprobe.validation.summary import Screening

MODEL = "model:x86-64+intel"
WRONG = "mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ"
PLAN = ValidationPlan("mine", ("x86.dpps",), 1, vectors=12_000, least_vectors=12_000)


class Gpu(Serial):
    """A device with the identity of a GPU."""

    def __init__(self, inner: Device, name: str, number: int) -> None:
        super().__init__(inner)
        self.called, self.number = name, number

    @property
    def name(self) -> str:
        return self.called

    def info(self) -> dict[str, str]:
        return dict(super().info()) | {"uuid": f"GPU-{self.number:04d}", "model_name": "NVIDIA H100"}


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three GPUs: one is right, one wrong, one does not open; each in a thread in place of a process."""
    of = {"cuda:0": MODEL, "cuda:1": WRONG}

    def opened(name: str) -> Device:
        if name == "cuda:2":
            raise NotHereError("cuda:2 has fallen off the bus")
        return Gpu(open_device(of[name]), name, int(name[-1])) if name in of else open_device(name)

    @contextmanager
    def threads(options: EngineOptions) -> Iterator[Engine]:
        yield Engine(run_order, options.workers, lambda: None)

    names = {"cuda": ["cuda:0", "cuda:1", "cuda:2"], "hip": ["hip"]}
    monkeypatch.setattr(listed, "device_names", names.__getitem__)
    monkeypatch.setattr(engines, "open_device", opened)
    monkeypatch.setitem(engines.ENGINES, "local", threads)  # type: ignore[arg-type]


def test_every_gpu_has_the_plan_and_a_line(three: None, tmp_path: Path) -> None:
    assert visible_gpus() == visible_gpus("cuda") == ["cuda:0", "cuda:1", "cuda:2"]
    found = validate_all_gpus(visible_gpus(), "", PLAN, CampaignOptions(seed=3, out=tmp_path / "out"))
    right, wrong, gone = found
    assert right.line == "cuda:0 GPU-0000 NVIDIA H100: equal: 12,000 vectors of 1 instruction"
    assert wrong.line.startswith("cuda:1 GPU-0001 NVIDIA H100: ")
    assert "mismatches in 12,000 vectors of 1 instruction, 1 of them wrong" in wrong.line
    assert gone.line == "cuda:2: not here: cuda:2 has fallen off the bus"
    assert ([each.exit_code for each in found], exit_code_of(found)) == ([0, 1, 3], 1)
    assert exit_code_of([right, gone]) == 3
    stores = {path.name: Store.open(path) for path in (tmp_path / "out").iterdir() if (path / "manifest.json").exists()}
    assert {name: store.header.identity["uuid"] for name, store in stores.items()} == {
        "cuda-0": "GPU-0000", "cuda-1": "GPU-0001",
    }  # fmt: skip
    with pytest.raises(UsageError, match="cuda-0 holds a campaign already"):
        validate_all_gpus(["cuda:0"], "", PLAN, CampaignOptions(seed=4, out=tmp_path / "out"))


def test_a_wrong_multiprocessor_is_named() -> None:
    device, ref = Gpu(open_device(WRONG), "cuda:5", 5), open_device(MODEL)
    result = run_shard(work_of(PLAN, device, ref, 3), Shard())
    summary = result.done[0].summary
    assert summary is not None
    screened = replace(summary, screening=Screening(132, 132, {"17": summary.mismatches}))
    done = (replace(result.done[0], summary=screened), *result.done[1:])
    campaign = put_together([("here", replace(result, done=done))])
    line = GpuResult("cuda:5", campaign).line
    assert line.startswith("cuda:5 GPU-0005 NVIDIA H100: ")
    assert f"{summary.mismatches:,} on multiprocessor 17" in line


def test_a_budget_and_an_instruction_that_fails_are_in_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    device, ticks = open_device(MODEL), iter(range(10**6))
    spent = run_shard(work_of(PLAN, device, device, 3), Shard(), minutes=1e-9, clock=lambda: next(ticks))
    found = GpuResult("cuda:0", put_together([("here", spent)]))
    assert found.exit_code == 4
    assert "inconclusive: 0 vectors" in found.line
    assert "the budget was spent: 0 of 1 parts were begun" in found.line

    def hung(*_: object) -> int:
        raise DeviceError("hung")

    monkeypatch.setattr("mmaprobe.campaigns.shard.check_canary", hung)
    failed = GpuResult("cuda:0", put_together([("here", run_shard(work_of(PLAN, device, device, 3), Shard()))]))
    assert (failed.exit_code, "cuda:0: failed: 0 vectors" in failed.line, "x86.dpps: hung" in failed.line) == (
        5, True, True,
    )  # fmt: skip


@pytest.mark.parametrize(("which", "error", "said"), [
    ("", NotHereError, "no GPU is here; why not: mmaprobe doctor"), ("cuda", NotHereError, "no GPU is here"),
    ("cuda:1", UsageError, "--all-gpus is about more than cuda:1"), ("cpu", UsageError, "cpu is none: leave it out"),
])  # fmt: skip
def test_where_there_is_none(which: str, error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "device_names", lambda scheme: [scheme])
    with pytest.raises(error, match=said):
        visible_gpus(which)


@pytest.mark.long
def test_the_command_runs_a_process_for_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(all_gpus, "gpu_names", lambda scheme: [MODEL, WRONG] if scheme == "cuda" else [])
    plan = tmp_path / "mine.toml"
    plan.write_text('instructions = ["x86.dpps"]\nvectors = 12_000\nleast_instructions = 1\n')
    words = ["validate", "--all-gpus", "--plan", str(plan), "--seed", "3", "--json"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["exit_code"] for each in found["gpus"]] == [0, 1]
    assert [each["campaign"]["seed"] for each in found["gpus"]] == [3, 3]


@pytest.mark.parametrize(("words", "said"), [
    (["--all-gpus"], "--all-gpus goes with --plan"),
    (["--plan", "sdc", "--all-gpus", "--workers", "2"], "--workers goes without --all-gpus"),
    (["--plan", "sdc", "--all-gpus", "--resume"], "--resume goes without --all-gpus"),
    (["--plan", "sdc", "--all-gpus", "--junit", "j.xml"], "--junit goes without --all-gpus"),
    (["--plan", "sdc", "--all-gpus", "--shard", "0/2"], "--all-gpus goes without --shard"),
    (["--plan", "sdc"], "name a device under test, or all GPUs that are here: --all-gpus"),
])  # fmt: skip
def test_wrong_words_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", *words, "--seed", "1"]) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert len(told.splitlines()) == 1


def test_a_shard_of_a_gpu_is_that_of_the_seed(three: None, tmp_path: Path) -> None:
    validate_all_gpus(["cuda:0"], MODEL, PLAN, CampaignOptions(seed=9, out=tmp_path / "out"))
    kept = read_shard(next((tmp_path / "out" / "cuda-0" / "shards").iterdir()))
    assert (kept.seed, kept.vectors, kept.device.name) == (9, 12_000, "cuda:0")
