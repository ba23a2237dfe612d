"""Where the values of a datapath can lie: for every operand, node and rounding a span that holds for all inputs.

A span follows from the spans of a node's operands alone; the accumulator's is an
assumption that must hold of operand C and of what a step makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace

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
    Operand,
    Products,
    Zero,
)

FAR = 1 << 20


@dataclass(frozen=True)
class Span:
    """What holds of every value: a multiple of 2**lowest; if not zero, 2**least <= size < 2**top, at most ``width``
    significant bits and a label from ``label_low`` to ``label_high``; ``minus_zero``: it may be -0.
    """

    lowest: int
    least: int
    top: int
    width: int
    label_low: int
    label_high: int
    minus_zero: bool

    def within(self, other: Span) -> bool:
        """Whether everything that this span allows, the other allows too."""
        return (
            self.lowest >= other.lowest
            and self.least >= other.least
            and self.top <= other.top
            and self.width <= other.width
            and self.label_low >= other.label_low
            and self.label_high <= other.label_high
            and self.minus_zero <= other.minus_zero
        )

    def join(self, other: Span) -> Span:
        """The smallest span that allows both."""
        pairs = zip(astuple(self), astuple(other), (min, min, max, max, min, max, max), strict=True)
        return Span(*(pick(x, y) for x, y, pick in pairs))


NOTHING = Span(FAR, FAR, -FAR, 0, FAR, -FAR, False)
"""A positive zero."""


@dataclass
class Trace:
    """The spans of one datapath by dotted path: nodes, terms, and what enters every Encode (``tree.to``)."""

    spans: dict[str, Span] = field(default_factory=dict)

    def note(self, path: str, span: Span) -> Span:
        self.spans[path] = self.spans[path].join(span) if path in self.spans else span
        return span


def operand_span(name: str, operand: Operand = Operand()) -> Span:  # noqa: B008
    """The codes of a format, read as ``operand`` says."""
    fmt = formats.get(name)
    if not fmt.is_float:
        return Span(0, 0, fmt.bits, fmt.bits, 0, 0, False)
    low = fmt.min_exponent - fmt.fraction_bits
    least = fmt.min_exponent if operand.subnormals != "keep" or not fmt.subnormal else low
    minus = fmt.has_sign_bit and operand.subnormals != "zero"
    return Span(low, least, fmt.max_exponent + 1, fmt.fraction_bits + 1, fmt.min_exponent, fmt.max_exponent, minus)


def product_span(datapath: Datapath) -> Span:
    """The products, scaled where scales multiply them, before their overflow and ``product.to``."""
    a, b = operand_span(datapath.a, datapath.operand_a), operand_span(datapath.b, datapath.operand_b)
    labels = {
        "encoded": (a.label_low + b.label_low, a.label_high + b.label_high),
        "operands": (a.least + b.least, a.label_high + b.label_high),
        "normalised": (a.least + b.least, a.top + b.top - 1),
    }
    signed = formats.get(datapath.a).signed or formats.get(datapath.b).signed
    low, high = labels[datapath.product.label]
    minus = signed and formats.get(datapath.a).is_float
    span = Span(a.lowest + b.lowest, a.least + b.least, a.top + b.top, a.width + b.width, low, high, minus)
    if datapath.scale is not None and datapath.scale.where == "product":
        span = _scaled(datapath, span)
        span = replace(
            span, label_low=low + _scales(datapath).label_low, label_high=high + _scales(datapath).label_high
        )
    return span


def _scales(datapath: Datapath) -> Span:
    """The product of both scales."""
    assert datapath.scale is not None
    one = operand_span(datapath.scale.format)
    return Span(2 * one.lowest, 2 * one.least, 2 * one.top, 2 * one.width, 2 * one.label_low, 2 * one.label_high, False)


def _scaled(datapath: Datapath, span: Span) -> Span:
    by = _scales(datapath)
    return Span(
        span.lowest + by.lowest, span.least + by.least, span.top + by.top, span.width + by.width,
        by.label_low, by.label_high, span.minus_zero,
    )  # fmt: skip


def exact_in(span: Span, fraction_bits: int, min_exponent: int) -> bool:
    """Whether a rounding to so many fraction bits, not below ``min_exponent``, changes nothing."""
    return span.width <= fraction_bits + 1 and span.lowest >= min_exponent - fraction_bits


def encoded(span: Span, to: Encode) -> Span:
    """What an Encode makes of the values of a span; ``minus_zero`` is that of its exact zeros, and of underflow."""
    fmt = formats.get(to.format)
    if not fmt.is_float:
        return Span(0, 0, fmt.bits, fmt.bits, 0, 0, False)
    low = fmt.min_exponent - fmt.fraction_bits
    least = max(span.least, low)
    lost = span.least < low or (to.first is not None and span.least < fmt.min_exponent - to.first[0])
    if to.subnormals != "keep":
        lost |= span.least < fmt.min_exponent
        least = max(least, fmt.min_exponent)
    rounds = to.first is not None or not exact_in(span, fmt.fraction_bits, fmt.min_exponent)
    top = min(span.top + rounds, fmt.max_exponent + 1)
    minus = span.minus_zero or (lost and to.underflow == "signed" and to.subnormals != "zero")
    return Span(
        max(span.lowest, low), least, top, min(span.width, fmt.fraction_bits + 1),
        max(least, fmt.min_exponent), max(top - 1, fmt.min_exponent), minus,
    )  # fmt: skip


def trace(datapath: Datapath, accumulator: Span) -> Trace:
    """Every span of a step whose accumulator lies in ``accumulator``; the step's result is at ``tree``."""
    found = Trace()
    product = found.note("product.exact", product_span(datapath))
    limit = datapath.product.overflow_exponent
    if limit is not None:
        product = replace(product, top=min(product.top, limit))
    found.note("product.to", product)
    if datapath.product.to is not None:
        product = encoded(product, datapath.product.to)
    found.note("product", product)
    found.note("c", accumulator)
    _node(datapath, datapath.tree, "tree", found, None)
    if datapath.result is not None:
        found.note("result", found.spans["tree"])
    return found


