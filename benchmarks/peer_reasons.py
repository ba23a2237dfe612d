"""Why the two differ on a vector. Each class is a condition on vector and results: nothing else passes under it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mmaprobe import formats
from mmaprobe.formats import INFINITE, NAN, Format
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Exact, Fused, walk

UNEXPLAINED = "unexplained"
REASONS = {
    "another NaN": "Both are NaN with different codes. The peer hands on what this processor's own floating-point unit "
    "or its own constant gives. Ours is what the parameter file says. For f64 of sm_90a that was measured on an H100: "
    "each multiply-add hands on the first NaN of b, the sum so far and a; sm_100a and sm_120a are taken to do the "
    "same. Elsewhere it is one code whatever came in, and which NaN that hardware answers is open.",
    "a sum of zeros": "The exact sum has only zero terms, all negative: ours is -0 as in IEEE 754, the peer sums from "
    "+0. Which one the hardware answers is open.",
    "a negative sum that rounds to zero": "Ours keeps the sign of the exact sum, the peer loses it in its detour "
    "through double precision. The hardware's answer is open.",
    "a NaN accumulator cut to zero": "Theirs: the rule that drops a C far below the largest product also drops a C "
    "that is NaN or infinite, whose exponent reads as a small one; the NaN of the first step is lost in the second.",
    "infinity from a double-precision sum": "Theirs: infinity is taken from a sum in double precision that rounds up "
    "past the largest number; the exact sum rounds to the largest number.",
    "a tie below the lowest normal number": "Theirs: next to 2^-126 it looks for a tie at half the spacing, as below "
    "any other power of two, but numbers there lie as far apart as above it.",
    UNEXPLAINED: "A finding: look at it.",
}


def _decode(fmt: Format, bits: Bits) -> tuple[Fraction, bool]:
    """The value of a code, and whether it is NaN or infinite (its value is 0 then)."""
    parts = formats.decode(fmt, bits)
    if parts.kind[0] in (NAN, INFINITE):
        return Fraction(0), True
    value = Fraction(int(parts.significand[0])) * Fraction(2) ** int(parts.exponent[0])
    return (-value if parts.negative[0] else value), False


def _is(kind: int, name: str, code: int) -> bool:
    fmt = formats.get(name)
    return bool(formats.decode(fmt, np.array([code], fmt.dtype)).kind[0] == kind)


def exact_sum(datapath: Datapath, vector: Batch) -> tuple[Fraction, bool]:
    """a . b + c over all lanes, and whether an operand is NaN or infinite."""
    a, b = formats.get(datapath.a), formats.get(datapath.b)
    assert vector.c is not None
    total, special = _decode(formats.get(datapath.c or datapath.d), vector.c)
    for k in range(datapath.k):
        (x, odd_x), (y, odd_y) = _decode(a, vector.a[:, k]), _decode(b, vector.b[:, k])
        total, special = total + x * y, special or odd_x or odd_y
    return total, special


def reason(datapath: Datapath, vector: Batch, ours: int, theirs: int) -> str:
    """The class of a difference: a key of REASONS."""
    nan_ours, nan_theirs = (_is(NAN, datapath.d, code) for code in (ours, theirs))
    if nan_ours and nan_theirs:
        return "another NaN"
    total, special = exact_sum(datapath, vector)
    if ours == formats.get(datapath.d).sign_mask and theirs == 0:
        return "a sum of zeros" if total == 0 else "a negative sum that rounds to zero"
    cuts = [term for node in walk(datapath.tree) if isinstance(node, Fused) for term in node.terms if term.cutoff]
    if cuts and special and (nan_ours or _is(INFINITE, datapath.d, ours)) and not nan_theirs:
        return "a NaN accumulator cut to zero"
    if isinstance(datapath.tree, Exact) and _is(INFINITE, datapath.d, theirs) and not special:
        return "infinity from a double-precision sum"
    sizes = {code & ~formats.get(datapath.d).sign_mask for code in (ours, theirs)}
    if isinstance(datapath.tree, Exact) and datapath.d == "f32" and sizes == {0x007FFFFF, 0x00800000}:
        return "a tie below the lowest normal number"
    return UNEXPLAINED
