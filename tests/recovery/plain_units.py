"""Units of chips that nobody has built, in plain integers: nothing of the record, the engine or the formats is in them.

A value is ``significand * 2**exponent`` as Python integers.  Units that are inside the grammar are to be recovered;
those outside have one oddity that no datapath says, and are to be recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Support
from mmaprobe.operands.batch import Batch, Bits

Lanes = list[int]
NAN, INF = "nan", "inf"


@dataclass(frozen=True)
class Layout:
    """A float of IEEE's kind: sign, exponent field, fraction; ``finite``: the largest exponent is as the others."""

    exponent: int
    fraction: int
    finite: bool = False

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def top(self) -> int:
        """The first exponent field of no number."""
        return (1 << self.exponent) - 1 + self.finite

    def read(self, code: int) -> tuple[str, int, int, int]:
        """(kind, signed significand, exponent of its last bit, exponent as encoded)."""
        fraction, field = code & ((1 << self.fraction) - 1), code >> self.fraction & ((1 << self.exponent) - 1)
        sign = -1 if code >> (self.exponent + self.fraction) & 1 else 1
        if field == self.top:
            return (NAN if fraction else INF), sign, 0, 0
        size = fraction + (bool(field) << self.fraction)
        at = max(field, 1) - self.bias
        return "", sign * size, at - self.fraction, at

    def write(self, value: int, last: int, mode: str) -> int:
        """``value * 2**last`` rounded once; subnormal results are kept, a sum of nothing is +0."""
        sign = self.minus * (value < 0)
        size = abs(value)
        if not size:
            return sign
        lowest = 1 - self.bias - self.fraction
        leading = size.bit_length() - 1 + last
        place = max(leading - self.fraction, lowest)
        kept = _cut(size, place - last, mode, value < 0)
        if kept >= 1 << (self.fraction + 1):
            kept, place = kept >> 1, place + 1
        field = place - lowest + (kept >> self.fraction)
        if field >= self.top:
            largest = self.top << self.fraction
            inward = self.finite or mode == "RZ" or (mode == "RD" and value > 0) or (mode == "RU" and value < 0)
            return sign | (largest - 1 if inward else largest)
        return sign | field << self.fraction | kept & ((1 << self.fraction) - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def minus(self) -> int:
        return 1 << (self.exponent + self.fraction)


def _cut(size: int, places: int, mode: str, negative: bool) -> int:
    """``size`` without its last ``places`` bits, rounded."""
    if places <= 0:
        return size << -places
    kept, rest, half = size >> places, size & ((1 << places) - 1), 1 << (places - 1)
    up = {
        "RZ": False,
        "RD": negative and rest > 0,
        "RU": not negative and rest > 0,
        "RNE": rest > half or (rest == half and kept & 1 == 1),
        "RNA": rest >= half,
    }[mode]
    return kept + up


F16, BF16, TF32, F32 = Layout(5, 10), Layout(8, 7), Layout(8, 10), Layout(8, 23)
E5M2 = Layout(5, 2)
FINITE_F16, FINITE_E5M2 = Layout(5, 10, True), Layout(5, 2, True)


@dataclass(frozen=True)
class Term:
    """A product or c: its value, its last bit's exponent, and the exponent that it shows."""

    value: int
    last: int
    label: int
    negative: bool


def special(of: Layout, to: Layout, a: Lanes, b: Lanes, c: int, nan: int, of_c: Layout) -> int | None:
    """The answer where an operand is special: one NaN for all, else the infinity."""
    signs = set()
    for x, y in zip(a, b, strict=True):
        first, second = of.read(x), of.read(y)
        if NAN in (first[0], second[0]):
            return nan
        if INF in (first[0], second[0]):
            if not (first[0] == INF or first[1]) or not (second[0] == INF or second[1]):
                return nan
            signs.add((first[1] < 0) != (second[1] < 0))
    kind, sign, _, _ = of_c.read(c)
    if kind == NAN:
        return nan
    if kind == INF:
        signs.add(sign < 0)
    if len(signs) == 2:
        return nan
    return None if not signs else to.infinity | to.minus * signs.pop()


def terms(of: Layout, a: Lanes, b: Lanes) -> list[Term]:
    """The exact products."""
    found = []
    for x, y in zip(a, b, strict=True):
        _, first, last_x, at_x = of.read(x)
        _, second, last_y, at_y = of.read(y)
        negative = bool((x ^ y) & of.minus)
        found.append(Term(first * second, last_x + last_y, at_x + at_y, negative))
    return found


def of_c(layout: Layout, c: int) -> Term:
    _, value, last, at = layout.read(c)
    return Term(value, last, at, bool(c & layout.minus))


def total(parts: Sequence[Term]) -> tuple[int, int]:
    """The exact sum, and the exponent of its last bit."""
    last = min(part.last for part in parts)
    return sum(part.value << (part.last - last) for part in parts), last


def aligned(parts: Sequence[Term], bits: int, mode: str = "RZ") -> tuple[int, int]:
    """Terms cut so many bits below the largest exponent of those that are not zero, then added."""
    live = [part for part in parts if part.value]
    if not live:
        return 0, 0
    last = max(part.label for part in live) - bits
    return sum(
        (1 if part.value > 0 else -1) * _cut(abs(part.value), last - part.last, mode, part.value < 0) for part in live
    ), last


# --- inside the grammar


def grid_27(a: Lanes, b: Lanes, c: int) -> int:
    """f16, K = 4: all five terms cut 27 bits below the largest, one rounding to nearest even."""
    found = special(F16, F32, a, b, c, 0x7FFF_FFFF, F32)
    return F32.write(*aligned([*terms(F16, a, b), of_c(F32, c)], 27), "RNE") if found is None else found


def two_halves(a: Lanes, b: Lanes, c: int) -> int:
    """f16, K = 8: two steps of four lanes, terms cut at 24 bits, each step toward zero to f32."""
    found = special(F16, F32, a, b, c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    for half in (slice(0, 4), slice(4, 8)):
        if F32.read(c)[0]:  # a first half that overflowed
            return c
        c = F32.write(*aligned([*terms(F16, a[half], b[half]), of_c(F32, c)], 24), "RZ")
    return c


def alternative_half(a: Lanes, b: Lanes, c: int) -> int:
    """f16 whose largest exponent holds numbers, K = 4: terms cut 26 bits below the largest, nearest even."""
    kind, sign, _, _ = F32.read(c)
    if kind:
        return 0x7FC0_0000 if kind == NAN else F32.infinity | F32.minus * (sign < 0)
    return F32.write(*aligned([*terms(FINITE_F16, a, b), of_c(F32, c)], 26), "RNE")


def finite_bytes(a: Lanes, b: Lanes, c: int) -> int:
    """e5m2 without infinities and NaNs, exact sums of pairs, each added to the last in such an f16: what is larger
    than the largest becomes that."""
    products, acc = terms(FINITE_E5M2, a, b), c
    for i in range(0, len(products), 2):
        acc = FINITE_F16.write(*total([*products[i : i + 2], of_c(FINITE_F16, acc)]), "RNE")
    return acc


def exact_down(a: Lanes, b: Lanes, c: int) -> int:
    """e5m2, K = 8: everything added exactly, one rounding to nearest, ties away, to f32."""
    found = special(E5M2, F32, a, b, c, 0x7FC0_0000, F32)
    return F32.write(*total([*terms(E5M2, a, b), of_c(F32, c)]), "RNA") if found is None else found


def halves_of_f16(a: Lanes, b: Lanes, c: int) -> int:
    """f16 with f16 results, K = 4: everything added exactly, one rounding toward zero."""
    found = special(F16, F16, a, b, c, 0x7FFF, F16)
    return F16.write(*total([*terms(F16, a, b), of_c(F16, c)]), "RZ") if found is None else found


FACTOR_NAN, INVALID, QUIET = 0xFFC00A3D, 0xFFC00000, 0x00400000


def by_cause(a: Lanes, b: Lanes, c: int) -> int | None:
    """RDNA4's answer where an f16 or c is special: a NaN says what it comes from, one of c is its own."""
    pairs = [(F16.read(x), F16.read(y)) for x, y in zip(a, b, strict=True)]
    if any(NAN in (first[0], second[0]) for first, second in pairs):
        return FACTOR_NAN
    infinite = [(first, second) for first, second in pairs if INF in (first[0], second[0])]
    signs = {(first[1] < 0) != (second[1] < 0) for first, second in infinite}
    if len(signs) == 2 or any(kind != INF and not size for pair in infinite for kind, size, _, _ in pair):
        return INVALID
    kind, sign, _, _ = F32.read(c)
    if kind == NAN:
        return c | QUIET
    signs |= {sign < 0} if kind == INF else set()
    if len(signs) == 2:
        return INVALID
    return None if not signs else F32.infinity | F32.minus * signs.pop()


def floored_pair(a: Lanes, b: Lanes, c: int) -> int:
    """RDNA4's V_DOT2_F32_F16: products cut downward 24 bits below the larger, then their sum and c, whose grid reaches
    two bits further; a c of which nothing is left is nothing."""
    if (found := by_cause(a, b, c)) is not None:
        return found
    products, term = terms(F16, a, b), of_c(F32, c)
    both, last = aligned(products, 24, "RD")
    labels = [product.label for product in products if product.value]
    grid = max([label - 24 for label in labels] + [term.label - 26])
    of_all = _floor(both, grid - last) + _floor(term.value, grid - term.last)
    if grid > -126 and _floor(term.value, grid - term.last) == -1 and term.label < grid:
        of_all += 1
    return F32.write(of_all, grid, "RNE")


def _floor(value: int, places: int) -> int:
    return value >> places if places > 0 else value << -places


def narrow_sum(a: Lanes, b: Lanes, c: int) -> int:
    """As ``grid_27``, but the sum is held in two's complement with one bit above the largest exponent, and wraps."""
    found = special(F16, F32, a, b, c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    value, last = aligned([*terms(F16, a, b), of_c(F32, c)], 27)
    size = 1 << 27 + 2
    return F32.write((value + size) % (2 * size) - size, last, "RNE")


def short_sticky(a: Lanes, b: Lanes, c: int) -> int:
    """As ``grid_27``, to nearest by the next three bits alone: what lies below them is not seen."""
    found = special(F16, F32, a, b, c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    parts = [*terms(F16, a, b), of_c(F32, c)]
    live = [part for part in parts if part.value]
    seen = max((part.label for part in live), default=0) - 27 - 3
    signed = [(1 if part.value > 0 else -1, _cut(abs(part.value), seen - part.last, "RZ", False)) for part in live]
    return F32.write(sum(sign * _cut(size, 3, "RNE", False) for sign, size in signed), seen + 3, "RNE")


def stuck_shift(a: Lanes, b: Lanes, c: int) -> int:
    """As ``grid_27``, but no term is shifted by more than 23 places: what is further below looks larger."""
    found = special(F16, F32, a, b, c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    parts = [*terms(F16, a, b), of_c(F32, c)]
    top = max((part.label for part in parts if part.value), default=0)
    moved = [replace(part, last=part.last + max(0, top - 23 - part.label)) for part in parts]
    return F32.write(*aligned(moved, 27), "RNE")


def small_multiplier(a: Lanes, b: Lanes, c: int) -> int:
    """As ``grid_27``, of products that lack the partial products of their six lowest columns."""
    found = special(F16, F32, a, b, c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    parts = []
    for x, y, part in zip(a, b, terms(F16, a, b), strict=True):
        first, second = abs(F16.read(x)[1]), abs(F16.read(y)[1])
        bits = [(i, j) for i in range(11) for j in range(11) if first >> i & 1 and second >> j & 1 and i + j >= 6]
        size = sum(1 << i + j for i, j in bits)
        parts.append(replace(part, value=-size if part.negative else size))
    return F32.write(*aligned([*parts, of_c(F32, c)], 27), "RNE")


def in_parts(of: Layout, code: int, count: int, mode: str) -> list[int]:
    """The parts of an f32 as codes of a narrower float, each what is left, rounded; one part of what is no number."""
    kind, value, last, _ = F32.read(code)
    if kind:
        return [of.infinity | of.minus * (value < 0) | (kind == NAN)]
    found = [of.write(value, last, mode) | of.minus * (code >> 31)]
    while len(found) < count and not of.read(found[-1])[0]:
        _, part, at, _ = of.read(found[-1])
        low = min(at, last)
        value, last = (value << last - low) - (part << at - low), low
        found.append(of.write(value, last, mode))
    return found


def bf16_thrice(a: Lanes, b: Lanes, c: int) -> int:
    """f32, K = 4: each operand as three bf16, the six largest products of a lane terms of one sum cut at 26 bits."""
    first, second = ([in_parts(BF16, code, 3, "RNE") for code in side] for side in (a, b))
    found = special(BF16, F32, [x[0] for x in first], [y[0] for y in second], c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    pairs = [(x[i], y[j]) for x, y in zip(first, second, strict=True) for i in range(3) for j in range(3 - i)]
    return F32.write(*aligned([*terms(BF16, [x for x, _ in pairs], [y for _, y in pairs]), of_c(F32, c)], 26), "RNE")


def tf32_library(a: Lanes, b: Lanes, c: int) -> int:
    """f32, K = 4, by three instructions of tf32: what is left of a, then of b, then both without it, each a sum cut at
    24 bits and truncated; an infinity leaves one of the other sign."""
    first, second = ([in_parts(TF32, code, 2, "RNA") for code in side] for side in (a, b))
    for side in (first, second):
        for parts in side:
            if len(parts) == 1:
                parts.append(parts[0] if TF32.read(parts[0])[0] == NAN else parts[0] ^ TF32.minus)
    for i, j in ((1, 0), (0, 1), (0, 0)):
        x, y = [parts[i] for parts in first], [parts[j] for parts in second]
        found = special(TF32, F32, x, y, c, 0x7FFF_FFFF, F32)
        c = F32.write(*aligned([*terms(TF32, x, y), of_c(F32, c)], 24), "RZ") if found is None else found
    return c


def saturating(a: Lanes, b: Lanes, c: int) -> int:
    """u8 times s8 into s32, K = 8, held within s32 at the end."""
    value = (c - (1 << 32) if c >> 31 else c) + sum(x * (y - 256 if y >> 7 else y) for x, y in zip(a, b, strict=True))
    return max(-(1 << 31), min((1 << 31) - 1, value)) & 0xFFFF_FFFF


# --- outside: one oddity each


def deaf_to_tiny_c(a: Lanes, b: Lanes, c: int) -> int:
    """bf16, K = 4, as ``grid_27``, but a subnormal c is lost where the products cancel."""
    found = special(BF16, F32, a, b, c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    products = terms(BF16, a, b)
    lost = c & 0x7F80_0000 == 0 and any(part.value for part in products) and total(products)[0] == 0
    left = [] if lost else [of_c(F32, c)]
    return F32.write(*aligned([*products, *left], 27), "RNE")


def short_lane(a: Lanes, b: Lanes, c: int) -> int:
    """As ``grid_27``, but lane 2 loses the last bit of negative products."""
    found = special(F16, F32, a, b, c, 0x7FFF_FFFF, F32)
    if found is not None:
        return found
    parts = [*terms(F16, a, b), of_c(F32, c)]
    odd = parts[2]
    if odd.value < 0:
        parts[2] = Term(-(-odd.value & ~1), odd.last, odd.label, True)
    return F32.write(*aligned(parts, 27), "RNE")


def sign_of_rounding(a: Lanes, b: Lanes, c: int) -> int:
    """As ``exact_down``, but negative sums beside a negative c are rounded toward zero."""
    found = special(E5M2, F32, a, b, c, 0x7FC0_0000, F32)
    if found is not None:
        return found
    value, last = total([*terms(E5M2, a, b), of_c(F32, c)])
    return F32.write(value, last, "RZ" if value < 0 and of_c(F32, c).value < 0 else "RNA")


Unit = Callable[[Lanes, Lanes, int], int]
INSIDE: dict[str, tuple[Unit, tuple[str, str, int]]] = {
    "grid_27": (grid_27, ("f16", "f32", 4)),
    "two_halves": (two_halves, ("f16", "f32", 8)),
    "exact_down": (exact_down, ("e5m2", "f32", 8)),
    "alternative_half": (alternative_half, ("e5m10f", "f32", 4)),
    "finite_bytes": (finite_bytes, ("e5m2f", "e5m10f", 8)),
    "halves_of_f16": (halves_of_f16, ("f16", "f16", 4)),
    "floored_pair": (floored_pair, ("f16", "f32", 2)),
    "narrow_sum": (narrow_sum, ("f16", "f32", 4)),
    "short_sticky": (short_sticky, ("f16", "f32", 4)),
    "stuck_shift": (stuck_shift, ("f16", "f32", 4)),
    "small_multiplier": (small_multiplier, ("f16", "f32", 4)),
    "bf16_thrice": (bf16_thrice, ("f32", "f32", 4)),
    "tf32_library": (tf32_library, ("f32", "f32", 4)),
    "saturating": (saturating, ("u8", "s32", 8)),
}
OUTSIDE: dict[str, tuple[Unit, tuple[str, str, int]]] = {
    "deaf_to_tiny_c": (deaf_to_tiny_c, ("bf16", "f32", 4)),
    "short_lane": (short_lane, ("f16", "f32", 4)),
    "sign_of_rounding": (sign_of_rounding, ("e5m2", "f32", 8)),
}
"""By name: the unit; the format of a and b (s8 beside u8), that of c and d, K."""


class PlainUnit:
    """A unit as a device: it answers tiles and says nothing of itself."""

    concurrent: ClassVar[bool] = True
    name = "a unit in plain integers"

    def __init__(self, unit: Unit, of: tuple[str, str, int]) -> None:
        operand, result, k = of
        second = "s8" if operand == "u8" else operand
        self.unit = unit
        self.instruction = Instruction(
            f"plain.{unit.__name__}", f"plain.{unit.__name__}", "plain", 1, 1, k, operand, second, result, result,
            saturates=operand == "u8",
        )  # fmt: skip

    def info(self) -> dict[str, str]:
        return {"architecture": "plain"}

    def instructions(self) -> Sequence[Instruction]:
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        return Support(instruction == self.instruction, f"only {self.instruction.id}")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """Tiles of one row and one column."""
        assert batch.c is not None
        a, b, c = batch.a.reshape(len(batch.c), -1), batch.b.reshape(len(batch.c), -1), batch.c.reshape(-1)
        return self.answers(a, b, c).reshape(batch.c.shape)

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        assert vectors.c is not None
        return self.answers(vectors.a, vectors.b, vectors.c)

    def answers(self, a: Bits, b: Bits, c: Bits) -> Bits:
        rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        return np.array([self.unit(x, y, z) for x, y, z in rows], c.dtype)
