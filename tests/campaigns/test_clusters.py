"""Campaigns on a real dask scheduler with several workers, and on a real Slurm of one node; each loses a worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from cases.clusters import dask_cluster, one_node_slurm
from mmaprobe.campaigns import engines
from mmaprobe.campaigns.campaign import put_together, read_shards
from mmaprobe.campaigns.engines import EngineOptions
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import run_shard, work_of
from mmaprobe.campaigns.shard_file import SHARDS, SUFFIX, write_shard
from mmaprobe.campaigns.verbs import CampaignOptions, carry_out
from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError, UsageError

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


def killed(folder: Path, mine: int, victim: int = 0) -> Callable[[], int]:
    """Kill the first process that computes, or when it does a ``victim``; its number, once it is dead."""
    found: list[int] = []

    def watch() -> None:
        end = time.monotonic() + WAIT
        while not found and time.monotonic() < end:
            for path in folder.iterdir():
                if int(path.name) != mine:
                    os.kill(victim or int(path.name), signal.SIGKILL)
                    found.append(victim or int(path.name))
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
    campaign = carry_out(device, device, plan, CampaignOptions(seed=3, out=out, shards=3, engine=options))
    assert victim() > 0
    assert (campaign.exit_code, campaign.vectors) == (0, 60_000)
    assert len(list((out / SHARDS).glob(f"*{SUFFIX}"))) == 3
    opened = open_device(device)
    write_shard(run_shard(work_of(plan, opened, opened, 3), Shard()), tmp_path / "one")
    alone = put_together(read_shards([tmp_path / "one"]))
    assert alone.rows == campaign.rows


@pytest.mark.needs("dask")
def test_dask_with_a_worker_killed(tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with dask_cluster("--resources", "GPU=1") as address:
        held_against_one_shard(tmp_path, slow, EngineOptions("dask", scheduler=address), monkeypatch)


@pytest.mark.long
@pytest.mark.needs("slurm")
def test_slurm_with_a_job_killed(tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with one_node_slurm(tmp_path / "slurm") as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        held_against_one_shard(tmp_path, slow, EngineOptions("slurm", workers=2), monkeypatch)


@pytest.mark.needs("dask")
def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "ANSWERS", 1.0)
    options = CampaignOptions(seed=1, out=tmp_path / "out", engine=EngineOptions("dask", scheduler="tcp://127.0.0.1:9"))
    with pytest.raises(NotHereError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        carry_out(slow, slow, plan_of(slow), options)


@pytest.mark.long
@pytest.mark.needs("dask")
def test_a_scheduler_that_ends_in_the_middle_is_named(
    tmp_path: Path, slow: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """No error of ours, and nothing but ours is said of it; its shards are gone on with."""
    options, plan = CampaignOptions(seed=3, out=tmp_path / "out", shards=3), plan_of(slow)
    with dask_cluster() as address:
        with import_module("distributed").Client(address) as client:
            scheduler = client.run_on_scheduler(os.getpid)
        victim = killed(tmp_path / "pids", os.getpid(), scheduler)
        with pytest.raises(NotHereError, match=r"the dask scheduler answers no more; .* --resume goes on"):
            carry_out(slow, slow, plan, replace(options, engine=EngineOptions("dask", scheduler=address)))
        assert victim() == scheduler
    assert "Traceback" not in capfd.readouterr().err
    assert carry_out(slow, slow, plan, replace(options, resume=True)).vectors == 60_000


@pytest.mark.needs("dask")
def test_what_is_no_address_is_named(tmp_path: Path, slow: str) -> None:
    options = CampaignOptions(seed=1, out=tmp_path / "out", engine=EngineOptions("dask", scheduler="nonsense"))
    with pytest.raises(
        UsageError, match="--scheduler 'nonsense' is no address of a dask scheduler, as tcp://HOST:8786"
    ):
        carry_out(slow, slow, plan_of(slow), options)


@pytest.mark.needs("dask")
@pytest.mark.parametrize(
    ("sbatch", "said"),
    [
        ("", "--engine slurm needs sbatch, which is not on this machine"),
        ("echo no controller is there >&2; exit 1", "Slurm takes no job here: .*no controller is there"),
    ],
)
def test_a_slurm_that_is_not_there_is_named(
    tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch, sbatch: str, said: str
) -> None:
    """Without its commands, and with commands that find no controller."""
    (tmp_path / "bin").mkdir()
    for name in ("sbatch", "srun") if sbatch else ():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{sbatch}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = [str(tmp_path / "bin"), *(["/usr/bin", "/bin"] if sbatch else [])]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    options = CampaignOptions(seed=1, out=tmp_path / "out", engine=EngineOptions("slurm"))
    with pytest.raises(NotHereError, match=said):
        carry_out(slow, slow, plan_of(slow), options)
