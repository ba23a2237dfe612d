"""A device that answers until the budget of its run is spent."""

from __future__ import annotations

import time
from collections.abc import Callable

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Serial
from mmaprobe.errors import MmaprobeError
from mmaprobe.exit_codes import INCONCLUSIVE
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.showing import counted


class TimeUpError(MmaprobeError):
    """The budget was spent before an answer was asked for."""

    exit_code = INCONCLUSIVE


class UntilSpent(Serial):
    """The device while its run's budget is not ``spent``, then TimeUpError: what a slow one is asked ends in time, but
    for the answer under way."""

    def __init__(self, device: Device, spent: Callable[[], bool]) -> None:
        super().__init__(device)
        self._spent = spent
        self._answers, self._seconds = 0, 0.0

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of the batch, in time."""
        return self._in_time(super().run, instruction, batch)

    def _run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        return self._in_time(super()._run_vectors, instruction, vectors)

    def _in_time(self, ask: Callable[[Instruction, Batch], Bits], instruction: Instruction, batch: Batch) -> Bits:
        if self._spent():
            took = f"{counted(self._answers, 'answer')} of {self._seconds / max(self._answers, 1):.2g} s each"
            raise TimeUpError(
                f"{instruction.id}: the budget was spent after {took}, before it was derived; "
                "it begins anew with --resume and a longer --budget"
            )
        begin = time.monotonic()
        answer = ask(instruction, batch)
        self._answers += 1
        self._seconds += time.monotonic() - begin
        return answer
