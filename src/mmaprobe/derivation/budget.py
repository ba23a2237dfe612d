"""How much a derivation may evaluate: one allowance for all of its stages, counted, not timed.

What an evaluation costs depends on the datapaths and the vectors alone: a derivation spends the same whatever the
process did before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from mmaprobe.models.bit_budget import WIDTHS
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, walk

ALLOWANCE = 470_000_000
"""Units of work of one derivation, each some 25 ns of a core, so twelve seconds, and with what is said of a miss a
quarter of a minute at most; up to twice as long on a slow or busy machine.  Tuned by ``tests/recovery``: what ships and
random architectures are derived within it."""
LANES = dict(zip(WIDTHS, (0.15, 0.4, 0.9, 2.0), strict=True))
"""Units of work of a lane of one vector, by the bits of the program's sums: a fit to the evaluations of some thirty
derivations, timed one by one."""
STRIP = 64
"""Vectors of which the engine runs a whole program at a time."""
REGISTER = 8
"""Vectors that it takes at a time: fewer cost as much."""
OPERATION = 1
"""Units of work of a lane of a program for each strip, however few of its vectors there are: no fit tells it from 0."""
REFUSED = 20
"""Units of work of a lane where the engine cannot hold the sum; measured."""
CALL = 70_000
"""Units of work of a call where the engine cannot hold the sum; measured."""
LOOK = 8_000
"""Units of work of a look at a group of fields, whatever it holds; fitted."""
RECORD = 6_000, 9
"""Units of work of a change to a datapath and of making its program, and for each word of that: fitted, and some two
thirds of what it takes where trees have many nodes."""
COMBINATION = 40, 0.1
"""Units of work of patching the program of a combination, and for each word of it; fitted."""
CALLED = 7_000
"""Units of work of evaluating some of these, however few; fitted."""
DATAPATH = 150, 0.25
"""Units of work of a datapath that is evaluated, and for each word of its program; measured."""
MADE = 4_000, 8
"""Units of work of making a program that the derivation has not made yet, and for each word of it; measured."""
REMEMBERED = program.cache_parameters()["maxsize"] or 0
"""Datapaths whose programs a derivation need not pay for again, those made last: as many as ``program`` keeps."""
NEIGHBOUR = 5_000, 80
"""Units of work of changing a datapath's field, and for each node of the tree; measured."""
ARGUMENT = 40_000, 1_500
"""Units of work of asking whether a neighbour is the same function, and for each node of the tree; measured."""
_WIDTH = COLUMNS["header"].index("width")


@dataclass(frozen=True)
class Spent:
    """Units of work by stage, in the order in which the stages were first entered, of the ``most`` that were allowed
    (None: any number); ``ended``: whether more was asked for than was to be had, by the search or in all."""

    stages: tuple[tuple[str, int], ...]
    most: int | None
    ended: bool = False

    @property
    def total(self) -> int:
        """Units of work of all stages."""
        return sum(units for _, units in self.stages)

    def __str__(self) -> str:
        stage, units = max(self.stages, key=lambda each: each[1], default=("nothing", 0))
        return f"{self.total:,} units of work, most of them ({units:,}) for {stage}"


NOTHING = Spent((), None)


class SpentError(Exception):
    """A derivation has used up its allowance: raised by ``Allowance.spend`` alone, and met where it was begun."""

    def __init__(self, spent: Spent) -> None:
        super().__init__(f"no answer within the allowance of {spent.most:,} units of work")
        self.spent = spent


@dataclass
class Allowance:
    """The ``most`` units of work that a derivation may take, and what each stage took so far; so many of them ``kept``
    for what comes after the search has ended without an answer (``release``); ``ended``: whether more was asked for."""

    most: int | None = ALLOWANCE
    stage: str = "the first vectors"
    stages: dict[str, int] = field(default_factory=dict)
    kept: int = 0
    ended: bool = False
    made: dict[Datapath, None] = field(default_factory=dict, repr=False)
    """Datapaths whose programs were paid for, in that order."""
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = float("inf") if self.most is None else self.most - self.kept

    def release(self) -> None:
        """Let what was kept be taken as well."""
        self.left, self.kept = max(self.left, 0) + self.kept, 0

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """Let what is inside take this share of what is left, and end it there; the rest goes on."""
        ended, rest = self.ended, 0.0 if self.most is None else self.left * (1 - share)
        self.left -= rest
        try:
            yield
        except SpentError:
            self.ended = ended
        finally:
            self.left = max(self.left, 0) + rest

    @property
    def spent(self) -> Spent:
        """What was taken so far."""
        return Spent(tuple(self.stages.items()), self.most, self.ended)

    def spend(self, units: int) -> None:
        """Take so much for the stage under way; SpentError where that is more than is left."""
        self.stages[self.stage] = self.stages.get(self.stage, 0) + units
        self.left -= units
        if self.left < 0:
            self.ended = True
            raise SpentError(self.spent)

    def spend_on(self, datapath: Datapath, count: int, units: tuple[int, int]) -> None:
        """So often so many units of work, and for each node of a datapath's tree."""
        each, node = units
        self.spend(count * (each + node * sum(1 for _ in walk(datapath.tree))))

    def evaluate(self, datapaths: Sequence[Datapath], vectors: Batch) -> Bits:
        """d (datapaths, n), for what it costs."""
        self.spend_on_programs(datapaths, vectors)
        return evaluate_many(datapaths, vectors)

    def spend_on_programs(self, datapaths: Sequence[Datapath], vectors: Batch) -> None:
        """What it takes to make the programs of datapaths of one form, where they were not made, and to run them."""
        new = [path for path in dict.fromkeys(datapaths) if path not in self.made]
        self.spend(cost(datapaths, vectors) + making(new))
        self.made |= dict.fromkeys(new)
        while len(self.made) > REMEMBERED:
            del self.made[next(iter(self.made))]


def price(words: NDArray[Any] | None) -> float:
    """Units of work a lane of one vector costs."""
    return REFUSED if words is None else LANES[int(words[_WIDTH])]


def work(words: NDArray[Any] | None, k: int, vectors: int) -> float:
    """Units of work of a program of ``k`` lanes on so many vectors."""
    strips, vectors = -(-vectors // STRIP), -(-vectors // REGISTER) * REGISTER
    return k * (price(words) * vectors + (0 if words is None else OPERATION * strips))


def cost(datapaths: Sequence[Datapath], vectors: Batch) -> int:
    """Units of work that it takes to evaluate datapaths of one form on vectors, their programs made."""
    programs = [program(path) for path in datapaths]
    lanes = sum(work(words, datapaths[0].k, vectors.size) for words in programs)
    each, word = DATAPATH
    return int(lanes + sum(CALL if words is None else each + word * len(words) for words in programs))


def making(datapaths: Sequence[Datapath]) -> int:
    """Units of work that it takes to make the programs of datapaths."""
    each, word = MADE
    return int(sum(each + word * (0 if words is None else len(words)) for words in map(program, datapaths)))
