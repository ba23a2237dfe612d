"""Sums of many terms, exactly, many at a time: limbs of 32 bits, as long as the exponents need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.formats import bit_length

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LIMB = 32
"""Bits of a limb: of so many terms as there can be their sum fits the 53 bits of a binary64."""
_MASK = (1 << LIMB) - 1
"""A whole limb."""
WORD = 62
"""Bits of a term's significand at most."""


@dataclass(frozen=True, eq=False)
class ExactSums:
    """|S| of n sums: bit i of limb g has the weight 2^(base + 32 g + i)."""

    base: int
    limbs: Ints

    @property
    def top(self) -> Ints:
        """floor(log2 |S|); ``base`` - 1 where S is 0."""
        return self.base + _highest(self.limbs)

    @property
    def zero(self) -> Bools:
        """Where S is 0."""
        return np.asarray(~self.limbs.any(axis=1))

    def below(self, place: Ints) -> tuple[Bools, Bools, Bools, Ints]:
        """What lies below 2^place of each |S|: (any bit at all, the half bit 2^(place - 1), the bit below it, the
        run of bits equal to that one, from it downwards).

        The bits below the lowest limb are zeros: a run of ones ends there at the latest, and one of zeros has no end
        where nothing below the half bit is set (then its length means nothing).
        """
        at = place - self.base
        any_bit = self.rest(place)
        half, first = self._bit(at - 1), self._bit(at - 2)
        lower = self._lower(at - 1)
        other = np.where(first[:, None], ~self.limbs, self.limbs) & lower
        return any_bit, half, first, np.asarray(at - 2 - _highest(other))

    def rest(self, place: Ints) -> Bools:
        """Whether any bit below 2^place is set."""
        return np.asarray((self.limbs & self._lower(place - self.base)).any(axis=1))

    def _lower(self, at: Ints) -> Ints:
        """Masks of the bits below position ``at`` of each sum."""
        here = np.clip(at[:, None] - LIMB * np.arange(self.limbs.shape[1]), 0, LIMB)
        return np.asarray((np.int64(1) << here) - 1)

    def _bit(self, at: Ints) -> Bools:
        """The bit at a position of each sum; False outside of the limbs."""
        limb = np.clip(at // LIMB, 0, self.limbs.shape[1] - 1)
        inside = (at >= 0) & (at < LIMB * self.limbs.shape[1])
        bits = self.limbs[np.arange(at.size), limb] >> (at % LIMB) & 1
        return np.asarray(inside & (bits != 0))


def exact_sums(significand: Ints, exponent: Ints, negative: Bools) -> ExactSums:
    """The sums over the columns of ``(-1)^negative significand 2^exponent``, significands from 0 to 2^62 - 1."""
    live = significand != 0
    if not live.any():
        return ExactSums(0, np.zeros((len(live), 1), np.int64))
    base, top = int(exponent[live].min()), int(exponent[live].max()) + WORD
    count = (top - base) // LIMB + 3  # a term takes three limbs, and so many terms another one
    at = np.where(live, exponent - base, 0)
    limb, offset = at // LIMB, at % LIMB
    rest = significand >> (LIMB - offset)
    chunks = (significand << offset & _MASK, rest & _MASK, rest >> LIMB)
    first = (np.arange(len(live))[:, None] * count + limb).ravel()
    signed = np.where(negative, -1, 1)
    raw = sum(np.bincount(first + i, (signed * chunk).ravel(), len(live) * count) for i, chunk in enumerate(chunks))
    limbs, carry = _carried(np.asarray(raw).astype(np.int64).reshape(-1, count))
    return ExactSums(base, np.where((carry < 0)[:, None], _negated(limbs), limbs))


def _carried(limbs: Ints) -> tuple[Ints, Ints]:
    """The same numbers in limbs of 0 to 2^32 - 1, and what is carried out: -1 where they are negative."""
    carry = np.zeros(len(limbs), np.int64)
    for g in range(limbs.shape[1]):
        whole = limbs[:, g] + carry
        limbs[:, g], carry = whole & _MASK, whole >> LIMB
    return limbs, carry


def _negated(limbs: Ints) -> Ints:
    """Two's complement."""
    inverted = limbs ^ _MASK
    inverted[:, 0] += 1
    return _carried(inverted)[0]


def _highest(limbs: Ints) -> Ints:
    """The position of the highest bit that is set; -1 where none is."""
    there = limbs != 0
    limb = limbs.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    head = limbs[np.arange(len(limbs)), limb]
    return np.where(head == 0, -1, LIMB * limb + bit_length(head) - 1)
