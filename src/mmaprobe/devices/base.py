"""The device protocol: bits in, bits out; and the registry of devices by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from importlib import metadata
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError, near

Bits = NDArray[np.unsignedinteger[Any]]
GROUP = "mmaprobe.devices"


@dataclass(frozen=True, eq=False)
class Batch:
    """Operands of a batch of one instruction, as bit patterns; shapes as ``Instruction.shapes``."""

    a: Bits
    b: Bits
    c: Bits | None = None
    scale_a: Bits | None = None
    scale_b: Bits | None = None
    metadata: Bits | None = None

    @property
    def size(self) -> int:
        return int(self.a.shape[0])

    def items(self) -> Iterator[tuple[str, Bits]]:
        """The operands that are present, by name."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                yield field.name, value

    def slice(self, start: int, stop: int) -> Batch:
        """Items ``start`` to ``stop`` of the batch (views)."""
        return Batch(**{name: value[start:stop] for name, value in self.items()})


@dataclass(frozen=True)
class Support:
    """Whether a device runs an instruction, and if not, why: ``needs amx-bf16``."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


@runtime_checkable
class Device(Protocol):
    """Anything that runs an instruction on a batch."""

    name: str

    def info(self) -> dict[str, str]:
        """Identity: what evidence records about the device."""
        ...

    def instructions(self) -> Sequence[Instruction]:
        """Every instruction of the device's architecture, whether or not it runs here."""
        ...

    def supports(self, instruction: Instruction) -> Support:
        """Whether the instruction runs here."""
        ...

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of shape (batch, [blocks,] M, N); DeviceError if the device fails."""
        ...


def check_batch(instruction: Instruction, batch: Batch) -> Batch:
    """The batch with every operand held against the instruction's shapes and formats.

    Non-contiguous and big-endian arrays are copied to native layout.  Raises
    ValueError naming the operand, the expected shape and what came.
    """
    shapes = instruction.shapes(batch.a.shape[0] if np.ndim(batch.a) else 0)
    given = dict(batch.items())
    for name in given.keys() - shapes.keys():
        raise UsageError(f"{instruction.id}: takes no operand {name}, but one of shape {given[name].shape} came")
    operand_formats = instruction.formats()
    ready: dict[str, Bits] = {}
    for name, shape in shapes.items():
        if name not in given:
            raise UsageError(f"{instruction.id}: operand {name} of shape {shape} is missing")
        dtype = np.dtype(np.uint8) if name == "metadata" else operand_formats[name].dtype
        limit = None if name == "metadata" else operand_formats[name].code_limit
        ready[name] = _check_operand(instruction.id, name, given[name], shape, dtype, limit)
    return Batch(**ready)


def _check_operand(
    who: str, name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], limit: int | None
) -> Bits:
    array = np.asarray(value)
    if array.dtype.newbyteorder("=") != dtype:
        hint = "; bits are meant: use .view()" if array.dtype.kind in "fV" else ""
        raise UsageError(f"{who}: operand {name} must be {dtype.name} of shape {shape}, got {array.dtype}{hint}")
    if array.shape != shape:
        raise UsageError(f"{who}: operand {name} must have shape {shape}, got {array.shape}")
    if limit is not None and limit < 1 << (8 * dtype.itemsize) and array.size and int(array.max()) >= limit:
        raise UsageError(f"{who}: operand {name} holds {int(array.max()):#x}, outside its {limit.bit_length() - 1} bits")
    return np.ascontiguousarray(array, dtype=dtype)


def run_vectors(
    device: Device, instruction: Instruction, a: Bits, b: Bits, c: Bits | None = None,
    scale_a: Bits | None = None, scale_b: Bits | None = None, metadata: Bits | None = None,
) -> Bits:  # fmt: skip
    """d of shape (n,) for n separate vectors a (n, K), b (n, K), c (n,): packed into tiles.

    Vector j of a tile uses row j of A and column j of B, so a tile carries
    min(M, N) vectors (times the MFMA blocks); the rest of the tile is zero.
    """
    count = a.shape[0]
    per = min(instruction.m, instruction.n)
    slots = per * instruction.blocks
    tiles = -(-count // slots)
    operand = {"a": a, "b": b, "c": c, "scale_a": scale_a, "scale_b": scale_b, "metadata": metadata}
    full: dict[str, Bits] = {}
    diagonal = np.arange(per)
    for name, shape in instruction.shapes(tiles).items():
        value = operand[name]
        if value is None:
            raise UsageError(f"{instruction.id}: operand {name} is missing")
        flat = np.zeros((tiles * slots, *value.shape[1:]), value.dtype)
        flat[:count] = value
        blocks = flat.reshape(tiles * instruction.blocks, per, *value.shape[1:])
        tile = np.zeros((tiles * instruction.blocks, *shape[-2:]), value.dtype)
        if name == "c":
            tile[:, diagonal, diagonal] = blocks
        elif name in ("b", "scale_b"):
            tile[:, :, :per] = blocks.swapaxes(1, 2)
        else:
            tile[:, :per, :] = blocks
        full[name] = tile.reshape(shape)
    d = device.run(instruction, Batch(**full))
    d = d.reshape(tiles * instruction.blocks, instruction.m, instruction.n)
    return d[:, diagonal, diagonal].reshape(-1)[:count]


def vectors_per_tile(instruction: Instruction) -> int:
    """How many separate vectors ``run_vectors`` puts into one tile."""
    return min(instruction.m, instruction.n) * instruction.blocks


def open_device(name: str) -> Device:
    """The device called ``name``: ``scheme`` or ``scheme:argument``, found by entry point.

    Raises UsageError with the near names for an unknown scheme; NotHereError
    where the hardware or driver is missing.
    """
    scheme, _, argument = name.partition(":")
    found = metadata.entry_points(group=GROUP)
    schemes = {entry.name: entry for entry in found}
    if scheme not in schemes:
        raise UsageError(f"unknown device {name!r}{near(scheme, schemes)}")
    device: Device = schemes[scheme].load()(argument)
    return device


def schemes() -> list[str]:
    """The names under which devices are registered."""
    return sorted({entry.name for entry in metadata.entry_points(group=GROUP)})
