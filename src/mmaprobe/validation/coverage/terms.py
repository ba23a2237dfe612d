"""The terms of vectors as exact numbers: products of lanes, block scales in them, and C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import operand_signs
from mmaprobe.formats import INFINITE, NAN, ZERO, Decoded, bit_length
from mmaprobe.models.sparse import dense_vectors
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.validation.coverage.sums import WORD, Bools, ExactSums, Ints, exact_sums

HALF = 27
"""Bits of the lower half of a wide significand: products of two halves fit a word."""


@dataclass(frozen=True, eq=False)
class SumTerms:
    """Of n vectors the products of all lanes (n, L) and C (n, 1; no column where the instruction has none).

    ``zero``, ``negative``, ``infinite``, ``nan``, ``exponent`` (floor(log2 |x|) of what is finite and not 0) have the
    products first, then C: L + 1 columns at most.  A zero of an integer has no sign.  ``operands``: the decoded codes
    of each operand.  ``sums``: the exact sums of what is finite.
    """

    lanes: int
    zero: Bools
    negative: Bools
    infinite: Bools
    nan: Bools
    exponent: Ints
    sums: ExactSums
    operands: Mapping[str, Decoded]

    @cached_property
    def live(self) -> Bools:
        """What is neither a zero nor special."""
        return np.asarray(~(self.zero | self.infinite | self.nan))

    @cached_property
    def finite(self) -> Bools:
        """The vectors without an infinity or a NaN among their terms."""
        return np.asarray(~(self.infinite | self.nan).any(axis=1))

    @cached_property
    def nothing(self) -> Bools:
        """The vectors all of whose terms are zeros."""
        return np.asarray(self.zero.all(axis=1))

    @property
    def products(self) -> slice:
        """The columns of the products."""
        return slice(0, self.lanes)

    @property
    def has_c(self) -> bool:
        """Whether the last column is C."""
        return bool(self.zero.shape[1] > self.lanes)

    def largest(self, columns: slice) -> Ints:
        """The largest exponent among the live terms of these columns; -2^40 where none is live."""
        return np.asarray(np.where(self.live[:, columns], self.exponent[:, columns], -(1 << 40)).max(axis=1))


@dataclass(frozen=True, eq=False)
class _Factor:
    """One column of terms a lane, exactly: the sum of its pieces ``significand 2^exponent``."""

    zero: Bools
    negative: Bools
    infinite: Bools
    nan: Bools
    exponent: Ints
    pieces: tuple[tuple[Ints, Ints], ...]


def terms_of(made: Instruction, vectors: Batch) -> SumTerms:
    """The terms of vectors in one-vector shapes, as the instruction's modifiers sign them and its metadata selects."""
    vectors = _signed(made, vectors)
    seen = dense_vectors(made, vectors, sorts=True) if made.chunk else vectors
    known = made.formats()
    operands = {name: formats.decode(known[name], bits) for name, bits in seen.items() if name in known}
    columns = [_products(made, operands)]
    if seen.c is not None:
        columns.append(_c(made, operands["c"]))
    pieces = [(s, e, factor.negative) for factor in columns for s, e in factor.pieces]
    finite = [~(factor.infinite | factor.nan) for factor in columns for _ in factor.pieces]
    sums = exact_sums(
        np.concatenate([np.where(keep, s, 0) for (s, _, _), keep in zip(pieces, finite, strict=True)], axis=1),
        np.concatenate([e for _, e, _ in pieces], axis=1),
        np.concatenate([negative for _, _, negative in pieces], axis=1),
    )
    beside = {
        name: np.concatenate([getattr(factor, name) for factor in columns], axis=1)
        for name in ("zero", "negative", "infinite", "nan", "exponent")
    }
    return SumTerms(made.selected, sums=sums, operands=operands, **beside)


def _signed(made: Instruction, vectors: Batch) -> Batch:
    """Operands with the sign bits that the unit gives them, lane by lane."""
    changes: dict[str, Bits] = {}
    for name, words in operand_signs(made).items():
        value, mask = getattr(vectors, name), made.formats()[name].sign_mask
        if value is None or words == ("keep", "keep"):
            continue
        lanes = value.reshape(vectors.size, -1).copy()
        for first, word in enumerate(words):
            each = lanes[:, first::2]
            lanes[:, first::2] = {"keep": each, "flip": each ^ mask, "clear": each & ~each.dtype.type(mask),
                                  "set": each | mask}[word]  # fmt: skip
        changes[name] = lanes.reshape(value.shape)
    return replace(vectors, **changes)


