"""What every GPU device does, whoever made it: fail closed.

A batch is void unless all of this holds: the first run of an instruction in a
child process came to a good end; a known answer came out before and after the
batch, on the same context; every launch stored every item (``launch``);
every call to the driver went well.  After an error the context is given up,
and the next batch starts on a fresh one.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as instruction_of
from mmaprobe.devices.base import Support
from mmaprobe.devices.emulators import of_machine
from mmaprobe.devices.gpu.campaign import LaunchOrder, LaunchResult, run_order
from mmaprobe.devices.gpu.driver import Driver, LostError, OutOfMemoryError
from mmaprobe.devices.gpu.health import Health
from mmaprobe.devices.gpu.known_answer import WrongAnswerError, answers, known_answer
from mmaprobe.devices.gpu.launch import item_bytes, launch
from mmaprobe.devices.gpu.open_layouts import OpenLayouts
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.evidence import silicon
from mmaprobe.operands.batch import Batch, Bits, check_batch
from mmaprobe.operands.resident import Resident
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.kernel_cache import kernel_of
from mmaprobe.toolchain.render import NO_RANDOM_BITS
from mmaprobe.toolchain.source import Source

KNOWN_ITEMS = 37
"""Items of a known answer: more than a CTA's groups run at a time, and no multiple of them."""
LARGEST_LAUNCH = 1 << 30
"""Bytes of operands and D of one launch at most: time limits then bound a bounded amount of work."""

GO_ON = "what was recorded before stays valid; once the GPU is back, the same command with --resume goes on"
"""What to do after the GPU was lost; this process does not open it again."""

BatchOperands = Mapping[str, Bits | Resident]
Kernels = Callable[[Instruction, str], Kernel]
Sources = Callable[[Source], Kernel]


class Trial(Protocol):
    """The first run of an instruction, where it can do no harm."""

    def check(self, instruction: Instruction) -> None:
        """DeviceError where it does not come to a good end."""
        ...

    def check_campaign(self, source: Source, order: LaunchOrder) -> None:
        """The same of a fused campaign's first launch."""
        ...


@dataclass(frozen=True)
class KernelOrigin:
    """Where kernels come from: the ids of those ``held`` (None: any is compiled here), what made them, how to get one
    that is missing; ``sample``: one binary, where there is one; ``anew``: what to do once another toolchain is here."""

    held: Container[str] | None = None
    toolchain: Callable[[], Mapping[str, str]] = dict
    advice: str = ""
    sample: Callable[[], bytes] = bytes
    anew: str = ""


