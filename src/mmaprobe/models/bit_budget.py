"""How many bits a datapath's exact values can need: what decides whether the native engine runs it.

Every value is bounded by ``Bounds``: it is a multiple of 2**low, below 2**high
in magnitude, its significand as held has at most ``width`` bits, and where it
has a label E, E is within ``labels`` and the value is below 2**(E + over).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from mmaprobe import formats
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Product,
    Products,
    Term,
    Zero,
    walk,
)
from mmaprobe.parameters.rewrite import explicit

WIDTHS = (64, 128, 320, 640)
"""Widths of the integers that the native engine computes in."""


class Bounds(NamedTuple):
    """Bounds of a value; see the module's text."""

    low: int
    high: int
    width: int
    labels: tuple[int, int]
    over: int


@dataclass(frozen=True)
class BitBudget:
    """``bits`` for the widest exact value, sign included, and the bounds of every sum's grid.

    ``anchors`` gives, by the identity of each ``fused`` or ``exact`` node of the datapath measured that has an uncut
    term, the exponent of the lowest bit that its sum can have.  ``reason`` says why no
    fixed width will do.
    """

    bits: int
    anchors: dict[int, int]
    reason: str | None = None

    @property
    def width(self) -> int | None:
        """The narrowest engine width that holds everything; None where there is none."""
        if self.reason is not None:
            return None
        return next((width for width in WIDTHS if self.bits <= width), None)


def addends(node: Fused | Exact, product: Product) -> tuple[Node, ...]:
    """The terms of a sum that an exact value (one product) or a rounded sum of two stands for; else nothing.

    That is so where nothing is cut and labels do not matter: they are handed on
    unchanged by a single product, and an Encode follows two.
    """
    if len(node.terms) > 2 or (len(node.terms) == 2 and node.to is None):
        return ()
    nodes = tuple(term.of if isinstance(term, Term) else term for term in node.terms)
    if any(_count(of, product) > 1 for of in nodes):
        return ()
    if len(nodes) == 1 and not isinstance(nodes[0], Products):
        return ()
    if isinstance(node, Exact):
        return () if node.scaled else nodes
    rules = {_UNREAD(term) for term in node.terms}
    return nodes if rules == {(None, None, None, 0, None)} else ()


@lru_cache(maxsize=256)
def bounds_of(name: str) -> Bounds:
    """Bounds of the finite values of a format."""
    fmt = formats.get(name)
    if not fmt.is_float:
        return Bounds(0, fmt.bits, fmt.bits, (0, 0), fmt.bits)
    low = fmt.min_exponent - fmt.fraction_bits
    return Bounds(low, fmt.max_exponent + 1, fmt.fraction_bits + 1, (fmt.min_exponent, fmt.max_exponent), 1)


def _times(x: Bounds, y: Bounds) -> Bounds:
    labels = (x.labels[0] + y.labels[0], x.labels[1] + y.labels[1])
    return Bounds(x.low + y.low, x.high + y.high, x.width + y.width, labels, x.over + y.over)


Parts = tuple[tuple[Bounds, int, int | None, int | None], ...]
"""Of each term of a sum its bounds, how many it stands for, its fraction bits and the exponent that its zero shows."""


