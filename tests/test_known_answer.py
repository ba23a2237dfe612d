"""Known answers are what every model computes, in any order and of whatever precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.lookup import architectures, forms, instruction
from mmaprobe.devices.base import open_device
from mmaprobe.devices.known_answer import answers, known_answer
from mmaprobe.errors import UsageError

NVIDIA = [name for name in architectures() if name.startswith("sm_")]


@pytest.mark.parametrize("architecture", ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "sm_120a"])
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
    made = {form.first.id: form.first for name in NVIDIA for form in forms(name)}
    for each in made.values():
        batch, expected = known_answer(each, 2, 1)
        assert expected.shape == (2, each.m, each.n)
        assert (expected[0] != expected[1]).any()
        assert dict(batch.items()).keys() == each.shapes(1).keys()


def test_negated_operands() -> None:
    plain = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    model = open_device("model:sm_90a")
    for name in (plain, f"{plain}{{neg_a}}", f"{plain}{{neg_a,neg_b}}", f"{plain}{{scale_d=0}}"):
        made = instruction(name, "sm_90a")
        batch, expected = known_answer(made, 1, 1)
        assert answers(made, model.run(made, batch), expected), name


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
