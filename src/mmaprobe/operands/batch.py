"""Operands as bit patterns: the record of a batch, and the check of what came in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import check_metadata
from mmaprobe.errors import UsageError
from mmaprobe.operands.resident import Resident
from mmaprobe.showing import Code, Row, Showing, codes_text

Bits = NDArray[np.unsignedinteger[Any]]
PER_RESULT = ("c", "random")
"""Operands of one item a result: shaped as D."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Operands as bit patterns.

    Either tiles, of ``Instruction.shapes``, or separate vectors: a (n, K or K/2), b (n, K), c (n,),
    scale_* (n, K/S), metadata (n, K/chunk), random (n,).
    """

    a: Bits
    b: Bits
    c: Bits | None = None
    scale_a: Bits | None = None
    scale_b: Bits | None = None
    metadata: Bits | None = None
    random: Bits | None = None

    @property
    def size(self) -> int:
        return int(self.a.shape[0])

    def items(self) -> Iterator[tuple[str, Bits]]:
        """The operands that are present, by name."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                yield field.name, value

    def copy(self) -> Batch:
        """The same operands in memory of their own."""
        return Batch(**{name: np.array(value) for name, value in self.items()})

    def slice(self, start: int, stop: int) -> Batch:
        """Items ``start`` to ``stop`` of the batch (views)."""
        return Batch(**{name: value[start:stop] for name, value in self.items()})


@dataclass(frozen=True, repr=False)
class Witness(Showing):
    """One vector and what the device answered, as bit patterns; ``note`` says what it shows."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int | None
    d: int
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()
    metadata: tuple[int, ...] = ()
    note: str = ""
    random: int | None = None

    @classmethod
    def of(cls, vector: Batch, d: int, note: str = "") -> Witness:
        """The witness of a batch of one vector and the answer to it."""
        lists = {name: tuple(int(code) for code in value.reshape(-1)) for name, value in vector.items()}
        single = {name: codes[0] for name in PER_RESULT if (codes := lists.pop(name, None))}
        return cls(**{"c": None} | single, d=int(d), note=note, **lists)  # type: ignore[arg-type]

    def in_a_line(self) -> str:
        """Operands and answer in hexadecimal."""
        said = ((name, codes if isinstance(codes, tuple) else (codes,)) for name, codes in self.as_row().items())
        return "vector " + " ".join(f"{name}={codes_text(codes)}" for name, codes in said if name != "note")

    def as_row(self) -> Row:
        """The operands that are there, and the answer."""
        held = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: Code(it) if isinstance(it, int) else it for name, it in held if it not in (None, (), "")}


def check_batch(instruction: Instruction, batch: Batch) -> Batch:
    """The batch with every operand held against the instruction's shapes and formats.

    Non-contiguous and big-endian arrays are copied to native layout.  Raises
    ValueError naming the operand, the expected shape and what came, and for
    metadata that is illegal on every architecture (``sparsity.check_metadata``).
    """
    return _check(instruction, batch, instruction.shapes(batch.a.shape[0] if np.ndim(batch.a) else 0))


def vector_shapes(instruction: Instruction, count: int) -> dict[str, tuple[int, ...]]:
    """Shape of each operand of ``count`` separate vectors; absent operands are left out."""
    rows = {name: shape[-2:] for name, shape in instruction.shapes(1).items()}
    lengths = {name: () if name in PER_RESULT else shape[-2:-1] if name in ("b", "scale_b") else shape[-1:]
               for name, shape in rows.items()}  # fmt: skip
    return {name: (count, *length) for name, length in lengths.items()}


def check_vectors(instruction: Instruction, vectors: Batch) -> Batch:
    """Separate vectors held against the instruction's shapes and formats, as ``check_batch`` does with tiles."""
    return _check(instruction, vectors, vector_shapes(instruction, vectors.a.shape[0] if np.ndim(vectors.a) else 0))


def check_operands(instruction: Instruction, given: Mapping[str, Bits | Resident]) -> dict[str, Bits | Resident]:
    """The operands of a batch, some of them in a GPU's memory, held against shapes and types as by ``check_batch``."""
    size = given["a"].shape[0] if "a" in given and given["a"].ndim else 0
    return _checked(instruction, given, instruction.shapes(size))


