"""NVIDIA's layouts against the Shape and Stride pairs of CuTe, restated as data.

Source: CUTLASS 7107b0553, include/cute/atom/mma_traits_sm70 to sm120 and
copy_traits_sm100.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.cute import places
from mmaprobe.catalog import layouts
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.transfers import transfer
from mmaprobe.errors import UsageError


def form(
    opcode: str, m: int, n: int, k: int, a: str, b: str, d: str, chunk: int = 0, place: str = "regs"
) -> Instruction:
    return Instruction(opcode, opcode, "", m, n, k, a, b, d, d, modifiers=(("a", place),), chunk=chunk)


C16 = (((4, 8), (2, 2)), ((32, 1), (16, 8)))
MMA = "mma.sync.aligned"
GMMA = "wgmma.mma_async.sync.aligned"
A_AND_D = [
    # opcode, m, n, k, format of A and B, of D, operand, CuTe's shape and stride over (rows, columns), rows first
    (MMA, 16, 8, 16, "f16", "f32", "d", *C16),
    (MMA, 16, 8, 16, "f16", "f16", "d", *C16),
    (MMA, 8, 8, 16, "s8", "s32", "d", ((4, 8), 2), ((16, 1), 8)),
    (MMA, 16, 8, 8, "f16", "f32", "a", ((4, 8), (2, 2)), ((32, 1), (16, 8))),
    (MMA, 16, 8, 16, "bf16", "f32", "a", ((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))),
    (MMA, 16, 8, 4, "tf32", "f32", "a", ((4, 8), 2), ((16, 1), 8)),
    (MMA, 16, 8, 8, "tf32", "f32", "a", ((4, 8), (2, 2)), ((16, 1), (8, 64))),
    (MMA, 16, 8, 4, "f64", "f64", "a", ((4, 8), 2), ((16, 1), 8)),
    (MMA, 16, 8, 8, "f64", "f64", "a", ((4, 8), (2, 2)), ((16, 1), (8, 64))),
    (MMA, 16, 8, 16, "f64", "f64", "a", ((4, 8), (2, 4)), ((16, 1), (8, 64))),
    (MMA, 16, 8, 16, "s8", "s32", "a", ((4, 8), (4, 2)), ((64, 1), (16, 8))),
    (MMA, 16, 8, 32, "e4m3", "f32", "a", ((4, 8), (4, 2, 2)), ((64, 1), (16, 8, 256))),
    (MMA + ".kind::f8f6f4", 16, 8, 32, "e2m1", "f32", "a", ((4, 8), (4, 2, 2)), ((64, 1), (16, 8, 256))),
    (MMA, 16, 8, 32, "s4", "s32", "a", ((4, 8), (8, 2)), ((128, 1), (16, 8))),
    (MMA, 16, 8, 64, "e2m1", "f32", "a", ((4, 8), (8, 2, 2)), ((128, 1), (16, 8, 512))),
    (MMA, 16, 8, 128, "b1", "s32", "a", ((4, 8), (32, 2)), ((512, 1), (16, 8))),
    (MMA, 16, 8, 256, "b1", "s32", "a", ((4, 8), (32, 2, 2)), ((512, 1), (16, 8, 2048))),
    (MMA, 8, 8, 16, "u8", "s32", "a", ((4, 8), 4), ((32, 1), 8)),
    (MMA, 8, 8, 32, "u4", "s32", "a", ((4, 8), 8), ((64, 1), 8)),
    (MMA, 8, 8, 128, "b1", "s32", "a", ((4, 8), 32), ((256, 1), 8)),
    (GMMA, 64, 256, 16, "f16", "f32", "d", ((4, 8, 4), (2, 2, 32)), ((128, 1, 16), (64, 8, 512))),
    (GMMA, 64, 256, 16, "f16", "f16", "d", ((4, 8, 4), (2, 2, 32)), ((128, 1, 16), (64, 8, 512))),
    (GMMA, 64, 8, 16, "f16", "f32", "a", ((4, 8, 4), (2, 2, 2)), ((128, 1, 16), (64, 8, 512))),
    (GMMA, 64, 8, 8, "tf32", "f32", "a", ((4, 8, 4), (2, 2)), ((64, 1, 16), (8, 256))),
    (GMMA, 64, 8, 32, "e4m3", "f32", "a", ((4, 8, 4), (4, 2, 2)), ((256, 1, 16), (64, 8, 1024))),
]  # fmt: skip
B = [
    (MMA, 16, 8, 8, "f16", "f32", "b", ((4, 8), 2), ((16, 1), 8)),
    (MMA, 16, 8, 16, "f16", "f32", "b", ((4, 8), (2, 2)), ((16, 1), (8, 64))),
    (MMA, 16, 8, 8, "tf32", "f32", "b", ((4, 8), 2), ((8, 1), 32)),
    (MMA, 16, 8, 16, "f64", "f64", "b", ((4, 8), 4), ((8, 1), 32)),
    (MMA, 8, 8, 4, "f64", "f64", "b", ((4, 8), 1), ((8, 1), 0)),
    (MMA, 16, 8, 16, "u8", "s32", "b", ((4, 8), 4), ((32, 1), 8)),
    (MMA, 16, 8, 32, "e5m2", "f32", "b", ((4, 8), (4, 2)), ((32, 1), (8, 128))),
    (MMA, 16, 8, 32, "s4", "s32", "b", ((4, 8), 8), ((64, 1), 8)),
    (MMA, 16, 8, 64, "s4", "s32", "b", ((4, 8), (8, 2)), ((64, 1), (8, 256))),
    (MMA, 16, 8, 128, "b1", "s32", "b", ((4, 8), 32), ((256, 1), 8)),
    (MMA, 16, 8, 256, "b1", "s32", "b", ((4, 8), (32, 2)), ((256, 1), (8, 1024))),
]  # fmt: skip


def linear(found: Fragment, **choices: int) -> np.ndarray:
    """Row + rows * column at each place; of B the column number counts as the row."""
    index, sizes = found.coordinates(**choices), dict(found.axes)
    first, second = ("n", "k") if found.operand == "b" else tuple(sizes)[-2:]
    return index[first] + sizes[first] * index[second]


@pytest.mark.parametrize("row", A_AND_D + B, ids=["-".join(map(str, row[:7])) for row in A_AND_D + B])
def test_registers_equal_cute(row: tuple[Any, ...]) -> None:
    opcode, m, n, k, ab, d, operand, shape, stride = row
    found = layouts.layout(form(f"{opcode}.m{m}n{n}k{k}.x", m, n, k, ab, ab, d), "", operand)
    assert found.status == "checked"
    assert (linear(found) == places(shape, stride)).all()


@pytest.mark.parametrize(
    ("opcode", "k", "fmt", "chunk", "shape", "stride"),
    [
        ("mma.sp.sync", 64, "e4m3", 4, ((2, 2, 8), 32), ((8, 512, 1), 16)),
        ("mma.sp.sync", 128, "s4", 8, ((2, 2, 8), 64), ((8, 1024, 1), 16)),
        ("wgmma.mma_async.sp", 64, "e4m3", 4, ((2, 2, 8, 4), 32), ((8, 2048, 1, 16), 64)),
    ],
)
def test_metadata_equals_cute(opcode: str, k: int, fmt: str, chunk: int, shape: Any, stride: Any) -> None:
    """Each lane's 32 bits cover the logical columns that CuTe's ELayout gives it."""
    m = 64 if opcode.startswith("wgmma") else 16
    found = layouts.layout(form(opcode, m, 8, k, fmt, fmt, "f32", chunk), "", "metadata")
    logical = places(shape, stride)
    assert (logical // m // chunk == np.repeat(found.coordinates()["chunk"], chunk, axis=1)).all()
    assert (logical % m == np.repeat(found.coordinates()["m"], chunk, axis=1)).all()


@pytest.mark.parametrize(
    ("opcode", "k", "fmt", "chunk", "shape", "stride"),
    [
        ("wgmma.mma_async.sp", 32, "f16", 4, ((2, 2, 8, 4), (16, 2)), ((1024, 0, 1, 16), (64, 8))),
        ("wgmma.mma_async.sp", 16, "tf32", 2, ((2, 2, 8, 4), (8, 2)), ((512, 0, 1, 16), (64, 8))),
    ],
)
def test_selected_metadata_equals_cute(opcode: str, k: int, fmt: str, chunk: int, shape: Any, stride: Any) -> None:
    """CuTe has both pairs of a quad hold the same; the selector names the pair that is read."""
    found = layouts.layout(form(opcode, 64, 8, k, fmt, fmt, "f32", chunk), "", "metadata")
    logical = places(shape, stride)
    for selector in (0, 1):
        held = np.repeat(found.held(selector=selector), chunk, axis=1)
        index = found.coordinates(selector=selector)
        assert (logical // 64 // chunk == np.repeat(index["chunk"], chunk, axis=1))[held].all()
        assert (logical % 64 == np.repeat(index["m"], chunk, axis=1))[held].all()
        assert {int(lane) % 4 // 2 for lane in np.argwhere(held)[:, 0]} == {selector}


@pytest.mark.parametrize(
    ("k", "fmt", "chunk", "shape", "stride"),
    [
        (64, "e4m3", 4, ((4, 8), (8, 2, 2)), ((128, 1), (16, 8, 512))),
        (128, "s4", 8, ((4, 8), (16, 2, 2)), ((256, 1), (16, 8, 1024))),
    ],
)
def test_sparse_a_equals_cute(k: int, fmt: str, chunk: int, shape: Any, stride: Any) -> None:
    """CuTe counts uncompressed columns, of which half are stored: the chunks must agree."""
    found = layouts.layout(form("mma.sp.sync", 16, 8, k, fmt, fmt, "f32", chunk), "", "a")
    logical = places(shape, stride)
    index = found.coordinates()
    stored = np.repeat(index["k"], 2, axis=1)
    assert (logical // 16 // chunk == stored // (chunk // 2)).all()
    assert (logical % 16 == np.repeat(index["m"], 2, axis=1)).all()


@pytest.mark.parametrize(
    ("operand", "shape", "stride", "lanes"),
    [
        ("scale_a", ((2, 2, 8), 64), ((8, 0, 1), 16), [0, 1]),
        ("scale_b", ((4, 8), 64), ((0, 1), 8), [0]),
    ],
)
def test_scale_lanes_equal_cute(operand: str, shape: Any, stride: Any, lanes: list[int]) -> None:
    """Every lane of a quad that CuTe gives a row (column) is the one that some thread id picks."""
    made = Instruction("x", "mma.sync.block_scale", "", 16, 8, 64, "e2m1", "e2m1", "f32", "f32",
                       scale="ue8m0", scale_size=32)  # fmt: skip
    found = layouts.layout(made, "", operand)
    rows = places(shape, stride) % (16 if operand == "scale_a" else 8)
    for thread in dict(found.choices)["thread_id"]:
        held = found.held(thread_id=thread, byte_id=0)
        index = found.coordinates(thread_id=thread, byte_id=0)["m" if operand == "scale_a" else "n"]
        assert (index == rows[:, :4])[held].all()
        base = 2 * thread if operand == "scale_a" else thread
        assert sorted({int(lane) % 4 for lane in np.argwhere(held)[:, 0]}) == [base + lane for lane in lanes]


VOLTA = [
    ("row.col.f32.f16.f16.f32", "f32", "a", (8, 4), (1, 8)),
    ("row.col.f32.f16.f16.f32", "f32", "b", (8, 4), (1, 8)),
    ("col.row.f32.f16.f16.f32", "f32", "a", ((4, 2), 4), ((8, 4), 1)),
    ("col.row.f32.f16.f16.f32", "f32", "b", ((4, 2), 4), ((8, 4), 1)),
    ("row.col.f16.f16.f16.f16", "f16", "d", (8, 8), (1, 8)),
    ("row.col.f32.f16.f16.f32", "f32", "d", ((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32))),
]


@pytest.mark.parametrize(("suffix", "d", "operand", "shape", "stride"), VOLTA)
def test_volta_equals_cute(suffix: str, d: str, operand: str, shape: Any, stride: Any) -> None:
    """CuTe's thread t of a product is lane (t & 3) + 16 (t >> 2), product p 4 p further."""
    found = layouts.layout(form(f"{MMA}.m8n8k4.{suffix}", 8, 8, 4, "f16", "f16", d), "sm_70", operand)
    expected = places(shape, stride)
    for thread in range(8):
        for product in range(4):
            lane = (thread & 3) + 16 * (thread >> 2) + 4 * product
            assert (linear(found)[lane] == expected[thread]).all()
            assert (found.coordinates()["product"][lane] == product).all()


