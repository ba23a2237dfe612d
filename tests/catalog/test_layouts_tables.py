"""NVIDIA's tables from element to place (PTX ISA's wording), against the shipped formulas from place to element.

Metadata and scales of mma.sync: which lane supplies an item, at which bit.
Tensor memory: lane and column of D, of the scales' bytes and of the metadata.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mmaprobe.catalog import layouts
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction

Place = tuple[int, int]


def places(found: Fragment, **choices: int) -> dict[tuple[int, ...], set[Place]]:
    """(lane, first bit of the lane's registers) of each element."""
    held, index = found.held(**choices), found.coordinates(**choices)
    out: dict[tuple[int, ...], set[Place]] = {}
    for lane, slot in np.argwhere(held).tolist():
        element = tuple(int(index[axis][lane, slot]) for axis, _ in found.axes)
        out.setdefault(element, set()).add((lane, slot * found.bits))
    assert len(out) == found.elements
    return out


def one_lane(m: int, c: int, f: int) -> Place:
    return 4 * (m % 8) + f, 16 * (m // 8) + 4 * c


def two_lanes(m: int, c: int, f: int) -> Place:
    return 4 * (m % 8) + 2 * f + c // 4, 16 * (m // 8) + 4 * (c % 4)


def two_rows(m: int, c: int, f: int) -> Place:
    return 4 * (m % 8) + 2 * f + m // 8, 4 * c


def all_lanes(m: int, c: int, f: int) -> Place:
    return 4 * (m % 8) + 2 * (c // 8) + m // 8, 4 * (c % 8)


METADATA = [
    ("f16", 16, 4, 4, one_lane, 1),
    ("tf32", 8, 2, 4, one_lane, 1),
    ("bf16", 32, 4, 2, two_lanes, 1),
    ("tf32", 16, 2, 2, two_lanes, 1),
    ("s8", 32, 4, 2, two_rows, 1),
    ("u4", 64, 8, 2, two_rows, 1),
    ("e5m2", 64, 4, 1, all_lanes, 1),
    ("s4", 128, 8, 1, all_lanes, 1),
    ("e2m1", 128, 8, 1, all_lanes, 1),
    ("f16", 32, 4, 2, two_lanes, 4),
    ("tf32", 16, 2, 2, two_lanes, 4),
    ("u8", 64, 4, 1, all_lanes, 4),
]


@pytest.mark.parametrize(("fmt", "k", "chunk", "selectors", "rule", "warps"), METADATA)
def test_metadata(fmt: str, k: int, chunk: int, selectors: int, rule: Callable[..., Place], warps: int) -> None:
    """One warp of mma.sp, and the forms that wgmma shares with it, sixteen rows a warp."""
    opcode = "mma.sp.sync" if warps == 1 else "wgmma.mma_async.sp"
    made = Instruction("x", opcode, "", 16 * warps, 8, k, fmt, fmt, "f32", "f32", chunk=chunk)
    found = layouts.layout(made, "", "metadata")
    assert len(dict(found.choices)["selector"]) == selectors
    for f in range(selectors):
        got = places(found, selector=f)
        for (m, c), where in got.items():
            lane, bit = rule(m % 16, c, f)
            assert where == {(lane + 32 * (m // 16), bit)}


@pytest.mark.parametrize(
    ("count", "size", "identifiers"), [(1, 64, (0, 1, 2, 3)), (2, 32, (0, 2)), (4, 16, (0,))], ids=["1X", "2X", "4X"]
)
def test_scales(count: int, size: int, identifiers: tuple[int, ...]) -> None:
    """SFA of row g + 8h: lane 4g + 2 tA + h; SFB of column g: lane 4g + tB; byte id + j is scale j."""
    made = Instruction("x", "mma.sync.block_scale", "", 16, 8, 64, "e2m1", "e2m1", "f32", "f32",
                       scale="ue8m0", scale_size=size)  # fmt: skip
    for byte in identifiers:
        for thread in range(4):
            wanted = {(j, n): {(4 * n + thread, 8 * (byte + j))} for n in range(8) for j in range(count)}
            assert places(layouts.layout(made, "", "scale_b"), thread_id=thread, byte_id=byte) == wanted
        for thread in range(2):
            rule = {
                (m, j): {(4 * (m % 8) + 2 * thread + m // 8, 8 * (byte + j))} for m in range(16) for j in range(count)
            }
            assert places(layouts.layout(made, "", "scale_a"), thread_id=thread, byte_id=byte) == rule


TMEM: list[tuple[str, str, int, Callable[[int, int, int], Place]]] = [
    ("D", ".cta_group::1", 128, lambda m, n, size: (m, n)),
    ("D", ".ws.cta_group::1", 128, lambda m, n, size: (m, n)),
    ("F", ".cta_group::1", 64, lambda m, n, size: (m % 16 + 32 * (m // 16), n)),
    ("E", ".ws.cta_group::1", 64, lambda m, n, size: (m + 64 * (n // (size // 2)), n % (size // 2))),
    ("G", ".ws.cta_group::1", 32, lambda m, n, size: (m + 32 * (n // (size // 4)), n % (size // 4))),
    ("A", ".cta_group::2", 256, lambda m, n, size: (128 * (m // 128) + m % 128, n)),
    (
        "B",
        ".cta_group::2",
        128,
        lambda m, n, size: (128 * (m // 64) + m % 64 + 64 * (n // (size // 2)), n % (size // 2)),
    ),
]


@pytest.mark.parametrize(("name", "form", "m", "rule"), TMEM)
@pytest.mark.parametrize("d", ["f32", "f16"])
def test_results_in_tensor_memory(name: str, form: str, m: int, rule: Callable[[int, int, int], Place], d: str) -> None:
    """One element a column, f16 in its low half."""
    opcode = f"tcgen05.mma{form}.kind::f16"
    found = layouts.layout(Instruction("x", opcode, "", m, 64, 16, "f16", "f16", d, d), "", "d")
    assert found.name == f"tmem.{name}"
    for (row, column), where in places(found).items():
        lane, at = rule(row, column, 64)
        assert where == {(lane, 32 * at)}
    if name == "F":
        assert {lane % 32 // 16 for where in places(found, half=1).values() for lane, _ in where} == {1}


@pytest.mark.parametrize(("vec", "size", "identifiers"), [("2X", 32, (0, 2)), ("4X", 16, (0,))])
def test_scales_in_tensor_memory(vec: str, size: int, identifiers: tuple[int, ...]) -> None:
    """Row i: lane i % 32 of all four groups, column i / 32, byte id + j."""
    opcode = f"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::{vec}"
    made = Instruction("x", opcode, "", 128, 40, 64, "e2m1", "e2m1", "f32", "f32", scale="ue8m0", scale_size=size)
    for operand, axis in (("scale_a", 0), ("scale_b", 1)):
        for byte in identifiers:
            for element, where in places(layouts.layout(made, "", operand), byte_id=byte).items():
                i, j = element[axis], element[1 - axis]
                assert where == {(i % 32 + 32 * copy, 32 * (i // 32) + 8 * (byte + j)) for copy in range(4)}


@pytest.mark.parametrize(("m", "form", "copies"), [(128, "", 1), (64, ".ws", 2), (32, ".ws", 4)])
def test_metadata_in_tensor_memory(m: int, form: str, copies: int) -> None:
    """f16: lane (m % 8) + 8 (k / 16) + 16 (m / 16), bits 16 (m / 8 & 1) + 4 c; i8: lane m, bits 4 c."""
    head = f"tcgen05.mma{form}.sp.cta_group::1.kind::"
    made = Instruction("x", head + "f16", "", m, 64, 32, "f16", "f16", "f32", "f32", chunk=4)
    for selector in (0, 1):
        for (row, c), where in places(layouts.layout(made, "", "metadata"), selector=selector).items():
            lane, bit = row % 8 + 8 * (c // 4) + 16 * (row // 16), 32 * selector + 16 * (row // 8 % 2) + 4 * (c % 4)
            assert where == {(lane + m * copy, bit) for copy in range(copies)}
    made = Instruction("x", head + "i8", "", m, 64, 64, "s8", "s8", "s32", "s32", chunk=4)
    for (row, c), where in places(layouts.layout(made, "", "metadata")).items():
        assert where == {(row + m * copy, 4 * c) for copy in range(copies)}
