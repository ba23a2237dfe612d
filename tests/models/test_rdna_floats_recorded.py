"""Recorded floating-point results of RDNA3 and RDNA4 against the shipped datapaths: every bit of every row."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.equivalence.arguments import argument
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import basis_for, datapath_for, entry_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import neighbours

FOLDER = Path(os.environ.get("MMAPROBE_ROWS", "no rows"))
Row = dict[str, Any]
Change = Callable[[Datapath], Datapath]

pytestmark = pytest.mark.needs("rows")


def rows(name: str) -> list[Row]:
    path = FOLDER / f"{name}.json"
    return list(json.loads(path.read_text())["rows"]) if path.is_file() else []


ROWS, F16, BF16 = rows("rows"), rows("packed_f16"), rows("packed_bf16")
DOT = [row for row in ROWS if row["instruction"].startswith("v_dot")]


def shipped(row: Row, wave: int) -> Datapath:
    """The shipped datapath of a row's instruction."""
    return datapath_for(row["arch"], instruction(row["instruction"] + "{wave=64}" * (wave == 64), row["arch"]))


def results(some: list[Row]) -> Iterator[tuple[Row, int, int]]:
    """(row, wave, d) of every result."""
    for row in some:
        for wave in (32, 64):
            if f"d_wave{wave}" in row or ("d" in row and row.get("wave", 32) == wave):
                yield row, wave, int(row.get("d", row.get(f"d_wave{wave}")), 16)


def wrong(some: list[Row], arch: str, change: Change = lambda path: path) -> tuple[int, int]:
    """How many results of an architecture there are, and how many the shipped datapath, so changed, gets wrong."""
    count = missed = 0
    for row, wave, d in results([row for row in some if row["arch"] == arch]):
        path = change(shipped(row, wave))
        types = [formats.get(name or "").dtype for name in (path.a, path.b, path.c)]
        a, b = (np.array([[int(x, 16) for x in row[name]]], of) for name, of in zip("ab", types, strict=False))
        found = evaluate(path, Batch(a, b, np.array([int(row["c"], 16)], types[2])))
        count, missed = count + 1, missed + (int(found[0]) != d)
    return count, missed


@pytest.mark.parametrize(
    ("some", "arch", "count"),
    [(ROWS, "gfx1100", 52), (ROWS, "gfx1201", 85), (F16, "gfx1100", 67), (F16, "gfx1201", 379), (BF16, "gfx1100", 64)],
)
def test_every_recorded_result_comes_out(some: list[Row], arch: str, count: int) -> None:
    assert wrong(some, arch) == (count, 0)


def setting(*changes: str) -> Change:
    def change(path: Datapath) -> Datapath:
        for each in changes:
            path = mutate(path, *each.split("="))
        return path

    return change


RIVALS: dict[str, tuple[list[Row], str, Change]] = {
    "two's complement": (ROWS, "gfx1100", setting("tree.complement=false")),
    "one width for products and c, RDNA3": (ROWS, "gfx1100", setting("tree.terms.1.label_offset=0")),
    "one width for products and c, RDNA4": (DOT, "gfx1201", setting("tree.terms.1.label_offset=0")),
    "cut toward zero": (DOT, "gfx1201", setting("tree.terms.0.of.rounding=RZ")),
    "one code for every NaN": (ROWS, "gfx1100", setting("special.nan=canonical")),
    "subnormals of c kept": (ROWS, "gfx1100", setting("operand_c.subnormals=keep")),
    "labels of 23 bits": (F16, "gfx1201", setting("tree.fraction_bits=23")),
    "a tiny negative c is never dropped": (F16, "gfx1201", setting("tree.terms.2.cutoff=none")),
    "ascending steps in waves of 32": (F16, "gfx1201", setting("order=none")),
    "narrowed at the end, RDNA3": (F16, "gfx1100", setting("step=16")),
    "f16 subnormals of c read as zero": (F16, "gfx1100", setting("operand_c.subnormals=signed_zero")),
    "f16 subnormals written as zero": (F16, "gfx1100", setting("tree.to.subnormals=zero")),
    "bf16 to nearest": (BF16, "gfx1100", setting("tree.to.rounding=RNE")),
    "bf16 subnormals kept": (BF16, "gfx1100", setting("tree.terms.0.to.subnormals=keep")),
}  # fmt: skip


@pytest.mark.parametrize("name", RIVALS)
def test_the_rows_tell_the_rivals(name: str) -> None:
    some, arch, change = RIVALS[name]
    assert wrong(some, arch, change)[1] > 0


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_what_the_rows_of_a_dot_do_not_tell_is_noted(arch: str) -> None:
    """Every field that they leave open, of f16 or of bf16, has a note, and no other field has."""
    opened, noted = set(), set()
    for name in ("v_dot2_f32_f16", "v_dot2_f32_bf16"):
        made = instruction(name, arch)
        path, some = datapath_for(arch, made), [row for row in DOT if row["instruction"] == name]
        near = [each for each in neighbours(path) if argument(path, each) is None]
        opened |= {each.field for each in near if not wrong(some, arch, lambda _, it=each.datapath: it)[1]}  # type: ignore[misc]
        noted |= {field for field, _ in entry_for(arch, made).notes}
    assert opened == noted


def test_what_the_rows_are_a_basis_of() -> None:
    found = {
        (arch, name): basis_for(arch, instruction(name, arch))
        for arch in ("gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201")
        for name in ("v_wmma_f32_16x16x16_f16", "v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16")
    }
    recorded = [pair for pair, basis in found.items() if basis == "recorded"]
    assert recorded == [
        ("gfx1100", "v_wmma_f16_16x16x16_f16"), ("gfx1100", "v_wmma_bf16_16x16x16_bf16"),
        ("gfx1201", "v_wmma_f32_16x16x16_f16"), ("gfx1201", "v_wmma_f16_16x16x16_f16"),
    ]  # fmt: skip
    for name in ("v_dot2_f32_f16", "v_dot2_f32_bf16"):
        assert [basis_for(arch, instruction(name, arch)) for arch in ("gfx1100", "gfx1101", "gfx1150", "gfx1201")] == [
            "recorded", "predicted", "published", "recorded",
        ]  # fmt: skip
    assert basis_for("gfx1100", instruction("v_dot2_f16_f16", "gfx1100")) == "published"
    assert found["gfx1151", "v_wmma_f32_16x16x16_f16"] == found["gfx1200", "v_wmma_f32_16x16x16_f16"] == "published"
    assert found["gfx1101", "v_wmma_f16_16x16x16_f16"] == "predicted"
    assert basis_for("gfx1201", instruction("v_wmma_f32_16x16x16_fp8_fp8", "gfx1201")) == "predicted"
    assert basis_for("gfx1201", instruction("v_swmmac_f32_16x16x32_f16", "gfx1201")) == "predicted"
