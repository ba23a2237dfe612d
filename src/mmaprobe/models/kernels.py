"""Which kernel of the engine evaluates a datapath, told by its structure; the interpreter where none does it exactly.

A kernel takes a datapath that equals the one that it computes, written out with
the fields that it honours: a field that it does not know makes it refuse.
``csrc/model/program.hpp`` numbers the kernels in the same order (the engine refuses a module that does not).
"""

from __future__ import annotations

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.models.kernels_float import (
    MOST_LANES,
    Rules,
    chain_rules,
    exact_sum_rules,
    flushed_chain_rules,
    grouped_rules,
    leaf_of,
    like,
    pairs_rules,
    short_sums_rules,
    tree_rules,
    two_stage_rules,
)
from mmaprobe.models.program_rows import COLUMNS, encode_row
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fused,
    Node,
    Product,
    Products,
    Scale,
    Zero,
)

KERNELS = (
    "INTERPRETER", "INTEGER_WRAPS", "INTEGER_SATURATES", "FUSED", "CHAIN", "TWO_STAGE", "GROUPED", "EXACT_SUM",
    "PAIRS", "SHORT_SUMS", "FLUSHED_CHAIN", "LATE_C", "TREE",
)  # fmt: skip
(
    INTERPRETER, INTEGER_WRAPS, INTEGER_SATURATES, FUSED, CHAIN, TWO_STAGE, GROUPED, EXACT_SUM, PAIRS, SHORT_SUMS,
    FLUSHED_CHAIN, LATE_C, TREE,
) = range(len(KERNELS))  # fmt: skip
MOST_FRACTION_BITS = 28
"""Fraction bits of a cut product at most: it stays below 2**30."""
LEAST_ZERO_EXPONENT = -4096
"""Zero exponents of the kernels at least; one as low stands for none."""


def late_c_rules(path: Datapath) -> Rules | None:
    """Fused sums of products alone from +0, in any order, and C added last to nearest even (``kernels/late_c.hpp``)."""
    tree, steps = path.tree, list[tuple[int, ...]]()
    if not isinstance(tree, Add) or (path.c, path.d) not in (("f32", "f32"), ("f16", "f16")):
        return None
    node = tree.x
    while isinstance(node, Fused) and len(node.terms) == 2 and isinstance(node.terms[1].of, Products):
        steps.insert(0, node.terms[1].of.lanes)
        first, node = node, node.terms[0].of
    length = len(steps[0]) if steps else 0
    if not isinstance(node, Zero) or len(steps) * length != path.k or {len(lanes) for lanes in steps} != {length}:
        return None
    term, product = first.terms[1], Product(label=path.product.label)
    sums: Node = Zero()
    for lanes in steps:
        sums = Fused.alike((sums, Products(lanes)), term.fraction_bits, "RZ", term.zero_exponent, first.to)
    if path != like(path, Add(sums, Accumulator(), Encode(path.d)), product=product):
        return None
    leaves = (Accumulator(), Products(tuple(range(length))))
    one = Fused.alike(leaves, term.fraction_bits, "RZ", term.zero_exponent, first.to)
    alone = Datapath(path.a, path.b, None, path.d, path.k, one, length, product=product, special=path.special)
    return {"sums": alone, "order": tuple(lane for lanes in steps for lane in lanes)} if _is_fused(alone) else None


FLOAT_RULES = {
    CHAIN: chain_rules, TWO_STAGE: two_stage_rules, GROUPED: grouped_rules, EXACT_SUM: exact_sum_rules,
    PAIRS: pairs_rules, SHORT_SUMS: short_sums_rules, FLUSHED_CHAIN: flushed_chain_rules, LATE_C: late_c_rules,
    TREE: tree_rules,
}  # fmt: skip


def kernel(datapath: Datapath) -> int:
    """The number of the kernel that evaluates a datapath."""
    if _is_fused(datapath):
        return FUSED
    return next((number for number, rules in FLOAT_RULES.items() if rules(datapath) is not None), _integer(datapath))


