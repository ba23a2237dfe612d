"""A batch whose D is known without any model: small integers, whose dot products are exact in any order.

A, B and C are integers of at most 2, 2 and 8 (of one bit 0 and 1), scales 1 or
2, so that every partial sum of at most 256 products and C is below 2^11 in
magnitude: exact in f16, and left whole by any alignment of 10 fraction bits or
more.  Where ``clamp`` might limit a float to [0, 1], nobody knows whether it does:
the sums are 1 then, so that both give what is known.  gfx11's sums count a term of
another sign than C's a unit lower, zeros too: there every product has the sign of
C.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import operand_signs
from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.models.modifiers import of_tiles
from mmaprobe.operands.batch import Batch, Bits, flipped

Integers = NDArray[np.int64]

_WITHOUT_C = {("scale_d", "0"), ("enable_input_d", "0")}
_NO_ANSWER = frozenset({"disable_output_lane", "zero_column_mask"})


class WrongAnswerError(DeviceError):
    """A device came to its end with another D than the known answer."""


def known_answer(instruction: Instruction, size: int, seed: int) -> tuple[Batch, Bits]:
    """A batch of ``size`` items and its D (size, M, N); UsageError where the modifiers leave D open."""
    for key in instruction.modifier.keys() & _NO_ANSWER:
        raise UsageError(f"{instruction.id}: no answer is known beforehand with {key}, so that it cannot be run")
    rng = np.random.default_rng(seed)
    numbers: dict[str, Integers] = {}
    codes: dict[str, Bits] = {}
    for name, shape in instruction.shapes(size).items():
        if name == "metadata":
            codes[name] = rng.choice(np.array(legal_items(instruction.chunk), np.uint8), shape)
            continue
        fmt = instruction.formats()[name]
        numbers[name] = _integers(fmt, name, instruction, rng, shape)
        codes[name] = _encoded(fmt, numbers[name])
    if _wants_one_sign(instruction):
        codes |= _of_one_sign(instruction, codes)
        numbers |= {name: _decoded(instruction.formats()[name], codes[name]) for name in "abc"}
    batch = Batch(**codes)
    moved = of_tiles(instruction, batch)
    for name in "ab":
        if getattr(moved, name) is not codes[name]:
            numbers[name] = _decoded(instruction.formats()[name], getattr(moved, name))
    sums = _sums(instruction, numbers, codes.get("metadata"))
    fmt = instruction.formats()["d"]
    if "clamp" in instruction.modifier and fmt.is_float:
        batch, sums = _inside(instruction, batch, sums - _signed(instruction, "c", numbers["c"]))
    return batch, _encoded(fmt, sums)


def _wants_one_sign(instruction: Instruction) -> bool:
    """Whether it is one of gfx11's floating-point forms; those of gfx12 have the same names."""
    found = instruction.opcode.startswith(("v_wmma_", "v_dot2_")) and instruction.k <= 16
    return found and instruction.a in ("f16", "bf16")


def _of_one_sign(instruction: Instruction, codes: dict[str, Bits]) -> dict[str, Bits]:
    """A, B and C with other signs: after the modifiers every product has that of C, zeros too."""
    found = {}
    signs = operand_signs(instruction)
    for name, axis in (("a", -1), ("b", -2), ("c", -1)):
        mask, pair = instruction.formats()[name].sign_mask, signs.get(name, ("keep", "keep"))
        plain = codes[name] & ~codes[name].dtype.type(mask)
        found[name] = codes[name] if {"clear", "set"} & set(pair) else flipped(plain, axis, pair, mask)
    if "set" in signs.get("c", ()):
        found["a"] = flipped(found["a"], -1, ("flip", "flip"), instruction.formats()["a"].sign_mask)
    return found


