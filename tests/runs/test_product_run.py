"""``run --schedule``: a whole product held against a schedule, with evidence and exit codes as every run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases.random_products import alone
from mmaprobe.cli import main
from mmaprobe.evidence.store import Store
from mmaprobe.parameters.schedule import Accumulators, Join, Ranges, read_schedule, schedule_named, to_text
from mmaprobe.runs.kept import kept_summary

HASWELL = "gemm:openblas_haswell_f32?m=24&n=24&k=400"
LOSES = """
import numpy as np

def product(a, b):
    k = a.shape[1] // 16 * 16
    return a[:, :k] @ b[:k]
"""


def ran(*words: str, out: Path) -> int:
    return main(["run", "--seed", "1", "--out", str(out), *words])


@pytest.mark.long
def test_a_product_that_is_its_schedule_is_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The step, the schedule and the summary are evidence, which is read again as it was."""
    out = tmp_path / "e"
    assert ran("-d", HASWELL, "--schedule", "openblas_haswell_f32", out=out) == 0
    said = capsys.readouterr().out
    assert "equal to gemm:openblas_haswell_f32: 0 of " in " ".join(said.split())
    assert "instructions, 0 vectors" not in said
    assert read_schedule(out / "schedule.toml") == schedule_named("openblas_haswell_f32")
    verdict = Store.open(out).steps["product"].result["verdict"]
    assert (verdict["differing"], verdict["exit_code"]) == (0, 0)
    assert verdict["elements"] >= 200_000
    kept = kept_summary(Store.open(out))
    assert (kept.exit_code, kept.steps[0].name) == (0, "product")
    assert main(["evidence", "verify", str(out)]) == 0
    assert "equal; finished, a product" in capsys.readouterr().out


def test_a_product_that_is_another_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "e"
    assert ran("-d", HASWELL, "--schedule", "openblas_sandybridge_f32", "--json", out=out) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 1
    assert kept_summary(Store.open(out)).exit_code == 1
    text = Store.open(out).steps["product"].text
    assert text.endswith(f"see: mmaprobe gemm diff '{HASWELL}' gemm:openblas_sandybridge_f32")
    assert Store.open(out).steps["product"].result["verdict"]["smallest"]["lanes"]
    assert main(["evidence", "verify", str(out)]) == 1


@pytest.mark.long
def test_a_schedule_is_found_and_held(tmp_path: Path) -> None:
    made = alone(Ranges("uniform", 24), Accumulators("f32", 2), Join("f32"))
    (tmp_path / "x.toml").write_text(to_text(made), "utf-8")
    out = tmp_path / "e"
    assert ran("-d", f"gemm:{tmp_path / 'x.toml'}?m=24&n=24&k=96", "--schedule", "identify", out=out) == 0
    found = Store.open(out).steps["product"].result
    assert found["identified"]["status"] == "exact"
    assert read_schedule(out / "schedule.toml").kernels[0].ranges == made.kernels[0].ranges


def test_a_product_that_loses_lanes_is_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lost.py").write_text(LOSES, "utf-8")
    name = f"function:{tmp_path / 'lost.py'}:product?m=9&n=9&k=100"
    assert ran("-d", name, "--schedule", "identify", out=tmp_path / "e") == 5
    assert "its schedule is wrong: of ones D[0, 0] is 96, not K = 100" in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "e" / "schedule.toml").exists()


WRONG = [
    (["-d", "model:x86-64+intel", "--schedule", "identify"], "--schedule goes with --device function:MODULE:NAME"),
    (["-d", HASWELL, "--schedule", "openblas_haswel_f32"], "did you mean openblas_haswell_f32"),
    (["-d", HASWELL, "--schedule", "openblas_haswell_f64"], "there is nothing to compare"),
    (["-d", "gemm:openblas_haswell_f32?m=2&n=2&k=9", "--schedule", "mkl_amd_f32"], "M is 2; the schedule holds for M"),
    (["-d", HASWELL, "--schedule", "openblas_haswell_f32", "-n", "9"], "--vectors goes without --schedule"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_no_run_can_begin_with_is_2(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(*words, out=tmp_path / "e") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "e").exists()
