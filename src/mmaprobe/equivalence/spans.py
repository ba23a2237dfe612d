"""A span: what holds of every value at one place of a datapath; of operands, of products, and after a rounding."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace

from mmaprobe import formats
from mmaprobe.parameters.datapath import Datapath, Encode, Operand

FAR = 1 << 20
"""An exponent beyond all that a datapath can name (``parameters.datapath.MOST_BITS``)."""


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


OUTWARD = ("RO", "RA")
"""Roundings that make a zero of zeros alone."""
NOTHING = Span(FAR, FAR, -FAR, 0, FAR, -FAR, False)
"""A positive zero."""


@dataclass
class DatapathSpans:
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
        span = scaled(datapath, span)
        span = replace(
            span, label_low=low + scales_span(datapath).label_low, label_high=high + scales_span(datapath).label_high
        )
    return span


def scales_span(datapath: Datapath) -> Span:
    """The product of both scales."""
    assert datapath.scale is not None
    one = operand_span(datapath.scale.format)
    return Span(2 * one.lowest, 2 * one.least, 2 * one.top, 2 * one.width, 2 * one.label_low, 2 * one.label_high, False)


def scaled(datapath: Datapath, span: Span) -> Span:
    by = scales_span(datapath)
    return Span(
        span.lowest + by.lowest, span.least + by.least, span.top + by.top, span.width + by.width,
        by.label_low, by.label_high, span.minus_zero,
    )  # fmt: skip


def exact_in(span: Span, fraction_bits: int, min_exponent: int) -> bool:
    """Whether a rounding to so many fraction bits, not below ``min_exponent``, changes nothing."""
    return span.width <= fraction_bits + 1 and span.lowest >= min_exponent - fraction_bits


def vanishes(span: Span, to: Encode) -> bool:
    """Whether a rounding, its first cut or the other one, may make a zero of a value of a span that is none."""
    fmt = formats.get(to.format)
    cut = to.first is not None and to.first[1] not in OUTWARD and span.least < fmt.min_exponent - to.first[0]
    return cut or (to.rounding not in OUTWARD and span.least < fmt.min_exponent - fmt.fraction_bits)


def encoded(span: Span, to: Encode) -> Span:
    """What an Encode makes of the values of a span; ``minus_zero`` is that of its exact zeros, and of underflow."""
    fmt = formats.get(to.format)
    if not fmt.is_float:
        return Span(0, 0, fmt.bits, fmt.bits, 0, 0, False)
    low = fmt.min_exponent - fmt.fraction_bits
    least = max(span.least, low)
    lost = vanishes(span, to)
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