def _check(instruction: Instruction, batch: Batch, shapes: dict[str, tuple[int, ...]]) -> Batch:
    ready = _checked(instruction, dict(batch.items()), shapes)
    return Batch(**{name: value for name, value in ready.items() if not isinstance(value, Resident)})


def _checked(
    instruction: Instruction, given: Mapping[str, Bits | Resident], shapes: dict[str, tuple[int, ...]]
) -> dict[str, Bits | Resident]:
    for name in given.keys() - shapes.keys():
        raise UsageError(f"{instruction.id}: takes no operand {name}, but one of shape {given[name].shape} came")
    operand_formats = instruction.formats()
    ready: dict[str, Bits | Resident] = {}
    for name, shape in shapes.items():
        if name not in given:
            raise UsageError(f"{instruction.id}: operand {name} of shape {shape} is missing")
        dtype = np.dtype(np.uint8) if name == "metadata" else operand_formats[name].dtype
        limit = None if name == "metadata" else operand_formats[name].code_limit
        each = {"metadata": instruction.chunk}.get(name, instruction.scale_size if "scale" in name else 0)
        ready[name] = _check_operand(instruction.id, name, given[name], shape, dtype, limit, each)
    metadata = ready.get("metadata")
    if isinstance(metadata, np.ndarray):
        check_metadata(instruction, metadata, sorts=True)
    return ready


def _check_operand(
    who: str, name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], limit: int | None, each: int = 0
) -> Bits | Resident:
    array = value if isinstance(value, Resident) else np.asarray(value)
    if array.dtype.newbyteorder("=") != dtype:
        hint = "; bits are meant: use .view()" if array.dtype.kind in "fV" else ""
        raise UsageError(f"{who}: operand {name} must be {dtype.name} of shape {shape}, got {array.dtype}{hint}")
    if array.shape != shape:
        note = f" (one for {each} lanes)" if each else ""
        raise UsageError(f"{who}: operand {name} must have shape {shape}{note}, got {array.shape}")
    if isinstance(array, Resident):
        return array
    if limit is not None and limit < 1 << (8 * dtype.itemsize) and array.size and int(array.max()) >= limit:
        raise UsageError(
            f"{who}: operand {name} holds {int(array.max()):#x}, outside its {limit.bit_length() - 1} bits"
        )
    return np.ascontiguousarray(array, dtype=dtype)


def join(batches: list[Batch]) -> Batch:
    """One batch of all the vectors, in order."""
    return Batch(**{name: np.concatenate([getattr(b, name) for b in batches]) for name, _ in batches[0].items()})


def take(vectors: Batch, indices: NDArray[Any] | list[int]) -> Batch:
    """The vectors at these indices."""
    return Batch(**{name: value[indices] for name, value in vectors.items()})


def outputs_of(tiles: Batch) -> Batch:
    """The vectors of the outputs of whole tiles, a (tiles, M, K), b (tiles, K, N), ...: tile, row, column."""
    count, m, n = len(tiles.a), tiles.a.shape[1], tiles.b.shape[2]
    vectors: dict[str, Bits] = {}
    for name, value in tiles.items():
        if name in PER_RESULT:
            vectors[name] = value.reshape(-1)
            continue
        items = value.swapaxes(1, 2)[:, None] if name in ("b", "scale_b") else value[:, :, None]
        vectors[name] = np.broadcast_to(items, (count, m, n, items.shape[-1])).reshape(-1, items.shape[-1])
    return Batch(**vectors)


def flipped(bits: Bits, axis: int, signs: tuple[str, str], mask: int) -> Bits:
    """Even and odd items along an axis, those with their sign bit flipped whose word is ``flip``."""
    flips = np.zeros(bits.shape[axis], bits.dtype)
    for first, sign in enumerate(signs):
        flips[first::2] = mask if sign == "flip" else 0
    return bits ^ flips.reshape(-1, *(1,) * (-1 - axis))
