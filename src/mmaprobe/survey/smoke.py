"""The smoke test: the witnesses of every instruction, a few vectors that tell its datapath from all near ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import match
from mmaprobe.derivation.dense_view import asked, dense_form, kept
from mmaprobe.derivation.discriminate import telling
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.devices.base import Device, run_vectors, serial
from mmaprobe.devices.gemm import GemmDevice
from mmaprobe.devices.model import ModelDevice
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Mismatch
from mmaprobe.generators.enumerations import ENUMERATED
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import ParameterFile
from mmaprobe.parameters.lookup import datapath_for, entries_for
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.validation.examine import Example, look_again
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.places import slots
from mmaprobe.validation.replaying import RecordedAnswer
from mmaprobe.validation.summary import FamilyCount, Summary

POOL = 1500
"""Candidates of each instruction; twice as many are aimed at its neighbours."""
EXAMPLES = 4
"""Mismatches that are shown of an instruction."""
FAMILY = "witnesses"
NOT_DRAWN = (FAMILY, *ENUMERATED)
"""What summaries count as families and no generator drew: witnesses are chosen, enumerations counted through, and how
many of them agree says nothing of a rate."""


def drawn_vectors(families: Iterable[tuple[str, int]]) -> int:
    """Of vectors by family those that generators drew, the only ones that say something of a rate."""
    return sum(vectors for name, vectors in families if name not in NOT_DRAWN)


@dataclass(frozen=True)
class Smoke:
    """Vectors with their results: the first ``recorded`` are in the parameter file, the others predicted by it."""

    vectors: Batch
    results: Bits
    recorded: int

    def origin(self, index: int) -> str:
        """Where a witness comes from."""
        return "recorded" if index < self.recorded else "predicted"


def smoke_vectors(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> Smoke:
    """The witnesses of the parameter file (the shipped one), and predicted ones against the neighbours that these do
    not refute.

    Predicted witnesses are the fewest vectors, taken greedily from pools of
    every kind, on which the datapath differs from each neighbour that any vector of the
    pools tells from it.  UsageError where nothing is known about the instruction.
    """
    datapath = datapath_for(architecture, instruction, file)
    entries = entries_for(architecture, instruction, file)
    own = entries[0].witnesses if len(entries) == 1 and entries[0].datapath == datapath else ()
    rivals = [near.datapath for near in neighbours(datapath)]
    if own:
        vectors = as_vectors(instruction, own)
        results = np.array([witness.d for witness in own], formats.get(instruction.d).dtype)
        dense = kept(architecture, instruction, vectors)
        told = (evaluate_many(rivals, dense) != results).any(axis=1) if rivals else np.empty(0, bool)
        rivals = [rival for rival, refuted in zip(rivals, told, strict=True) if not refuted]
    found = covering(dense_form(instruction), datapath, rivals)
    more, predicted = asked(architecture, instruction, found), evaluate_many([datapath], found)[0]
    if own:
        more, predicted = join([vectors, more]), np.concatenate([results, predicted])
    return Smoke(more, predicted, len(own))


def covering(instruction: Instruction, datapath: Datapath, rivals: list[Datapath], seed: int = 1) -> Batch:
    """Few vectors of a dense form that together tell a datapath from every rival that any vector of the pools tells."""
    pool = mixed_vectors(instruction, seed, POOL)
    if can_attack(instruction):
        pool = join([pool, attack_vectors(instruction, datapath, rivals, seed, 2 * POOL)])
    if not rivals:
        return take(pool, [0])
    return take(pool, telling(evaluate_many([datapath, *rivals], pool), from_first=True))


def validate_witnesses(dut: Device, ref: Device, pattern: str = "*", architecture: str = "") -> Iterator[Summary]:
    """Hold two devices against the witnesses of every instruction that matches and that both support.

    An answer of either that is not the witness's is a mismatch.  ``architecture``
    is whose parameter file holds the witnesses: by default the reference's, or the
    file that either is a model of.
    ``seconds`` of a summary are those that the devices took.
    """
    home = architecture or ref.info().get("architecture") or dut.info().get("architecture", "")
    if not home:
        raise UsageError(f"{ref.name} has no architecture, so no parameter file; name a model:ARCH as the reference")
    files = [each.parameters for each in (ref, dut) if isinstance(each, ModelDevice) and each.file]
    file = files[0] if files and not architecture else None
    if isinstance(ref, GemmDevice) and not architecture:
        return  # of a schedule no file holds witnesses
    for instruction in match(home, pattern):
        if not (dut.supports(instruction) and ref.supports(instruction)):
            continue
        try:
            smoke = smoke_vectors(home, instruction, file)
        except UsageError:
            continue  # nothing is known about it, so there is nothing to hold a device against
        yield _compared(dut, ref, instruction, smoke)


def _compared(dut: Device, ref: Device, instruction: Instruction, smoke: Smoke) -> Summary:
    begin = time.monotonic()
    answers = [(device, run_vectors(device, instruction, smoke.vectors)) for device in (dut, ref)]
    seconds = time.monotonic() - begin
    wrong = [(device, int(given[i]), int(i)) for device, given in answers
             for i in np.flatnonzero(given != smoke.results)]  # fmt: skip
    examples = tuple(_again(device, instruction, smoke, answer, i) for device, answer, i in wrong[:EXAMPLES])
    count = FamilyCount(smoke.vectors.size, len({i for _, _, i in wrong}))
    return Summary(
        instruction=instruction.id, dut=dut.name, ref=ref.name, seed=0, planned=count.vectors, vectors=count.vectors,
        mismatches=count.mismatches, families=((FAMILY, count),), examples=examples, seconds=seconds,
    )  # fmt: skip


def _again(device: Device, instruction: Instruction, smoke: Smoke, answer: int, number: int) -> Mismatch:
    """A witness that was answered wrongly, asked again."""
    origin = f"{smoke.origin(number)} witness {number}, answer of {device.name}"
    slot = number % slots(device, instruction)
    example = Example(origin, take(smoke.vectors, [number]), slot=slot, first=answer)
    return look_again(example, Pair(serial(device), RecordedAnswer(int(smoke.results[number])), instruction))
