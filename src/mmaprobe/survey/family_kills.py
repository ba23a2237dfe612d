"""Which families of vectors tell two datapaths apart, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mmaprobe.generators import families_for, generate
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.survey.file_comparison import plain_instruction

VECTORS = 2000
"""Of every family: a difference that one vector in 700 shows is missed one time in 20."""
SEED = 79
"""Of the vectors: what is said of two datapaths does not change."""


@dataclass(frozen=True)
class FamilyKills:
    """Of so many vectors of a family, those that two datapaths answer differently."""

    family: str
    vectors: int
    differing: int


def family_kills(old: Datapath, new: Datapath) -> Iterator[FamilyKills]:
    """Every family that fits the operands, in the generators' order."""
    made = plain_instruction(old)
    for family in families_for(made):
        first, second = evaluate_many([old, new], generate(made, family, SEED, 0, VECTORS))
        yield FamilyKills(family, VECTORS, int(np.count_nonzero(first != second)))
