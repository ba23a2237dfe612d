"""The judge of a derivation: vectors aimed at the thresholds of the true datapath.

Exponents come from plans (``aims``), and this file makes codes of them; other
families take the corners of the formats, NaNs, zeros, or any bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from aims import PLANS, Aim, Array, Plan, lowest

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath


def aimed(datapath: Datapath, seed: int, count: int) -> Batch:
    """``count`` vectors of each of the judge's families, one after another."""
    families = FAMILIES if formats.get(datapath.a).is_float else INTEGER_FAMILIES
    parts = [make(datapath, np.random.default_rng([seed, i]), count) for i, make in enumerate(families)]
    made = {name: np.concatenate([dict(part.items())[name] for part in parts]) for name, _ in parts[0].items()}
    if datapath.random is not None:
        made["random"] = _random(datapath.random, seed, len(made["a"]))
    return Batch(**made)


def _random(name: str, seed: int, count: int) -> Array:
    """Any random bits, and a third of the time none, all, or one."""
    rng, fmt = np.random.default_rng([seed, 0x2A]), formats.get(name)
    bits = rng.integers(0, fmt.code_limit, count)
    corners = [np.zeros(count, np.int64), np.full(count, fmt.code_limit - 1), 1 << rng.integers(0, fmt.bits, count)]
    return np.choose(np.minimum(rng.integers(0, 9, count), 3), [*corners, bits]).astype(fmt.dtype)


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
    return np.where(negative & fmt.has_sign_bit, fmt.dtype.type(fmt.sign_mask), fmt.dtype.type(0))


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
        code = rng.choice(np.array([0, 0, 0, unit, fmt.one], np.uint64), shape)
        sign = np.where(rng.random(shape) < rng.choice([0.0, 0.5, 1.0]), np.uint64(fmt.sign_mask), np.uint64(0))
        made = code | (sign if fmt.has_sign_bit else np.uint64(0))
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


FAMILIES = (*map(_planned, PLANS), _corners, _specials, _zeros, _raw)
INTEGER_FAMILIES = (_corners, _raw)
