"""Chains of fused multiply-adds whose links each hand on a NaN: the kernel is the stages, on vectors full of NaNs."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from cases.engine_layout import run_tiles, tiles_of
from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction
from mmaprobe.models import engine, kernels, stages
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Special
from mmaprobe.parameters.lookup import datapath_for

FORMS = {
    "f64": datapath_for("sm_90a", instruction("mma.m16n8k16.f64.f64.f64.f64.rz")),
    "f32": datapath_for("x86-64", instruction("x86.vfmadd.f32")),
}
PRIORITIES = tuple(permutations(("a", "b", "acc")))
INVALID = {"f64": 0xFFF8 << 48, "f32": 0xFFC0_0000}
TELLING = {
    "f64": [0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 0x7FF0_0000_0000_0001, 0xFFF4_0000_0000_0003, 0, 1 << 63],
    "f32": [0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0x7F80_0001, 0xFFA0_0003, 0, 1 << 31],
}  # fmt: skip


def _drawn(path: Datapath, count: int, rng: np.random.Generator) -> Batch:
    """Random codes, of which one in seven is special."""
    dtype = np.dtype(np.uint64 if path.d == "f64" else np.uint32)

    def codes(*shape: int) -> Bits:
        plain = rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        special = np.array(TELLING[path.d], dtype)[rng.integers(0, len(TELLING[path.d]), shape)]
        return np.where(rng.random(shape) < 1 / 7, special, plain)

    return Batch(codes(count, path.k), codes(count, path.k), codes(count))


@pytest.mark.parametrize("code", ["own", "positive"])
@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("priority", PRIORITIES, ids=" ".join)
def test_the_kernel_is_the_stages(
    name: str, priority: tuple[str, ...], build: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With x86's own code of an invalid operation one instruction a link does it, with another the links are found."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    sign = 1 << (63 if name == "f64" else 31)
    invalid = INVALID[name] ^ (sign if code == "positive" else 0)
    path = replace(FORMS[name], special=Special("local", invalid, priority))
    assert kernels.kernel(path) == kernels.CHAIN
    vectors = _drawn(path, 4000, np.random.default_rng(PRIORITIES.index(priority)))
    expected = stages.evaluate(path, vectors)
    assert np.isnan(expected.view(np.float64 if name == "f64" else np.float32)).mean() > 0.1
    assert (engine.evaluate(path, vectors) == expected).all()


@pytest.mark.parametrize("special", [{"quiet": False}, {"signalling_first": True}], ids=str)
def test_what_the_kernel_does_not_do(special: dict[str, bool]) -> None:
    path = replace(FORMS["f64"], special=Special("local", INVALID["f64"], PRIORITIES[0], **special))
    assert kernels.kernel(path) != kernels.CHAIN


def test_tiles_are_their_vectors() -> None:
    """By rows and columns, too, where a column of B serves a whole strip."""
    path = FORMS["f64"]
    tiles = tiles_of(_drawn(path, 64 * 16 * 8, np.random.default_rng(9)), 16, 8)
    found, expected = engine.evaluate_tiles(path, tiles), run_tiles(path, tiles)
    assert found is not None
    assert expected is not None
    assert (found == expected).all()


def test_hopper_hands_on_the_nan_of_b_first() -> None:
    """As measured: the last link whose B is a NaN wins, then what came before, quieted."""
    path = FORMS["f64"]
    a, b = np.full((3, 16), 0x3FF0 << 48, np.uint64), np.full((3, 16), 0x3FF0 << 48, np.uint64)
    c = np.array([0x7FF4_0000_0000_0007, 0x7FF4_0000_0000_0007, 0], np.uint64)
    b[0, 3], b[0, 5], a[0, 9] = 0x7FF8_0000_0000_0001, 0xFFF0_0000_0000_0002, 0x7FF8_0000_0000_0003
    a[1, 2] = 0x7FF8_0000_0000_0003
    a[2, 0], b[2, 0] = 0x7FF0 << 48, 0
    found = [f"{code:016x}" for code in engine.evaluate(path, Batch(a, b, c)).tolist()]
    assert found == ["fff8000000000002", "7ffc000000000007", "fff8000000000000"]
