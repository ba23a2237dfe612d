"""Datapaths whose exact sums fit binary64: the kernels that use the processor's own floating-point operations.

Each function gives the row of rules that its kernel asks for, or None where
the kernel would not compute the datapath to the bit.  It writes out the
datapath that its kernel computes, with the values of the fields that the kernel
honours, and compares: a field that nobody thought of is plain there, so that
any other value of it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

from mmaprobe import formats
from mmaprobe.models.program_rows import ADD, FMA, LOAD_C, NEVER, NO_LABEL, PRODUCT, STORE, ZERO
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
    Scale,
    Special,
    Term,
    Zero,
    walk,
)


class OperandOf(NamedTuple):
    """An operand whose row is placed: its format, and how it is read."""

    format: str
    operand: Operand = Operand()


RuleValue = int | OperandOf | tuple[int, ...] | Datapath
"""A number, an operand, lanes in order, or a datapath whose program is placed."""
Rules = dict[str, RuleValue]
"""Values of a row by column."""

MOST_LANES = 256
"""Lanes of a vector at most (``MOST_K`` of ``csrc/cpu/kernels/fused_exact.hpp``)."""
_MODES = ("RNE", "RZ", "RD", "RU")
_STEP = 16
"""Lanes of a short sum's step at most (``MOST_STEP`` of ``csrc/cpu/kernels/short_sums.hpp``)."""
_GROUP = 16
"""Products of a group: the fewest that share a scale of NVIDIA's 4-bit formats."""
_DOUBLE = 53
"""Bits of a binary64 significand."""
_BELOW = 8
"""Fraction bits that a sum of products keeps more than C (CDNA3)."""
_CARRY = OperandOf("f32")
_FACTORS = {"f16": {"f16"}, "f32": {"f16", "bf16", "f32"}, "f64": {"f64"}}
"""Formats of a and b that a tree whose numbers are of d takes."""
_TREE_LANES = 64
"""Lanes of a tree's vector at most (this and what follows as ``csrc/model/program.hpp`` has it)."""
_TREE_DEPTH = 8
"""Values that wait at most."""
_TREE_ENCODED = 16
"""What an operation's word is larger by where its subnormal result is a zero; above all opcodes."""
_TREE_LANE = 32
"""What it is larger by for each lane."""
_INTEGER = 30
"""Bits of a magnitude that a sum of 32 bits always holds."""


def like(path: Datapath, tree: Node, **fields: Any) -> Datapath:
    """The datapath of the same formats and steps that has this tree and these fields, and is plain in all others.

    Where every NaN is one code, the rules that choose among NaNs say nothing.
    """
    given = path.special
    special = Special(
        "canonical", given.code, given.priority, given.quiet, given.signalling_first, given.factor_code
    )  # fmt: skip
    return Datapath(path.a, path.b, path.c, path.d, path.k, tree, path.step, special=special, **fields)


def leaf_of(node: Node) -> Node:
    """What a kernel takes a leaf for: the products of these lanes, or C."""
    return Products(node.lanes) if isinstance(node, Products) else Accumulator()


def chain_rules(path: Datapath) -> Rules | None:
    """Fused multiply-adds of binary32 or binary64 in ascending k from C, under IEEE rules.

    NaNs are one code, or those that each link hands on, quieted.
    """
    tree = path.tree
    same = {path.a, path.b, path.c or path.d, path.d}
    if not isinstance(tree, Fma) or tree.to.rounding not in _MODES or same not in ({"f32"}, {"f64"}):
        return None
    ours = Fma(Accumulator(), tuple(range(path.step_length)), Encode(path.d, tree.to.rounding))
    plain, given = like(path, ours), path.special
    if given.nan == "local" and given.quiet and not given.signalling_first:
        plain = replace(plain, special=replace(plain.special, nan="local"))
    if path.k > MOST_LANES or not _nan_is_one(path) or path != plain:
        return None
    return {"rounding": _MODES.index(tree.to.rounding)}


def flushed_chain_rules(path: Datapath) -> Rules | None:
    """Fused multiply-adds of bf16 in any order from C in f32, flushed (``kernels/flushed_chain.hpp``).

    Of NaNs the first in an order of all operands, quieted.
    """
    tree, given = path.tree, path.special
    if not isinstance(tree, Fma) or (path.a, path.b, path.c, path.d) != ("bf16", "bf16", "f32", "f32") or path.k > 64:
        return None
    names = {f"{name}{lane}" for name in "ab" for lane in range(path.k)} | {"c"}
    if given.nan != "global" or not given.quiet or given.signalling_first or set(given.priority) != names:
        return None
    zeros = Operand("signed_zero")
    ours = Fma(Accumulator(), tree.lanes, Encode("f32", subnormals="signed_zero"))
    plain = like(path, ours, order=path.order, operand_a=zeros, operand_b=zeros, operand_c=zeros)
    if not _nan_is_one(path) or path != replace(plain, special=replace(plain.special, nan="global")):
        return None
    return {"order": tuple(lanes[place] for lanes in path.steps for place in tree.lanes)}


