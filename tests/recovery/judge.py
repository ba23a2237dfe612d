"""The judge of a derivation: vectors aimed at the thresholds of the true datapath, and the verdict.

It shares nothing with the search: the search does not know the truth, and these
vectors are built from it, with exponents and codes of this file's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch
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
                rules: list[Any] = [node, *node.terms]
                places += [rule.fraction_bits for rule in rules if rule.fraction_bits is not None]
                zeros += [rule.zero_exponent for rule in rules if rule.zero_exponent is not None]
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


def aimed(datapath: Datapath, seed: int, count: int) -> Batch:
    """``count`` vectors of each of the judge's families, one after another."""
    families = FAMILIES if formats.get(datapath.a).is_float else INTEGER_FAMILIES
    parts = [make(datapath, np.random.default_rng([seed, i]), count) for i, make in enumerate(families)]
    return Batch(**{name: np.concatenate([dict(part.items())[name] for part in parts]) for name, _ in parts[0].items()})


# --- families: a plan of exponents, then codes


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


def _planned(draw: Callable[[Aim, np.random.Generator, int], Plan]) -> Callable[..., Batch]:
    def make(datapath: Datapath, rng: np.random.Generator, n: int) -> Batch:
        aim = Aim(datapath)
        return _codes(aim, rng, draw(aim, rng, n))

    return make


