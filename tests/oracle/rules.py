"""The rules around the tree, one value at a time: operands, NaN payloads, products, Encode."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from oracle.numbers import (
    FLOATS,
    Inf,
    Nan,
    Num,
    code_of,
    decode,
    encode_integer,
    finite,
    floor_log2,
    goes_to_infinity,
    infinity_code,
    largest_code,
    lowest_exponent,
    nan_code,
    power,
    round_fraction,
    round_to_multiple,
    spec,
)

Value = Num | Inf | Nan
Table = dict[str, Any]


def option(table: Table, key: str, default: Any) -> Any:
    """A field of a table; ``"none"`` is None."""
    value = table.get(key, default)
    return None if value == "none" else value


# --- NaN payloads (section 6)


def is_signalling(fmt: str, code: int) -> bool:
    """A NaN of an IEEE format whose first fraction bit is 0; other formats have no signalling NaN."""
    f = spec(fmt)
    return f.specials == "ieee" and not code >> (f.padding + f.fraction - 1) & 1


def quiet_bit(fmt: str) -> int:
    f = spec(fmt)
    return 1 << (f.padding + f.fraction - 1) if f.specials == "ieee" else 0


def move_payload(fmt: str, code: int, to: str) -> int:
    """The NaN ``code`` of ``fmt`` as a NaN of ``to``: sign kept, fraction bits left-aligned."""
    source, target = spec(fmt), spec(to)
    bare = code >> source.padding
    negative = bool(source.sign and bare >> (source.exponent + source.fraction) & 1)
    if target.specials != "ieee":
        return nan_code(to, negative) or 0
    text = format(bare % (1 << source.fraction), f"0{source.fraction}b") if source.fraction else ""
    text = text.ljust(target.fraction, "0")[: target.fraction]
    payload = int(text, 2) << target.padding or quiet_bit(to)
    infinity = infinity_code(to, negative)
    assert infinity is not None
    return infinity | payload


class NanRule:
    """The ``special`` table of a datapath with its result format."""

    def __init__(self, special: Table, d: str) -> None:
        self.kind = special.get("nan", "canonical")
        self.code = special.get("code", 0x7FFFFFFF)
        priority = special.get("priority", "")
        self.priority = priority.split() if isinstance(priority, str) else list(priority)
        self.quiet = special.get("quiet", True)
        self.signalling_first = special.get("signalling_first", False)
        self.factor_code = special.get("factor_code", 0x7FFFFFFF)
        self.d = d
        self.random: str | None = None

    def read(self, fmt: str, code: int) -> Nan:
        """A NaN operand as it comes in."""
        carried = self.kind in ("local", "cause")
        return Nan(move_payload(fmt, code, self.d), is_signalling(fmt, code)) if carried else Nan()

    def first(self, nans: list[Nan]) -> Nan:
        """The NaN that an operation hands on: the first of these, or the code of an invalid operation."""
        if self.kind != "local":
            return Nan()
        if self.signalling_first:
            nans = [nan for nan in nans if nan.signalling] or nans
        if not nans:
            return Nan(self.code)
        assert nans[0].code is not None
        return Nan(nans[0].code | quiet_bit(self.d)) if self.quiet else nans[0]

    def caused(self, factors: list[Value], products: list[Value], before: Value) -> Nan:
        """The NaN of a step under the rule by cause; ``before`` is the accumulator."""
        if any(isinstance(x, Nan) for x in factors):
            return Nan(self.factor_code)
        signs = {x.negative for x in products if isinstance(x, Inf)}
        if any(isinstance(x, Nan) for x in products) or len(signs) == 2 or not isinstance(before, Nan):
            return Nan(self.code)
        assert before.code is not None
        return Nan(before.code | (quiet_bit(self.d) if self.quiet else 0))

    def operands(self, **named: Value) -> list[Nan]:
        """The NaNs among ``a``, ``b``, ``acc`` in the order in which they win."""
        order = [name for name in self.priority if name in named]
        order += [name for name in ("a", "b", "acc") if name in named and name not in order]
        return [value for name in order if isinstance(value := named[name], Nan)]

    def result(self, nan: Nan, operands: dict[str, tuple[str, int]]) -> int:
        """The code of d of a NaN result; ``operands`` holds format and (masked) code by name."""
        if self.kind == "local":
            assert nan.code is not None
            return nan.code
        if self.kind == "cause" and nan.code is not None:
            return nan.code
        if self.kind == "global":
            named = [operands[name] for name in self.priority]
            nans = [(fmt, code) for fmt, code in named if isinstance(decode(fmt, code), Nan)]
            if self.signalling_first:
                nans = [item for item in nans if is_signalling(*item)] or nans
            if nans:
                return move_payload(*nans[0], self.d) | (quiet_bit(self.d) if self.quiet else 0)
        return int(self.code)


# --- reading operands (section 1)


def conditioned(fmt: str, policy: Table, code: int) -> int:
    """The code with the bits that are read, its sign bit as the unit sees it."""
    mask = option(policy, "mask", None)
    code = code if mask is None else code & mask
    sign = policy.get("sign", "keep")
    if sign == "keep":
        return code
    bit = 0x8000 if fmt == "ti16" else 1 << (spec(fmt).padding + spec(fmt).fraction + spec(fmt).exponent)
    negative = {"flip": not code & bit, "clear": False, "set": True}[sign]
    return code | bit if negative else code & ~bit


def read(fmt: str, code: int, policy: Table, rule: NanRule) -> Value:
    code = conditioned(fmt, policy, code)
    value = decode(fmt, code)
    if isinstance(value, Nan):
        return rule.read(fmt, code)
    subnormals = policy.get("subnormals", "keep")
    if isinstance(value, Inf) or subnormals == "keep":
        return value
    if fmt in FLOATS and abs(value.value) < power(lowest_exponent(fmt)):
        if not value.value and subnormals == "signed_zero":
            return value
        return Num(Fraction(0), value.negative and subnormals == "signed_zero")
    return value


# --- products (section 2)


def pairs_in(split: Table | None) -> list[tuple[int, int]]:
    """The parts of a and b that each product of a lane multiplies."""
    return [(int(pair[0]), int(pair[1])) for pair in ("00" if split is None else split["pairs"]).split()]


def parts_of(a: Value, b: Value, pair: tuple[int, int], split: Table | None, rule: NanRule) -> tuple[Value, Value]:
    """The two factors of one product of a lane."""
    if split is None:
        return a, b
    whole = split.get("infinities", "whole") == "whole"
    if whole and pair != (0, 0) and not all(isinstance(part_of(x, 0, split, rule), Num) for x in (a, b)):
        return Num(Fraction(0), False), Num(Fraction(0), False)
    return part_of(a, pair[0], split, rule), part_of(b, pair[1], split, rule)


def part_of(x: Value, number: int, split: Table, rule: NanRule) -> Value:
    """Part ``number`` of x: the first is x rounded, the next the same of what that leaves."""
    part = encode(x, {"format": split["format"], "rounding": split.get("rounding", "RNE")}, rule)
    if number == 0 or isinstance(part, Nan):
        return part
    if isinstance(part, Inf):
        return part_of(Inf(not part.negative), number - 1, split, rule)
    assert isinstance(x, Num)
    rest = x.value - part.value
    return part_of(Num(rest, rest < 0), number - 1, split, rule)


def multiply(x: Value, y: Value) -> Value:
    """x * y exactly; the label is the sum of the labels.  NaN without payload where invalid."""
    if isinstance(x, Nan) or isinstance(y, Nan):
        return Nan()
    negative = x.negative != y.negative
    if isinstance(x, Inf) or isinstance(y, Inf):
        other = y if isinstance(x, Inf) else x
        return Nan() if isinstance(other, Num) and not other.value else Inf(negative)
    value = x.value * y.value
    if not value:
        return Num(value, negative)
    assert x.label is not None
    assert y.label is not None
    return Num(value, negative, x.label + y.label)


def normalise(x: Value) -> Value:
    """The label set to floor(log2|x|)."""
    return replace(x, label=floor_log2(abs(x.value))) if isinstance(x, Num) and x.value else x


def product(a: Value, b: Value, scales: list[Value], policy: Table, rule: NanRule, formats: tuple[str, str]) -> Value:
    kind = policy.get("label", "encoded")
    if policy.get("multiply", "exact") == "xor":
        assert isinstance(a, Num)
        assert isinstance(b, Num)
        differ = a.value != b.value
        p: Value = Num(Fraction(differ), False, 0 if differ else None)
    else:
        p = multiply(normalise(a), normalise(b)) if kind == "operands" else multiply(a, b)
        if policy.get("missing_columns", 0) and isinstance(p, Num) and p.value:
            assert isinstance(a, Num)
            assert isinstance(b, Num)
            p = truncated(p, partial_products(a, formats[0]), partial_products(b, formats[1]), policy)
    if kind == "normalised":
        p = normalise(p)
    for scale in scales:
        p = multiply(p, scale)
    if isinstance(p, Nan):
        return rule.first(rule.operands(a=a, b=b))
    limit = option(policy, "overflow_exponent", None)
    if limit is not None and isinstance(p, Num) and abs(p.value) >= power(limit):
        p = Inf(p.negative)
    to = option(policy, "to", None)
    return p if to is None else encode(p, to, rule)


def partial_products(x: Num, fmt: str) -> tuple[list[int], Fraction]:
    """The places of the bits of a significand, and what the place 0 is worth: the format's last place there."""
    assert x.label is not None
    unit = power(x.label - spec(fmt).fraction)
    digits = f"{int(abs(x.value) / unit):b}"
    return [place for place, digit in enumerate(reversed(digits)) if digit == "1"], unit


