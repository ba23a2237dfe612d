"""Mutants: one seeded fault each; and the neighbours of a datapath."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mmaprobe.catalog.lookup import architectures, instruction
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Products, Term
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.mutate import mutate, with_step
from mmaprobe.parameters.neighbours import neighbours, numbers, with_numbers

HOPPER = load("sm_90a").entries["HMMA.16816.F32[f16,f16->f32]"].datapath


def differs(device: str, identifier: str, count: int = 400) -> int:
    """How many of the first vectors of every family tell a device from the model of its architecture."""
    made = instruction(identifier)
    model = open_model(device.partition(":")[2].partition("/")[0])
    mutant: Any = open_device(device)
    total = 0
    for family in families_for(made):
        vectors = generate(made, family, 1, 0, count)
        total += int((mutant.run_vectors(made, vectors) != model.run_vectors(made, vectors)).sum())
    return total


@pytest.mark.parametrize(
    "fault",
    ["tree.fraction_bits=24", "tree.rounding=RD", "tree.to.rounding=RNE", "step=8", "special.code=0x7fc00000",
     "operand_a.subnormals=zero", "tree.to.zero=ieee", "tree.terms.1.cutoff=20"],
)  # fmt: skip
def test_seeded_faults_show(fault: str) -> None:
    name = f"mutant:sm_90a/HMMA.16816.F32[f16,f16->f32]/{fault}"
    assert open_device(name).name == name
    assert differs(name, "mma.m16n8k16.f32.f16.f16.f32") > 0


def test_the_recorded_data_kills_a_wrong_alignment() -> None:
    assert differs("mutant:sm_80/HMMA.1688.F32/tree.fraction_bits=23", "mma.m16n8k8.f32.f16.f16.f32") > 0
    assert differs("mutant:sm_80/HMMA.1688.F32/tree.fraction_bits=23", "mma.m16n8k16.f32.f16.f16.f32") == 0


def test_a_fault_in_a_cpu_unit_keeps_the_control_state() -> None:
    name = "mutant:x86-64+intel/VFMADDSS/tree.to.overflow=largest"
    assert differs(name, "x86.vfmadd.f32{rounding=ru}") > 0
    assert differs(name, "x86.vfmadd.f64") == 0


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("sm_90a/HMMA.16816.F32", "write mutant:ARCH/PRIMITIVE/FIELD=VALUE"),
        ("sm_90a/HMMA.16816.F32/step", "write mutant:ARCH/PRIMITIVE/FIELD=VALUE"),
        ("sm_91/HMMA.16816.F32/step=8", "did you mean sm_89, sm_90a"),
        ("sm_90a/HMMA.16816.F64/step=8", "sm_90a has no primitive 'HMMA.16816.F64'; did you mean HMMA.16816.F"),
        ("sm_90a/HMMA.16816.F32/tree.fraction=8", "no field 'tree.fraction'; did you mean tree.fraction_bits"),
        ("sm_90a/HMMA.16816.F32/tree.fraction_bits=25", "already has tree.fraction_bits=25"),
        ("sm_90a/HMMA.16816.F32/tree.rounding=RX", "alignment rounding is 'RX'"),
        ("sm_90a/HMMA.16816.F32/tree.fraction_bits=many", "expected int, got 'many'"),
        ("sm_90a/HMMA.16816.F32/step=5", "a step of 5 lanes does not divide K = 16"),
        ("sm_90a/HMMA.16816.F32/tree.swap=true", "no add at 'tree'"),
    ],
)
def test_wrong_mutants_name_the_part(argument: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        open_device(f"mutant:{argument}")


def test_steps_move_the_lanes() -> None:
    half = with_step(HOPPER, 8)
    assert half.steps == (tuple(range(8)), tuple(range(8, 16)))
    assert isinstance(half.tree, Fused)
    assert with_step(half, 16).tree == HOPPER.tree
    with pytest.raises(UsageError, match="cannot become steps of 12"):
        with_step(half, 12)
    dpps = load("x86-64").entries["DPPS[f32,f32->f32]"].datapath
    with pytest.raises(UsageError, match="leave a part of the tree empty"):
        with_step(dpps, 2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("arch", [*architectures(), "x86-64+intel"])
def test_neighbours_are_new_and_can_be_made_again_by_name(arch: str) -> None:
    for entry in load(arch).entries.values():
        found = neighbours(entry.datapath)
        made = [n.datapath for n in found]
        assert len(set(made)) == len(made)
        assert entry.datapath not in made
        assert all(mutate(entry.datapath, n.field, n.value) == n.datapath for n in found)


def changes(datapath: Datapath) -> set[str]:
    return {f"{n.field}={n.value}" for n in neighbours(datapath)}


def test_neighbours_of_each_kind() -> None:
    fused = changes(HOPPER)
    assert {"tree.fraction_bits=24", "tree.fraction_bits=26", "tree.fraction_bits=none", "tree.zero_exponent=-132",
            "tree.zero_exponent=none", "tree.rounding=RNE", "tree.to.rounding=RNA", "tree.to.overflow=largest",
            "operand_c.subnormals=zero", "product.label=normalised", "step=8"} <= fused  # fmt: skip
    assert not any("priority" in change or "product.to" in change for change in fused)
    dot = changes(load("x86-64").entries["VDPBF16PS[bf16,bf16->f32]"].datapath)
    assert {"tree.lanes=0,1", "tree.to.tininess=before", "special.priority=b0 a0 a1 b1 c", "special.quiet=false",
            "operand_a.subnormals=keep", "tree.to.subnormals=keep"} <= dot  # fmt: skip
    assert not any("label" in change for change in dot)
    dpps = changes(load("x86-64").entries["DPPS[f32,f32->f32]"].datapath)
    assert {"tree.swap=true", "tree.x.swap=true", "product.to.rounding=RZ"} <= dpps
    assert not any(change.startswith("operand_c") for change in dpps)
    assert 'product.to={ format = "f64" }' in changes(load("x86-64").entries["VFMADDSD[f64,f64->f64]"].datapath)
    integer = changes(load("x86-64").entries["VPDPBUSD[u8,s8->s32]"].datapath)
    assert integer == {"tree.to.overflow=largest", "step=2"}
    chained = changes(load("sm_80").entries["HMMA.16816.F32[f16,f16->f32]"].datapath)
    assert {"step=4", "step=16", "order=8..15,0..7", "order=0..14:2,1..15:2"} <= chained


def test_neighbours_reach_into_terms_and_first_cuts() -> None:
    inner = Fused((Term(Products((0, 2))), Term(Products((1, 3)), 3, "RD", 5)))
    tree = Fused((Term(inner, 25, "RD"), Term(Accumulator(), 31, "RD", -126, 25)), Encode(first=(31, "RD")))
    path = Datapath("e4m3", "e5m2", "f32", "f32", 8, tree, step=4)
    assert {"tree.terms.1.cutoff=24", "tree.terms.1.fraction_bits=none", "tree.terms.0.of.terms.1.rounding=RZ",
            "tree.terms.0.of.terms.1.zero_exponent=6", "tree.to.first=30 RD", "tree.to.first=none",
            "tree.zero_exponent=-126", "order=4..7,0..3"} <= changes(path)  # fmt: skip
    assert all(mutate(path, n.field, n.value) == n.datapath for n in neighbours(path))


def test_numbers_move_far() -> None:
    assert numbers(HOPPER) | {"tree.fraction_bits": 25, "tree.zero_exponent": -133} == numbers(HOPPER)
    far = with_numbers(HOPPER, 9)
    assert mutate(HOPPER, "tree.zero_exponent", "-142") in far
    assert mutate(HOPPER, "tree.fraction_bits", "24") not in far
    assert mutate(HOPPER, "tree.terms.1.fraction_bits", "27") in far  # of one term alone
    assert HOPPER not in far
    assert len(set(far)) == len(far)
