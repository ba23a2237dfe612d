"""Every pair of codes of two operands, or of significands where codes are too many, in every lane; of scales, too.

A tile makes a pair of each row and each column, so that few tiles have all of them.  All lanes of a vector multiply
one pair.  Floats do so with signs that alternate: all but two of the products cancel, and what one lane gets wrong is
left over, behind nothing larger; where the result cannot hold two products, all but one cancel, C is minus what it
holds of that one, and the lane left out is the last or the first.  A pair with an infinity or a NaN, and every pair
where the sum leaves an integer's range, is alone: in one lane after the other, all others zeros.  A pair of scales is
alone as well, where blocks are few: all products of its block are 1, those of the others zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import unit
from mmaprobe.generators.domain import domain
from mmaprobe.generators.operands import mirrored
from mmaprobe.operands.batch import Batch, Bits

What = Literal["codes", "codes, and of scales,", "significands"]
CODES = 16
"""Bits of both operands' codes up to which all pairs of codes are made."""
SIGNIFICANDS = 20
"""Bits of both operands' fractions up to which all pairs of significands are."""
BLOCKS = 4
"""Scale blocks up to which all pairs of scales are made, 65,536 vectors each; no unit known has more."""
OUTPUTS = 1 << 18
"""Outputs of the tiles that are made at a time."""


@dataclass(frozen=True)
class Pass:
    """Rows of A and columns of B, whose every pair meets in the lanes whose sign is not 0; ``opposite``: C is minus
    the product.  Of a scale ``block`` they are its scales, and the lanes hold 1."""

    rows: Bits
    columns: Bits
    signs: tuple[int, ...]
    opposite: bool = False
    block: int | None = None

    @property
    def vectors(self) -> int:
        """How many pairs it makes."""
        return len(self.rows) * len(self.columns)


@dataclass(frozen=True)
class EveryPair:
    """All pairs of an instruction: ``what`` they are of, and how they are asked."""

    instruction: Instruction
    what: What
    passes: tuple[Pass, ...]

    @property
    def vectors(self) -> int:
        """How many vectors they are in all."""
        return sum(each.vectors for each in self.passes)

    def of_operands(self) -> EveryPair:
        """Without those of scales."""
        return replace(self, passes=tuple(each for each in self.passes if each.block is None))

    def tiles(self) -> Iterator[Batch]:
        """Whole tiles (n, M, K), (n, K, N), ...: some at a time, without the axis of MFMA blocks but whole of them."""
        for each in self.passes:
            yield from _tiles(self.instruction, each)


def every_pair(instruction: Instruction) -> EveryPair | None:
    """All pairs of codes, or of significands, of an instruction; None where they are too many."""
    t = domain(instruction)
    if t.a.bits + t.b.bits <= CODES:
        scales = tuple(_scales(instruction))
        what: What = "codes, and of scales," if scales else "codes"
        return EveryPair(instruction, what, (*_codes(instruction), *scales))
    if t.a.is_float and t.a.fraction + t.b.fraction <= SIGNIFICANDS:
        rows, columns = (_significands(name) for name in (instruction.a, instruction.b))
        return EveryPair(instruction, "significands", tuple(_finite(instruction, rows, columns)))
    return None


def in_blocks(instruction: Instruction, tiles: Batch) -> Batch:
    """The tiles as an instruction takes them, several MFMA blocks at once."""
    if instruction.blocks == 1:
        return tiles
    lead = (-1, instruction.blocks)
    return Batch(**{name: value.reshape(*lead, *value.shape[1:]) for name, value in tiles.items()})


