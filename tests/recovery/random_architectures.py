"""Random architectures: datapaths drawn from a grammar of their own, each named by its seed.

The grammar is that of the project's aims, not of the derivation: K from 1 to 64, steps of any
divisor, lanes contiguous, by their remainder modulo 2 to 8 or (5 %) permuted; aligned sums of 3 to
60 fraction bits, C with as many or with its own; exact sums, chains and trees; every rounding at
every place; a zero exponent from -400 to 40 or none; each operand, product, sum and result flushed
or not; C fused, first, last or added to a sum from zero; every pair of operand formats in the
catalog; results of f16, bf16, f32, f64 and of 3 to 23 fraction bits in f32; every NaN rule; scales
of 16 or 32 lanes before or after the alignment.  This file must not import from ``derivation``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.models.bit_budget import bit_budget
from mmaprobe.parameters.datapath import (
    SUBNORMALS,
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
)

T = TypeVar("T")

ALIKE = ("f16", "bf16", "tf32", "f32", "f64", "s16", "u16", "b1", "ti16")
MIXED = (("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), ("e4m3fnuz", "e5m2fnuz"), ("s8", "u8"), ("s4", "u4"))
PAIRS = (
    *((name, name) for name in ALIKE), *((a, b) for group in MIXED for a in group for b in group),
    ("s16", "u16"), ("u16", "s16"),
)  # fmt: skip
FLOATS = tuple(pair for pair in PAIRS if formats.get(pair[0]).is_float)
INTEGERS = tuple(pair for pair in PAIRS if not formats.get(pair[0]).is_float and "u16" not in pair)
"""Drawn: u16 came later and stands for s16 in sums of more than one product, so that every seed draws what it did."""
SCALED = tuple((a, b) for a in MIXED[0] for b in MIXED[0])
SCALES = ("ue8m0", "ue4m3", "ue5m3")
RESULTS = ("f16", "bf16", "f32", "f64", "e8mN")
KINDS = {"fused": 50, "groups": 8, "exact": 10, "chain": 10, "tree": 8, "scaled": 9, "integer": 5}
SHAPES = ((16, 8), (16, 16), (64, 8), (32, 32), (8, 8), (4, 4), (1, 1))
ACC = Accumulator()


@dataclass(frozen=True)
class Case:
    """One random architecture: its only instruction, what that computes, and the kind of its sums."""

    seed: int
    kind: str
    instruction: Instruction
    datapath: Datapath

    @property
    def name(self) -> str:
        return f"seed_{self.seed}"


class Draw:
    """Choices from one source of randomness (``random.Random(seed)``, or hypothesis's own)."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def of(self, *choices: T) -> T:
        """One of the choices, all alike."""
        return self.source.choice(choices)

    def weighted(self, weights: dict[str, int]) -> str:
        """A key, as often as its weight says."""
        return self.source.choices(list(weights), list(weights.values()))[0]

    def chance(self, percent: int) -> bool:
        return self.source.randrange(100) < percent

    def whole(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return self.source.randint(low, high)

    def shuffled(self, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(self.source.sample(items, len(items)))

    def rounding(self) -> str:
        """Any rounding; half of the time one of the two that units use most."""
        return self.of("RZ", "RNE") if self.chance(50) else self.of(*formats.ROUNDINGS)

    def subnormals(self) -> Any:
        return "keep" if self.chance(60) else self.of(*SUBNORMALS)

    def zero_exponent(self) -> int | None:
        """None, any integer of the range, or one where formats have their lowest values."""
        if self.chance(50):
            return None
        return self.whole(-400, 40) if self.chance(50) else self.whole(-160, 0)


def case(seed: int) -> Case:
    """The random architecture named by a seed."""
    return draw_case(random.Random(f"architecture {seed}"), seed)


def draw_case(source: random.Random, seed: int = 0) -> Case:
    """A random architecture that the native engine holds; drawn again until one is."""
    draw = Draw(source)
    while True:
        kind = draw.weighted(KINDS)
        datapath = _datapath(draw, kind)
        if bit_budget(datapath).width is not None:
            return Case(seed, kind, _instruction(draw, seed, datapath), datapath)


def _instruction(draw: Draw, seed: int, datapath: Datapath) -> Instruction:
    m, n = draw.of(*SHAPES)
    scale, name = datapath.scale, f"random.seed_{seed}"
    to = datapath.tree.to  # type: ignore[union-attr]
    return Instruction(
        name, name, "random", m, n, datapath.k, datapath.a, datapath.b, datapath.c, datapath.d,
        scale=scale.format if scale else None, scale_size=scale.size if scale else 0,
        multiply=datapath.product.multiply, saturates=datapath.d == "s32" and to.overflow == "largest",
    )  # fmt: skip


def _datapath(draw: Draw, kind: str) -> Datapath:
    if kind == "integer":
        return _integer(draw)
    a, b = draw.of(*(SCALED if kind == "scaled" else FLOATS))
    wanted = draw.of(*RESULTS)
    d = "f32" if wanted == "e8mN" else wanted
    to = _encode(draw, wanted)
    result = None
    if draw.chance(25):  # another format between steps
        to, result = _encode(draw, draw.of(*RESULTS)), to
    scale = Scale(draw.of(*SCALES), draw.of(16, 32), draw.of("product", "group")) if kind == "scaled" else None
    k = _k(draw, kind, scale)
    size = draw.of(*[n for n in range(1, k + 1) if k % n == 0 and (scale is None or n % scale.size == 0)])
    c = None if draw.chance(5) else d if draw.chance(80) else draw.of("f16", "bf16", "f32")
    tree, length = _tree(draw, kind, size, k // size, to, scale)
    return Datapath(
        a, b, c, d, k, tree, length, None if scale else _order(draw, k),
        Operand(draw.subnormals()), Operand(draw.subnormals()), Operand(draw.subnormals()) if c else Operand(),
        _product(draw, kind), scale, result, _special(draw, d, k, c is not None),
    )  # fmt: skip


def _k(draw: Draw, kind: str, scale: Scale | None) -> int:
    if scale is not None:
        return scale.size * draw.whole(1, 64 // scale.size)
    return draw.of(1, 2, 4, 8, 16, 32, 64) if draw.chance(60) else draw.whole(1, 64)


def _order(draw: Draw, k: int) -> tuple[int, ...] | None:
    """The lanes as steps take them: as they come, by remainder, or permuted."""
    if draw.chance(5):
        return draw.shuffled(range(k))
    modulus = draw.of(1, 1, 2, draw.whole(3, 8))
    return None if modulus == 1 else tuple(sorted(range(k), key=lambda lane: (lane % modulus, lane)))


def _encode(draw: Draw, name: str) -> Encode:
    """Rounding to a format; ``e8mN``: to 3 to 23 fraction bits, held in f32."""
    first = None
    if name == "e8mN":
        name, first = "f32", (draw.whole(3, 23), draw.rounding())
    return Encode(
        name, draw.rounding(), draw.of("ieee", "ieee", "infinity", "largest"), draw.subnormals(),
        draw.of("before", "after", "encoded"), draw.of("ieee", "positive"),
        draw.of("signed", "signed", "positive"), first,
    )  # fmt: skip


def _product(draw: Draw, kind: str) -> Product:
    """Exact most of the time; its label is that of the operands as encoded most of the time."""
    to = _encode(draw, draw.of("f16", "bf16", "f32", "e8mN")) if draw.chance(15) and kind != "scaled" else None
    label = "encoded" if draw.chance(75) else draw.of("operands", "normalised")
    return Product(to, label, draw.of(128, 16) if draw.chance(4) else None)


def _special(draw: Draw, d: str, k: int, has_c: bool) -> Special:
    """A canonical NaN of any code, or any order in which operands give theirs."""
    fmt = formats.get(d)
    assert fmt.nan_code is not None
    assert fmt.infinity_code is not None
    payload = draw.whole(1, (1 << fmt.fraction_bits) - 1)
    code = draw.of(fmt.nan_code, fmt.nan_code, fmt.code_limit // 2 - 1, fmt.infinity_code | payload)
    code |= draw.of(0, fmt.sign_mask)
    rule = draw.of("canonical", "canonical", "global", "local")
    if rule == "canonical":
        return Special("canonical", code)
    names = [f"{side}{lane}" for lane in range(k) for side in "ab"] + ["c"] * has_c
    if rule == "local":
        priority = draw.shuffled(("a", "b", "acc"))
    else:
        starts = (names, names[-1:] + names[:-1], sorted(names, key=lambda name: name[0]), draw.shuffled(names))
        priority = tuple(draw.of(*starts))
    return Special(rule, code, priority, draw.chance(70), draw.chance(30))


# --- sums


def _tree(draw: Draw, kind: str, size: int, count: int, to: Encode, scale: Scale | None) -> tuple[Node, int]:
    """(tree, lanes that it covers): one step over and over, or the whole of K where C waits until the end."""
    sums = _Sums(draw, kind, to, scale)
    place = draw.of("fused", "fused", "fused", "after", "last", "zero")
    if place in ("last", "zero") and count <= 16:
        total: Node | None = Zero() if place == "zero" else None
        for step in range(count):
            total = sums.step(tuple(range(step * size, (step + 1) * size)), total)
        assert total is not None
        return sums.with_c(total), size * count
    lanes = tuple(range(size))
    if place == "fused" or (size == 1 and kind in ("tree", "exact")):
        return sums.step(lanes, ACC), size
    return sums.with_c(sums.step(lanes, Zero() if draw.chance(30) else None)), size


class _Sums:
    """How one architecture adds: drawn once, used by every step."""

    def __init__(self, draw: Draw, kind: str, to: Encode, scale: Scale | None) -> None:
        self.kind, self.to, self.scale = kind, to, scale
        self.bits, self.rounding, self.zero = draw.whole(3, 60), draw.rounding(), draw.zero_exponent()
        own = draw.chance(35)
        self.c_bits = draw.whole(3, 60) if own else None
        self.c_rounding = draw.rounding() if own and draw.chance(50) else None
        self.c_zero = draw.zero_exponent() if own and draw.chance(50) else None
        self.groups, self.apart = draw.whole(2, 4), draw.chance(50)
        self.group_bits = draw.whole(3, 60) if draw.chance(70) else None
        self.group_rounding = draw.rounding()
        self.rounded = draw.chance(50)  # products one by one, added one by one
        self.c_on_the_left = draw.chance(50)
        self.at = draw.of(*(Encode(**{**to.__dict__, "subnormals": draw.subnormals()}), to))  # the inner sums

    def with_c(self, total: Node) -> Node:
        """The rounded sum of what was added so far and C."""
        return Add(ACC, total, self.to) if self.c_on_the_left else Add(total, ACC, self.to)

    def step(self, lanes: tuple[int, ...], acc: Node | None) -> Node:
        """The sum of these lanes, and of ``acc`` where there is one."""
        if self.kind in ("fused", "groups", "scaled"):
            terms = tuple(Term(node, self.bits, self.rounding, self.zero) for node in self._nodes(lanes))
            return Fused((*([] if acc is None else [self._own_term(acc)]), *terms), self.to)
        if self.kind == "exact":
            return Exact((*([acc] if acc else []), Products(lanes)), self.to)
        if self.kind == "chain":
            return self._chain(lanes, acc)
        return self._halves(lanes) if acc is None else Add(self._halves(lanes), acc, self.to)

    def _own_term(self, acc: Node) -> Term:
        """C, or what was added so far, by its own rules where it has some."""
        bits = self.bits if self.c_bits is None else self.c_bits
        zero = self.zero if self.c_zero is None else self.c_zero
        return Term(acc, bits, self.c_rounding or self.rounding, zero)

    def _nodes(self, lanes: tuple[int, ...]) -> Iterator[Node]:
        if self.scale is not None and self.scale.where == "group":
            for start in range(0, len(lanes), self.scale.size):
                yield Exact((Products(lanes[start : start + self.scale.size]),), scaled=True)
        elif self.kind == "groups" and len(lanes) > 1:
            count = min(self.groups, len(lanes))
            size = -(-len(lanes) // count)
            for group in range(count):
                mine = lanes[group::count] if self.apart else lanes[group * size : (group + 1) * size]
                if mine:
                    yield self._group(Products(mine))
        else:
            yield Products(lanes)

    def _group(self, products: Products) -> Node:
        if self.group_bits is None:
            return Exact((products,))
        return Fused.alike((products,), self.group_bits, self.group_rounding, self.zero)

    def _chain(self, lanes: tuple[int, ...], acc: Node | None) -> Node:
        if not self.rounded:
            return Fma(Zero() if acc is None else acc, lanes, self.to)
        for lane in lanes:
            product = Products((lane,))
            acc = product if acc is None else Add(acc, product, self.to)
        assert acc is not None
        return Add(Zero(), acc, self.to) if isinstance(acc, Products) else acc

    def _halves(self, lanes: tuple[int, ...]) -> Node:
        """A balanced tree of additions: neighbours first, or each lane with the one half a step away."""
        if len(lanes) == 1:
            return Products(lanes)
        half = (len(lanes) + 1) // 2
        x, y = (lanes[::2], lanes[1::2]) if self.apart else (lanes[:half], lanes[half:])
        return Add(self._halves(x), self._halves(y), self.at)


def _integer(draw: Draw) -> Datapath:
    """Exact sums that wrap or saturate, at each step; C inside them."""
    a, b = draw.of(*INTEGERS)
    k = draw.of(1, 2, 4, 8, 16, 32, 64)
    size = draw.of(*[n for n in range(1, k + 1) if k % n == 0])
    if a == "s16" and k > 1:
        a, b = ("s16", "u16") if size == k else ("u16", "s16") if k < 16 else ("u16", "u16")
    to = Encode("s32", overflow=draw.of("wrap", "largest"))
    multiply = draw.of("and", "xor") if a == "b1" else "exact"
    tree = Exact((ACC, Products(tuple(range(size)))), to)
    return Datapath(a, b, "s32", "s32", k, tree, size, _order(draw, k), product=Product(multiply=multiply))
