"""Classes of numbers: what provably cannot be told apart is said as a range."""

from __future__ import annotations

import tomllib
from importlib import resources

from mmaprobe.catalog.lookup import architectures, instruction
from mmaprobe.equivalence.classes import number_classes
from mmaprobe.parameters.classes import FILE, classes_of, digest
from mmaprobe.parameters.datapath import Fused, walk
from mmaprobe.parameters.lookup import datapath_for, load
from mmaprobe.parameters.mutate import mutate
from mmaprobe.report.datapath.known import parameter_rows


def test_a_zero_exponent_out_of_reach_is_a_class_and_fraction_bits_are_not() -> None:
    volta = number_classes(datapath_for("sm_70", instruction("mma.m8n8k4.row.row.f32.f16.f16.f32")))
    assert volta["tree.zero_exponent"] == "<= -126, or none"
    assert "tree.fraction_bits" not in volta


def test_an_identified_number_has_no_class() -> None:
    half = number_classes(datapath_for("sm_70", instruction("mma.m8n8k4.row.row.f16.f16.f16.f16")))
    assert half == {}


def test_the_shipped_classes_are_those_of_the_shipped_datapaths() -> None:
    """A tenth of them is found again; `python benchmarks/shipped_classes.py --all` finds them all."""
    paths = sorted({entry.datapath for arch in architectures() for entry in load(arch).entries.values()}, key=repr)
    assert all(classes_of(path) == number_classes(path) for path in paths[::10])
    aligned = [path for path in paths if any(isinstance(node, Fused) for node in walk(path.tree))]
    assert sum(bool(classes_of(path)) for path in aligned) > len(aligned) // 2


def test_the_file_of_classes_knows_every_shipped_datapath_and_no_other() -> None:
    """A shipped number that changes, by whatever hand, shows here, also where no vector can tell it apart."""
    data = tomllib.loads((resources.files("mmaprobe.parameters") / "data" / FILE).read_text("utf-8"))
    known = {row["digest"]: row["primitive"] for row in data["datapath"]} | dict.fromkeys(data["end"]["none"], "")
    shipped = {
        digest(entry.datapath): f"{arch} {name}"
        for arch in (*architectures(), "x86-64+amd", "x86-64+intel")
        for name, entry in load(arch).entries.items()
    }
    changed = [name for key, name in shipped.items() if key not in known]
    gone = [name or key for key, name in known.items() if key not in shipped]
    assert not changed, f"python benchmarks/shipped_classes.py; changed: {changed}"
    assert not gone, f"python benchmarks/shipped_classes.py; no longer shipped: {gone}"


def test_a_changed_datapath_has_no_shipped_class() -> None:
    path = datapath_for("sm_90a", instruction("mma.m16n8k16.f32.f16.f16.f32"))
    assert classes_of(path)["tree.zero_exponent"] == "<= -124, or none"
    assert not classes_of(mutate(path, "tree.fraction_bits", "24"))


def test_parameters_say_their_classes() -> None:
    rows = {row["primitive"]: row["classes"] for row in parameter_rows("sm_90a")}
    assert rows["HMMA.16816.F32[f16,f16->f32]"] == {
        "exponent of a zero in the alignment of the sum": "<= -124, or none"
    }
