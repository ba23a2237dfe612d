"""Kill a campaign at random moments and go on, again and again: ``python tests/campaigns/kills.py --kills 100``.

Every other campaign is run by processes of this machine, every other one by dask.  What comes out is byte for byte what
a campaign writes that nothing disturbs; else it ends with 1.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

DEVICE = "model:x86-64+intel"
PLAN = """
instructions = ["x86.dpps", "x86.vpdpbusd", "x86.vdpbf16ps"]
witnesses = true
vectors = 1_000_000
least_instructions = 3
"""
DATE = {"SOURCE_DATE_EPOCH": "1700000000"}
SHARDS = 9
"""Shards of the campaign: each kill loses two at most."""
EACH = 5
"""Kills of one campaign at most: one that is never let go on ends nowhere."""
LONGEST = {"local": 3.0, "dask": 6.0}
"""Engines, and seconds until a kill at most: dask begins its workers in two."""


def command(plan: Path, out: Path, engine: str) -> list[str]:
    """The command that begins a campaign, or goes on with it where there is anything of it."""
    words = ["validate", DEVICE, DEVICE, "--plan", str(plan), "--seed", "3", "--out", str(out)]
    words += ["--shards", str(SHARDS), "--workers", "2", "--engine", engine]
    return [sys.executable, "-c", "from mmaprobe.cli import main; raise SystemExit(main())", *words] + ["--resume"] * (
        out / "shards"
    ).is_dir()


def run(plan: Path, out: Path, engine: str, seconds: float | None = None) -> int | None:
    """The exit code of a campaign; None where it was killed after so many seconds."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command(plan, out, engine), env=os.environ | DATE, **quiet)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return None


def contents(folder: Path) -> dict[str, bytes]:
    """What lies in a campaign's evidence; of shards their names, since their seconds differ."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): b"" if path.parent.name == "shards" else path.read_bytes() for path in files}


def kill(kills: int, seed: int, work: Path, engines: list[str]) -> tuple[dict[str, int], bool]:
    """How many kills there were by engine, and whether the campaigns that they disturbed are as the others."""
    plan, chance = work / "plan.toml", random.Random(seed)
    plan.write_text(PLAN)
    assert run(plan, work / "calm", "local") == 0
    there, campaigns = dict.fromkeys(engines, 0), 0
    while sum(there.values()) < kills:
        out, engine = work / f"killed{campaigns}", min(there, key=lambda each: there[each])
        campaigns += 1
        for _ in range(min(EACH, -(-kills // len(engines)), kills - sum(there.values()))):
            if run(plan, out, engine, chance.uniform(0.3, LONGEST[engine])) is not None:
                break
            there[engine] += 1
        if run(plan, out, engine) != 0 or contents(out) != contents(work / "calm"):
            return there, False
    return there, True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    engines = [name for name in LONGEST if name == "local" or find_spec("distributed")]
    with tempfile.TemporaryDirectory() as work:
        there, same = kill(given.kills, given.seed, Path(work), engines)
    said = ", ".join(f"{count} over {engine}" for engine, count in there.items())
    print(f"{said}; seed {given.seed}: {'the same' if same else 'ANOTHER'} result")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
