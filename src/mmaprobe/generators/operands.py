"""From what a family aims at (exponents, signs, patterns) to operand codes.

The reference: ``csrc/model/operands.hpp`` repeats it bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.generators import philox
from mmaprobe.generators.domain import FULL, GRAZE_A, GRAZE_B, POW2, CodeLayout, Domain, fraction_masks

Ints = NDArray[np.int64]
Codes = NDArray[np.uint64]


def pick(word: Any, count: Any) -> Any:
    """A number below ``count`` from 32 random bits: floor(word * count / 2**32)."""
    return (word * count) >> 32


def pick16(half: Any, count: Any) -> Any:
    """A number below ``count`` from the low 16 of the random bits."""
    return ((half & 0xFFFF) * count) >> 16


@dataclass
class Draws:
    """Random words of a range of vectors, as int64: ``v[i]`` (n, 1) of the vector, ``w[i]`` (n, live) of the lanes."""

    seed: int
    stream: int
    index: NDArray[np.uint64]
    v: list[Ints]
    w: list[Ints]

    def lanes(self, purpose: int, count: int) -> list[Ints]:
        """Four words for each of ``count`` blocks of another purpose: (n, count) each."""
        words = philox.draw(self.seed, self.stream, self.index[:, None], purpose, np.arange(count)[None, :])
        return [word.astype(np.int64) for word in words]


def draws(t: Domain, seed: int, stream: int, start: int, count: int) -> Draws:
    """The words that every floating family starts from: 12 a vector, 4 a live lane."""
    index = np.arange(count, dtype=np.uint64) + np.uint64(start)
    found = Draws(seed, stream, index, [], [])
    blocks = found.lanes(philox.VECTOR, 3)
    found.v = [blocks[i % 4][:, i // 4, None] for i in range(12)]
    found.w = found.lanes(philox.LANE, t.space.live)
    return found


@dataclass
class Lanes:
    """Aims of the live lanes, each (n, live) or broadcastable: product exponent, sign, exact zero, fraction patterns.

    ``shared`` lanes take significands and exponent split from words 4 to 6 of
    the vector (so that two products cancel exactly); ``forced`` lanes take
    ``exponent_a`` and ``exponent_b`` instead of a split.
    """

    exponent: Any
    negative: Any
    zero: Any = False
    pattern_a: Any = FULL
    pattern_b: Any = FULL
    shared: Any = False
    forced: Any = False
    exponent_a: Any = 0
    exponent_b: Any = 0


@dataclass
class Addend:
    """Aim of operand C, each (n, 1): exponent, sign, zero, pattern; or minus the product of lane ``mirror``
    (-1: none), cut to C's precision and moved by ``delta`` units in the last place."""

    exponent: Any
    negative: Any
    zero: Any = False
    pattern: Any = FULL
    mirror: Any = -1
    delta: Any = 0


def encode(f: CodeLayout, negative: Any, exponent: Any, fraction: Any) -> Codes:
    """Codes of finite values; the exponent is held inside what the format has, negative zeros only where they exist."""
    exponent = np.clip(np.asarray(exponent, np.int64), f.low, f.top)
    shift = np.maximum(f.normal - exponent, 0).astype(np.uint64)
    field = (np.maximum(exponent, f.normal) - f.normal).astype(np.uint64) << np.uint64(f.fraction)
    code = field + ((np.uint64(f.implicit) | np.asarray(fraction, np.uint64)) >> shift)
    return with_sign(f, negative, np.minimum(code, np.uint64(f.largest)))


def with_sign(f: CodeLayout, negative: Any, code: Any) -> Codes:
    """The container value of an unsigned code; fnuz formats have no negative zero."""
    code = np.asarray(code, np.uint64)
    negative = np.asarray(negative, bool) & ((f.nan_rule != 3) | (code != 0))
    container: Codes = (code << np.uint64(f.padding)) | np.where(negative, np.uint64(f.sign), np.uint64(0))
    return container


