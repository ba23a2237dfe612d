"""What the device has answered so far, and which hypotheses it leaves alive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.discriminate import splitters
from mmaprobe.derivation.repeatability import UnstableError
from mmaprobe.derivation.survivors import Living, several
from mmaprobe.devices.base import Device, run_vectors, vectors_per_tile
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath

Pool = Callable[[int, int], Batch]

POOL = 256
LEAST, MOST = 8, 32
"""Vectors of a round: those of a tile, within these bounds."""
ROUNDS = 40


@dataclass
class Observations:
    """Vectors asked and answers given; counts what it cost.

    ``vectors`` and ``answers`` are those that hypotheses are held to, ``asked`` all;
    ``run`` is how many vectors the device was given, those asked again too.  ``allowance`` pays for what hypotheses
    are evaluated.
    """

    device: Device
    instruction: Instruction
    allowance: Allowance = field(default_factory=Allowance)
    vectors: list[Batch] = field(default_factory=list)
    answers: list[Bits] = field(default_factory=list)
    asked: list[tuple[Batch, Bits]] = field(default_factory=list)
    tiles: int = 0
    launches: int = 0
    run: int = 0

    def ask(self, vectors: Batch) -> Bits:
        """Run the vectors, remember them, return the answers."""
        answer = self.peek(vectors)
        self.remember(vectors, answer)
        return answer

    def peek(self, vectors: Batch) -> Bits:
        """Run the vectors without holding hypotheses to the answers."""
        answers = self._run(vectors)
        self.asked.append((vectors, answers))
        return answers

    def _run(self, vectors: Batch) -> Bits:
        self.tiles += -(-vectors.size // vectors_per_tile(self.instruction))
        self.launches += 1
        self.run += vectors.size
        return run_vectors(self.device, self.instruction, vectors)

    def remember(self, vectors: Batch, answers: Bits) -> None:
        """From now on every hypothesis must agree with these answers."""
        if vectors.size:
            self.vectors.append(vectors)
            self.answers.append(answers)

    def recall(self, vectors: Batch, answers: Bits) -> None:
        """Remember these alone."""
        self.vectors, self.answers = [vectors], [answers]

    def set_aside(self, which: Callable[[Batch, Bits], NDArray[np.bool_]]) -> tuple[Batch, Bits]:
        """Forget all but these vectors; those forgotten, to be remembered again."""
        vectors, answers = self.everything()
        mask = which(vectors, answers)
        chosen, rest = np.flatnonzero(mask), np.flatnonzero(~mask)
        self.recall(take(vectors, chosen), answers[chosen])
        return take(vectors, rest), answers[rest]

    @property
    def count(self) -> int:
        return sum(len(answer) for answer in self.answers)

    def everything(self) -> tuple[Batch, Bits]:
        """All vectors and answers in the order asked."""
        if len(self.vectors) > 1:
            self.vectors, self.answers = [join(self.vectors)], [np.concatenate(self.answers)]
        return self.vectors[0], self.answers[0]

    def living(self, hypotheses: Living) -> Living:
        """The hypotheses that agree with every observation; the latest, which tell most apart, are held first."""
        if not self.answers:
            return hypotheses
        vectors, answers = self.everything()
        latest = np.arange(len(answers))[::-1]
        return hypotheses.agreeing(take(vectors, latest), answers[latest])

    def alive(self, hypotheses: Sequence[Datapath]) -> list[Datapath]:
        """The datapaths that agree with every observation."""
        return list(self.living(several(hypotheses, self.allowance)))

    def mismatches(self, datapath: Datapath) -> int:
        """How many observations a datapath gets wrong."""
        if not self.answers:
            return 0
        vectors, answers = self.everything()
        return int((self.allowance.evaluate([datapath], vectors)[0] != answers).sum())

    def check_stable(self) -> None:
        """Ask everything ever asked again in the opposite order; UnstableError when an answer changed."""
        if self.asked:
            vectors, answers = zip(*self.asked, strict=True)
            self.asked = [(join(list(vectors)), np.concatenate(answers))]
            self.check_repeated(*self.asked[0])

    def confirm(self, vectors: Batch, answers: Bits) -> None:
        """Ask once more and remember; UnstableError when an answer is not the one given before."""
        self.check_repeated(vectors, answers)
        self.remember(vectors, answers)

    def check_repeated(self, vectors: Batch, answers: Bits) -> None:
        """Ask vectors again in the opposite order; UnstableError when an answer changed."""
        again = self._run(take(vectors, np.arange(len(answers))[::-1]))[::-1]
        changed = np.flatnonzero(again != answers)
        if changed.size:
            first = changed[:1]
            raise UnstableError(take(vectors, first), int(answers[first[0]]), int(again[first[0]]))


def eliminate(
    observations: Observations,
    hypotheses: Living,
    pool: Pool,
    *,
    seed: int,
    patience: int = 1,
    which: Callable[[Bits], NDArray[np.bool_]] | None = None,
    rounds: int = ROUNDS,
) -> Living:
    """Ask the vectors that split the hypotheses best until ``patience`` fresh pools split nothing
    (little is enough: what is left meets larger pools when neighbours are refuted).

    ``pool(seed, count)`` makes candidate vectors, twice as many after each dry one.  Each round evaluates a sample of
    the living hypotheses on the pool, takes a tile or two of vectors that together
    tell most of the sample apart, asks the device, and drops whatever disagrees;
    with ``which`` on the answers for which it says so alone.  After ``rounds`` it ends.
    """
    width = min(max(vectors_per_tile(observations.instruction), LEAST), MOST)
    rng = np.random.default_rng(seed)
    alive = observations.living(hypotheses)
    dry = 0
    turn = 0
    while len(alive) > 1 and dry < patience and turn < rounds:
        vectors = pool(seed + 1009 * turn, POOL << dry)
        turn += 1
        chosen = splitters(rng, alive, vectors, width)
        if not chosen.size:
            dry += 1
            continue
        dry = 0
        asked = take(vectors, chosen)
        answers = observations.peek(asked)
        if which is not None:
            good = np.flatnonzero(which(answers))
            dry, asked, answers = dry + (not good.size), take(asked, good), answers[good]
        observations.remember(asked, answers)
        alive = alive.agreeing(asked, answers)
    return alive
