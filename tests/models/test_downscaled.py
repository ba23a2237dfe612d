"""FPMR.LSCALE of Arm's FP8 forms, ``{lscale=N}``: the sum of products times 2^-N, said by a larger bias of A's format.

Arm Architecture Reference Manual, FP8DotAddFP; the pseudo-code in ``oracle.vendor`` scales the sum, not an operand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction, lowering
from mmaprobe.catalog.modifiers import operand_signs, resolve
from mmaprobe.catalog.variants import asked
from mmaprobe.cli import main
from mmaprobe.derivation import derive
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.devices.base import open_device
from mmaprobe.devices.cpu import control_register, unit_id
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import UsageError
from mmaprobe.generators import generate, plan
from mmaprobe.models.model import evaluator
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import basis_for, datapath_for
from mmaprobe.validation import validate
from oracle import vendor

FORMS = [
    ("arm.fdot.e4m3.e5m2.f16", (1, 8, 15)), ("arm.fmlalb.e4m3.e4m3.f16", (5, 9)), ("arm.fmlalt.e5m2.e4m3.f16", (15,)),
    ("arm.fmmla.e5m2.e5m2.f16", (3, 14)), ("arm.fvdot.e5m2.e4m3.f16", (6,)), ("arm.fmopa.e4m3.e4m3.f16", (12,)),
    ("arm.fdot.e4m3.e4m3.f32", (1, 16, 64)), ("arm.fmlallbb.e5m2.e5m2.f32", (30, 127)),
    ("arm.fmlallbt.e4m3.e5m2.f32", (31,)), ("arm.fmlalltb.e4m3.e4m3.f32", (90,)), ("arm.fmlalltt.e5m2.e4m3.f32", (2,)),
    ("arm.fmmla.e4m3.e5m2.f32", (100, 127)), ("arm.fvdotb.e4m3.e4m3.f32", (126,)), ("arm.fvdott.e5m2.e5m2.f32", (7,)),
    ("arm.fdot.za.e4m3.e4m3.f32", (48,)), ("arm.fmopa.e5m2.e5m2.f32", (127,)),
    ("arm.fmlal.za.e4m3.e5m2.f16", (4, 15)), ("arm.fmlall.za.e5m2.e4m3.f32", (64, 127)),
]  # fmt: skip
"""Every kind of form, each with some scales; all pairs of formats are among them."""
COUNT = 1_500
ONE = {"e4m3": 0x38, "e5m2": 0x3C}
"""The code of 1, of LSCALE = 0."""


@pytest.mark.parametrize(("name", "scales"), FORMS)
def test_as_pseudo_code(name: str, scales: tuple[int, ...]) -> None:
    """Every family of vectors, without and with {osm}, NaNs as bits."""
    for scale in scales:
        for osm in ("", ",osm"):
            made = instruction(f"{name}{{lscale={scale}{osm}}}")
            datapath = datapath_for("aarch64", made)
            for family, start, count in plan(made, COUNT):
                v = generate(made, family, 7, start, count)
                expected = vendor.evaluate(made.opcode, made.modifier, v.a, v.b, v.c)
                np.testing.assert_array_equal(evaluator(datapath)(datapath, v), expected, f"{made.id}: {family}")


@pytest.mark.parametrize("name", ["arm.fdot.e4m3.e4m3.f16", "arm.fdot.e5m2.e4m3.f32", "arm.fmmla.e5m2.e5m2.f32"])
def test_one_times_one_at_every_scale(name: str) -> None:
    """1 times 1 plus 0 is 2^-N exactly, at the least scale, at the largest one, and at all between."""
    base = instruction(name)
    bits = 4 if base.d == "f16" else 7
    a, b = (np.array([[ONE[fmt], *(0,) * (base.k - 1)]], np.uint8) for fmt in (base.a, base.b))
    c = np.zeros(1, base.formats()["c"].dtype)
    for scale in range(1 << bits):
        made = instruction(f"{name}{{lscale={scale}}}") if scale else base
        datapath = datapath_for("aarch64", made)
        d = evaluator(datapath)(datapath, Batch(a, b, c))
        kind, negative, exponent, significand = (x[0] for x in formats.decode(base.formats()["d"], d))
        assert (kind < formats.INFINITE, negative) == (True, False)
        assert int(significand) * 2.0 ** int(exponent) == 2.0**-scale


def test_the_scaled_sum_is_rounded_once() -> None:
    """1 + 2^-11 is a tie of f16; 2^-25 more, which f16 does not hold beside 2^-11, breaks it."""
    made = instruction("arm.fdot.e4m3.e4m3.f16{lscale=11}")
    datapath = datapath_for("aarch64", made)
    a, b = np.array([[0x38, 0x01], [0x38, 0x00]], np.uint8), np.array([[0x38, 0x10], [0x38, 0x10]], np.uint8)
    d = evaluator(datapath)(datapath, Batch(a, b, np.full(2, 0x3C00, np.uint16)))
    assert [hex(x) for x in d] == ["0x3c01", "0x3c00"]


def test_what_it_takes() -> None:
    """Four bits of f16 results, seven of f32; the scale is in A's format and not in the primitive; 0 is the default."""
    made = instruction("arm.fdot.e4m3.e5m2.f16{lscale=3,osm}")
    assert (made.a, made.b, made.c, made.d) == ("e4m3b10fn", "e5m2", "f16", "f16")
    assert instruction("arm.fmmla.e5m2.e4m3.f32{lscale=127}").a == "e5m2b142ieee"
    assert lowering(made, "aarch64").primitives == ("FDOT.OSM[e4m3,e5m2->f16]",)
    assert (basis_for("aarch64", made), bare_primitive("aarch64", made)) == ("published", None)
    assert instruction("arm.fdot.e4m3.e5m2.f16{lscale=0}") == instruction("arm.fdot.e4m3.e5m2.f16")
    assert bare_primitive("aarch64", instruction("arm.fdot.e4m3.e5m2.f16")) == "FDOT[e4m3,e5m2->f16]"
    for name in ("arm.fdot.e4m3.e4m3.f16{lscale=16}", "arm.fdot.e4m3.e4m3.f32{lscale=128}",
                 "arm.fmlalb.e4m3.e4m3.f16{lscale=16}", "arm.fmlalb.e4m3.e4m3.f16{lscale=-1}",
                 "arm.fmlal.za.e4m3.e4m3.f16{lscale=16}"):  # fmt: skip
        with pytest.raises(UsageError, match="is not legal here"):
            instruction(name)
    with pytest.raises(UsageError, match="lscale"):
        instruction("arm.bfdot{lscale=1}")


