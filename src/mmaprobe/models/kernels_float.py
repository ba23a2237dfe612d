"""Datapaths whose exact sums fit binary64: the kernels that use the processor's own floating-point operations.

Each function gives the row of rules that its kernel asks for, or None where
the kernel would not compute the datapath to the bit.
"""

from __future__ import annotations

from dataclasses import replace

from mmaprobe import formats
from mmaprobe.models.rows import NEVER
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Operand,
    Product,
    Products,
    Term,
)

Rules = dict[str, int | tuple[str, Operand]]
"""Values of a row by column; an operand to be placed by its format and policy."""

_MODES = ("RNE", "RZ", "RD", "RU")
_GROUP = 16
_DOUBLE = 53  # bits of a binary64 significand
_BELOW = 8  # fraction bits that a sum of products keeps more than C
_CARRY = ("f32", Operand())


def chain_rules(path: Datapath) -> Rules | None:
    """Fused multiply-adds of binary32 or binary64 in ascending k from C, under IEEE rules, with a canonical NaN."""
    tree = path.tree
    if not isinstance(tree, Fma) or not isinstance(tree.acc, Accumulator) or not _is_bare(path):
        return None
    plain = tree.to == Encode(tree.to.format, tree.to.rounding) and tree.to.rounding in _MODES
    ascending = tree.lanes == tuple(range(path.step_length))
    same = {path.a, path.b, path.c or path.d, path.d, tree.to.format}
    if not plain or not ascending or path.product != Product() or path.scale or same not in ({"f32"}, {"f64"}):
        return None
    return {"rounding": _MODES.index(tree.to.rounding)} if _nan_is_canonical(path) else None


def two_stage_rules(path: Datapath) -> Rules | None:
    """Products cut among themselves, their sum and C floored and added, rounded twice (``kernels/two_stage.hpp``)."""
    tree = path.tree
    if not isinstance(tree, Fused) or not _is_bare(path) or path.scale or not _nan_is_canonical(path):
        return None
    if (path.c or "f32", path.d) != ("f32", "f32") or len(tree.terms) != 2:
        return None
    to, (products, c), bits = tree.to, tree.terms, tree.terms[1].fraction_bits
    if to is None or to.first is None or bits is None or not 23 <= bits <= 28:
        return None
    if replace(to, first=None) != Encode() or to.first[1] != "RD" or not 24 <= to.first[0] <= 40:
        return None
    if c != Term(Accumulator(), bits, "RD", c.zero_exponent, c.cutoff) or c.zero_exponent is None:
        return None
    parts = _parts(products.of, bits, path.step_length)
    fits = -200 <= c.zero_exponent <= -126 and products == Term(products.of, bits + _BELOW, "RD")
    if parts is None or not fits or not _products_fit(path, bits, parts):
        return None
    return {
        "step": path.step_length, "parts": parts, "fraction_bits": bits, "c_zero_exponent": c.zero_exponent,
        "cutoff": NEVER if c.cutoff is None else c.cutoff, "first_bits": to.first[0], "carry": _CARRY,
    }  # fmt: skip


def grouped_rules(path: Datapath) -> Rules | None:
    """Exact sums of 16 e2m1 products, scaled, aligned with C and cut (``kernels/grouped.hpp``)."""
    tree, scale = path.tree, path.scale
    if not isinstance(tree, Fused) or scale is None or scale.where != "group" or not _is_bare(path):
        return None
    if (path.a, path.b, path.c, path.d) != ("e2m1", "e2m1", "f32", "f32") or path.step_length != path.k:
        return None
    groups = path.k // _GROUP
    sums = (Exact((Products(tuple(range(g, g + _GROUP))),), scaled=True) for g in range(0, path.k, _GROUP))
    bits, zero = tree.terms[0].fraction_bits, tree.terms[0].zero_exponent
    wanted = set(Fused.alike((Accumulator(), *sums), bits, "RZ", zero).terms)
    if set(tree.terms) != wanted or len(tree.terms) != groups + 1 or not 1 <= groups <= 8 or scale.size % _GROUP:
        return None
    to, form = tree.to, formats.get(scale.format)
    if to is None or bits is None or zero is None or path.product != Product():
        return None
    truncated = Encode(rounding="RZ", overflow="infinity", zero="positive", underflow=to.underflow)
    fits = 24 <= bits <= 36 and -300 <= zero <= -126
    narrow = not form.signed and form.fraction_bits <= 3 and form.container_bits == 8 and form.infinity_code is None
    if to != truncated or not fits or not narrow or not _nan_is_canonical(path):
        return None
    return {
        "fraction_bits": bits, "zero_exponent": zero, "group": _GROUP,
        "underflow_positive": int(to.underflow == "positive"),
    }  # fmt: skip


