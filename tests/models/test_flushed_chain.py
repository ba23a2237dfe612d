"""The kernel of flushed chains of fused multiply-adds (VDPBF16PS) is the stages, NaNs and tiny numbers among them."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, permutations
from typing import Any

import numpy as np
import pytest

from cases.engine_layout import run_groups, run_tiles, tiles_of
from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine, kernels, stages
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Encode, Fma, Operand
from mmaprobe.parameters.lookup import datapath_for

MADE = instruction("x86.vdpbf16ps")
PATH = datapath_for("x86-64+intel", MADE)
PRIORITIES = tuple(islice(permutations(PATH.special.priority), 0, 120, 13))
NARROW = [0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFA3, 0, 0x8000, 1, 0x807F, 0x0080, 0x7F7F]
WIDE = [0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFA00003, 0, 1 << 31, 1, 0x807FFFFF, 0x00800000, 0x7F7FFFFF]


def drawn(k: int, count: int, seed: int) -> Batch:
    """Random codes, a quarter of them special or tiny."""
    rng = np.random.default_rng(seed)

    def codes(telling: list[int], dtype: Any, *shape: int) -> Bits:
        plain = rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        special = np.array(telling, dtype)[rng.integers(0, len(telling), shape)]
        return np.where(rng.random(shape) < 1 / 4, special, plain)

    return Batch(codes(NARROW, np.uint16, count, k), codes(NARROW, np.uint16, count, k), codes(WIDE, np.uint32, count))


@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize("priority", PRIORITIES, ids=" ".join)
def test_the_kernel_is_the_stages(priority: tuple[str, ...], build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = replace(PATH, special=replace(PATH.special, priority=priority))
    assert kernels.kernel(path) == kernels.FLUSHED_CHAIN
    vectors = drawn(2, 4000, PRIORITIES.index(priority))
    expected = stages.evaluate(path, vectors)
    assert np.isnan(expected.view(np.float32)).mean() > 0.1
    assert (engine.evaluate(path, vectors) == expected).all()
    tiles = tiles_of(drawn(2, 4 * 24 * 9, 7), 24, 9)
    found = run_tiles(path, tiles)
    assert found is None or (found == engine.evaluate_tiles(path, tiles)).all()


@pytest.mark.parametrize("lanes", [(0, 1), (1, 0)])
def test_groups_of_every_family_are_the_stages(lanes: tuple[int, ...]) -> None:
    assert isinstance(PATH.tree, Fma)
    path = replace(PATH, tree=replace(PATH.tree, lanes=lanes))
    assert kernels.kernel(path) == kernels.FLUSHED_CHAIN
    for family in families_for(MADE):
        vectors = generate(MADE, family, 3, 11, 333)
        found = run_groups(path, vectors)
        assert found is None or (found == stages.evaluate(path, vectors)).all(), family


def with_result(**change: Any) -> Datapath:
    assert isinstance(PATH.tree, Fma)
    return replace(PATH, tree=replace(PATH.tree, to=replace(PATH.tree.to, **change)))


def test_several_steps_keep_their_order() -> None:
    names = tuple(f"{name}{lane}" for lane in range(8) for name in "ba")
    wide = replace(PATH, k=8, step=2, special=replace(PATH.special, priority=("c", *names)))
    assert kernels.kernel(wide) == kernels.FLUSHED_CHAIN
    vectors = drawn(8, 3000, 5)
    assert (engine.evaluate(wide, vectors) == stages.evaluate(wide, vectors)).all()


OTHERS: dict[str, Datapath] = {
    "rounds down": with_result(rounding="RD"),
    "keeps tiny sums": with_result(subnormals="keep"),
    "tiny before rounding": with_result(tininess="before"),
    "flushes to +0": with_result(subnormals="zero"),
    "keeps tiny operands": replace(PATH, operand_b=Operand()),
    "keeps tiny C": replace(PATH, operand_c=Operand("zero")),
    "signalling NaNs first": replace(PATH, special=replace(PATH.special, signalling_first=True)),
    "NaNs not quieted": replace(PATH, special=replace(PATH.special, quiet=False)),
    "no global rule": replace(PATH, special=replace(PATH.special, nan="canonical")),
    "an operand without a place": replace(PATH, special=replace(PATH.special, priority=("a0", "b0", "a1", "b1"))),
    "through f16": replace(PATH, tree=Fma(PATH.tree.acc, (1, 0), Encode("f16"))),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_the_kernel_does_not_do_is_left_to_others(name: str) -> None:
    assert kernels.kernel(OTHERS[name]) != kernels.FLUSHED_CHAIN


@pytest.mark.parametrize(("row", "column", "value"), [("a", "bytes", 1), ("b", "bytes", 4), ("c", "bytes", 2)])
def test_a_program_that_says_this_kernel_and_has_other_operands_is_refused(row: str, column: str, value: int) -> None:
    words = program(PATH)
    assert words is not None
    words = words.copy()
    words[words[COLUMNS["header"].index(row)] + COLUMNS["operand"].index(column)] = value
    with pytest.raises(ValueError, match="not a program of this engine version"):
        _native.engine_evaluate([words], [None] * 6, np.zeros((1, 0), np.uint32), "")


def test_a_program_of_this_kernel_without_c_or_with_a_lane_too_many_is_refused() -> None:
    words = program(PATH)
    assert words is not None
    header = COLUMNS["header"].index
    without, lanes = words.copy(), words.copy()
    without[header("c")] = -1
    lanes[words[words[header("rules")] + COLUMNS["flushed_chain"].index("order")]] = 2
    for changed in (without, lanes):
        with pytest.raises(ValueError, match="not a program of this engine version"):
            _native.engine_evaluate([changed], [None] * 6, np.zeros((1, 0), np.uint32), "")