def _codes(instruction: Instruction) -> Iterator[Pass]:
    t, k = domain(instruction), instruction.k
    a, b = (formats.get(name) for name in (instruction.a, instruction.b))
    rows, columns = (np.arange(f.code_limit).astype(f.dtype) for f in (a, b))
    if not a.is_float:
        fits = k << (t.a.bits + t.b.bits) <= 1 << (t.d.bits - 1)
        yield from [Pass(rows, columns, (1,) * k)] if fits else _alone(k, rows, columns)
        return
    special = [formats.decode(f, x).kind >= formats.INFINITE for f, x in ((a, rows), (b, columns))]
    finite = [x[~mask] for x, mask in zip((rows, columns), special, strict=True)]
    yield from _finite(instruction, finite[0], finite[1])
    if t.a.top + t.b.top + 2 > t.d.top and k % 2 == 0:
        yield Pass(finite[0], finite[1], (1, -1) * (k // 2))
    if special[0].any():
        yield from _alone(k, rows[special[0]], columns)
    if special[1].any():
        yield from _alone(k, finite[0], columns[special[1]])


def _finite(instruction: Instruction, rows: Bits, columns: Bits) -> Iterator[Pass]:
    t, k = domain(instruction), instruction.k
    turns = (1, -1) * k
    if t.d.fraction >= t.a.fraction + t.b.fraction + 2 or not t.c.is_float:
        yield Pass(rows, columns, (*turns[: k - 1], 1))
    elif k % 2:
        yield Pass(rows, columns, turns[:k], True)
    else:
        yield Pass(rows, columns, (*turns[: k - 1], 0), True)
        yield Pass(rows, columns, (0, *turns[: k - 1]), True)


def _alone(k: int, rows: Bits, columns: Bits) -> Iterator[Pass]:
    for lane in range(k):
        yield Pass(rows, columns, tuple(int(number == lane) for number in range(k)))


def _scales(instruction: Instruction) -> Iterator[Pass]:
    if instruction.scale is None or instruction.k // instruction.scale_size > BLOCKS:
        return
    fmt, size = formats.get(instruction.scale), instruction.scale_size
    every = np.arange(fmt.code_limit).astype(fmt.dtype)
    for block in range(instruction.k // size):
        yield Pass(every, every, tuple(int(lane // size == block) for lane in range(instruction.k)), block=block)


def _significands(name: str) -> Bits:
    """The values from 1 up to below 2."""
    fmt = formats.get(name)
    fraction = np.arange(1 << fmt.fraction_bits, dtype=np.uint64) << np.uint64(fmt.padding)
    found: Bits = (np.uint64(fmt.one) + fraction).astype(fmt.dtype)
    return found


def _tiles(instruction: Instruction, each: Pass) -> Iterator[Batch]:
    m, n, blocks = instruction.m, instruction.n, instruction.blocks
    rows, columns = _chunks(each.rows, m), _chunks(each.columns, n)
    pairs = np.indices((len(rows), len(columns))).reshape(2, -1)
    pairs = np.pad(pairs, ((0, 0), (0, -pairs.shape[1] % blocks)), mode="edge")
    step = max(OUTPUTS // (m * n * blocks), 1) * blocks
    for start in range(0, pairs.shape[1], step):
        row, column = pairs[:, start : start + step]
        yield _tile(instruction, each, rows[row], columns[column])


def _tile(instruction: Instruction, each: Pass, rows: Bits, columns: Bits) -> Batch:
    """Tiles of rows (n, M) and columns (n, N)."""
    count, k, signs = len(rows), instruction.k, np.array(each.signs)
    live, scales = signs != 0, {}
    if instruction.scale is not None:
        groups = k // instruction.scale_size
        scales["scale_a"] = np.full((count, instruction.m, groups), unit(instruction.scale))
        scales["scale_b"] = np.full((count, groups, instruction.n), unit(instruction.scale))
    if each.block is not None:
        scales["scale_a"][:, :, each.block], scales["scale_b"][:, each.block, :] = rows, columns
        ones = [(f.one, f.dtype) for f in (formats.get(instruction.a), formats.get(instruction.b))]
        rows, columns = (np.full_like(x, *one) for x, one in zip((rows, columns), ones, strict=True))
    plus, minus = columns[:, None, :], _minus(instruction.b, columns)[:, None, :]
    b: Bits = np.where(signs[:, None] > 0, plus, np.where(live[:, None], minus, np.zeros_like(plus)))
    operands: dict[str, Any] = {"a": np.where(live, rows[:, :, None], np.zeros_like(rows[:, :, None])), "b": b}
    if instruction.c is not None:
        shape, dtype = (count, instruction.m, instruction.n), formats.get(instruction.c).dtype
        x, y = (np.broadcast_to(v, shape).astype(np.uint64) for v in (rows[:, :, None], columns[:, None, :]))
        c = mirrored(domain(instruction), x, y, 0, 0).astype(dtype) if each.opposite else np.zeros(shape, dtype)
        operands["c"] = c
    return Batch(**{name: np.ascontiguousarray(value) for name, value in (operands | scales).items()})


def _chunks(codes: Bits, size: int) -> Bits:
    """Rows of ``size`` codes; the last one is filled up with the last code."""
    found: Bits = np.pad(codes, (0, -len(codes) % size), mode="edge").reshape(-1, size)
    return found


def _minus(name: str, codes: Bits) -> Bits:
    """Codes with the other sign, where the format has one of them."""
    fmt = formats.get(name)
    if not fmt.is_float:
        return codes
    sign = fmt.dtype.type(fmt.sign_mask)
    kept = (codes & ~sign) == 0 if fmt.nan == "negative_zero" else np.zeros(codes.shape, bool)
    found: Bits = np.where(kept, codes, codes ^ sign)
    return found
