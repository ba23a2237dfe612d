"""A kernel whose operands all lie in registers, as a function on batches: its own loads and stores, a unit between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from emulator.host import Operands, host, operands
from emulator.registers import Array
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source

Unit = Callable[[dict[str, Array]], Array]
"""D (items, [blocks,] m, n) of the operands of many items, as the matrix unit would see them."""
NAMES = ("a", "b", "c", "d", "scale_a", "scale_b", "metadata")
AT_ONCE = 4096
EXPORTS = """
constexpr int WIDE = %d;
extern "C" void emulated_load(const Operands* given, Word64 first, Word64 steps, Registers* of) {
  for (Word64 step = 0; step < steps; ++step)
    for (int lane = 0; lane < WIDE; ++lane) load_all(*given, first + step * ITEMS, lane, of[step * WIDE + lane]);
}
extern "C" void emulated_store(const Operands* given, Word64 first, Word64 steps, const Registers* of) {
  for (Word64 step = 0; step < steps; ++step)
    for (int lane = 0; lane < WIDE; ++lane) store_all(*given, first + step * ITEMS, lane, of[step * WIDE + lane]);
}
extern "C" const unsigned long emulated_registers[] = {
  offsetof(Registers, a), offsetof(Registers, b), offsetof(Registers, c), offsetof(Registers, d),
  offsetof(Registers, scale_a), offsetof(Registers, scale_b), offsetof(Registers, metadata), sizeof(Registers),
  A::registers, B::registers, C::registers, D::registers,
  ScaleA::registers, ScaleB::registers, Metadata::registers};
"""


class Core(Protocol):
    """What the matrix unit sees in a group's registers, from a source other than the catalog."""

    lanes: int
    products: int  # items that lie in the registers side by side

    def word(self, operand: str) -> int:
        """Bytes of an operand's registers."""

    def rebuilt(self, operand: str, words: Array) -> Array:
        """The matrices (steps, products, ...) that registers (steps, lanes, registers) hold; 1 << 63 where unknown."""

    def metadata(self, words: Array) -> Array:
        """Items of sparse metadata (steps, ...)."""

    def scales(self, operand: str, words: Array) -> Array:
        """Scales (steps, ...)."""

    def packed(self, d: Array, words: Array) -> None:
        """Write D (steps, products, ...) into its registers."""


def run_lanes(
    source: Source, instruction: Instruction, batch: Batch, unit: Unit, core: Core
) -> NDArray[np.unsignedinteger]:
    """D of a batch: every group of items through all lanes' loads, the unit, and all lanes' stores.

    The unit sees whole groups: of the last one also the places that no item of the batch fills.
    """
    made = host(source, EXPORTS % core.lanes, batch.size)
    d = np.full((batch.size, *shape_d(instruction)), 0xA5, instruction.formats()["d"].dtype)
    given = operands(batch, d, batch.size)
    steps = -(-batch.size // source.items)
    for first in range(0, steps, AT_ONCE):
        _run_steps(made, source, instruction, batch, unit, given, first, min(AT_ONCE, steps - first), core)
    return d


def shape_d(instruction: Instruction) -> tuple[int, ...]:
    """Shape of one item of D."""
    blocks = (instruction.blocks,) if instruction.blocks > 1 else ()
    return (*blocks, instruction.m, instruction.n)


def _run_steps(
    made: ctypes.CDLL, source: Source, instruction: Instruction, batch: Batch, unit: Unit,
    given: Operands, first: int, steps: int, core: Core,
) -> None:  # fmt: skip
    numbers = (ctypes.c_ulong * (2 * len(NAMES) + 1)).in_dll(made, "emulated_registers")
    at, size, counts = numbers[: len(NAMES)], numbers[len(NAMES)], numbers[len(NAMES) + 1 :]
    lanes = np.full((steps, core.lanes, size), 0xA5, np.uint8)
    moved = (ctypes.byref(given), ctypes.c_ulonglong(first * source.items), ctypes.c_ulonglong(steps))
    made.emulated_load(*moved, ctypes.c_void_p(lanes.ctypes.data))
    words = {
        name: lanes[..., start : start + count * word].copy().view(f"<u{word}")
        for name, start, count in zip(NAMES, at, counts, strict=True)
        for word in [core.word(name)]
    }
    seen = {name: core.rebuilt(name, words[name]) for name in ("a", "b", "c") if getattr(batch, name) is not None}
    seen = {name: value.reshape(-1, *value.shape[2:]) for name, value in seen.items()}
    if instruction.chunk:
        seen["metadata"] = core.metadata(words["metadata"])
    if instruction.scale:
        seen |= {name: core.scales(name, words[name]) for name in ("scale_a", "scale_b")}
    core.packed(unit(seen).reshape(steps, core.products, *shape_d(instruction)), words["d"])
    start = at[NAMES.index("d")]
    lanes[..., start : start + words["d"].shape[2] * words["d"].itemsize] = words["d"].view(np.uint8)
    made.emulated_store(*moved, ctypes.c_void_p(lanes.ctypes.data))
