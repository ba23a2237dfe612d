"""A fused multiply-add unit as its circuit: partial products, an alignment, a chain of adders; with one fault.

Written from the words of a textbook, apart from the package: what the families that aim at circuits are judged by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch

Ints = NDArray[np.int64]
KEPT, RESULT = 30, 24
"""Bits below the largest term that the adders have, and bits of the result."""


@dataclass(frozen=True)
class Fault:
    """One fault of one ``lane``: ``pair``: the product of two codes is one too large in its last bit (of significands,
    where ``significands``); ``partial``: the partial product of a bit of b is missing; ``carry``: the carry into a bit
    of its adder, counted from the last that is kept, is lost."""

    lane: int
    pair: tuple[int, int] | None = None
    significands: bool = False
    partial: int | None = None
    carry: int | None = None


def unit(made: Instruction, vectors: Batch, fault: Fault | None = None) -> NDArray[Any]:
    """What the unit gives, as float64: NaN where an operand is infinite or a NaN."""
    (sa, ea, na, xa), (sb, eb, nb, xb) = (_parts(name, x) for name, x in ((made.a, vectors.a), (made.b, vectors.b)))
    products = np.zeros_like(sa)
    for bit in range(int(sb.max(initial=1)).bit_length()):
        partial = np.where(sb >> bit & 1, sa << bit, 0)
        if fault is not None and fault.partial == bit:
            partial[:, fault.lane] = 0
        products += partial
    if fault is not None and fault.pair is not None:
        codes = (sa, sb) if fault.significands else (vectors.a.astype(np.int64), vectors.b.astype(np.int64))
        hit = (codes[0][:, fault.lane] == fault.pair[0]) & (codes[1][:, fault.lane] == fault.pair[1])
        products[:, fault.lane] += hit
    terms, exponents, negative = [products], [ea + eb], [na ^ nb]
    special = (xa | xb).any(axis=1)
    if vectors.c is not None:
        sc, ec, nc, xc = _parts(made.c or "", vectors.c[:, None])
        terms, exponents, negative, special = [sc, *terms], [ec, *exponents], [nc, *negative], special | xc[:, 0]
    size, low = np.concatenate(terms, axis=1), np.concatenate(exponents, axis=1)
    top = np.where(size > 0, low + _length(size), -(1 << 20)).max(axis=1, keepdims=True)
    shift = np.minimum(top - low - KEPT, 62)
    kept = np.where(shift >= 0, size >> np.maximum(shift, 0), size << np.clip(-shift, 0, KEPT))
    kept = np.where(np.concatenate(negative, axis=1), -kept, kept)
    total = np.zeros(len(kept), np.int64)
    for number in range(kept.shape[1]):
        term, lane = kept[:, number], number - (vectors.c is not None)
        carried = np.zeros_like(total)
        if fault is not None and fault.carry is not None and lane == fault.lane:
            mask = (1 << fault.carry) - 1
            carried = (((total & mask) + (term & mask)) >> fault.carry) << fault.carry
        total = total + term - carried
    drop = np.maximum(_length(np.abs(total)) - RESULT, 0)
    cut = np.sign(total) * (np.abs(total) >> drop << drop)
    return np.where(special, np.nan, np.ldexp(cut.astype(float), np.clip(top[:, 0] - KEPT, -1000, 900)))


def kills(made: Instruction, vectors: Batch, fault: Fault) -> Ints:
    """The vectors on which the fault shows."""
    good, bad = unit(made, vectors), unit(made, vectors, fault)
    return np.flatnonzero((good != bad) & ~(np.isnan(good) & np.isnan(bad)))


def loses_carry(made: Instruction, vectors: Batch, lane: int, chain: tuple[int, int], borrow: bool) -> Ints:
    """The vectors on which an integer unit errs that adds C and lane after lane, and whose adder of one lane loses a
    carry (of a negative product: a borrow) that runs through all bits from the first of a chain up to its last, and
    stops there."""
    values = []
    for name, codes in ((made.a, vectors.a), (made.b, vectors.b)):
        decoded = formats.decode(formats.get(name), codes)
        values.append(np.where(decoded.negative, -decoded.significand, decoded.significand).astype(np.int64))
    products = values[0] * values[1]
    assert vectors.c is not None
    before = (vectors.c.astype(np.int64) + products[:, :lane].sum(axis=1)) & 0xFFFFFFFF
    term, (first, last) = products[:, lane], chain
    run, low = (1 << last) - (1 << first), (1 << first) - 1
    through = ((before & run) == (0 if borrow else run)) & ((before >> last & 1) == borrow)
    size = np.abs(term)
    into = (before & low) < (size & low) if borrow else (before & low) + (size & low) > low
    return np.flatnonzero(through & into & (size <= low) & ((term < 0) == borrow))


def _parts(name: str, codes: NDArray[Any]) -> tuple[Ints, Ints, NDArray[np.bool_], NDArray[np.bool_]]:
    """Significand, exponent of its last bit, sign; and whether it is no number."""
    decoded = formats.decode(formats.get(name), codes)
    special = decoded.kind >= formats.INFINITE
    return np.where(special, 0, decoded.significand).astype(np.int64), decoded.exponent, decoded.negative, special


def _length(value: Ints) -> Ints:
    return np.frexp(value.astype(float))[1].astype(np.int64)
