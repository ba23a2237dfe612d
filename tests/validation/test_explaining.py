"""Why two answers differ: the model's way to its own, and the one change of it that gives the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.validated import DOT, GPU, HMMA, MODEL, TILE, Changed
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device
from mmaprobe.operands import literal
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Fma
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.validation import Summary, validate
from mmaprobe.validation.explaining import explained, says
from mmaprobe.validation.pair import Pair

SPARSE = instruction("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80")


def found(device: str, reference: str, vectors: int = 20_000, form: str = "x86.vdpbf16ps") -> Summary:
    ref = open_device(reference)
    return validate(open_device(device), ref, instruction(form, ref.info()["architecture"]), vectors)


@pytest.mark.parametrize(("fault", "words"), [
    (f"sm_90a/{HMMA}/tree.fraction_bits=24", "fraction bits kept below the largest exponent of the sum 24, not 25"),
    (f"sm_90a/{HMMA}/tree.to.rounding=RNE", "rounding of the result of the sum RNE, not RZ"),
    (f"sm_90a/{HMMA}/special.code=0x7fc00000", "code of NaN results 0x7fc00000, not 0x7fffffff"),
    ("x86-64+intel/VDPBF16PS[bf16,bf16->f32]/tree.to.rounding=RZ", "rounding of the result of the sum RZ, not RNE"),
])  # fmt: skip
def test_a_changed_field_is_named(fault: str, words: str) -> None:
    architecture = fault.partition("/")[0]
    form = TILE.id if architecture == "sm_90a" else DOT.id
    summary = found(f"mutant:{fault}", f"model:{architecture}", form=form)
    assert {example.device_as for example in summary.examples} == {words}
    assert all(example.reference_says for example in summary.examples)


def test_a_sparse_form_is_explained_by_the_lanes_that_it_selects() -> None:
    mutant = "mutant:sm_80/HMMA.SP.16816.F32[f16,f16->f32]/tree.fraction_bits=23"
    summary = found(mutant, "model:sm_80", 60_000, SPARSE.id)
    words = "fraction bits kept below the largest exponent of the sum 23, not 24"
    assert {example.device_as for example in summary.examples} == {words}


@pytest.mark.parametrize("fault", ["zeros?n=1", "call?n=8", "place?n=3"])
def test_what_no_single_change_explains_is_not_explained(fault: str) -> None:
    """Zeros are no datapath near the model's; what comes and goes, or hangs on a place, is none at all."""
    form = TILE.id if "place" in fault else DOT.id
    model = GPU.name if "place" in fault else MODEL.name
    summary = found(f"misbehaving:{fault}&of={model}", model, form=form)
    assert {example.device_as for example in summary.examples} == {""}
    assert all(example.reference_says for example in summary.examples)


def test_what_needs_its_place_or_does_not_stay_is_no_datapath() -> None:
    """Though a change of the model gives every answer that is there."""
    mutant = open_device(f"mutant:sm_90a/{HMMA}/special.code=0x7fc00000")
    pair = Pair(mutant, GPU, TILE)
    examples = validate(mutant, GPU, TILE, 3000, generators=["specials"]).examples
    placed = [replace(each, vector=replace(each.vector, note="only in row 1")) for each in examples]
    unsteady = [replace(examples[0], stable=False), *examples[1:]]
    for found, known in ((examples, True), (placed, False), (unsteady, False)):
        assert {bool(each.device_as) for each in explained(pair, found)} == {known}


def test_without_a_model_nothing_is_explained() -> None:
    wrong = Changed(lambda made, batch, d: d ^ d.dtype.type(1))
    summary = validate(MODEL, wrong, DOT, 1000)
    assert {(example.device_as, example.reference_says) for example in summary.examples} == {("", "")}


def test_a_change_explains_every_vector_that_was_kept_or_none() -> None:
    """Two changes, each seen on vectors of its own: neither is the device's, though each explains the first few."""
    rounds = open_device(f"mutant:sm_90a/{HMMA}/tree.to.rounding=RNE")

    def codes(made: Instruction, batch: Batch, d: Bits) -> Bits:
        return np.where(d == 0x7FFFFFFF, d.dtype.type(0x7FC00000), d)

    def both(made: Instruction, batch: Batch, d: Bits) -> Bits:
        return codes(made, batch, rounds.run(made, batch))

    for change, words in ((both, ""), (codes, "code of NaN results 0x7fc00000, not 0x7fffffff")):
        summary = validate(Changed(change, GPU), GPU, TILE, 3000, 2, generators=["specials", "ulp"], threads=1)
        assert {example.kinds[0] for example in summary.examples} == {"NaN code"}
        assert {example.device_as for example in summary.examples} == {words}


@pytest.mark.parametrize(("operands", "said"), [
    (["1", "1", "1", "1", "0"], "sum 0x1p+0, RNE to f32 0x1p+0; sum 0x1p+1, RNE to f32 0x1p+1"),
    (["0", "0x3f80", "0", "0x3f80", "0x4b800001"],
     "sum 0x1.000003p+24, RNE to f32 0x1.000004p+24, off by -0x1p+0; sum 0x1.000004p+24, RNE to f32 0x1.000004p+24"),
])  # fmt: skip
def test_a_line_about_a_chain(operands: list[str], said: str) -> None:
    assert says(datapath_for("x86-64+intel", DOT), literal.parse_vector(DOT, operands)) == said


def test_a_line_about_an_aligned_sum_and_about_a_nan() -> None:
    path = datapath_for("sm_90a", TILE)
    zeros = ["0"] * 14
    cut = ["0x0001", "1", *zeros, "0x0001", "1", *zeros, "1"]
    assert says(path, literal.parse_vector(TILE, cut)).startswith(
        "aligned 1 of 17 terms cut, the first by 0x1p-48; sum "
    )
    nan = ["0x7e00", "1", *zeros, "1", "1", *zeros, "1"]
    assert says(path, literal.parse_vector(TILE, nan)).endswith("a NaN by its rule")


def test_of_a_long_chain_the_end_is_told() -> None:
    made = instruction("mma.m8n8k4.f64.f64.f64.f64", "sm_90a")
    path = datapath_for("sm_90a", made)
    four = says(path, literal.parse_vector(made, ["1"] * 9))
    assert four == "; ".join(f"sum 0x1{more}, RNE to f64 0x1{more}" for more in ("p+1", ".8p+1", "p+2", ".4p+2"))
    long = replace(path, k=8, tree=Fma(path.tree.acc, tuple(range(8)), path.tree.to), step=8)  # type: ignore[union-attr]
    ones = np.full((1, 8), 0x3FF0000000000000, np.uint64)
    eight = says(long, Batch(ones, ones, np.zeros(1, np.uint64)))
    assert eight.startswith("... sum 0x1.8p+1, ")
    assert eight.count(";") == 5
