"""With ``--json`` every command of the tree prints one document with the number of its schema, whatever comes of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import mmaprobe
from cases.command_tree import commands
from mmaprobe.cli import main
from mmaprobe.cli.terminal import SCHEMA, app

MMA, MADD, INTEL = "mma.m16n8k16.f32.f16.f16.f32", "x86.pmaddwd", "model:x86-64+intel"
RECIPE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32/cancel.2/1/0@0,0"
CALLS = {
    "run": f"-d {INTEL} --instruction {MADD} --vectors 1000 --seed 1 --out again",
    "report": "run --html page.html",
    "probe": f"{MMA} --question determinism -d model:sm_90a",
    "validate": f"{INTEL} {INTEL} {MADD} --vectors 1000 --seed 1",
    "merge": "campaign/shards --out merged",
    "plans": "",
    "replay": "wrong.json",
    "derive": f"{MADD} -d {INTEL} --fresh 1000 --seed 1",
    "compile": "--arch sm_999",
    "pack": "--arch sm_999 --bundle bundle",
    "diff": "x86-64+amd x86-64+intel",
    "tree": f"model:sm_90a --instruction {MMA} --budget 2000",
    "instructions": "gfx942",
    "layout": MMA,
    "explain": f"sm_90a {MMA} a=1 b=1 c=0",
    "devices": "",
    "bench": "--smoke",
    "doctor": "",
    "corpus import": "nowhere corpus",
    "corpus list": "nowhere",
    "corpus check": "nowhere",
    "corpus answer": "nowhere answers",
    "evidence list": ".",
    "evidence show": "run",
    "evidence verify": "run",
    "evidence diff": "run run",
    "evidence export": ". --out tables",
    "evidence trend": ".",
    "gemm identify": "gemm:openblas_haswell_f32 --budget 5",
    "gemm map": "gemm:openblas_haswell_f32 --m 4 --n 4 --k 8 --budget 5",
    "gemm diff": "gemm:openblas_haswell_f32 gemm:openblas_haswell_f32 --elements 100",
    "gemm kernel": "cuda-gemm:0?m=8&n=8&k=8 --arch sm_999",
    "vectors show": RECIPE,
    "parameters show": "gfx942",
    "parameters write": "run --out mine.toml",
    "parameters diff": "x86-64+amd x86-64+intel",
    "plot tree": f"sm_90a {MMA} --out tree.svg",
    "plot window": f"sm_90a {MMA} --out window.svg",
    "plot fragment": f"sm_80 {MMA} --out fragment.svg",
    "plot classes": "openblas_haswell_f32?m=8&n=8&k=8 --out classes.svg",
    "plot schedule": "openblas_haswell_f32?m=8&n=8&k=8 --out schedule.svg",
    "plot error": f"--out error.txt sm_90a/{MMA}",
    "plot bias": f"--out bias.txt sm_90a/{MMA}",
    "plot drift": f"--out drift.txt sm_90a/{MMA}",
    "plot mismatches": "run --out heat.txt",
    "plot parameters": "--out parameters.txt",
}
"""What each command is called with: to a good end where that takes no more than a second or two."""
REFUSED = {
    "compile", "pack", "gemm kernel", "corpus import", "corpus list", "corpus check", "corpus answer",
    "plot error", "plot bias", "plot drift", "plot mismatches", "plot parameters",
}  # fmt: skip
"""Those that are refused: what they need is not here, or would take long."""
EXTRAS = {
    "plot tree", "plot window", "plot fragment", "plot classes", "plot schedule", "evidence export", "evidence trend",
    "report",
}  # fmt: skip
"""Those that end with 3 where an extra is not installed."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a campaign in shards, and mismatches that were kept."""
    folder = tmp_path_factory.mktemp("json")
    mmaprobe.run(INTEL, instruction=MADD, vectors=100_000, seed=1, out=folder / "run")
    mmaprobe.validate_plan(INTEL, INTEL, "witnesses", seed=1, shards=2, out=folder / "campaign")
    mmaprobe.validate("model:sm_90a", "model:sm_80", MMA, 500, seed=1, save=folder / "wrong.json")
    return folder


def document(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """The exit code and the one document of a command; an error's says its code, and stands on standard error too."""
    capsys.readouterr()
    code = main([*words, "--json"])
    said = capsys.readouterr()
    found: dict[str, Any] = json.loads(said.out)
    assert found["schema"] == SCHEMA
    if "error" in found:
        assert found["exit_code"] == code
        assert said.err.splitlines()[-1] == f"mmaprobe: {found['error']}"
    return code, found


def test_every_command_is_called() -> None:
    assert CALLS.keys() == {name for name, _ in commands(typer.main.get_command(app))}


@pytest.mark.parametrize("name", CALLS)
def test_a_command_prints_a_document(
    name: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    code, found = document([*name.split(), *shlex.split(CALLS[name])], capsys)
    assert ("error" in found) == (name in REFUSED or (code == 3 and name in EXTRAS)), found


@pytest.mark.parametrize("name", CALLS)
def test_a_mistake_is_a_document(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document([*name.split(), "--no-such-option"], capsys)
    assert code == 2
    assert "--no-such-option" in found["error"] or name == "explain"  # whose operands are whatever comes
