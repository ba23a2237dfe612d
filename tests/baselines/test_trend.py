"""``mmaprobe evidence export`` and ``trend``: Parquet tables of runs, asked with duckdb, night by night."""

from __future__ import annotations

import builtins
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cases.nights import BF16, GPU, KEEPS, MADD, mismatch, night, part, shipped
from mmaprobe.baselines.tables import COLUMNS
from mmaprobe.cli import main
from mmaprobe.evidence.steps import Slice, StepRecord

needs_tables = pytest.mark.needs("duckdb")


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Five nights of a model, the third of which computes something else, and two of a GPU."""
    folder = tmp_path / "nights"
    for day in range(1, 6):
        parts = [part(BF16, shipped(BF16, KEEPS) if day == 3 else shipped())]
        parts += [part(MADD, vectors=500, wrong=int(day == 4), mismatches=(mismatch(name=MADD),) * (day == 4))] * (
            day > 1
        )
        night(folder / str(day), *parts, day=day)
    step = StepRecord("validation", "vectors", "finished", "", (Slice(2.0), Slice(3.0)))
    for day in (8, 7):
        night(folder / f"gpu{day}", part(), day=day, device=f"cuda:{day}", identity=GPU, steps=(step,))
    return folder


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return found


@needs_tables
def test_each_unit_night_by_night(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = told(["evidence", "trend", str(nights)], capsys)
    assert [row["unit"] for row in rows] == ["GPU-1"] * 2 + ["model:x86-64"] * 5
    assert [row["begun"][8:10] for row in rows] == ["07", "08", "01", "02", "03", "04", "05"]
    assert [row["changes"] for row in rows] == [None, 0, None, 1, 1, 2, 1]
    assert [(row["vectors"], row["mismatches"]) for row in rows[2:]] == [
        (1000, 0),
        (1500, 0),
        (1500, 0),
        (1500, 1),
        (1500, 0),
    ]
    assert [row["rate"] for row in rows[4:6]] == [0.0, 0.000667]
    assert [row["excluded_one_in"] for row in rows[4:6]] == [500, None]
    assert [row["vectors_per_second"] for row in rows[1:3]] == [200.0, None]


@needs_tables
def test_silicon_and_its_emulator_are_two_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one chip's number: no night of one follows a night of the other."""
    for day, said in enumerate(("yes", "no, emulated by rocjitsu 0.3", "yes", "no, emulated by rocjitsu 0.4"), 1):
        identity = GPU | {"silicon": said}
        night(tmp_path / str(day), part(*[MADD] * (day % 2)), day=day, device="hip:0", identity=identity)
    rows = told(["evidence", "trend", str(tmp_path)], capsys)
    assert [(row["unit"], row["changes"]) for row in rows] == [
        ("GPU-1", None), ("GPU-1", 0), ("GPU-1 (emulated)", None), ("GPU-1 (emulated)", 0),
    ]  # fmt: skip


@needs_tables
def test_one_instruction_night_by_night(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The function has the name of the first datapath that was it, in whatever words it comes again."""
    rows = [row for row in told(["evidence", "trend", str(nights), "-i", "x86.vdp*"], capsys) if row["unit"] != "GPU-1"]
    functions = [row["function"] for row in rows]
    assert functions == [functions[0], functions[0], functions[2], functions[0], functions[0]]
    assert functions[0] != functions[2]
    assert [row["changed"] for row in rows] == [False, False, True, True, False]
    assert main(["evidence", "trend", str(nights), "-i", "nothing"]) == 2
    assert "names no instruction of these runs" in capsys.readouterr().err


@needs_tables
def test_the_tables_say_the_same_as_the_runs(nights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tables"
    assert main(["evidence", "export", str(nights), "--out", str(out)]) == 0
    assert sorted(path.stem for path in out.iterdir()) == sorted(COLUMNS)
    assert told(["evidence", "trend", str(out)], capsys) == told(["evidence", "trend", str(nights)], capsys)
    import duckdb

    asked = f"SELECT instruction, recipe, d, expected FROM read_parquet('{out}/mismatches.parquet')"
    assert duckdb.sql(asked).fetchall() == [(MADD, "x86.pmaddwd uniform/1 seed 1 index 7", "0x1", "0x2")]
    counted = duckdb.sql(f"SELECT sum(vectors), sum(mismatches) FROM read_parquet('{out}/families.parquet')").fetchall()
    assert counted == [(5 * 1000 + 4 * 500 + 2 * 1000, 1)]
    first = [path.read_bytes() for path in sorted(out.iterdir())]
    assert main(["evidence", "export", str(nights), "--out", str(out)]) == 0
    assert [path.read_bytes() for path in sorted(out.iterdir())] == first


@needs_tables
def test_what_is_damaged_or_there_twice_is_named(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(nights / "1", nights / "copy")
    assert main(["evidence", "trend", str(nights)]) == 0
    assert "counted once" in capsys.readouterr().err
    path = nights / "2" / "instructions" / f"{BF16}.json"
    path.write_text(path.read_text()[:40])
    (nights / "3" / "manifest.json").write_text("{}")
    assert main(["evidence", "trend", str(nights)]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert [str(nights / "3") in lines[0], str(path) in lines[1], len(lines)] == [True, True, 2]


@needs_tables
def test_tables_that_are_none(nights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tables"
    main(["evidence", "export", str(nights), "--out", str(out)])
    for change, said in (
        (
            lambda: (out / "families.parquet").write_bytes((out / "families.parquet").read_bytes()[:99]),
            "no Parquet table",
        ),
        (lambda: shutil.copy(out / "runs.parquet", out / "families.parquet"), "not the table of this schema"),
        (lambda: (out / "coverage.parquet").unlink(), "no Parquet table"),
        (lambda: shutil.copytree(nights / "1", out / "1"), "holds runs beside tables"),
    ):
        change()
        assert main(["evidence", "trend", str(out)]) == 2
        assert said in capsys.readouterr().err
        if "schema" in said:
            main(["evidence", "export", str(nights), "--out", str(out)])
    assert main(["evidence", "export", str(nights), "--out", str(nights)]) == 2
    assert "choose a folder for tables alone" in capsys.readouterr().err


@needs_tables
@pytest.mark.needs("matplotlib")
def test_the_picture(nights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trend.svg"
    assert main(["evidence", "trend", str(nights), "--plot", str(path)]) == 0
    text = path.read_text()
    assert "<svg" in text
    assert main(["evidence", "trend", str(nights), "--plot", str(path)]) == 0
    assert path.read_text() == text
    assert main(["evidence", "trend", str(nights), "--plot", str(tmp_path / "trend.gif")]) == 2
    assert ".png or .svg" in capsys.readouterr().err


def test_without_the_extra(nights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what to install, and 3; what is wrong with the words comes first; all else goes on."""
    whole = builtins.__import__

    def lacking(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] in ("pyarrow", "duckdb"):
            raise ImportError(name)
        return whole(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", lacking)
    for words in (["trend", str(nights)], ["export", str(nights), "--out", str(nights / "x")]):
        assert main(["evidence", *words]) == 3
        assert capsys.readouterr().err.splitlines() == [
            "mmaprobe: tables of runs need pyarrow and duckdb; type: pip install 'mmaprobe[cluster]'"
        ]
        assert main(["evidence", words[0], str(nights / "nowhere"), *words[2:]]) == 2
        assert "no such folder" in capsys.readouterr().err
    assert main(["evidence", "trend", str(nights), "--plot", "x.gif"]) == 2
    assert main(["evidence", "list", str(nights)]) == 0
    assert main(["evidence", "diff", str(nights / "1"), str(nights / "1")]) == 0