class _Walk:
    """Bounds of every node of one datapath, gathered from the leaves up."""

    def __init__(self, datapath: Datapath) -> None:
        self.bits = 2
        self.anchors: dict[int, int] = {}
        self.rule = datapath.product
        self.scale = bounds_of(datapath.scale.format) if datapath.scale else None
        root: Encode = datapath.tree.to  # type: ignore[union-attr, assignment]
        result = self.encoded(root)
        self.accumulator = result
        if datapath.c is not None:
            c = bounds_of(datapath.c)
            self.accumulator = Bounds(
                min(c.low, result.low),
                max(c.high, result.high),
                max(c.width, result.width),
                (min(c.labels[0], result.labels[0]), max(c.labels[1], result.labels[1])),
                max(c.over, result.over),
            )
        self.product = self._product(datapath)
        self.node(datapath.tree)
        if datapath.result is not None or datapath.d != root.format:
            self.encoded(datapath.result or Encode(datapath.d), result)

    def _product(self, datapath: Datapath) -> Bounds:
        rule = datapath.product
        names = [rule.split.format] * 2 if rule.split else [datapath.a, datapath.b]
        p = _times(*map(bounds_of, names))
        if rule.label != "encoded":
            p = p._replace(labels=(p.low, p.high), over=2 if rule.label == "operands" else 1)
        if datapath.scale is not None and datapath.scale.where == "product":
            assert self.scale is not None
            p = _times(p, _times(self.scale, self.scale))
        if rule.overflow_exponent is not None:
            p = p._replace(high=min(p.high, max(rule.overflow_exponent, p.low + 1)))
        self.need(p.width)
        return self.encoded(rule.to, p) if rule.to else p

    def need(self, bits: int) -> None:
        """Room for magnitudes of ``bits`` bits beside a sign."""
        self.bits = max(self.bits, bits + 1)

    def encoded(self, to: Encode, of: Bounds | None = None) -> Bounds:
        """Bounds after an Encode; its rounding needs the precision of its format and a few bits."""
        fmt = formats.get(to.format)
        self.need(fmt.fraction_bits + 3 if fmt.is_float or of is None else of.high + 4)
        return bounds_of(to.format)

    def node(self, node: Node) -> Bounds:
        if isinstance(node, (Accumulator, Zero)):
            return self.accumulator
        if isinstance(node, Products):
            return self.product
        if isinstance(node, Fma):
            return self._two((self.node(node.acc), self.product), node.to)
        if isinstance(node, Add):
            return self._two((self.node(node.x), self.node(node.y)), node.to)
        parts = addends(node, self.rule)
        if len(parts) == 1:
            return self.encoded(node.to, self.product) if node.to else self.product
        if parts and node.to:
            return self._two((self.node(parts[0]), self.node(parts[1])), node.to)
        total = self._exact(node) if isinstance(node, Exact) else self._fused(node)
        return self.encoded(node.to, total) if node.to else total

    def _two(self, parts: tuple[Bounds, Bounds], to: Encode) -> Bounds:
        """A rounded sum of two: both aligned at the top, bits far below gathered in one."""
        precision = max(formats.get(to.format).fraction_bits + to.random_bits, to.first[0] if to.first else 0) + 1
        self.need(max(parts[0].width, parts[1].width, precision + 2) + 3)
        x, y = parts
        return self.encoded(to, x._replace(high=max(x.high, y.high) + 1))

    def _exact(self, node: Exact) -> Bounds:
        parts = tuple([(self.node(term), _count(term, self.rule), None, None) for term in node.terms])
        sum_ = self._sum(node, parts)
        if not node.scaled:
            return sum_
        assert self.scale is not None
        scales = _times(self.scale, self.scale)
        scaled = _times(sum_, scales)
        self.need(scaled.width)
        return scaled._replace(labels=scales.labels, over=sum_.high + scales.over)

    def _fused(self, node: Fused) -> Bounds:
        complemented = node.is_complemented
        parts = []
        for of, bits, zero, offset in map(_RULES, node.terms):
            part = self.node(of)
            if offset or complemented:  # seen from the label shown; a cut term may be one last place larger
                labels = (part.labels[0] + offset, part.labels[1] + offset)
                part = part._replace(labels=labels, over=max(part.over - offset, -(bits or 0)) + complemented)
            parts.append((part, _count(of, self.rule), bits, zero))
        return self._sum(node, tuple(parts))

    def _sum(self, node: Fused | Exact, parts: Parts) -> Bounds:
        found, bits, anchor = _sum_of(parts, isinstance(node, Exact))
        if anchor is not None:
            self.anchors[id(node)] = anchor
        self.need(bits)
        return found


_RULES = attrgetter("of", "fraction_bits", "zero_exponent", "label_offset")
_UNREAD = attrgetter("fraction_bits", "zero_exponent", "cutoff", "label_offset", "shift_limit")


def _count(node: Node, product: Product) -> int:
    return len(product.places(node.lanes)) if isinstance(node, Products) else 1


@lru_cache(maxsize=4096)
def _sum_of(parts: Parts, exact: bool) -> tuple[Bounds, int, int | None]:
    """Bounds of a sum, the magnitude bits that it needs, and where it is not cut the exponent of its lowest bit."""
    labels = [*chain(*(part.labels for part, *_ in parts)), *(zero for *_, zero in parts if zero is not None)]
    low, high, carries = min(labels), max(labels), max(sum(count for _, count, *_ in parts) - 1, 0).bit_length()
    overs = [max(part.over, 0 if bits is None else -bits) for part, _, bits, _ in parts]
    widest = 0 if exact else max(part.width for part, *_ in parts)
    if any(bits is None for *_, bits, _ in parts):
        coarse = min(part.low for part, *_ in parts) if exact else high + max(overs) + 1
        lowest = min(part.low for part, *_ in parts)
        top = max(coarse, *(part.high for part, *_ in parts)) + carries
        over = max(part.over for part, *_ in parts) + carries
        return Bounds(lowest, top, top - lowest, (low, high), over), max(widest, top - lowest), lowest
    over, finest = max(overs) + carries + 1, max(bits for *_, bits, _ in parts if bits is not None)
    return Bounds(low - finest, high + over, finest + over, (low, high), over), max(widest, finest + over), None


def _encodes(datapath: Datapath) -> list[Encode]:
    found = [getattr(node, "to", None) for node in walk(datapath.tree)]
    return [to for to in (*found, datapath.product.to, datapath.result) if to is not None]


@lru_cache(maxsize=4096)
def bit_budget(datapath: Datapath) -> BitBudget:
    """What ``measured_budget`` finds, remembered."""
    return measured_budget(explicit(datapath))


def measured_budget(datapath: Datapath) -> BitBudget:
    """The bit budget of a datapath; ``reason`` where the engine's rows cannot say what it asks."""
    bounds = _Walk(datapath)
    reason = None
    for to in _encodes(datapath):
        fmt = formats.get(to.format)
        if fmt.is_float and not (fmt.signed and fmt.subnormal and fmt.fraction_bits):
            reason = f"the engine does not encode {fmt.name}, which has no sign, no zero or no fraction"
        elif fmt.kind == "magnitude":
            reason = f"the engine does not encode {fmt.name}"
    if datapath.scale is not None and formats.get(datapath.scale.format).infinity:
        reason = f"the engine takes no scales of format {datapath.scale.format}, which has infinities"
    if reason is None and bounds.bits > WIDTHS[-1]:
        reason = f"its exact values need {bounds.bits} bits, the engine holds {WIDTHS[-1]}"
    return BitBudget(bounds.bits, bounds.anchors, reason)
