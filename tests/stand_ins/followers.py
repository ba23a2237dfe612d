"""Devices that follow a claim of an open question."""

from __future__ import annotations

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.runs.open_questions.contest import Rival


class Follower(DatapathDevice):
    """A device of an architecture whose one instruction computes one datapath."""

    architecture = "sm_90a"

    def info(self) -> dict[str, str]:
        return {"architecture": self.architecture}


class Says(Follower):
    """One that answers one word, whatever the operands."""

    word = 0

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        return np.full_like(super().run_vectors(instruction, vectors), self.word)


def follower(architecture: str, instruction: Instruction, rival: Rival) -> DatapathDevice:
    base = datapath_for(architecture, instruction)
    if rival.datapath is None:
        kind = type("Says", (Says,), {"architecture": architecture, "word": rival.word})
        return kind(instruction, base, rival.name)  # type: ignore[no-any-return]
    kind = type("Follower", (Follower,), {"architecture": architecture})
    return kind(instruction, rival.datapath, rival.name)  # type: ignore[no-any-return]
