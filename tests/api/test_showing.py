"""Every result says itself in a line, as a table for a notebook, and as rows for pandas."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

import mmaprobe
from mmaprobe.errors import NotHereError
from mmaprobe.showing import MOST_ROWS, Showing, html_table

MMA, DPPS, INTEL = "mma.m16n8k16.f32.f16.f16.f32", "x86.dpps", "model:x86-64+intel"


def results(tmp_path: Any) -> dict[str, Any]:
    """A result of each kind."""
    against = mmaprobe.validate("model:sm_90a", "model:sm_80", MMA, 500, seed=1, save=tmp_path / "mismatches.json")
    derived = mmaprobe.derive("model:x86-64+intel", "x86.pmaddwd", fresh=1000)
    findings = mmaprobe.probe("model:sm_90a", MMA, ["result_rounding", "determinism"])
    report = mmaprobe.run(INTEL, instruction="x86.pmaddwd", vectors=100, seed=1, out=tmp_path / "run")
    return {
        "instruction": mmaprobe.instruction(MMA), "instructions": mmaprobe.instructions("sm_90a"),
        "device": mmaprobe.device(INTEL), "devices": mmaprobe.devices(), "model": mmaprobe.model("sm_90a", MMA),
        "bound": mmaprobe.device(INTEL).instruction(DPPS), "findings": findings,
        "finding": findings["result_rounding"], "witness": findings["result_rounding"].witnesses[0],
        "derivation": derived, "certificate": derived.certificate, "verdict": derived.certificate.entries[0],
        "summary": against, "mismatch": against.examples[0], "report": report, "result": report.results[0],
        "replayed": mmaprobe.replay(tmp_path / "mismatches.json"),
        "replication": mmaprobe.replicate("model:sm_70", "fasi2021", "wmma.mma.row.col.m16n16k16.f32.f32"),
    }  # fmt: skip


def test_every_result_is_short_and_a_table(tmp_path: Any) -> None:
    for name, result in results(tmp_path).items():
        if name not in ("instructions", "devices", "findings", "replayed"):
            assert len(repr(result)) < 400, name
            assert "\n" not in repr(result), name
        html = result._repr_html_()
        assert html.count("<tr>") == html.count("</tr>") > 0, name
        assert "Witness(" not in html, name
        assert len(html) < 60_000, name


def test_rows_are_those_of_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas: Any = types.ModuleType("pandas")
    pandas.DataFrame = list
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    derived = mmaprobe.derive("model:x86-64+intel", "x86.pmaddwd", fresh=1000)
    rows: Any = derived.to_frame()
    assert len(rows) == len(derived.certificate.entries)
    assert {row["verdict"] for row in rows} <= {"refuted", "equivalent", "open"}
    found: Any = mmaprobe.instructions("gfx942", family="smfmac*").to_frame()
    assert {row["sparse"] for row in found} == {True}
    assert [row["question"] for row in mmaprobe.probe("model:sm_90a", MMA, ["determinism"]).to_frame()] == [
        "determinism"
    ]


def test_without_pandas_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotHereError, match="pip install pandas"):
        mmaprobe.devices().to_frame()


def test_a_table_holds_text_alone_and_counts_what_it_leaves_out() -> None:
    html = html_table("<b>", [{"a<": "<script>\x1b[2J"}] * (MOST_ROWS + 3))
    assert "<script>" not in html
    assert "\x1b" not in html
    assert html.count("<tr>") == MOST_ROWS + 1
    assert "and 3 more rows" in html


def test_what_a_result_must_say_is_its_own() -> None:
    class Brief(Showing):
        def in_a_line(self) -> str:
            return "brief"

    with pytest.raises(TypeError, match="abstract"):
        Showing()  # type: ignore[abstract]
    assert Brief().as_rows() == [{"result": "brief"}]
