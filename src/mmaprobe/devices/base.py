"""The device protocol: bits in, bits out; and the registry of devices by name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import moves_operands
from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.errors import DeviceError, MmaprobeError, UsageError, brief, near
from mmaprobe.operands.batch import PER_RESULT, Batch, Bits
from mmaprobe.operands.resident import Resident
from mmaprobe.vendors import every

if TYPE_CHECKING:
    from typing_extensions import TypeIs

GROUP = "mmaprobe.devices"

_Run = Callable[[Instruction, Batch], Bits]


@dataclass(frozen=True)
class Support:
    """Whether a device runs an instruction, and if not, why: ``needs amx-bf16``."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


class Device(Protocol):
    """Anything that runs an instruction on a batch.

    Four optional attributes: ``run_vectors(instruction, vectors)`` for devices that
    need no tiles, ``concurrent = True`` where several threads may call at once, and ``in_thread = True`` where
    the thread that calls computes, on its core, ``claims_nans = False`` where which NaN comes out says nothing.
    """

    @property
    def name(self) -> str:
        """What the device is called: ``cpu``, ``model:sm_90a``."""
        ...

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


class VectorDevice(Device, Protocol):
    """A device that answers separate vectors without tiles (a recording, a function)."""

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """d of shape (n,) for vectors that have all of the instruction's lanes."""
        ...


class ReadsGpuMemory(Device, Protocol):
    """A device that takes operands where they lie, in GPU memory of the kinds ``resident`` (DLPack's device types)."""

    resident: tuple[int, ...]

    def run_operands(self, instruction: Instruction, given: Mapping[str, Bits | Resident]) -> Bits:
        """D of checked operands (``check_operands``)."""
        ...


def has(device: object, *names: str) -> bool:
    """Whether a device has attributes, its own or what it hands on by ``__getattr__``.

    ``isinstance`` of a protocol asks for no other than its own from Python 3.12 on.
    """
    return all(hasattr(device, name) for name in names)


def is_device(it: object) -> TypeIs[Device]:
    """Whether it has what every device has."""
    return has(it, "name", "info", "instructions", "supports", "run")


def reads_gpu_memory(device: Device) -> TypeIs[ReadsGpuMemory]:
    """Whether it takes operands where they lie in GPU memory."""
    return has(device, "resident", "run_operands")


def _needs_no_tiles(device: Device) -> TypeIs[VectorDevice]:
    return has(device, "run_vectors")


