"""Campaigns on trial: two on one folder, full disks, clocks that go backwards, mismatches without end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mmaprobe import generators
from mmaprobe.campaigns import shard
from mmaprobe.campaigns.campaign import put_together, read_shards
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import run_shard, work_of
from mmaprobe.campaigns.shard_file import SHARDS, SUFFIX, read_shard, write_shard
from mmaprobe.campaigns.verbs import CampaignOptions, carry_out
from mmaprobe.catalog import lookup
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.evidence import files
from mmaprobe.evidence.files import LOCK, TEMPORARY, Lock
from mmaprobe.evidence.store import Store, now
from mmaprobe.generators import generate

X86 = "model:x86-64+intel"
DPPS, DOT = "x86.dpps", "x86.vpdpbusd"
PLAN = f'instructions = ["{DPPS}", "{DOT}"]\nvectors = 20_000\nleast_instructions = 2\n'
WAIT = 60.0
"""Seconds in which another process must begin."""
QUICKLY = 20.0
"""Seconds in which a campaign that is wrong everywhere must end, on a machine that has other things to do."""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan of a moment, and evidence with one date."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (tmp_path / "mine.toml").write_text(PLAN)
    return tmp_path / "mine.toml"


def words(plan: Path, out: Path, *more: str, dut: str = X86) -> list[str]:
    return ["validate", dut, X86, "--plan", str(plan), "--seed", "3", "--out", str(out), *more]


def contents(folder: Path) -> dict[str, bytes]:
    """What lies in a campaign's evidence; of shards their names, since their seconds differ."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): b"" if path.parent.name == SHARDS else path.read_bytes() for path in files}


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of an error."""
    told = capsys.readouterr().err.strip()
    assert len(told.splitlines()) == 1, told
    return told


def test_a_folder_that_another_process_writes_is_refused(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither begun nor gone on with nor merged into, and left as it was."""
    out = tmp_path / "out"
    assert main(words(plan, out)) == 0
    before = contents(out)
    capsys.readouterr()
    with Lock(out):
        for again in (words(plan, out), words(plan, out, "--resume"), ["merge", str(out / SHARDS), "--out", str(out)]):
            assert main(again) == 2
            assert f"out: process {os.getpid()} is writing there; wait for it, or choose another folder" in said(capsys)
    assert contents(out) == before
    assert main(words(plan, out, "--resume")) == 0
    assert contents(out) == before