def start_span(datapath: Datapath) -> Span:
    """The accumulator of the first step."""
    return operand_span(datapath.c, datapath.operand_c) if datapath.c else NOTHING


def accumulator_span(datapath: Datapath) -> Span:
    """A span that holds of the accumulator in every step: of operand C where there is one step."""
    span = start_span(datapath)
    if len(datapath.steps) == 1:
        return span
    to = getattr(datapath.tree, "to", None)
    assert isinstance(to, Encode)
    widest = span.join(replace(operand_span(to.format), minus_zero=True))
    for turn in range(12):
        wider = span.join(trace(datapath, span).spans["tree"])
        if wider == span:
            return span
        moved = [name for name in vars(span) if getattr(span, name) != getattr(wider, name)]
        span = replace(wider, **{name: getattr(widest, name) for name in moved}) if turn else wider
    return widest


def _node(datapath: Datapath, node: Node, path: str, found: Trace, above: Encode | None) -> Span:
    """The span of a node, noted with those of its parts; ``above`` is the Encode that encloses it."""
    if isinstance(node, Accumulator):
        return found.note(path, found.spans["c"])
    if isinstance(node, Zero):
        return found.note(path, NOTHING)
    if isinstance(node, Products):
        return found.note(path, found.spans["product"])
    to = node.to
    above = to or above
    if isinstance(node, Fma):
        return _fma(datapath, node, path, found)
    if isinstance(node, Add):
        parts = [
            (_node(datapath, part, f"{path}.{key}", found, above), 1) for key, part in (("x", node.x), ("y", node.y))
        ]
        return _finish(_sum(parts, above), to, path, found)
    inner = node.terms if isinstance(node, Exact) else tuple(term.of for term in node.terms)
    keys = [f"{path}.terms.{i}" + ("" if isinstance(node, Exact) else ".of") for i in range(len(inner))]
    parts = [
        (_node(datapath, part, key, found, above), len(part.lanes) if isinstance(part, Products) else 1)
        for part, key in zip(inner, keys, strict=True)
    ]
    if isinstance(node, Fused):
        return _finish(_sum(_aligned(node, parts), above), to, path, found, highest(node, [p for p, _ in parts]))
    total = _sum(parts, above)
    return _finish(_scaled(datapath, total) if node.scaled else total, to, path, found)


