"""Exact lane values as operands and, where an instruction has them, block scales."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.formats import Format
from mmaprobe.probing.terms import UnrepresentableError, code_of, power, say, split, top_exponent


@dataclass(frozen=True)
class Operands:
    """Codes of every lane, and of every scale block (empty: all scales 1)."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()


def operands_for(instruction: Instruction, lanes: list[Fraction]) -> Operands:
    """Operands whose products are exactly ``lanes``; UnrepresentableError where there are none.

    A scale block gets the scale nearest to 1 under which its products exist.  Bits that the
    instruction multiplies by XOR make a product of 1 out of 1 and 0.
    """
    found = instruction.formats()
    a, b, scale = found["a"], found["b"], found.get("scale_a")
    if instruction.multiply == "xor" and set(lanes) <= {0, 1}:
        return Operands(tuple(int(value) for value in lanes), (0,) * len(lanes))
    codes = [split(a, b, value) for value in lanes]
    if None not in codes:
        return Operands(*(tuple(column) for column in zip(*[pair for pair in codes if pair], strict=True)))
    if scale is None:
        value = lanes[codes.index(None)]
        raise UnrepresentableError(f"no {instruction.a} x {instruction.b} product is {say(value)}")
    width = instruction.scale_size * len(lanes) // instruction.k
    blocks = [_block(a, b, scale, tuple(lanes[i : i + width])) for i in range(0, len(lanes), width)]
    pairs = [pair for block in blocks for pair in block[0]]
    return Operands(
        tuple(x for x, _ in pairs), tuple(y for _, y in pairs),
        tuple(block[1][0] for block in blocks), tuple(block[1][1] for block in blocks),
    )  # fmt: skip


Block = tuple[tuple[tuple[int, int], ...], tuple[int, int]]


@lru_cache(maxsize=1 << 12)
def _block(a: Format, b: Format, scale: Format, lanes: tuple[Fraction, ...]) -> Block:
    """Codes of a scale block's lanes and of its two scales."""
    some = [value for value in lanes if value]
    if not some:
        return tuple((0, 0) for _ in lanes), (scale.one, scale.one)
    top = max(top_exponent(value) for value in some)
    reach = range(top - a.max_exponent - b.max_exponent - 2, top - a.min_exponent - b.min_exponent + 3)
    for exponent in sorted(reach, key=abs):
        scales = code_of(scale, power(exponent - exponent // 2)), code_of(scale, power(exponent // 2))
        codes = [split(a, b, value / power(exponent)) for value in lanes]
        if None not in scales and None not in codes:
            return tuple(pair for pair in codes if pair), (scales[0] or 0, scales[1] or 0)
    raise UnrepresentableError(f"no scaled {a.name} x {b.name} block holds {', '.join(map(say, dict.fromkeys(some)))}")
