"""Whatever a command writes, the folders above it are made, as those of evidence are; where they cannot be, it is one
line and exit 6."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.cli import main

INTEL, MADD = "model:x86-64+intel", "x86.pmaddwd"
MMA = "mma.m16n8k16.f32.f16.f16.f32"
WRITES = {
    "report --html": ("report run --html {}", "page.html"),
    "diff --html": ("diff x86-64+amd x86-64+intel -i x86.dpps --html {}", "page.html"),
    "diff --write": (f"diff sm_90a -i {MMA} --set tree.fraction_bits=24 --write {{}}", "mine.toml"),
    "parameters write": ("parameters write run --out {}", "mine.toml"),
    "validate --markdown": (f"validate {INTEL} {INTEL} --plan witnesses --seed 1 --markdown {{}}", "found.md"),
    "validate --junit": (f"validate {INTEL} {INTEL} --plan witnesses --seed 1 --junit {{}}", "found.xml"),
    "validate --save": (f"validate model:x86-64+amd {INTEL} x86.dpps -n 100000 --seed 1 --save {{}}", "wrong.json"),
    "run --out": (f"run -d {INTEL} -i {MADD} -n 1000 --seed 1 --out {{}}", "evidence"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    mmaprobe.run(INTEL, instruction=MADD, vectors=100_000, seed=1, out=folder / "run")
    return folder


@pytest.mark.parametrize("name", WRITES)
def test_folders_above_what_is_written_are_made(
    name: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    command, file = WRITES[name]
    there = Path(name.replace(" ", "_"), "new", file)
    code = main(shlex.split(command.format(there)))
    assert code in (0, 1), capsys.readouterr().err
    assert there.exists()
    Path(file).with_suffix(".text").write_text("a file, and no folder")
    assert main(shlex.split(command.format(Path(file).with_suffix(".text") / file))) == 6
    assert capsys.readouterr().err.splitlines()[-1].startswith("mmaprobe: cannot write ")