def truncated(p: Num, a: tuple[list[int], Fraction], b: tuple[list[int], Fraction], policy: Table) -> Num:
    """The sum of the partial products in the columns that are there."""
    columns = [i + j for i in a[0] for j in b[0] if i + j >= policy["missing_columns"]]
    value = sum((power(column) for column in columns), Fraction(0)) * a[1] * b[1]
    kept = replace(p, value=-value if p.negative else value, label=p.label if value else None)
    return normalise(kept) if policy.get("label") == "normalised" and value else kept


# --- Encode (section 5)


def encode(x: Value, to: Table, rule: NanRule) -> Value:
    """The value after the rounding; its label is its encoded exponent in the format."""
    fmt, mode = to.get("format", "f32"), to.get("rounding", "RNE")
    if isinstance(x, Nan):
        return x
    if isinstance(x, Inf):
        return encode_infinity(x, fmt, mode, to, rule)
    if not x.value:
        return zero_of(fmt, x.negative and to.get("zero", "ieee") == "ieee")
    value = x.value
    first = option(to, "first", None)
    if first is not None:
        bits, first_mode = first.split()
        value = round_to_multiple(value, max(floor_log2(abs(value)), lowest_exponent(fmt)) - int(bits), first_mode)
    if to.get("random_bits", 0) and value:
        value = lifted(fmt, value, digits_taken(rule.random, to))
    if fmt not in FLOATS:
        return decode(fmt, encode_integer(fmt, value, mode, to.get("overflow", "ieee")))
    rounded = round_fraction(fmt, value, mode) if value else value
    if rounded == "over":
        return overflowed(x.negative, fmt, mode, to, rule)
    assert isinstance(rounded, Fraction)
    flush = to.get("subnormals", "keep")
    if flush != "keep" and value and is_tiny(value, fmt, mode, to.get("tininess", "after")):
        rounded = Fraction(0)
    if not rounded:
        return zero_of(fmt, x.negative and to.get("underflow", "signed") == "signed" and flush != "zero")
    return Num(rounded, x.negative, max(floor_log2(abs(rounded)), lowest_exponent(fmt)))


