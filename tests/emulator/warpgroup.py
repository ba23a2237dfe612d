"""A kernel of ``wgmma`` as a function on batches: its own phases, thread by thread, and a unit in between.

The unit takes its operands from the rendered statement, the descriptors' bits, shared memory and the registers; what
those mean comes from ``gmma`` and from CuTe's layouts (mma_traits_sm90_gmma: ``ALayout_*``, ``CLayout_64xN``;
mma_traits_sm90_gmma_sparse: ``ELayout_*``).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emulator import gmma
from emulator.cute import Places, places
from emulator.host import Operands, host, operands
from emulator.registers import BITS, Array
from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source

Unit = Callable[[dict[str, Array]], Array]
"""D (items, m, n) of the operands of many items, as the tensor core would see them."""
START = 0x2A400
"""Where the kernel's shared memory begins here: high enough that the address needs its upper bits."""
GUARD = 1 << 14
"""Bytes around it that the kernel must leave alone."""
AT_ONCE = 1 << 26
"""Bytes of shared memory at a time."""
EXPORTS = """
extern "C" void emulated_load(const Operands* given, Word64 first, Word64 items, Byte* memory, Word64 apart,
                              Registers* of) {
  for (Word64 i = 0; i < items; ++i, memory += apart, of += THREADS) {
    for (int thread = 0; thread < THREADS; ++thread) fill_all(*given, first + i, thread, memory);
    for (int thread = 0; thread < THREADS; ++thread) load_all(*given, first + i, thread, of[thread]);
  }
}
extern "C" void emulated_store(const Operands* given, Word64 first, Word64 items, const Registers* of) {
  for (Word64 i = 0; i < items; ++i, of += THREADS)
    for (int thread = 0; thread < THREADS; ++thread) store_all(*given, first + i, thread, of[thread]);
}
extern "C" void emulated_describe(Word32 start, Word64* of) {
  of[0] = describe_a(start);
  of[1] = describe_b(start);
}
extern "C" const unsigned long emulated_registers[] = {
  offsetof(Registers, a), offsetof(Registers, d), offsetof(Registers, metadata), sizeof(Registers),
  A::registers, D::registers, Metadata::registers, START_B + MatrixB::bytes};
"""


@dataclass(frozen=True)
class Statement:
    """What the rendered statement gives the instruction beside registers and descriptors."""

    a_in_registers: bool
    results: int
    selector: int | None
    scale_d: int
    signs: tuple[int, ...]
    transposed: tuple[int, ...]

    @classmethod
    def of(cls, text: str, made: Instruction) -> Statement:
        """The operands in PTX's order: d, a, b-desc[, metadata, selector], scale-d, then the immediates."""
        line = re.search(rf'"{re.escape(made.opcode)} (.*);', text)
        assert line, "the instruction is not in the source"
        parts = re.findall(r"\{[^}]*\}|[^,{}\s]+", line[1])
        results, a, rest = parts[0].count("%"), parts[1], parts[3:]
        selector = int(rest[1]) if ".sp." in made.opcode else None
        rest = rest[2:] if ".sp." in made.opcode else rest
        predicate = re.search(r"setp\.ne\.b32 (\w+), (\w+), 0;", text)
        assert predicate, "no predicate is set"
        third = re.search(rf"mov\.b32 {predicate[2]}, %%ctaid\.z;", text)  # 0: no grid has a third dimension
        assert rest[0] == predicate[1], "scale-d is another predicate than the one that is set"
        numbers = tuple(map(int, rest[1:]))
        return cls(a[0] == "{", results, selector, 0 if third else int(predicate[2]), numbers[:2], numbers[2:])


def bits_of(made: Instruction, operand: str) -> int:
    """Bits of an operand's element as the unit holds it."""
    name = made.formats()[operand].name
    return BITS.get(name, formats.get(name).bits)


