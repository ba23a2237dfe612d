"""Published suites as users run them: each device's words are those of its own column, and of no other."""

from __future__ import annotations

import json
from typing import Any

import pytest

import mmaprobe
from mmaprobe.cli import main
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.probing.published.suites import suite, suites, value, values

NVIDIA = ["volta", "ampere", "hopper"]
HOMES = [
    ("sm_70", "fasi2021", "f16", "f32", ["volta"]), ("sm_80", "fasi2021", "f16", "f32", ["ampere"]),
    ("sm_90a", "fasi2021", "f16", "f32", ["hopper"]), ("sm_120a", "fasi2021", "f16", "f16", NVIDIA),
    ("sm_80", "fasi2021", "f64", "f64", ["ampere"]), ("sm_86", "fasi2021", "bf16", "f32", ["ampere"]),
    ("sm_90a", "fasi2021", "bf16", "f32", ["hopper"]), ("sm_80", "fasi2021", "tf32", "f32", ["ampere"]),
    ("sm_70", "gnft2025", "f16", "f32", ["volta"]), ("sm_80", "gnft2025", "f16", "f32", ["ampere"]),
    ("sm_90a", "gnft2025", "f16", "f32", ["hopper"]), ("sm_70", "valpey2025", "f16", "f32", ["volta"]),
    ("sm_80", "valpey2025", "f16", "f32", ["ampere"]), ("sm_90a", "valpey2025", "f16", "f32", ["hopper"]),
    ("sm_86", "lookup1980", "f16", "f32", ["ampere"]), ("sm_70", "zeros2026", "f16", "f16", ["volta"]),
    ("sm_80", "zeros2026", "bf16", "f32", ["ampere"]), ("sm_90a", "zeros2026", "f16", "f16", ["hopper"]),
    ("sm_70", "eq10", "f16", "f32", ["volta", "cdna2"]), ("sm_80", "eq10", "f16", "f32", ["ampere", "cdna3"]),
    ("sm_90a", "eq10", "f16", "f32", ["hopper"]), ("gfx908", "eq10", "f16", "f32", ["cdna1"]),
    ("gfx90a", "eq10", "f16", "f32", ["volta", "cdna2"]), ("gfx942", "eq10", "f16", "f32", ["ampere", "cdna3"]),
    ("gfx942", "eq10", "e5m2fnuz", "f32", ["cdna3"]), ("sm_80", "eq10", "f64", "f64", ["any"]),
    ("sm_89", "eq10", "e5m2", "f32", ["ada", "hopper wgmma"]), ("sm_80", "eq10", "tf32", "f32", ["ampere"]),
]  # fmt: skip


@pytest.mark.parametrize(("architecture", "name", "operands", "result", "columns"), HOMES)
def test_each_generation_gives_the_words_of_its_own_column(
    architecture: str, name: str, operands: str, result: str, columns: list[str]
) -> None:
    found = [
        one for one in mmaprobe.replicate(f"model:{architecture}", name)
        if (one.table.operands, one.table.result, one.table.scale) == (operands, result, None)
        and one.instruction.family != "wgmma"
    ]  # fmt: skip
    assert found
    dense = [one for one in found if not one.instruction.opcode.startswith("mma.sync.aligned.m8n8k4.row.row")]
    assert any([column for column in one.table.columns if one.agrees(column)] == columns for one in dense)


@pytest.mark.parametrize(("scale", "operands"), [("ue8m0", "e5m2"), ("ue4m3", "e2m1")])
def test_equation_10_with_block_scales(scale: str, operands: str) -> None:
    found = [one for one in mmaprobe.replicate("model:sm_120a", "eq10") if one.table.scale == scale]
    assert found
    for one in found:
        assert one.table.operands == operands
        assert one.agrees("blackwell")


def test_a_suite_on_one_instruction_of_the_processor_under_test() -> None:
    """VDPBF16PS is a chain that flushes: the programs' experiments in bf16 fail on it where they must."""
    (found,) = mmaprobe.replicate("model:x86-64", "fasi2021", "x86.vdpbf16ps")
    words = {row.name: word for row, word in zip(found.table.rows, found.words, strict=True)}
    assert words["A1 subnormal operand"] == words["A3 subnormal C"] == 0
    assert words["B1 once"] == 0x3F7E0100
    assert words["C1"] == 0x40000001  # to nearest, where every Tensor Core cuts
    assert not any(found.agrees(column) for column in found.table.columns)


def test_every_suite_loads_and_says_what_it_is_for() -> None:
    for name in suites():
        found = suite(name)
        assert found.tables, name
        for table in found.tables:
            assert set(table.predicted) <= set(table.columns)
            for row in table.rows:
                assert len(row.a) == len(row.b) or 1 in (len(row.a), len(row.b)) or table.scale, row.name


def test_values_in_words() -> None:
    assert value("1.5*2^3-2^-1") == 12 - value("0.5")
    assert values("2@2^-1 3") == (value("0.5"), value("0.5"), value("3"))
    with pytest.raises(UsageError, match="no sum of numbers"):
        value("1+x")


def test_errors_name_the_suite_and_what_it_has() -> None:
    with pytest.raises(UsageError, match="did you mean fasi2021"):
        mmaprobe.replicate("model:sm_80", "fasi2012")
    with pytest.raises(UsageError, match=r"has no table for .*; it has f16 -> f32"):
        mmaprobe.replicate("model:sm_80", "gnft2025", "mma.m16n8k32.s32.s8.s8.s32")
    with pytest.raises(NotHereError, match="runs no instruction of the formats"):
        mmaprobe.replicate("model:gfx1250", "gnft2025")


def test_the_command_prints_the_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    job = ["probe", "mma.m16n8k16.f32.f16.f16.f32", "--device", "model:sm_80", "--suite", "gnft2025"]
    assert main(job) == 0
    text = capsys.readouterr().out
    assert "every answer is that of: ampere" in text
    assert "3f800000!" in text
    assert main([*job, "--json"]) == 0
    form: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert form["tables"][0]["agrees"] == ["ampere"]
    assert main(["probe", "--device", "model:sm_80"]) == 2
    assert main([*job, "--question", "overflow"]) == 2
