"""An instruction bound to something that runs it: the callable that models and devices share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.formats import get
from mmaprobe.operands.batch import Batch, Bits, check_batch, check_operands, check_vectors, vector_shapes
from mmaprobe.operands.edge import from_bits, to_bits
from mmaprobe.operands.resident import Resident
from mmaprobe.showing import Row, Showing


@dataclass(frozen=True, repr=False)
class BoundInstruction(Showing):
    """Call it with tiles, or ``dot`` with single vectors; bits in, bits out.

    ``run_tiles`` takes a batch of ``Instruction.shapes`` and gives D;
    ``run_vectors`` takes separate vectors a (n, K), b (n, K), c (n,), ... and
    gives d (n,).  Where a unit reads GPU memory of some kinds (``resident``),
    ``run_operands`` takes a batch whose operands may lie there.  ``owner``: the
    device or architecture whose instruction it is.
    """

    kind: ClassVar[str] = "instruction"

    instruction: Instruction
    run_tiles: Callable[[Batch], Bits]
    run_vectors: Callable[[Batch], Bits]
    run_operands: Callable[[Mapping[str, Bits | Resident]], Bits] | None = field(default=None, kw_only=True)
    resident: tuple[int, ...] = field(default=(), kw_only=True)
    owner: str = field(default="", kw_only=True)

    def __call__(
        self, A: Any, B: Any, C: Any = None, *, scale_a: Any = None, scale_b: Any = None, metadata: Any = None,
        random: Any = None,
    ) -> Any:  # fmt: skip
        """D = A B + C as the unit computes it.

        Shapes: A (batch, M, K), B (batch, K, N), C and D (batch, M, N),
        scale_a (batch, M, K/S), scale_b (batch, K/S, N); sparse A
        (batch, M, K/2) with metadata (batch, M, K/chunk); random, an integer a
        result where the unit rounds by such bits, as D; an axis of MFMA
        blocks after the batch where the instruction has several.  A single
        tile comes without the batch axis and gives one without.

        Operands are the formats' unsigned containers (bit patterns), or arrays
        of exactly the operand's format; the result is of the caller's kind.
        Raises ValueError naming the operand, what it must be and what came.
        """
        given, typed = self._operands(self.resident, A, B, C, scale_a, scale_b, metadata, random)
        single = given["a"].ndim == len(self.instruction.shapes(1)["a"]) - 1
        self._check_tiles(given, single)
        if single:
            given = {name: value[None] for name, value in given.items()}
        if self.run_operands is not None:
            d = self.run_operands(check_operands(self.instruction, given))
        else:
            d = self.run_tiles(check_batch(self.instruction, _batch(given)))
        return from_bits(d[0] if single else d, get(self.instruction.d), typed, A)

    def dot(
        self, a: Any, b: Any, c: Any = None, *, scale_a: Any = None, scale_b: Any = None, metadata: Any = None,
        random: Any = None,
    ) -> Any:  # fmt: skip
        """d = a . b + c as the unit computes it, on single vectors.

        Shapes: a (..., K, or K/2 where sparse), b (..., K), c and d (...),
        scale_* (..., K/S), metadata (..., K/chunk), random (...); leading axes broadcast.
        Kinds and errors are those of a call.
        """
        given, typed = self._operands((), a, b, c, scale_a, scale_b, metadata, random)
        self._check_lanes(given)
        vectors, lead = self._flatten(_batch(given))
        d = self.run_vectors(check_vectors(self.instruction, vectors))
        return from_bits(d.reshape(lead), get(self.instruction.d), typed, a)

    def in_a_line(self) -> str:
        """Whose instruction it is, and the shape and format of each operand."""
        made = self.instruction
        formats, shapes = made.formats(), {**made.shapes(1), "d": (1, made.m, made.n)}
        said = [f"{name} {formats[name].name} {shapes[name][1:]}" for name in ("a", "b", "c", "d") if name in formats]
        return f"{self.kind} {made.id} of {self.owner or 'a datapath'}: {', '.join(said)}"

    def as_row(self) -> Row:
        """Whose it is, and the instruction's own row."""
        return {"of": self.owner, **self.instruction.as_row()}

    def as_rows(self) -> list[Row]:
        """The operands of one tile and the result."""
        made = self.instruction
        shapes = {**made.shapes(1), "d": (1, *((made.blocks,) if made.blocks > 1 else ()), made.m, made.n)}
        named = made.formats() | ({"metadata": get("u8")} if made.chunk else {})
        return [{"operand": name, "format": named[name].name, "shape": str(shapes[name][1:])} for name in shapes]

    def _check_tiles(self, given: Mapping[str, Bits | Resident], single: bool) -> None:
        """UsageError where a shape is not that of one tile (``single``) or of as many tiles as A has; in the caller's
        own shapes, and naming the call that takes what came instead."""
        made, a, b = self.instruction, given["a"], given["b"]
        if a.ndim == b.ndim == 1:
            raise UsageError(f"{made.id}: operands of one axis are vectors; m.dot(a, b, c) takes them")
        due = {name: shape[1:] for name, shape in made.shapes(1).items()}
        if _whole_matrices(made, a.shape, b.shape):
            tile = ", ".join(f"{name} {due[name.lower()]}" for name in "ABC" if name.lower() in due)
            raise UsageError(
                f"{made.id}: A {a.shape} and B {b.shape} are whole matrices; m(A, B, C) takes tiles, {tile}, or any "
                "number of them with one more axis in front, and mmaprobe.gemm(SCHEDULE)(A, B, C) takes matrices"
            )
        count = () if single else a.shape[:1]
        self._check_shapes(given, {name: (*count, *shape) for name, shape in due.items()})

    def _check_lanes(self, given: Mapping[str, Bits | Resident]) -> None:
        """UsageError where the last axis of an operand is not that of one vector."""
        for name, (_, *own) in vector_shapes(self.instruction, 1).items():
            if name not in given:
                raise UsageError(f"{self.instruction.id}: operand {name} is missing")
            came = given[name].shape
            if own and came[-1:] != tuple(own):
                due = f"(..., {own[0]}){self._each(name)}"
                raise UsageError(f"{self.instruction.id}: operand {name} must have shape {due}, got {came}")

    def _check_shapes(self, given: Mapping[str, Bits | Resident], due: Mapping[str, tuple[int, ...]]) -> None:
        for name, shape in due.items():
            if name not in given:
                raise UsageError(f"{self.instruction.id}: operand {name} of shape {shape} is missing")
            if given[name].shape != shape:
                came = f"got {given[name].shape}"
                raise UsageError(
                    f"{self.instruction.id}: operand {name} must have shape {shape}{self._each(name)}, {came}"
                )

    def _each(self, name: str) -> str:
        """For how many lanes an item of metadata or scales stands."""
        made = self.instruction
        lanes = made.chunk if name == "metadata" else made.scale_size if "scale" in name else 0
        return f" (one for {lanes} lanes)" if lanes else ""

    def _operands(self, kinds: tuple[int, ...], *operands: Any) -> tuple[dict[str, Bits | Resident], bool]:
        """The operands that came, as bit patterns, and whether any of them came in its own type."""
        taken = self.instruction.formats() | {"metadata": get("u8")}
        named = dict(zip((each.name for each in fields(Batch)), operands, strict=True))
        typed = False
        bits: dict[str, Bits | Resident] = {}
        for name, value in named.items():
            if value is None:
                continue
            if name not in taken:
                raise UsageError(f"{self.instruction.id}: takes no operand {name}")
            bits[name], own = to_bits(
                self.instruction.id, name, value, taken[name], () if name == "metadata" else kinds
            )
            typed |= own
        for name in ("a", "b"):
            if name not in bits:
                raise UsageError(f"{self.instruction.id}: operand {name} is missing")
        return bits, typed

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


def _whole_matrices(made: Instruction, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether shapes of A and B are those of a matrix product that is larger than the instruction's."""
    if made.lane_wise or not len(a) == len(b) == 2:
        return False
    m, k, n = a[0], b[0], b[1]
    fits = a[1] * made.k == k * made.selected
    return fits and (m, k, n) != (made.m, made.k, made.n) and m >= made.m and k >= made.k and n >= made.n


def _batch(given: Mapping[str, Bits | Resident]) -> Batch:
    """The batch of operands in host memory, as all are where no kind of GPU memory is taken."""
    return Batch(**{name: value for name, value in given.items() if not isinstance(value, Resident)})