def tree_rules(path: Datapath) -> Rules | None:
    """Products, sums and fused multiply-adds in any tree, all rounded to d in one mode (``kernels/tree.hpp``).

    Results that are tiny after rounding may be zeros, all of them, or those that are subnormal as encoded, of any.
    """
    tree, given = path.tree, path.special
    if not isinstance(tree, (Add, Fma)) or path.d not in _FACTORS or path.k > _TREE_LANES:
        return None
    ends = {node.to for node in walk(tree) if isinstance(node, (Add, Fma))} | ({path.product.to} - {None})
    ours = {Encode(path.d, tree.to.rounding, subnormals=to.subnormals, tininess=to.tininess) for to in ends if to}
    flushed = {to.tininess if to.subnormals == "signed_zero" else to.subnormals for to in ends if to}
    if ends != ours or not (flushed == {"after"} or flushed <= {"keep", "encoded"}) or tree.to.rounding not in _MODES:
        return None
    operations = tuple(_operations(path))
    fit = {path.a, path.b} <= _FACTORS[path.d] and path.c in (None, path.d)
    if not fit or not _fits_stack(operations) or (path.d == "f16" and flushed != {"keep"}):
        return None
    read = {name: getattr(path, name) for name in ("operand_a", "operand_b", "operand_c")}
    read = {name: Operand(given.subnormals, given.mask, given.sign) for name, given in read.items()}
    plain = like(path, _rounded_tree(tree), order=path.order, product=Product(path.product.to), **read)
    if given.nan == "local" and given.quiet:
        plain = replace(plain, special=replace(plain.special, nan="local"))
    if not _nan_is_one(path) or not _codes_are_quiet(path) or path != plain:
        return None
    return {
        "rounding": _MODES.index(tree.to.rounding), "flush": int(flushed == {"after"}),
        "count": len(operations), "operations": operations,
    }  # fmt: skip


def _rounded_tree(node: Node) -> Node:
    """What the kernel makes of a tree."""
    if isinstance(node, Fma):
        return Fma(_rounded_tree(node.acc), node.lanes, node.to)
    if isinstance(node, Add):
        return Add(_rounded_tree(node.x), _rounded_tree(node.y), node.to)
    return Zero() if isinstance(node, Zero) else leaf_of(node)


def _operations(path: Datapath) -> Iterator[int]:
    """A tree in the order in which a stack takes it, step after step (``TREE_LANE`` in ``csrc/model/program.hpp``); -1
    for what the kernel has no operation for."""
    to = path.product.to

    def of(node: Node, lanes: tuple[int, ...]) -> Iterator[int]:
        if isinstance(node, Fma) and to is None:
            yield from of(node.acc, lanes)
            yield from (FMA + _ended(node.to) + _TREE_LANE * lanes[place] for place in node.lanes)
        elif isinstance(node, Add):
            yield from of(node.x, lanes)
            yield from of(node.y, lanes)
            yield ADD + _ended(node.to)
        elif isinstance(node, Products) and len(node.lanes) == 1 and to is not None:
            yield PRODUCT + _ended(to) + _TREE_LANE * lanes[node.lanes[0]]
        else:
            yield LOAD_C if node == Accumulator() else ZERO if node == Zero() else -1

    for lanes in path.steps:
        yield from of(path.tree, lanes)
        yield STORE


def _ended(to: Encode) -> int:
    """Whether a result that is a subnormal as encoded is a zero (``TREE_ENCODED``)."""
    return _TREE_ENCODED if (to.subnormals, to.tininess) == ("signed_zero", "encoded") else 0


def _fits_stack(operations: tuple[int, ...]) -> bool:
    """Whether the kernel has all operations, and a place for each value that waits."""
    pushed = [{ADD: -1, STORE: -1, FMA: 0}.get(word % _TREE_ENCODED, 1) for word in operations]
    return min(operations) >= 0 and max(accumulate(pushed)) <= _TREE_DEPTH


