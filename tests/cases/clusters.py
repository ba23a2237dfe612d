"""A real dask cluster of processes of their own; a real Slurm of one node."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "campaigns" / "clusters" / "one_node_slurm.sh"
WORKERS = 2
"""Processes that compute."""


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


@contextmanager
def dask_cluster(*options: str) -> Iterator[str]:
    """The address of a scheduler that has workers of one thread, begun with these options."""
    scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with ExitStack() as stack:
        address = told(stack.enter_context(program(*scheduler)), "Scheduler at:").split()[-1]
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", *options)
        for each in [stack.enter_context(program(*worker)) for _ in range(WORKERS)]:
            told(each, "Registered to:")
        yield address


@contextmanager
def one_node_slurm(at: Path) -> Iterator[Path]:
    """The configuration of a Slurm that runs on this machine, as root."""
    subprocess.run([str(SCRIPT), "start", str(at)], check=True)
    try:
        yield at / "slurm.conf"
    finally:
        subprocess.run([str(SCRIPT), "stop", str(at)], check=True)
