"""The kinds of vectors that each stage of a search draws from, for one instruction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.discriminate import Pool
from mmaprobe.derivation.vectors.mixtures import (
    edge_vectors,
    hard_vectors,
    mixed_vectors,
    nan_operands,
    special_vectors,
)
from mmaprobe.derivation.vectors.plain import safe_vectors, zeroed_vectors
from mmaprobe.derivation.vectors.range_ends import near_vectors
from mmaprobe.derivation.vectors.specials import nan_vectors
from mmaprobe.operands.batch import Batch, join, take

RANGE_FAMILIES = ("subnormals", "tiny", "conly", "zeros", "zlad", "extremes", "cancel")
LOW_FAMILIES = ("zlad", "zeros", "tiny", "conly")
SPECIAL_FAMILIES = ("specials", "uniform", "extremes")


@dataclass(frozen=True)
class Pools:
    """Each method makes about ``count`` vectors from a seed."""

    instruction: Instruction

    def safe(self, seed: int, count: int) -> Batch:
        return safe_vectors(self.instruction, seed, count)

    def zeroed(self, seed: int, count: int) -> Batch:
        return zeroed_vectors(self.instruction, seed, count)

    def low(self, seed: int, count: int) -> Batch:
        """Zeros and tiny terms among others, where the exponent of a zero can matter."""
        return join([hard_vectors(self.instruction, LOW_FAMILIES, seed, 2 * count), self.zeroed(seed, count)])

    def special(self, seed: int, count: int) -> Batch:
        own = special_vectors(self.instruction, seed, count)
        return join(
            [
                own,
                nan_vectors(self.instruction, seed, count // 2),
                hard_vectors(self.instruction, SPECIAL_FAMILIES, seed, count // 2),
            ]
        )

    def whole(self, seed: int, count: int) -> Batch:
        return mixed_vectors(self.instruction, seed, 4 * count)

    def finite(self, seed: int, count: int) -> Batch:
        """Every kind of vector without NaN operands, that NaN rules do not matter."""
        vectors = join([self.safe(seed, count), self.low(seed, count), self.range(seed, count)])
        return take(vectors, np.flatnonzero(~nan_operands(self.instruction, vectors)))

    def range(self, seed: int, count: int) -> Batch:
        hard = hard_vectors(self.instruction, RANGE_FAMILIES, seed, 3 * count // 2)
        near = near_vectors(self.instruction, formats.get(self.instruction.d), seed, count // 2, top=False)
        vectors = join([hard, edge_vectors(self.instruction, seed, count), near])
        return take(vectors, np.flatnonzero(~nan_operands(self.instruction, vectors)))

    def hard(self, *families: str) -> Pool:
        return lambda seed, count: hard_vectors(self.instruction, families, seed, count)
