"""Instructions that negate operands are derived as those that do not; what is said of them is of the vectors asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import Derivation, derive
from mmaprobe.derivation.deriving import signed
from mmaprobe.derivation.outside import Repair
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.plain_signs import PlainSigns
from mmaprobe.generators import families_for
from mmaprobe.models.model import run_vectors as computed
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate

FORMS = [
    ("arm.bfmopa{neg_a}", "aarch64", {"a": "flip"}),
    ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16{neg_a,neg_b}", "sm_90a", {"a": "flip", "b": "flip"}),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16{neg_a}", "sm_90a", {"a": "flip"}),
    ("v_wmma_f32_16x16x16_f16{neg_lo=101}", "gfx1200", {"c": "flip"}),
    ("v_mfma_f64_16x16x4_f64{neg=011}", "gfx942", {"b": "flip", "c": "flip"}),
]
"""Forms and the operands that their datapaths negate; of a form that negates even lanes alone the batch is changed."""


def device(architecture: str) -> Any:
    return open_device(f"model:{architecture}")


def answered(made: Instruction, architecture: str, found: Derivation) -> None:
    """Every vector shown has the answer shown, and a refuted neighbour another one."""
    assert found.witnesses
    answers = run_vectors(device(architecture), made, as_vectors(made, found.witnesses))
    assert answers.tolist() == [each.d for each in found.witnesses]
    assert found.datapath is not None
    refuted = [entry for entry in found.certificate.entries if entry.witness is not None]
    signs = [entry for entry in refuted if entry.field.endswith(".sign")]
    assert len(signs) >= 3
    for entry in [*signs, *refuted[::9]]:
        assert entry.witness is not None
        assert entry.witness.note == f"{entry.field} is not {entry.value}"
        rival = mutate(found.datapath, entry.field, entry.value)
        assert computed(made, rival, as_vectors(made, [entry.witness])) != entry.witness.d


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "architecture", "signs"), FORMS, ids=str)
def test_what_negates_operands_is_derived(name: str, architecture: str, signs: dict[str, str]) -> None:
    made = instruction(name, architecture)
    found = derive(device(architecture), made, fresh=20_000)
    assert found.datapath is not None
    assert found.instruction == name
    for operand in "abc":
        assert getattr(found.datapath, f"operand_{operand}").sign == signs.get(operand, "keep")
    answered(made, architecture, found)
    vectors = hard_vectors(made, families_for(made), 99, 4000)
    assert np.array_equal(computed(made, found.datapath, vectors), run_vectors(device(architecture), made, vectors))
    again = derive(device(architecture), made, fresh=20_000, start=found.datapath, findings=found.findings)
    assert again.datapath == found.datapath


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "v_wmma_f32_16x16x16_f16{neg_hi=001,wave=64}",
            "derive v_wmma_f32_16x16x16_f16{wave=64} and validate this one",
        ),
        ("v_dot4_f32_fp8_fp8{neg_hi=001,neg_lo=001}", "derive v_dot4_f32_fp8_fp8 and validate this one"),
    ],
)
def test_of_an_absolute_value_nothing_is_derived(name: str, said: str) -> None:
    """No vector shows what the unit makes of the other sign, and none is asked."""
    found = derive(device("gfx1200"), instruction(name, "gfx1200"))
    assert (found.status, found.datapath, found.vectors) == ("inconclusive", None, 0)
    assert f"it takes the absolute value of c, so that its sign is never read: {said}" in found.reason


class Off:
    """A model that gets wrong the products of a pair of codes in lane 1."""

    def __init__(self, architecture: str, made: Instruction) -> None:
        self.inner, self.made, self.name = device(architecture), made, "off"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def run_vectors(self, made: Instruction, vectors: Batch) -> Bits:
        d = run_vectors(self.inner, made, vectors)
        wrong = (vectors.a[:, 1] & 0x3FF) > 0x380
        found: Bits = d ^ wrong.astype(d.dtype)
        return found


@pytest.mark.long
def test_what_is_wrong_with_the_closest_is_shown_by_vectors_that_were_asked() -> None:
    name, architecture = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16{neg_a}", "sm_90a"
    made = instruction(name, architecture)
    off = Off(architecture, made)
    found = derive(off, made, allowance=60_000_000)
    assert found.status == "inconclusive"
    assert found.closest is not None
    assert found.closest.operand_a.sign == "flip"
    shown = [found.counterexample, *(kind.witness for kind in found.kinds)]
    assert found.counterexample is not None
    for witness in shown:
        assert witness is not None
        vector = as_vectors(made, [witness])
        assert run_vectors(off, made, vector) == witness.d
        assert computed(made, found.closest, vector) != witness.d


def test_repairs_of_a_sign_are_said_of_the_operand_that_is_negated() -> None:
    made = instruction("arm.fmopa.f32{neg_a}", "aarch64")
    view = PlainSigns.of(device("aarch64"), made)
    assert view is not None
    plain = derive(view, view.plain, fresh=1000)
    repairs = tuple(Repair(f"operand_{name}.sign", "keep", "flip", 1, 1, 0) for name in "ab")
    path = plain.datapath
    assert path is not None
    found = signed(view, Derivation(**{**vars(plain), "repairs": repairs, "closest": path, "left": (path,)}))
    assert [(each.old, each.value) for each in found.repairs] == [("flip", "keep"), ("keep", "flip")]
    assert found.datapath == found.closest == found.left[0] == datapath_for("aarch64", made)
