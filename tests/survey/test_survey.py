"""Deriving many instructions at once: each datapath once, the others shown equal; and what a file then says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.cli import main
from mmaprobe.derivation.certificate import Coverage
from mmaprobe.derivation.deriving import FRESH
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import Support, open_device, run_vectors
from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import FileValue
from mmaprobe.generators import families_for
from mmaprobe.models.model import run_tiles
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import ParameterFile, from_text, to_text
from mmaprobe.parameters.lookup import datapath_for, read_file
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import numbers
from mmaprobe.parameters.table import from_table, to_table
from mmaprobe.report.tables.certificates import certificate_lines
from mmaprobe.runs.selection import select
from mmaprobe.survey.parameter_entries import updated
from mmaprobe.survey.rows_json import row_from_json, row_to_json
from mmaprobe.survey.survey import Surveyor, survey
from mmaprobe.survey.survey_rows import Survey

HOPPER = open_device("model:sm_90a")
F24 = "mutant:sm_90a/HMMA.16816.F32[f16,f16->f32]/tree.fraction_bits=24"
PLAIN, WIDE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"


def surveyed(pattern: str, device: str = "model:sm_90a") -> Survey:
    opened = open_device(device)
    return survey(opened, *select(opened, pattern))


@dataclass(frozen=True)
class OneOff:
    """A model of which one instruction computes another datapath."""

    instruction: str
    datapath: Datapath
    name: str = "one off"

    def info(self) -> dict[str, str]:
        return {"architecture": "sm_90a"}

    def instructions(self) -> Sequence[Instruction]:
        return HOPPER.instructions()

    def supports(self, instruction: Instruction) -> Support:
        return HOPPER.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        path = self.datapath if instruction.id == self.instruction else datapath_for("sm_90a", instruction)
        return run_tiles(instruction, path, batch)


@pytest.mark.long
def test_a_datapath_is_derived_once_and_the_others_are_shown_equal() -> None:
    found = surveyed("*m*k16*f32.f16.f16*")
    assert {row.outcome for row in found.rows} == {"derived", "equal"}
    dense, sparse = found.of("derived")
    assert not dense.instruction.chunk
    assert sparse.instruction.chunk
    for derived in (dense, sparse):
        equal = [row for row in found.of("equal") if row.datapath == derived.datapath]
        assert equal
        for row in equal:
            assert row.like == (derived.instruction.id,)
            assert row.launches == 2
            assert row.compared > FRESH + 1000 + 10  # and the witnesses
            assert row.excluded == row.compared // 3 > 40_000
    assert WIDE in {row.instruction.id for row in found.of("equal") if row.datapath == dense.datapath}


@pytest.mark.long
def test_what_differs_is_derived_too() -> None:
    path = datapath_for("sm_90a", next(i for i in HOPPER.instructions() if i.id == WIDE))
    device = OneOff(WIDE, mutate(path, "tree.fraction_bits", "23"))
    groups = [[i] for i in HOPPER.instructions() if i.id in (PLAIN, WIDE)]
    rows = {row.instruction.id: row for row in survey(device, groups).rows}
    assert rows[PLAIN].outcome == rows[WIDE].outcome == "derived"
    found = rows[WIDE].datapath
    assert found is not None
    assert numbers(found)["tree.fraction_bits"] == 23


@dataclass(frozen=True)
class Twin(OneOff):
    """A model of which one instruction loses a subnormal C where its products cancel."""

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        d = super().run(instruction, batch)
        if instruction.id != self.instruction or batch.c is None:
            return d
        a, b, c = (values(x) for x in (batch.a, batch.b, batch.c))
        with np.errstate(all="ignore"):
            cancel = (a @ b == 0) & (np.abs(a) @ np.abs(b) > 0)
        return np.where(cancel & (c != 0) & (np.abs(c) < 2.0**-126), d.dtype.type(0), d)


def values(codes: Bits) -> NDArray[np.float64]:
    """Of bf16 and f32 codes."""
    wide = codes.astype(np.uint32) << np.uint32(16 * (codes.dtype.itemsize == 2))
    with np.errstate(invalid="ignore"):
        return wide.view(np.float32).astype(np.float64)


def test_a_twin_that_loses_a_subnormal_c_where_products_cancel_is_not_equal() -> None:
    """1,000 vectors of every family miss it; directed ones do not."""
    forms = {i.id: i for i in HOPPER.instructions()}
    plain, wide = forms[PLAIN.replace("f16.f16", "bf16.bf16")], forms[WIDE.replace("f16.f16", "bf16.bf16")]
    twin, model = Twin(wide.id, datapath_for("sm_90a", wide)), open_device("model:sm_90a")
    vectors = hard_vectors(wide, families_for(wide), 1, 1000)
    assert (run_vectors(twin, wide, vectors) == run_vectors(model, wide, vectors)).all()
    known = Surveyor(model, 0)
    known.group([plain])
    for device, outcome in ((model, "equal"), (twin, "inconclusive")):
        work = Surveyor(device, 0)
        work.keep(known.rows[plain])
        row = work.recognised(wide)
        assert row.outcome == outcome
        assert row.launches == 2


@pytest.mark.long
def test_an_emulated_form_is_what_its_lowering_makes_of_the_primitive_inside() -> None:
    found = surveyed("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16")
    inside, emulated = found.rows
    assert inside.outcome == "derived"
    assert inside.instruction.a == "f16"
    assert emulated.outcome == "equal"
    assert emulated.like == (inside.instruction.id,)
    assert emulated.datapath == datapath_for("sm_90a", emulated.instruction) or emulated.compared >= FRESH


@pytest.mark.long
def test_forms_compiled_alike_are_not_given_up_twice() -> None:
    found = surveyed("mma.sync.aligned.m8n8k4.*.f16.f16.f16.f16")
    given_up = found.of("inconclusive")
    if given_up:  # what the grammar lacks, it lacks once
        assert sum(row.derivation is not None for row in given_up) == 1
    else:
        assert {row.outcome for row in found.rows} <= {"derived", "equal"}


@pytest.mark.long
def test_control_states_begin_with_the_default_one() -> None:
    found = surveyed("x86.dpps", "model:x86-64+intel")
    assert len(found.rows) == 16
    assert not found.of("inconclusive")
    file, _ = updated(ParameterFile("x86-64+intel"), found)
    [entry] = file.entries.values()
    assert set(entry.follows) == {"rounding", "ftz", "daz"}


@pytest.fixture(scope="module")
def small() -> Survey:
    return surveyed("mma.sync.aligned.m16n8k*.f32.f16.f16.f32")


def test_a_file_holds_each_value_with_basis_finding_and_witness(small: Survey) -> None:
    file, runs = updated(ParameterFile("sm_90a"), small)
    assert runs.keys() == file.entries.keys()
    assert from_text(to_text(file), "again").entries == file.entries
    entry = file.entries["HMMA.16816.F32[f16,f16->f32]"]
    assert entry.basis == "predicted"  # a model is no measurement
    notes = dict(entry.notes)
    assert notes["tree.fraction_bits"].startswith("not 24 (witness ")
    assert notes["beyond the certificate"].startswith(
        "every pair of significands right in every lane (1,048,576 vectors)"
    )
    numbers: list[int] = [
        int(word.rstrip("),;")) for text in notes.values() for word in text.split() if word[0].isdigit() and ")" in word
    ]
    assert numbers
    assert set(numbers) <= set(range(1, len(entry.witnesses) + 1))


def test_the_same_function_on_a_better_basis_stays_as_it_is(small: Survey) -> None:
    file, _ = updated(ParameterFile("sm_90a"), small)
    again, _ = updated(file, small)
    assert again.entries == file.entries
    name = "HMMA.16816.F32[f16,f16->f32]"
    measured = replace(file.entries[name], basis="measured", evidence="run", witnesses=())
    kept, _ = updated(replace(file, entries={**file.entries, name: measured}), small)
    assert kept.entries[name] == measured
    silicon = replace(small, identity={"architecture": "sm_90a", "silicon": "yes"})
    better, _ = updated(file, silicon)
    assert better.entries[name].basis == "measured"
    assert better.entries[name].evidence
    with pytest.raises(UsageError, match="sm_80"):
        updated(replace(file, architecture="sm_80"), small)


@pytest.mark.long
def test_writing_is_deterministic_and_check_speaks_meaning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "1.toml", tmp_path / "2.toml"
    for path in (first, second):
        assert main(["derive", PLAIN, "-d", "model:sm_90a", "--write", str(path)]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"1.toml", "2.toml"}
    assert read_file(first).entries
    capsys.readouterr()
    assert main(["derive", PLAIN, "-d", "model:sm_90a", "--write", str(first), "--check"]) == 0
    assert "no change" in capsys.readouterr().out
    assert main(["derive", PLAIN, "-d", F24, "--write", str(first), "--check"]) == 1
    said = capsys.readouterr().out
    assert "the products and C keep 24 fraction bits, kept 25: vector a=" in said
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.long
def test_a_glob_is_checked_against_the_shipped_file(capsys: pytest.CaptureFixture[str]) -> None:
    pattern = PLAIN.replace(".f32.f16", ".f3?.f16")
    assert main(["derive", pattern, "-d", "model:sm_90a", "--check", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert form["counts"] == {"derived": 1, "equal": 0, "failed": 0, "inconclusive": 0, "refused": 0}
    assert form["changes"] == []
    assert main(["derive", pattern, "-d", F24, "--check"]) == 1
    assert "keep 24 fraction bits, kept 25: vector a=" in capsys.readouterr().out


def test_an_architecture_is_the_device_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["derive", "sm_80", "-d", "model:sm_90a"]) == 2
    assert "model:sm_90a is sm_90a, not sm_80" in capsys.readouterr().err


def test_a_row_that_evidence_keeps_says_what_the_device_was_held_to(small: Survey) -> None:
    row = next(row for row in small.rows if row.derivation is not None)
    assert row.derivation is not None
    again = row_from_json(row.instruction, FileValue(Path("rows.json"), "", json.loads(json.dumps(row_to_json(row)))))
    assert again.derivation is not None
    assert again.derivation.certificate.coverage == row.derivation.certificate.coverage != Coverage()


def test_what_agreed_as_well_is_kept_and_said(small: Survey) -> None:
    row = next(row for row in small.rows if row.derivation is not None)
    assert row.derivation is not None
    assert row.datapath is not None
    other = mutate(mutate(row.datapath, "tree.to.rounding", "RU"), "special.code", "0x7fc00001")
    certificate = replace(row.derivation.certificate, otherwise=(("tree.to.rounding RU", to_table(other)),))
    row = replace(row, derivation=replace(row.derivation, certificate=certificate))
    again = row_from_json(row.instruction, FileValue(Path("rows.json"), "", json.loads(json.dumps(row_to_json(row)))))
    assert row.derivation is not None
    assert again.derivation is not None
    ((said, table),) = again.derivation.certificate.otherwise
    assert (said, from_table(table)) == ("tree.to.rounding RU", other)
    assert [line for line in certificate_lines(row.derivation) if "written otherwise" in line and "rounding RU" in line]
    assert row.derivation.form()["certificate"]["otherwise"] == [to_table(other)]


@pytest.mark.parametrize("form", [{"fresh": "x"}, {"fresh": True}, {"answers": -1}, {"pairs_of": 5}, {"pairs": 1.5}])
def test_a_coverage_that_is_none_is_refused(form: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the coverage of a certificate"):
        Coverage.of_form(form)
