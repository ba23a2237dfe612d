"""How much a derivation may evaluate: one allowance for all of its stages, counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.program import program
from mmaprobe.models.rows import COLUMNS
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath

ALLOWANCE = 1_300_000_000
"""So many units of work, each about 20 ns of a core: a lane in a narrow sum."""
WIDE, REFUSED = 4, 200
"""What a lane costs in a sum wider than one word, and where the engine cannot hold the sum."""
CALL = 250_000
"""What a call costs where the engine cannot hold the sum."""
RECORD, AGAIN, COMBINATION = 6_500, 450, 250
"""What it costs to make a program from a datapath, to look it up again, and to make one of a grid."""
NEIGHBOUR = 1_700
"""What it costs to change one node's field, for each node of the tree."""
_WORD = 64
_WIDTH = COLUMNS["header"].index("width")


class SpentError(Exception):
    """A derivation has used up its allowance."""


@dataclass
class Work:
    """``spent`` so far, and the ``most`` that may be."""

    most: int = ALLOWANCE
    spent: int = 0


_current: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def allowed(work: Work) -> Iterator[Work]:
    """Count what is evaluated inside; SpentError once it is more than ``work`` allows."""
    token = _current.set(work)
    try:
        yield work
    finally:
        _current.reset(token)


def spend(units: int) -> None:
    """Take so much from the allowance, if there is one; SpentError where it is used up."""
    work = _current.get()
    if work is not None:
        work.spent += units
        if work.spent > work.most:
            raise SpentError(f"no answer within the allowance of {work.most:,} units of work")


def price(words: NDArray[Any] | None) -> int:
    """Units of work a lane of a program costs."""
    if words is None:
        return REFUSED
    return 1 if words[_WIDTH] <= _WORD else WIDE


def evaluated(datapaths: Sequence[Datapath], vectors: Batch) -> Bits:
    """d (datapaths, n), and the work it takes."""
    made, lanes = program.cache_info().misses, datapaths[0].k * vectors.size
    prices = [price(program(path)) for path in datapaths]
    made = program.cache_info().misses - made
    refused = prices.count(REFUSED)
    spend(sum(prices) * lanes + RECORD * made + AGAIN * len(prices) + CALL * refused)
    return evaluate_many(datapaths, vectors)
