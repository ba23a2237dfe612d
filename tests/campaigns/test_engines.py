"""Engines that are interrupted, and workers that must know a catalog from outside."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from cases.new_unit import CATALOG, parameters
from mmaprobe.campaigns import engines
from mmaprobe.campaigns.campaign import read_shards
from mmaprobe.campaigns.engines import EngineOptions, Order, run_orders
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard_file import SHARDS, SUFFIX, shard_name
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError
from mmaprobe.evidence.store import Store
from mmaprobe.parameters.files import to_text

HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""A process that is begun in the background hears no Ctrl-C, nor do its children."""
MAIN = [sys.executable, "-c", HEARING + "from mmaprobe.cli import main; raise SystemExit(main())"]
DOT = """
import os, time
def dot(a, b):
    if os.path.exists({first!r}) and os.path.exists({file!r} + ".slow"):
        time.sleep(0.05)
    return (a * b).sum(-1)
"""
SCRIPT = Path(__file__).parent / "clusters" / "one_node_slurm.sh"
SOON = 20.0
"""Seconds in which an engine must have ended, on a machine that does other things as well."""


@pytest.fixture
def slow(tmp_path: Path) -> tuple[str, Path]:
    """A device that takes its time from the first shard on, while the file ``.slow`` is there, and a plan of it."""
    file, first = tmp_path / "slow.py", tmp_path / "out" / SHARDS / shard_name(Shard(0, 2))
    file.write_text(DOT.format(first=str(first), file=str(file)))
    Path(f"{file}.slow").touch()
    device = f"function:{file}:dot?k=4"
    plan = tmp_path / "slow.toml"
    made = open_device(device).instructions()[0].id
    plan.write_text(f'instructions = ["{made}"]\nvectors = 50_000\nleast_instructions = 1\n')
    return device, plan


def interrupted(words: list[str], out: Path) -> tuple[int, str, float]:
    """Ctrl-C, as a terminal says it to a whole group, once the first shard is there: exit code, standard error, and the
    seconds that the end took."""
    process = subprocess.Popen([*MAIN, *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                               start_new_session=True)  # fmt: skip
    end = time.monotonic() + 60
    while not list((out / SHARDS).glob(f"*{SUFFIX}")) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, said = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said, time.monotonic() - begin


@pytest.mark.parametrize("engine", [
    ["--workers", "2"],
    pytest.param(["--engine", "dask", "--workers", "2"], marks=[pytest.mark.long, pytest.mark.needs("dask")]),
], ids=["local", "dask"])  # fmt: skip
def test_ctrl_c_ends_an_engine_and_says_what_goes_on(slow: tuple[str, Path], tmp_path: Path, engine: list[str]) -> None:
    device, plan = slow
    out = tmp_path / "out"
    words = ["validate", device, device, "--plan", str(plan), "--out", str(out), "--shards", "2", *engine]
    code, said, seconds = interrupted(words, out)
    assert code == 130
    assert seconds < SOON
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("mmaprobe: interrupted; the shards that are there stay; this goes on: mmaprobe validate")
    there = read_shards([out / SHARDS])
    assert len(there) == 1
    again = shlex.split(last.partition("this goes on: ")[2])[1:]
    assert again[-3:-1] == ["--resume", "--seed"]
    Path(f"{tmp_path / 'slow.py'}.slow").unlink()
    assert main(again) == 0
    assert Store.open(out).header.seed == there[0][1].seed == int(again[-1])


@pytest.mark.long
@pytest.mark.needs("slurm")
def test_ctrl_c_leaves_no_job_of_slurm(slow: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, (device, plan) = tmp_path / "slurm", slow
    subprocess.run([str(SCRIPT), "start", str(at)], check=True)
    try:
        monkeypatch.setenv("SLURM_CONF", str(at / "slurm.conf"))
        out = tmp_path / "out"
        words = ["validate", device, device, "--plan", str(plan), "--out", str(out), "--shards", "2"]
        code, said, seconds = interrupted([*words, "--engine", "slurm", "--workers", "2"], out)
        assert (code, "this goes on: mmaprobe validate" in said) == (130, True)
        assert seconds < SOON
        left = "left"
        while left and seconds < SOON:
            left = subprocess.run(["squeue", "-h", "-t", "PD,R"], capture_output=True, text=True, check=True).stdout
            time.sleep(0.5)
            seconds += 0.5
        assert not left
    finally:
        subprocess.run([str(SCRIPT), "stop", str(at)], check=True)


@pytest.mark.long
def test_a_campaign_is_gone_on_with_that_has_no_shard_yet(slow: tuple[str, Path], tmp_path: Path) -> None:
    device, plan = slow
    (tmp_path / "out" / SHARDS).mkdir(parents=True)
    words = ["validate", device, device, "--plan", str(plan), "--out", str(tmp_path / "out"), "--seed", "4"]
    assert main([*words, "--shards", "1", "--resume"]) == 0


class Jobs:
    """Stands in for ``submitit``: jobs that wait for ever, of which it is kept which were cancelled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.began: list[SimpleNamespace] = []
        self.cancelled: list[int] = []

    def AutoExecutor(self, folder: str, cluster: str) -> Jobs:
        return self

    def update_parameters(self, **_: object) -> None: ...

    def submit(self, function: object, order: Order) -> SimpleNamespace:
        number = len(self.began)
        paths = SimpleNamespace(result_pickle=self.folder / "never")
        job = Job(job_id=str(number), paths=paths, cancel=lambda check: self.cancelled.append(number))
        self.began.append(job)
        return job


class Job(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


def test_ctrl_c_cancels_jobs_and_begins_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    monkeypatch.setattr(engines, "_needed", lambda module, engine: jobs)
    monkeypatch.setattr(engines, "_in_queue", lambda job: True)
    monkeypatch.setattr(engines, "POLL", 0.05)
    plan = ValidationPlan("none", ("x86.dpps",), 1, vectors=1, least_vectors=1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    orders = [Order(plan, "cpu", "cpu", 1, Shard(number, 5), str(tmp_path)) for number in range(5)]

    def interrupt() -> None:
        while len(jobs.began) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_orders(orders, EngineOptions("slurm", workers=2), lambda path: None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() < begin + SOON
    assert sorted(jobs.cancelled) == [0, 1]
    assert len(jobs.began) == 2


def test_a_worker_of_dask_that_dies_before_it_is_one_is_no_error_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As when memory is short: there is no cluster, which is 3 and one line, and the campaign is gone on with."""

    def dies(*_: object, **__: object) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(engines, "_needed", lambda module, engine: SimpleNamespace(Client=dies))
    order = Order(ValidationPlan("none", ("x86.dpps",), 1, vectors=1), "cpu", "cpu", 1, Shard(), str(tmp_path))
    with pytest.raises(NotHereError, match=r"no dask began here: Nanny failed to start\. Try again, or .*--scheduler"):
        run_orders([order], EngineOptions("dask"), lambda path: None)


def test_workers_know_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("acme.toml").write_text(CATALOG)
    Path("acme9.toml").write_text(to_text(parameters()))
    Path("mine.toml").write_text('instructions = ["acme.fma"]\nvectors = 30_000\nleast_instructions = 1\n')
    words = ["validate", "model:acme9", "model:acme9", "--plan", "mine.toml", "--seed", "1", "--out", "out"]
    given = ["--catalog", "acme.toml", "--catalog", "acme9.toml", "--shards", "2", "--workers", "2"]
    done = subprocess.run([*MAIN, *words, *given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(read_shards([Path("out") / SHARDS])) == 2
