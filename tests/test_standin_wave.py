"""AMD kernels under the shared GPU device: known answers, launches, D as the model has it; wrong layouts are seen."""

from __future__ import annotations

import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.known_answer import WrongAnswerError
from mmaprobe.devices.model import open_model
from standin_wave import Unit, device


def model(architecture: str) -> Unit:
    """The shipped parameters as matrix unit."""
    opened = open_model(architecture)

    def unit(made: Instruction, batch: Batch) -> Bits:
        return opened.run(made, batch)

    return unit


FORMS = [
    ("gfx908", "v_mfma_f32_16x16x2bf16{blgp=3}"),
    ("gfx90a", "v_mfma_f64_4x4x4f64"),
    ("gfx90a", "v_mfma_i32_32x32x8i8"),
    ("gfx942", "v_mfma_f32_4x4x4_16b_f16{abid=3,blgp=6,cbsz=2}"),
    ("gfx942", "v_mfma_f32_32x32x4_2b_bf16{abid=1,cbsz=1}"),
    ("gfx942", "v_mfma_f32_16x16x32_fp8_bf8"),
    ("gfx942", "v_mfma_f32_16x16x8_xf32"),
    ("gfx942", "v_mfma_f64_16x16x4_f64{neg=101}"),
]


@pytest.mark.parametrize(("home", "name"), FORMS)
def test_d_is_that_of_the_model(home: str, name: str) -> None:
    """Random bits; before and after them the known answer, with blocks fed from others and operands negated."""
    made = instruction(name, home)
    batch = random_batch(made, 5, 3)
    assert (device(home, model(home)).run(made, batch) == open_model(home).run(made, batch)).all()


def test_a_wrong_layout_is_a_wrong_known_answer() -> None:
    made = instruction("v_mfma_f32_16x16x16_f16", "gfx942")
    wrong = device("gfx942", model("gfx942"), ("lane % 16", "15 - lane % 16"))
    with pytest.raises(WrongAnswerError, match="wrong known answer before the batch"):
        wrong.run(made, random_batch(made, 1, 1))
