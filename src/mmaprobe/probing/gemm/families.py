"""Families of matrices by which whole products are compared: masks first, then values of several kinds."""

from __future__ import annotations

import numpy as np

from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import Floats, ProductCalls
from mmaprobe.probing.gemm.elements import draw_matrices, vanishing_factor
from mmaprobe.probing.gemm.integer_values import INTEGER_FAMILIES, integer_operands
from mmaprobe.probing.gemm.sizes import live_parts, masks, most_lanes, window

FAMILIES = ("masks", "normal", "cancelling", "tiny", "zeros", "specials", "opposed")
"""Families by name, in the order in which they are asked.

``masks``: +M in each row and -M in each column beside units, which no two orders of adding answer alike (``sizes``).
``cancelling``: magnitudes far apart, of both signs.  ``tiny``: products about the smallest normal number, and zeros.
``zeros``: zeros of both signs and ones, sums of -0 alone, and of negative products that vanish, where the formats have
them.  ``specials``: normal values, infinities, NaNs and the largest numbers.  ``opposed``: every product has its
negative on another lane, so that D is what the additions rounded off; a D of few bits, which hides that beside a sum,
shows it.
"""
SPREAD = 20
"""Powers of two, up and down, that cancelling values are spread over at most."""
OPPOSED = 6
"""Powers of two, up and down, that opposed values are spread over."""
RARE = 0.25
"""Special values in a row of A or a column of B, on average."""


def families_of(calls: ProductCalls) -> tuple[str, ...]:
    """The families of a product's formats."""
    return INTEGER_FAMILIES if calls.of_integers else FAMILIES


def operands(
    calls: ProductCalls, family: str, shape: tuple[int, int, int], rng: np.random.Generator
) -> tuple[Bits, Bits]:
    """A (M, K) and B (K, N) of a family; UsageError where the formats have none of it at this K."""
    m, n, k = shape
    if calls.of_integers:
        return integer_operands(calls, family, shape, rng)
    if family == "masks":
        if k < 2:
            raise UsageError(f"{calls.product.name}: a mask needs two lanes, K is {k}")
        return _masks(calls, shape, rng)
    if family == "opposed":
        return draw_matrices(calls, shape, rng, OPPOSED, oppose=True)
    a, b = _values(family, (m, k), calls.a.max_exponent, k, rng), _values(family, (k, n), calls.b.max_exponent, k, rng)
    if family == "zeros":
        a[::2], b[:, ::2] = -0.0, 1.0
        vanishing = vanishing_factor(calls)
        if vanishing is not None:
            a[1::4], b[:, 1::4] = -vanishing, vanishing
    return calls.bits(a, calls.a), calls.bits(b, calls.b)


def _masks(calls: ProductCalls, shape: tuple[int, int, int], rng: np.random.Generator) -> tuple[Bits, Bits]:
    """+M and -M at random lanes; of a D that cannot count to K each column has a part of the lanes."""
    m, n, k = shape
    room, most = window(calls, k), most_lanes(calls, k)
    lanes = np.array_split(rng.permutation(k), 2) if room.apart else [np.arange(k)] * 2
    p, q = (own[rng.integers(0, len(own), count)] for own, count in zip(lanes, (m, n), strict=True))
    p = p if most == k else rng.choice(p[:most], m)
    parts = live_parts(calls, k, p)
    live = None if len(parts) == 1 else parts[rng.integers(0, len(parts), n)]
    return masks(calls, k, p, q, room, live)


def _values(family: str, shape: tuple[int, int], top: int, k: int, rng: np.random.Generator) -> Floats:
    values: Floats = rng.standard_normal(shape)
    if family == "cancelling":
        spread = min(SPREAD, top // 3)
        return np.ldexp(values, rng.integers(-spread, spread + 1, shape))
    if family == "tiny":
        return np.ldexp(values, -(top // 2)) * (rng.random(shape) < 0.7)
    if family == "zeros":
        return rng.choice([0.0, -0.0, 1.0, -1.0], shape, p=[0.35, 0.35, 0.15, 0.15])
    if family == "specials":
        odd = rng.choice([np.inf, -np.inf, np.nan, np.ldexp(1.9, top), 0.0], shape)
        return np.where(rng.random(shape) < RARE / k, odd, values)
    return values
