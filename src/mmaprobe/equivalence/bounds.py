"""Where the values of a datapath can lie: for every operand, node and rounding a span that holds for all inputs.

A span follows from the spans of a node's operands alone; the accumulator's is an
assumption that must hold of operand C and of what a step makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from mmaprobe.equivalence.headroom import aligned_width
from mmaprobe.equivalence.spans import (
    FAR,
    NOTHING,
    OUTWARD,
    DatapathSpans,
    Span,
    encoded,
    operand_span,
    product_span,
    scaled,
)
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Zero,
)


@lru_cache(maxsize=16)
def trace(datapath: Datapath, accumulator: Span) -> DatapathSpans:
    """Every span of a step whose accumulator lies in ``accumulator``; the step's result is at ``tree``.  Kept for those
    who ask again: nobody may add to it."""
    found = DatapathSpans()
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


def _node(datapath: Datapath, node: Node, path: str, found: DatapathSpans, above: Encode | None) -> Span:
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
        total = _sum(_aligned(node, parts), above)
        total = replace(total, width=min(total.width, aligned_width(datapath, node)))
        return _finish(total, to, path, found, highest(node, [p for p, _ in parts]))
    total = _sum(parts, above)
    return _finish(scaled(datapath, total) if node.scaled else total, to, path, found)


def _fma(datapath: Datapath, node: Fma, path: str, found: DatapathSpans) -> Span:
    acc = _node(datapath, node.acc, f"{path}.acc", found, node.to)
    for _ in node.lanes:
        found.note(f"{path}.chain", acc)
        acc = _finish(_sum([(acc, 1), (found.spans["product"], 1)], node.to), node.to, path, found)
    return acc


def _finish(total: Span, to: Encode | None, path: str, found: DatapathSpans, highest_label: int | None = None) -> Span:
    if highest_label is not None:
        total = replace(total, label_high=highest_label)
    if to is not None:
        total = found.note(f"{path}.to", total)
        total = encoded(replace(total, minus_zero=total.minus_zero and to.zero == "ieee"), to)
    return found.note(path, total)


def highest(node: Fused, parts: Sequence[Span]) -> int:
    """The largest label that terms, or zeros, can show to this alignment."""
    shown = [term.zero_exponent for term in node.terms if term.zero_exponent is not None]
    own = [part.label_high + term.label_offset for part, term in zip(parts, node.terms, strict=True)]
    return max(own + shown)


def never_cuts(node: Fused, parts: Sequence[Span]) -> bool:
    """Whether the alignment cuts, drops or complements no term."""
    if node.is_complemented:
        return False
    top = highest(node, parts)
    for i, (term, part) in enumerate(zip(node.terms, parts, strict=True)):
        bits = term.fraction_bits
        if bits is not None and top - bits > part.lowest and not _whole_beside(node, parts, i):
            return False
        if term.cutoff is not None and top - term.cutoff > part.label_low + term.label_offset:
            return False
    return True


LABEL_ABOVE = 52
"""The label of a value of a format is at most so far above its last place: the fraction bits of f64, and twice that of
a product."""


def _whole_beside(node: Fused, parts: Sequence[Span], i: int) -> bool:
    """Whether term i, one value, is cut neither by its own label nor by any that the others show."""
    term, of = node.terms[i], node.terms[i].of
    held = isinstance(of, Accumulator) or getattr(of, "to", None) is not None
    if term.fraction_bits is None or not (held or (isinstance(of, Products) and len(of.lanes) == 1)):
        return False
    own = (LABEL_ABOVE if held else 2 * LABEL_ABOVE) + term.label_offset
    beside = [] if term.zero_exponent is None else [term.zero_exponent]
    if len(node.terms) > 1:
        others = replace(node, terms=node.terms[:i] + node.terms[i + 1 :])
        beside.append(highest(others, [*parts[:i], *parts[i + 1 :]]))
    return term.fraction_bits >= own and all(top - term.fraction_bits <= parts[i].lowest for top in beside)


def _aligned(node: Fused, parts: list[tuple[Span, int]]) -> list[tuple[Span, int]]:
    """The terms after the alignment, with the labels that they show: what may be cut may become a zero of its sign, or
    one last place larger."""
    top = highest(node, [part for part, _ in parts])
    bottom = min(part.label_low + term.label_offset for (part, _), term in zip(parts, node.terms, strict=True))
    found = []
    for (part, count), term in zip(parts, node.terms, strict=True):
        bits = term.fraction_bits
        cut = bits is not None and top - bits > part.lowest
        dropped = term.cutoff is not None and top - term.cutoff > part.label_low + term.label_offset
        if cut:
            assert bits is not None
            lowest = max(part.lowest, bottom - bits)
            part = replace(part, lowest=lowest, least=lowest, top=max(part.top, top - bits) + 1)
        if part.top > -FAR:
            labels = part.label_low + term.label_offset, part.label_high + term.label_offset
            part = replace(part, label_low=labels[0], label_high=labels[1])
        if node.is_complemented:
            part = _complemented(node, part, bottom, top)
        gone = dropped or (cut and (term.rounding not in OUTWARD or term.sticky_bits is not None))
        found.append((replace(part, minus_zero=True) if gone else part, count))
    return found


def _complemented(node: Fused, part: Span, bottom: int, top: int) -> Span:
    """What is one unit of the sum's last place larger, zeros too; the largest label is one of ``bottom`` to ``top``, or
    what a zero shows."""
    assert node.last_place is not None
    low = min([bottom, *(term.zero_exponent for term in node.terms if term.zero_exponent is not None)])
    unit, high = low - node.last_place, max(part.top, top - node.last_place) + 1
    return Span(unit, unit, high, high - unit, min(part.label_low, low), max(part.label_high, low), part.minus_zero)


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
