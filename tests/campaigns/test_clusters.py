"""Campaigns on a real dask scheduler with several workers, and on a real Slurm of one node; each loses a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mmaprobe.campaigns import engines
from mmaprobe.campaigns.campaign import put_together, read_shards
from mmaprobe.campaigns.engines import EngineOptions
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import run_shard, work_of
from mmaprobe.campaigns.shard_file import SUFFIX, write_shard
from mmaprobe.campaigns.verbs import SHARDS, CampaignOptions, validate_plan
from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError

SCRIPT = Path(__file__).parent / "clusters" / "one_node_slurm.sh"
DOT = """
import os, pathlib
def dot(a, b):
    pathlib.Path({folder!r}, str(os.getpid())).touch()
    return (a * b).sum(-1)
"""
WAIT = 60.0
"""Seconds in which a cluster must answer."""


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """A device that leaves the number of every process that asks it."""
    (tmp_path / "pids").mkdir()
    (tmp_path / "slow.py").write_text(DOT.format(folder=str(tmp_path / "pids")))
    return f"function:{tmp_path / 'slow.py'}:dot?k=4"


def plan_of(device: str) -> ValidationPlan:
    return ValidationPlan("slow", (open_device(device).instructions()[0].id,), 1, vectors=60_000, least_vectors=60_000)


def killed(folder: Path, mine: int) -> Callable[[], int]:
    """Kill the first process that computes; its number, once it is dead."""
    found: list[int] = []

    def watch() -> None:
        end = time.monotonic() + WAIT
        while not found and time.monotonic() < end:
            for path in folder.iterdir():
                if int(path.name) != mine:
                    os.kill(int(path.name), signal.SIGKILL)
                    found.append(int(path.name))
                    return
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()

    def number() -> int:
        thread.join()
        return found[0]

    return number


def held_against_one_shard(
    tmp_path: Path, device: str, options: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign of an engine, one of whose workers is killed, is that of one process that nothing disturbs."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    plan, out = plan_of(device), tmp_path / "out"
    victim = killed(tmp_path / "pids", os.getpid())
    campaign = validate_plan(device, device, plan, CampaignOptions(seed=3, out=out, shards=3, engine=options))
    assert victim() > 0
    assert (campaign.exit_code, campaign.vectors) == (0, 60_000)
    assert len(list((out / SHARDS).glob(f"*{SUFFIX}"))) == 3
    opened = open_device(device)
    write_shard(run_shard(work_of(plan, opened, opened, 3), Shard()), tmp_path / "one")
    alone = put_together(read_shards([tmp_path / "one"]))
    assert alone.rows == campaign.rows


@contextmanager
def program(*words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | environment,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def told(process: subprocess.Popen[str], word: str) -> str:
    """The line of a program that has a word."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return line
    raise AssertionError(f"{process.args} ended without {word}")


@pytest.mark.needs("dask")
def test_dask_with_a_worker_killed(tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with program("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard") as scheduler:
        address = told(scheduler, "Scheduler at:").split()[-1]
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--resources", "GPU=1")
        with program(*worker) as one, program(*worker) as two:
            for each in (one, two):
                told(each, "Registered to:")
            held_against_one_shard(tmp_path, slow, EngineOptions("dask", scheduler=address), monkeypatch)


@pytest.mark.long
@pytest.mark.needs("slurm")
def test_slurm_with_a_job_killed(tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = tmp_path / "slurm"
    subprocess.run([str(SCRIPT), "start", str(at)], check=True)
    try:
        monkeypatch.setenv("SLURM_CONF", str(at / "slurm.conf"))
        held_against_one_shard(tmp_path, slow, EngineOptions("slurm", workers=2), monkeypatch)
    finally:
        subprocess.run([str(SCRIPT), "stop", str(at)], check=True)


@pytest.mark.needs("dask")
def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "ANSWERS", 1.0)
    options = CampaignOptions(seed=1, out=tmp_path / "out", engine=EngineOptions("dask", scheduler="tcp://127.0.0.1:9"))
    with pytest.raises(NotHereError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        validate_plan(slow, slow, plan_of(slow), options)
