"""Every measured parameter names a run whose evidence is in the checkout and derives exactly that parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaprobe.evidence.store import Store
from mmaprobe.parameters.files import to_text
from mmaprobe.parameters.lookup import load
from mmaprobe.survey.parameter_entries import parameter_file

EVIDENCE = Path(__file__).parents[2] / "validation" / "evidence"
FOLDERS = sorted(path.parent for path in EVIDENCE.glob("*/manifest.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_run_is_finished_and_without_mismatch(folder: Path) -> None:
    store = Store.open(folder)
    assert store.finished
    assert all(part.status == "finished" and part.vectors and not part.mismatch_count for part in store.parts.values())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_shipped_file_is_what_the_run_derived(folder: Path) -> None:
    derived = parameter_file(Store.open(folder))
    shipped = load(derived.architecture)
    for primitive, entry in derived.entries.items():
        assert shipped.entries[primitive].datapath == entry.datapath, primitive
        assert shipped.entries[primitive].evidence == entry.evidence, primitive
    assert to_text(derived) == to_text(parameter_file(Store.open(folder)))


def test_every_measured_entry_has_its_run() -> None:
    runs = {Store.open(folder).header.run for folder in FOLDERS}
    measured = [entry for entry in load("x86-64+intel").entries.values() if entry.basis == "measured"]
    assert measured
    assert {entry.evidence for entry in measured} <= runs