def two_stage_rules(path: Datapath) -> Rules | None:
    """Products cut among themselves, their sum and C floored and added, rounded twice (``kernels/two_stage.hpp``)."""
    tree = path.tree
    if not isinstance(tree, Fused) or (path.c or "f32", path.d) != ("f32", "f32") or len(tree.terms) != 2:
        return None
    to, (products, c), bits = tree.to, tree.terms, tree.terms[1].fraction_bits
    if to is None or to.first is None or bits is None or c.zero_exponent is None or not 23 <= bits <= 28:
        return None
    parts = 2 if isinstance(products.of, Fused) and len(products.of.terms) == 2 else 1
    if not 24 <= to.first[0] <= 40 or not -200 <= c.zero_exponent <= -126 or not _products_fit(path, bits, parts):
        return None
    sums = [_cut_products(range(part, path.step_length, parts), bits) for part in range(parts)]
    of = sums[0] if parts == 1 else Fused.alike(sums, bits, "RD")
    addend = Term(Accumulator(), bits, "RD", c.zero_exponent, c.cutoff)
    ours = Fused((Term(of, bits + _BELOW, "RD"), addend), Encode(first=(to.first[0], "RD")))
    product = Product(overflow_exponent=path.product.overflow_exponent)
    if not _nan_is_one(path) or path != like(path, ours, product=product):
        return None
    return {
        "step": path.step_length, "parts": parts, "fraction_bits": bits, "c_zero_exponent": c.zero_exponent,
        "cutoff": NEVER if c.cutoff is None else c.cutoff, "first_bits": to.first[0], "carry": _CARRY,
    }  # fmt: skip


def grouped_rules(path: Datapath) -> Rules | None:
    """Exact sums of 16 e2m1 products, scaled, aligned with C and cut (``kernels/grouped.hpp``)."""
    tree, scale = path.tree, path.scale
    if not isinstance(tree, Fused) or tree.to is None or scale is None or scale.where != "group":
        return None
    if (path.a, path.b, path.c, path.d) != ("e2m1", "e2m1", "f32", "f32") or path.step_length != path.k:
        return None
    groups = path.k // _GROUP
    sums = (Exact((Products(tuple(range(g, g + _GROUP))),), scaled=True) for g in range(0, path.k, _GROUP))
    bits, zero, form = tree.terms[0].fraction_bits, tree.terms[0].zero_exponent, formats.get(scale.format)
    wanted = set(Fused.alike((Accumulator(), *sums), bits, "RZ", zero).terms)
    if set(tree.terms) != wanted or len(tree.terms) != groups + 1 or not 1 <= groups <= 8 or scale.size % _GROUP:
        return None
    if bits is None or zero is None or not 24 <= bits <= 36 or not -300 <= zero <= -126:
        return None
    narrow = not form.signed and form.fraction_bits <= 3 and form.container_bits == 8 and form.infinity_code is None
    to = Encode(rounding="RZ", overflow="infinity", zero="positive", underflow=tree.to.underflow)
    ours = like(path, Fused(tree.terms, to), scale=Scale(scale.format, scale.size, "group"))
    if not narrow or not _nan_is_one(path) or path != ours:
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
    if not isinstance(tree, Exact) or (path.c or "f32", path.d) != ("f32", "f32") or path.k > 64:
        return None
    wanted = {Products(tuple(range(length))), Accumulator()}
    if set(tree.terms) != wanted or len(tree.terms) != 2 or not _nan_is_one(path):
        return None
    if path != like(path, Exact(tree.terms, Encode())):
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
    length = path.step_length
    formats_fit = {path.a, path.b} <= {"f16", "bf16"} and (path.c or "f32", path.d) == ("f32", "f32")
    if not isinstance(path.tree, Add) or not formats_fit or path.k > 64 or length not in (2, 4, 8):
        return None
    to, zeros = Encode("f32", subnormals="signed_zero"), Operand("zero")
    tree = Add(Accumulator(), _pairs(range(length), to), to)
    ours = like(path, tree, product=Product(to), operand_a=zeros, operand_b=zeros, operand_c=zeros)
    return {"step": length} if _nan_is_one(path) and path == ours else None


def short_sums_rules(path: Datapath) -> Rules | None:
    """Few products a step and C, in C's frame or floored in parts, rounded once (``kernels/short_sums.hpp``)."""
    tree = path.tree
    narrowed = isinstance(tree, Exact) and path.d == "bf16"
    total = tree.terms[0] if isinstance(tree, Exact) and narrowed else tree
    if not isinstance(total, Fused) or total.to is None or not isinstance(total.terms[-1].of, Accumulator):
        return None
    to, c, length = total.to, total.terms[-1], path.step_length
    parts, bits = 0 if total.complement else len(total.terms) - 1, c.fraction_bits
    if bits is None or length > _STEP or (parts and length % parts) or not _short_sums_fit(path, bits, c):
        return None
    sums = _downward(length, parts, bits) if parts else (Term(Products(tuple(range(length))), bits),)
    rounding, cutoff = ("RD", c.cutoff) if parts else ("RZ", None)
    addend = Term(Accumulator(), bits, rounding, c.zero_exponent, cutoff, c.label_offset)
    flush = to.subnormals == "zero" and path.d != "f16"
    ours: Node = Fused((*sums, addend), _short_result(path, to, flush), complement=not parts)
    if narrowed:
        ours = Exact((ours,), Encode("bf16", "RZ"))
    plain = like(path, ours, order=path.order, **_flushed(path))
    if path.special.nan == "cause" and path.special.quiet:
        plain = replace(plain, special=replace(plain.special, nan="cause"))
    if not _nan_is_one(path) or not _codes_are_quiet(path) or path != plain:
        return None
    return {
        "step": length, "parts": parts, "fraction_bits": bits, "label_offset": c.label_offset,
        "zero_exponent": NO_LABEL if c.zero_exponent is None else c.zero_exponent,
        "cutoff": NEVER if cutoff is None else cutoff, "flush": int(flush),
        "order": tuple(lane for lanes in path.steps for lane in lanes),
    }  # fmt: skip


