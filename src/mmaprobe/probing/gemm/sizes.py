"""In which order elements of D add K, M x N questions a call: where do the products of two lanes meet?

A product of two lanes is a unit, but for one +M in row i, at lane p_i, and one -M in column j, at lane q_j.  So D[i, j]
adds K - 2 units, one +M at p_i and one -M at q_j.  What is added to either before the two have met is lost, for M is so
large that a unit beside it is nothing; so

    K - D[i, j] / unit = size(p_i, q_j),

the number of products in the smallest partial sum that holds both lanes, the two among them.  Where p_i is q_j the
element says nothing.

A D that cannot count to K counts a part of the lanes at a time: lanes that a column has not are zeros in B, which
changes no order.  The lanes p of a call are in every part, for there the rows have their M; so the part of these alone
is asked, too, and what it counts is taken off the sum of the parts as often as it is in it too many times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import Floats, ProductCalls

Lanes = NDArray[np.intp]
Sizes = NDArray[np.int64]
UNREAD = -1
"""The count of an element that answers what is no count."""
UNASKED = -2
"""The count of an element whose row and column carry M on one lane, or one that cannot carry both."""
ENOUGH = 2
"""Powers of two that M lies above what would still be seen beside it: one for the tie, one for the doubt."""
WIDE = "f32"
"""The format in which results of less precision are expected to be added."""


@dataclass(frozen=True)
class Room:
    """Exponents: a unit is 2^unit, M is 2^(unit + span); a unit on a lane with +M in some row is 2^a in A, one on a
    lane with -M in some column 2^b in B.

    Where a + b is not the unit, no lane can carry both (``apart``)."""

    a: int
    b: int
    unit: int
    span: int

    @property
    def apart(self) -> bool:
        """Whether the lanes of rows and those of columns must be others."""
        return self.a + self.b != self.unit


def narrow(fmt: Format) -> bool:
    """Whether results of a format are roundings of sums that have more bits."""
    return fmt.fraction_bits < formats.get(WIDE).fraction_bits


def countable(fmt: Format) -> int:
    """The largest number up to which a format has all."""
    return 1 << (fmt.fraction_bits + 1)


def window(calls: ProductCalls, k: int) -> Room:
    """The exponents for so many lanes; UsageError where the formats leave too little room."""
    d, lanes = calls.d, max(min(k, countable(calls.d)), 2)
    needed = max(d.fraction_bits, formats.get(WIDE).fraction_bits) + 1 + lanes.bit_length() + ENOUGH
    for least in (d.min_exponent, least_exponent(d)):
        for fitting in (_together, _apart):
            found = fitting(calls, least, needed)
            if found is not None:
                return found
    raise UsageError(
        f"{calls.product.name}: {calls.a.name} and {calls.b.name} leave no room for K = {k}; ask at a smaller K"
    )


def _together(calls: ProductCalls, least: int, needed: int) -> Room | None:
    """Room in which every lane may carry both; units are ``least`` or more."""
    top_a, top_b, top = calls.a.max_exponent, calls.b.max_exponent, calls.d.max_exponent - 1
    for span in range(_most(calls, least, needed), needed - 1, -1):
        lowest = max(least, least_exponent(calls.a) + least_exponent(calls.b))
        highest = min(top - span, top_a + top_b - 2 * span)
        if lowest <= highest:
            unit = min(max(-span, lowest), highest)
            a = min(
                max(unit // 2, least_exponent(calls.a), unit - (top_b - span)),
                top_a - span,
                unit - least_exponent(calls.b),
            )
            return Room(a, unit - a, unit, span)
    return None


def _apart(calls: ProductCalls, least: int, needed: int) -> Room | None:
    """Room in which a lane carries one of both."""
    span = _most(calls, least, needed)
    if span < needed:
        return None
    a, b = (min(max(-span // 2, least_exponent(fmt)), fmt.max_exponent - span) for fmt in (calls.a, calls.b))
    unit = max(least, a + least_exponent(calls.b), b + least_exponent(calls.a))
    fits = unit + span < calls.d.max_exponent and unit <= min(a + calls.b.max_exponent, b + calls.a.max_exponent)
    return Room(a, b, unit, span) if fits else None


def _most(calls: ProductCalls, least: int, needed: int) -> int:
    """The largest span that is of use and that each operand and D have room for."""
    return min(_room(calls.a), _room(calls.b), calls.d.max_exponent - 1 - least, 2 * needed)


def least_exponent(fmt: Format) -> int:
    """The exponent of the smallest number above 0."""
    return fmt.min_exponent - fmt.fraction_bits


def _room(fmt: Format) -> int:
    return fmt.max_exponent - least_exponent(fmt)


def most_lanes(calls: ProductCalls, k: int) -> int:
    """How many lanes the rows of a call may carry M on: where D cannot count to K, half of what it can count."""
    return k if k <= countable(calls.d) else countable(calls.d) // 2


def live_parts(calls: ProductCalls, k: int, lanes: Lanes) -> NDArray[np.bool_]:
    """(parts, K): the lanes that are live in each part where rows carry M on ``lanes``: all in one part, or these
    alone, and then these with some others at a time."""
    if k <= countable(calls.d):
        return np.ones((1, k), bool)
    own = np.zeros(k, bool)
    own[lanes] = True
    others = np.flatnonzero(~own)
    pieces = np.array_split(others, -(-len(others) // (countable(calls.d) - int(own.sum()))))
    parts = np.tile(own, (1 + len(pieces), 1))
    for part, piece in zip(parts[1:], pieces, strict=True):
        part[piece] = True
    return parts


def added_up(counts: Sizes) -> Sizes:
    """Of the counts of all parts, along the last axis, the count of all lanes."""
    if counts.shape[-1] == 1:
        return counts[..., 0]
    every: Sizes = counts[..., 1:].sum(-1) - (counts.shape[-1] - 2) * counts[..., 0]
    return every


def read_counts(
    calls: ProductCalls, k: int, p: Lanes, q: Lanes, live: NDArray[np.bool_] | None = None, turned: bool = False
) -> Sizes:
    """How many of the live lanes, ``live`` (columns, K), every element (M, N) of one call keeps; ``UNREAD``,
    ``UNASKED``.

    ``turned``: rows and columns are exchanged, p are lanes of columns, q of rows, whose lanes are live.
    """
    room = window(calls, k)
    d = calls.values(calls.ask(*masks(calls, k, p, q, room, live, turned)))
    d = d.T if turned else d
    with np.errstate(all="ignore"):
        kept = np.ldexp(d, -room.unit)
    most = k - 2 if live is None else live.sum(1)[None, :]
    read = (kept >= 0) & (kept <= most) & (kept == np.floor(kept))
    counts = np.where(read, np.where(read, kept, 0), UNREAD).astype(np.int64)
    counts[p[:, None] == q[None, :]] = UNASKED
    if room.apart:
        counts[np.isin(p, q)] = UNASKED
    return counts.T if turned else counts


def masks(
    calls: ProductCalls,
    k: int,
    p: Lanes,
    q: Lanes,
    room: Room,
    live: NDArray[np.bool_] | None = None,
    turned: bool = False,
) -> tuple[Bits, Bits]:
    """A and B of units, with +M in row i at lane p_i and -M in column j at lane q_j; see ``read_counts``."""
    own, other = (room.b, room.a) if turned else (room.a, room.b)
    exponents = np.full(k, own)
    exponents[q] = room.unit - other
    rows: Floats = np.tile(np.ldexp(1.0, exponents), (len(p), 1))
    columns: Floats = np.tile(np.ldexp(1.0, room.unit - exponents), (len(q), 1))
    if live is not None:
        columns *= live
    there = ~np.isin(p, q) if room.apart else np.ones(len(p), bool)
    rows[np.flatnonzero(there), p[there]] = np.ldexp(1.0, own + room.span)
    columns[np.arange(len(q)), q] = -np.ldexp(1.0, other + room.span)
    a, b = (columns, rows) if turned else (rows, columns)
    return calls.bits(a, calls.a), calls.bits(b.T, calls.b)
