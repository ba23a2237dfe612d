"""An instruction bound to something that runs it: the callable that models and devices share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmaprobe.catalog.batch import Batch, Bits, check_batch, check_vectors, vector_shapes
from mmaprobe.catalog.edge import from_bits, to_bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.formats import get


@dataclass(frozen=True)
class BoundInstruction:
    """Call it with tiles, or ``dot`` with single vectors; bits in, bits out.

    ``run_tiles`` takes a batch of ``Instruction.shapes`` and gives D;
    ``run_vectors`` takes separate vectors a (n, K), b (n, K), c (n,), ... and
    gives d (n,).
    """

    instruction: Instruction
    run_tiles: Callable[[Batch], Bits]
    run_vectors: Callable[[Batch], Bits]

    def __call__(
        self, A: Any, B: Any, C: Any = None, *, scale_a: Any = None, scale_b: Any = None, metadata: Any = None
    ) -> Any:
        """D = A B + C as the unit computes it.

        Shapes: A (batch, M, K), B (batch, K, N), C and D (batch, M, N),
        scale_a (batch, M, K/S), scale_b (batch, K/S, N); sparse A
        (batch, M, K/2) with metadata (batch, M, K/chunk); an axis of MFMA
        blocks after the batch where the instruction has several.  A single
        tile comes without the batch axis and gives one without.

        Operands are the formats' unsigned containers (bit patterns), or arrays
        of exactly the operand's format; the result is of the caller's kind.
        Raises ValueError naming the operand, what it must be and what came.
        """
        batch, typed = self._bits(A, B, C, scale_a, scale_b, metadata)
        single = batch.a.ndim == len(self.instruction.shapes(1)["a"]) - 1
        if single:
            batch = Batch(**{name: value[None] for name, value in batch.items()})
        d = self.run_tiles(check_batch(self.instruction, batch))
        return from_bits(d[0] if single else d, get(self.instruction.d), typed, A)

    def dot(
        self, a: Any, b: Any, c: Any = None, *, scale_a: Any = None, scale_b: Any = None, metadata: Any = None
    ) -> Any:
        """d = a . b + c as the unit computes it, on single vectors.

        Shapes: a (..., K, or K/2 where sparse), b (..., K), c and d (...),
        scale_* (..., K/S), metadata (..., K/chunk); leading axes broadcast.
        Kinds and errors are those of a call.
        """
        batch, typed = self._bits(a, b, c, scale_a, scale_b, metadata)
        vectors, lead = self._flatten(batch)
        d = self.run_vectors(check_vectors(self.instruction, vectors))
        return from_bits(d.reshape(lead), get(self.instruction.d), typed, a)

    def _bits(self, *operands: Any) -> tuple[Batch, bool]:
        """The operands that came, as bit patterns, and whether any of them came in its own type."""
        taken = self.instruction.formats() | {"metadata": get("u8")}
        named = dict(zip(("a", "b", "c", "scale_a", "scale_b", "metadata"), operands, strict=True))
        typed = False
        bits: dict[str, Bits] = {}
        for name, value in named.items():
            if value is None:
                continue
            if name not in taken:
                raise UsageError(f"{self.instruction.id}: takes no operand {name}")
            bits[name], own = to_bits(self.instruction.id, name, value, taken[name])
            typed |= own
        return Batch(**bits), typed

    def _flatten(self, batch: Batch) -> tuple[Batch, tuple[int, ...]]:
        """Vectors with any leading axes as a list of vectors, and those axes broadcast."""
        operands = dict(batch.items())
        own = {name: len(shape) - 1 for name, shape in vector_shapes(self.instruction, 1).items()}
        leads = {name: value.shape[: value.ndim - own.get(name, 0)] for name, value in operands.items()}
        try:
            lead = np.broadcast_shapes(*leads.values())
        except ValueError:
            shapes = ", ".join(f"{name} {value.shape}" for name, value in operands.items())
            raise UsageError(f"{self.instruction.id}: leading axes do not broadcast: {shapes}") from None
        count = math.prod(lead)
        flat: dict[str, Bits] = {}
        for name, value in operands.items():
            tail = value.shape[len(leads[name]) :]
            flat[name] = np.broadcast_to(value, lead + tail).reshape(count, *tail)
        return Batch(**flat), lead