def a_places(depth: int, bits: int) -> Places:
    """``ALayout_64xK``: thread and value to row + 64 * column of the stored A."""
    per = 32 // bits
    return places(((4, 8, 4), (per, 2, depth // (4 * per))), ((64 * per, 1, 16), (64, 8, 256 * per)))


def d_places(n: int) -> Places:
    """``CLayout_64xN``: thread and value to row + 64 * column."""
    return places(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512)))


def metadata_items(made: Instruction, words: Array, selector: int) -> Array:
    """Items (items, 64, chunks): ``ELayout`` names the columns before compression; of 16 bits and tf32 a pair of lanes
    holds them and the selector says which."""
    columns = 8 * made.chunk if made.k // made.chunk == 16 else 4 * made.chunk
    if made.k // made.chunk == 16:
        found = places(((2, 2, 8, 4), columns), ((8, 64 * columns, 1, 16), 64))
    else:
        found = places(((2, 2, 8, 4), (columns, 2)), ((64 * columns, 0, 1, 16), (64, 8)))
        lanes = np.arange(128)
        found = np.where((lanes >> 1 & 1 == selector)[:, None], found, -1)
    out = np.full((len(words), 64, made.k // made.chunk), 99, np.uint64)
    for nibble in range(8):
        place = found[:, nibble * made.chunk]
        held = place >= 0
        value = words[:, held, 0] >> np.uint32(4 * nibble) & np.uint32(15)
        out[:, place[held] % 64, place[held] // 64 // made.chunk] = value
    return out


class Warpgroup:
    """The kernel of one source on the host, with the shared memory and the registers of 128 threads, item by item."""

    def __init__(self, source: Source, made: Instruction, items: int) -> None:
        self.made, self.library = made, host(source, EXPORTS, items)
        self.statement = Statement.of(source.text, made)
        numbers = list((ctypes.c_ulong * 8).in_dll(self.library, "emulated_registers"))
        self.at = dict(zip(("a", "d", "metadata"), numbers[:3], strict=True))
        self.counts = dict(zip(("a", "d", "metadata"), numbers[4:7], strict=True))
        self.shared = numbers[7]
        assert self.statement.results == self.counts["d"]
        assert self.shared <= 48 << 10, "more shared memory than a plain launch may have"
        self.most = max(AT_ONCE // (self.shared + 2 * GUARD), 1)
        self.before = np.random.default_rng(1).integers(0, 256, self.shared + 2 * GUARD, np.uint8)
        self.registers_size = numbers[3]
        words = (ctypes.c_ulonglong * 2)()
        self.library.emulated_describe(START, words)
        self.descriptors = dict(zip("ab", words, strict=True))

    def load(self, given: Operands, first: int, items: int) -> None:
        """Items into shared memory and registers, by 128 threads; nothing beside what the kernel declares."""
        self.memory = np.tile(self.before, (items, 1))
        self.registers = np.full((items, 128, self.registers_size), 0xA5, np.uint8)
        self.library.emulated_load(
            ctypes.byref(given), ctypes.c_ulonglong(first), ctypes.c_ulonglong(items),
            ctypes.c_void_p(self.memory.ctypes.data + GUARD), ctypes.c_ulonglong(self.memory.shape[1]),
            ctypes.c_void_p(self.registers.ctypes.data),
        )  # fmt: skip
        for part in (slice(0, GUARD), slice(GUARD + self.shared, None)):
            assert (self.memory[:, part] == self.before[part]).all(), (
                "bytes are written beside the shared memory that the kernel declares"
            )

    def store(self, given: Operands, first: int, items: int) -> None:
        """D of items from the registers of 128 threads."""
        registers = ctypes.c_void_p(self.registers.ctypes.data)
        self.library.emulated_store(
            ctypes.byref(given), ctypes.c_ulonglong(first), ctypes.c_ulonglong(items), registers
        )

    def words(self, name: str) -> Array:
        start = self.at[name]
        return self.registers[..., start : start + 4 * self.counts[name]].copy().view("<u4")

    def values(self, name: str, bits: int) -> Array:
        """The values of a thread's registers, from the low bits up."""
        each = self.words(name)[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)
        return (each & np.uint32((1 << bits) - 1)).reshape(len(each), 128, -1)

    def seen(self) -> dict[str, Array]:
        """The operands as the unit takes them."""
        made, statement = self.made, self.statement
        out, items = {}, len(self.memory)
        turned = (*((0,) if statement.a_in_registers else ()), *statement.transposed, 0, 0)
        for name, lines, depth in (("a", made.m, made.selected), ("b", made.n, made.k)):
            bits = bits_of(made, name)
            if name == "a" and statement.a_in_registers:
                place = a_places(depth, bits)
                out[name] = np.zeros((items, lines, depth), np.uint64)
                out[name][:, place % lines, place // lines] = self.values("a", bits)
            else:
                mn_major, word = bool(turned[name == "b"]), self.descriptors[name]
                found = gmma.matrix(self.memory, START - GUARD, word, lines, depth, bits, mn_major)
                out[name] = found if name == "a" else found.swapaxes(1, 2)
        if statement.scale_d:
            place = d_places(made.n)
            out["c"] = np.zeros((items, made.m, made.n), np.uint64)
            out["c"][:, place % made.m, place // made.m] = self.values("d", bits_of(made, "d"))
        if statement.selector is not None:
            out["metadata"] = metadata_items(made, self.words("metadata"), statement.selector)
        return out

    def result(self, d: Array) -> None:
        """The accumulator's registers from D."""
        bits, place = bits_of(self.made, "d"), d_places(self.made.n)
        each = d[:, place % self.made.m, place // self.made.m].astype(np.uint32).reshape(len(d), 128, -1, 32 // bits)
        words = np.ascontiguousarray(np.bitwise_or.reduce(each << np.arange(0, 32, bits, dtype=np.uint32), axis=3))
        self.registers[..., self.at["d"] : self.at["d"] + words.shape[2] * 4] = words.view(np.uint8)


def run_warpgroup(source: Source, made: Instruction, batch: Batch, unit: Unit) -> NDArray[np.unsignedinteger]:
    """D of a batch: each item filled and loaded by 128 threads, through the unit, stored by 128 threads."""
    group = Warpgroup(source, made, batch.size)
    d = np.full((batch.size, made.m, made.n), 0xA5, made.formats()["d"].dtype)
    given = operands(batch, d, batch.size)
    for first in range(0, batch.size, group.most):
        items = min(group.most, batch.size - first)
        group.load(given, first, items)
        group.result(unit(group.seen()))
        group.store(given, first, items)
    return d