TRANSFERS = [
    ("16x64b", 128, ((2, 2, 8), (32, 2)), ((1024, 32, 128), (1, 64))),
    ("16x128b", 256, ((4, 8), (32, 2, 2)), ((32, 256), (1, 2048, 128))),
    ("16x256b", 512, ((4, 8), (64, 2, 2)), ((64, 512), (1, 4096, 256))),
    ("16x32bx2", 128, ((16, 2), 64), ((128, 64), 1)),
    ("32x32b", 64, (32, 64), (64, 1)),
]


@pytest.mark.parametrize(("shape", "row_bits", "sizes", "stride"), TRANSFERS)
def test_transfers_equal_cute(shape: str, row_bits: int, sizes: Any, stride: Any) -> None:
    """tcgen05.ld .x2: register bits to bits of tensor memory's lanes."""
    found = transfer(shape, 2)
    bits = places(sizes, stride)[:, ::32]
    assert bits.shape == (32, found.registers)
    index = found.coordinates()
    assert (index["lane"] == bits // row_bits).all()
    assert (index["column"] == bits % row_bits // 32).all()


@pytest.mark.parametrize(
    ("shape", "registers"), [("32x32b", 1), ("16x64b", 1), ("16x128b", 2), ("16x256b", 4), ("16x32bx2", 1)]
)
def test_transfers_cover_their_columns(shape: str, registers: int) -> None:
    for count in (1, 2, 8, 128 // registers):
        found = transfer(shape, count)
        assert found.registers == registers * count
        index = found.coordinates()
        seen = np.bincount((index["lane"] * found.shape[1] + index["column"]).ravel(), minlength=found.elements)
        assert (seen == 1).all()
    with pytest.raises(UsageError, match="at most 128"):
        transfer(shape, 256)
