"""A difference that is planted before anything counts: what does not report it would report no other one.

Where the reference is a model, it is exchanged for a datapath that some of a few vectors tell from it, and compared
the very way that is to come, native code included; the fused campaigns of a GPU plant one of their own
(``validation.fused``).  Elsewhere the last result of every batch has its lowest bit
changed on its way back from the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Serial
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import InternalError, UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.generators.enumerations import enumeration
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, join
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.rewrite import map_encodes
from mmaprobe.validation import validate
from mmaprobe.validation.native import datapath_of

VECTORS = 2_000
"""Vectors that are compared with what is planted."""
POOL = 64
"""Vectors of each family that say whether a planted datapath is told from the true one."""
ONE_IN = 50
"""It must be on one of so many of them: then 2,000 vectors without one are no chance."""


class Planted(Serial):
    """The device, but for the lowest bit of the last result of every batch."""

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of the batch, its last result changed."""
        return _spoilt(super().run(instruction, batch))

    def _run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        return _spoilt(super()._run_vectors(instruction, vectors))


def _spoilt(answers: Bits) -> Bits:
    changed = answers.copy()
    changed.reshape(-1)[-1:] ^= 1
    return changed


def check_canary(dut: Device, ref: Device, instruction: Instruction, seed: int, enumerated: str = "") -> int:
    """How many vectors were reported to differ where a difference was planted; InternalError where none was, though
    some do.  Of what is ``enumerated`` it is planted in the reference's answers: few of these vectors may tell two
    datapaths apart."""
    rival = None if enumerated else _rival(instruction, datapath_of(ref, instruction), seed)
    planted = Planted(ref) if rival is None else DatapathDevice(instruction, rival, "planted")
    vectors = min(VECTORS, enumeration(instruction, enumerated).size) if enumerated else VECTORS
    found = validate(
        dut,
        planted,
        instruction,
        vectors,
        seed,
        campaign=False,
        threads=1,
        examined=False,
        covered=False,
        enumerated=enumerated,
    )
    if found.interrupted:
        raise KeyboardInterrupt
    if found.vectors and not found.mismatches:
        raise InternalError(
            f"{instruction.id}: a difference was planted in {ref.name} and not reported, so no other would be: "
            "nothing that was compared counts; please report this"
        )
    return found.mismatches


@lru_cache(maxsize=64)
def _rival(instruction: Instruction, datapath: Datapath | None, seed: int) -> Datapath | None:
    """A datapath that enough vectors tell from the reference's; None where nobody knows one."""
    if datapath is None or instruction.chunk or instruction.random:
        return None
    pool = join([generate(instruction, family, seed, 0, POOL) for family in families_for(instruction)])
    near = list(_near(datapath))
    answers = evaluate_many([datapath, *near], pool)
    differ = (answers[1:] != answers[0]).sum(axis=1)
    return next((each for each, count in zip(near, differ, strict=True) if count * ONE_IN >= pool.size), None)


def _near(datapath: Datapath) -> Iterator[Datapath]:
    """Every rounding another one, one after the other; A with its sign changed."""
    for rounding in formats.ROUNDINGS[:4]:
        with suppress(UsageError):
            yield map_encodes(datapath, lambda to, r=rounding: replace(to, rounding=r))  # type: ignore[misc]
    with suppress(UsageError):
        yield replace(datapath, operand_a=replace(datapath.operand_a, sign="flip"))
