"""Vectors a few changes away from others: what each change does, and what they tell apart that their parents do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.vectors import changes
from mmaprobe.derivation.vectors.changes import CHANGES, Change, Children, changed_vectors
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate

FORMS = {
    "half": ("sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    "tf32": ("sm_80", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"),
    "fnuz": ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8"),
    "double": ("sm_90a", "mma.m8n8k4.f64.f64.f64.f64"),
    "scaled": ("sm_120a", "mma.m16n8k64.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
}
ROWS = np.arange(400)


def form(name: str) -> Instruction:
    arch, text = FORMS[name]
    return instruction(text, arch)


@pytest.mark.parametrize("name", FORMS)
def test_they_are_codes_and_repeat(name: str) -> None:
    made = form(name)
    parents = mixed_vectors(made, 3, 200)
    first, again = (changed_vectors(made, [parents, parents.slice(0, 7)], 5, 999) for _ in range(2))
    assert first.size == 1000
    for role, fmt in made.formats().items():
        value = getattr(first, role, None)
        if value is not None:
            assert value.dtype == fmt.dtype
            assert int(value.max()) < fmt.code_limit
            np.testing.assert_array_equal(value, getattr(again, role))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", ["half", "fnuz"])
def test_a_change_makes_no_nan_and_leaves_other_vectors(name: str, change: Change) -> None:
    made = form(name)
    rng = np.random.default_rng(3)
    codes = {role: _finite(made.formats()[role], rng, shape) for role, shape in (("a", 16), ("b", 16), ("c", 0))}
    vectors = Batch(**{role: value[:, : made.k] if value.ndim == 2 else value for role, value in codes.items()})
    if made.k > 16:
        vectors = Batch(*(np.tile(each, made.k // 16) for each in (vectors.a, vectors.b)), vectors.c)
    child = Children(made, vectors, vectors, rng)
    change(child, ROWS[::2])
    changed = 0
    for role, before in vectors.items():
        after = child.operands[role]
        np.testing.assert_array_equal(after[1::2], before[1::2])
        assert (formats.decode(made.formats()[role], after).kind != formats.NAN).all()
        changed += int((after != before).reshape(len(ROWS), -1).any(axis=1).sum())
    assert changed > 40


def _finite(fmt: formats.Format, rng: np.random.Generator, lanes: int) -> np.ndarray:
    """Finite codes well below the largest, a fifth of them zeros."""
    shape = (len(ROWS), lanes) if lanes else (len(ROWS),)
    size = rng.integers(1, fmt.largest // 2, shape) * (rng.random(shape) > 0.2)
    sign = np.where(size > 0, rng.integers(0, 2, shape) * fmt.sign_mask, 0)
    return (size | sign).astype(fmt.dtype)


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        (changes.step, {1, 2}),
        (changes.flip, {0x8000}),
        (changes.binade, {0x400, 0x800, 0xC00}),
    ],
    ids=["step", "flip", "binade"],
)
def test_one_code_moves_by_so_much(change: Change, differences: set[int]) -> None:
    made = form("half")
    ones = Batch(
        np.full((400, 16), 0x3C00, np.uint16),
        np.full((400, 16), 0x3C00, np.uint16),
        np.full(400, 0x3F800000, np.uint32),
    )
    child = Children(made, ones, ones, np.random.default_rng(1))
    change(child, ROWS)
    moved = np.abs(child.operands["a"].astype(int) - 0x3C00)
    assert set(np.unique(moved[moved > 0]).tolist()) == differences
    assert ((moved > 0).sum(axis=1) <= 1).all()


def test_lanes_are_thinned_swapped_spread_and_left_alone() -> None:
    made = form("half")
    own = np.arange(1, 17, dtype=np.uint16)
    vectors = Batch(np.tile(own, (400, 1)), np.tile(own, (400, 1)), np.zeros(400, np.uint32))

    def after(change: Change) -> np.ndarray:
        child = Children(made, vectors, vectors, np.random.default_rng(2))
        change(child, ROWS)
        return child.operands["a"]

    assert (np.sort(after(changes.swap), axis=1) == own).all()
    assert (after(changes.spread) == after(changes.spread)[:, :1]).all()
    assert {1, 2} == set((after(changes.alone) > 0).sum(axis=1).tolist())
    assert 6 < (after(changes.thin) > 0).sum(axis=1).mean() < 10
    copied = after(changes.copy)
    assert (((copied & 0x7FFF) != own).sum(axis=1) <= 1).all()
    assert (copied & 0x8000).any()


def test_children_tell_what_their_parents_do_not() -> None:
    """How a subnormal c is read: no parent has one."""
    made = form("half")
    true = datapath_for("sm_90a", made)
    other = mutate(true, "operand_c.subnormals", "zero")
    parents = mixed_vectors(made, 1, 4000)
    normal = formats.decode(formats.get("f32"), parents.c).kind == formats.NORMAL
    parents = Batch(**{name: value[normal] for name, value in parents.items()})
    counts = []
    for vectors in (parents, changed_vectors(made, [parents], 2, parents.size)):
        answers = evaluate_many([true, other], vectors)
        counts.append(int((answers[0] != answers[1]).sum()))
    assert counts[0] == 0
    assert counts[1] > 3


def test_a_scale_changes_too() -> None:
    made = form("scaled")
    parents = mixed_vectors(made, 3, 200)
    parents = replace(parents, scale_a=np.full_like(parents.scale_a, 0x38))
    found = changed_vectors(made, [parents], 5, 2000).scale_a
    assert found is not None
    assert {0x37, 0x39} <= set(np.unique(found).tolist())
