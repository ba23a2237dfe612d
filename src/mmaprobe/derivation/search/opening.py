"""The first launch: plain and special vectors at once, and what their answers say before any hypothesis is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.session import Seen, State
from mmaprobe.derivation.survivors import Indices
from mmaprobe.derivation.vectors.mixtures import nan_operands
from mmaprobe.derivation.vectors.plain import safe_vectors, uniform_vectors
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.operands.batch import Batch, Bits, join, take

UNIFORM, SAFE, SPECIAL = 48, 40, 64
"""Vectors of the first launch, by kind."""

MOST_CODES = 3


@dataclass(frozen=True)
class Opening:
    """``uniform``: vectors of equal lanes, ``plain``: these and others, all with normal answers; ``ends``: those
    with other answers, ``ends_at``: as which they were asked; ``special``: of special operands.  ``codes``: the NaNs
    seen, that of an invalid operation first.  ``results``: formats that can be the result's, a narrower one first
    where its bits suffice."""

    uniform: Seen
    plain: Seen
    ends: Seen
    ends_at: Indices
    special: Seen
    codes: tuple[int, ...]
    results: tuple[str, ...]


def open_up(state: State, pools: Pools) -> Opening:
    """Ask the first vectors."""
    instruction, seed = state.instruction, state.seed
    plain = [uniform_vectors(instruction, seed, UNIFORM), safe_vectors(instruction, seed, SAFE)]
    vectors = join([*plain, pools.special(seed + 5, SPECIAL)])
    begin = len(state.session)
    answers = state.session.ask(vectors)
    good = formats.decode(formats.get(instruction.d), answers).kind == formats.NORMAL
    good[UNIFORM + SAFE :] = False
    seen = _chosen(vectors, answers, good)
    number = np.arange(len(answers))
    special = _chosen(vectors, answers, number >= UNIFORM + SAFE)
    ends = ~good & (number < UNIFORM + SAFE)
    return Opening(
        uniform=_chosen(vectors, answers, good & (number < UNIFORM)),
        plain=seen,
        ends=_chosen(vectors, answers, ends),
        ends_at=begin + np.flatnonzero(ends),
        special=special,
        codes=tuple(nan_codes(instruction, *special)),
        results=tuple(_result_formats(instruction, seen[1])),
    )


def _chosen(vectors: Batch, answers: Bits, mask: NDArray[np.bool_]) -> Seen:
    return take(vectors, np.flatnonzero(mask)), answers[mask]


def _result_formats(instruction: Instruction, answers: Bits) -> list[str]:
    """The result format, and a narrower one where no answer uses its last places."""
    fmt = formats.get(instruction.d)
    used = int(np.bitwise_or.reduce(answers)) if len(answers) else -1
    twins = [
        other.name
        for other in formats.FORMATS.values()
        if other.is_float
        and other.padding > fmt.padding
        and other.container_bits == fmt.container_bits
        and other.exponent_bits == fmt.exponent_bits
        and used & ((1 << other.padding) - 1) == 0
    ]
    return [*sorted(twins, key=lambda name: formats.get(name).fraction_bits), fmt.name]


def nan_codes(instruction: Instruction, vectors: Batch, answers: Bits) -> list[int]:
    """The NaNs that the device answers to special values; that of an invalid operation first."""
    fmt = formats.get(instruction.d)
    is_nan = formats.decode(fmt, answers).kind == formats.NAN
    invalid = answers[is_nan & ~nan_operands(replace(instruction, scale=None, scale_size=0), vectors)]
    codes: dict[int, None] = {}
    for group in (invalid, answers[is_nan]):
        values, counts = np.unique(group, return_counts=True)
        codes |= dict.fromkeys(int(code) for code in values[np.argsort(-counts)][: MOST_CODES - len(codes)])
    return list(codes) or [fmt.nan_code or 0]