def test_other_rows_that_take_a_scale() -> None:
    """A of any float that a name declares with another bias; a sign that is flipped stays flipped."""
    made = replace(instruction("arm.fmopa.f16{neg_a}"), takes=("lscale_4",))
    scaled = resolve(made, {"lscale": "3"})
    assert (scaled.a, scaled.id) == ("e5m10b18ieee", "arm.fmopa.f16{lscale=3,neg_a}")
    assert operand_signs(scaled) == {"a": ("flip", "flip")}
    with pytest.raises(UsageError, match="format s8: no name declares it with another bias"):
        resolve(replace(made, a="s8"), {"lscale": "3"})


def test_its_ends_stand_for_all() -> None:
    """What shows all modifiers of a form has the least and the largest scale."""
    name = "arm.fdot.e4m3.e4m3.f32"
    found = asked("aarch64", f"{name}*")[name]
    assert [made.id for made in found] == [name, f"{name}{{lscale=1}}", f"{name}{{lscale=127}}"]


def test_what_the_machine_is_told() -> None:
    """LSCALE is bits 16 to 22 of FPMR, which the control register's high half is; the unit is that of scale 0."""
    made = instruction("arm.fmopa.e4m3.e5m2.f32{lscale=127,osm}")
    assert unit_id(made) == "arm.fmopa.e4m3.e5m2.f32{osm}"
    base = control_register(instruction("arm.fmopa.e4m3.e5m2.f32"))
    assert control_register(made) - base == 127 << 16 << 32


@pytest.mark.parametrize("name", ["arm.fdot.e4m3.e4m3.f16{lscale=5}", "arm.fdot.e4m3.e4m3.f32{lscale=127}"])
def test_derived_blind(name: str) -> None:
    """As any other form, though A has no 1 where the scale is large."""
    made = instruction(name)
    found = derive(open_device("model:aarch64"), made, seed=1)
    assert (found.status, found.datapath) == ("exact", datapath_for("aarch64", made))


def test_a_unit_that_ignores_the_scale_is_found_out() -> None:
    """Its products are 2^5 times what they should be."""
    name = "arm.fmlallbb.e4m3.e4m3.f32"
    made = instruction(f"{name}{{lscale=5}}")
    deaf = DatapathDevice(made, datapath_for("aarch64", instruction(name)))
    assert validate(deaf, open_device("model:aarch64"), made, 1000, 3).mismatches > 100


def test_a_derived_scale_is_no_primitive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was derived under a scale is not written as what the primitive computes without one."""
    path = tmp_path / "own.toml"
    name = "arm.fmlalb.e4m3.e4m3.f16{lscale=5}"
    assert main(["derive", name, "--device", "model:aarch64", "--write", str(path)]) == 0
    assert "no change" in capsys.readouterr().out
    assert not path.exists()
