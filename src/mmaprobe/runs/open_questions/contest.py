"""Rival datapaths before a device: vectors on which they differ, the device's answers, who is left.

Vectors that the question itself names come first, then, for every two claims that these
do not tell apart, the simplest vector found that does, then what the search finds for all
rivals.  Every vector is asked twice, the second time in the opposite order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.dense_view import KeptLanes, dense_form
from mmaprobe.derivation.discriminate import telling
from mmaprobe.derivation.vectors.mixtures import hard_vectors, mixed_vectors, nan_operands
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.devices.base import Device, run_vectors
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.generators import families_for
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.runs.open_questions.claims import WrittenVector
from mmaprobe.runs.open_questions.directed import directed as vectors_of
from mmaprobe.validation.shrink import shrink

POOL = 1500
"""Candidates of one round of the search, of each of two kinds."""
WIDTH = 24
"""Vectors of one round."""
DRY = 2
"""Rounds that tell nothing more apart end the search; each has twice as many candidates as the one before."""
ROUNDS = 12
"""Rounds of the search at most."""
STEADY = 64
"""Vectors that are asked twice before a probe begins."""
PLAIN = (
    WrittenVector("1", "1", "0"),
    WrittenVector("1", "1", "1"),
    WrittenVector("0 1", "1 1", "0"),
    WrittenVector("0", "0", "1"),
)
"""Sums that every unit gets right."""
PAIR_ROUNDS = 4
"""Pools that look for a vector between two claims."""
CONFIRM = 96
"""Vectors at the end on which some of the rivals differ, whoever is left: what nobody claims shows there."""


@dataclass(frozen=True)
class Rival:
    """A datapath under a name, or a word that is answered whatever the operands; ``claim``: somebody claims it."""

    name: str
    datapath: Datapath | None
    word: int | None = None
    claim: bool = True


@dataclass(frozen=True)
class Contest:
    """Every vector asked (dense form), the device's d (n,), each rival's d (rivals, n), and who agrees with all.

    The first ``own`` vectors are the question's, or tell two claims apart.
    """

    vectors: Batch
    answers: Bits
    table: Bits
    alive: NDArray[np.bool_]
    own: int = 0

    @property
    def on_own(self) -> NDArray[np.bool_]:
        """Which rivals agree with the first vectors."""
        agrees: NDArray[np.bool_] = (self.table == self.answers)[:, : self.own].all(axis=1)
        return agrees


class UnsteadyError(DeviceError):
    """The device gave one vector two answers."""


def words_of(rivals: Sequence[Rival], vectors: Batch, dtype: np.dtype[np.unsignedinteger]) -> Bits:
    """d (rivals, n) of each rival."""
    table = np.empty((len(rivals), vectors.size), dtype)
    paths = [(i, rival.datapath) for i, rival in enumerate(rivals) if rival.datapath is not None]
    if paths and vectors.size:
        table[[i for i, _ in paths]] = evaluate_many([path for _, path in paths], vectors)
    for i, rival in enumerate(rivals):
        if rival.word is not None:
            table[i] = rival.word
    return table


def asked_twice(device: Device, instruction: Instruction, vectors: Batch) -> Bits:
    """d (n,) of vectors that are asked twice; UnsteadyError where an answer is another one the second time."""
    answers = run_vectors(device, instruction, vectors)
    again = run_vectors(device, instruction, take(vectors, np.arange(vectors.size)[::-1]))[::-1]
    changed = np.flatnonzero(answers != again)
    if changed.size:
        first, second = int(answers[changed[0]]), int(again[changed[0]])
        raise UnsteadyError(
            f"{device.name}: {instruction.id} gave one vector two answers: {first:#x} and, asked again, {second:#x}"
        )
    return answers


def check_steady(device: Device, instruction: Instruction, seed: int) -> None:
    """UnsteadyError where the device contradicts itself on a few vectors of every family."""
    asked_twice(device, instruction, hard_vectors(instruction, families_for(instruction), seed, STEADY))


class Ring:
    """One instruction of a device, and the rivals about it."""

    def __init__(
        self, device: Device, instruction: Instruction, rivals: Sequence[Rival], seed: int, specials: bool = False
    ) -> None:
        self.instruction, self.rivals, self.seed, self.specials = dense_form(instruction), list(rivals), seed, specials
        self.device: Device = KeptLanes.of(device, instruction) if instruction.chunk else device
        self.d = formats.get(instruction.d)

    def hold(self, directed: Batch | None, search: bool, stop: Callable[[], bool]) -> Contest:
        """Ask ``directed``, then what tells the rivals apart; ``stop`` is looked at before each round.

        DeviceError where the device gets a sum wrong that is the same by every rival: 1 times 1, and C of 1.
        """
        self._check_plain()
        first = [batch for batch in (directed, self._between_claims(directed) if search else None) if batch is not None]
        asked = [self._ask(join(first))] if first else []
        alive = self._agreeing(asked)
        dry = 0
        for turn in range(ROUNDS if search else 0):
            if alive.sum() < 2 or dry >= DRY or stop():
                break
            pool = self._pool(turn, POOL << dry, alive)
            chosen = telling(self._words(pool)[alive], WIDTH, filled=True)
            dry = 0 if chosen.size else dry + 1
            if chosen.size:
                asked.append(self._ask(take(pool, chosen)))
                alive = self._agreeing(asked)
        last = self._confirming() if search or not asked else None
        if last is not None:
            asked.append(self._ask(last))
            alive = self._agreeing(asked)
        if not asked:
            raise UsageError(f"{self.instruction.id}: no vector of numbers alone has a number as its result")
        vectors = join([vectors for vectors, _ in asked])
        own = sum(batch.size for batch in first)
        return Contest(vectors, np.concatenate([d for _, d in asked]), self._words(vectors), alive, own)

    def surprise(self, contest: Contest) -> Contest | None:
        """A simple vector on which every claim is wrong, asked in its turn; None where ``contest`` has none."""
        claims = [rival for rival in self.rivals if rival.claim]

        def differ(tried: Batch) -> NDArray[np.bool_]:
            wrong = words_of(claims, tried, self.d.dtype) != run_vectors(self.device, self.instruction, tried)
            all_wrong: NDArray[np.bool_] = wrong.all(axis=0)
            return all_wrong if self.specials or not self.d.is_float else all_wrong & self._finite(tried)

        claimed = np.array([rival.claim for rival in self.rivals])
        found = np.flatnonzero((contest.table[claimed] != contest.answers).all(axis=0))
        if not found.size:
            return None
        vectors, answers = self._ask(shrink(self.instruction, take(contest.vectors, found[:1]), differ))
        return Contest(vectors, answers, self._words(vectors), contest.alive)

    def settling(self, directed: Batch | None, search: bool) -> tuple[Batch, Bits]:
        """Few vectors that tell the claims apart as far as any found does, and d (claims, n) by each; asks nothing."""
        claims = [rival for rival in self.rivals if rival.claim]
        first = [batch for batch in (directed, self._between_claims(directed) if search else None) if batch is not None]
        vectors = join(first) if first else self._pool(0, POOL, np.ones(len(self.rivals), bool)).slice(0, 0)
        table = words_of(claims, vectors, self.d.dtype)
        chosen = np.sort(telling(table))
        return take(vectors, chosen), table[:, chosen]

    def _agreeing(self, asked: Sequence[tuple[Batch, Bits]]) -> NDArray[np.bool_]:
        good = np.ones(len(self.rivals), bool)
        for vectors, answers in asked:
            good &= (self._words(vectors) == answers).all(axis=1)
        return good

    def _check_plain(self) -> None:
        vectors = vectors_of(self.instruction, PLAIN)
        paths = [rival for rival in self.rivals if rival.datapath is not None]
        words = [rival.word for rival in self.rivals if rival.word is not None]
        if vectors is None or not paths:
            return
        expected, (_, answers) = words_of(paths, vectors, self.d.dtype), self._ask(vectors)
        for column, answer in zip(expected.T, answers, strict=True):
            if (column == column[0]).all() and answer != column[0] and answer not in words:
                raise DeviceError(
                    f"{self.device.name}: {self.instruction.id}: a plain sum that is {int(column[0]):#x} by every "
                    f"claim came out as {int(answer):#x}"
                )

    def _words(self, vectors: Batch) -> Bits:
        return words_of(self.rivals, vectors, self.d.dtype)

    def _ask(self, vectors: Batch) -> tuple[Batch, Bits]:
        return vectors, asked_twice(self.device, self.instruction, vectors)

    def _pool(self, turn: int, count: int, alive: NDArray[np.bool_]) -> Batch:
        """Candidates aimed at the rivals that are left; without specials where the question is not about them."""
        paths = [r.datapath for r, good in zip(self.rivals, alive, strict=True) if good and r.datapath is not None]
        paths = paths or [r.datapath for r in self.rivals if r.datapath is not None]
        seed = self.seed + 4099 * turn
        pools = [mixed_vectors(self.instruction, seed, count)]
        if can_attack(self.instruction):
            pools.append(attack_vectors(self.instruction, paths[0], paths[1:], seed, count))
        else:
            pools.append(hard_vectors(self.instruction, families_for(self.instruction), seed + 1, count))
        pool = join(pools)
        return pool if self.specials or not self.d.is_float else take(pool, np.flatnonzero(self._finite(pool)))

    def _finite(self, pool: Batch) -> NDArray[np.bool_]:
        """Vectors whose result is a number by every datapath, of numbers alone."""
        paths = [rival for rival in self.rivals if rival.datapath is not None]
        kinds = formats.decode(self.d, words_of(paths, pool, self.d.dtype)).kind
        finite: NDArray[np.bool_] = (kinds < formats.INFINITE).all(axis=0) & ~nan_operands(self.instruction, pool)
        return finite

    def _confirming(self) -> Batch | None:
        """Fresh vectors on which some rivals differ, or any where none do; None where there are none."""
        pool = self._pool(ROUNDS + 1, POOL, np.ones(len(self.rivals), bool))
        table = self._words(pool)
        unlike = np.flatnonzero((table != table[0]).any(axis=0))
        chosen = (unlike if unlike.size else np.arange(pool.size))[:CONFIRM]
        return take(pool, chosen) if chosen.size else None

    def _between_claims(self, directed: Batch | None) -> Batch | None:
        """For every two claims that ``directed`` does not tell apart a simple vector that does, where one is found."""
        claims = [i for i, rival in enumerate(self.rivals) if rival.claim]
        told = None if directed is None else self._words(directed)
        found = []
        for i, j in combinations(claims, 2):
            if told is not None and (told[i] != told[j]).any():
                continue
            vector = self._apart(i, j)
            if vector is not None:
                found.append(self._simple(vector, self.rivals[i], self.rivals[j]))
        return join(found) if found else None

    def _apart(self, i: int, j: int) -> Batch | None:
        """The first vector on which two rivals differ, of pools aimed at them, each twice the one before."""
        both = np.isin(np.arange(len(self.rivals)), (i, j))
        for turn in range(PAIR_ROUNDS):
            pool = self._pool(ROUNDS + turn, POOL << turn, both)
            table = words_of((self.rivals[i], self.rivals[j]), pool, self.d.dtype)
            differs = np.flatnonzero(table[0] != table[1])
            if differs.size:
                return take(pool, differs[:1])
        return None

    def _simple(self, vector: Batch, one: Rival, other: Rival) -> Batch:
        def differ(tried: Batch) -> NDArray[np.bool_]:
            words = words_of((one, other), tried, self.d.dtype)
            apart: NDArray[np.bool_] = words[0] != words[1]
            return apart if self.specials or not self.d.is_float else apart & self._finite(tried)

        return shrink(self.instruction, vector, differ)