class GpuDevice:
    """Device protocol over a ``Driver``: ``kernels`` gives an instruction's kernel, ``seconds`` bounds each launch."""

    def __init__(
        self,
        driver: Driver,
        kernels: Kernels,
        trial: Trial | None,
        seconds: float,
        sources: Sources = kernel_of,
        origin: KernelOrigin | None = None,
    ) -> None:
        self.name = driver.name
        self.architecture = driver.architecture
        self.resident = driver.resident
        self.multiprocessor = driver.multiprocessor
        self.layouts = OpenLayouts(driver.name, driver.architecture)
        self._driver, self._kernels, self._trial, self._seconds = driver, kernels, trial, seconds
        self._sources, self._origin = sources, origin or KernelOrigin()
        self._identity = {silicon.KEY: of_machine()} | driver.identity()
        self._made: dict[str, Kernel] = {}
        self._campaigns: dict[str, Kernel] = {}
        self._functions: dict[str, Any] = {}
        self._tried: set[str] = set()
        self._lost = ""
        self._proves = True
        weakref.finalize(self, driver.stop)

    def info(self) -> dict[str, str]:
        """Identity as read when the device was opened: whether it is silicon, name, UUID, architecture, driver, ..."""
        return dict(self._identity)

    def health(self) -> Health:
        """Errors, clocks, heat and processes as they are now; LostError where the GPU is gone."""
        self._refuse_lost()
        try:
            return self._driver.health()
        except LostError as error:
            raise self._losing(error) from error

    def toolchain(self) -> dict[str, str]:
        """What made the kernels: part of what a run is."""
        return dict(self._origin.toolchain())

    def holds(self, instruction: Instruction) -> Support:
        """Whether the kernel is at hand, or can be compiled here; else what makes it."""
        held = self._origin.held
        kernels = self.layouts.claims(instruction) or (self.settled(instruction),)
        return Support(held is None or any(each.id in held for each in kernels), self._origin.advice)

    def siblings(self) -> list[str]:
        """The names of all GPUs of this kind here."""
        return self._driver.siblings()

    def instructions(self) -> Sequence[Instruction]:
        """Every instruction of the GPU's architecture."""
        return lookup.instructions(self.architecture)

    def supports(self, instruction: Instruction) -> Support:
        """Yes where the catalog has a lowering for this architecture and no layout is open, else why not."""
        try:
            lookup.lowering(instruction, self.architecture)
        except UsageError as error:
            return Support(False, f"this GPU lacks it: {error}")
        reason = NO_RANDOM_BITS if instruction.random else self.layouts.reason(instruction)
        return Support(not reason, reason)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of shape (batch, M, N).

        NotHereError where this GPU lacks the instruction or its driver cannot
        load the kernel, DeviceError where anything at all went wrong: then
        there is no result, and the next batch starts on a fresh context.
        """
        try:
            ready = check_batch(instruction, batch)
        except MemoryError:
            raise _too_large(instruction, batch.size) from None
        return self.run_operands(instruction, dict(ready.items()))

    def run_operands(self, instruction: Instruction, given: BatchOperands) -> Bits:
        """D of checked operands, of which some may lie on this GPU already: they are read where they are."""
        self._refuse(instruction)
        instruction = self.settled(instruction)
        try:
            d = np.empty((*given["a"].shape[:-1], instruction.n), instruction.formats()["d"].dtype)
        except MemoryError:
            raise _too_large(instruction, given["a"].shape[0]) from None
        self._try_first(instruction)
        self._kernel(instruction)
        with self._void_after_errors(instruction.id, "the batch"):
            self._checked(instruction, given, d)
        return d

    def settled(self, instruction: Instruction) -> Instruction:
        """The instruction as it runs here: where its layout was open, by the claim that was found right."""
        return self.layouts.settled(instruction)

    def prepare_campaign(self, source: Source) -> None:
        """Have the kernel of a fused campaign at hand; NotHereError where there is none."""
        if source.text not in self._campaigns:
            self._campaigns[source.text] = self._sources(source)

    def run_campaign(self, source: Source, order: LaunchOrder) -> LaunchResult:
        """What a launch of a fused campaign found, the first one of its source in a child process before.

        NotHereError where there is no kernel of this source (a pack may lack it) or the driver cannot
        load it, DeviceError where anything went wrong: then nothing was found.
        """
        made = instruction_of(source.instruction, self.architecture)
        self._refuse(made)
        self.prepare_campaign(source)
        self._first(source.text, lambda trial: trial.check_campaign(source, order))
        with self._void_after_errors(source.instruction, "the launch"):
            self._driver.start()
            with self._driver.current():
                campaign = self._loaded(source.text, self._campaigns[source.text])
                batches = self._loaded(made.id, self._kernel(made)) if source.campaign == "staged" else None
                return run_order(self._driver, campaign, batches, order, max(made.m, made.n), self._seconds)

    def _kernel(self, instruction: Instruction) -> Kernel:
        """The kernel of batches."""
        if instruction.id not in self._made:
            self._made[instruction.id] = self._kernels(instruction, self.architecture)
        return self._made[instruction.id]

    def _loaded(self, key: str, kernel: Kernel) -> tuple[Any, Kernel]:
        """A kernel's function in the present context."""
        if key not in self._functions:
            self._functions[key] = self._driver.load(kernel)
        return self._functions[key], kernel

    @property
    def multiprocessors(self) -> int:
        """How many multiprocessors there are."""
        return self._driver.multiprocessors

    @contextmanager
    def _void_after_errors(self, name: str, what: str) -> Iterator[None]:
        """Give up the context after any error; a DeviceError says what is void."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, LostError):
                self._lost = str(error)
                raise type(error)(f"{name}: {error}; {what} is void; {GO_ON}") from error
            if isinstance(error, DeviceError):
                raise type(error)(f"{name}: {error}; {what} is void") from error
            raise

    @contextmanager
    def unproven(self) -> Iterator[None]:
        """No batch inside is held against a known answer: to find out where the operands of an instruction go after
        it raised ``WrongAnswerError``, and for nothing else."""
        self._proves = False
        try:
            yield
        finally:
            self._proves = True

    def close(self) -> None:
        """Give up the context; the next run makes a fresh one."""
        self._functions.clear()
        self._driver.stop()

    def rest(self) -> None:
        """Give up the context where one process alone may have one: another's turn."""
        if self._driver.exclusive:
            self.close()

    def _losing(self, error: LostError) -> LostError:
        """From here on the GPU is lost; the error to raise."""
        self.close()
        self._lost = str(error)
        return LostError(f"{error}; {GO_ON}")

    def _refuse_lost(self) -> None:
        if self._lost:
            raise LostError(f"{self._lost}; {GO_ON}")

    def _refuse(self, instruction: Instruction) -> None:
        self._refuse_lost()
        support = self.supports(instruction)
        if not support:
            raise NotHereError(f"{instruction.id}: {support.reason}; see `mmaprobe instructions {self.architecture}`")

    def _try_first(self, instruction: Instruction) -> None:
        """The instruction's first run, in a child process."""
        if self._proves:
            self._first(instruction.id, lambda trial: trial.check(instruction))

    def _first(self, key: str, check: Callable[[Trial], None]) -> None:
        """What is tried once in a child process, which has the GPU to itself where one process alone may."""
        if self._trial is None or key in self._tried:
            return
        self.rest()
        try:
            check(self._trial)
        except LostError as error:
            raise self._losing(error) from error
        self._tried.add(key)

    def _checked(self, instruction: Instruction, given: BatchOperands, d: Bits) -> None:
        self._driver.start()
        with self._driver.current():
            self._loaded(instruction.id, self._made[instruction.id])
            self._known(instruction, "before")
            self._split(instruction, given, d)
            self._known(instruction, "after")

    def _known(self, instruction: Instruction, when: str) -> None:
        """DeviceError where a batch of small integers does not come out; each time another one of two."""
        if not self._proves:
            return
        batch, expected = _known_answer(instruction, when)
        d = np.empty_like(expected)
        self._split(instruction, dict(batch.items()), d)
        if not answers(instruction, d, expected):
            raise WrongAnswerError(f"{self.name}: wrong known answer {when} the batch")

    def _split(self, instruction: Instruction, given: BatchOperands, d: Bits) -> None:
        """Fill D of operands in launches that fit into memory, each half as large where one did not."""
        kernel, function = self._made[instruction.id], self._functions[instruction.id]
        each = item_bytes(instruction)
        count = max(min(self._driver.room() // 2, LARGEST_LAUNCH) // each, 1)
        start, size = 0, d.shape[0]
        while start < size:
            stop = min(start + count, size)
            part = {name: value[start:stop] for name, value in given.items()}
            try:
                launch(self._driver, function, kernel, part, d[start:stop], self._seconds)
            except OutOfMemoryError as error:
                if stop - start == 1:
                    raise OutOfMemoryError(f"{error}; one item takes {each} bytes") from None
                count = (stop - start) // 2
                continue
            start = stop


@lru_cache(maxsize=16)
def _known_answer(instruction: Instruction, when: str) -> tuple[Batch, Bits]:
    return known_answer(instruction, KNOWN_ITEMS, zlib.crc32(f"{instruction.id} {when}".encode()))


def _too_large(instruction: Instruction, size: int) -> UsageError:
    return UsageError(f"{instruction.id}: a batch of {size} items is too large for this machine's memory; split it")
