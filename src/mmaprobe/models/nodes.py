"""The nodes of a datapath's tree at work on arrays of vectors (docs/datapath.md, sections 2 and 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.models.numbers import ABSENT, WORD, Ints, Numbers, beside, cut, multiply, sticky, total, zeros
from mmaprobe.models.rounding import RandomBits, encode
from mmaprobe.models.special import NanRule, Nans, join
from mmaprobe.models.trace import Trace
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
    lanes_of,
    walk,
)


@dataclass(frozen=True, eq=False)
class Step:
    """What the tree sees of one step: its products with their factors, and the accumulator."""

    datapath: Datapath
    rule: NanRule
    numbers: tuple[int, ...]  # of the products: ``Datapath.products``
    a: Numbers  # (n, products of the step)
    b: Numbers
    products: Numbers
    accumulator: Numbers  # (n,)
    scales: tuple[Numbers, ...]  # those of a and b, (n, K / S) each; empty without scales
    random: RandomBits | None
    trace: Trace | None

    @property
    def count(self) -> int:
        return int(self.accumulator.negative.shape[0])


def form_products(
    a: Numbers, b: Numbers, scales: tuple[Numbers, ...], product: Product, rule: NanRule,
    random: RandomBits | None = None,
) -> Numbers:  # fmt: skip
    """The products of lanes: exact, scaled, made infinite beyond their range, rounded."""
    if product.label == "operands":
        a, b = normalised(a), normalised(b)
    p = _exclusive_or(a, b) if product.multiply == "xor" else multiply(a, b)
    if product.missing_columns:
        p = _truncated(p, a, b, product.missing_columns)
    if product.label == "normalised":
        p = normalised(p)
    for scale in scales:
        p = multiply(p, scale)
    by_name = {"a": a.nan, "b": b.nan}
    order = [by_name[name] for name in rule.order if name in by_name]
    p = replace(p, nan=rule.choose(_stack(order), p.nan.flag))
    if product.overflow_exponent is not None:
        over = (p.significand != 0) & (p.top >= product.overflow_exponent)
        p = replace(
            p,
            infinite=p.infinite | over,
            significand=np.where(over, 0, p.significand),
            label=np.where(over, ABSENT, p.label),
        )
    return p if product.to is None else encode(p, product.to, rule, random).numbers


def normalised(x: Numbers) -> Numbers:
    """The same numbers labelled with the exponent of their leading bit."""
    return replace(x, label=np.where(x.significand == 0, ABSENT, x.top))


def _truncated(p: Numbers, a: Numbers, b: Numbers, columns: int) -> Numbers:
    """Products without the partial products in their lowest columns."""
    lost = np.zeros_like(p.significand)
    x, y = (side.within(p.width).significand for side in (a, b))
    for j in range(min(columns, b.width)):
        low = x & (1 << min(columns - j, a.width)) - 1
        lost = lost + np.where(y >> j & 1 != 0, low << j, 0)
    significand = p.significand - lost
    return replace(p, significand=significand, label=np.where(significand == 0, ABSENT, p.label))


def _exclusive_or(a: Numbers, b: Numbers) -> Numbers:
    significand = a.significand ^ b.significand
    return replace(a, significand=significand, label=np.where(significand == 0, ABSENT, 0))


def _column(array: NDArray[Any]) -> NDArray[Any]:
    return array[..., None]


def _stack(parts: list[Nans]) -> Nans:
    return join([part.map(_column) for part in parts])


def run(node: Node, step: Step, outer: Encode) -> Numbers:
    """The value of a node: (n,), or (n, lanes) for several ``products``.

    ``outer`` is the encoding that the value meets next, where the node has
    none of its own.
    """
    if isinstance(node, Accumulator):
        return step.accumulator
    if isinstance(node, Zero):
        return zeros(step.count, step.rule)
    if isinstance(node, Products):
        places = step.datapath.product.places(node.lanes)
        return step.products.take(places) if len(places) > 1 else step.products.column(places[0])
    if isinstance(node, Fma):
        return _fma(node, step)
    if isinstance(node, Add):
        return _add(node, step)
    return _exact(node, step, outer) if isinstance(node, Exact) else _fused(node, step, outer)


def _finish(node: Fma | Add | Exact | Fused, value: Numbers, step: Step) -> Numbers:
    """Encode the node's sum, where it has an encoding."""
    if node.to is None:
        return value
    done = encode(value, node.to, step.rule, step.random)
    if step.trace is not None:
        step.trace.record("encode", node, exact=value, rounded=done.numbers, bits=done.bits, tiny=done.tiny, to=node.to)
    return done.numbers


def _two(terms: Numbers, to: Encode, step: Step) -> Numbers:
    """The sum of two columns, good for one encoding by ``to``; the exact sum where a trace wants to see it."""
    fmt = formats.get(to.format)
    if step.trace is None and fmt.is_float:  # an integer keeps the lowest bits, however large the sum
        terms = sticky(terms, max(fmt.fraction_bits + to.random_bits, to.first[0] if to.first else 0) + 1)
    return total(terms, np.full(step.count, ABSENT), to.rounding, step.rule)


def _fma(node: Fma, step: Step) -> Numbers:
    acc = run(node.acc, step, node.to)
    for place in step.datapath.product.places(node.lanes):
        product = step.products.column(place)
        terms = beside([product, acc])
        value = _two(terms, node.to, step)
        by_name = {"a": step.a.column(place).nan, "b": step.b.column(place).nan, "acc": acc.nan}
        operands = _stack([by_name[name] for name in step.rule.order])
        value = replace(value, nan=step.rule.choose(operands, value.nan.flag))
        if step.trace is not None:
            step.trace.record("fma", node, number=step.numbers[place], terms=terms, sum=value)
        acc = _finish(node, value, step)
    return acc


