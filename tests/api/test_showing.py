"""Every result says itself in a line, as a table for a notebook, and as rows for pandas."""

from __future__ import annotations

import sys
import types
import typing
from typing import Any

import pytest

import mmaprobe
from mmaprobe.campaigns.shard_file import SHARDS
from mmaprobe.errors import NotHereError
from mmaprobe.showing import (
    MOST_LINES,
    MOST_ROWS,
    NamedResults,
    Results,
    Showing,
    counted,
    html_table,
    mismatches_in,
    of_which,
)

MMA, DPPS, INTEL = "mma.m16n8k16.f32.f16.f16.f32", "x86.dpps", "model:x86-64+intel"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A result of each kind."""
    tmp_path = tmp_path_factory.mktemp("results")
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
        "tree": mmaprobe.read_tree("model:sm_90a", MMA, budget=2000), "product": mmaprobe.gemm("openblas_haswell_f32"),
        "campaign": mmaprobe.validate_plan(INTEL, INTEL, "smoke", seed=1, shards=2, out=tmp_path / "campaign"),
        "merged": mmaprobe.merge([tmp_path / "campaign" / SHARDS], tmp_path / "merged"),
        "witnesses": mmaprobe.validate_witnesses(INTEL, INTEL),
        "replication": mmaprobe.replicate("model:sm_70", "fasi2021", "wmma.mma.row.col.m16n16k16.f32.f32"),
    }  # fmt: skip


def test_every_result_is_short_and_a_table(results: dict[str, Any]) -> None:
    for name, result in results.items():
        lines = repr(result).splitlines()
        assert len(lines) <= (MOST_LINES + 1 if isinstance(result, (Results, NamedResults)) else 1), name
        assert max(map(len, lines)) < 400, name
        html = result._repr_html_()
        assert html.count("<tr>") == html.count("</tr>") > 0, name
        assert "Witness(" not in html, name
        assert len(html) < 60_000, name


def test_what_verbs_give_is_all_among_them(results: dict[str, Any]) -> None:
    """Every public verb's result but names and numbers: none can be added without."""
    verbs = {name for name in mmaprobe.__all__ if name[0].islower()} - {"add_catalog", "architectures", "devices"}
    returned = {typing.get_type_hints(_verb(name)).get("return") for name in verbs}
    shown = {type(result) for result in results.values()}
    assert {typing.get_origin(each) or each for each in returned} <= shown


def _verb(name: str) -> Any:
    return getattr(mmaprobe, name)


def test_many_results_are_counted() -> None:
    many = Results(mmaprobe.instructions("sm_90a"))
    assert repr(many).endswith(f",\n ... and {len(many) - MOST_LINES} more]")
    assert repr(many).count("\n") == MOST_LINES
    named = NamedResults({str(number): each for number, each in enumerate(many[: MOST_LINES + 1])})
    assert repr(named).endswith(",\n ... and 1 more}")
    assert repr(Results(many[:1])) == f"[{many[0]!r}]"


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


def test_counts_have_their_words() -> None:
    """One of anything is no plural, and the verb goes with it."""
    assert [counted(number, "vector") for number in (0, 1, 2000)] == ["0 vectors", "1 vector", "2,000 vectors"]
    assert [counted(2, noun) for noun in ("mismatch", "witness", "match", "carry bit")] == [
        "2 mismatches", "2 witnesses", "2 matches", "2 carry bits",
    ]  # fmt: skip
    assert mismatches_in(1, 1) == "1 mismatch in 1 vector"
    assert of_which(1, 12, "shard", "are") == "1 of 12 shards is"
    assert of_which(2, 12, "shard", "are") == "2 of 12 shards are"
    assert of_which(1, 12, "vector", "differ") == "1 of 12 vectors differs"
