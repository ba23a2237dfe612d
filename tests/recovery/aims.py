"""What the judge aims at: the thresholds of a datapath, and plans of terms around them, as exponents.

It shares nothing with the search: the search does not know the truth, and these
plans are made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.parameters.datapath import Datapath, Encode, Fused, walk

Array = NDArray[Any]


@dataclass
class Plan:
    """Exponents (n, lanes) and (n,) of terms before they become codes; ``twin`` copies lane to lane, negated.

    ``bits``: 0 a power of two, 1 a random significand, 2 all ones, 3 one unit above a power of two.
    """

    lane: Array
    lane_zero: Array
    lane_negative: Array
    lane_bits: Array
    c: Array
    c_zero: Array
    c_negative: Array
    c_bits: Array
    twin: Array  # (n, 2) lanes; equal: no twins; second -1: C is minus the first lane


class Aim:
    """The numbers of a datapath at which its answers change, and the ranges of its terms."""

    def __init__(self, datapath: Datapath) -> None:
        self.datapath = datapath
        self.a, self.b = formats.get(datapath.a), formats.get(datapath.b)
        self.c = formats.get(datapath.c) if datapath.c else None
        self.scale = formats.get(datapath.scale.format) if datapath.scale else None
        encodes = list(encodes_of(datapath))
        places, zeros = [24, 11, 8], []
        for node in walk(datapath.tree):
            if isinstance(node, Fused):
                places += [term.fraction_bits for term in node.terms if term.fraction_bits is not None]
                zeros += [term.zero_exponent for term in node.terms if term.zero_exponent is not None]
        for to in encodes:
            places += [formats.get(to.format).fraction_bits + 1, *([to.first[0] + 1] if to.first else [])]
        self.places, self.zeros = np.array(sorted(set(places))), np.array(sorted(set(zeros)) or [-126])
        self.fraction = min(
            min(to.first[0] if to.first else 99, formats.get(to.format).fraction_bits) for to in encodes
        )
        ends = [formats.get(to.format) for to in encodes] + [formats.get(datapath.d)]
        self.bottoms = np.array(
            sorted({f.min_exponent for f in ends} | {f.min_exponent - f.fraction_bits for f in ends})
        )
        tops = {f.max_exponent for f in ends} | {datapath.product.overflow_exponent or ends[-1].max_exponent}
        self.tops = np.array(sorted(tops))
        self.low, self.high = lowest(self.a) + lowest(self.b), self.a.max_exponent + self.b.max_exponent


def encodes_of(datapath: Datapath) -> list[Encode]:
    found = [getattr(node, "to", None) for node in walk(datapath.tree)]
    return [to for to in (*found, datapath.product.to, datapath.result) if to is not None]


def lowest(fmt: Format) -> int:
    """Exponent of the lowest nonzero value."""
    return fmt.min_exponent - (fmt.fraction_bits if fmt.subnormal else 0)


def _plan(aim: Aim, rng: np.random.Generator, n: int, anchor: Array) -> Plan:
    """Terms below an anchor by a place of the datapath or nearly, a random part of the lanes alive."""
    k = aim.datapath.k
    one = rng.choice(aim.places, (n, 1)) + rng.integers(-3, 4, (n, 1))
    each = rng.choice(aim.places, (n, k)) + rng.integers(-3, 4, (n, k))
    near = rng.integers(0, 12, (n, k))
    style = rng.integers(0, 4, (n, 1))
    below = np.select([style == 0, style == 1, style == 2], [one + rng.integers(-1, 2, (n, k)), each, near], one)
    alive = rng.random((n, k)) < rng.choice([0.1, 0.5, 0.9, 1.0], (n, 1))
    c_below = np.where(rng.random(n) < 0.5, rng.choice(aim.places, n) + rng.integers(-3, 4, n), rng.integers(0, 12, n))
    signs = rng.choice([0.0, 0.5, 1.0], (n, 1))
    return Plan(
        anchor[:, None] - below, ~alive, rng.random((n, k)) < signs, rng.integers(0, 4, (n, k)),
        anchor - c_below, rng.random(n) < 0.3, rng.random(n) < 0.5, rng.integers(0, 4, n), np.zeros((n, 2), int),
    )  # fmt: skip


def _anchors(aim: Aim, rng: np.random.Generator, n: int) -> Array:
    """Anywhere; just above the bottom of a result; where a zero's exponent begins to matter."""
    anywhere = rng.integers(max(aim.low, -160), min(aim.high, 130) + 1, n)
    bottom = rng.choice(aim.bottoms, n) + rng.integers(-2, 28, n)
    zero = rng.choice(aim.zeros, n) + rng.integers(-4, 28, n)
    kind = rng.integers(0, 5, n)
    return np.clip(np.select([kind == 3, kind == 4], [bottom, zero], anywhere), aim.low - 8, aim.high)