def _fma(datapath: Datapath, node: Fma, path: str, found: Trace) -> Span:
    acc = _node(datapath, node.acc, f"{path}.acc", found, node.to)
    for _ in node.lanes:
        found.note(f"{path}.chain", acc)
        acc = _finish(_sum([(acc, 1), (found.spans["product"], 1)], node.to), node.to, path, found)
    return acc


def _finish(total: Span, to: Encode | None, path: str, found: Trace, highest_label: int | None = None) -> Span:
    if highest_label is not None:
        total = replace(total, label_high=highest_label)
    if to is not None:
        total = found.note(f"{path}.to", total)
        total = encoded(replace(total, minus_zero=total.minus_zero and to.zero == "ieee"), to)
    return found.note(path, total)


def highest(node: Fused, parts: Sequence[Span]) -> int:
    """The largest label that terms, or zeros, can show to this alignment."""
    shown = [node.zero_exponent, *(term.zero_exponent for term in node.terms)]
    return max([part.label_high for part in parts] + [z for z in shown if z is not None])


def _aligned(node: Fused, parts: list[tuple[Span, int]]) -> list[tuple[Span, int]]:
    """The terms after the alignment: what may be cut may become a zero of its sign, or one last place larger."""
    top = highest(node, [part for part, _ in parts])
    bottom = min(part.label_low for part, _ in parts)
    found = []
    for (part, count), term in zip(parts, node.terms, strict=True):
        bits = node.fraction_bits if term.fraction_bits is None else term.fraction_bits
        cut = bits is not None and top - bits > part.lowest
        dropped = term.cutoff is not None and top - term.cutoff > part.label_low
        if cut:
            assert bits is not None
            lowest = max(part.lowest, bottom - bits)
            part = replace(part, lowest=lowest, least=lowest, top=max(part.top, top - bits) + 1)
        found.append((replace(part, minus_zero=True) if cut or dropped else part, count))
    return found


def _sum(parts: list[tuple[Span, int]], to: Encode | None) -> Span:
    """The exact sum of so many values of each span; its zeros have the signs that IEEE gives under ``to``."""
    some = [(part, count) for part, count in parts if part.top > -FAR]
    if not some:
        return NOTHING
    total = sum(count for _, count in some)
    lowest = min(part.lowest for part, _ in some)
    top = max(part.top for part, _ in some) + (total - 1).bit_length()
    least = (
        some[0][0].least if total == 1 else max([lowest, *(_least(some, i) for i in range(len(some)) if len(some) > 1)])
    )
    minus = to is None or to.rounding == "RD" or all(part.minus_zero for part, _ in parts)
    labels = [part.label_low for part, _ in some], [part.label_high for part, _ in some]
    width = some[0][0].width if total == 1 else top - lowest
    return Span(lowest, least, top, width, min(labels[0]), max(labels[1]), minus)


def _least(parts: list[tuple[Span, int]], single: int) -> int:
    """The least size of x + y, for one term x of few bits and y, the sum of the others.

    Where x is below half of y the sum is above a half of y; else x has no bit
    below the last of its ``width`` bits.
    """
    x, count = parts[single]
    if count != 1:
        return -FAR
    y = min(part.lowest for i, (part, _) in enumerate(parts) if i != single)
    return min(x.least, y - 1, y - x.width)
