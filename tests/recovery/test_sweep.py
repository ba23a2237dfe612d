"""A sweep of shipped datapaths goes on where it was interrupted, and counts what is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import sweep
from outcomes import Outcome
from seeds import read
from shipped import distinct

TWO = [shipped for shipped in distinct() if shipped.name in ("aarch64-arm.sdot", "aarch64-arm.udot")]


def test_what_is_done_is_not_derived_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, ran, derive = tmp_path / "sweep" / "out.jsonl", [], sweep.recovered

    def counted(shipped: sweep.Shipped, limit: float) -> Outcome:
        ran.append(shipped.name)
        return derive(shipped, limit)

    monkeypatch.setattr(sweep, "recovered", counted)
    sweep.sweep(TWO, out, 1, 60)
    whole = out.read_text()
    out.write_text(whole[:-20])
    sweep.sweep(TWO, out, 1, 60)
    names = [shipped.name for shipped in TWO]
    assert ran == [*names, names[-1]]
    assert [outcome.name for outcome in read(out)] == names
    assert {sweep.end(outcome) for outcome in read(out)} == {"exact"}


def test_the_table_counts_what_was_not_run_and_names_what_is_not_recovered() -> None:
    bad = Outcome(TWO[0].name, "integer", "inconclusive", reason="no datapath fits")
    lines = sweep.table(TWO, {bad.name: bad}).splitlines()
    ends = dict(zip(sweep.ENDS, lines[1].split()[2:], strict=False))
    assert lines[1].split()[:2] == ["aarch64", "2"]
    assert (ends["inconclusive"], ends["not run"], ends["exact"]) == ("1", "1", "0")
    assert lines[-1] == f"inconclusive: {bad.name} (integer): no datapath fits"
