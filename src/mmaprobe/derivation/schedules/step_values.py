"""Which primitive a step is: matrices of values, drawn where the kernels that are left answer differently."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmaprobe.derivation.schedules.answers import ClassAnswers, computed, differing
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.schedule import GemmKernel
from mmaprobe.probing.gemm.calls import Asked, ProductCalls
from mmaprobe.probing.gemm.elements import draw_matrices
from mmaprobe.probing.gemm.families import operands

FAMILIES = ("normal", "cancelling", "opposed", "tiny", "specials", "zeros", "truncation")
"""Families of values, in the order in which they are asked; ``truncation``: opposed values a few bits apart, of which D
is what alignments cut off."""
NEAR = (1, 2, 0, 4)
"""Powers of two over which values of ``truncation`` are spread."""
TRIED = 40
"""Matrices that are tried at most before a call is made to tell kernels apart."""
SIDE = 16
"""Rows and columns of these matrices; a call has them over and over."""


def drawn(calls: ProductCalls, family: str, shape: tuple[int, int, int], rng: np.random.Generator) -> tuple[Bits, Bits]:
    """A and B of a family."""
    if family == "truncation":
        return draw_matrices(calls, shape, rng, NEAR[int(rng.integers(len(NEAR)))], oppose=True)
    return operands(calls, family, shape, rng)


def ask_values(answers: ClassAnswers, k: int, width: int, rng: np.random.Generator) -> None:
    """A call of each family at K, and of as few at K whose last step is not whole; answers are kept."""
    for family in FAMILIES:
        ask_one(answers, drawn(answers.view.calls, family, (SIDE, SIDE, k), rng))
    for family, less in zip(("normal", "opposed", "truncation"), _less(k, width), strict=False):
        ask_one(answers, drawn(answers.view.calls, family, (SIDE, SIDE, k - less), rng))


def _less(k: int, width: int) -> list[int]:
    return [less for less in (1, width // 2, width - 1) if 0 < less < k - 1][:3]


def ask_one(answers: ClassAnswers, values: tuple[Bits, Bits]) -> Asked | None:
    """Ask A and B, their rows and columns again and again until D is full; None where the product has no such K."""
    calls, (m, n) = answers.view.calls, answers.view.mask.shape
    a, b = values
    rows, columns = (np.resize(np.arange(len(each)), count) for each, count in ((a, m), (b.T, n)))
    rows[answers.view.rows] = np.resize(np.arange(len(a)), len(answers.view.rows))
    columns[answers.view.columns] = np.resize(np.arange(b.shape[1]), len(answers.view.columns))
    a, b = np.ascontiguousarray(a[rows]), np.ascontiguousarray(b[:, columns])
    try:
        asked = Asked(a, b, calls.ask(a, b))
    except UsageError:
        return None
    answers.add([asked])
    return asked


def telling(
    one: GemmKernel, others: Sequence[GemmKernel], answers: ClassAnswers, k: int, rng: np.random.Generator
) -> tuple[Bits, Bits] | None:
    """A and B to which one of the others gives another bit; None: none was found."""
    calls, width = answers.view.calls, one.step.width
    for number in range(TRIED):
        family = FAMILIES[(number + len(FAMILIES) - 1) % len(FAMILIES)]
        lanes = max(2, k - int(rng.integers(width)) * (number % 3 > 0))
        a, b = drawn(calls, family, (SIDE, SIDE, lanes), rng)
        wanted = computed(one, answers.formats, a, b)
        for other in others:
            if differing(answers.formats.d, computed(other, answers.formats, a, b), wanted).any():
                return a, b
    return None


def left_by_values(
    living: Sequence[GemmKernel], answers: ClassAnswers, k: int, rng: np.random.Generator
) -> list[GemmKernel]:
    """The kernels that give every bit asked, after calls wherever two of them were seen to differ."""
    left = answers.agreeing(living)
    while len(left) > 1:
        found = telling(left[0], left[1:], answers, k, rng)
        if found is None or ask_one(answers, found) is None:
            break
        before, left = left, answers.agreeing(left)
        if len(left) == len(before):
            break
    return left


def refuted_by_values(
    kernel: GemmKernel, other: GemmKernel, answers: ClassAnswers, k: int, rng: np.random.Generator
) -> str:
    """The answer that another kernel does not give, asked for where none of those known shows it; empty: none found."""
    if said := answers.miss(other):
        return said
    found = telling(kernel, [other], answers, k, rng)
    return answers.miss(other) if found is not None and ask_one(answers, found) is not None else ""
