"""Which elements of D add in the same order: equal rows and equal columns, of values that any other order shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import Floats, ProductCalls

CLASSES = NDArray[np.intp]


@dataclass(frozen=True)
class EqualRows:
    """One call: x is every row of A, y every column of B, and d is D."""

    x: Bits
    y: Bits
    d: Bits


def draw_rows(calls: ProductCalls, k: int, rng: np.random.Generator, spread: int) -> tuple[Bits, Bits]:
    """x and y of random values of both signs, spread over so many powers of two."""
    return draw(calls, k, rng, spread, "a"), draw(calls, k, rng, spread, "b")


def signed_zeros(calls: ProductCalls, k: int) -> tuple[Bits, Bits]:
    """x of -0 and y of 1: a sum that starts from +0 is +0, one that starts from a product -0."""
    return calls.bits(np.full(k, -0.0), calls.a), calls.bits(np.ones(k), calls.b)


def ask_equal_rows(calls: ProductCalls, m: int, n: int, x: Bits, y: Bits) -> EqualRows:
    """D of M rows x and N columns y."""
    d = calls.ask(np.broadcast_to(x, (m, len(x))), np.broadcast_to(y[:, None], (len(y), n)))
    return EqualRows(x, y, d)


def draw(calls: ProductCalls, count: int, rng: np.random.Generator, spread: int, operand: str) -> Bits:
    """So many random numbers of an operand's format, of magnitudes about 1 that far apart."""
    fmt = calls.a if operand == "a" else calls.b
    spread = min(spread, fmt.max_exponent // 2)
    values: Floats = np.ldexp(rng.standard_normal(count), rng.integers(-spread, spread + 1, count))
    return calls.bits(values, fmt)


def classes(answers: list[EqualRows]) -> CLASSES:
    """For each element of D the number of its class: those alike in all answers; the largest class is 0."""
    number = np.zeros(answers[0].d.shape, np.intp)
    for each in answers:
        _, values = np.unique(each.d, return_inverse=True)
        pair = number * (values.max() + 1) + values.reshape(number.shape)
        number = np.unique(pair, return_inverse=True)[1].reshape(number.shape)
    order = np.argsort(-np.bincount(number.ravel()), kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return rank[number]
