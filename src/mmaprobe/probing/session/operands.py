"""Exact lane values as operands and, where an instruction has them, block scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.formats import Format
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.exact_values import UnrepresentableError, code_of, power, say, split, top_exponent


@dataclass(frozen=True)
class Operands:
    """Codes of every lane, and of every scale block (empty: all scales 1)."""

    a: Codes
    b: Codes
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()


def operands_for(instruction: Instruction, terms: Mapping[int, Fraction], rest: Fraction) -> Operands:
    """Operands whose products are exactly ``terms``, by lane, and ``rest`` elsewhere; UnrepresentableError otherwise.

    A scale block gets the scale nearest to 1 under which its products exist.  Bits that the
    instruction multiplies by XOR make a product of 1 out of 1 and 0.
    """
    found, k = instruction.formats(), instruction.selected
    a, b, scale = found["a"], found["b"], found.get("scale_a")
    said = [*terms.values(), *([rest] if len(terms) < k else [])]
    if (pairs := pairs_of(instruction, said)) is not None:
        other = pairs[-1]
        of_a, of_b = (dict(zip(terms, (pair[side] for pair in pairs), strict=False)) for side in (0, 1))
        return Operands(Codes.of(k, other[0], of_a), Codes.of(k, other[1], of_b))
    if scale is None:
        value = next(value for value in said if split(a, b, value) is None)
        raise UnrepresentableError(f"no {instruction.a} x {instruction.b} product is {say(value)}")
    return _scaled(instruction, [terms.get(lane, rest) for lane in range(k)])


def pairs_of(instruction: Instruction, values: Sequence[Fraction]) -> list[tuple[int, int]] | None:
    """Operands of each of these products, with scales of 1; None where one has none."""
    found = instruction.formats()
    if instruction.multiply == "xor" and {*values} <= {0, 1}:
        return [(int(value), 0) for value in values]
    pairs = [split(found["a"], found["b"], value) for value in values]
    return None if None in pairs else [pair for pair in pairs if pair is not None]


def _scaled(instruction: Instruction, lanes: list[Fraction]) -> Operands:
    found = instruction.formats()
    width = instruction.scale_size * len(lanes) // instruction.k
    pairs: list[tuple[int, int]] = []
    scales: list[tuple[int, int]] = []
    for start in range(0, len(lanes), width):
        values = tuple(lanes[start : start + width])
        block = _block(found["a"], found["b"], found["scale_a"], values)
        if block is None:
            some = ", ".join(map(say, dict.fromkeys(values)))
            raise UnrepresentableError(f"no scale block of {instruction.a} x {instruction.b} holds {some}")
        pairs += block[0]
        scales.append(block[1])
    return Operands(
        Codes.listed(x for x, _ in pairs), Codes.listed(y for _, y in pairs),
        tuple(x for x, _ in scales), tuple(y for _, y in scales),
    )  # fmt: skip


ScaleBlock = tuple[tuple[tuple[int, int], ...], tuple[int, int]]


@lru_cache(maxsize=1 << 12)
def _block(a: Format, b: Format, scale: Format, lanes: tuple[Fraction, ...]) -> ScaleBlock | None:
    """Codes of a scale block's lanes and of its two scales; of normal operands if there are any."""
    distinct = dict.fromkeys(lanes)
    some = [value for value in distinct if value]
    if not some:
        return tuple((0, 0) for _ in lanes), (scale.one, scale.one)
    least = max(top_exponent(value) for value in some) - a.max_exponent - b.max_exponent - 1
    bottom = min(top_exponent(value) for value in some) - a.min_exponent - b.min_exponent
    for subnormal in (0, a.fraction_bits + b.fraction_bits):
        most = bottom + subnormal
        for exponent in dict.fromkeys((min(max(0, least), most), min(max(0, least + 1), most), most)):
            scales = code_of(scale, power(exponent - exponent // 2)), code_of(scale, power(exponent // 2))
            codes = {value: split(a, b, value / power(exponent)) for value in distinct} if None not in scales else {}
            if codes and None not in codes.values():
                return tuple(codes[value] or (0, 0) for value in lanes), (scales[0] or 0, scales[1] or 0)
    return None
