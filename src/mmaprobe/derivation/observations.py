"""What the device has answered so far, and which hypotheses it leaves alive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.pool import join, take
from mmaprobe.devices.base import Device, run_vectors, vectors_per_tile
from mmaprobe.errors import DeviceError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath

Pool = Callable[[int, int], Batch]

POOL = 256
PORTION = 24
SAMPLE = 64
"""Hypotheses evaluated on a whole pool; all of them when the sample agrees."""


@dataclass
class Observations:
    """Vectors asked and answers given; counts what it cost."""

    device: Device
    instruction: Instruction
    vectors: list[Batch] = field(default_factory=list)
    answers: list[Bits] = field(default_factory=list)
    tiles: int = 0
    launches: int = 0

    def ask(self, vectors: Batch) -> Bits:
        """Run the vectors, remember them, return the answers."""
        answer = self.peek(vectors)
        self.remember(vectors, answer)
        return answer

    def peek(self, vectors: Batch) -> Bits:
        """Run the vectors without holding hypotheses to the answers."""
        self.tiles += -(-vectors.size // vectors_per_tile(self.instruction))
        self.launches += 1
        return run_vectors(self.device, self.instruction, vectors)

    def remember(self, vectors: Batch, answers: Bits) -> None:
        """From now on every hypothesis must agree with these answers."""
        self.vectors.append(vectors)
        self.answers.append(answers)

    def forget(self, count: int) -> None:
        """Keep only the first ``count`` vectors and answers."""
        vectors, answers = self.everything()
        self.vectors, self.answers = [vectors.slice(0, count)], [answers[:count]]

    @property
    def count(self) -> int:
        return sum(len(answer) for answer in self.answers)

    def everything(self) -> tuple[Batch, Bits]:
        """All vectors and answers in the order asked."""
        if len(self.vectors) > 1:
            self.vectors, self.answers = [join(self.vectors)], [np.concatenate(self.answers)]
        return self.vectors[0], self.answers[0]

    def alive(self, hypotheses: Sequence[Datapath]) -> list[Datapath]:
        """The hypotheses that agree with every observation."""
        if not self.answers:
            return list(hypotheses)
        vectors, answers = self.everything()
        left = list(hypotheses)
        for start in range(0, len(answers), PORTION):
            if not left:
                break
            part = slice(start, start + PORTION)
            agrees = (evaluate_many(left, take(vectors, np.arange(len(answers))[part])) == answers[part]).all(axis=1)
            left = [datapath for datapath, fine in zip(left, agrees, strict=True) if fine]
        return left

    def mismatches(self, datapath: Datapath) -> int:
        """How many observations a datapath gets wrong."""
        if not self.answers:
            return 0
        vectors, answers = self.everything()
        return int((evaluate_many([datapath], vectors)[0] != answers).sum())

    def check_stable(self) -> None:
        """Ask everything again; DeviceError when an answer changed."""
        vectors, answers = self.everything()
        again = run_vectors(self.device, self.instruction, vectors)
        self.launches += 1
        changed = np.flatnonzero(again != answers)
        if changed.size:
            raise DeviceError(
                f"{self.device.name}: {self.instruction.id} gave another answer to {changed.size} of {len(answers)} "
                "vectors on a repeat; nothing can be derived from an unstable device"
            )


def eliminate(
    observations: Observations,
    hypotheses: list[Datapath],
    pool: Pool,
    *,
    seed: int,
    width: int = 16,
    patience: int = 1,
) -> list[Datapath]:
    """Ask the vectors that split the hypotheses best until ``patience`` fresh pools split nothing
    (little is enough: what is left meets larger pools when neighbours are refuted).

    ``pool(seed, count)`` makes candidate vectors, twice as many after each dry one.  Each round evaluates a sample of
    the living hypotheses on the pool, takes up to ``width`` vectors with the most
    distinct answers, asks the device, and drops whatever disagrees.
    """
    rng = np.random.default_rng(seed)
    alive = observations.alive(hypotheses)
    dry = 0
    turn = 0
    while len(alive) > 1 and dry < patience:
        vectors = pool(seed + 1009 * turn, POOL << dry)
        turn += 1
        chosen = _splitters(rng, alive, vectors, width)
        if not chosen.size:
            dry += 1
            continue
        dry = 0
        asked = take(vectors, chosen)
        answers = observations.ask(asked)
        agrees = (evaluate_many(alive, asked) == answers).all(axis=1)
        alive = [datapath for datapath, fine in zip(alive, agrees, strict=True) if fine]
    return alive


def _splitters(rng: np.random.Generator, alive: list[Datapath], vectors: Batch, width: int) -> NDArray[np.int64]:
    """Indices of the vectors on which a sample of the hypotheses differs most (all of them when the sample agrees)."""
    for sample in (SAMPLE, len(alive)):
        chosen = alive if len(alive) <= sample else [alive[i] for i in rng.choice(len(alive), sample, replace=False)]
        table = np.sort(evaluate_many(chosen, vectors), axis=0)
        distinct = (table[1:] != table[:-1]).sum(axis=0)
        best = np.argsort(-distinct, kind="stable")[:width]
        found: NDArray[np.int64] = best[distinct[best] > 0]
        if found.size or len(alive) <= sample:
            return found
    return np.empty(0, np.int64)