def digits_taken(random: str | None, to: Table) -> str:
    """The binary digits of r that an Encode takes."""
    assert random is not None
    count = to["random_bits"]
    return random[:count] if to.get("random_from", "lowest") == "highest" else random[-count:]


def lifted(fmt: str, value: Fraction, digits: str) -> Fraction:
    """The digits added right below the last place of the result: one unit more of it where the whole part grows."""
    size = abs(value)
    last = power(max(floor_log2(size), lowest_exponent(fmt)) - spec(fmt).fraction) if fmt in FLOATS else Fraction(1)
    step = last / 2 ** len(digits)
    before, after = size // last, ((size // step) + int(digits, 2)) * step // last
    if before == after:
        return value
    return after * last * (-1 if value < 0 else 1)


def zero_of(fmt: str, negative: bool) -> Num:
    """A zero as the format holds it."""
    return Num(Fraction(0), negative and fmt in FLOATS and bool(spec(fmt).sign) and spec(fmt).specials != "fnuz")


def is_tiny(value: Fraction, fmt: str, mode: str, when: str) -> bool:
    if when == "encoded":
        rounded = round_fraction(fmt, value, mode)
        return isinstance(rounded, Fraction) and abs(rounded) < power(lowest_exponent(fmt))
    if when == "after":
        value = round_to_multiple(value, floor_log2(abs(value)) - spec(fmt).fraction, mode)
    return abs(value) < power(lowest_exponent(fmt))


def overflowed(negative: bool, fmt: str, mode: str, to: Table, rule: NanRule) -> Value:
    """What a rounded magnitude above the largest finite number becomes."""
    policy = to.get("overflow", "ieee")
    inward = policy == "largest" or (policy == "ieee" and not goes_to_infinity(mode, negative))
    if not inward and infinity_code(fmt, negative) is not None:
        return Inf(negative)
    if not inward and nan_code(fmt) is not None:
        return rule.first([])
    largest = finite(fmt, largest_code(fmt))
    return Num(-largest if negative else largest, negative, floor_log2(largest))


def encode_infinity(x: Inf, fmt: str, mode: str, to: Table, rule: NanRule) -> Value:
    if fmt not in FLOATS:
        beyond = Fraction(-(1 << 70) if x.negative else 1 << 70)
        return decode(fmt, encode_integer(fmt, beyond, mode, to.get("overflow", "ieee")))
    return x if infinity_code(fmt, x.negative) is not None else overflowed(x.negative, fmt, mode, to, rule)


def code_in(fmt: str, x: Num | Inf) -> int:
    """The code of a value that the format holds."""
    if isinstance(x, Inf):
        code = infinity_code(fmt, x.negative)
        assert code is not None
        return code
    if fmt not in FLOATS:
        return encode_integer(fmt, x.value, "RZ", "largest")
    return code_of(fmt, x.value, x.negative)
