"""Regenerate a parameter file without it: ``python tests/recovery/regenerate.py gfx942 [sm_90a ...]``.

A program stands for the chip (``stand_ins/new_chip.py``). ``mmaprobe run`` asks it where the architecture's file is not
there, ``mmaprobe parameters write`` makes a file of what was derived, and ``mmaprobe parameters diff`` holds it against
the one that ships: 0 where no function differs. Each command is printed, and a person can type it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from cases.linked_package import linked  # noqa: E402

CHIP = TESTS / "stand_ins" / "new_chip.py"
COMMAND = (sys.executable, "-c", "from mmaprobe.cli import main; raise SystemExit(main())")
PLAN = ("--steps", "survey,validation", "--vectors", "100000")
"""Each primitive derived once, all other instructions shown equal to it; as many vectors as a part needs to count."""


def without(architecture: str, folder: Path) -> Path:
    """A folder for ``PYTHONPATH`` with the package, but for what ships of an architecture: its parameter file, and
    which of its primitives a run measured."""
    package = linked(folder, "parameters", "data", "measured")
    data = package / "parameters" / "data"
    (data / f"{architecture}.toml").unlink()
    (data / "measured" / f"{architecture}.toml").unlink(missing_ok=True)
    return package.parent


def regenerate(architecture: str, folder: Path, pattern: str = "*", seed: int = 0) -> Path:
    """The file that is written of a chip of which no parameters are known, or of its instructions that a glob names.

    CalledProcessError where a command fails, as the run does where a derivation has no answer.
    """
    chip = f"process:{shlex.join(('env', f'PYTHONPATH={_path()}', sys.executable, str(CHIP), architecture))}"
    evidence, written = folder / "evidence", folder / f"{architecture}.toml"
    more = ("--resume",) if (evidence / "manifest.json").exists() else ()
    with tempfile.TemporaryDirectory() as package:
        elsewhere = str(without(architecture, Path(package)))
        asked = ("--device", chip, "--instruction", pattern, *PLAN, "--seed", str(seed))
        _run(("run", *asked, "--out", str(evidence), *more), elsewhere)
        _run(("parameters", "write", str(evidence), "--out", str(written)), elsewhere)
    return written


def _path() -> str:
    """Where this process finds the package and the tests."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH", ""), str(TESTS))))


def _run(words: Sequence[str], path: str) -> None:
    print(f"$ mmaprobe {shlex.join(words)}", flush=True)
    subprocess.run([*COMMAND, *words], env={**os.environ, "PYTHONPATH": path}, check=True)


def main(given: Sequence[str]) -> int:
    """Regenerate each; 1 where a function differs from the one that ships, the command's code where one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architecture", nargs="*", default=["gfx942", "sm_90a"])
    parser.add_argument("--out", type=Path, help="a folder for evidence and files, where an earlier run goes on")
    parser.add_argument("--seed", type=int, default=0, help="of what is asked (0); another one is another folder's")
    options = parser.parse_args(given)
    codes = []
    with tempfile.TemporaryDirectory() as unnamed:
        for name in options.architecture:
            folder = (options.out or Path(unnamed)) / name
            try:
                written = regenerate(name, folder, seed=options.seed)
            except subprocess.CalledProcessError as error:
                print(f"{name} is not regenerated: the command above ended with {error.returncode}", flush=True)
                codes.append(error.returncode)
                continue
            words = ("parameters", "diff", name, str(written))
            print(f"$ mmaprobe {shlex.join(words)}", flush=True)
            codes.append(subprocess.run([*COMMAND, *words]).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
