"""What reports say of a campaign when it is read from its evidence: whom it was held against, and which rate of faults
it excludes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mmaprobe.cli import main
from mmaprobe.generators.families import TILE_VERSIONS
from mmaprobe.generators.tiles import dependences

MODEL, BYTES = "model:x86-64+intel", "x86.pmaddubsw"
KEYS = f'instructions = ["{BYTES}"]\nleast_instructions = 1\n'


def campaign(tmp_path: Path, said: str) -> Path:
    """The evidence of a plan that says this of one instruction."""
    plan, out = tmp_path / "p.toml", tmp_path / "run"
    plan.write_text(KEYS + said)
    assert main(["validate", MODEL, MODEL, "--plan", str(plan), "--seed", "1", "--out", str(out)]) == 0
    return out


PLANS = {"vectors = 3_000\nwitnesses = true\n": 1_000, "witnesses = true\n": None, "exhaustive = true\n": None}
"""What a plan demands, and the rate that it excludes."""


@pytest.mark.needs("duckdb")
def test_only_vectors_of_generators_exclude_a_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Witnesses are chosen, and what is counted through is counted once: neither says how seldom a fault may be."""
    for number, (said, excluded) in enumerate(PLANS.items()):
        place = tmp_path / str(number)
        place.mkdir()
        out = campaign(place, said)
        capsys.readouterr()
        assert main(["evidence", "trend", str(out), "--json"]) == 0
        assert [row["excluded_one_in"] for row in json.loads(capsys.readouterr().out)["rows"]] == [excluded]
        assert main(["report", str(out), "--html", str(place / "page.html")]) == 0
        page = (place / "page.html").read_text("utf-8")
        assert ("is excluded (95 %)" in page) == (excluded is not None)
        assert excluded is None or f"A fault on 1 in {excluded:,} of such vectors" in page


@pytest.mark.parametrize(("said", "excluded"), PLANS.items())
def test_evidence_says_the_bound_that_the_campaign_said(
    said: str, excluded: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = campaign(tmp_path, said)
    bound = f"for each instruction alone, above 1 in {excluded or 0:,}"
    assert (bound in capsys.readouterr().out) == (excluded is not None)
    assert main(["evidence", "show", str(out)]) == 0
    assert (bound in capsys.readouterr().out) == (excluded is not None)
    assert main(["evidence", "show", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["excluded_one_in"], len(shown["bounds"])) == (excluded or 0, int(excluded is not None))


def test_a_run_says_its_bound_and_how_much_tiles_depend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing differed; results of tiles are told apart in either case."""
    form = "mma.m16n8k8.f32.f16.f16.f32"
    words = ["--instruction", form, "--vectors", "3000", "--seed", "1", "--out", str(tmp_path / "e")]
    assert main(["run", "-d", "model:sm_90a", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "0 of 3,000: a fault rate above 3/3,000 of such vectors is excluded at 95 %" in said
    told = re.search(r"([\d,]+) of the vectors are results of whole tiles, .* up to ([\d.]+) times as unevenly", said)
    assert told
    assert 1000 < int(told[1].replace(",", "")) < 3000
    assert float(told[2]) == max(dependences().values())
    plan = tmp_path / "p.toml"
    plan.write_text(f'instructions = ["{form}"]\nvectors = 3000\nleast_instructions = 1\n')
    assert main(["validate", "model:sm_90a", "model:sm_80", "--plan", str(plan), "--seed", "1"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "results of whole tiles" in said
    assert "excluded at 95 %" not in said


def test_every_family_whose_rows_aim_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """And it stands beside its counts."""
    assert set(dependences()) == set(TILE_VERSIONS)
    words = ["validate", "model:sm_90a", "model:sm_90a", "mma.m16n8k8.f32.f16.f16.f32", "-n", "3000", "--seed", "1"]
    assert main(words) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (cancel,) = (row for row in rows if row[:1] == ["cancel"])
    assert cancel[-2:] == ["x", f"{dependences()['cancel']:.1f}"]
    (uniform,) = (row for row in rows if row[:1] == ["uniform"])
    assert uniform[2:] == ["0", "0"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dependence"]["cancel"] == dependences()["cancel"]


def test_equal_names_the_reference_and_not_what_a_run_derives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = campaign(tmp_path, "vectors = 500\n"), tmp_path / "page.md"
    assert main(["evidence", "show", str(out)]) == 0
    assert main(["merge", str(out / "shards"), "--out", str(tmp_path / "again"), "--markdown", str(page)]) == 0
    said = " ".join((capsys.readouterr().out + page.read_text("utf-8")).split())
    assert said.count(f"gave the same bits on the device and in {MODEL}.") == 4
    assert "derived from it" not in said
