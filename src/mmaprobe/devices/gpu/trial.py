"""The first run of an instruction on a GPU, in a child process with a time limit.

The child opens the same device and answers each line of its standard input, an
instruction's id, with ``ok 1`` where the known answer comes out, else with
``error CLASS MESSAGE``, CLASS a name in ``CLASSES``; a line ``campaign JSON``,
the source and the order of a launch, with the same of a fused campaign that
judges every tile; a line ``catalog JSON`` adds tables to its catalog.  After an
error it ends, and so does one that hangs or dies: the next instruction gets a
fresh child.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TextIO

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.outside import add_all
from mmaprobe.catalog.supplements import added
from mmaprobe.devices.base import Device, open_device
from mmaprobe.devices.child import Child, EndlessError, LateError
from mmaprobe.devices.gpu.campaign import LaunchOrder
from mmaprobe.devices.gpu.device import KNOWN_ITEMS, GpuDevice
from mmaprobe.devices.gpu.driver import (
    HungError,
    LostError,
    NoChildError,
    OutOfMemoryError,
    StuckError,
    TakenError,
    TooOldError,
)
from mmaprobe.devices.gpu.known_answer import WrongAnswerError, answers, known_answer
from mmaprobe.errors import CannotWriteError, DeviceError, InternalError, MmaprobeError, NotHereError, UsageError
from mmaprobe.evidence.unexpected_ends import unforeseen
from mmaprobe.toolchain.compiler import RefusedError
from mmaprobe.toolchain.source import Source

HELLO, CAMPAIGN, CATALOG = "mmaprobe-trial", "campaign", "catalog"
CLASSES: dict[str, type[MmaprobeError]] = {
    kind.__name__: kind
    for kind in (
        MmaprobeError, UsageError, NotHereError, TakenError, TooOldError, CannotWriteError, InternalError,
        DeviceError, WrongAnswerError, HungError, LostError, OutOfMemoryError, RefusedError,
    )
}  # fmt: skip
"""What a child may raise, by name; of a class that is not here its nearest base that is.

A child that is stuck is none the parent need care about: it ends, and counts as one that hung.
"""
OWN = (HungError, LostError, OutOfMemoryError)
"""What no instruction of before brings about: the child ends after each error, and every launch was waited for."""


class ChildTrial:
    """``device.Trial`` by a command that runs ``serve`` on the device."""

    def __init__(self, device: str, command: tuple[str, ...], seconds: float) -> None:
        self._device, self._child = device, Child(command, seconds)

    def check(self, instruction: Instruction) -> None:
        """The known answer of an instruction in the child; the child's own error, or DeviceError for its end.

        NoChildError where no child opens the device, StuckError where one cannot be ended.  What goes wrong in a child
        that ran others before may be their doing: it is asked again of a fresh one, whose answer counts.
        """
        self._check(f"{instruction.id}: its first run", instruction.id)

    def check_campaign(self, source: Source, order: LaunchOrder) -> None:
        """A launch of a fused campaign in the child; the errors of ``check``."""
        asked = json.dumps({"source": asdict(source), "order": asdict(order)})
        self._check(f"{source.instruction}: its fused kernel's first launch", f"{CAMPAIGN} {asked}")

    def _check(self, what: str, line: str) -> None:
        fresh = not self._child.running
        try:
            self._ask(what, line)
        except OWN:
            raise
        except DeviceError:
            if fresh:
                raise
            self._ask(what, line)

    def _ask(self, what: str, line: str) -> None:
        """One question to the child; after an error it is ended."""
        where = f"{what} on {self._device}, in a child"
        try:
            if not self._child.running:
                self._start()
            answer = self._child.exchange(f"{line}\n".encode(), lines=0).decode("utf-8", "replace")
            if not answer.startswith("ok "):
                self._child.stop()
        except EndlessError as error:
            raise StuckError(f"{where}: {error}; once it is gone, the same command with --resume goes on") from error
        except LateError as error:
            raise HungError(f"{where}: {error}") from error
        except (NoChildError, LostError):
            raise
        except DeviceError as error:
            raise DeviceError(f"{where}: {error}") from error
        if not answer.startswith("ok "):
            raise _said(answer, "first run in a child process")

    def _start(self) -> None:
        """Start a child; TakenError or LostError where it says so, NoChildError for anything else that it meets."""
        try:
            hello = self._child.start().strip()
            if hello == HELLO:
                self._tell_catalog()
                return
            self._child.stop()
        except (DeviceError, NotHereError) as error:
            raise NoChildError(f"{self._device}: no child process opens it: {error}; {_GO_ON}") from error
        said = _said(hello, f"{self._device}: a child process cannot open it")
        raise said if isinstance(said, (TakenError, LostError)) else NoChildError(f"{said}; {_GO_ON}")

    def _tell_catalog(self) -> None:
        """What was added to the catalog here, the child must know too; DeviceError where it does not take it."""
        if added():
            tables = json.dumps([each.data for each in added()])
            answer = self._child.exchange(f"{CATALOG} {tables}\n".encode(), lines=0).decode("utf-8", "replace")
            if not answer.startswith("ok "):
                raise self._child.failure(answer.strip())


_GO_ON = "what was recorded stays valid; the same command with --resume goes on"


def _said(answer: str, where: str) -> MmaprobeError:
    """The error of a child's line; DeviceError for a line that is none."""
    word, _, rest = answer.strip().partition(" ")
    name, _, said = rest.partition(" ")
    if word != "error" or name not in CLASSES:
        return DeviceError(f"{where}: it answers {answer.strip()[:200]!r}")
    return CLASSES[name](f"{where}: {said}")