def _spread(aim: Aim, rng: np.random.Generator, n: int) -> Plan:
    """One large lane or C; the others a place below it."""
    anchor = _anchors(aim, rng, n)
    plan = _plan(aim, rng, n, anchor)
    _put_big(plan, rng, anchor)
    return plan


def _put_big(plan: Plan, rng: np.random.Generator, anchor: Array) -> Array:
    """The largest term: a lane, or C one time out of three; the lane (-1: C) of each vector."""
    n, k = plan.lane.shape
    big = np.where(rng.random(n) < 0.33, -1, rng.integers(0, k, n))
    rows = np.arange(n)
    lane = big >= 0
    plan.lane[rows[lane], big[lane]] = anchor[lane]
    plan.lane_zero[rows[lane], big[lane]] = False
    plan.c = np.where(lane, plan.c, anchor)
    plan.c_zero &= lane
    return big


def _cancel(aim: Aim, rng: np.random.Generator, n: int) -> Plan:
    """Two equal large terms of opposite sign in any two steps, or a lane and C; the rest far below."""
    anchor = _anchors(aim, rng, n)
    plan = _plan(aim, rng, n, anchor)
    k, rows = plan.lane.shape[1], np.arange(n)
    i, j = rng.integers(0, k, n), rng.integers(-1, k, n)
    plan.twin = np.stack([i, np.where(j == i, -1, j)], axis=1)
    plan.lane[rows, i], plan.lane_zero[rows, i] = anchor, False
    return plan


def _tie(aim: Aim, rng: np.random.Generator, n: int) -> Plan:
    """A large term of few bits, half of its last place, and one sticky term at a place or far below."""
    anchor = _anchors(aim, rng, n)
    plan = _plan(aim, rng, n, anchor)
    k, rows = plan.lane.shape[1], np.arange(n)
    plan.lane_zero[:] = rng.random((n, 1)) < 0.8
    last = rng.choice([aim.fraction, *(aim.places - 1)], n)
    big = _put_big(plan, rng, anchor)
    half, sticky = (big + 1 + rng.integers(0, k, n)) % k, rng.integers(0, k, n)
    plan.lane[rows, half], plan.lane_bits[rows, half] = anchor - last - 1, rng.choice([0, 0, 2, 3], n)
    plan.lane_zero[rows, half] = False
    free = (sticky != half) & (sticky != big)
    at = np.where(rng.random(n) < 0.5, anchor - rng.choice(aim.places, n) + rng.integers(-3, 4, n), aim.low)
    plan.lane[rows[free], sticky[free]] = at[free]
    plan.lane_zero[rows[free], sticky[free]] = rng.random(n)[free] < 0.3
    plan.c_zero |= (big >= 0) & (rng.random(n) < 0.7)
    return plan


def _zero(aim: Aim, rng: np.random.Generator, n: int) -> Plan:
    """A few terms where a zero's exponent decides, at its last place or at the result's; the rest zero or tiny."""
    z = rng.choice(aim.zeros, n)
    deep = z - rng.choice(np.append(aim.places, 0), n)
    ends = rng.choice(aim.bottoms, n)
    plan = _plan(aim, rng, n, z)
    n, k = plan.lane.shape
    choice = rng.integers(0, 3, (n, k))
    plan.lane = np.choose(choice, [z[:, None], deep[:, None], ends[:, None]]) + rng.integers(-3, 4, (n, k))
    live = rng.choice([1, 2, 3, k], (n, 1))
    plan.lane_zero = rng.permuted(np.tile(np.arange(k), (n, 1)), axis=1) >= live
    plan.c = np.choose(rng.integers(0, 3, n), [z, deep, ends]) + rng.integers(-3, 4, n)
    plan.c_zero = rng.random(n) < 0.5
    return plan


def _bottom(aim: Aim, rng: np.random.Generator, n: int) -> Plan:
    """Products, sums and C around the lowest normal and the lowest value of each format."""
    base = rng.choice(aim.bottoms, n)
    plan = _plan(aim, rng, n, base)
    n, k = plan.lane.shape
    plan.lane = base[:, None] + rng.integers(-4, 5, (n, k))
    plan.lane_zero = rng.random((n, k)) < rng.choice([0.2, 0.9, 0.97], (n, 1))
    plan.c = base + rng.integers(-4, 5, n)
    return plan


def _top(aim: Aim, rng: np.random.Generator, n: int) -> Plan:
    """Products, sums and C around the largest values."""
    plan = _plan(aim, rng, n, np.zeros(n, int))
    n, k = plan.lane.shape
    base = rng.choice(np.append(aim.tops, aim.high), n)
    plan.lane = base[:, None] - np.where(
        rng.random((n, k)) < 0.6, rng.integers(-1, 6, (n, k)), rng.integers(0, 30, (n, k))
    )
    plan.c = base - rng.integers(-1, 6, n)
    return plan


PLANS = (_spread, _cancel, _tie, _zero, _bottom, _top)