def pad_lanes(instruction: Instruction, vectors: Batch) -> Batch:
    """Vectors of fewer lanes than the instruction's K, filled up with lanes of code 0 (+0 times +0).

    UsageError for vectors of more lanes, and for short sparse ones (a
    metadata code of 0 selects nothing valid).
    """
    missing = instruction.k - vectors.b.shape[1]
    if missing == 0:
        return vectors
    if missing < 0 or instruction.chunk:
        raise UsageError(f"{instruction.id}: takes vectors of {instruction.k} lanes, got {vectors.b.shape[1]}")
    wide = {"a": instruction.k, "b": instruction.k}
    if instruction.scale is not None:
        wide |= dict.fromkeys(("scale_a", "scale_b"), instruction.k // instruction.scale_size)
    return Batch(**{
        name: np.pad(value, ((0, 0), (0, wide[name] - value.shape[1]))) if name in wide else value
        for name, value in vectors.items()
    })  # fmt: skip


def run_vectors(device: Device, instruction: Instruction, vectors: Batch) -> Bits:
    """d of shape (n,) for n separate vectors (a (n, K), b (n, K), c (n,), ...): packed into tiles.

    Vector j of a tile uses row j of A and column j of B, so a tile carries
    min(M, N) vectors (times the MFMA blocks); the rest of the tile is zero
    (with legal metadata).
    Vectors of fewer lanes are filled up by ``pad_lanes``.  A ``VectorDevice``
    (a model, a recording) needs no tiles.  DeviceError where the answer does
    not have the shape and type of D.
    """
    if moves_operands(instruction):
        raise UsageError(f"{instruction.id} moves operands within a tile; run it on tiles, not on single vectors")
    missing = instruction.shapes(1).keys() - dict(vectors.items()).keys()
    if missing:
        raise UsageError(f"{instruction.id}: operand {', '.join(sorted(missing))} is missing")
    vectors = pad_lanes(instruction, vectors)
    if _needs_no_tiles(device):
        return _answer(device, instruction, vectors.copy(), device.run_vectors, (vectors.size,))
    if instruction.lane_wise and instruction.blocks == 1:
        return run_tiles(device, instruction, _as_lanes(instruction, vectors)).reshape(-1)
    per = min(instruction.m, instruction.n)
    d = _answer_tiles(device, instruction, _on_diagonals(instruction, vectors, per))
    diagonal = np.arange(per)
    return d.reshape(-1, instruction.m, instruction.n)[:, diagonal, diagonal].reshape(-1)[: vectors.size]


def run_tiles(device: Device, instruction: Instruction, batch: Batch) -> Bits:
    """D of whole tiles; DeviceError where the device breaks down or its answer has not the shape and type of D.

    The device gets operands of its own: what it does to them changes nobody else's.
    """
    return _answer_tiles(device, instruction, batch.copy())


def run_blocks(device: Device, instruction: Instruction, tiles: Batch) -> Bits:
    """D of tiles without an axis of MFMA blocks, a block each: what fills the last item is the first tile again."""
    if instruction.blocks == 1:
        return run_tiles(device, instruction, tiles)
    items = -(-tiles.size // instruction.blocks)
    places = np.arange(items * instruction.blocks)
    places[tiles.size :] = 0
    shapes = instruction.shapes(items)
    whole = Batch(**{name: value[places].reshape(shapes[name]) for name, value in tiles.items()})
    d = run_tiles(device, instruction, whole)
    return d.reshape(-1, instruction.m, instruction.n)[: tiles.size]


def _answer_tiles(device: Device, instruction: Instruction, batch: Batch) -> Bits:
    return _answer(device, instruction, batch, device.run, (*batch.a.shape[:-1], instruction.n))


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
        blank = legal_items(instruction.chunk)[0] if name == "metadata" else 0
        flat = np.full((pieces * per, *value.shape[1:]), blank, value.dtype)
        flat[: vectors.size] = value
        rows = flat.reshape(pieces, per, *value.shape[1:])
        tile = np.full((pieces, *shape[-2:]), blank, value.dtype)
        if name in PER_RESULT:
            tile[:, diagonal, diagonal] = rows
        elif name in ("b", "scale_b"):
            tile[:, :, :per] = rows.swapaxes(1, 2)
        else:
            tile[:, :per, :] = rows
        full[name] = tile.reshape(shape)
    return Batch(**full)


def _answer(device: Device, instruction: Instruction, batch: Batch, run: _Run, shape: tuple[int, ...]) -> Bits:
    """What the device answers, if it is bit patterns of D in this shape; DeviceError otherwise.

    A copy, and a plain array: what the device keeps of its answer, and how its own kind of array compares, says
    nothing later.
    """
    try:
        d = run(instruction, batch)
    except (MmaprobeError, MemoryError):
        raise
    except Exception as error:
        raise DeviceError(f"{device.name}: {instruction.id} broke down: {type(error).__name__}: {error}") from error
    dtype = instruction.formats()["d"].dtype
    if not isinstance(d, np.ndarray) or d.dtype != dtype or d.shape != shape:
        came = f"{getattr(d, 'dtype', type(d).__name__)} of shape {np.shape(d)}"
        raise DeviceError(f"{device.name}: {instruction.id} answered {came}, not {dtype} of shape {shape}")
    return np.array(d, order="C", subok=False)


class Serial:
    """A device that answers one call at a time, whoever asks: for devices that are not concurrent."""

    concurrent = True

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = threading.Lock()
        if hasattr(device, "run_vectors"):
            self.run_vectors = self._run_vectors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    @property
    def name(self) -> str:
        """The device's own name."""
        return self._device.name

    def info(self) -> dict[str, str]:
        """The device's own identity."""
        return self._device.info()

    def instructions(self) -> Sequence[Instruction]:
        """The device's own instructions."""
        return self._device.instructions()

    def supports(self, instruction: Instruction) -> Support:
        """Whether the instruction runs on the device."""
        with self._lock:
            return self._device.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of the batch, once the device is free."""
        with self._lock:
            return self._device.run(instruction, batch)

    def _run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        with self._lock:
            return run_vectors(self._device, instruction, vectors)


def claims_nans(device: Device) -> bool:
    """Whether which NaN a device gives says anything."""
    return bool(getattr(device, "claims_nans", True))


def serial(device: Device) -> Device:
    """The device itself where several threads may call it, else behind a lock."""
    return device if getattr(device, "concurrent", False) else Serial(device)


def vectors_per_tile(instruction: Instruction) -> int:
    """How many separate vectors ``run_vectors`` puts into one tile."""
    return min(instruction.m, instruction.n) * instruction.blocks


def open_device(name: str) -> Device:
    """The device called ``name``: ``scheme`` or ``scheme:argument``, found by entry point, a GPU by its maker's record.

    Raises UsageError with the near names for an unknown scheme, or that
    says that an instruction is none; NotHereError where the hardware or
    driver is missing.
    """
    if not isinstance(name, str):
        raise UsageError(f"device {brief(name)}: a device is named by text, such as cpu or model:sm_90a")
    scheme, _, argument = name.partition(":")
    known = _openers()
    if scheme not in known:
        if _is_instruction(name):
            raise UsageError(f"{name} is an instruction, no device: devices are named first, then the instruction")
        raise UsageError(f"unknown device {brief(name)}{near(scheme, known)}")
    return known[scheme]()(argument)


def _is_instruction(name: str) -> bool:
    try:
        lookup.instruction(name)
    except UsageError:
        return False
    return True


def schemes() -> list[str]:
    """The names under which devices are registered."""
    return sorted(_openers())


def _openers() -> dict[str, Callable[[], Callable[[str], Device]]]:
    """By scheme, what imports the function that opens such devices."""
    registered = {entry.name: entry.load for entry in metadata.entry_points(group=GROUP)}
    return registered | {vendor.scheme: vendor.opener for vendor in every()}