def fraction_of(f: CodeLayout, pattern: Any, high: Any, low: Any) -> Codes:
    """Fraction field of a pattern from 64 random bits (two words)."""
    keep, fixed = (np.array(masks, np.uint64) for masks in fraction_masks(f.fraction))
    random = (np.asarray(high, np.uint64) << np.uint64(32)) | np.asarray(low, np.uint64)
    random = (random >> np.uint64(1)) >> np.uint64(63 - f.fraction)
    masked = (random & keep[pattern]) | fixed[pattern]
    small = random >> np.uint64(f.fraction - f.fraction // 2)
    above, below = small, (np.uint64(1 << f.fraction) - np.uint64(2) * small) & np.uint64((1 << f.fraction) - 1)
    fraction: Codes = np.where(pattern == GRAZE_A, below, np.where(pattern == GRAZE_B, above, masked))
    return fraction


def split(a: CodeLayout, b: CodeLayout, exponent: Any, half: Any) -> tuple[Any, Any]:
    """Operand exponents whose sum is ``exponent`` (or the nearest that the formats have), uniform over the choices.

    Subnormal operands are used only where no two normal ones reach the product.
    """
    deep = exponent < a.normal + b.normal
    low_a, low_b = np.where(deep, a.low, a.normal), np.where(deep, b.low, b.normal)
    exponent = np.clip(exponent, low_a + low_b, a.top + b.top)
    low = np.maximum(low_a, exponent - b.top)
    high = np.minimum(a.top, exponent - low_b)
    exponent_a = low + pick16(half, high - low + 1)
    return exponent_a, exponent - exponent_a


def products(t: Domain, d: Draws, lanes: Lanes, scale_exponent: Any) -> tuple[Codes, Codes]:
    """Codes of a and b of the live lanes: (n, live) each."""
    wide = d.lanes(philox.WIDE, t.space.live) if max(t.a.fraction, t.b.fraction) > 31 else [np.int64(0)] * 2
    shared = np.asarray(lanes.shared)
    sig_a, sig_b, rest = (np.where(shared, d.v[4 + i], d.w[1 + i]) for i in range(3))
    low_a, low_b = (np.where(shared, 0, word) for word in wide[:2])
    grazing = np.asarray(lanes.pattern_b) == GRAZE_B
    sig_b, low_b = np.where(grazing, sig_a, sig_b), np.where(grazing, low_a, low_b)
    a, b = split(t.a, t.b, lanes.exponent - scale_exponent, rest)
    a, b = np.where(lanes.forced, lanes.exponent_a, a), np.where(lanes.forced, lanes.exponent_b, b)
    negative_a = ((rest >> 16) & 1) != 0
    negative_b = negative_a ^ lanes.negative
    code_a = encode(t.a, negative_a, a, fraction_of(t.a, lanes.pattern_a, sig_a, low_a))
    code_b = encode(t.b, negative_b, b, fraction_of(t.b, lanes.pattern_b, sig_b, low_b))
    which, far = (rest >> 17) & 3, rest >> 19
    return (
        _beside_zero(t.a, negative_a, lanes.zero & (which != 1), lanes.zero, code_a, far, sig_a, low_a),
        _beside_zero(
            t.b, negative_b, lanes.zero & ((which == 1) | (which == 2)), lanes.zero, code_b, far, sig_b, low_b
        ),
    )


def _beside_zero(
    f: CodeLayout, negative: Any, zero: Any, product_zero: Any, code: Any, far: Any, high: Any, low: Any
) -> Codes:
    """A zero, or in a zero product the finite partner: half of them with the largest exponent, else any."""
    anywhere = f.normal + (((far >> 1) * (f.top - f.normal + 1)) >> 12)
    partner = encode(f, negative, np.where(far & 1, f.top, anywhere), fraction_of(f, FULL, high, low))
    code = np.where(product_zero, partner, code)
    return np.where(zero, with_sign(f, negative, 0), code)


def significand(f: CodeLayout, code: Codes) -> tuple[Codes, Ints]:
    """(integer significand, exponent of its lowest bit) of finite codes."""
    code = (code & np.uint64((f.sign or 1 << 64) - 1)) >> np.uint64(f.padding)
    field = (code >> np.uint64(f.fraction)).astype(np.int64)
    hidden = np.where(field > 0, np.uint64(f.implicit), np.uint64(0))
    return (code & np.uint64((1 << f.fraction) - 1)) | hidden, np.maximum(field - 1, 0) + f.normal - f.fraction


def normalised_product(x: Codes, y: Codes) -> tuple[Codes, Ints]:
    """(top 64 bits of x * y, leading bit at the top; exponent of that bit): x and y below 2**53."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    low, cross = (x & mask) * (y & mask), (x >> half) * (y & mask)
    middle = (x & mask) * (y >> half) + (low >> half) + (cross & mask)
    high = (x >> half) * (y >> half) + (cross >> half) + (middle >> half)
    low = (middle << half) | (low & mask)
    upper = np.where(high > 0, bit_length(high), 0)
    shift = 64 - np.where(high > 0, upper, bit_length(low))
    left = shift.astype(np.uint64) & np.uint64(63)
    with_high = (high << left) | ((low >> np.uint64(1)) >> (np.uint64(63) - left))
    return np.where(high > 0, with_high, low << left), np.where(high > 0, upper + 63, 63 - shift)


def bit_length(value: Codes) -> Ints:
    """Number of bits of unsigned 64-bit integers."""
    high = (value >> np.uint64(32)).astype(np.int64)
    low = (value & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return np.where(high > 0, formats.bit_length(high) + 32, formats.bit_length(low))


def addend(t: Domain, d: Draws, aim: Addend, a: Codes, b: Codes, scale_exponent: Any) -> Codes:
    """Codes of C: (n,)."""
    if not t.c.is_float:
        return raw_code(t.c, d.v[8], d.v[9])[:, 0]
    plain = encode(t.c, aim.negative, aim.exponent, fraction_of(t.c, aim.pattern, d.v[8], d.v[9]))
    plain = np.where(aim.zero, with_sign(t.c, aim.negative, 0), plain)
    at = np.maximum(np.broadcast_to(aim.mirror, plain.shape), 0)
    code_a, code_b = np.take_along_axis(a, at, 1), np.take_along_axis(b, at, 1)
    if t.space.groups:
        scale_exponent = np.take_along_axis(scale_exponent, at, 1)
    opposite = mirrored(t, code_a, code_b, scale_exponent, aim.delta)
    return np.where(np.asarray(aim.mirror) >= 0, opposite, plain)[:, 0]


def mirrored(t: Domain, code_a: Codes, code_b: Codes, scale_exponent: Any, delta: Any) -> Codes:
    """Minus the product of two codes, cut to C's precision and moved by ``delta`` units in the last place."""
    (x, ex), (y, ey) = significand(t.a, code_a), significand(t.b, code_b)
    top, exponent = normalised_product(x, y)
    negative = ~(((code_a & np.uint64(t.a.sign)) != 0) ^ ((code_b & np.uint64(t.b.sign)) != 0))
    fraction = ((top << np.uint64(1)) >> np.uint64(1)) >> np.uint64(63 - t.c.fraction)
    moved = np.asarray(delta, np.int64).astype(np.uint64) * np.uint64(1 << t.c.padding)
    found = encode(t.c, negative, exponent + ex + ey + scale_exponent, fraction) + moved
    return np.where(top == 0, with_sign(t.c, negative, 0), found)


def raw_code(f: CodeLayout, high: Any, low: Any) -> Codes:
    """Raw bits of an operand."""
    word = (np.asarray(high, np.uint64) << np.uint64(32)) | np.asarray(low, np.uint64)
    return word >> np.uint64(64 - f.bits)


def scales(t: Domain, d: Draws, lanes: Lanes) -> tuple[Codes, Codes, Ints]:
    """Codes of both scales (n, groups) and the sum of their exponents for every live lane (n, live).

    A scale block aims at its largest product; the operands make up the rest.
    Blocks with shared lanes take their choices from word 7 of the vector.  In
    half of the vectors a term too small for its scale block becomes zero.
    """
    s = t.space
    n = len(d.index)
    words = d.lanes(philox.SCALE, s.groups)
    shape = (n, s.groups, s.group_lanes)
    zero, aims, shared = (
        np.broadcast_to(part, (n, s.live)).reshape(shape) for part in (lanes.zero, lanes.exponent, lanes.shared)
    )
    largest = np.where(zero, s.product_low, aims).max(axis=2)
    choice = np.where(shared.any(axis=2), d.v[7], words[0])
    reach = pick16(choice, min(t.a.top + t.b.top - t.a.normal - t.b.normal, 3) + 1)
    target = np.clip(largest - (t.a.top + t.b.top) + reach, 2 * t.scale.normal, 2 * t.scale.top)
    a, b = split(t.scale, t.scale, target, choice >> 16)
    pattern = np.where((d.v[11] & 3) == 0, FULL, POW2)
    code_a = encode(t.scale, False, a, fraction_of(t.scale, pattern, words[1], 0))
    code_b = encode(t.scale, False, b, fraction_of(t.scale, pattern, words[2], 0))
    exponent = np.repeat(a + b, s.group_lanes, axis=1)
    lanes.zero = lanes.zero | ((lanes.exponent - exponent < t.a.low + t.b.low) & (d.v[11] & 4 != 0))
    return code_a, code_b, exponent


PAIRS = np.array([4, 8, 9, 12, 13, 14])
"""Legal 2-of-4 metadata: the lower two bits name the first kept element, the upper two the second."""
SINGLES = np.array([4, 14])
"""Legal 1-of-2 metadata (tf32): the kept element as two 16-bit halves."""


def metadata(t: Domain, d: Draws) -> tuple[Codes, Ints]:
    """Metadata items (n, K/chunk), and which element of b each live lane meets (n, live)."""
    s = t.space
    word = d.lanes(philox.METADATA, s.k // s.chunk)[0]
    first = np.arange(s.k // s.chunk) * s.chunk
    if s.chunk == 2:
        items = SINGLES[pick(word, 2)]
        where = first + (items == 14)
        return items.astype(np.uint64), where
    items = PAIRS[pick(word, 6)]
    width = s.chunk // 4  # elements that one index selects
    kept = [first + part * width + i for part in (items & 3, items >> 2) for i in range(width)]
    return items.astype(np.uint64), np.stack(kept, axis=2).reshape(len(items), s.live)


def widen(t: Domain, d: Draws, b: Codes, where: Ints) -> Codes:
    """b of all K elements: the live ones in place, any finite value where A is not kept."""
    words = d.lanes(philox.IDLE, t.space.k)
    exponent = t.b.low + pick(words[0], t.b.top - t.b.low + 1)
    full = encode(t.b, (words[3] & 1) != 0, exponent, fraction_of(t.b, FULL, words[1], words[2]))
    np.put_along_axis(full, where, b, axis=1)
    return full
