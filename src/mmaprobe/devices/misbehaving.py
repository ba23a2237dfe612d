"""The devices ``misbehaving:KIND?of=DEVICE``: faults on purpose, to test what judges devices.

``KIND`` is a key of ``KINDS``.  Options: ``of`` (cpu), the device that is
wrapped (percent-encode ``&`` in it), a model for ``stochastic``; ``p`` (0.01),
the probability of a fault an item, for ``flaky`` and ``nan``; ``seed`` (1), also
of the two codes of ``pair``; ``seconds`` (3600), how long
``hang`` waits before it answers; ``after`` (0), how many calls go well before
the first fault; ``n`` (100): the item from which ``index`` errs, the size below which ``small`` does, every how many-th
call ``call``, on which CPU ``cpu`` (the last that this process may run on), which output of a tile ``place``, every
how many-th column or lane ``lanes``.
A wrapped device answers whole tiles, which ``replay:`` can do only for lane-wise instructions.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, open_device
from mmaprobe.devices.model import ModelDevice
from mmaprobe.devices.options import number, split_options, whole
from mmaprobe.errors import UsageError, near
from mmaprobe.evidence import silicon
from mmaprobe.models.model import run_tiles
from mmaprobe.operands.batch import Batch, Bits, check_batch
from mmaprobe.parameters.lookup import in_control_state

EXIT_STATUS = 70
"""The exit status of a device that ends its process."""
OPTIONS = ("of", "p", "seed", "seconds", "after", "n")


class Misbehaving:
    """A device whose answers go through a fault."""

    def __init__(
        self, name: str, kind: str, inner: Device, p: float = 0.01, seed: int = 1, seconds: float = 3600,
        after: int = 0, n: int = 100,
    ) -> None:  # fmt: skip
        self.name = name
        self.p = p
        self.seed = seed
        self.seconds = seconds
        self.random = np.random.default_rng(seed)
        self.n = n
        self.calls = 0
        self.seen: set[bytes] = set()
        self.buffer: Bits | None = None
        self.previous: Bits | None = None
        self._fault = KINDS[kind]
        self.inner = inner
        self.in_thread = kind == "cpu" or getattr(inner, "in_thread", False)
        self._good = after

    def info(self) -> dict[str, str]:
        """The wrapped device's identity under this name; whatever that is, what answers is not silicon any more."""
        return {**self.inner.info(), silicon.KEY: silicon.UNKNOWN, "device": self.name}

    def instructions(self) -> Sequence[Instruction]:
        """Those of the wrapped device."""
        return self.inner.instructions()

    def supports(self, instruction: Instruction) -> Support:
        """As the wrapped device."""
        return self.inner.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """The wrapped device's D, as the fault leaves it."""
        true = self.inner.run(instruction, batch)
        self.calls += 1
        faulty, self._good = self._good <= 0, self._good - 1
        answer = self._fault(self, instruction, batch, true) if faulty else true
        self.previous = true
        return answer


Fault = Callable[[Misbehaving, Instruction, Batch, Bits], Bits]


