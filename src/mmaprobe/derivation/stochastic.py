"""Whether answers that do not repeat are those of stochastic rounding.

Such a unit answers with one of the two neighbours of a sum, with the upper one as often as the sum is near it: of a sum
x between l and u in (x - l) / (u - l) of all askings.  What gives two far answers, or more than two, does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import Device, run_vectors
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits, take

FAMILIES = ("uniform", "clustered", "ulp", "tie")
"""Generators of the vectors: most sums lie between two results."""
EACH = 16
"""Vectors of each family."""
TIMES = 256
"""How often each is asked: a share is known to a sixteenth, with two errors of it."""
FEWEST = 6
"""Vectors of two answers that say something, at least."""
ERRORS = 4.5
"""Standard errors that a share may be off: of a hundred shares one in 1,500 is farther off by chance."""
MOST_OFF = 0.1
"""Part of the vectors of two answers that may be otherwise: a unit that cuts terms has not quite the exact sum."""


@dataclass(frozen=True)
class Spread:
    """Of the vectors that were answered in several ways: how many, those whose answers are two neighbours about the
    exact sum, and those that get the upper one as often as that sum is near it."""

    changing: int
    neighbours: int
    fair: int

    def __str__(self) -> str:
        """What this says of the rounding; nothing where there is too little."""
        if self.changing < FEWEST or self.neighbours < (1 - MOST_OFF) * self.changing:
            return ""
        asked = f"of {self.changing} vectors that change, asked {TIMES} times each, {self.neighbours} get the two"
        if self.fair >= (1 - MOST_OFF) * self.neighbours:
            return (
                f"{asked} neighbours of the exact sum, {self.fair} the upper one as often as the sum is near it: "
                "this is stochastic rounding"
            )
        return (
            f"{asked} neighbours of the exact sum, but {self.neighbours - self.fair} not as often as the sum is near "
            "them: stochastic rounding of few random bits, or last places that change"
        )


def spread(device: Device, instruction: Instruction, seed: int) -> Spread:
    """Ask vectors of a dense float instruction again and again, and count how the answers lie about the exact sums."""
    vectors = hard_vectors(instruction, FAMILIES, seed + 31, EACH * len(FAMILIES))
    count = vectors.size
    answers = run_vectors(device, instruction, take(vectors, np.tile(np.arange(count), TIMES))).reshape(TIMES, count)
    fmt = formats.get(instruction.d)
    found = [_about(fmt, answers[:, i], exact_sum(instruction, vectors, i)) for i in range(count)]
    changing = [each for each in found if each is not None]
    return Spread(len(changing), sum(each > 0 for each in changing), sum(each > 1 for each in changing))


def _about(fmt: Format, answers: Bits, exact: Fraction | None) -> int | None:
    """None of answers that are all alike, and of sums that are no finite result; 1 of two neighbours about the exact
    sum, 2 where the upper one comes as often as it should, 0 of any others."""
    codes, counts = np.unique(answers, return_counts=True)
    most = value(fmt, fmt.largest)
    if len(codes) == 1 or exact is None or (most is not None and abs(exact) > most):
        return None
    numbers = [number for code in codes if (number := value(fmt, int(code))) is not None]
    if len(codes) != 2 or len(numbers) != 2:
        return 0
    (low, _), (high, often) = sorted(zip(numbers, counts.tolist(), strict=True))
    if not low < exact < high or not _neighbours(fmt, codes):
        return 0
    share = float((exact - low) / (high - low))
    return 2 if abs(often - TIMES * share) <= ERRORS * sqrt(TIMES * share * (1 - share)) + 1 else 1


def _neighbours(fmt: Format, codes: Bits) -> bool:
    """Whether nothing of the format lies between two codes."""
    first, second = (int(code) & ~fmt.sign_mask for code in codes)
    alike = (int(codes[0]) ^ int(codes[1])) & fmt.sign_mask == 0
    return (abs(first - second) if alike else first + second) == 1 << fmt.padding


def value(fmt: Format, code: int) -> Fraction | None:
    """The number of a code; None of an infinity or NaN."""
    found = formats.decode(fmt, np.array([code], fmt.dtype))
    if found.kind[0] in (formats.INFINITE, formats.NAN):
        return None
    size = int(found.significand[0]) * Fraction(2) ** int(found.exponent[0])
    return -size if found.negative[0] else size


def exact_sum(instruction: Instruction, vectors: Batch, i: int) -> Fraction | None:
    """The sum of the products and c of vector i; None where an operand is an infinity or NaN."""
    named = instruction.formats()

    def number(name: str, at: tuple[int, ...]) -> Fraction | None:
        codes = getattr(vectors, name)
        return value(named[name], int(codes[at]))

    terms = [] if vectors.c is None else [[number("c", (i,))]]
    for lane in range(instruction.k):
        factors = [number("a", (i, lane)), number("b", (i, lane))]
        if vectors.scale_a is not None:
            block = lane // instruction.scale_size
            factors += [number("scale_a", (i, block)), number("scale_b", (i, block))]
        terms.append(factors)
    total = Fraction(0)
    for factors in terms:
        product = Fraction(1)
        for factor in factors:
            if factor is None:
                return None
            product *= factor
        total += product
    return total
