"""What a GPU device needs of a vendor's driver: one context of one GPU, and how it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from mmaprobe.devices import waiting
from mmaprobe.devices.gpu.health import Health, VoidError
from mmaprobe.errors import DeviceError, NotHereError
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.resident import Resident
from mmaprobe.toolchain.kernel import Kernel

NOT_READY = 600
"""What both vendors' drivers answer of a launch that has not ended."""
_ANSWERS_LATE = 0.002
"""Seconds between two questions whether a launch has ended, once it is late."""
_AT_ONCE = 0.0002
"""The same before; and for so many nobody sleeps: most launches have ended."""


class TakenError(NotHereError):
    """Another process has the device for itself."""


class TooOldError(NotHereError):
    """The driver loads no kernel of the toolchain that made them."""


class OutOfMemoryError(DeviceError):
    """The device has no room for an allocation; a smaller one may fit."""


class HungError(DeviceError):
    """A launch did not end within its time limit."""


class StuckError(HungError):
    """A launch that hung still runs, or one failed for good: this process cannot launch another one."""


class NoChildError(DeviceError):
    """No child process opens the device any more: no instruction can be tried."""


class LostError(DeviceError):
    """The device itself is gone: uncorrectable memory error, fallen off the bus."""


NO_ROOM = (StuckError, NoChildError, TakenError, TooOldError, OutOfMemoryError)
"""What keeps this process from launching anything more; what it has found is as good as ever."""
ENDS_ALL = (LostError, *NO_ROOM, VoidError)
"""What is no single instruction's failure, and what no other one will fare better with."""


class Driver(Protocol):
    """One GPU through its vendor's driver.

    Every call raises DeviceError, or one of the classes above, on a bad status.
    A context is what ``start`` makes and ``stop`` gives up with all that it
    holds; addresses and functions are valid within one context only.
    """

    @property
    def name(self) -> str:
        """``cuda:0``."""
        ...

    @property
    def architecture(self) -> str:
        """The catalog's name of the GPU's architecture."""
        ...

    @property
    def resident(self) -> tuple[int, ...]:
        """The kinds of GPU memory that a kernel reads (DLPack's device types)."""
        ...

    @property
    def multiprocessor(self) -> str:
        """What the vendor calls a multiprocessor."""
        ...

    @property
    def multiprocessors(self) -> int:
        """How many multiprocessors there are."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether one process alone may have a context."""
        ...

    def identity(self) -> dict[str, str]:
        """What evidence records."""
        ...

    def health(self) -> Health:
        """A reading of errors, clocks, heat and processes; LostError where the GPU is found lost."""
        ...

    def siblings(self) -> list[str]:
        """The names of all GPUs of this vendor that are seen."""
        ...

    def unserved(self, toolchain: str, binary: bytes = b"") -> str:
        """Why this driver loads nothing that a toolchain makes (one binary, where there is one), and what to type;
        empty where nothing is known against it."""
        ...

    def start(self) -> None:
        """A fresh context, unless there is one; StuckError while a launch of before still runs, or has broken all."""
        ...

    def current(self) -> AbstractContextManager[None]:
        """The context current in this thread, and what was before it afterwards."""
        ...

    def stop(self) -> None:
        """Give up the context, its memory and functions; never raises."""
        ...

    def settle(self, array: Resident) -> None:
        """Wait for what was begun on an array in GPU memory; UsageError where that is another GPU's."""
        ...

    def room(self) -> int:
        """Free bytes of memory."""
        ...

    def allocate(self, size: int) -> int:
        """The address of ``size`` fresh bytes."""
        ...

    def release(self, address: int) -> None:
        """Free an allocation."""
        ...

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set bytes."""
        ...

    def copy_in(self, address: int, array: Bits) -> None:
        """Copy a contiguous array to the device."""
        ...

    def copy_out(self, array: Bits, address: int) -> None:
        """Copy from the device into a contiguous array."""
        ...

    def load(self, kernel: Kernel) -> Any:
        """The function of a kernel; NotHereError where this driver cannot load it."""
        ...

    def launch(self, function: Any, kernel: Kernel, groups: int, operands: bytes, done: int) -> None:
        """Start ``groups`` CTAs on operands (the struct by value) and the address of ``done``."""
        ...

    def wait(self, seconds: float) -> None:
        """Until the launch has ended; HungError at the time limit."""
        ...


def await_end(name: str, status: Callable[[], int], seconds: float) -> int:
    """The status of a launch that has ended; HungError where that takes more than ``seconds``."""
    begun = time.monotonic()
    while (found := status()) == NOT_READY:
        passed = time.monotonic() - begun
        if passed > seconds:
            raise HungError(f"{name}: hung: the launch did not end within {seconds:g} s")
        if passed > waiting.PATIENCE:
            limit = f"it may take {seconds:g} s; Ctrl-C ends it"
            waiting.tell(f"waiting for {name}, where a launch has not ended for {waiting.PATIENCE:g} s; {limit}")
        if passed > _AT_ONCE:
            time.sleep(_ANSWERS_LATE if passed > 10 * _ANSWERS_LATE else _AT_ONCE)
    return found


@contextmanager
def stuck_if(failed: bool, runtime: str) -> Iterator[None]:
    """StuckError for a DeviceError inside where a launch before ``failed``: no instruction that follows is to blame."""
    try:
        yield
    except LostError:
        raise
    except DeviceError as error:
        if not failed:
            raise
        raise StuckError(
            f"{error}: since a launch failed {runtime} does nothing more in this process; the same command with "
            "--resume goes on"
        ) from error
