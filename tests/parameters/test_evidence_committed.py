"""Every measured parameter names a run whose evidence is in the checkout and derives that parameter."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.errors import UsageError
from mmaprobe.evidence.silicon import kind_of
from mmaprobe.evidence.store import Part, Store, read_manifest
from mmaprobe.parameters.files import to_text
from mmaprobe.parameters.lookup import known_parameters, load
from mmaprobe.parameters.measured import MeasuredRun, measured_runs, parse_runs, with_measured
from mmaprobe.parameters.table import from_table
from mmaprobe.survey.comparison import alike
from mmaprobe.survey.file_comparison import compared
from mmaprobe.survey.parameter_entries import parameter_file

EVIDENCE = Path(__file__).parents[2] / "validation" / "evidence"
FOLDERS = sorted(path.parent for path in EVIDENCE.glob("*/manifest.json"))
WHOLE = [folder for folder in FOLDERS if read_manifest(folder).finished]
ROWS = """
schema = 1

[[run]]
architecture = "sm_90a"
run = "0123456789ab"
device = "a GPU"
primitives = ["HMMA.1688.F32[f16,f16->f32]"]

[end]
rows = 1
"""


@cache
def evidence(folder: Path) -> Store:
    """What a folder holds; tests read it and change nothing."""
    return Store.open(folder)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_run_has_no_mismatch(folder: Path) -> None:
    """What was validated agrees; of a run that was not ended by its budget that is everything."""
    store = evidence(folder)
    assert not any(part.mismatch_count for part in store.parts.values())
    assert not store.finished or all(map(_settled, store.parts.values()))
    assert any(map(_settled, store.parts.values()))


@pytest.mark.parametrize("folder", WHOLE, ids=lambda path: path.name)
def test_the_shipped_file_is_what_the_run_derived(folder: Path) -> None:
    derived = parameter_file(evidence(folder))
    shipped = load(derived.architecture)
    for primitive, entry in derived.entries.items():
        assert shipped.entries[primitive].datapath == entry.datapath, primitive
        assert shipped.entries[primitive].evidence == entry.evidence, primitive
    assert to_text(derived) == to_text(parameter_file(evidence(folder)))


@pytest.mark.parametrize("row", measured_runs(), ids=lambda row: row.run)
def test_what_a_run_measured_is_what_ships(row: MeasuredRun) -> None:
    """Each primitive of a row: derived, validated, and the same function as the entry that says so; where several runs
    measured it the entry names the last one first."""
    store = evidence(EVIDENCE / f"{row.architecture}-{row.run}")
    assert (store.header.run, store.header.identity["model_name"]) == (row.run, row.device)
    assert kind_of(store.header.device, store.header.identity) == "silicon", "nothing else measures"
    found, shipped = _by_primitive(store, row.architecture), load(row.architecture).entries
    assert set(row.primitives) == found.keys(), "all that it settled, and nothing else"
    assert all(any(part.datapath for _, part in parts) for parts in found.values())
    rows = [each for each in measured_runs() if each.architecture == row.architecture]
    last = {name: each.run for each in rows for name in each.primitives}
    for name, parts in found.items():
        assert (shipped[name].basis, shipped[name].evidence) == ("measured", last[name])
        assert f"run {row.run} on {row.device} derived this function" in shipped[name].source
        for made, part in parts:
            if part.datapath is None:  # another size or modifier, held against what its form was derived to be
                continue
            derived = from_table(part.datapath["datapath"], made.id)
            assert alike(made, shipped[name].datapath, derived, store.header.seed), made.id


def test_a_run_that_did_not_know_the_file_writes_it() -> None:
    """An H100 was asked by a package without ``sm_90a.toml``: what it derived is that file, function by function."""
    derived = parameter_file(evidence(EVIDENCE / "sm_90a-13d5bab1442d"))
    beside = dict(compared(load("sm_90a"), derived))
    assert {each.verdict for each in beside.values()} == {"same", "written otherwise"}
    absent = load("sm_90a").entries.keys() - derived.entries.keys()
    assert absent == {"FFMA[f32,f32->f32]", "FMUL[f32,f32->f32]"}, "two that no instruction runs alone"


def test_what_was_held_against_nothing_derived_is_not_settled(tmp_path: Path) -> None:
    """Of a form one size is left, which was held against what another size was derived to be."""
    store = evidence(EVIDENCE / "sm_90a-13d5bab1442d")
    held = next(part for part in store.parts.values() if part.datapath is None)
    alone = Store.create(tmp_path / "alone", store.header)
    alone.save(held)
    with pytest.raises(UsageError, match=r"is not settled \(nothing derived .+\); nothing is written"):
        parameter_file(alone)


def test_what_agrees_with_the_shipped_file_is_not_derived(tmp_path: Path) -> None:
    """A size that was held against the shipped model, its form not being derived yet, says nothing of that."""
    store = evidence(EVIDENCE / "sm_90a-13d5bab1442d")
    every = store.parts.values()
    held = next(part for part in every if part.datapath is None and part.instruction.startswith("wgmma"))
    runs = [{**run, "ref": "model:sm_90a"} for run in held.validation["runs"]]
    other = Store.create(tmp_path / "other", store.header)
    for part in every:
        if part.datapath is not None and part.instruction.startswith("wgmma"):
            other.save(part)
    other.save(replace(held, validation={**held.validation, "runs": runs}))
    with pytest.raises(UsageError, match=rf"{held.instruction} is not settled \(nothing derived\); nothing is written"):
        parameter_file(other)


def _settled(part: Part) -> bool:
    return part.status == "finished" and part.vectors > 0 and not part.mismatch_count


def _by_primitive(store: Store, architecture: str) -> dict[str, list[tuple[Instruction, Part]]]:
    found: dict[str, list[tuple[Instruction, Part]]] = {}
    for part in filter(_settled, store.parts.values()):
        made = instruction(part.instruction, architecture)
        if (name := bare_primitive(architecture, made)) is not None:
            found.setdefault(name, []).append((made, part))
    return found


def test_every_measured_entry_has_its_run() -> None:
    runs = {evidence(folder).header.run for folder in FOLDERS}
    for architecture in ("x86-64+amd", "x86-64+intel", *known_parameters()):
        measured = [entry for entry in load(architecture).entries.values() if entry.basis == "measured"]
        assert measured or architecture not in ("x86-64+amd", "x86-64+intel", "sm_90a")
        assert {entry.evidence for entry in measured} <= runs


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rows = 1", "rows = 2", "truncated: it holds 1 rows"),
        ("device =", "divice =", "row 1: its keys are architecture, divice, primitives, run"),
        ("schema = 1", "schema = 2", "schema is 2"),
    ],
)
def test_rows_that_are_wrong(old: str, new: str, said: str) -> None:
    assert parse_runs(ROWS, "rows.toml")[0].run == "0123456789ab"
    with pytest.raises(UsageError, match=said):
        parse_runs(ROWS.replace(old, new), "rows.toml")


def test_a_row_of_nothing_that_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = parse_runs(ROWS.replace("HMMA.1688", "HMMA.1699"), "rows.toml")
    monkeypatch.setattr("mmaprobe.parameters.measured.measured_runs", lambda: rows)
    with pytest.raises(UsageError, match=r"run 0123456789ab measured HMMA\.1699.*, of which no parameters of sm_90a"):
        with_measured("sm_90a", load("sm_90a").entries)