def _is_fused(path: Datapath) -> bool:
    """A chain of fused sums of all products of a step and C, cut towards zero, with canonical NaNs.

    A zero exponent counts only where the largest label is below that of every
    non-zero C: it then cannot be told from one that always takes part.
    """
    tree, scale = path.tree, path.scale
    if not isinstance(tree, Fused) or tree.to is None or path.k > MOST_LANES:
        return False
    bits, zero = tree.terms[0].fraction_bits, tree.terms[0].zero_exponent
    if bits is None or not 0 <= bits <= MOST_FRACTION_BITS:
        return False
    leaves = [type(term.of) for term in tree.terms]
    if leaves.count(Accumulator) != 1 or not {Accumulator, Products}.issuperset(leaves):
        return False
    a, b = formats.get(path.a), formats.get(path.b)
    addends = [formats.get(name) for name in (path.c or tree.to.format, tree.to.format)]
    if not all(map(_is_plain, (a, b, *addends))) or a.fraction_bits + b.fraction_bits > 30:
        return False
    if scale is not None and (scale.where != "product" or not _is_power(formats.get(scale.format))):
        return False
    if path.product.label not in ("encoded", "operands") or (scale is not None and path.product.label != "encoded"):
        return False
    if zero is not None and not LEAST_ZERO_EXPONENT <= zero <= min(addend.min_exponent for addend in addends):
        return False
    return _result_is_plain(path, tree.to) and path == _fused(path, tree, tree.to)


def _fused(path: Datapath, tree: Fused, given: Encode) -> Datapath:
    """What the kernel of fused sums makes of the fields that it honours; it flushes nothing: tininess is idle."""
    to = Encode(given.format, given.rounding, given.overflow, "keep", given.tininess, "positive", given.underflow)
    first, leaves = tree.terms[0], (leaf_of(term.of) for term in tree.terms)
    scale = None if path.scale is None else Scale(path.scale.format, path.scale.size)
    product = Product(label=path.product.label)
    tree = Fused.alike(leaves, first.fraction_bits, "RZ", first.zero_exponent, to)
    return like(path, tree, scale=scale, product=product)


def _is_plain(fmt: Format) -> bool:
    return fmt.is_float and fmt.signed and fmt.subnormal and fmt.fraction_bits > 0 and fmt.container_bits <= 32


def _is_power(fmt: Format) -> bool:
    """A format of powers of two in one byte, without zero, sign and infinity."""
    plain = fmt.is_float and not (fmt.signed or fmt.subnormal or fmt.infinity)
    return plain and fmt.fraction_bits == 0 and fmt.container_bits == 8


def _result_is_plain(path: Datapath, to: Encode) -> bool:
    """Codes of ``to`` are codes of d, NaN included; overflow is the same for both signs."""
    fmt, d = formats.get(to.format), formats.get(path.d)
    same = fmt == d or (fmt.bits + fmt.padding == d.bits and (fmt.exponent_bits, fmt.bias) == (d.exponent_bits, d.bias))
    if not same or fmt.nan != "ieee" or d.nan != "ieee" or d.container_bits not in (16, 32):
        return False
    infinity = fmt.infinity_code
    if infinity is None or not 0 <= path.special.code < 1 << d.container_bits:
        return False
    is_nan = (path.special.code & ~fmt.sign_mask) >> fmt.padding > infinity >> fmt.padding
    encode = dict(zip(COLUMNS["encode"], encode_row(to), strict=True))
    beyond = encode["beyond_positive"]
    return is_nan and beyond == encode["beyond_negative"] and beyond in (0, 1)


def _integer(path: Datapath) -> int:
    """An exact sum of plain integers or bits that wraps or saturates, or the interpreter.

    Plain: nothing masked or flushed, all products and C (s32) in one sum.
    """
    tree = path.tree
    a, b, d = (formats.get(name) for name in (path.a, path.b, path.d))
    whole = d.kind == "integer" and d.signed and d.bits == d.container_bits
    if not whole or path.c not in (None, "s32") or not isinstance(tree, Exact) or tree.to is None:
        return INTERPRETER
    ways = ("and", "xor") if a.kind == "bits" else ("exact",)
    if a.kind not in ("integer", "bits") or (a.kind, a.bits) != (b.kind, b.bits) or path.product.multiply not in ways:
        return INTERPRETER
    kinds = sorted(type(term).__name__ for term in tree.terms)
    if kinds != (["Products"] if path.c is None else ["Accumulator", "Products"]) or path != _summed(path, tree):
        return INTERPRETER
    if tree.to.overflow == "wrap":
        return INTEGER_WRAPS if len(path.steps) == 1 or path.c is not None else INTERPRETER
    return INTEGER_SATURATES if len(path.steps) == 1 else INTERPRETER


def _summed(path: Datapath, tree: Exact) -> Datapath:
    """What the integer kernels make of the fields that they honour, or that say nothing of a sum of integers."""
    assert tree.to is not None
    given = tree.to
    to = Encode(
        path.d, given.rounding, given.overflow, given.subnormals, given.tininess, given.zero, given.underflow
    )  # fmt: skip
    terms = tuple(map(leaf_of, tree.terms))
    return like(path, Exact(terms, to), order=path.order, product=Product(multiply=path.product.multiply))