@pytest.mark.long
def test_of_two_campaigns_in_one_folder_the_first_one_ends(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two processes: the second is told who is there, and the first writes what it would have written alone."""
    plan.write_text(PLAN.replace("20_000", "3_000_000"))
    out, run = tmp_path / "out", "from mmaprobe.cli import main; raise SystemExit(main())"
    first = subprocess.Popen([sys.executable, "-c", run, *words(plan, out, "--json")], stdout=subprocess.DEVNULL)
    end = time.monotonic() + WAIT
    while not (out / LOCK).exists():
        assert first.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    codes = [main(words(plan, out)), main(words(plan, out, "--resume"))]
    told = capsys.readouterr().err
    assert (first.wait(), codes) == (0, [2, 2])
    assert told.count(f"process {first.pid} is writing there") == 2
    assert main(words(plan, tmp_path / "calm")) == 0
    assert contents(out) == contents(tmp_path / "calm")


class FullDisk:
    """Files of which one, the ``at``-th, does not fit: a half of it is written, then the disk is full."""

    def __init__(self, at: int) -> None:
        self.at, self.written = at, 0
        self.put = files._write_through

    def __call__(self, folder: int, name: str, content: bytes) -> None:
        self.written += 1
        if self.written < self.at:
            self.put(folder, name, content)
            return
        self.put(folder, name, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def whole(out: Path) -> None:
    """No half-written file: shards and evidence are read, and nothing else is there."""
    for path in (out / SHARDS).glob("*"):
        assert path.name.endswith(SUFFIX)
        read_shard(path)
    if (out / "manifest.json").exists():
        Store.open(out)
    assert not [path for path in out.rglob("*") if path.name.endswith(TEMPORARY) or path.name == LOCK]


def test_a_disk_that_is_full_at_any_file_leaves_whole_ones(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 6, and what goes on with it comes to the same."""
    assert main(words(plan, tmp_path / "calm", "--shards", "2")) == 0
    capsys.readouterr()
    for at in range(1, 20):
        out, disk = tmp_path / f"full{at}", FullDisk(at)
        with monkeypatch.context() as patched:
            patched.setattr(files, "_write_through", disk)
            code = main(words(plan, out, "--shards", "2"))
        if disk.written < at:
            break
        assert code == 6
        told = said(capsys)
        assert "cannot write " in told
        assert "No space left on device; " in told
        assert "kept" in told
        whole(out)
        assert main(words(plan, out, "--shards", "2", "--resume")) == 0
        capsys.readouterr()
        assert contents(out) == contents(tmp_path / "calm")
    assert at > 6


@contextmanager
def small_disk(at: Path, kilobytes: int) -> Iterator[None]:
    """A real file system of so many KiB; skipped where nobody may mount one."""
    at.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(at)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_real_disk_that_is_full(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str) -> None:
    assert main(words(plan, tmp_path / "calm", "--shards", "4")) == 0
    capsys.readouterr()
    with small_disk(tmp_path / "disk", 24):
        out = tmp_path / "disk" / "out"
        more = ("--shards", "4", "--workers", workers)
        assert main(words(plan, out, *more)) == 6
        assert "No space left on device; " in said(capsys)
        whole(out)
        subprocess.run(["mount", "-o", "remount,size=4096k", str(tmp_path / "disk")], check=True)
        assert main(words(plan, out, *more, "--resume")) == 0
        assert contents(out) == contents(tmp_path / "calm")


MINE = ValidationPlan("mine", (DPPS, DOT), least_instructions=2, vectors=20_000, least_vectors=20_000)


def test_a_wall_clock_that_goes_backwards_changes_nothing_but_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at it is an hour earlier: budgets and seconds do not look; the campaign began with its earliest."""
    hours = iter(f"2026-11-28T{hour:02}:00:00+00:00" for hour in range(23, -1, -1))
    monkeypatch.setattr(shard, "now", lambda: next(hours))
    monkeypatch.setattr(time, "time", iter(range(10**9, 0, -3600)).__next__)
    work = work_of(MINE, open_device(X86), open_device(X86), 3)
    for number in range(3):
        path = write_shard(run_shard(work, Shard(number, 3), minutes=60), tmp_path)
        assert 0 <= read_shard(path).seconds < 60
        assert not read_shard(path).left
    campaign = put_together(read_shards([tmp_path]))
    assert (campaign.exit_code, campaign.begun, campaign.ended) == (0, "2026-11-28T21:00:00+00:00", "")


def test_even_a_clock_of_seconds_that_goes_backwards_leaves_a_shard_that_is_read(tmp_path: Path) -> None:
    work = work_of(MINE, open_device(X86), open_device(X86), 3)
    result = run_shard(work, Shard(), minutes=1, clock=iter(range(0, -(10**6), -7)).__next__)
    again = read_shard(write_shard(result, tmp_path))
    assert (again.seconds, again.left, again.exit_code) == (0.0, (), 0)


def test_now_is_that_of_the_source_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert now() == "1970-01-01T00:00:00+00:00"


def test_mismatches_without_end_are_counted_and_not_kept(tmp_path: Path) -> None:
    """A unit that answers 0: each other answer is counted, four are kept and examined, and it takes seconds."""
    begin, made = time.monotonic(), lookup.instruction(DOT)
    plan = ValidationPlan("mine", (DOT,), least_instructions=1, vectors=200_000, least_vectors=200_000)
    options = CampaignOptions(seed=3, out=tmp_path / "out", shards=2)
    campaign = carry_out(f"misbehaving:zeros?of={X86}", X86, plan, options)
    assert time.monotonic() - begin < QUICKLY
    model = open_device(X86)
    shares = [generate(made, family, 3, start, count) for family, start, count in generators.plan(made, 200_000)]
    assert campaign.mismatches == sum(int((run_vectors(model, made, each) != 0).sum()) for each in shares) > 100_000
    assert campaign.exit_code == 1
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file()) < 200_000
    kept = Store.open(tmp_path / "out").parts[DOT]
    assert (kept.mismatch_count, len(kept.mismatches)) == (campaign.mismatches, 4)