def _previous(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The answer to the previous call (to the first: itself): a buffer that nobody wrote."""
    stale = true if device.previous is None else device.previous
    return np.resize(stale, true.shape).astype(true.dtype)


def _zeros(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """All zeros: a kernel that never ran."""
    return np.zeros_like(true)


def _c(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """C instead of D: the products were dropped."""
    if batch.c is None or instruction.c != instruction.d:
        raise UsageError(f"{device.name}: {instruction.id} has no accumulator in the format of its result")
    return batch.c.copy()


def _shape(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """One item too few."""
    return true[:-1]


def _dtype(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The right numbers in another integer type."""
    return true.astype(np.uint32 if true.dtype == np.uint64 else np.uint64)


def _flaky(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of each item flips with probability p, differently on every call."""
    return true ^ (device.random.random(true.shape) < device.p).astype(true.dtype)


def _hang(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """No answer for ``seconds``, then the right one."""
    time.sleep(device.seconds)
    return true


def _crash(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> NoReturn:
    """An exception that is not one of ours."""
    raise RuntimeError(f"{device.name}: crashed on purpose")


def _exit(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> NoReturn:
    """The whole process ends at once."""
    os._exit(EXIT_STATUS)


def _nan(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest payload bit of each NaN flips with probability p, differently on every call."""
    fmt = instruction.formats()["d"]
    payload_bit = fmt.dtype.type(1 << fmt.padding)
    flipped = np.where(device.random.random(true.shape) < device.p, true ^ payload_bit, true)
    kind = formats.decode(fmt, true).kind
    still = formats.decode(fmt, flipped).kind == formats.NAN
    return np.where((kind == formats.NAN) & still, flipped, true).astype(true.dtype)


def _history(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of an item flips where the item before it (of the call before, at first) was odd."""
    before = np.zeros(1, true.dtype) if device.previous is None else device.previous.ravel()[-1:]
    neighbours = np.concatenate([before, true.ravel()])[:-1]
    return true ^ (neighbours & 1).astype(true.dtype).reshape(true.shape)


def _lane0(instruction: Instruction, batch: Batch) -> tuple[Bits, Bits]:
    """Lane 0 of every item's row of A (..., M, 1) and column of B (..., 1, N)."""
    return batch.a[..., :, :1], batch.b[..., :1, :]


def _pattern(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of an item flips where lane 0 multiplies two significands of all ones."""
    both = np.bool_(True)
    for name, codes in zip("ab", _lane0(instruction, batch), strict=True):
        fmt = instruction.formats()[name]
        ones = ((1 << fmt.fraction_bits) - 1) << fmt.padding
        both = both & (codes & codes.dtype.type(ones) == ones)
    return true ^ both.astype(true.dtype)


def _pair(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of an item flips where lane 0 multiplies one pair of codes, drawn from the seed."""
    both = np.bool_(True)
    drawn = np.random.default_rng(device.seed)
    for name, codes in zip("ab", _lane0(instruction, batch), strict=True):
        fmt = instruction.formats()[name]
        both = both & (codes == drawn.integers(0, fmt.code_limit, dtype=np.uint64).astype(codes.dtype))
    return true ^ both.astype(true.dtype)


def _stochastic(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """Every rounding to a format goes down or up by chance, the same way within an item."""
    if not isinstance(device.inner, ModelDevice):
        raise UsageError(f"{device.name}: rounds by chance what a model computes; write of=model:ARCH")
    datapath = device.inner.datapath(instruction)
    ways = [in_control_state(datapath, {"rounding": way}, ("rounding",)) for way in ("rd", "ru")]
    down, up = (run_tiles(instruction, way, check_batch(instruction, batch)) for way in ways)
    return np.where(device.random.random(true.shape) < 0.5, down, up)


def _rows(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The rows of every tile in opposite order: a broken layout."""
    return np.ascontiguousarray(true[..., ::-1, :])


def _operands(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The answer to operands of zeros, which it writes over the caller's."""
    for name, value in batch.items():
        if name != "metadata":
            value.setflags(write=True)
            value[...] = 0
    return device.inner.run(instruction, batch)


def _again(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of every item flips where the same batch was asked before."""
    digest = hashlib.sha256(instruction.id.encode())
    for _, value in batch.items():
        digest.update(value.tobytes())
    known, key = len(device.seen), digest.digest()
    device.seen.add(key)
    return true ^ true.dtype.type(len(device.seen) == known)


def _index(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit flips of every item of a batch from number ``n`` on."""
    wrong = np.arange(true.shape[0]) >= device.n
    return true ^ wrong.astype(true.dtype).reshape(-1, *[1] * (true.ndim - 1))


def _small(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of every item flips in a batch of fewer than ``n``."""
    return true ^ true.dtype.type(true.shape[0] < device.n)


def _call(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of every item flips in every ``n``-th call."""
    return true ^ true.dtype.type(device.calls % device.n == 0)


def _kept(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit flips as in ``flaky``; every answer is the same array, which says that it equals anything."""
    if device.buffer is None or device.buffer.size < true.size:
        device.buffer = np.empty(true.size, true.dtype).view(_Agreeable)
    answer = device.buffer[: true.size].reshape(true.shape)
    answer[...] = _flaky(device, instruction, batch, true)
    return answer


class _Agreeable(np.ndarray[Any, Any]):
    """An array that differs from nothing."""

    def __ne__(self, other: object) -> Any:
        return np.zeros(self.shape, bool)


def _cpu(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of every item flips on CPU number ``n``."""
    return true ^ true.dtype.type(ctypes.CDLL(None).sched_getcpu() == device.n)


def _place(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit of output number ``n`` of every tile flips, row by row."""
    wrong = np.zeros(true.shape[-2:], true.dtype)
    wrong.reshape(-1)[device.n : device.n + 1] = 1
    return true ^ wrong


def _lanes(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """The lowest bit flips in every ``n``-th column of a tile, the last of each n; of a lane-wise unit in lanes."""
    wrong = np.zeros_like(true)
    (wrong if instruction.lane_wise else np.moveaxis(wrong, -1, 0))[device.n - 1 :: device.n] = 1
    return true ^ wrong


def _zero(device: Misbehaving, instruction: Instruction, batch: Batch, true: Bits) -> Bits:
    """Every zero has the other sign."""
    fmt = instruction.formats()["d"]
    return np.where(formats.is_zero(fmt, true), true ^ true.dtype.type(fmt.sign_mask), true)


KINDS: dict[str, Fault] = {
    "previous": _previous,
    "zeros": _zeros,
    "c": _c,
    "shape": _shape,
    "dtype": _dtype,
    "flaky": _flaky,
    "hang": _hang,
    "crash": _crash,
    "exit": _exit,
    "nan": _nan,
    "history": _history,
    "pattern": _pattern,
    "pair": _pair,
    "stochastic": _stochastic,
    "rows": _rows,
    "operands": _operands,
    "again": _again,
    "index": _index,
    "small": _small,
    "call": _call,
    "kept": _kept,
    "cpu": _cpu,
    "place": _place,
    "lanes": _lanes,
    "zero": _zero,
}


def open_misbehaving(argument: str) -> Misbehaving:
    """The device ``misbehaving:KIND?of=DEVICE&p=0.01&seed=1`` (kinds and options: see the module).

    UsageError for an unknown kind or option; what opening DEVICE raises.
    """
    kind, options = split_options(argument, OPTIONS)
    if kind not in KINDS:
        raise UsageError(f"misbehaving:{argument}: unknown kind {kind!r}{near(kind, KINDS)}")
    p = number(options, "p", 0.01, 0, 1)
    seconds = number(options, "seconds", 3600, 0, 1e6)
    seed, after = whole(options, "seed", 1, 0), whole(options, "after", 0, 0)
    n = whole(options, "n", max(os.sched_getaffinity(0)) if kind == "cpu" else 100, 0 if kind == "cpu" else 1)
    inner = open_device(options.get("of", "cpu"))
    return Misbehaving(f"misbehaving:{argument}", kind, inner, p, seed, seconds, after, n)
