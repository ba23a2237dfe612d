"""A kernel of ``mma.sync`` as a function on batches: its own loads and stores, and a unit in between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from emulator.host import host, operands
from emulator.registers import Array, WarpUnit
from mmaprobe.catalog.batch import Batch
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.toolchain.source import Source

Unit = Callable[[dict[str, Array]], Array]
"""D (products, m, n) of the operands of one launch step, as the tensor core would see them."""
NAMES = ("a", "b", "c", "d", "scale_a", "scale_b", "metadata")
EXPORTS = """
extern "C" void emulated_load(const Operands* given, Word64 item, int lane, Registers* of) {
  load_all(*given, item, lane, *of);
}
extern "C" void emulated_store(const Operands* given, Word64 item, int lane, const Registers* of) {
  store_all(*given, item, lane, *of);
}
extern "C" const unsigned long emulated_registers[] = {
  offsetof(Registers, a), offsetof(Registers, b), offsetof(Registers, c), offsetof(Registers, d),
  offsetof(Registers, scale_a), offsetof(Registers, scale_b), offsetof(Registers, metadata), sizeof(Registers),
  A::registers, B::registers, C::registers, D::registers,
  ScaleA::registers, ScaleB::registers, Metadata::registers};
"""


def run_warp(source: Source, instruction: Instruction, batch: Batch, unit: Unit) -> NDArray[np.unsignedinteger]:
    """D of a batch: every group of items through 32 lanes of loads, the unit, and 32 lanes of stores."""
    made = host(source, EXPORTS)
    numbers = (ctypes.c_ulong * (2 * len(NAMES) + 1)).in_dll(made, "emulated_registers")
    at, size, counts = numbers[: len(NAMES)], numbers[len(NAMES)], numbers[len(NAMES) + 1 :]
    d = np.full((batch.size, instruction.m, instruction.n), 0xA5, instruction.formats()["d"].dtype)
    given = operands(batch, d, batch.size)
    core = WarpUnit(instruction)
    for item in range(0, batch.size, source.items):
        lanes = np.zeros((32, size), np.uint8)
        for lane in range(32):
            made.emulated_load(ctypes.byref(given), ctypes.c_ulonglong(item), lane, ctypes.c_void_p(row(lanes, lane)))
        words = {
            name: lanes[:, start : start + count * word].copy().view(f"<u{word}")
            for name, start, count in zip(NAMES, at, counts, strict=True)
            for word in [word_bytes(instruction, name)]
        }
        seen = {name: core.rebuilt(name, words[name]) for name in ("a", "b", "c") if getattr(batch, name) is not None}
        if instruction.chunk:
            seen["metadata"] = core.metadata(words["metadata"])[None]
        if instruction.scale:
            seen |= {name: core.scales(name, words[name])[None] for name in ("scale_a", "scale_b")}
        core.packed(unit(seen), words["d"])
        start = at[NAMES.index("d")]
        lanes[:, start : start + words["d"].shape[1] * words["d"].itemsize] = words["d"].view(np.uint8)
        for lane in range(32):
            made.emulated_store(ctypes.byref(given), ctypes.c_ulonglong(item), lane, ctypes.c_void_p(row(lanes, lane)))
    return d


def word_bytes(instruction: Instruction, operand: str) -> int:
    """Bytes of an operand's registers."""
    fmt = instruction.formats().get(operand)
    return 8 if fmt is not None and fmt.bits == 64 else 4


def row(lanes: NDArray[np.uint8], lane: int) -> int:
    """The address of a lane's registers."""
    return int(lanes.ctypes.data + lane * lanes.shape[1])