def _inside(instruction: Instruction, batch: Batch, products: Integers) -> tuple[Batch, Integers]:
    """A batch of single vectors whose sums are 1 (of -|C| 0), by C, and A 0 where the products are neither 0 nor 1."""
    fmt, kept = instruction.formats(), (products == 0) | (products == 1)
    most = 0 if "set" in operand_signs(instruction)["c"] else 1
    assert batch.c is not None
    a = np.where(kept, batch.a, batch.a & batch.a.dtype.type(fmt["a"].sign_mask))
    one = np.where(kept & (products == most), 0, fmt["c"].one * most).astype(batch.c.dtype)
    c = batch.c & batch.c.dtype.type(fmt["c"].sign_mask) | one
    return replace(batch, a=a, c=c), np.full_like(products, most)


def answers(instruction: Instruction, d: Bits, expected: Bits) -> bool:
    """Whether D is the known answer; a zero may have either sign, which the direction of rounding decides."""
    zero = ~np.uint64(instruction.formats()["d"].sign_mask if instruction.formats()["d"].is_float else 0)
    return bool(((d == expected) | ((d & zero) | expected == 0)).all())


def _integers(
    fmt: formats.Format, name: str, instruction: Instruction, rng: np.random.Generator, shape: tuple[int, ...]
) -> Integers:
    if name.startswith("scale"):
        return rng.integers(1, 3, shape)
    if name == "c":
        if "scale_input_d" in instruction.modifier:
            return np.zeros(shape, np.int64)
        return rng.integers(-8 if fmt.signed else 0, 9, shape)
    if fmt.kind == "bits":
        return rng.integers(0, 2, shape)
    return rng.integers(-2 if fmt.signed else 0, 3, shape)


def _encoded(fmt: formats.Format, numbers: Integers) -> Bits:
    """Integers in a format, each exactly: they are few, so that each is encoded once."""
    places = numbers - numbers.min(initial=0)
    used = np.flatnonzero(np.bincount(places.ravel()))
    every = used + numbers.min(initial=0)
    overflow = "ieee" if fmt.is_float else "largest"
    codes = formats.encode(fmt, every < 0, np.abs(every), np.zeros_like(every), overflow=overflow)
    if (_decoded(fmt, codes) != every).any():
        raise UsageError(f"{fmt.name} does not hold every integer of the known answer")
    table: Bits = np.zeros(used.max(initial=0) + 1, codes.dtype)
    table[used] = codes
    found: Bits = table[places]
    return found


def _decoded(fmt: formats.Format, codes: Bits) -> Integers:
    """The integers that codes stand for."""
    back = formats.decode(fmt, codes)
    value = np.where(back.negative, -1, 1) * back.significand * np.exp2(back.exponent.astype(float))
    return np.asarray(value, np.int64)


def _signed(instruction: Instruction, name: str, numbers: Integers) -> Integers:
    """An operand with the sign that the instruction gives it; where even and odd lanes differ it has it already."""
    even, odd = operand_signs(instruction).get(name, ("keep", "keep"))
    if even != odd or even == "keep":
        return numbers
    return {"flip": -numbers, "clear": np.abs(numbers), "set": -np.abs(numbers)}[even]


def _sums(instruction: Instruction, numbers: dict[str, Integers], metadata: Bits | None) -> Integers:
    """D as integers: the sum over the lanes that A keeps, scaled, plus C."""
    a, b = (_signed(instruction, name, numbers[name]) for name in "ab")
    if metadata is not None:
        spread = np.zeros((*a.shape[:-1], instruction.k), np.int64)
        np.put_along_axis(spread, kept_positions(instruction, metadata), a, -1)
        a = spread
    if "scale_a" in numbers:
        a = a * np.repeat(numbers["scale_a"], instruction.scale_size, -1)
        b = b * np.repeat(numbers["scale_b"], instruction.scale_size, -2)
    a, b = a.astype(float), b.astype(float)  # exact too, and fast
    d = (a @ (1 - b) + (1 - a) @ b if instruction.multiply == "xor" else a @ b).astype(np.int64)
    if "c" in numbers and not _WITHOUT_C & set(instruction.modifiers):
        d = d + _signed(instruction, "c", numbers["c"])
    return d
