"""A parameter file is meant to be edited, and then says so: ``edited`` against the digest of what ships."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

import mmaprobe
from cases.tampering import bent_text
from mmaprobe.catalog.lookup import architectures
from mmaprobe.devices.model import ModelDevice
from mmaprobe.errors import UsageError
from mmaprobe.parameters import lookup
from mmaprobe.parameters.files import ParameterFile, from_text
from mmaprobe.parameters.lookup import edited, load
from mmaprobe.parameters.shared import shared_entries
from mmaprobe.report.datapath import known
from mmaprobe.report.tables import doctor

DATA = Path(mmaprobe.__file__).parent / "parameters" / "data"
SAMPLE = 30
NAMES = ("x86-64", "aarch64", "sm_70", "gfx942")


def test_the_digests_are_those_of_what_ships() -> None:
    spec = importlib.util.spec_from_file_location("digests", DATA.parents[3] / "benchmarks" / "shipped_digests.py")
    if spec is None or not Path(str(spec.origin)).exists():
        pytest.skip("outside a checkout")
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    assert module.text() == module.PATH.read_text("utf-8"), "python benchmarks/shipped_digests.py"


def test_nothing_that_ships_is_edited() -> None:
    assert not [name for name in (*architectures(), "x86-64+amd", "x86-64+intel") if edited(load(name))]


def test_where_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "edited" not in ModelDevice("model:sm_70", load("sm_70")).info()["parameters"]
    assert known.parameter_lines("sm_70")[0] != known.EDITED
    changed = replace(load("sm_70"), entries=dict(list(load("sm_70").entries.items())[1:]))
    assert ModelDevice("model:sm_70", changed).info()["parameters"].endswith(", edited")
    for room in (known, doctor):
        monkeypatch.setattr(room, "load", lambda name: changed if name == "sm_70" else load(name))
    assert known.parameter_lines("sm_70")[0] == known.EDITED
    assert {row["edited"] for row in known.parameter_rows("sm_70")} == {True}
    (check,) = doctor._parameters()
    assert (check.ok, check.found) == (False, "edited: sm_70")


def test_a_file_that_does_not_ship_is_edited() -> None:
    assert edited(ParameterFile("gfx1100", load("gfx942").entries))
    assert not edited(ParameterFile("unheard_of"))
    assert edited(ParameterFile("sm_70"))


def unseen(name: str, sample: int | None) -> tuple[dict[str, int], list[str]]:
    """What became of single changes of a file's text, and those that neither were refused nor said ``edited``."""
    text = (DATA / f"{name}.toml").read_text("utf-8")
    meant, counts, passed = load(name), dict.fromkeys(("refused", "edited", "the same"), 0), list[str]()
    changes = list(bent_text(text))
    for what, changed in changes[:: 1 if sample is None else max(1, len(changes) // sample)]:
        try:
            own = from_text(changed, f"{name}.toml", lookup._Shipped())
            file = replace(own, entries={**shared_entries(name, own.entries), **own.entries})
        except UsageError:
            counts["refused"] += 1
            continue
        if file.architecture != name or edited(file):
            counts["edited"] += 1
        else:
            counts["the same"] += 1
            passed += [what] * (file != meant)
    return counts, passed


@pytest.mark.parametrize("name", NAMES)
def test_no_change_of_a_parameter_file_is_unseen(name: str) -> None:
    counts, passed = unseen(name, SAMPLE)
    assert passed == []
    assert counts["edited"] + counts["refused"] > counts["the same"]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.toml") if "+" not in path.stem))
def test_no_change_of_any_parameter_file_is_unseen(name: str) -> None:
    counts, passed = unseen(name, None)
    assert passed == []
    assert counts["edited"] + counts["refused"] > 10
