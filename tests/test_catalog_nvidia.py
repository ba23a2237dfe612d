"""The NVIDIA catalog against what the compiler made of every form, both ways.

``golden/nvidia_instructions.csv.xz`` holds one row a PTX form: opcode, shape,
types, and for each architecture the matrix instructions in the disassembly.
"""

from __future__ import annotations

import csv
import io
import lzma
import re
from collections import Counter
from pathlib import Path

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, instruction, instructions, lowering
from mmaprobe.catalog.lowering import Lowering

GOLDEN = Path(__file__).parent / "golden" / "nvidia_instructions.csv.xz"
ROWS = list(csv.DictReader(io.StringIO(lzma.decompress(GOLDEN.read_bytes()).decode("utf-8"))))
ARCHITECTURES = [name for name in ROWS[0] if name.startswith("sm_")]

MISSING = {
    *(f"wgmma.{name}" for name in ("f16", "bf16", "tf32", "fp8", "int8", "b1")),
    *(f"wgmma.sp.{name}" for name in ("f16", "bf16", "tf32", "fp8", "int8")),
    *(f"tcgen05.{sparse}{kind}"
      for sparse in ("", "sp.")
      for kind in ("tf32", "f16", "ti16", "i8", "f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")),
    *(f"tcgen05.ws.{sparse}{kind}" for sparse in ("", "sp.") for kind in ("tf32", "f16", "ti16", "i8", "f8f6f4")),
    *(f"wmma.{name}" for name in ("f16", "bf16", "tf32", "f64", "int8", "int4", "b1")),
}  # fmt: skip
"""Families of the golden file that the catalog does not hold yet."""

STARTED = {"wgmma.fp8"}
"""Families of which the catalog holds a part; they count as missing."""

DONE = [row for row in ROWS if row["family"] not in MISSING]


def matrix_opcodes(cell: str) -> dict[str, int]:
    """How often each matrix opcode stands in a cell; the steps of one sequence are one opcode."""
    counts: Counter[str] = Counter()
    for opcode, count in re.findall(r"\b([A-Z]+MMA\.[\w.]+) x(\d+)", cell):
        counts[re.sub(r"\.STEP\d", "", opcode)] += int(count)
    return dict(counts)


def compiled(cell: str) -> tuple[object, ...]:
    """A cell as what a lowering says: kind, opcodes with counts, conversion, last add, metadata sort."""
    kind = "emulated" if "[emulated" in cell else "split" if "[split" in cell else "native"
    convert = "f16" if "F2FP.F16" in cell else None
    add = re.search(r"\b(FADD|HADD2) x", cell)
    sort = re.search(r"\[metadata sort: call (\w+)", cell)
    return kind, matrix_opcodes(cell), convert, add and add[1], sort and sort[1]


def said(way: Lowering) -> tuple[object, ...]:
    """A lowering as ``compiled`` gives a cell."""
    opcodes = {name.partition("[")[0]: way.count for name in way.primitives}
    return way.kind, opcodes, way.convert, way.add, way.sort


def described(made: Instruction) -> tuple[object, ...]:
    """What the golden file says of a form apart from its opcode."""
    types = (made.d, made.a, made.b, made.c)
    return (made.family, made.m, made.n, made.k, *types, bool(made.chunk), made.scale or "")


def test_every_family_is_done_or_named_as_missing() -> None:
    held = {made.family for name in ARCHITECTURES for made in instructions(name)}
    known = {row["family"] for row in ROWS}
    assert known >= MISSING
    assert held - STARTED == known - MISSING
    assert set(ARCHITECTURES) == {name for name in architectures() if name.startswith("sm_")}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_lowerings_are_what_the_compiler_made(architecture: str) -> None:
    expected = {row["ptx"]: compiled(row[architecture]) for row in DONE if row[architecture]}
    held = [made for made in instructions(architecture) if made.family not in STARTED]
    found = {made.id: said(lowering(made, architecture)) for made in held}
    assert found.keys() - expected.keys() == set()
    assert expected.keys() - found.keys() == set()
    assert {name: (found[name], expected[name]) for name in found if found[name] != expected[name]} == {}
    stamp = "ptxas 12.9.86" if architecture == "sm_70" else "ptxas 13.5.37"
    assert {lowering(made, architecture).toolchain for made in instructions(architecture)} == {stamp}


def test_shapes_types_and_scales() -> None:
    assert len({row["ptx"] for row in DONE}) == len(DONE)
    for row in DONE:
        shape = (int(row[name]) for name in "mnk")
        types = (row[f"{name}_type"] for name in "dabc")
        expected = (row["family"], *shape, *types, bool(row["sparse"]), row["scale_type"])
        assert described(instruction(row["ptx"])) == expected, row["ptx"]


def test_scale_and_metadata_sizes() -> None:
    """PTX ISA 9.1: NX gives N scales a row of A; metadata covers 4 lanes, 2 of tf32, 8 of 4 bits."""
    default = {"mxf8f6f4": 1, "mxf4": 2}
    for row in DONE:
        made = instruction(row["ptx"])
        if made.scale:
            scales = int(row["scale_vec"].rstrip("X") or default[row["block_scale"]])
            assert made.k // made.scale_size == scales, made.id
        if made.chunk:
            wide = "int4" in made.family or "mxf4" in made.family
            assert made.chunk == (8 if wide else 2 if made.a == "tf32" else 4), made.id
