"""Structures told apart by terms far below the others, where no end of a range matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.hypotheses.field_choices import alignment, cut, fraction_bits, rounding
from mmaprobe.derivation.search.eliminate import sharpened
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Session, State
from mmaprobe.derivation.survivors import Living, several
from mmaprobe.derivation.vectors.below_range import faint_vectors, reaches_lower
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.models.grid import Grid
from mmaprobe.parameters.datapath import Datapath, Operand
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.rewrite import map_encodes, map_terms

SUM = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
TRUTH = datapath_for("sm_90a", SUM)


def test_faint_vectors_have_normal_operands_and_products_below_those_of_plain_ones() -> None:
    vectors = faint_vectors(SUM, 3, 500)
    f16 = formats.get("f16")
    a, b = (formats.decode(f16, operand) for operand in (vectors.a, vectors.b))
    assert vectors.c is not None
    for decoded in (a, b, formats.decode(f16, vectors.c)):
        assert (decoded.kind == formats.NORMAL).all()
    assert (a.exponent + b.exponent + 2 * f16.fraction_bits).min() == 2 * f16.min_exponent


@pytest.mark.parametrize(
    ("name", "lower"), [("m16n8k16.row.col.f16.f16.f16.f16", True), ("m16n8k8.row.col.f32.f16.f16.f32", False)]
)
def test_they_are_for_operands_that_reach_lower_than_the_result(name: str, lower: bool) -> None:
    assert reaches_lower(instruction(f"mma.sync.aligned.{name}")) is lower


def _bare(path: Datapath, bits: int | None, mode: str) -> Datapath:
    """The sum as plain vectors show it."""
    plain = map_encodes(path, lambda to: replace(to, overflow="infinity", subnormals="keep", zero="positive"))
    every = map_terms(plain, lambda term: replace(term, zero_exponent=None))
    return cut(replace(every, operand_a=Operand(), operand_b=Operand(), operand_c=Operand()), bits, mode)


@pytest.mark.parametrize("flush", ["keep", "zero"])
@pytest.mark.parametrize("zero", [-21, 2, None])
@pytest.mark.parametrize(("bits", "mode"), [(25, "RZ"), (27, "RU"), (24, "RNE")])
def test_one_width_is_left_whatever_the_ends_of_the_range(bits: int, mode: str, zero: int | None, flush: str) -> None:
    path = map_encodes(TRUTH, lambda to: replace(to, subnormals=flush, overflow="largest"))  # type: ignore[arg-type]
    path = cut(map_terms(path, lambda term: replace(term, zero_exponent=zero)), bits, mode)
    path = replace(path, operand_a=Operand(flush), operand_c=Operand(flush))  # type: ignore[arg-type]
    state = State(Session(DatapathDevice(SUM, path), SUM, 1))
    every = [_bare(TRUTH, n, m) for n in (None, *range(20, 40)) for m in ("RZ", "RD", "RU", "RNE")]
    left = sharpened(state, several(every, state.allowance))
    assert list(left) == [_bare(TRUTH, bits, mode)]
    assert state.session.launches <= 6


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_sums_of_hopper_rounded_to_f16_are_derived(seed: int) -> None:
    found = derive(open_device("model:sm_90a"), SUM, seed=seed, fresh=5000)
    assert found.status == "exact"
    assert found.datapath is not None
    assert found.launches < 30
    assert np.count_nonzero([entry.verdict == "open" for entry in found.certificate.entries]) == 0


def test_every_structure_left_rivals_the_one_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left out by chance: a truth drawn away once made every hypothesis at hand wrong."""
    search = Search(State(Session(DatapathDevice(SUM, TRUTH), SUM, 1)))
    grid = Grid(_bare(TRUTH, 25, "RZ"), [fraction_bits(True), alignment(), rounding(("RZ", "RNE", "RD"))])
    monkeypatch.setattr(search, "_try", lambda stage, hypotheses, *_: hypotheses)
    search.alive = Living.of([grid], search.state.allowance)
    assert 2000 < len(search.alive) < 4000
    assert len(search._rivalled(several([TRUTH], search.state.allowance))) > len(search.alive)
