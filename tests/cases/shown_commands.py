"""The commands of a page, as it shows them, and a folder in which they run as a shell would run them.

A block of ``console`` has commands behind ``$``, and below each what it prints; one of ``sh`` or ``bash`` has a command
a line.  A command goes on behind a backslash and ends before a remark.  ``$ echo $?`` and the number below it are the
exit code of the command before, which is 0 otherwise; a line below a command must be in what it prints, where ``...``
stands for anything.  A block of another language that begins with a file's name is that file, and so are the lines
below ``$ cat FILE``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mmaprobe.catalog import supplements
from mmaprobe.cli import main
from mmaprobe.parameters import lookup as parameters

ROOT = Path(__file__).parents[2]
OF_A_CHECKOUT = ("docs", "validation", "probes", "tests", "csrc")
"""Folders that pages name, beside which their commands run."""
PROGRAMS = {"mmaprobe": "-m mmaprobe", "python": "", "pytest": "-m pytest -q -p no:cacheprovider"}
"""What stands for the console scripts: this Python's modules."""


@dataclass(frozen=True)
class Shown:
    """A command, the lines that it prints (some of them, in any order) and its exit code."""

    line: str
    said: tuple[str, ...] = ()
    code: int = 0


def shown(page: str) -> Iterator[Shown]:
    """Each command of a page."""
    for language, block in re.findall(r"(?ms)^```(console|sh|bash)\n(.*?)^```", page):
        text = block.replace("\\\n", " ")
        parts = re.split(r"(?m)^\$ ", text)[1:] if language == "console" else text.splitlines()
        steps = [_step(part) for part in parts]
        for step, following in zip(steps, [*steps[1:], Shown("")], strict=True):
            if step.line != "echo $?":
                yield Shown(step.line, step.said, int(following.said[0]) if following.line == "echo $?" else 0)


def _step(part: str) -> Shown:
    line, *said = part.splitlines()
    return Shown(re.sub(r"\s+# .*", "", line).strip(), tuple(said))


def files(page: str) -> dict[str, str]:
    """The files that a page shows, by name."""
    named = re.findall(r"(?ms)^```\w+\n(# (\S+\.(?:py|toml))\n.*?)^```", page)
    return {name: text for text, name in named}


def pattern(line: str) -> str:
    """A shown line, any spaces as one and ``...`` as anything."""
    return r"\s+".join(".*" if word == "..." else re.escape(word) for word in line.split())


@dataclass
class Place:
    """A folder with the files of a page beside those of a checkout."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch
    programs: Path = field(init=False)

    def __post_init__(self) -> None:
        self.programs = self.folder.with_name(f"{self.folder.name}-programs")
        self.programs.mkdir()
        for name, words in PROGRAMS.items():
            (self.programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
            (self.programs / name).chmod(0o755)
        for name in OF_A_CHECKOUT:
            (self.folder / name).symlink_to(ROOT / name)
        self.patch.chdir(self.folder)
        self.patch.setenv("COLUMNS", "160")
        self.patch.setenv("PATH", f"{self.programs}:{os.environ['PATH']}")

    def write(self, page: str) -> None:
        """The files that a page shows."""
        for name, text in files(page).items():
            (self.folder / name).write_text(text, "utf-8")

    def check(self, step: Shown) -> None:
        """Run it; a failure where its exit code is another or a shown line is not in what it prints."""
        if step.line.startswith("cat ") and not Path(name := step.line.split()[1]).exists():
            Path(name).write_text("\n".join(step.said) + "\n", "utf-8")
        code, printed = self.run(step.line)
        assert code == step.code, f"{step.line}: {code}, not {step.code}: {printed}"
        for line in step.said:
            assert re.search(pattern(line), printed), f"{step.line}: {line!r} is not in\n{printed}"

    def run(self, line: str) -> tuple[int, str]:
        """Exit code and all that is printed: one of our commands here, what else a shell can do in one."""
        words = list(shlex.shlex(line, posix=True, punctuation_chars=True))
        if words[0] != "mmaprobe" or "$" in line or any(set(word) <= set("();<>|&") for word in words):
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr
        with pytest.MonkeyPatch.context() as fresh:  # each command knows nothing of those before, but for their files
            fresh.setattr(supplements, "_ADDED", [])
            fresh.setattr(parameters, "_ADDED", [])
            code = main(shlex.split(line)[1:])
        return code, "".join(self.capsys.readouterr())
