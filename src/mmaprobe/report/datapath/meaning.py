"""What a datapath means, in a sentence: what is added, how precisely, rounded how, with which special values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

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
    Products,
    Split,
    Term,
    Zero,
)
from mmaprobe.parameters.described import value_in_words
from mmaprobe.parameters.shorthand import written
from mmaprobe.report.datapath.naming import bits_taken, overflow, part_product
from mmaprobe.report.datapath.order import lanes_text
from mmaprobe.report.datapath.phrases import describe
from mmaprobe.showing import counted

ROUNDINGS = {
    "RNE": "to nearest even", "RNO": "to nearest odd", "RNA": "to nearest, ties away from 0",
    "RNZ": "to nearest, ties toward 0", "RNU": "to nearest, ties up", "RND": "to nearest, ties down",
    "RZ": "truncated", "RA": "away from 0", "RD": "rounded down", "RU": "rounded up", "RO": "to odd",
}  # fmt: skip
_LABELS = {"operands": "of its operands, normalised", "normalised": "of its own leading bit"}


def meaning(datapath: Datapath) -> str:
    """The clauses of a datapath, the sum first: ``16 products + c, aligned to the largest exponent, ...``."""
    steps = len(datapath.steps)
    tree = _text(datapath.tree) + _each(datapath.tree)
    tree += f", in {steps} steps of {counted(datapath.step_length, 'lane')}" * (steps > 1)
    return "; ".join(part for part in (tree, *_clauses(datapath)) if part)


def _clauses(path: Datapath) -> Iterator[str]:
    product, scale = path.product, path.scale
    if product.to is not None:
        yield f"products rounded to {_encode(product.to)}"
    if product.multiply != "exact":
        yield f"a product is {product.multiply.upper()}"
    if product.label != "encoded" and any(isinstance(node, Fused) for node in _nodes(path.tree)):
        yield f"a product's exponent is that {_LABELS[product.label]}"
    if product.missing_columns:
        columns = f"{product.missing_columns} lowest columns" if product.missing_columns > 1 else "lowest column"
        yield f"a product lacks the partial products of its {columns}"
    if product.split is not None:
        yield _split(product.split)
    if product.overflow_exponent is not None:
        yield f"a product from 2^{product.overflow_exponent} on is an infinity"
    if scale is not None and scale.where == "product":
        yield f"{scale.format} scales, one for {counted(scale.size, 'lane')}, multiply the products"
    elif scale is not None:
        yield f"{scale.format} scales, one for {counted(scale.size, 'lane')}"
    if path.order is not None:
        yield f"lanes in the order {lanes_text(path.order)}"
    if path.result is not None:
        yield f"the last result to {_encode(path.result)}"
    if path.random is not None and not path.most_random_bits:
        yield f"r, a {path.random} of random bits, is not read"
    yield from _operands(path)
    words = describe(path)
    if words["specials"] != "-":
        yield words["specials"]


def _split(split: Split) -> str:
    """Which products of parts stand for a lane's product, and how they are added."""
    products = ", ".join(part_product("a", "b", *parts) for parts in split.parts)
    how = "terms of their own" if split.added == "together" else "a step each"
    specials = "what is no number is not split" if split.infinities == "whole" else "infinities are split"
    return f"a and b in parts in {split.format}, {ROUNDINGS[split.rounding]}: {products}, {how}; {specials}"


def _operands(path: Datapath) -> Iterator[str]:
    named = {"a": path.operand_a, "b": path.operand_b} | ({"c": path.operand_c} if path.c else {})
    for name, operand in named.items():
        if operand.mask is not None:
            yield f"{name} is read through {operand.mask:#x}"
        if operand.sign != "keep":
            yield f"{value_in_words(operand, 'sign').format(name)} is read"
    subnormals = describe(path)["subnormals"]
    if subnormals.startswith("inputs "):
        yield from (f"subnormal {part}" for part in subnormals.split("; "))
    elif subnormals != "-":
        yield f"subnormals {subnormals}"


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    terms = node.terms if isinstance(node, (Fused, Exact)) else ()
    for term in terms:
        yield from _nodes(term.of if isinstance(term, Term) else term)
    for child in (getattr(node, name, None) for name in ("x", "y", "acc")):
        if child is not None:
            yield from _nodes(child)


def _text(node: Node) -> str:
    if isinstance(node, Accumulator):
        return "c"
    if isinstance(node, Zero):
        return "0"
    if isinstance(node, Products):
        count = len(node.lanes)
        return f"product {node.lanes[0]}" if count == 1 else counted(count, "product")
    if isinstance(node, Fma):
        lanes, start = _chain(node)
        kind = "fused multiply-adds of lanes" if len(lanes) > 1 else "a fused multiply-add of lane"
        return f"{kind} {lanes_text(lanes)} onto {_text(start)}"
    if isinstance(node, Add):
        return f"({_operand(node.x)} + {_operand(node.y)})"
    return _exact(node) if isinstance(node, Exact) else _fused(node)


