"""The device protocol: bits in, bits out; and the registry of devices by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Protocol, runtime_checkable

import numpy as np

from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError, near

GROUP = "mmaprobe.devices"


@dataclass(frozen=True)
class Support:
    """Whether a device runs an instruction, and if not, why: ``needs amx-bf16``."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


@runtime_checkable
class Device(Protocol):
    """Anything that runs an instruction on a batch.

    Two optional attributes: ``run_vectors(instruction, vectors)`` for devices that
    need no tiles, and ``concurrent = True`` where several threads may call at once.
    """

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


def run_vectors(device: Device, instruction: Instruction, vectors: Batch) -> Bits:
    """d of shape (n,) for n separate vectors (a (n, K), b (n, K), c (n,), ...): packed into tiles.

    Vector j of a tile uses row j of A and column j of B, so a tile carries
    min(M, N) vectors (times the MFMA blocks); the rest of the tile is zero.
    A device with a ``run_vectors`` of its own (a model) needs no tiles.
    """
    direct = getattr(device, "run_vectors", None)
    if direct is not None:
        d: Bits = direct(instruction, vectors)
        return d
    missing = instruction.shapes(1).keys() - dict(vectors.items()).keys()
    if missing:
        raise UsageError(f"{instruction.id}: operand {', '.join(sorted(missing))} is missing")
    if instruction.lane_wise and instruction.blocks == 1:
        return device.run(instruction, _as_lanes(instruction, vectors)).reshape(-1)
    per = min(instruction.m, instruction.n)
    d = device.run(instruction, _on_diagonals(instruction, vectors, per))
    diagonal = np.arange(per)
    return d.reshape(-1, instruction.m, instruction.n)[:, diagonal, diagonal].reshape(-1)[: vectors.size]


def _as_lanes(instruction: Instruction, vectors: Batch) -> Batch:
    """Vectors of a lane-wise unit are its batch already (views)."""
    shapes = instruction.shapes(vectors.size)
    return Batch(**{name: getattr(vectors, name).reshape(shape) for name, shape in shapes.items()})


def _on_diagonals(instruction: Instruction, vectors: Batch, per: int) -> Batch:
    """Tiles whose diagonals are the vectors, ``per`` of them a tile or MFMA block."""
    tiles = -(-vectors.size // (per * instruction.blocks))
    pieces = tiles * instruction.blocks
    diagonal = np.arange(per)
    full: dict[str, Bits] = {}
    for name, shape in instruction.shapes(tiles).items():
        value = getattr(vectors, name)
        flat = np.zeros((pieces * per, *value.shape[1:]), value.dtype)
        flat[: vectors.size] = value
        rows = flat.reshape(pieces, per, *value.shape[1:])
        tile = np.zeros((pieces, *shape[-2:]), value.dtype)
        if name == "c":
            tile[:, diagonal, diagonal] = rows
        elif name in ("b", "scale_b"):
            tile[:, :, :per] = rows.swapaxes(1, 2)
        else:
            tile[:, :per, :] = rows
        full[name] = tile.reshape(shape)
    return Batch(**full)


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
