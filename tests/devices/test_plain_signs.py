"""What negates operands, asked with the signs flipped, answers as what does not; every vector is one that was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.states import in_state
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import Support, open_device, run_tiles, run_vectors
from mmaprobe.devices.plain_signs import OF_VECTORS, PlainSigns
from mmaprobe.generators import families_for
from mmaprobe.operands.batch import Batch, Bits, Witness, take
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.probing.suite import probe

FORMS = [
    ("arm.fmopa.f16", "neg_a", "aarch64"),
    ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "neg_b", "sm_90a"),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", "neg_b", "sm_90a"),
    ("v_wmma_f32_16x16x16_f16", "neg_lo=101", "gfx1200"),
    ("v_wmma_f32_16x16x16_f16", "neg_hi=010,neg_lo=110", "gfx1200"),
    ("v_mfma_f64_16x16x4_f64", "neg=001", "gfx942"),
]


def views(name: str, modifiers: str, architecture: str) -> tuple[PlainSigns, Instruction]:
    """The view of a form with these modifiers, and the form without."""
    view = PlainSigns.of(open_device(f"model:{architecture}"), instruction(f"{name}{{{modifiers}}}", architecture))
    assert view is not None
    return view, instruction(name, architecture)


def batch(made: Instruction, seed: int, count: int = 400) -> Batch:
    return hard_vectors(made, families_for(made), seed, count)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_view_answers_as_the_instruction_that_negates_nothing(form: tuple[str, str, str]) -> None:
    view, plain = views(*form)
    vectors = batch(plain, 1)
    expected = run_vectors(view.device, plain, vectors)
    assert np.array_equal(run_vectors(view, view.plain, vectors), expected)
    assert (run_vectors(view.device, view.real, vectors) != expected).any()


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_tiles_are_negated_as_vectors_are(form: tuple[str, str, str]) -> None:
    view, plain = views(*form)
    shapes, one = plain.shapes(2), batch(plain, 2, 64)
    rng = np.random.default_rng(2)
    tiles = Batch(**{name: np.resize(rng.permutation(value.ravel()), shapes[name]) for name, value in one.items()
                     if name != "metadata"})  # fmt: skip
    if plain.chunk:
        tiles = replace(tiles, metadata=np.full(shapes["metadata"], one.metadata.flat[0]))  # type: ignore[union-attr]
    assert np.array_equal(run_tiles(view, view.plain, tiles), run_tiles(view.device, plain, tiles))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_witness_is_a_vector_that_was_asked(form: tuple[str, str, str]) -> None:
    view, plain = views(*form)
    vectors = batch(plain, 3, 8)
    answers = run_vectors(view, view.plain, vectors)
    for index, answer in enumerate(answers):
        witness = Witness.of(take(vectors, np.array([index])), int(answer), "shown")
        real = view.witness(witness)
        assert real != witness
        assert view.witness(real) == witness
        assert run_vectors(view.device, view.real, as_vectors(view.real, [real])) == answer
    assert all(np.array_equal(value, getattr(vectors, name))
               for name, value in view.flipped(view.flipped(vectors, OF_VECTORS), OF_VECTORS).items())  # fmt: skip


def test_a_control_state_is_asked_of_the_instruction_that_negates() -> None:
    view, plain = views("arm.fmopa.f32", "neg_a", "aarch64")
    state = {"rounding": "rz", "ftz": ""}
    vectors = batch(plain, 4)
    assert view.supports(in_state(view.plain, state))
    answers = run_vectors(view, in_state(view.plain, state), vectors)
    assert np.array_equal(answers, run_vectors(view.device, in_state(plain, state), vectors))


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("v_wmma_f32_16x16x16_f16{neg_hi=001}", "gfx1200"),
        ("v_wmma_i32_16x16x16_iu8{neg_lo=110}", "gfx1200"),
        ("arm.fmopa.f32", "aarch64"),
        ("arm.smopa", "aarch64"),
    ],
)
def test_an_absolute_value_the_signs_of_integers_and_no_modifier_are_no_negation(name: str, architecture: str) -> None:
    assert PlainSigns.of(open_device(f"model:{architecture}"), instruction(name, architecture)) is None


@pytest.mark.parametrize("form", FORMS[:2] + FORMS[3:], ids=str)
def test_probes_answer_what_they_answer_of_the_instruction_that_adds(form: tuple[str, str, str]) -> None:
    view, plain = views(*form)
    found, expected = probe(view.device, view.real), probe(view.device, plain)
    assert {name: (each.status, each.answer) for name, each in found.items()} == {
        name: (each.status, each.answer) for name, each in expected.items()
    }
    own = [finding for finding in found.values() if finding.question != "control_state"]  # those are of other states
    witnesses = [each for finding in own for each in finding.witnesses]
    answers = run_vectors(view.device, view.real, as_vectors(view.real, witnesses))
    assert answers.tolist() == [each.d for each in witnesses]


class Subtracting:
    """C minus the sum of two products, or that sum minus C, in plain floats: a unit of nobody's catalog."""

    name = "subtracting"

    def __init__(self, modifiers: tuple[tuple[str, str], ...], sign: int = -1) -> None:
        self.sign = sign
        spelt = "".join(f"{{{key}}}" for key, _ in modifiers)
        self.made = Instruction(f"x.fnma{spelt}", "x.fnma", "x", 1, 1, 2, "f32", "f32", "f64", "f64", modifiers)

    def info(self) -> dict[str, str]:
        return {}

    def instructions(self) -> Sequence[Instruction]:
        return (self.made,)

    def supports(self, made: Instruction) -> Support:
        return Support(True)

    def run(self, made: Instruction, given: Batch) -> Bits:
        a, b = given.a.reshape(-1, 2).view("f4").astype("f8"), given.b.reshape(-1, 2).view("f4").astype("f8")
        assert given.c is not None
        with np.errstate(all="ignore"):
            c = -self.sign * given.c.reshape(-1).view("f8")
            d = c + self.sign * a[:, 0] * b[:, 0] + self.sign * a[:, 1] * b[:, 1]
        return d.view(np.uint64).reshape(-1, 1, 1)


def test_a_unit_of_nobodys_catalog_says_by_its_modifier_that_it_subtracts() -> None:
    plain = Subtracting(())
    wrong = probe(plain, plain.made, ["summation_tree"])["summation_tree"]
    assert wrong.status == "contradictory"
    assert "1, came out as -1" in wrong.text
    assert "neg_a" in wrong.text


@pytest.mark.parametrize(("modifier", "sign"), [("neg_a", -1), ("neg_b", -1), ("neg_c", 1)])
def test_each_operand_may_be_the_one_that_is_negated(modifier: str, sign: int) -> None:
    told = Subtracting(((modifier, ""),), sign)
    assert probe(told, told.made, ["summation_tree"])["summation_tree"].status == "exact"
    other = Subtracting(((modifier, ""),), -sign)  # the modifier says something else than the unit does
    assert probe(other, other.made, ["summation_tree"])["summation_tree"].status == "contradictory"
