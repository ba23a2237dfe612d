"""What the matrix unit of an AMD wave sees: registers of 32 or 64 lanes to matrices and back.

Where an element lies comes from ``amd_elements``: the functions that were held against AMD's own calculator, from the
element to its register, bit and lane.  A place may be held in several lanes; a copy that differs counts as missing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from emulator.lanes import Unit, run_lanes, shape_d
from emulator.registers import Array
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source
from second_source import amd_elements as elements

MISSING = 1 << 63
AXES = {
    "a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n"), "d": ("m", "n"),
    "metadata": ("m", "chunk"), "scale_a": ("m", "scale_block"), "scale_b": ("scale_block", "n"),
}  # fmt: skip


@dataclass(frozen=True)
class WaveUnit:
    """The registers of a wave as the operands of one matrix instruction of an architecture."""

    made: Instruction
    architecture: str
    products: int = 1

    @property
    def lanes(self) -> int:
        """How many a wave has."""
        return 64 if self.architecture.startswith("gfx9") else int(self.made.modifier.get("wave", 32))

    def word(self, operand: str) -> int:
        """All registers have 32 bits."""
        return 4

    def width(self, operand: str) -> int:
        """Bits of an element."""
        fmt = self.made.formats().get(operand)
        return 4 if fmt is None else elements.WIDTHS[fmt.name]

    def shape(self, operand: str) -> tuple[int, ...]:
        """Shape of one item of an operand."""
        return shape_d(self.made) if operand == "d" else self.made.shapes(1)[operand][1:]

    def starts(self, operand: str, registers: int) -> Array:
        """The bit of the wave's registers, one lane behind the other, where each copy of each element starts."""
        shape, chosen = self.shape(operand), self.chosen()
        axes = ("mfma_block", *AXES[operand])[-len(shape) :]
        sizes = (self.lanes, self.width(operand))
        found = []
        for index in itertools.product(*map(range, shape)):
            named = dict(zip(axes, index, strict=True))
            found.append(self._places(operand, sizes, named, chosen))
        place = np.array(found)
        return (place[..., 2] * registers + place[..., 0]) * 32 + place[..., 1]

    def _places(
        self, operand: str, sizes: tuple[int, int], index: dict[str, int], chosen: dict[str, int]
    ) -> list[elements.Place]:
        if operand.startswith("scale"):
            picked = chosen[operand]
            return [elements.scale_place(self.made, self.architecture, operand, index, picked)]
        return elements.places(self.made, self.architecture, operand, sizes, index, chosen)

    def chosen(self) -> dict[str, int]:
        """What the modifiers choose: sets of indices, halves of results, bytes or lanes of scales."""
        given = self.made.modifier
        byte = [int(given.get("op_sel", "000")[i]) + 2 * int(given.get("op_sel_hi", "000")[i]) for i in range(3)]
        rows = [int(given.get(f"matrix_{name}_scale", "0")[-1]) for name in "ab"]
        picked = byte if self.architecture.startswith("gfx9") else rows
        numbers = {key: int(given.get(key, "0")) for key in ("cbsz", "abid", "index_key")}
        return numbers | {"op_sel": byte[2], "scale_a": picked[0], "scale_b": picked[1]}

    def gathered(self, operand: str, words: Array) -> Array:
        """The elements (steps, ...) that registers (steps, lanes, registers) hold."""
        width, flat = self.width(operand), words.reshape(len(words), -1)
        at = starts(self, operand, words.shape[2])
        word, low = at // 32, (at % 32).astype(np.uint64)
        copies = flat[:, word].astype(np.uint64) >> low
        if width > 32 or (at % 32 + width > 32).any():
            beyond = flat[:, np.minimum(word + 1, flat.shape[1] - 1)].astype(np.uint64)
            copies |= beyond << (np.uint64(32) - low)
        copies &= np.uint64((1 << width) - 1)
        out = np.where((copies == copies[..., :1]).all(axis=-1), copies[..., 0], np.uint64(MISSING))
        return out.reshape(len(words), *self.shape(operand))

    def rebuilt(self, operand: str, words: Array) -> Array:
        """A, B or C (steps, 1, ...)."""
        return self.gathered(operand, words)[:, None]

    def metadata(self, words: Array) -> Array:
        """Items (steps, m, chunks)."""
        return self.gathered("metadata", words)

    def scales(self, operand: str, words: Array) -> Array:
        """Scales (steps, ...)."""
        return self.gathered(operand, words)

    def packed(self, d: Array, words: Array) -> None:
        """Write D (steps, 1, ...) into its registers; what it does not fill is left as it is."""
        width, flat = self.width("d"), np.ascontiguousarray(words).reshape(len(words), -1)
        at, values = starts(self, "d", words.shape[2])[:, 0], d.reshape(len(d), -1).astype(np.uint64)
        for start in range(0, width, 32):
            part = (values >> np.uint64(start)) & np.uint64((1 << min(width - start, 32)) - 1)
            for low in np.unique(at % 32):
                here = at % 32 == low
                mask = ((1 << min(width - start, 32)) - 1) << int(low)
                word = (at[here] + start) // 32
                flat[:, word] = flat[:, word] & np.uint32(~mask & 0xFFFFFFFF) | (part[:, here] << np.uint64(low))
        words[:] = flat.reshape(words.shape)


@cache
def starts(unit: WaveUnit, operand: str, registers: int) -> Array:
    """``WaveUnit.starts``, each found once."""
    return unit.starts(operand, registers)


def run_wave(
    source: Source, instruction: Instruction, batch: Batch, unit: Unit, architecture: str
) -> NDArray[np.unsignedinteger]:
    """D of a batch, each item by the lanes of a wave."""
    return run_lanes(source, instruction, batch, unit, WaveUnit(instruction, architecture))
