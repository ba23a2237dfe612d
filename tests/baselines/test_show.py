"""``mmaprobe evidence show``: the summary as the run printed it, and what was derived on what grounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases.nights import BF16, KEEPS, MADD, answered, mismatch, night, part, questions, shipped
from mmaprobe.catalog.lookup import instructions
from mmaprobe.cli import main
from mmaprobe.evidence.store import Store
from mmaprobe.runs.kept import kept_summary

COMMITTED = Path(__file__).parents[2] / "validation" / "evidence"
RUN = ["run", "-d", "model:x86-64+intel", "-i", "x86.pmadd*", "-n", "1000", "--seed", "1"]


def test_the_summary_is_the_one_that_was_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """But for the seconds, which evidence does not keep."""
    out = str(tmp_path / "e")
    assert main([*RUN, "--out", out, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert main(["evidence", "show", out, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (first, second) = shown.pop("derived")
    for document in (printed, shown):
        document["seconds"] = 0
        for row in document["instructions"]:
            row["seconds"] = 0
    assert shown == printed
    assert first["instruction"] == "x86.pmaddubsw"
    assert second["grounds"].startswith("derived from the device alone: exact; ")
    assert second["standing"] == "what ships says the same"


def test_of_a_run_by_steps_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "e")
    words = ["-d", "model:sm_90a", "-i", "mma.m16n8k8.f32.f16.f16.f32", "-n", "300", "--seed", "3", "--out", out]
    main(["run", *words, "--steps", "layouts,validation", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert main(["evidence", "show", out, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in shown["steps"]] == ["layouts", "validation"]
    for row in printed["instructions"]:
        row["seconds"] = 0
    for document in (printed, shown):
        for each in (document, *document["steps"]):
            each["seconds"] = 0
    assert {key: shown[key] for key in printed if key not in ("notes", "ended")} == {
        key: value for key, value in printed.items() if key not in ("notes", "ended")
    }


def test_rows_are_those_that_were_asked_in_the_order_of_the_catalog(tmp_path: Path) -> None:
    """What a run derived on its way to others is no row of its own."""
    names = [made.id for made in instructions("x86-64")][:9]
    path = night(tmp_path / "all", *map(part, sorted(names)))
    assert [row.instruction for row in kept_summary(Store.open(path)).rows] == names
    path = night(tmp_path / "some", part(MADD), part(BF16), settings={"instruction": "x86.pmadd*"})
    assert [row.instruction for row in kept_summary(Store.open(path)).rows] == [MADD]


def test_what_is_shown_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = {"outcome": "changed", "differences": ["a", "b"], "decisive": ["subnormals of operand a"], "vectors": 9}
    parts = [
        part(BF16, shipped(BF16, KEEPS), comparison=changed),
        part("function.mine", validation={}, vectors=0),
        part(MADD, wrong=2, mismatches=(mismatch(name=MADD),)),
    ]
    asked = questions(answered("carry-bits", "not here", about=""))
    path = night(tmp_path / "e", *parts, settings={"instruction": "*"}, finished=False, steps=(asked,))
    assert main(["evidence", "show", str(path)]) == 0
    told = capsys.readouterr().out
    assert "of model:x86-64, 2026-11-01T03:00:00+00:00, not finished; mmaprobe 1, seed 1\n" in told
    assert "  settings: instruction *\n" in told
    assert "3 instructions, 2,000 vectors compared, 2 mismatches\n" in told
    assert "x86.pmaddwd: mismatch (" in told
    assert "\n  a=0x3f80*2 b=0x3f80*2\n" in told
    assert "    answer 0x1, expected 0x2\n" in told  # of an older version, which kept no format
    assert f"  again: mmaprobe replay {path}/instructions/x86.pmaddwd.json\n" in told
    assert f"{BF16} is not what is shipped: subnormals of operand a\n" in told
    assert "  not what ships: subnormals of operand a\n" in told
    assert "function.mine" in told


def test_a_run_that_was_really_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", "show", str(COMMITTED / "x86-64+intel-63aa5f269c1d")]) == 0
    told = capsys.readouterr().out
    assert "28 instructions, 280,000,000 vectors compared, 0 mismatches\n" in told
    assert "model_name Intel(R) Xeon(R) Processor" in told


def test_what_cannot_be_read_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", "show", str(tmp_path)]) == 2
    assert "manifest.json" in capsys.readouterr().err
