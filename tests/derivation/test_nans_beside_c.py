"""NaNs beside one of c: of many lanes chance seldom takes the first, in whose step c is still what it was."""

from __future__ import annotations

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.vectors.specials import nans_beside_c
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, take
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Products, Special

E5M2 = instruction("mma.m16n8k32.f32.e5m2.e5m2.f32", "sm_89")


def chained(made: Instruction, special: Special) -> Datapath:
    """Exact sums of two products at a time, one after the other."""
    tree = Exact((Products((0, 1)), Accumulator()), Encode("f32", "RNE"))
    return Datapath(made.a, made.b, made.c, made.d, made.k, tree, step=2, special=special)


def differing(vectors: Batch) -> int:
    """How many vectors tell two rules apart that only a signalling c beside a quiet factor's NaN does."""
    quiet = ((vectors.a == 0x7E) | (vectors.a == 0x3C)).all(1) & (vectors.b == 0x3C).all(1)
    plain = take(vectors, np.flatnonzero(quiet & (vectors.a == 0x7E).any(1)))
    rules = (Special("local", 0x7FFFFFFF, ("a", "b"), signalling_first=True),
             Special("cause", 0x7FFFFFFF, factor_code=0x7FC00000))  # fmt: skip
    one, two = evaluate_many([chained(E5M2, rule) for rule in rules], plain)
    return int((one != two).sum())


def test_a_signalling_c_that_wins_is_told_from_a_code_of_its_own_for_factors() -> None:
    """Seed 4085 of the random units was said to have such a code, which one vector in 48,000 denied."""
    assert differing(nans_beside_c(E5M2)) == 2


def test_every_kind_of_nan_is_beside_every_kind_of_c_in_the_first_and_the_last_lane() -> None:
    vectors = nans_beside_c(E5M2)
    assert vectors.c is not None
    seen = {(side, lane, int(values[lane]), int(c))
            for side in ("a", "b")
            for values, c in zip(getattr(vectors, side), vectors.c, strict=True)
            for lane in (0, E5M2.k - 1) if values[lane] != 0x3C}  # fmt: skip
    kinds, of_c = {0x7E, 0xFE, 0x7D, 0xFD}, {0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001}
    assert seen == {(side, lane, code, c) for side in "ab" for lane in (0, E5M2.k - 1) for code in kinds for c in of_c}
