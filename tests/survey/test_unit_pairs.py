"""Two architectures' units in pairs: what is the same function, what differs, and the vector that shows it."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

from mmaprobe.cli import main
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.report.datapath.unit_differences import difference_lines, explaining
from mmaprobe.survey.unit_pairs import PairedUnits, UnitPair, paired

MMA = "mma.m16n8k16.f32.f16.f16.f32"
AMPERE_HOPPER = ("sm_80", "sm_90a")


@pytest.fixture(scope="module")
def generations() -> PairedUnits:
    return paired(*AMPERE_HOPPER)


def answers(pair: UnitPair, *paths: Datapath, at: int) -> list[int]:
    vector = pair.told[at].vector
    assert vector is not None
    return [int(row[0]) for row in evaluate_many(list(paths), as_vectors(pair.work, [vector]))]


def test_every_vector_shows_what_it_is_said_to_show(generations: PairedUnits) -> None:
    shown = 0
    for pair in generations.pairs:
        for at, told in enumerate(pair.told):
            if told.vector is not None:
                assert answers(pair, *pair.datapaths, at=at) == [told.other, told.vector.d]
                assert told.other != told.vector.d
                shown += 1
        assert pair.same == (not pair.told and pair.found.verdict != "undecided")
        assert pair.same or any(told.vector for told in pair.told) or pair.found.vector is not None
    assert shown > 20


def test_pairs_have_the_same_formats_and_k(generations: PairedUnits) -> None:
    for pair in generations.pairs:
        old, new = pair.datapaths
        assert (old.a, old.b, old.c, old.d, old.k) == (new.a, new.b, new.c, new.d, new.k)
    works = {(pair.work.a, pair.work.d, pair.work.k, pair.sparse) for pair in generations.pairs}
    assert {("f16", "f32", 16, False), ("f16", "f32", 16, True), ("s8", "s32", 32, False)} <= works


def test_hopper_keeps_one_bit_more_than_ampere() -> None:
    (pair,) = paired(*AMPERE_HOPPER, "mma.m16n8k8.f32.bf16.bf16.f32").pairs
    lines = difference_lines(PairedUnits((pair,), ((), ())), AMPERE_HOPPER)
    assert "  bits kept below the largest exponent: 24 in sm_80, 25 in sm_90a" in lines
    assert any(line.startswith("    sm_80 gives 0x") and "sm_90a gives 0x" in line for line in lines)
    assert lines[-1] == "1 pair of instructions with the same formats and K: 0 the same function, 1 not"


def test_what_is_provably_the_same_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "sm_80", "sm_89"]) == 0
    said = capsys.readouterr().out
    assert "the same datapath: every bit is the same" in said
    assert " gives 0x" not in said
    assert "e4m3 x e4m3 + f32 -> f32, K = 32" in said.partition("sm_89 alone, ")[2]


def test_each_unit_is_paired_with_its_nearest() -> None:
    vendors = paired("x86-64+amd", "x86-64+intel")
    assert [pair.names for pair in vendors.pairs if not pair.same] == [(("x86.dpps",), ("x86.dpps",))]


@pytest.mark.parametrize("command", [["diff"], ["parameters", "diff"]])
def test_the_command_ends_in_commands_that_explain(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "sm_90a", "MI300X", "-i", "HMMA.16816.F32"]) == 1
    said = capsys.readouterr().out
    assert "how the terms are added:" in said
    assert "the code of a NaN: 0x7fffffff in sm_90a, 0x7fc00000 in MI300X" in said
    again = [line.strip().removeprefix("why: mmaprobe ") for line in said.splitlines() if "why: " in line]
    assert len(again) == 2
    for line in again:
        assert main(shlex.split(line)) == 0
    assert "result" in capsys.readouterr().out


def test_a_sparse_pair_is_explained_with_its_metadata(capsys: pytest.CaptureFixture[str]) -> None:
    """Both commands end in the result that is said of their side."""
    (pair,) = (pair for pair in paired(*AMPERE_HOPPER, "mma.sp.m16n8k16.f32.bf16*").pairs if pair.sparse)
    told = pair.told[0]
    assert told.vector is not None
    commands = explaining(told.vector, pair, AMPERE_HOPPER)
    assert [command.split()[3] for command in commands] == ["mma.sp.m16n8k16.f32.bf16.bf16.f32"] * 2
    for command, answer in zip(commands, (told.other, told.vector.d), strict=True):
        assert "metadata=0x4*4" in command
        assert main(shlex.split(command)[1:]) == 0
        assert f"d = {answer:08x}" in capsys.readouterr().out


def test_differences_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "sm_90a", "gfx942", "-i", MMA, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    (pair,) = said["pairs"]
    assert pair["verdict"] == "another function"
    told = next(each for each in pair["differences"] if each["vector"])
    assert set(told["results"]) == {"sm_90a", "gfx942"}
    assert len(told["vector"]["a"]) == 16
    assert np.dtype(np.uint32).type(told["results"]["gfx942"]) != told["results"]["sm_90a"]


def test_what_cannot_be_paired_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="neither sm_80 nor sm_90a has an instruction"):
        paired(*AMPERE_HOPPER, "v_mfma*")
    assert main(["diff", "sm_89", "gfx942", "-i", "*e4m3*"]) == 4
    assert "sm_89 alone, gfx942 has no such formats with this K" in capsys.readouterr().out
    assert main(["diff", "sm_80", "nowhere.toml"]) == 2
    assert main(["diff", "sm_80", "sm_999"]) == 2
