"""``mmaprobe layout``: the tables that it prints, and what it says of layouts that it cannot."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

from mmaprobe.cli import main

MMA = "mma.m16n8k16.f32.f16.f16.f32"


def test_every_operand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", MMA, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["operand"], row["lanes"], row["registers"]) for row in rows] == [
        ("a", 32, 4), ("b", 32, 2), ("c", 32, 4), ("d", 32, 4),
    ]  # fmt: skip


def test_one_operand_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Lane 5 holds rows 1 and 9, columns 2, 3, 10 and 11 (PTX ISA, figure of m16n8k16's A)."""
    assert main(["layout", MMA, "--operand", "a", "--arch", "sm_80"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mma.a: m 16 x k 16 in 32 lanes x 4 registers, 16 bits a place"
    assert next(line for line in lines if line.startswith("5 ")).split() == [
        "5", "1,2..3", "9,2..3", "1,10..11", "9,10..11",
    ]  # fmt: skip


def test_a_range_of_registers(capsys: pytest.CaptureFixture[str]) -> None:
    wgmma = "wgmma.mma_async.m64n64k16.f32.f16.f16"
    assert main(["layout", wgmma, "-o", "d", "--registers", "30:32", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == 128
    assert rows[127] == {"lane": "127", "r30": "63,62", "r31": "63,63"}
    assert main(["layout", wgmma, "-o", "d", "--registers", "30:33"]) == 2
    assert "FIRST < LAST <= 32" in capsys.readouterr().err
    assert main(["layout", wgmma, "-o", "d"]) == 0
    assert "registers 0 to 7 of 32" in capsys.readouterr().out


def test_metadata_shows_the_lanes_that_supply_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "mma.sp.m16n8k32.f32.f16.f16.f32", "-o", "metadata", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["r0"] for row in rows[:4]] == ["0,0..3 8,0..3", "0,4..7 8,4..7", "-", "-"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32", "-o", "a"], "is opaque: wmma.load"),
        (["v_smfmac_f32_16x16x64_f16", "-o", "b"], "is open: consecutive k a lane, or chunks of 8"),
        (["wgmma.mma_async.m64n64k16.f32.f16.f16", "-o", "b"], "lies in shared memory"),
        ([MMA, "--arch", "sm_75"], "sm_75 has no mma.sync"),
        ([MMA, "-o", "metadata"], "it has a, b, c, d"),
        (["Sw<3,4,3>"], "Sw<3,4,3> has no shape"),
        (["(64,65):(1,64)"], "4160 coordinates; at most 4096 are drawn"),
        (["8:1", "--arch", "sm_80"], "a layout has no operands"),
        (["(8,2"], "'(8,2' is no layout"),
    ],
)
def test_what_it_cannot_print(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", *words]) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1


def test_a_layout_is_drawn_and_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "Sw<1,0,1> o 0 o ((2,2),3):((1,6),2)"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Sw<1,0,1> o 0 o ((2,2),3):((1,6),2): 12 coordinates, a bijection"
    assert [line.split() for line in lines[2:]] == [
        ["0", "0", "3", "4"], ["1", "1", "2", "5"], ["2", "7", "8", "11"], ["3", "6", "9", "10"],
    ]  # fmt: skip
    for text, said in [
        ("(4,3):(1,2)", "(2,0) and (0,1) have one offset"),
        ("4:3", "4 coordinates, injective, with gaps"),
    ]:
        assert main(["layout", text]) == 0
        assert said in capsys.readouterr().out
    assert main(["layout", "4:3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"row": "0", "0": 0, "1": 3, "2": 6, "3": 9}]


def test_a_fragment_is_written_in_the_algebra(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", MMA, "--operand", "b"]) == 0
    assert "  layout ((4,8),(2,2)):((16,1),(8,64))" in capsys.readouterr().out.splitlines()
    assert main(["layout", "mma.sp.m16n8k32.f32.f16.f16.f32", "-o", "metadata"]) == 0
    assert "  layout" not in capsys.readouterr().out


def test_open_operands_are_listed_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "v_smfmac_f32_16x16x64_f16", "--json"]) == 0
    row = next(row for row in json.loads(capsys.readouterr().out)["rows"] if row["operand"] == "b")
    assert row["status"] == "open"
    assert "sources disagree" in row["holds"]


def test_the_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "layouts.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0