def _told(error: MmaprobeError, answered: TextIO) -> int:
    """Answer with an error; its exit code."""
    name = next(kind.__name__ for kind in type(error).__mro__ if CLASSES.get(kind.__name__) is kind)
    print(f"error {name} {' '.join(str(error).split())}", file=answered, flush=True)
    return error.exit_code


def command(device: str) -> tuple[str, ...]:
    """The command of a child that tries instructions on a device."""
    return (sys.executable, "-m", "mmaprobe.devices.gpu.trial", device)


def _try(device: Device, architecture: str, line: str) -> None:
    """What a line asks for; the error of what does not come to a good end."""
    word, _, rest = line.partition(" ")
    if word == CATALOG:
        add_all(json.loads(rest), "the parent")
        return
    if word == CAMPAIGN and isinstance(device, GpuDevice):
        given = json.loads(rest)
        device.run_campaign(Source(**given["source"]), LaunchOrder(**given["order"]))
        return
    made = instruction(line, architecture)
    batch, expected = known_answer(made, KNOWN_ITEMS, 1)
    if not answers(made, device.run(made, batch), expected):
        raise WrongAnswerError(f"{made.id}: wrong known answer")


def serve(device: Device, architecture: str, asked: TextIO, answered: TextIO) -> int:
    """Answer every line of ``asked``, until there is none or one ends in an error, whose exit code is returned.

    A GPU that one process alone may have is given up before the answer: the parent's is next.
    """
    print(HELLO, file=answered, flush=True)
    for line in asked:
        try:
            _try(device, architecture, line.strip())
        except MmaprobeError as error:
            return _told(error, answered)
        except Exception as error:
            return _told(unforeseen(error), answered)
        if isinstance(device, GpuDevice):
            device.rest()
        print("ok 1", file=answered, flush=True)
    return 0


def main(name: str) -> int:
    """Try instructions on the device of this name; what else is printed goes to standard error."""
    answered, sys.stdout = sys.stdout, sys.stderr
    try:
        device = open_device(name)
    except MmaprobeError as error:
        return _told(error, answered)
    return serve(device, device.info()["architecture"], sys.stdin, answered)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