def exact_sum_rules(path: Datapath) -> Rules | None:
    """Exact sums of a step's products and C, each rounded once to nearest even (``kernels/exact_sum.hpp``).

    The products are multiples of 2^bottom below 2^top; a grid 53 bits below
    the top must leave at most 53 bits under it.
    """
    tree, length = path.tree, path.step_length
    if not isinstance(tree, Exact) or not _is_bare(path) or path.scale or not _nan_is_canonical(path):
        return None
    ours = tree.to == Encode() and not tree.scaled and (path.c or "f32", path.d) == ("f32", "f32")
    wanted = {Products(tuple(range(length))), Accumulator()}
    if not ours or set(tree.terms) != wanted or len(tree.terms) != 2 or path.product != Product() or path.k > 64:
        return None
    a, b = formats.get(path.a), formats.get(path.b)
    floats = all(fmt.is_float and fmt.signed and fmt.subnormal and fmt.container_bits <= 32 for fmt in (a, b))
    if not floats or a.fraction_bits + b.fraction_bits > 28:
        return None
    carry = (length - 1).bit_length()
    top = a.max_exponent + b.max_exponent + 2 + carry
    bottom = a.min_exponent + b.min_exponent - a.fraction_bits - b.fraction_bits
    grid = top - _DOUBLE
    if length > 2 and grid + carry - bottom > _DOUBLE:
        return None
    return {"step": length, "grid": grid, "carry": _CARRY}


def pairs_rules(path: Datapath) -> Rules | None:
    """Products and their sums two by two, then C, each rounded to nearest even and flushed (``kernels/pairs.hpp``).

    No product of these formats has more bits than binary32, so it does not
    matter whether a result is tiny before or after it is rounded.
    """
    to, length = Encode("f32", subnormals="signed_zero"), path.step_length
    operands = {path.operand_a, path.operand_b, path.operand_c}
    ours = {path.a, path.b} <= {"f16", "bf16"} and (path.c or "f32", path.d) == ("f32", "f32")
    plain = path.order is None and path.result is None and path.scale is None and path.k <= 64
    if not ours or not plain or operands != {Operand("zero")} or path.product != Product(to=to):
        return None
    if length not in (2, 4, 8) or path.tree != Add(Accumulator(), _pairs(range(length), to), to):
        return None
    return {"step": length} if _nan_is_canonical(path) else None


def _pairs(lanes: range, to: Encode) -> Node:
    """The products of lanes, added two by two."""
    half = len(lanes) // 2
    return Add(_pairs(lanes[:half], to), _pairs(lanes[half:], to), to) if half else Products(tuple(lanes))


def _is_bare(path: Datapath) -> bool:
    """Operands as they come, lanes in ascending order, no last conversion, not many of them."""
    operands = {path.operand_a, path.operand_b, path.operand_c}
    return operands == {Operand()} and path.order is None and path.result is None and path.k <= 256


def _nan_is_canonical(path: Datapath) -> bool:
    d, code = formats.get(path.d), path.special.code
    infinity = d.infinity_code
    return path.special.nan == "canonical" and infinity is not None and (code & ~d.sign_mask) > infinity


def _parts(node: Node, bits: int, length: int) -> int | None:
    """1 where the products of a step are cut in one sum, 2 where even and odd ones are in sums of their own."""
    if node == _cut_products(range(length), bits):
        return 1
    halves = (_cut_products(range(start, length, 2), bits) for start in (0, 1))
    return 2 if node == Fused.alike(halves, bits, "RD") else None


def _cut_products(lanes: range, bits: int) -> Fused:
    return Fused.alike((Products(tuple(lanes)),), bits)


def _products_fit(path: Datapath, bits: int, parts: int) -> bool:
    """Sums of cut products fit 32 bits, and a product's own bits are few and fit above the cut."""
    a, b = formats.get(path.a), formats.get(path.b)
    floats = all(fmt.is_float and fmt.signed and fmt.subnormal and fmt.container_bits <= 32 for fmt in (a, b))
    overflow = path.product.overflow_exponent
    plain = path.product == Product(overflow_exponent=overflow) and (overflow is None or overflow == 128)
    if not floats or not plain or path.k > 64 or path.step_length % parts:
        return False
    lanes = path.step_length // parts
    below = a.fraction_bits + b.fraction_bits
    narrow = a.max_exponent + b.max_exponent < 127 or overflow is not None
    return below <= min(bits, 28) and bits + 2 + (lanes - 1).bit_length() <= 30 and narrow