def _codes(aim: Aim, rng: np.random.Generator, plan: Plan) -> Batch:
    """The plan's terms as operands: each product's exponent divided among a, b and the scales."""
    n, k = plan.lane.shape
    wanted, made = plan.lane.copy(), {}
    if aim.scale is not None and aim.datapath.scale is not None:
        size = aim.datapath.scale.size
        for name in ("scale_a", "scale_b"):
            low, high = lowest(aim.scale), aim.scale.max_exponent
            free = wanted.reshape(n, -1, size).mean(axis=2).round().astype(int)
            tame = np.clip(free // (2 if name == "scale_a" else 1) + rng.integers(-2, 3, free.shape), low, high)
            codes, exponents = code_at(rng, aim.scale, tame, np.zeros(free.shape, bool), rng.integers(0, 4, free.shape))
            made[name] = codes
            wanted = wanted - np.repeat(exponents, size, axis=1)
    low, high = (
        np.maximum(lowest(aim.a), wanted - aim.b.max_exponent),
        np.minimum(aim.a.max_exponent, wanted - lowest(aim.b)),
    )
    of_a = np.where(high >= low, low + (rng.random((n, k)) * (high - low + 1)).astype(int), (low + high) // 2)
    of_a = np.where(rng.random((n, 1)) < 0.5, np.clip(wanted // 2, np.minimum(low, high), np.maximum(low, high)), of_a)
    sign = rng.random((n, k)) < 0.5
    a, got = code_at(rng, aim.a, of_a, sign, plan.lane_bits)
    plain = np.where(rng.random((n, k)) < 0.5, 0, plan.lane_bits)
    b, _ = code_at(rng, aim.b, wanted - got, plan.lane_negative ^ sign, plain)
    a = np.where(plan.lane_zero, zero_code(aim.a, sign), a)
    rows = np.flatnonzero((plan.twin[:, 0] != plan.twin[:, 1]) & (plan.twin[:, 1] >= 0))
    i, j = plan.twin[rows, 0], plan.twin[rows, 1]
    b[rows, j] = b[rows, i]
    a[rows, j] = negated(aim.a, a[rows, i])
    made |= {"a": a, "b": b}
    if aim.c is not None:
        c, _ = code_at(rng, aim.c, plan.c, plan.c_negative, plan.c_bits)
        made["c"] = _twin_of_c(
            aim, plan, made, np.where(plan.c_zero, zero_code(aim.c, plan.c_negative), c).astype(aim.c.dtype)
        )
    return Batch(**made)


def _twin_of_c(aim: Aim, plan: Plan, made: dict[str, Array], c: Array) -> Array:
    """C as minus the product of the twin lane, where the twin is C and its format holds that (unscaled)."""
    assert aim.c is not None
    rows = np.flatnonzero(plan.twin[:, 1] < 0)
    i = plan.twin[rows, 0]
    a, b = formats.decode(aim.a, made["a"][rows, i]), formats.decode(aim.b, made["b"][rows, i])
    fits = aim.a.fraction_bits + aim.b.fraction_bits < 50
    if not fits or aim.scale is not None:
        return c
    finite = (a.kind < formats.INFINITE) & (b.kind < formats.INFINITE)
    significand = np.where(finite, a.significand * b.significand, 0)
    exponent = np.where(finite, a.exponent + b.exponent, 0)
    c = c.copy()
    c[rows] = formats.encode(aim.c, ~(a.negative ^ b.negative), significand, exponent, "RZ", "largest")
    return c


def code_at(
    rng: np.random.Generator, fmt: Format, exponent: Array, negative: Array, bits: Array
) -> tuple[Array, Array]:
    """Codes with these exponents (the nearest that the format has) and kinds of significand; and their exponents."""
    at = np.clip(exponent, lowest(fmt), fmt.max_exponent)
    width = fmt.fraction_bits
    full = rng.integers(0, 1 << width, at.shape) if width else np.zeros(at.shape, int)
    fraction = np.select(
        [bits == 0, bits == 2, bits == 3], [0 * full, 0 * full + (1 << width) - 1, 0 * full + (width > 0)], full
    )
    code = formats.encode(fmt, negative & fmt.signed, fraction | 1 << width, at - width, "RZ", "largest")
    return code.copy(), at


def zero_code(fmt: Format, negative: Array) -> Array:
    """A zero of either sign, where the format has both."""
    return np.where(negative & fmt.has_sign_bit, fmt.sign_mask, 0).astype(fmt.dtype)


def negated(fmt: Format, code: Array) -> Array:
    """The value of opposite sign (of a fnuz format, whose -0 is a NaN: 0 stays)."""
    if not fmt.is_float or not fmt.signed:
        return code
    return np.where(code & (fmt.sign_mask - 1), code ^ fmt.dtype.type(fmt.sign_mask), code).astype(fmt.dtype)


# --- families of codes


def corners(fmt: Format) -> Array:
    """The codes at the borders of a format, of both signs, and its special values."""
    if not fmt.is_float:
        return np.array(sorted({0, 1, fmt.largest, fmt.sign_mask, fmt.code_limit - 1}), fmt.dtype)
    unit = 1 << fmt.padding
    normal = unit << fmt.fraction_bits
    found = [0, unit, normal - unit, normal, normal + unit, fmt.one, fmt.one + unit, fmt.largest, fmt.largest - unit]
    if fmt.infinity_code is not None:
        found += [fmt.infinity_code, fmt.infinity_code | unit, fmt.infinity_code | fmt.quiet_bit | unit]
    if fmt.nan_code is not None:
        found.append(fmt.nan_code)
    both = {code | sign for code in found for sign in (0, fmt.sign_mask)}
    return np.array(sorted(code for code in both if 0 <= code < fmt.code_limit), fmt.dtype)


def _corners(datapath: Datapath, rng: np.random.Generator, n: int) -> Batch:
    """Every operand one of its format's corners; part of the lanes ordinary."""
    return _drawn(datapath, rng, n, lambda fmt, shape: rng.choice(corners(fmt), shape), rng.choice([0.1, 0.5, 1.0], n))


def _specials(datapath: Datapath, rng: np.random.Generator, n: int) -> Batch:
    """One to a few NaNs (quiet and signalling, any payload) and infinities among ordinary operands."""

    def special(fmt: Format, shape: Any) -> Array:
        if fmt.nan_code is None:
            return rng.choice(corners(fmt), shape)
        nans: Array = np.full(shape, fmt.nan_code, np.uint64)
        if fmt.infinity_code is not None:
            top = 1 << fmt.fraction_bits
            nans = np.where(
                rng.random(shape) < 0.3, np.uint64(fmt.infinity_code),
                np.uint64(fmt.infinity_code) | rng.integers(1, top, shape, dtype=np.uint64) << np.uint64(fmt.padding),
            )  # fmt: skip
        return (nans | np.where(rng.random(shape) < 0.5, np.uint64(fmt.sign_mask), np.uint64(0))).astype(fmt.dtype)

    return _drawn(datapath, rng, n, special, np.minimum(rng.choice([0.6, 1.2, 2.5, 16.0], n) / datapath.k, 0.6))


def _zeros(datapath: Datapath, rng: np.random.Generator, n: int) -> Batch:
    """Products and C zeros of any sign, or values whose products vanish."""

    def small(fmt: Format, shape: Any) -> Array:
        unit = 1 << fmt.padding
        code = rng.choice([0, 0, 0, unit, fmt.one], shape)
        sign = np.where(rng.random(shape) < rng.choice([0.0, 0.5, 1.0]), fmt.sign_mask, 0)
        made = code | (sign if fmt.has_sign_bit else 0)
        return made.astype(fmt.dtype)

    return _drawn(datapath, rng, n, small, np.ones(n))


def _raw(datapath: Datapath, rng: np.random.Generator, n: int) -> Batch:
    """Any bits at all."""
    return _drawn(
        datapath, rng, n, lambda fmt, shape: rng.integers(0, fmt.code_limit, shape, np.uint64, False).astype(fmt.dtype),
        np.ones(n),
    )  # fmt: skip


def _drawn(
    datapath: Datapath, rng: np.random.Generator, n: int, codes: Callable[[Format, Any], Array], share: Array
) -> Batch:
    """Operands of ``codes`` in a share of the places, ordinary values in the rest."""

    def ordinary(fmt: Format, shape: Any) -> Array:
        if not fmt.is_float:
            return rng.integers(0, fmt.code_limit, shape, np.uint64, False).astype(fmt.dtype)
        middle = min(max(0, fmt.min_exponent), fmt.max_exponent)
        exponent = middle + rng.integers(-3, 4, shape)
        return code_at(rng, fmt, exponent, rng.random(shape) < 0.5, rng.integers(0, 4, shape))[0]

    def operand(name: str, shape: tuple[int, ...]) -> Array:
        fmt = formats.get(name)
        chosen = rng.random(shape) < share.reshape(-1, *[1] * (len(shape) - 1))
        return np.where(chosen, codes(fmt, shape), ordinary(fmt, shape)).astype(fmt.dtype)

    made = {"a": operand(datapath.a, (n, datapath.k)), "b": operand(datapath.b, (n, datapath.k))}
    if datapath.c is not None:
        made["c"] = operand(datapath.c, (n,))
    if datapath.scale is not None:
        shape = (n, datapath.k // datapath.scale.size)
        made |= {name: operand(datapath.scale.format, shape) for name in ("scale_a", "scale_b")}
    return Batch(**made)


FAMILIES = (*map(_planned, (_spread, _cancel, _tie, _zero, _bottom, _top)), _corners, _specials, _zeros, _raw)
INTEGER_FAMILIES = (_corners, _raw)
