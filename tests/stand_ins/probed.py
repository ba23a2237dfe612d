"""Devices written for the tests of probes: plain Python fractions, or any datapath record."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Support
from mmaprobe.models.stages import evaluate
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath


def make_instruction(a: str, k: int, c: str | None, d: str, b: str | None = None, m: int = 1) -> Instruction:
    return Instruction(f"test.{a}.{k}.{d}", "test", "test", m, m, k, a, b or a, c, d)


@dataclass
class Standin:
    """A device that computes each dot product with ``dot(a codes, b codes, c code) -> d code``."""

    instruction: Instruction
    dot: Callable[[list[int], list[int], int | None], int]
    name: str = "standin"

    def info(self) -> dict[str, str]:
        return {"name": self.name}

    def instructions(self) -> Sequence[Instruction]:
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        return Support(True)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        count, m, n = batch.a.shape[0], instruction.m, instruction.n
        d = np.zeros((count, m, n), instruction.formats()["d"].dtype)
        for t, i, j in np.ndindex(count, m, n):
            c = None if batch.c is None else int(batch.c[t, i, j])
            d[t, i, j] = self.dot(batch.a[t, i].tolist(), batch.b[t, :, j].tolist(), c)
        return d


@dataclass
class Arithmetic:
    """A dot product in exact fractions: ``tree`` is nested tuples of leaves (lane or "c"), each rounded.

    A tuple of two is a rounded addition; ``("fused", F, *terms)`` aligns its
    terms to the largest exponent and cuts them at F fraction bits toward zero.
    Roundings are to nearest even; NaN and infinities are not covered (finite only).
    """

    instruction: Instruction
    tree: Any
    fmt: formats.Format = field(init=False)
    round_products: bool = False
    flush: bool = False
    calls: int = 0

    def __post_init__(self) -> None:
        self.fmt = self.instruction.formats()["d"]

    def __call__(self, a: list[int], b: list[int], c: int | None) -> int:
        f = self.instruction.formats()
        leaves: dict[Any, Fraction] = {
            k: self.operand(f["a"], x) * self.operand(f["b"], y) for k, (x, y) in enumerate(zip(a, b, strict=True))
        }
        if self.round_products:
            leaves = {k: self.rounded(p) for k, p in leaves.items()}
        if c is not None:
            leaves["c"] = self.operand(f["c"], c)
        return self.code(self.node(self.tree, leaves))

    def operand(self, fmt: formats.Format, code: int) -> Fraction:
        found = formats.decode(fmt, np.array([code], dtype=fmt.dtype))
        value = int(found.significand[0]) * Fraction(2) ** int(found.exponent[0])
        if self.flush and int(found.kind[0]) == formats.SUBNORMAL:
            return Fraction(0)
        return -value if found.negative[0] else value

    def node(self, tree: Any, leaves: dict[Any, Fraction]) -> Fraction:
        if not isinstance(tree, tuple):
            return leaves[tree]
        if tree[0] != "fused":
            return self.rounded(self.node(tree[0], leaves) + self.node(tree[1], leaves))
        terms = [self.node(t, leaves) for t in tree[2:]]
        top = max((exponent(t) for t in terms if t), default=0)
        quantum = Fraction(2) ** (top - tree[1])
        return self.rounded(sum((int(t / quantum) * quantum for t in terms), Fraction(0)))

    def rounded(self, value: Fraction) -> Fraction:
        if value == 0:
            return value
        quantum = Fraction(2) ** (max(exponent(value), self.fmt.min_exponent) - self.fmt.fraction_bits)
        out = round(value / quantum) * quantum
        return Fraction(0) if self.flush and abs(out) < Fraction(2) ** self.fmt.min_exponent else out

    def code(self, value: Fraction) -> int:
        power = value.denominator.bit_length() - 1
        bits = formats.encode(
            self.fmt, np.array([value < 0]), np.array([abs(value.numerator)], dtype=object), np.array([-power])
        )
        return int(bits[0])


def exponent(value: Fraction) -> int:
    return (
        abs(value.numerator).bit_length()
        - value.denominator.bit_length()
        - (abs(value) < Fraction(2) ** (abs(value.numerator).bit_length() - value.denominator.bit_length()))
    )


def arithmetic(instruction: Instruction, tree: Any, **more: Any) -> Standin:
    return Standin(instruction, Arithmetic(instruction, tree, **more))


@dataclass
class Path:
    """A datapath record as a device."""

    datapath: Datapath
    name: str = "datapath"

    @property
    def instruction(self) -> Instruction:
        p = self.datapath
        return make_instruction(p.a, p.k, p.c, p.d, p.b, m=8)

    def info(self) -> dict[str, str]:
        return {"name": self.name}

    def instructions(self) -> Sequence[Instruction]:
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        return Support(True)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        t, m, n, k = batch.a.shape[0], instruction.m, instruction.n, instruction.k
        a = np.broadcast_to(batch.a[:, :, None, :], (t, m, n, k)).reshape(-1, k)
        b = np.broadcast_to(batch.b.swapaxes(1, 2)[:, None, :, :], (t, m, n, k)).reshape(-1, k)
        c = None if batch.c is None else batch.c.reshape(-1)
        return evaluate(self.datapath, Batch(np.ascontiguousarray(a), np.ascontiguousarray(b), c)).reshape(t, m, n)


def noise(instruction: Instruction, seed: int = 1) -> Standin:
    """Random finite codes."""
    source = random.Random(seed)
    largest = instruction.formats()["d"].largest
    return Standin(instruction, lambda a, b, c: source.randrange(largest))
