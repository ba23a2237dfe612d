"""A kernel of ``wmma`` as a function on batches: its own phases, lane by lane, and a unit that reads shared memory.

The unit takes addresses, layouts and strides from the rendered statements, and reads memory as the PTX text says
(PTX ISA 9.1, matrix storage for WMMA): element (i, j) of a matrix in rows lies ``i * stride + j`` elements from its
address, in columns ``j * stride + i``; elements below a byte are packed, the first in the lowest bits.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emulator.host import Operands, host, operands
from emulator.registers import Array
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source

Unit = Callable[[dict[str, Array]], Array]
"""D (items, m, n) of the operands of many items, as the tensor core would see them."""
AT_ONCE = 4096
ELEMENT = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16,
           "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
"""Bits of an element in memory."""
EXPORTS = """
extern "C" void emulated_load(const Operands* given, Word64 first, Word64 items, Byte* memory, Word64 apart) {
  for (Word64 i = 0; i < items; ++i, memory += apart)
    for (int lane = 0; lane < LANES; ++lane) fill_all(*given, first + i, lane, memory);
}
extern "C" void emulated_store(const Operands* given, Word64 first, Word64 items, const Byte* memory, Word64 apart) {
  for (Word64 i = 0; i < items; ++i, memory += apart)
    for (int lane = 0; lane < LANES; ++lane) drain_all(*given, first + i, lane, memory);
}
extern "C" const int emulated_places[] = {
  MatrixA::start, MatrixB::start, MatrixC::start, MatrixD::start, WARP_BYTES, WARPS * WARP_BYTES, ALIGNMENT};
"""


@dataclass(frozen=True)
class Access:
    """One wmma.load or wmma.store of the statement: where, in which order, how many registers."""

    operand: str
    by_row: bool
    fmt: str
    registers: int
    start: int
    stride: int
    names: str

    def bits(self, rows: int, columns: int) -> Array:
        """The first bit of each element (rows, columns) from the warp's memory on."""
        row, column = np.indices((rows, columns))
        element = row * self.stride + column if self.by_row else column * self.stride + row
        return self.start * 8 + element * ELEMENT[self.fmt]

    def check(self) -> None:
        """Each line starts on a multiple of the fragment's bytes."""
        fragment = self.registers * max(ELEMENT[self.fmt], 32) // 8
        assert self.start % fragment == 0, f"{self.operand} starts at {self.start}, a fragment has {fragment} bytes"
        assert self.stride * ELEMENT[self.fmt] // 8 % fragment == 0, f"{self.operand}: lines off the fragment's bytes"


def accesses(text: str, made: Instruction, starts: dict[str, int]) -> dict[str, Access]:
    """The loads and the store of a rendered source, and that the operation takes and gives their registers."""
    given = re.findall(r'"r"\(start \+ Matrix(\w)::start\)', text)
    shape = f"m{made.m}n{made.n}k{made.k}"
    found = {}
    for match in re.finditer(
        rf'"wmma\.(load|store)\.(\w)\.sync\.aligned\.(row|col)\.{shape}\.shared\.(\w+) (.*), (\d+);', text
    ):
        _, name, order, fmt, rest, stride = match.groups()
        numbered = re.search(r"\[%(\d+)\]", rest)
        names = re.search(r"\{[^}]*\}", rest)
        assert numbered, rest
        assert names, rest
        start = starts[given[int(numbered[1])].lower()]
        found[name] = Access(name, order == "row", fmt, names[0].count(",") + 1, start, int(stride), names[0])
    taken = ", ".join(found[name].names for name in "dabc")
    assert f'"{made.opcode} {taken};' in text, "the operation takes other registers than were loaded"
    return found


class Warp:
    """The kernel of one source on the host, with the shared memory of a warp, item by item."""

    def __init__(self, source: Source, made: Instruction, items: int = 1) -> None:
        self.made, self.library = made, host(source, EXPORTS, items)
        *starts, self.size, every, alignment = (ctypes.c_int * 7).in_dll(self.library, "emulated_places")
        assert self.size % alignment == 0, "the second warp's memory is off the alignment"
        assert every <= 48 << 10, "more shared memory than a plain launch may have"
        self.accesses = accesses(source.text, made, dict(zip("abcd", starts, strict=True)))
        self.before = np.random.default_rng(2).integers(0, 256, 2 * self.size, np.uint8)
        self.memory = self.before[None]

    def read(self, name: str, rows: int, columns: int) -> Array:
        access = self.accesses[name]
        access.check()
        bit, width = access.bits(rows, columns), ELEMENT[access.fmt]
        assert (bit + width).max() <= 8 * self.size, f"{name} is read behind the warp's memory"
        out = np.zeros((len(self.memory), rows, columns), np.uint64)
        for number in range(max(width // 8, 1)):
            out |= self.memory[:, bit // 8 + number].astype(np.uint64) << np.uint64(8 * number)
        return out >> (bit % 8).astype(np.uint64) & np.uint64((1 << width) - 1)

    def write(self, d: Array) -> None:
        access = self.accesses["d"]
        access.check()
        byte = access.bits(*d.shape[1:]) // 8
        for number in range(ELEMENT[access.fmt] // 8):
            self.memory[:, byte + number] = d >> np.uint64(8 * number) & np.uint64(255)

    def run(self, given: Operands, first: int, items: int, unit: Unit) -> None:
        """Items into shared memory by 32 lanes, through the unit, and back by 32 lanes."""
        made = self.made
        self.memory = np.tile(self.before, (items, 1))
        moved = (
            ctypes.byref(given), ctypes.c_ulonglong(first), ctypes.c_ulonglong(items),
            ctypes.c_void_p(self.memory.ctypes.data), ctypes.c_ulonglong(self.memory.shape[1]),
        )  # fmt: skip
        self.library.emulated_load(*moved)
        behind = slice(self.size, None)
        assert (self.memory[:, behind] == self.before[behind]).all(), "bytes are written behind the warp's memory"
        shapes = {"a": (made.m, made.k), "b": (made.k, made.n), "c": (made.m, made.n)}
        self.write(unit({name: self.read(name, *shape) for name, shape in shapes.items()}))
        self.library.emulated_store(*moved)


def run_wmma(source: Source, made: Instruction, batch: Batch, unit: Unit) -> NDArray[np.unsignedinteger]:
    """D of a batch: each item into shared memory by 32 lanes, through the unit, and back by 32 lanes."""
    warp = Warp(source, made, batch.size)
    d = np.full((batch.size, made.m, made.n), 0xA5, made.formats()["d"].dtype)
    given = operands(batch, d, batch.size)
    for first in range(0, batch.size, AT_ONCE):
        warp.run(given, first, min(AT_ONCE, batch.size - first), unit)
    return d
