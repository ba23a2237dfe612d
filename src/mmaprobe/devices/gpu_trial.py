"""The first run of an instruction on a GPU, in a child process with a time limit.

The child opens the same device and answers each line of its standard input, an
instruction's id, with ``ok`` where the known answer comes out, ``wrong MESSAGE``
where another one does, else with ``error CODE MESSAGE``, CODE an exit code of ours.  A child that hangs or dies
is a DeviceError; the next instruction gets a fresh one.
"""

from __future__ import annotations

import sys
from typing import TextIO

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import Device, open_device
from mmaprobe.devices.child import Child
from mmaprobe.devices.gpu import KNOWN_ITEMS, GpuDevice
from mmaprobe.devices.known_answer import WrongAnswerError, answers, known_answer
from mmaprobe.errors import DeviceError, InternalError, MmaprobeError, NotHereError, UsageError
from mmaprobe.evidence.ending import unforeseen

HELLO = "mmaprobe-trial"
_ERRORS: dict[int, type[MmaprobeError]] = {2: UsageError, 3: NotHereError, 5: DeviceError, 70: InternalError}


class ChildTrial:
    """``gpu.Trial`` by a command that runs ``serve`` on the device."""

    def __init__(self, device: str, command: tuple[str, ...], seconds: float) -> None:
        self._device, self._child = device, Child(command, seconds)

    def check(self, instruction: Instruction) -> None:
        """The known answer of an instruction in the child; the child's own error, or DeviceError for its end."""
        try:
            if not self._child.running and (hello := self._child.start().strip()) != HELLO:
                raise self._child.failure(f"says {hello!r} first, not {HELLO!r}")
            answer = self._child.exchange(f"{instruction.id}\n".encode(), lines=0).decode("utf-8", "replace")
        except DeviceError as error:
            raise DeviceError(f"{instruction.id}: its first run on {self._device}, in a child: {error}") from error
        word, _, rest = answer.strip().partition(" ")
        if word == "wrong":
            raise WrongAnswerError(f"first run in a child process: {rest}")
        if word == "error":
            code, _, said = rest.partition(" ")
            raise _ERRORS.get(int(code), DeviceError)(f"first run in a child process: {said}")


def command(device: str) -> tuple[str, ...]:
    """The command of a child that tries instructions on a device."""
    return (sys.executable, "-m", "mmaprobe.devices.gpu_trial", device)


def serve(device: Device, architecture: str, asked: TextIO, answered: TextIO) -> None:
    """Answer every line of ``asked``, until there is none.

    A GPU's context is given up before the answer: where one process alone may
    have one, the parent's is next.
    """
    print(HELLO, file=answered, flush=True)
    for line in asked:
        try:
            made = instruction(line.strip(), architecture)
            batch, expected = known_answer(made, KNOWN_ITEMS, 1)
            if not answers(made, device.run(made, batch), expected):
                raise WrongAnswerError(f"{made.id}: wrong known answer")
            answer = "ok 1"
        except WrongAnswerError as error:
            answer = f"wrong {' '.join(str(error).split())}"
        except MmaprobeError as error:
            answer = f"error {error.exit_code} {' '.join(str(error).split())}"
        except Exception as error:
            said = unforeseen(error)
            answer = f"error {said.exit_code} {said}"
        if isinstance(device, GpuDevice):
            device.close()
        print(answer, file=answered, flush=True)


def main(name: str) -> int:
    """Try instructions on the device of this name; what else is printed goes to standard error."""
    answered, sys.stdout = sys.stdout, sys.stderr
    try:
        device = open_device(name)
    except MmaprobeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    serve(device, device.info()["architecture"], sys.stdin, answered)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