def _downward(length: int, parts: int, bits: int) -> tuple[Term, ...]:
    """The sums of the parts of a step, floored, each a term that is floored."""
    size = length // parts
    return tuple(
        Term(Fused.alike((Products(tuple(range(first, first + size))),), bits, "RD"), bits, "RD")
        for first in range(0, length, size)
    )


def _short_result(path: Datapath, to: Encode, flush: bool) -> Encode:
    """How a step's sum is rounded: to d, or to binary32 of which bf16 takes the upper half."""
    ends: dict[str, Any] = {"subnormals": "zero"} if flush else {"tininess": to.tininess}
    return Encode("f32" if path.d == "bf16" else path.d, zero="positive", underflow="positive", **ends)


def _short_sums_fit(path: Datapath, bits: int, c: Term) -> bool:
    """Formats that the kernel reads, products that are binary32 numbers, sums of 32 bits."""
    a, b = formats.get(path.a), formats.get(path.b)
    plain = all(
        fmt.is_float and fmt.signed and fmt.subnormal and fmt.container_bits <= 16 and not fmt.padding
        and fmt.nan != "negative_zero" and ((fmt.exponent_bits <= 5 and fmt.fraction_bits <= 10) or fmt.name == "bf16")
        for fmt in (a, b)
    )  # fmt: skip
    if not plain or path.d not in ("f32", "f16", "bf16") or path.c != path.d or path.k > MOST_LANES:
        return False
    if a.fraction_bits + b.fraction_bits + 2 > 24 or not -400 <= (c.zero_exponent or 0) <= 200:
        return False
    return -8 <= c.label_offset <= 8 and (path.step_length << bits + 2) + (1 << bits + 1 - min(c.label_offset, 0)) < (
        1 << _INTEGER
    )


def _flushed(path: Datapath) -> dict[str, Operand]:
    """The operands with what is done to their subnormals."""
    return {name: Operand(getattr(path, name).subnormals) for name in ("operand_a", "operand_b", "operand_c")}


def _codes_are_quiet(path: Datapath) -> bool:
    """Whether the NaN codes of a datapath are quiet ones: conversions keep those."""
    quiet, special = formats.get(path.d).quiet_bit, path.special
    codes = (special.code, special.factor_code) if special.nan == "cause" else (special.code,)
    infinity = formats.get(path.d).infinity_code or 0
    return all(code & infinity == infinity and code & quiet for code in codes)


def _pairs(lanes: range, to: Encode) -> Node:
    """The products of lanes, added two by two."""
    half = len(lanes) // 2
    return Add(_pairs(lanes[:half], to), _pairs(lanes[half:], to), to) if half else Products(tuple(lanes))


def _nan_is_one(path: Datapath) -> bool:
    """Whether the NaN code of the datapath is a NaN of d."""
    d, code = formats.get(path.d), path.special.code
    infinity = d.infinity_code
    return infinity is not None and (code & ~d.sign_mask) > infinity


def _cut_products(lanes: range, bits: int) -> Fused:
    return Fused.alike((Products(tuple(lanes)),), bits)


def _products_fit(path: Datapath, bits: int, parts: int) -> bool:
    """Sums of cut products fit 32 bits, and a product's own bits are few and fit above the cut."""
    a, b = formats.get(path.a), formats.get(path.b)
    floats = all(fmt.is_float and fmt.signed and fmt.subnormal and fmt.container_bits <= 32 for fmt in (a, b))
    overflow = path.product.overflow_exponent
    if not floats or overflow not in (None, 128) or path.k > 64 or path.step_length % parts:
        return False
    lanes = path.step_length // parts
    below = a.fraction_bits + b.fraction_bits
    narrow = a.max_exponent + b.max_exponent < 127 or overflow is not None
    return below <= min(bits, 28) and bits + 2 + (lanes - 1).bit_length() <= 30 and narrow
