"""Sums of products of integers by a schedule, one element at a time, in Python's integers and Fractions.

The schedule is a dict of the TOML form; every rule is written down again (``docs/gemm.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Any

from oracle.numbers import encode_value

Table = Mapping[str, Any]
Given = Mapping[str, Any]
"""What a call hands over, by name: numbers of this element; ``c`` is C's."""


def bounds(name: str) -> tuple[int, int]:
    bits = int(name[1:])
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def number(code: int, name: str) -> int:
    bits = int(name[1:])
    code = int(code) % 2**bits
    return code - 2**bits if name[0] == "s" and code >= 2 ** (bits - 1) else code


def fit(value: int, name: str, overflow: str) -> int:
    low, high = bounds(name)
    if overflow == "saturate":
        return min(max(value, low), high)
    while value > high:
        value -= (value - high + 2 ** int(name[1:]) - 1) // 2 ** int(name[1:]) * 2 ** int(name[1:])
    while value < low:
        value += (low - value + 2 ** int(name[1:]) - 1) // 2 ** int(name[1:]) * 2 ** int(name[1:])
    return value


def said(words: str, column: int, given: Given) -> Any:
    """The number that words stand for at a column."""
    found = words.split()
    word = found[column] if len(found) > 1 else found[0]
    if word in given:
        return given[word]
    return Fraction(float.fromhex(word)) if "p" in word else int(word)


def element(schedule: Table, a: Sequence[int], b: Sequence[int], column: int, given: Given | None = None) -> int:
    """The code of D of a row and a column of codes."""
    rule, known = schedule["integers"], given or {}
    x, y = [number(code, schedule["a"]) for code in a], [number(code, schedule["b"]) for code in b]
    zero_a, zero_b = said(rule.get("zero_a", "0"), column, known), said(rule.get("zero_b", "0"), column, known)
    add_a, add_b = rule.get("offset_a", 0), rule.get("offset_b", 0)
    wanted = sum((p - zero_a) * (q - zero_b) for p, q in zip(x, y, strict=True))
    if rule.get("zeros", "before") == "before":
        x, y = [p - zero_a for p in x], [q - zero_b for q in y]
    products = [(p + add_a) * (q + add_b) for p, q in zip(x, y, strict=True)]
    lost = saturated(rule, products) - sum(products)
    added = said(rule.get("bias", "0"), column, known) + known.get("c", 0)
    total = fit(wanted + lost + added, rule["format"], rule.get("overflow", "wrap"))
    if "rescale" not in rule:
        return total % 2 ** int(schedule["d"][1:])
    return rescale(rule["rescale"], total, schedule["d"], column, known)


def saturated(rule: Table, products: list[int]) -> int:
    """The raw products added, each group and the sum on its way fitted."""
    group = rule.get("groups", {"lanes": 1})
    lanes, stride, every = group["lanes"], group.get("stride", 1), rule.get("every", 0)
    total, fmt = 0, group.get("format", "s16")
    size = lanes * stride
    for start in range(0, len(products), size):
        run = products[start : start + size]
        for first in range(stride):
            own = sum(run[first::stride])
            total += own if "groups" not in rule else fit(own, fmt, group.get("overflow", "saturate"))
        reached = min(start + size, len(products))
        if every and (reached % every == 0 or reached == len(products)):
            total = fit(total, rule["format"], "saturate")
    return total


def single(value: Fraction | int) -> Fraction:
    """The nearest number of f32; infinities do not come up."""
    code = encode_value("f32", abs(Fraction(value)), value < 0, "RNE")
    return value_of(code)


def rescale(rule: Table, total: int, d: str, column: int, given: Given) -> int:
    scale = said(rule["scale"], column, given)
    zero = 0 if d == "f32" else said(rule.get("zero", "0"), column, given)
    if rule.get("by") == "fixed":
        high = floor(Fraction(total * scale, 2**31) + Fraction(1, 2))
        found = whole(Fraction(high, 2 ** rule.get("shift", 0)), rule["rounding"]) + zero
    else:
        bias, first = said(rule.get("bias", "0"), column, given), rule.get("bias_added") == "before"
        x = single(single(single(total) + bias * first) * scale)
        x = x if first else single(x + bias)
        if d == "f32":
            return encode_value("f32", abs(x), x < 0, "RNE")
        before = rule.get("zero_added", "after") == "before"
        found = whole(single(x + zero) if before else x, rule.get("rounding", "even")) + (0 if before else zero)
    low, high = bounds(d)
    return min(max(found, rule.get("lowest", low)), rule.get("highest", high)) % 2 ** int(d[1:])


def whole(x: Fraction, rounding: str) -> int:
    below, part = floor(x), x - floor(x)
    if rounding == "down" or part == 0:
        return below
    if rounding == "zero":
        return below + (x < 0)
    if part != Fraction(1, 2):
        return below + (part > Fraction(1, 2))
    return {"up": below + 1, "away": below + (x > 0), "even": below + below % 2}[rounding]


def quantised(rule: Table, row: Sequence[int], matrix: Sequence[int]) -> tuple[list[int], int, Fraction]:
    """Codes of f32 of a row as whole numbers, with their zero point and scale; ``matrix`` has the codes of all of A."""
    values = [value_of(code) for code in (row if rule.get("of", "matrix") == "row" else matrix)]
    least, most = bounds(rule.get("format", "u8"))
    low, high = min([*values, Fraction(0)]), max([*values, Fraction(0)])
    scale = single(single(high - low) / (most - least)) if high > low else Fraction(1)
    way = rule.get("rounding", "even")
    zero = min(max(whole(single(least - single(low / scale)), way), least), most)
    over = single(1 / scale)
    taken = [single(x * over if rule.get("by") == "multiply" else x / scale) for x in map(value_of, row)]
    return [min(max(whole(x, way) + zero, least), most) for x in taken], zero, scale


def value_of(code: int) -> Fraction:
    """The number of a code of f32."""
    exponent, fraction = int(code) >> 23 & 255, int(code) & (1 << 23) - 1
    size = Fraction(fraction + (1 << 23 if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - 150)
    return -size if int(code) >> 31 else size


def quantised_element(
    schedule: Table,
    row: Sequence[int],
    matrix: Sequence[int],
    b: Sequence[int],
    column: int,
    given: Given | None = None,
) -> int:
    """The code of D of a row of codes of f32, of all of A's, and a column of codes."""
    rule = dict(schedule["integers"])
    made = rule.pop("quantised")
    a, zero, scale = quantised(made, row, matrix)
    known = dict(given or {})
    own = single(scale * said(rule["rescale"]["scale"], column, known))
    inner = {**rule, "zero_a": "of_a", "rescale": {**rule["rescale"], "scale": "of_sum"}}
    known |= {"of_a": zero, "of_sum": own}
    return element({**schedule, "a": made.get("format", "u8"), "integers": inner}, a, b, column, known)
