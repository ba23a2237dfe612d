"""Devices that no datapath fits are never reported as derived; what is too rare to see is covered by a count.

The promise: a fault that shows in one of 10,000 fresh vectors or more is seen.
A fault that no fresh vector meets cannot be; the report then says how many
vectors stand behind it.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from outcomes import BlackBox, compared, vector

import oracle
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import Derivation, derive
from mmaprobe.derivation.deriving import usual_fresh
from mmaprobe.devices.base import Device, open_device, run_vectors
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Products, Special, Term
from mmaprobe.parameters.table import to_table

FORMS = {
    "x86.vdpbf16ps": "x86-64+amd",
    "mma.m16n8k8.f32.f16.f16.f32": "sm_80",
    "mma.m16n8k8.f16.f16.f16.f16": "sm_80",
    "v_mfma_f32_32x32x8f16": "gfx90a",
}
DEPTH = os.environ.get("MMAPROBE_DEPTH", "quick")
QUICK = DEPTH == "quick"
ASKED = list(FORMS)[:1] if QUICK else list(FORMS)
MIXED = [("RNE", "RU"), ("RU", "RNE"), ("RZ", "RD"), ("RNE", "RO")]
ALWAYS_THE_SAME = ("pattern?",)
BY_CHANCE = ("stochastic?", "history?", "flaky?p=0.01&", "flaky?p=0.0001&")
EVERYWHERE = ("stochastic?", "flaky?p=0.01&")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ASKED)
@pytest.mark.parametrize("fault", [*ALWAYS_THE_SAME, *BY_CHANCE])
def test_a_fault_is_never_derived(fault: str, form: str) -> None:
    asked = instruction(form, FORMS[form])
    for seed in range(3 if DEPTH == "full" else 1):
        device = open_device(f"misbehaving:{fault}seed={seed}&of=model:{FORMS[form]}")
        derivation = derive(device, asked, seed=seed)
        assert derivation.datapath is None, (derivation.status, derivation.form())
        assert derivation.status == "inconclusive"
        assert derivation.reason
        if fault in ALWAYS_THE_SAME:
            assert derivation.closest is not None
            assert derivation.counterexample is not None
            assert answered(device, asked, derivation.counterexample) == derivation.counterexample.d
            assert computed(derivation.closest, derivation.counterexample) != derivation.counterexample.d
            assert derivation.again is None
        else:
            shows_two_answers(derivation, asked, open_device(f"model:{FORMS[form]}"), fault)


def shows_two_answers(derivation: Derivation, form: Instruction, model: Device, fault: str) -> None:
    """The counterexample is a vector with two answers; where faults are frequent it was made as small as can be."""
    shown, again = derivation.counterexample, derivation.again
    assert "do not repeat" in derivation.reason
    assert shown is not None
    assert again is not None
    assert shown.d != again
    assert f"{again:#x}" in shown.note
    assert not derivation.witnesses
    if "flaky" in fault:
        assert answered(model, form, shown) in (shown.d, again)
    if fault in EVERYWHERE:
        assert np.count_nonzero(shown.a) + (shown.c != 0) <= 2, "a sum of two terms is rounded"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["history?", "flaky?p=0.01&", "flaky?p=0.0001&"])
def test_a_sparse_form_that_does_not_repeat_is_never_derived(fault: str) -> None:
    asked = instruction("mma.sp.m16n8k16.f32.f16.f16.f32", "sm_80")
    derivation = derive(open_device(f"misbehaving:{fault}seed=3&of=model:sm_80"), asked)
    assert (derivation.status, derivation.datapath) == ("inconclusive", None)
    shows_two_answers(derivation, asked, open_device("model:sm_80"), fault)
    assert derivation.counterexample is not None
    assert derivation.counterexample.metadata


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["history?", "flaky?p=0.0001&"])
def test_an_integer_form_that_does_not_repeat_is_never_derived(fault: str) -> None:
    asked = instruction("mma.m16n8k32.s32.s8.s8.s32", "sm_80")
    derivation = derive(open_device(f"misbehaving:{fault}seed=3&of=model:sm_80"), asked)
    assert (derivation.status, derivation.datapath) == ("inconclusive", None)
    shows_two_answers(derivation, asked, open_device("model:sm_80"), fault)


def answered(device: Device, form: Instruction, witness: Witness) -> int:
    return int(run_vectors(device, form, vector(form, witness))[0])


def computed(datapath: Datapath, witness: Witness) -> int:
    return oracle.evaluate(to_table(datapath), witness.a, witness.b, witness.c)


@pytest.mark.parametrize("form", ASKED)
def test_what_no_vector_meets_is_covered_by_a_count(form: str) -> None:
    """One pair of 16-bit codes in lane 0 is one vector in 2^32; the report names the vectors it rests on."""
    asked = instruction(form, FORMS[form])
    derivation = derive(open_device(f"misbehaving:pair?of=model:{FORMS[form]}"), asked, seed=1)
    assert derivation.datapath is not None
    assert derivation.fresh == usual_fresh(asked) >= 100_000
    assert derivation.form()["cost"]["fresh"] == derivation.fresh


@pytest.mark.long
@pytest.mark.parametrize("bits", [9, 13, 20] if DEPTH == "full" else [13])
@pytest.mark.parametrize(("rounding", "own"), MIXED[:1] if QUICK else MIXED)
def test_a_rounding_of_its_own_for_c_is_not_taken_for_another_datapath(bits: int, rounding: str, own: str) -> None:
    """C aligned by another rounding than the products, K = 32, e2m1 times e3m2 to f16: a trial took it for another."""
    tree = Fused((Term(Accumulator(), bits, own), Term(Products(tuple(range(32))), bits, rounding)), Encode("f16"))
    truth = Datapath("e2m1", "e3m2", "f16", "f16", 32, tree, special=Special("canonical", 0x7FFF))
    form = Instruction("mixed", "mixed", "random", 16, 8, 32, "e2m1", "e3m2", "f16", "f16")
    derivation = derive(BlackBox(form, truth), form, seed=bits)
    assert derivation.datapath is None or compared(form, truth, derivation.datapath)[1] == 0
    assert derivation.datapath is not None or derivation.reason