def _products(made: Instruction, operands: Mapping[str, Decoded]) -> _Factor:
    """a_k b_k, times the scales of the lane's blocks."""
    a, b = operands["a"], operands["b"]
    infinite_a, infinite_b = a.kind == INFINITE, b.kind == INFINITE
    nan = (a.kind == NAN) | (b.kind == NAN)
    infinite = (infinite_a | infinite_b) & ~nan
    zero_a, zero_b = (x.kind == ZERO for x in (a, b))
    nan |= infinite & ((infinite_a & zero_b) | (infinite_b & zero_a))
    exponent = a.exponent + b.exponent
    pieces = _MULTIPLY[made.multiply](a.significand, b.significand)
    for scale in (operands[name] for name in ("scale_a", "scale_b") if name in operands):
        each = made.selected // scale.kind.shape[1]
        nan |= np.repeat(scale.kind == NAN, each, axis=1)
        exponent = exponent + np.repeat(scale.exponent, each, axis=1)
        pieces = tuple((s * np.repeat(scale.significand, each, axis=1), by) for s, by in pieces)
    infinite &= ~nan
    zero = _all_zero(pieces) & ~infinite & ~nan
    floats = formats.get(made.a).is_float and formats.get(made.b).is_float
    negative = (a.negative ^ b.negative) & (~zero | floats)
    return _Factor(zero, negative, infinite, nan, _length(pieces) + exponent - 1,
                   tuple((s, exponent + by) for s, by in pieces))  # fmt: skip


def _c(made: Instruction, c: Decoded) -> _Factor:
    """C as one column."""
    kind, significand, exponent = c.kind[:, None], c.significand[:, None], c.exponent[:, None]
    pieces: Pieces = ((significand, 0),)
    if significand.dtype == object:  # 64-bit integers
        low = significand & ((1 << HALF) - 1)
        pieces = ((low.astype(np.int64), 0), ((significand >> HALF).astype(np.int64), HALF))
    infinite, nan = kind == INFINITE, kind == NAN
    at = tuple((s, exponent + by) for s, by in pieces)
    return _Factor(kind == ZERO, c.negative[:, None], infinite, nan, _length(pieces) + exponent - 1, at)


Pieces = tuple[tuple[Ints, int], ...]
"""A number as the sum of significands, each shifted to the left by so many bits; the lowest first."""


def _multiplied(x: Ints, y: Ints) -> Pieces:
    """Exact products: in one piece where a word holds it, else of halves."""
    if int(bit_length(x).max(initial=0) + bit_length(y).max(initial=0)) <= WORD - _SCALES:
        return ((x * y, 0),)
    mask = (1 << HALF) - 1
    low_x, high_x, low_y, high_y = x & mask, x >> HALF, y & mask, y >> HALF
    middle = high_x * low_y + low_x * high_y
    return ((low_x * low_y, 0), (middle, HALF), (high_x * high_y, 2 * HALF))


_SCALES = 8
"""Bits that two block scales add to a significand at most."""
_MULTIPLY: Mapping[str, Callable[[Ints, Ints], Pieces]] = {
    "exact": _multiplied,
    "and": lambda x, y: ((x & y, 0),),
    "xor": lambda x, y: ((x ^ y, 0),),
}
"""How lanes are multiplied: numbers, or single bits."""


def _all_zero(pieces: Pieces) -> Bools:
    return np.asarray(np.all([s == 0 for s, _ in pieces], axis=0))


def _length(pieces: Pieces) -> Ints:
    """Bits of the whole number."""
    carry: Any = 0
    found: NDArray[Any] = np.zeros(pieces[0][0].shape, np.int64)
    for (significand, by), (_, above) in zip(pieces, (*pieces[1:], (None, 0)), strict=True):
        whole = significand + carry
        here = whole & ((1 << (above - by)) - 1) if above else whole
        carry = whole >> (above - by) if above else 0
        found = np.where(here != 0, by + bit_length(here), found)
    return np.asarray(found)
