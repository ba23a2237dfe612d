"""The smoke test: witnesses of the parameter files, or predicted ones, on devices."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import mmaprobe
import oracle
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli.terminal import app
from mmaprobe.equivalence.arguments import argument
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Witness, take
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.table import to_table
from mmaprobe.survey.smoke import smoke_vectors

HOPPER = "mma.m16n8k16.f32.f16.f16.f32"


def test_recorded_witnesses_are_used_where_there_are_some() -> None:
    smoke = smoke_vectors("x86-64+intel", instruction("x86.dpps"))
    assert smoke.recorded > 10
    assert smoke.vectors.size == len(smoke.results) >= smoke.recorded
    assert smoke.origin(0) == "recorded"


def test_predicted_witnesses_tell_the_neighbours_apart_and_the_oracle_agrees() -> None:
    made = instruction(HOPPER)
    path, smoke = datapath_for("sm_90a", made), smoke_vectors("sm_90a", made)
    assert smoke.origin(smoke.vectors.size - 1) == "predicted"
    assert smoke.vectors.size < 20
    near = neighbours(path)
    told = (evaluate_many([n.datapath for n in near], smoke.vectors) != smoke.results).any(axis=1)
    assert [n.field for n, seen in zip(near, told, strict=True) if not seen and argument(path, n) is None] == []
    for i, result in enumerate(smoke.results):
        witness = Witness.of(take(smoke.vectors, [i]), int(result))
        assert oracle.evaluate(to_table(path), witness.a, witness.b, witness.c) == witness.d


@pytest.mark.long
def test_two_equal_devices_agree() -> None:
    found = mmaprobe.validate_witnesses("model:sm_90a", "model:sm_90a", "mma.m16n8k16.*")
    assert len(found) > 5
    assert all(summary.exit_code == 0 and summary.vectors for summary in found)


@pytest.mark.parametrize("fault", ["tree.fraction_bits=24", "special.code=0x7fc00000", "tree.to.rounding=RNE"])
def test_a_faulty_device_fails(fault: str) -> None:
    mutant = f"mutant:sm_90a/HMMA.16816.F32[f16,f16->f32]/{fault}"
    (summary,) = mmaprobe.validate_witnesses(mutant, "model:sm_90a", HOPPER)
    assert summary.exit_code == 1
    example = summary.examples[0]
    assert example.vector.d != example.expected
    assert "witness" in example.recipe


def test_command() -> None:
    command = ["validate", "model:sm_90a", "model:sm_90a", HOPPER, "--plan", "witnesses"]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0
    assert "vectors of 1 instruction, 0 mismatches" in said.output
    form = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert (form["exit_code"], form["mismatches"], form["excluded_one_in"]) == (0, 0, 0)
    assert form["vectors"] == form["instructions"][0]["vectors"] > 0
    with pytest.raises(UsageError, match="no plan 'all'"):
        CliRunner().invoke(app, [*command[:-1], "all"], catch_exceptions=False, standalone_mode=False)