def _add(node: Add, step: Step) -> Numbers:
    terms = beside([run(node.x, step, node.to), run(node.y, step, node.to)])
    value = _two(terms, node.to, step)
    if step.trace is not None:
        step.trace.record("add", node, terms=terms, sum=value)
    return _finish(node, value, step)


def _exact(node: Exact, step: Step, outer: Encode) -> Numbers:
    to = node.to or outer
    terms = beside([run(term, step, to) for term in node.terms])
    value = total(terms, terms.label.max(-1), to.rounding, step.rule)
    if node.scaled:
        value = _scaled(value, terms, node, step)
    if step.trace is not None:
        step.trace.record("exact", node, terms=terms, sum=value)
    return _finish(node, value, step)


def _scaled(value: Numbers, terms: Numbers, node: Exact, step: Step) -> Numbers:
    """The sum of a scale block times its two scales, labelled with the scales' exponents alone."""
    assert step.datapath.scale is not None
    block = step.numbers[next(lanes_below(node))] // step.datapath.scale.size
    scale_a, scale_b = (scale.column(block) for scale in step.scales)
    scale = multiply(scale_a, scale_b)
    scaled = multiply(value, scale)
    nan = step.rule.choose(_stack([value.nan]), scaled.nan.flag)
    absent = (terms.label == ABSENT).all(-1) | (scale.label == ABSENT)
    return replace(scaled, nan=nan, label=np.where(absent, ABSENT, scale.label))


def lanes_below(node: Node) -> Iterator[int]:
    """The lanes of the step that a node and everything below it multiply."""
    for part in walk(node):
        yield from lanes_of(part)


def _fused(node: Fused, step: Step, outer: Encode) -> Numbers:
    to = node.to or outer
    terms = [run(term.of, step, to).columns for term in node.terms]
    labels = [_labels(value, term) for value, term in zip(terms, node.terms, strict=True)]
    top = np.concatenate(labels, -1).max(-1)
    base = np.where(top == ABSENT, 0, top)[:, None]
    aligned = [_align(value, label, base, term) for value, label, term in zip(terms, labels, node.terms, strict=True)]
    if node.is_complemented:
        aligned = [_complemented(value, top, node, step) for value in aligned]
    value = total(beside(aligned), top, to.rounding, step.rule)
    if node.is_carried:
        value = _carried(value, top, node, to.rounding)
    if step.trace is not None:
        step.trace.record("fused", node, terms=terms, labels=labels, aligned=aligned, maximum=top, sum=value)
    return _finish(node, value, step)


def _labels(value: Numbers, term: Term) -> Ints:
    """The exponents that a term shows to the maximum."""
    zero = term.zero_exponent
    shown = value.label if term.label_offset == 0 else value.label + term.label_offset
    return np.where(value.label == ABSENT, ABSENT if zero is None else zero, shown)


def _align(value: Numbers, label: Ints, base: Ints, term: Term) -> Numbers:
    """A term cut to its fraction bits below the maximum, or dropped."""
    if term.cutoff is not None:
        value = replace(value, significand=np.where(label < base - term.cutoff, 0, value.significand))
    if term.shift_limit is not None:
        short = np.where(value.significand == 0, 0, np.maximum(base - term.shift_limit - label, 0))
        value = replace(value, exponent=value.exponent + short)
    if term.fraction_bits is None:
        return value
    last = base - term.fraction_bits
    if term.sticky_bits is not None:
        value = cut(value, last - term.sticky_bits, "RZ")
    return cut(value, last, term.rounding)


def _carried(value: Numbers, top: Ints, node: Fused, rounding: str) -> Numbers:
    """A sum in two's complement with so many bits above the largest exponent; where no term shows one, it is zero."""
    assert node.last_place is not None
    assert node.carry_bits is not None
    bits = 1 + node.carry_bits + node.last_place  # of the magnitude, in units of the last place
    place = np.where(top == ABSENT, 0, top) - node.last_place
    shift = np.where(value.significand == 0, 0, value.exponent - place)
    whole = value.significand.astype(object) << shift.astype(object)
    whole = np.where(value.negative, -whole, whole)
    least, most = -(1 << bits), (1 << bits) - 1
    wraps = node.carry == "wrap"
    held = (whole - least) % (2 << bits) + least if wraps else np.minimum(np.maximum(whole, least), most)
    negative = np.where(held != 0, held < 0, np.where(whole != 0, rounding == "RD", value.negative)).astype(bool)
    width = bits + 1
    significand = abs(held).astype(np.int64 if width <= WORD else object)
    return replace(value, negative=negative, significand=significand, exponent=place, width=width)


def _complemented(value: Numbers, top: Ints, node: Fused, step: Step) -> Numbers:
    """Cut terms, those of another sign than the accumulator's one unit of the sum's last place larger; nothing where no
    term shows an exponent."""
    assert node.last_place is not None
    place = np.where(top == ABSENT, 0, top)[:, None] - node.last_place
    frame = step.accumulator.negative & ~step.accumulator.nan.flag
    other = (value.negative != frame[:, None]) & (top != ABSENT)[:, None]
    shift = np.where(value.significand == 0, 0, value.exponent - place)
    width = value.width + int(shift.max(initial=0)) + 1
    significand = value.within(width).significand
    significand = (significand << (shift.astype(object) if significand.dtype == object else shift)) + other
    return replace(value, significand=significand, exponent=np.broadcast_to(place, shift.shape), width=width)
