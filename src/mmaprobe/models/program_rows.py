"""The rows of the engine's programs: columns by name, operands, Encodes, rounding tables.

``csrc/model/program.hpp`` holds the same lists of columns; the engine refuses a module that has others.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

import numpy as np

from mmaprobe import formats
from mmaprobe.parameters.datapath import Encode, Operand, Split

VERSION = 6
"""The version of programs, which ``csrc/model/program.hpp`` states too."""
OPCODES = ("PRODUCT", "LOAD_C", "ZERO", "FMA", "ADD", "SUM", "CONVERT", "SETTLE", "STORE")
PRODUCT, LOAD_C, ZERO, FMA, ADD, SUM, CONVERT, SETTLE, STORE = range(len(OPCODES))

COLUMNS: dict[str, tuple[str, ...]] = {
    "header": (
        "version", "words", "width", "k", "registers", "code", "code_end", "a", "b", "c", "scale", "scale_size",
        "scale_where", "d", "label", "overflow_exponent", "multiply", "product_encode", "nan", "nan_code",
        "factor_code", "quiet", "signalling_first", "product_order", "fma_order", "priority", "priority_count",
        "kernel", "rules", "missing_columns", "products", "split", "random",
    ),
    "operand": (
        "bytes", "kind", "mask", "flip", "padding", "bits", "fraction_bits", "exponent_bits", "bias", "min_exponent",
        "is_signed", "subnormal", "flush", "nan_above", "infinity", "nan_exact", "ieee",
    ),
    "encode": (
        "kind", "bits", "fraction_bits", "min_exponent", "max_exponent", "largest", "padding", "is_signed",
        "infinity", "nan_code", "quiet_bit", "negative_zero", "table", "first_bits", "first_table",
        "beyond_positive", "beyond_negative", "flush", "tiny_before", "tiny_encoded", "underflow_positive",
        "zero_positive", "ieee", "random_bits", "random_highest",
    ),
    "split": ("fraction_bits", "min_exponent", "max_exponent", "table", "whole"),
    "fused": ("fraction_bits", "zero_exponent", "step", "encode", "carry"),
    "chain": ("rounding",),
    "two_stage": ("step", "parts", "fraction_bits", "c_zero_exponent", "cutoff", "first_bits", "carry"),
    "grouped": ("fraction_bits", "zero_exponent", "group", "underflow_positive"),
    "exact_sum": ("step", "grid", "carry"),
    "pairs": ("step",),
    "short_sums": (
        "step", "parts", "fraction_bits", "label_offset", "zero_exponent", "cutoff", "flush", "order",
    ),
    "flushed_chain": ("order",),
    "late_c": ("sums", "order"),
    "tree": ("rounding", "flush", "count", "operations"),
    "PRODUCT": ("to", "lane"),
    "LOAD_C": ("to",),
    "ZERO": ("to",),
    "FMA": ("to", "x", "y", "lane", "encode", "down"),
    "ADD": ("to", "x", "y", "encode", "down"),
    "SUM": ("to", "encode", "down", "anchored", "grid", "group", "frame", "carry_bits", "saturates", "count"),
    "term": ("of", "fraction_bits", "table", "zero_exponent", "cutoff", "label_offset", "sticky_bits", "shift_limit"),
    "CONVERT": ("to", "encode"),
    "SETTLE": ("x", "acc", "scratch", "count"),
    "STORE": ("x", "encode"),
}  # fmt: skip

ABSENT = -1
"""What a column says that says nothing."""
NO_LABEL = -(1 << 40)
"""The zero exponent of a term without one: below every label."""
UNCUT = 1 << 32
"""The fraction bits of a term that is not cut: more than any sum has."""
NEVER = 1 << 32
"""An exponent or a distance that no term reaches."""
_KINDS = {"float": 0, "integer": 1, "bits": 1, "magnitude": 2}
_FLUSH = {"keep": 0, "zero": 1, "signed_zero": 2}
_LARGEST, _INFINITE, _NAN, _WRAP = range(4)


@lru_cache(maxsize=64)
def rounding_table(rounding: str) -> int:
    """Bit (negative << 3 | odd << 2 | half << 1 | rest) says whether a magnitude is rounded away from zero."""
    table = 0
    for row in range(16):
        negative, odd, half, rest = row >> 3 & 1, row >> 2 & 1, row >> 1 & 1, row & 1
        inexact = half | rest
        directed = {"RZ": 0, "RA": inexact, "RU": inexact & ~negative, "RD": inexact & negative, "RO": inexact & ~odd}
        ties = {"RNU": 1 - negative, "RND": negative, "RNZ": 0, "RNA": 1, "RNE": odd, "RNO": 1 - odd}
        up = directed[rounding] if rounding in directed else half & (rest | ties[rounding])
        table |= (up & 1) << row
    return table


def _signed(value: int) -> int:
    """A 64-bit pattern as the int64 that holds it."""
    return value - (1 << 64) if value >= 1 << 63 else value


def row(kind: str, values: dict[str, int]) -> list[int]:
    """The values in the order of the columns; each a 64-bit pattern."""
    return [_signed(int(values[name])) for name in COLUMNS[kind]]


@lru_cache(maxsize=512)
def operand_row(name: str, operand: Operand) -> tuple[int, ...]:
    """How items of a format are read."""
    fmt = formats.get(name)
    infinity = ABSENT if fmt.infinity_code is None else fmt.infinity_code >> fmt.padding
    ones = (1 << (fmt.bits - fmt.signed)) - 1
    above = {"ieee": infinity, "all_ones": ones - 1}.get(fmt.nan, (1 << 64) - 1)
    exact = 1 << (fmt.bits - 1) if fmt.nan == "negative_zero" else ABSENT
    mask, flip = operand.code_bits(fmt)
    values = {
        "bytes": fmt.container_bits // 8, "kind": _KINDS[fmt.kind], "mask": mask & (1 << 64) - 1, "flip": flip,
        "padding": fmt.padding, "bits": fmt.bits,
        "fraction_bits": fmt.fraction_bits, "exponent_bits": fmt.exponent_bits, "bias": fmt.bias,
        "min_exponent": fmt.min_exponent, "is_signed": fmt.signed, "subnormal": fmt.subnormal,
        "flush": _FLUSH[operand.subnormals], "nan_above": above, "infinity": infinity, "nan_exact": exact,
        "ieee": fmt.nan == "ieee",
    }  # fmt: skip
    return tuple(row("operand", values))


def split_row(split: Split) -> tuple[int, ...]:
    """How parts of operands are made, then the parts of a and b of every product."""
    fmt = formats.get(split.format)
    values = {
        "fraction_bits": fmt.fraction_bits, "min_exponent": fmt.min_exponent, "max_exponent": fmt.max_exponent,
        "table": rounding_table(split.rounding), "whole": split.infinities == "whole",
    }  # fmt: skip
    return (*row("split", values), *chain.from_iterable(split.parts))


@lru_cache(maxsize=4096)
def encode_row(to: Encode) -> tuple[int, ...]:
    """An Encode, its roundings as tables and its overflow as what becomes of either sign."""
    fmt = formats.get(to.format)
    largest = fmt.largest >> fmt.padding
    values = {
        "kind": _KINDS[fmt.kind], "bits": fmt.bits, "fraction_bits": fmt.fraction_bits,
        "min_exponent": fmt.min_exponent, "max_exponent": fmt.max_exponent if fmt.is_float else 0,
        "largest": largest, "padding": fmt.padding, "is_signed": fmt.signed,
        "infinity": ABSENT if fmt.infinity_code is None else fmt.infinity_code >> fmt.padding,
        "nan_code": fmt.nan_code or 0, "quiet_bit": fmt.quiet_bit,
        "negative_zero": fmt.is_float and fmt.signed and fmt.nan != "negative_zero",
        "table": rounding_table(to.rounding), "first_bits": to.first[0] if to.first else ABSENT,
        "first_table": rounding_table(to.first[1]) if to.first else 0,
        "beyond_positive": _beyond(to, False), "beyond_negative": _beyond(to, True),
        "flush": _FLUSH[to.subnormals] if fmt.is_float else 0, "tiny_before": to.tininess == "before",
        "tiny_encoded": to.tininess == "encoded",
        "underflow_positive": to.underflow == "positive", "zero_positive": to.zero == "positive",
        "ieee": fmt.nan == "ieee", "random_bits": to.random_bits, "random_highest": to.random_from == "highest",
    }  # fmt: skip
    return tuple(row("encode", values))


def _beyond(to: Encode, negative: bool) -> int:
    """What a value above the largest becomes."""
    fmt = formats.get(to.format)
    if not fmt.is_float:
        return _WRAP if to.overflow == "wrap" else _LARGEST
    special = _INFINITE if fmt.infinity else _LARGEST if fmt.nan_code is None else _NAN
    if special == _LARGEST or to.overflow == "largest":
        return _LARGEST
    if to.overflow == "infinity":
        return special
    away = np.asarray(formats.overflow_goes_to_infinity(to.rounding, np.array(negative)))
    return special if away.any() else _LARGEST