def _operand(node: Node) -> str:
    """An operand of an addition; a chain, which ends in what it begins with, stands in brackets."""
    return f"({_text(node)})" if isinstance(node, Fma) else _text(node)


def _chain(node: Fma) -> tuple[tuple[int, ...], Node]:
    """The lanes that are added one after another with one rounding, and what the first of them is added to."""
    lanes, start = node.lanes, node.acc
    while isinstance(start, Fma) and start.to == node.to:
        lanes, start = (*start.lanes, *lanes), start.acc
    return lanes, start


def _each(tree: Node) -> str:
    """What every rounded addition and multiply-add of a tree rounds to; each once."""
    each = dict.fromkeys(_encode(node.to) for node in _nodes(tree) if isinstance(node, (Add, Fma)))
    return f", each to {' or '.join(each)}" if each else ""


def _exact(node: Exact) -> str:
    times = " times its scales" if node.scaled else ""
    return f"the exact sum of {_terms(map(_text, node.terms))}{times}" + _to(node.to)


def _fused(node: Fused) -> str:
    rules = [_rules(term) for term in node.terms]
    alike = len(set(rules)) == 1
    texts = [_inside(term.of) + ("" if alike else f" ({rule})" if rule else "")
             for term, rule in zip(node.terms, rules, strict=True)]  # fmt: skip
    aligned = ", aligned to the largest exponent" + (f", {rules[0]}" if alike and rules[0] else "")
    negated = ", of another sign than c's by ones' complement, zeros too" if node.complement else ""
    return _terms(texts) + aligned + _zeros(node) + negated + _held(node) + _to(node.to)


def _held(node: Fused) -> str:
    """What becomes of a sum that its bits do not hold."""
    if node.carry_bits is None:
        return ""
    bits = counted(node.carry_bits, "carry bit")
    return f", with {bits} above it, beyond which it {value_in_words(node, 'carry')}"


def _inside(node: Node) -> str:
    return f"({_text(node)})" if isinstance(node, (Fused, Exact)) else _text(node)


def _rules(term: Term) -> str:
    cut = f"{ROUNDINGS[term.rounding]} {counted(term.fraction_bits or 0, 'bit')} below it"
    if term.sticky_bits is not None:
        cut += f" by the next {counted(term.sticky_bits, 'bit')} alone"
    parts = [cut] if term.fraction_bits is not None else []
    parts += [f"dropped {term.cutoff} below it"] if term.cutoff is not None else []
    parts += [f"shifted by {term.shift_limit} at most"] if term.shift_limit is not None else []
    if term.label_offset:
        parts.append(f"its own shown {abs(term.label_offset)} {'higher' if term.label_offset > 0 else 'lower'}")
    return ", ".join(parts)


def _zeros(node: Fused) -> str:
    """What zeros show to the maximum: of all terms, or each of its own."""
    whole = written(node)
    own = [f"a zero {_text_short(term.of)} as 2^{term.zero_exponent}" for term in whole.terms
           if term.zero_exponent is not None]  # fmt: skip
    every = [f"a zero as 2^{whole.zero_exponent}"] if whole.zero_exponent is not None else []
    return f", {' and '.join(own + every)} there" if own or every else ""


def _text_short(node: Node) -> str:
    return "c" if isinstance(node, Accumulator) else "term"


def _terms(texts: Iterable[str]) -> str:
    """Terms joined by plus signs; equal ones are counted."""
    return " + ".join(_times(text, len(list(some))) for text, some in groupby(texts))


def _times(text: str, count: int) -> str:
    return text if count == 1 else f"{count} times {text}"


def _to(to: Encode | None) -> str:
    return "" if to is None else f", to {_encode(to)}"


def _encode(to: Encode) -> str:
    """A rounding to a format with what is out of the ordinary."""
    by = f" stochastically by the {bits_taken(to)}, else" if to.random_bits else ""
    if not formats.get(to.format).is_float:
        return f"{to.format}{f'{by} {ROUNDINGS[to.rounding]}' if by else ''}, {overflow(to)}"
    first = f" {ROUNDINGS[to.first[1]]} at {counted(to.first[0], 'bit')}, then" if to.first else ""
    return ", ".join([f"{to.format}{first}{by} {ROUNDINGS[to.rounding]}", *_unusual(to)])


def _unusual(to: Encode) -> Iterable[str]:
    if to.overflow == "largest" or (to.overflow == "infinity" and to.rounding not in ("RNE", "RNA")):
        yield overflow(to)
    if to.zero == "positive":
        yield value_in_words(to, "zero")
