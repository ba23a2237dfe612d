"""Seeds: drawn and printed by what checks a device every night, fixed by who asks, the environment or a manifest."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import mmaprobe
from mmaprobe.cli import main
from mmaprobe.derivation import derive
from mmaprobe.errors import UsageError
from mmaprobe.generators.seeds import VARIABLE, seed_of
from mmaprobe.probing import probe

ID = "x86.vpdpbusd"
PRINTED = re.compile(r"seed (\d+); the same vectors again: (.*)")
VALIDATE = ["validate", "model:x86-64+amd", "model:x86-64+amd", "x86.vdpbf16ps", "-n", "2000", "--json"]
RUN = ["run", "-d", "model:x86-64+amd", "-i", ID, "-n", "2000", "--json"]


@pytest.fixture
def unfixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody fixes a seed."""
    monkeypatch.delenv(VARIABLE, raising=False)


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The seed of a command's document, and what it said on standard error."""
    assert main(arguments) == 0
    said = capsys.readouterr()
    return int(json.loads(said.out)["seed"]), said.err


@pytest.mark.usefixtures("unfixed")
@pytest.mark.parametrize("arguments", [VALIDATE, RUN], ids=["validate", "run"])
def test_a_command_draws_a_seed_and_prints_the_command_that_repeats_it(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seeds = set()
    for turn in range(2):
        more = ["--out", f"a folder {turn}"] if arguments is RUN else []
        seed, said = told([*arguments, *more], capsys)
        (printed,) = PRINTED.findall(said)
        words = shlex.split(printed[1])
        assert words == ["mmaprobe", arguments[0], "--seed", str(seed), *arguments[1:], *more]
        again = [word.replace("a folder", "another") for word in words[1:]]
        repeated, said = told(again, capsys)
        assert repeated == seed == int(printed[0])
        assert not PRINTED.search(said)
        seeds.add(seed)
    assert len(seeds) == 2


@pytest.mark.usefixtures("unfixed")
def test_a_run_goes_on_with_the_seed_of_its_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "run")]
    seed, _ = told([*RUN, *out], capsys)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["seed"] == seed
    again, said = told([*RUN, *out, "--resume"], capsys)
    assert again == seed
    assert not PRINTED.search(said)


@pytest.mark.usefixtures("unfixed")
def test_python_draws_too_and_says_which(tmp_path: Path) -> None:
    model = "model:x86-64+amd"
    summaries = [mmaprobe.validate(model, model, ID, 2000) for _ in range(2)]
    reports = [mmaprobe.run(model, instruction=ID, vectors=2000, out=tmp_path / str(i)) for i in range(2)]
    steps = mmaprobe.bring_up(model, instruction=ID, vectors=2000, out=tmp_path / "steps", steps=["recording"])
    assert len({each.seed for each in (*summaries, *reports, steps)}) == 5
    assert mmaprobe.validate(model, model, ID, 2000, seed=7).seed == 7


def test_derive_and_probe_keep_0() -> None:
    for verb in (derive, probe):
        assert inspect.signature(verb).parameters["seed"].default == 0


def test_the_environment_fixes_it_and_an_option_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "12")
    assert (seed_of(None), seed_of(5)) == (12, 5)
    for wrong in ("-1", "1.5", "x", str(1 << 63), "9" * 5000):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(UsageError, match=r"a seed is a whole number of 0 to 2\*\*63 - 1"):
            seed_of(None)
    with pytest.raises(UsageError, match="the seed -1"):
        seed_of(-1)


SUITE = "def test_it(seed): print(seed)\n"


def suite(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


@pytest.mark.long
@pytest.mark.usefixtures("unfixed")
def test_a_suite_draws_a_seed_and_prints_the_command_that_repeats_it(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    (printed,) = PRINTED.findall(suite(tmp_path, f"--junit-xml={report}").stdout)
    assert shlex.split(printed[1])[-3:] == [f"--junit-xml={report}", "--seed", printed[0]]
    found = ElementTree.parse(report).find(".//property[@name='seed']")
    assert found is not None
    assert found.attrib["value"] == printed[0]
    other = suite(tmp_path)
    assert PRINTED.findall(other.stdout)[0][0] != printed[0]
    fixed = suite(tmp_path, "--seed", printed[0], "-rP")
    assert not PRINTED.search(fixed.stdout)
    assert f"\n{printed[0]}\n" in fixed.stdout
