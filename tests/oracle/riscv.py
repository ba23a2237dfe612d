"""RISC-V's bulk normalisation in plain integers, step by step as the specification says, and what is added after.

Source: riscv-isa-manual, Zvdota and Zvbdota 1.0, sections "RISC-V Bulk Normalization Algorithm" and "Rounding to Odd
behavior in dot product mode".  Nothing of the package is in it.
"""

from __future__ import annotations

from collections.abc import Sequence

LAYOUTS = {"bf16": (8, 7, "ieee"), "e5m2": (5, 2, "ieee"), "e4m3": (4, 3, "ones")}
"""Exponent bits, fraction bits, what is special."""
Q, F = 24, 8
"""Bits of the result's significand and exponent: f32."""
NAN, INFINITY, SIGN = 0x7FC00000, 0x7F800000, 1 << 31


def taken_apart(name: str, code: int) -> tuple[str, int, int, int]:
    """(``nan``, ``inf`` or nothing; sign; significand; biased exponent, 1 of a subnormal)."""
    exponent, fraction, kind = LAYOUTS[name]
    field, low = code >> fraction & ((1 << exponent) - 1), code & ((1 << fraction) - 1)
    sign, ones = code >> (exponent + fraction) & 1, (1 << exponent) - 1
    if kind == "ieee" and field == ones:
        return ("nan" if low else "inf"), sign, 0, 0
    if kind == "ones" and field == ones and low == (1 << fraction) - 1:
        return "nan", sign, 0, 0
    return "", sign, low | (field > 0) << fraction, max(field, 1)


def odd(magnitude: int, places: int) -> int:
    """The magnitude without its last places, rounded to odd."""
    if places <= 0:
        return magnitude << -places
    return magnitude >> places | (magnitude & ((1 << places) - 1) > 0)


def to_f32(negative: bool, magnitude: int, last: int) -> int:
    """``magnitude * 2**last`` rounded to odd: beyond the largest an infinity, a zero +0."""
    if not magnitude:
        return 0
    place = max(magnitude.bit_length() + last - Q, -149)
    kept = odd(magnitude, place - last)
    code = kept if kept < 1 << (Q - 1) else (place + 149 << (Q - 1)) + kept
    return SIGN * negative | min(code, INFINITY)


def bulk(name_a: str, name_b: str, a: Sequence[int], b: Sequence[int]) -> int:
    """The code of the normalised sum of the products."""
    bias = sum((1 << (LAYOUTS[name][0] - 1)) - 1 for name in (name_a, name_b))
    point = LAYOUTS[name_a][1] + LAYOUTS[name_b][1]
    guard = (len(a) - 1).bit_length()  # ceil(log2 n)
    products, infinities, invalid = [], set(), False
    for x, y in zip(a, b, strict=True):
        (kind_x, sign_x, size_x, at_x), (kind_y, sign_y, size_y, at_y) = taken_apart(name_a, x), taken_apart(name_b, y)
        if "nan" in (kind_x, kind_y):
            invalid = True
        elif "inf" in (kind_x, kind_y):
            zero = (kind_x == "" and not size_x) or (kind_y == "" and not size_y)
            invalid |= zero
            infinities.add(sign_x ^ sign_y)
        products.append((sign_x ^ sign_y, size_x * size_y, at_x + at_y if size_x * size_y else 0))
    if invalid or len(infinities) == 2:
        return NAN
    if infinities:
        return SIGN * infinities.pop() | INFINITY
    largest = max(exponent for _, _, exponent in products)
    total = 0
    for sign, size, exponent in products:
        aligned = odd(size << (Q - 1 + guard - point), largest - exponent)
        total += -aligned if sign else aligned
    return to_f32(total < 0, abs(total), largest - bias - (Q - 1 + guard))


def read_f32(code: int) -> tuple[int, int]:
    """(signed magnitude, exponent of its last place) of a finite code."""
    field, low = code >> (Q - 1) & 255, code & ((1 << (Q - 1)) - 1)
    size = low | (field > 0) << (Q - 1)
    return (-size if code & SIGN else size), max(field, 1) - 150


def add_odd(x: int, y: int) -> int:
    """The sum of two f32 codes rounded to odd."""
    sizes = [code & (SIGN - 1) for code in (x, y)]
    if max(sizes) > INFINITY or (sizes == [INFINITY, INFINITY] and x != y):
        return NAN
    if INFINITY in sizes:
        return x if sizes[0] == INFINITY else y
    (first, last_x), (second, last_y) = read_f32(x), read_f32(y)
    last = min(last_x, last_y)
    total = (first << (last_x - last)) + (second << (last_y - last))
    return to_f32(total < 0, abs(total), last)


def dota(name_a: str, name_b: str, a: Sequence[int], b: Sequence[int], c: int) -> int:
    """c plus the normalised sum."""
    return add_odd(bulk(name_a, name_b, a, b), c)
