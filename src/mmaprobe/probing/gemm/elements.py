"""Which elements of D add in the same order: equal rows and equal columns, of values that any other order shows.

Where D has less bits than the sums have, the rounding of D hides most other orders: there every product has its
negative on another lane, so that D is nothing but what the additions rounded off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import Floats, ProductCalls
from mmaprobe.probing.gemm.sizes import WIDE, least_exponent, narrow

CLASSES = NDArray[np.intp]
SPREADS = (8, 0, 3)
"""Powers of two over which values are spread, of each call of equal rows that classes are told apart by: wide ones show
another order, narrow ones another rounding of products."""
NARROW_SPREADS = (8, 3, 5)
"""The same where D is narrow, of opposed values."""
FAINT = 12
"""Powers of two by which a number is smaller whose product has no negative."""
MOST_UNITS = 16
"""Odd numbers of half units that the smallest products have."""


@dataclass(frozen=True)
class EqualRows:
    """One call: x is every row of A, y every column of B, and d is D."""

    x: Bits
    y: Bits
    d: Bits


@dataclass(frozen=True)
class MixedRows:
    """One call of several values: row i of A is ``xs[of_row[i]]``, column j of B ``ys[of_column[j]]``, and d is D."""

    xs: tuple[Bits, ...]
    ys: tuple[Bits, ...]
    of_row: CLASSES
    of_column: CLASSES
    d: Bits

    def apart(self, number: CLASSES, asked: CLASSES) -> list[EqualRows] | None:
        """What calls of equal rows would answer, of each x with its own y, if all elements of a class ``number`` (M, N)
        that is ``asked`` about answer alike; 0 of all other classes.

        None where elements of a class were seen to differ, or it has none in such a row and column."""
        own, shape = np.arange(len(self.xs)), (int(number.max()) + 1, len(self.xs), len(self.ys))
        seen = number * len(self.xs) * len(self.ys) + self.of_row[:, None] * len(self.ys) + self.of_column
        told, there = np.zeros(shape, self.d.dtype), np.zeros(shape, bool)
        told.ravel()[seen], there.ravel()[seen] = self.d, True
        if not there[asked][:, own, own].all() or (told.ravel()[seen] != self.d)[np.isin(number, asked)].any():
            return None
        told[np.setdiff1d(number, asked)] = 0
        return [EqualRows(self.xs[i], self.ys[i], told[:, i, i][number]) for i in own]


def value_rows(calls: ProductCalls, k: int, rng: np.random.Generator) -> list[tuple[Bits, Bits]]:
    """x and y of every call by which orders are told apart: values of several spreads, then zeros.

    Of a narrow D the last values are not opposed: they show how D itself is rounded."""
    if not narrow(calls.d):
        return [draw_rows(calls, k, rng, spread) for spread in SPREADS] + zero_rows(calls, k)
    drawn = [draw_rows(calls, k, rng, spread) for spread in NARROW_SPREADS]
    plain = draw(calls, k, rng, 0, "a"), draw(calls, k, rng, 0, "b")
    return [*drawn, plain, *zero_rows(calls, k)]


def draw_rows(calls: ProductCalls, k: int, rng: np.random.Generator, spread: int) -> tuple[Bits, Bits]:
    """x and y of random values of both signs, spread over so many powers of two; of a narrow D ``opposed``."""
    a, b = draw_matrices(calls, (1, 1, k), rng, spread)
    return a[0], b[:, 0]


def draw_matrices(
    calls: ProductCalls, shape: tuple[int, int, int], rng: np.random.Generator, spread: int, oppose: bool | None = None
) -> tuple[Bits, Bits]:
    """A (M, K) and B (K, N) of random values; where D is narrow, or ``oppose`` says so, ``opposed``."""
    m, n, k = shape
    a, b = draw(calls, m * k, rng, spread, "a").reshape(m, k), draw(calls, k * n, rng, spread, "b").reshape(k, n)
    if not (narrow(calls.d) if oppose is None else oppose):
        return a, b
    x, y = opposed(calls.numbers(a, calls.a), calls.numbers(b, calls.b), rng)
    return calls.bits(x, calls.a), calls.bits(y, calls.b)


def opposed(a: Floats, b: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Of A (..., K) and B (K, ...) half of the lanes again on the other half, at random, negative in A, so that every
    sum of all products is 0; of a lane without another the products are small ones."""
    a, b, lanes = a.copy(), b.copy(), rng.permutation(len(b))
    first, second = (lanes[start : 2 * (len(b) // 2) : 2] for start in (0, 1))
    a[..., second], b[second] = -a[..., first], b[first]
    if len(b) % 2 and len(b) > 1:
        a[..., lanes[-1:]] = np.ldexp(a[..., lanes[-1:]], -FAINT)
        b[lanes[-1:]] = np.ldexp(b[lanes[-1:]], -FAINT)
    return a, b


def least_rows(calls: ProductCalls, k: int, some: range, rng: np.random.Generator) -> tuple[Bits, Bits]:
    """x and y of opposed products of half and whole units of the smallest number of ``WIDE`` on some lanes, and one
    halfway between two numbers of a narrow D: D shows to which side the roundings of the small ones went."""
    least, middle = (least_exponent(fmt) for fmt in (formats.get(WIDE), calls.d))
    side, lanes = least // 2, some.start + rng.permutation(len(some))
    x, y = np.zeros(k), np.zeros(k)
    units: Floats = np.ldexp(2.0 * rng.integers(0, MOST_UNITS, len(lanes) - 1) + 1, side)
    other: Floats = np.ldexp(1.0, least - side - rng.integers(0, 2, len(units)))
    x[lanes[1:]], y[lanes[1:]] = opposed(units, other, rng)
    x[lanes[0]], y[lanes[0]] = np.ldexp(1.5, side), np.ldexp(1.0, middle - side)
    return calls.bits(x, calls.a), calls.bits(y, calls.b)


def largest_rows(calls: ProductCalls, k: int, some: range, rng: np.random.Generator) -> tuple[Bits, Bits]:
    """x and y of two products on some lanes, a negative one and one too large for ``WIDE``, which their sum is not."""
    top = formats.get(WIDE).max_exponent
    x, y, lanes = np.zeros(k), np.zeros(k), some.start + rng.permutation(len(some))[:2]
    x[lanes], y[lanes] = np.ldexp((-1.0, 2.0)[: len(lanes)], top // 2), np.ldexp(1.0, top - top // 2)
    return calls.bits(x, calls.a), calls.bits(y, calls.b)


def zero_rows(calls: ProductCalls, k: int) -> list[tuple[Bits, Bits]]:
    """x of -0 and y of 1: a sum that starts from +0 is +0, one that starts from a product -0.  Where the formats have
    them, negative products that vanish, so that a partial sum is -0: added to +0 it is +0.  Of a narrow D also one
    negative product that it rounds to -0: where partial sums are rounded so before they are added, D is +0."""
    found: list[tuple[Floats, Floats]] = [(np.full(k, -0.0), np.ones(k))]
    vanishing = vanishing_factor(calls)
    if vanishing is not None:
        found.append((np.full(k, -vanishing), np.full(k, vanishing)))
    if narrow(calls.d):
        below, side = least_exponent(calls.d) - 2, least_exponent(calls.d) // 2
        x, y = np.zeros(k), np.ones(k)
        x[0], y[0] = -np.ldexp(1.0, side), np.ldexp(1.0, below - side)
        found.append((x, y))
    return [(calls.bits(x, calls.a), calls.bits(y, calls.b)) for x, y in found]


def vanishing_factor(calls: ProductCalls) -> float | None:
    """A power of two of A and B whose square every sum rounds to zero; None where the formats have none."""
    side = (least_exponent(formats.get(WIDE) if narrow(calls.d) else calls.d) - 2) // 2
    return float(np.ldexp(1.0, side)) if side >= max(least_exponent(calls.a), least_exponent(calls.b)) else None


def ask_equal_rows(calls: ProductCalls, m: int, n: int, x: Bits, y: Bits) -> EqualRows:
    """D of M rows x and N columns y."""
    d = calls.ask(np.broadcast_to(x, (m, len(x))), np.broadcast_to(y[:, None], (len(y), n)))
    return EqualRows(x, y, d)


def ask_mixed_rows(
    calls: ProductCalls, xs: Sequence[Bits], ys: Sequence[Bits], of_row: CLASSES, of_column: CLASSES
) -> MixedRows:
    """D of a row for every number of ``of_row``, and of a column for every one of ``of_column``."""
    d = calls.ask(np.stack(xs)[of_row], np.ascontiguousarray(np.stack(ys)[of_column].T))
    return MixedRows(tuple(xs), tuple(ys), of_row, of_column, d)


def draw(calls: ProductCalls, count: int, rng: np.random.Generator, spread: int, operand: str) -> Bits:
    """So many random numbers of an operand's format, of magnitudes about 1 that far apart."""
    fmt = calls.a if operand == "a" else calls.b
    spread = min(spread, fmt.max_exponent // 2)
    values: Floats = np.ldexp(rng.standard_normal(count), rng.integers(-spread, spread + 1, count))
    return calls.bits(values, fmt)


def classes(answers: list[EqualRows]) -> CLASSES:
    """For each element of D the number of its class: those alike in all answers; the largest class is 0."""
    rows, of_row = distinct_rows(np.concatenate([each.d for each in answers], axis=1))
    columns, of_column = distinct_rows(np.concatenate([each.d for each in answers]).T)
    number = np.zeros((len(rows), len(columns)), np.intp)
    for each in answers:
        _, values = np.unique(each.d[np.ix_(rows, columns)], return_inverse=True)
        pair = number * (values.max() + 1) + values.reshape(number.shape)
        number = np.unique(pair, return_inverse=True)[1].reshape(number.shape)
    every = number[of_row][:, of_column]
    order = np.argsort(-np.bincount(every.ravel()), kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return rank[every]


def distinct_rows(table: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of a table (rows, columns) that are none before them, and of each row its number among these.

    The bits of rows are compared, and a row is read once: few rows of a product of millions of elements are distinct.
    """
    numbers = dict[bytes, int]()
    found = [numbers.setdefault(row.tobytes(), len(numbers)) for row in np.ascontiguousarray(table)]
    of_row = np.array(found, np.intp)
    return np.unique(of_row, return_index=True)[1], of_row
