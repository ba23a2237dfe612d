"""What reports say of a campaign when it is read from its evidence: whom it was held against, and which rate of faults
it excludes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmaprobe.cli import main

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


def test_equal_names_the_reference_and_not_what_a_run_derives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = campaign(tmp_path, "vectors = 500\n"), tmp_path / "page.md"
    assert main(["evidence", "show", str(out)]) == 0
    assert main(["merge", str(out / "shards"), "--out", str(tmp_path / "again"), "--markdown", str(page)]) == 0
    said = " ".join((capsys.readouterr().out + page.read_text("utf-8")).split())
    assert said.count(f"gave the same bits on the device and in {MODEL}.") == 4
    assert "derived from it" not in said
