"""Classes of numbers: what provably cannot be told apart is said as a range."""

from __future__ import annotations

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.classes import number_classes
from mmaprobe.parameters.lookup import datapath_for


def test_a_zero_exponent_out_of_reach_is_a_class_and_fraction_bits_are_not() -> None:
    volta = number_classes(datapath_for("sm_70", instruction("mma.m8n8k4.row.row.f32.f16.f16.f32")))
    assert volta["tree.zero_exponent"] == "any up to -126, or none: the same function"
    assert "tree.fraction_bits" not in volta


def test_an_identified_number_has_no_class() -> None:
    half = number_classes(datapath_for("sm_70", instruction("mma.m8n8k4.row.row.f16.f16.f16.f16")))
    assert half == {}
