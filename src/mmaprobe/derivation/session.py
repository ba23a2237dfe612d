"""A derivation under way: what was asked and answered, the views that hypotheses are held to, what is believed.

What was answered is never changed or forgotten.  A view is a filter over it: everything; plain vectors; what was asked
before the ends of the range; without regard to the sign of a zero and the code of a NaN.  It sees what is asked later,
too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.survivors import Indices, Living, several
from mmaprobe.devices.base import Device, run_vectors, vectors_per_tile
from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Batch, Bits, Witness, join, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.validation.shrink import shrink

Say = Callable[[str], None]
Mask = NDArray[np.bool_]
Which = Callable[[Batch, Bits], Mask]
"""Which vectors, with these answers."""
Seen = tuple[Batch, Bits]

KEPT = 300
"""Hypotheses that agree so far and are kept as rivals.  Tuned by ``tests/recovery``."""
TIMES = 6
"""How often a vector is asked, in changing order, before its answer counts as repeated: of answers that are wrong half
the time one in 32 passes."""


@dataclass(frozen=True)
class Ended:
    """No hypothesis of the grammar agrees with everything asked: where that showed, and the nearest one.  ``fault``:
    what is left is a fault of few operands, which no change of a field mends."""

    stage: str
    closest: Datapath | None
    fault: bool = False


class ContradictedError(Exception):
    """The device contradicts itself, or gets wrong what every unit gets right: nothing can be derived from it."""


class UnstableError(Exception):
    """A vector (a batch of one) that was answered in two ways: nothing can be derived from such answers."""

    def __init__(self, vector: Batch, first: int, second: int) -> None:
        super().__init__(f"answered {first:#x}, then {second:#x}")
        self.vector, self.first, self.second = vector, first, second


# --- asked and answered


class Session:
    """A device asked about an instruction: everything asked and answered in order, what that cost, what may be spent.

    ``run`` is how many vectors the device was given, those asked again too.  ``allowance`` pays for the evaluation of
    hypotheses.
    """

    def __init__(
        self,
        device: Device,
        instruction: Instruction,
        seed: int = 0,
        say: Say = lambda _: None,
        allowance: Allowance | None = None,
    ) -> None:
        self.device, self.instruction, self.seed, self.say = device, instruction, seed, say
        self.allowance = Allowance() if allowance is None else allowance
        self.tiles = self.launches = self.run = 0
        self._asked: list[tuple[Batch, Bits, Mask]] = []
        self.all = View(self)

    def __len__(self) -> int:
        return sum(len(answers) for _, answers, _ in self._asked)

    def begin(self, stage: str, more: str = "") -> None:
        """Say that a stage begins, which pays from now on."""
        self.allowance.stage = stage
        self.say(f"{stage}: {more}" if more else stage)

    def ask(self, vectors: Batch, holds: Callable[[Bits], Mask] | None = None) -> Bits:
        """Run the vectors and record the answers; hypotheses are held to those for which ``holds`` says so (to all)."""
        answers = self._run(vectors)
        self._record(vectors, answers, np.ones(len(answers), bool) if holds is None else holds(answers))
        return answers

    def charge(self, tiles: int, launches: int, vectors: int) -> None:
        """Count what a probe asked."""
        self.tiles, self.launches, self.run = self.tiles + tiles, self.launches + launches, self.run + vectors

    def asked(self) -> tuple[Batch, Bits, Mask]:
        """All vectors and answers in the order asked, and to which hypotheses are held."""
        if len(self._asked) > 1:
            vectors, answers, held = zip(*self._asked, strict=True)
            self._asked = [(join(list(vectors)), np.concatenate(answers), np.concatenate(held))]
        return self._asked[0]

    def confirm(self, vectors: Batch, answers: Bits) -> None:
        """Ask again what was answered elsewhere, and record it; UnstableError when an answer is not that one."""
        self.check_repeated(vectors, answers)
        self._record(vectors, answers, np.ones(len(answers), bool))

    def check_stable(self) -> None:
        """Ask everything ever asked again in the opposite order; UnstableError when an answer changed."""
        if self._asked:
            self.check_repeated(*self.asked()[:2])

    def check_repeated(self, vectors: Batch, answers: Bits) -> None:
        """Ask vectors again in the opposite order; UnstableError when an answer changed."""
        again = self._run(take(vectors, np.arange(len(answers))[::-1]))[::-1]
        changed = np.flatnonzero(again != answers)
        if changed.size:
            first = changed[:1]
            raise UnstableError(take(vectors, first), int(answers[first[0]]), int(again[first[0]]))

    def _run(self, vectors: Batch) -> Bits:
        self.tiles += -(-vectors.size // vectors_per_tile(self.instruction))
        self.launches += 1
        self.run += vectors.size
        return run_vectors(self.device, self.instruction, vectors)

    def _record(self, vectors: Batch, answers: Bits, held: Mask) -> None:
        if vectors.size:
            self._asked.append((vectors, answers, held))


# --- views


class View:
    """The answers that hypotheses are held to: of those of a session to which any are, what ``which`` takes, and what
    was asked on behalf of this view."""

    def __init__(self, session: Session, which: Which | None = None) -> None:
        self.session, self.which = session, which
        self.own: list[range] = []
        self._looked, self._chosen = 0, np.empty(0, np.int64)
        self._seen: Seen | None = None

    def seen(self) -> Seen:
        """The vectors of this view and their answers, in the order asked."""
        vectors, answers, held = self.session.asked()
        if self._seen is None or self._looked < len(answers):
            fresh = np.arange(self._looked, len(answers))
            fresh = fresh[held[fresh]]
            if fresh.size:
                counted = self._counted(fresh, take(vectors, fresh), answers[fresh])
                self._chosen = np.concatenate([self._chosen, counted])
            self._looked = len(answers)
            self._seen = take(vectors, self._chosen), answers[self._chosen]
        return self._seen

    def _counted(self, indices: Indices, vectors: Batch, answers: Bits) -> Indices:
        if self.which is None:
            return indices
        mask = self.which(vectors, answers)
        for part in self.own:
            mask |= (indices >= part.start) & (indices < part.stop)
        return indices[mask]

    def ask(self, vectors: Batch, holds: Callable[[Bits], Mask] | None = None) -> Seen:
        """Ask on behalf of this view: those that it takes, and their answers."""
        begin = len(self.session)
        self.answers(vectors, holds)
        seen, answers = self.seen()
        mine = np.flatnonzero(self._chosen >= begin)
        return take(seen, mine), answers[mine]

    def answers(self, vectors: Batch, holds: Callable[[Bits], Mask] | None = None) -> Bits:
        """Ask on behalf of this view: every answer as it came."""
        begin = len(self.session)
        self.own.append(range(begin, begin + vectors.size))
        return self.session.ask(vectors, holds)

    @property
    def count(self) -> int:
        """How many answers it holds hypotheses to."""
        return len(self.seen()[1]) if len(self.session) else 0

    def living(self, hypotheses: Living) -> Living:
        """The hypotheses that agree with it; the latest answers, which tell most apart, come first."""
        if not self.count:
            return hypotheses
        vectors, answers = self.seen()
        latest = np.arange(len(answers))[::-1]
        return hypotheses.agreeing(take(vectors, latest), answers[latest])

    def alive(self, hypotheses: Sequence[Datapath]) -> list[Datapath]:
        """The datapaths that agree with it."""
        return list(self.living(several(hypotheses, self.session.allowance)))

    def mismatches(self, datapath: Datapath) -> int:
        """How many of its answers a datapath gets wrong."""
        if not self.count:
            return 0
        vectors, answers = self.seen()
        return int((self.session.allowance.evaluate([datapath], vectors)[0] != answers).sum())


def blind(name: str, d: Bits) -> Bits:
    """The codes of a format with +0 for every zero and one code for every NaN."""
    found = one_nan(name, d)
    found[formats.is_zero(formats.get(name), d)] = 0
    return found


def one_nan(name: str, d: Bits) -> Bits:
    """The codes of a format with one code for every NaN."""
    fmt = formats.get(name)
    found: Bits = np.where(formats.is_nan(fmt, d), d.dtype.type(fmt.nan_code or 0), d)
    return found


# --- what is believed


@dataclass
class State:
    """``current`` is the datapath believed now; ``others`` agreed as well when they were last looked at.

    ``findings`` are the probes' answers where they were asked before; ``relative_of``
    is the known datapath that ``current`` is a control variant of; ``proofs`` are
    the witnesses against neighbours, by field and value.
    """

    session: Session
    findings: dict[str, Finding] = field(default_factory=dict)
    believed: Datapath | None = None
    others: list[Datapath] = field(default_factory=list)
    relative_of: Datapath | None = None
    proofs: dict[tuple[str, str], Witness] = field(default_factory=dict)

    @property
    def instruction(self) -> Instruction:
        return self.session.instruction

    @property
    def seed(self) -> int:
        return self.session.seed

    @property
    def allowance(self) -> Allowance:
        return self.session.allowance

    @property
    def current(self) -> Datapath:
        """The datapath believed now."""
        assert self.believed is not None, "nothing was found yet"
        return self.believed

    def choose(self, alive: Living) -> Datapath:
        """Believe the first of these, of which there is one at least; the rest are kept."""
        self.believed, *rest = alive.first(KEPT)
        self.others = rest + self.others
        return self.believed

    def move(self, candidates: list[Datapath]) -> bool:
        """Believe the first candidate that agrees with everything asked; False where none does."""
        alive = self.session.all.alive(candidates)
        if alive:
            self.believed, self.others = alive[0], alive[1:]
        return bool(alive)


# --- answers that do not repeat


class Repeats:
    """Vectors asked again and again; ``found`` is the last one seen with two answers."""

    def __init__(self, device: Device, instruction: Instruction, found: UnstableError) -> None:
        self.device, self.instruction, self.found = device, instruction, found

    def differ(self, vectors: Batch) -> Mask:
        """Which vectors get two answers or more when asked ``TIMES`` times, every other time in opposite order."""
        order = np.arange(vectors.size)
        ways = (order, order[::-1])
        each = [
            run_vectors(self.device, self.instruction, take(vectors, ways[i % 2]))[ways[i % 2]] for i in range(TIMES)
        ]
        answers = np.stack(each)
        changed: Mask = (answers != answers[0]).any(axis=0)
        if changed.any():
            at = int(changed.argmax())
            other = int(answers[answers[:, at] != answers[0, at], at][0])
            self.found = UnstableError(take(vectors, [at]), int(answers[0, at]), other)
        return changed


def check_repeats(device: Device, instruction: Instruction, vector: Batch, answer: int) -> None:
    """UnstableError where one vector, asked ``TIMES`` times, is answered otherwise than it was."""
    again = run_vectors(device, instruction, take(vector, np.zeros(TIMES, np.intp)))
    other = again[again != answer]
    if other.size:
        raise UnstableError(vector, answer, int(other[0]))


def smallest(device: Device, instruction: Instruction, found: UnstableError) -> UnstableError:
    """The simplest vector on the way down from ``found`` that does not repeat either; itself where none is seen.

    ``TIMES`` ways down, each from where the last one ended: a fault that is rare shows by chance.
    """
    repeats = Repeats(device, instruction, found)
    for _ in range(TIMES):
        shrink(instruction, repeats.found.vector, repeats.differ)
    return repeats.found
