"""Known answers are what every model computes, in any order and of whatever precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.lookup import architectures, forms, instruction
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu.known_answer import answers, known_answer
from mmaprobe.errors import UsageError

GPUS = [name for name in architectures() if name.startswith(("sm_", "gfx"))]


@pytest.mark.parametrize("architecture", ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "sm_120a", "gfx90a", "gfx942"])
def test_models_give_the_known_answer(architecture: str) -> None:
    model = open_device(f"model:{architecture}")
    seen = 0
    for form in forms(architecture):
        if model.supports(form.first):
            batch, expected = known_answer(form.first, 1, 3)
            assert answers(form.first, model.run(form.first, batch), expected), form.first.id
            seen += 1
    assert seen


def test_every_instruction_has_one() -> None:
    """No two rows alike, so that a buffer of another item shows."""
    made = {form.first.id: form.first for name in GPUS for form in forms(name)}
    for each in made.values():
        batch, expected = known_answer(each, 2, 1)
        blocks = (each.blocks,) if each.blocks > 1 else ()
        assert expected.shape == (2, *blocks, each.m, each.n)
        assert (expected[0] != expected[1]).any()
        assert dict(batch.items()).keys() == each.shapes(1).keys()


def test_negated_operands() -> None:
    plain = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    model = open_device("model:sm_90a")
    for name in (plain, f"{plain}{{neg_a}}", f"{plain}{{neg_a,neg_b}}", f"{plain}{{scale_d=0}}"):
        made = instruction(name, "sm_90a")
        batch, expected = known_answer(made, 1, 1)
        assert answers(made, model.run(made, batch), expected), name


@pytest.mark.parametrize("inside", ["abid=1,cbsz=2", "blgp=4", "abid=1,blgp=3,cbsz=1"])
def test_moved_operands(inside: str) -> None:
    """Blocks of D fed from one block of A, lanes of B from others."""
    made = instruction(f"v_mfma_f32_16x16x4_4b_f16{{{inside}}}", "gfx942")
    plain = instruction("v_mfma_f32_16x16x4_4b_f16", "gfx942")
    model = open_device("model:gfx942")
    batch, expected = known_answer(made, 2, 1)
    assert answers(made, model.run(made, batch), expected)
    assert not answers(made, model.run(plain, batch), expected)


SIGNS = {
    "neg_lo=100": ([-1, 1], [1, 1], lambda c: c),
    "neg_hi=110": ([1, -1], [1, -1], lambda c: c),
    "neg_hi=100,neg_lo=110": ([-1, -1], [-1, 1], lambda c: c),
    "neg_hi=001": ([1, 1], [1, 1], np.abs),
    "neg_hi=001,neg_lo=001": ([1, 1], [1, 1], lambda c: -np.abs(c)),
}
"""Signs of even and odd k of A and of B, and what becomes of C."""


@pytest.mark.parametrize("inside", SIGNS)
def test_signs_of_halves(inside: str) -> None:
    made = instruction(f"v_wmma_f32_16x16x16_f16{{{inside}}}", "gfx1200")
    of_a, of_b, of_c = SIGNS[inside]
    batch, expected = known_answer(made, 2, 1)
    assert batch.c is not None
    a, b = (value.view(np.float16).astype(float) for value in (batch.a, batch.b))
    a, b = a * np.tile(of_a, 8), b * np.tile(of_b, 8)[:, None]
    d = a @ b + of_c(batch.c.view(np.float32).astype(float))
    assert (expected.view(np.float32) == d).all()


@pytest.mark.parametrize("inside", ["clamp", "clamp,neg_hi=001", "clamp,neg_hi=110,neg_lo=101"])
def test_where_a_limit_is_not_known_it_does_not_matter(inside: str) -> None:
    """A float that is 1 before clamp is so after it, of C or of a product."""
    made = instruction(f"v_dot2_f32_f16{{{inside},wave=64}}", "gfx1100")
    batch, expected = known_answer(made, 4, 1)
    found = expected.view(np.float32)
    assert set(found.ravel()) == {1}
    a, b, c = (
        np.asarray(value.view(fmt)) for value, fmt in zip(dict(batch.items()).values(), ("f2", "f2", "f4"), strict=True)
    )
    signs = dict(pair.split("=") for pair in inside.split(",") if "=" in pair)
    low, high = (np.array([int(bit) for bit in signs.get(key, "000")]) for key in ("neg_lo", "neg_hi"))
    a = a.astype(float) * (1 - 2 * np.array([low[0], high[0]]))
    b = b.astype(float) * (1 - 2 * np.array([[low[1]], [high[1]]]))
    c = (np.abs(c) if high[2] else c) * (1 - 2 * low[2])
    assert (a @ b + c == found).all()
    assert set((a @ b).ravel()) == {0, 1}


COMPLEMENTING = ["", "neg_lo=110", "neg_hi=100", "neg_hi=010,neg_lo=101", "neg_hi=001", "neg_hi=001,neg_lo=001"]


@pytest.mark.parametrize("inside", COMPLEMENTING)
@pytest.mark.parametrize("name", ["v_wmma_f32_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16", "v_dot2_f32_bf16"])
@pytest.mark.parametrize("architecture", ["gfx1100", "gfx1201"])
def test_of_a_unit_that_complements(architecture: str, name: str, inside: str) -> None:
    """gfx11 cuts a term of another sign than C's to a unit less, so that 1 - 1 is no zero."""
    made = instruction(f"{name}{{{inside}}}" if inside else name, architecture)
    batch, expected = known_answer(made, 2, 1)
    assert answers(made, open_device(f"model:{architecture}").run(made, batch), expected)
    assert len(np.unique(expected)) > 8


def test_one_bit_off_is_no_answer() -> None:
    """Zeros may have either sign; nothing else may differ."""
    made = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    _, expected = known_answer(made, 2, 1)
    turned = np.where(expected == 0, 1 << 31, expected).astype(np.uint32)
    assert (turned != expected).any()
    assert answers(made, turned, expected)
    for bit in (1, 1 << 31):
        wrong = expected.copy()
        wrong[np.unravel_index(np.argmax(expected != 0), expected.shape)] ^= bit
        assert not answers(made, wrong, expected)


def test_modifiers_that_leave_d_open() -> None:
    made = instruction("tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.f16")
    with pytest.raises(UsageError, match="no answer is known beforehand with zero_column_mask"):
        known_answer(replace(made, modifiers=(("zero_column_mask", ""),)), 1, 1)
