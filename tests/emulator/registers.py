"""What the tensor core of one warp sees: registers of 32 lanes to matrices and back, by CuTe's layouts.

A value's place in its register: elements from the low bits up, of kind f8f6f4 one byte each, e2m1 there two bits up
(PTX ISA 9.1, mma, "Matrix fragments for mma.m16n8k32 with .kind::f8f6f4").  Metadata and scales: the PTX text's lanes
(section 9.7.14.6, "Sparse matrix storage"; block scaling, "Selecting Matrices' Scale Factors").
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator import cute
from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction

Array = NDArray[Any]
BITS = {"tf32": 32, "ue4m3": 8, "ue8m0": 8}


class WarpUnit:
    """The registers of a warp as the operands of one ``mma.sync``; ``made`` says which."""

    def __init__(self, made: Instruction) -> None:
        self.made = made
        self.volta = made.k == 4 and made.a == "f16"
        self.products = 4 if self.volta else 1
        self.lanes = 32

    def word(self, operand: str) -> int:
        """Bytes of an operand's registers."""
        fmt = self.made.formats().get(operand)
        return 8 if fmt is not None and fmt.bits == 64 else 4

    def element(self, operand: str) -> tuple[int, int, int]:
        """(bits a place, bits of the code, shift) of an operand."""
        name = self.made.formats()[operand].name
        width = BITS.get(name, formats.get(name).bits)
        if operand in ("a", "b") and "f8f6f4" in self.made.opcode:
            return 8, width, 2 if name == "e2m1" else 0
        return width, width, 0

    def where(self, operand: str) -> tuple[Array, Array]:
        """(product, row + rows * column) of each lane and value; of B the column counts as the row."""
        made, bits = self.made, self.element(operand)[0]
        per = max(32 // bits, 1)
        if self.volta:
            layout = made.opcode.split(".m8n8k4.")[1].split(".")[:2]
            by_line = layout[operand == "b"] == ("row" if operand == "a" else "col")
            product, place = cute.volta(operand, by_line, made.formats()[operand].name)
            return product[:, None], place
        if operand in ("c", "d"):
            return np.zeros((1, 1), int), cute.rows_by_n(made.m, made.n)
        lines, k = (made.m, made.selected) if operand == "a" else (made.n, made.k)
        return np.zeros((1, 1), int), cute.lines_by_k(lines, k, per)

    def shape(self, operand: str) -> tuple[int, int]:
        """Rows and columns, as the array has them."""
        made = self.made
        sizes = {"a": (made.m, made.selected), "b": (made.k, made.n), "c": (made.m, made.n), "d": (made.m, made.n)}
        return sizes[operand]

    def index(self, operand: str) -> tuple[Array, Array, Array]:
        """(product, row, column) of the array for each lane and value."""
        product, place = self.where(operand)
        rows, columns = self.shape(operand)
        first = columns if operand == "b" else rows
        line, other = place % first, place // first
        row, column = (other, line) if operand == "b" else (line, other)
        return np.broadcast_to(product, place.shape), row, column

    def rebuilt(self, operand: str, words: Array) -> Array:
        """The matrices (steps, products, rows, columns) that the registers (steps, lanes, registers) hold."""
        bits, width, shift = self.element(operand)
        register = words.dtype.itemsize * 8
        source, values = sources(self.made, operand)
        bit = source % values * bits
        at = source // values * words.shape[2] + bit // register
        held = np.take(words.reshape(len(words), -1), at, 1) >> (bit % register + shift).astype(words.dtype)
        out = held.astype(np.uint64) & np.uint64((1 << width) - 1)
        out[:, source < 0] = 1 << 63
        return out.reshape(len(words), self.products, *self.shape(operand))

    def packed(self, d: Array, words: Array) -> None:
        """Write D (steps, products, m, n) into the registers (steps, lanes, registers)."""
        bits, _, _ = self.element("d")
        register = words.dtype.itemsize * 8
        place = np.ravel_multi_index(self.index("d"), d.shape[1:])
        values = np.take(d.reshape(len(d), -1).astype(words.dtype), place, 1)
        words[:] = 0
        for value in range(values.shape[2]):
            words[..., value * bits // register] |= values[..., value] << words.dtype.type(value * bits % register)

    def metadata(self, words: Array) -> Array:
        """Items (steps, rows, chunks) for selector 0: which lanes of a quad supply them, and which of their bits."""
        made, word = self.made, words[..., 0].reshape(-1, 8, 4)
        chunks = made.k // made.chunk
        nibbles = word[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
        out = np.zeros((len(words), 16, chunks), np.uint64)
        for row in range(16):
            quad, high = nibbles[:, row % 8], row // 8
            half = slice(4 * high, 4 * high + 4)
            if chunks == 4:
                out[:, row] = quad[:, 0, half]
            elif chunks == 8 and made.a in ("f16", "bf16", "tf32"):
                out[:, row] = np.concatenate([quad[:, 0, half], quad[:, 1, half]], axis=1)
            elif chunks == 8:
                out[:, row] = quad[:, high]
            else:
                out[:, row] = np.concatenate([quad[:, high], quad[:, high + 2]], axis=1)
        return out

    def scales(self, operand: str, words: Array) -> Array:
        """Scales (steps, rows, k-blocks) or (steps, k-blocks, columns) for thread id 0 and byte id 0."""
        count = self.made.k // self.made.scale_size
        quads = words[..., 0].copy().view(np.uint8).reshape(-1, 8, 4, 4)
        if operand == "scale_b":
            return quads[:, :, 0, :count].swapaxes(1, 2).astype(np.uint64)
        return np.concatenate([quads[:, :, 0, :count], quads[:, :, 1, :count]], axis=1).astype(np.uint64)


@cache
def sources(made: Instruction, operand: str) -> tuple[Array, int]:
    """The number (lane, value) of what comes to each place of the matrices, -1 where nothing does; values of a lane."""
    core = WarpUnit(made)
    index = core.index(operand)
    out = np.full((core.products, *core.shape(operand)), -1)
    out[index] = np.arange(index[0].size).reshape(index[0].shape)
    return out.reshape(-1), index[0].shape[1]
