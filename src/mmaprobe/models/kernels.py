"""Which kernel of the engine evaluates a datapath, told by its structure; the interpreter where none does it exactly.

``csrc/model/program.hpp`` numbers the kernels in the same order (a test compares them).
"""

from __future__ import annotations

from dataclasses import replace

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.models.kernels_float import chain_rules, exact_sum_rules, grouped_rules, pairs_rules, two_stage_rules
from mmaprobe.models.rows import COLUMNS, encode_row
from mmaprobe.parameters.datapath import (
    Accumulator,
    Datapath,
    Encode,
    Exact,
    Fused,
    Operand,
    Product,
    Products,
    Term,
)

KERNELS = (
    "INTERPRETER", "INTEGER_WRAPS", "INTEGER_SATURATES", "FUSED", "CHAIN", "TWO_STAGE", "GROUPED", "EXACT_SUM",
    "PAIRS",
)  # fmt: skip
INTERPRETER, INTEGER_WRAPS, INTEGER_SATURATES, FUSED, CHAIN, TWO_STAGE, GROUPED, EXACT_SUM, PAIRS = range(len(KERNELS))
FLOAT_RULES = {
    CHAIN: chain_rules, TWO_STAGE: two_stage_rules, GROUPED: grouped_rules, EXACT_SUM: exact_sum_rules,
    PAIRS: pairs_rules,
}  # fmt: skip

MOST_LANES = 256
MOST_FRACTION_BITS = 28  # a cut product stays below 2^30
LEAST_ZERO_EXPONENT = -4096


def kernel(datapath: Datapath) -> int:
    """The number of the kernel that evaluates a datapath, field by field as it stands."""
    if _is_fused(datapath):
        return FUSED
    return next((number for number, rules in FLOAT_RULES.items() if rules(datapath) is not None), _integer(datapath))


def _is_fused(path: Datapath) -> bool:
    """A chain of fused sums of all products of a step and C, cut towards zero, with canonical NaNs.

    A zero exponent counts only where the largest label is below that of every
    non-zero C: it then cannot be told from one that always takes part.
    """
    tree, scale = path.tree, path.scale
    operands = (path.operand_a, path.operand_b, path.operand_c)
    if not isinstance(tree, Fused) or tree.to is None or path.product != Product() or path.result is not None:
        return False
    if any(operand != Operand() for operand in operands) or path.order is not None or path.k > MOST_LANES:
        return False
    bits, zero = tree.terms[0].fraction_bits, tree.terms[0].zero_exponent
    if bits is None or not 0 <= bits <= MOST_FRACTION_BITS:
        return False
    if any(t != Term(t.of, bits, "RZ", zero) or not isinstance(t.of, (Accumulator, Products)) for t in tree.terms):
        return False
    if sum(isinstance(term.of, Accumulator) for term in tree.terms) != 1:
        return False
    a, b = formats.get(path.a), formats.get(path.b)
    addends = [formats.get(name) for name in (path.c or tree.to.format, tree.to.format)]
    if not all(map(_is_plain, (a, b, *addends))) or a.fraction_bits + b.fraction_bits > 30:
        return False
    if scale is not None and (scale.where != "product" or not _is_power(formats.get(scale.format))):
        return False
    if zero is not None and not LEAST_ZERO_EXPONENT <= zero <= min(addend.min_exponent for addend in addends):
        return False
    return _result_is_plain(path, tree.to)


def _is_plain(fmt: Format) -> bool:
    return fmt.is_float and fmt.signed and fmt.subnormal and fmt.fraction_bits > 0 and fmt.container_bits <= 32


def _is_power(fmt: Format) -> bool:
    """A format of powers of two in one byte, without zero, sign and infinity."""
    plain = fmt.is_float and not (fmt.signed or fmt.subnormal or fmt.infinity)
    return plain and fmt.fraction_bits == 0 and fmt.container_bits == 8


def _result_is_plain(path: Datapath, to: Encode) -> bool:
    """Codes of ``to`` are codes of d, NaN included; zeros are positive, overflow is the same for both signs."""
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
    overflow = beyond == encode["beyond_negative"] and beyond in (0, 1)
    plain = to.zero == "positive" and to.subnormals == "keep" and to.first is None
    return path.special.nan == "canonical" and is_nan and overflow and plain


def _integer(datapath: Datapath) -> int:
    """An exact sum of plain integers or bits that wraps or saturates, or the interpreter.

    Plain: nothing masked or flushed, all products and C (s32) in one sum.
    """
    tree, product = datapath.tree, datapath.product
    a, b, d = (formats.get(name) for name in (datapath.a, datapath.b, datapath.d))
    whole = d.kind == "integer" and d.signed and d.bits == d.container_bits
    if not whole or datapath.c not in (None, "s32") or datapath.scale or datapath.result:
        return INTERPRETER
    ways = ("and", "xor") if a.kind == "bits" else ("exact",)
    if a.kind not in ("integer", "bits") or (a.kind, a.bits) != (b.kind, b.bits) or product.multiply not in ways:
        return INTERPRETER
    if replace(product, multiply="exact") != Product():
        return INTERPRETER
    if any(op != Operand() for op in (datapath.operand_a, datapath.operand_b, datapath.operand_c)):
        return INTERPRETER
    if not isinstance(tree, Exact) or tree.scaled or tree.to is None or tree.to.format != datapath.d or tree.to.first:
        return INTERPRETER
    kinds = sorted(type(term).__name__ for term in tree.terms)
    if kinds != (["Products"] if datapath.c is None else ["Accumulator", "Products"]):
        return INTERPRETER
    if tree.to.overflow == "wrap":
        return INTEGER_WRAPS if len(datapath.steps) == 1 or datapath.c is not None else INTERPRETER
    return INTEGER_SATURATES if len(datapath.steps) == 1 else INTERPRETER
