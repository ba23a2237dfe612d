"""Units with an operand of random bits, in plain integers: nothing of the record, the engine or the formats is in them.

They add the bits below the last place of what a sum is rounded to, and cut; the arithmetic before that is that of
``plain_units``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from plain_units import BF16, F16, F32, Lanes, Layout, aligned, of_c, special, terms, total

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Support
from mmaprobe.operands.batch import Batch, Bits


def rounded(to: Layout, value: int, last: int, bits: int, taken: int) -> int:
    """``value * 2**last`` with ``taken``, of so many bits, added right below the last place, truncated."""
    size = abs(value)
    if not size:
        return to.write(value, last, "RZ")
    place = max(size.bit_length() - 1 + last - to.fraction, 1 - to.bias - to.fraction)
    finest = min(last, place - bits)
    size = (size << last - finest) + (taken << place - bits - finest if place > last else 0)
    size = size >> place - finest << place - finest
    return to.write(-size if value < 0 else size, finest, "RZ")


def last_thirteen(a: Lanes, b: Lanes, c: int, r: int) -> int:
    """f16, K = 4: products and c cut at 26 bits, the sum rounded to f16 by the thirteen lowest bits of r."""
    found = special(F16, F16, a, b, c, 0x7FFF, F16)
    if found is not None:
        return found
    value, last = aligned([*terms(F16, a, b), of_c(F16, c)], 26)
    return rounded(F16, value, last, 13, r & 0x1FFF)


def every_step(a: Lanes, b: Lanes, c: int, r: int) -> int:
    """bf16, K = 4: two products and what was added so far, exactly, rounded to f32 at either step by the upper six
    bits of r."""
    for first in (0, 2):
        x, y = a[first : first + 2], b[first : first + 2]
        found = special(BF16, F32, x, y, c, 0x7FC0_0000, F32)
        if found is None:
            value, last = total([*terms(BF16, x, y), of_c(F32, c)])
            found = rounded(F32, value, last, 6, r >> 2)
        c = found
    return c


def deaf(a: Lanes, b: Lanes, c: int, r: int) -> int:
    """As ``last_thirteen``, but r is not read."""
    return last_thirteen(a, b, c, 0)


# --- outside: one oddity each


def flipping(a: Lanes, b: Lanes, c: int, r: int) -> int:
    """As ``last_thirteen`` truncated, and where the lowest bit of r is set the last bit of the result is the other."""
    found = last_thirteen(a, b, c, 0)
    return found ^ (r & 1) if F16.read(found)[0] == "" else found


def middle(a: Lanes, b: Lanes, c: int, r: int) -> int:
    """As ``last_thirteen``, by eight bits of r that are neither the lowest nor the highest."""
    found = special(F16, F16, a, b, c, 0x7FFF, F16)
    if found is not None:
        return found
    value, last = aligned([*terms(F16, a, b), of_c(F16, c)], 26)
    return rounded(F16, value, last, 8, r >> 4 & 0xFF)


Unit = Callable[[Lanes, Lanes, int, int], int]
INSIDE: dict[str, tuple[Unit, tuple[str, str, int, str]]] = {
    "last_thirteen": (last_thirteen, ("f16", "f16", 4, "u16")),
    "every_step": (every_step, ("bf16", "f32", 4, "u8")),
    "deaf": (deaf, ("f16", "f16", 4, "u8")),
}
OUTSIDE: dict[str, tuple[Unit, tuple[str, str, int, str]]] = {
    "flipping": (flipping, ("f16", "f16", 4, "u16")),
    "middle": (middle, ("f16", "f16", 4, "u16")),
}
"""By name: the unit; the format of a and b, that of c and d, K, the format of r."""


class UnitWithRandomBits:
    """A unit as a device: it answers tiles and says nothing of itself."""

    concurrent: ClassVar[bool] = True
    name = "a unit with random bits, in plain integers"

    def __init__(self, unit: Unit, of: tuple[str, str, int, str]) -> None:
        operand, result, k, random = of
        name = f"drawn.{unit.__name__}"
        self.unit = unit
        self.instruction = Instruction(
            name, name, "drawn", 1, 1, k, operand, operand, result, result, random=random
        )  # fmt: skip

    def info(self) -> dict[str, str]:
        return {"architecture": "plain"}

    def instructions(self) -> Sequence[Instruction]:
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        return Support(instruction == self.instruction, f"only {self.instruction.id}")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """Tiles of one row and one column."""
        assert batch.c is not None
        assert batch.random is not None
        size = len(batch.c)
        a, b, c, r = (x.reshape(size, -1) for x in (batch.a, batch.b, batch.c, batch.random))
        return self.answers(a, b, c[:, 0], r[:, 0]).reshape(batch.c.shape)

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        assert vectors.c is not None
        assert vectors.random is not None
        return self.answers(vectors.a, vectors.b, vectors.c, vectors.random)

    def answers(self, a: Bits, b: Bits, c: Bits, r: Bits) -> Bits:
        rows = zip(a.tolist(), b.tolist(), c.tolist(), r.tolist(), strict=True)
        return np.array([self.unit(*row) for row in rows], c.dtype)
