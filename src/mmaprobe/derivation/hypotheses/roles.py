"""The fields of a datapath by the parts they play, each with all its changes: what a wide search varies.

A part is a kind of term of an aligned sum (C and what was added so far,
products, sums of groups) or a kind of result (of a product, of the inner sums, of the whole sum, of the last
conversion); all nodes that play one part change together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

from mmaprobe import formats
from mmaprobe.derivation.hypotheses import field_choices
from mmaprobe.models.combinations import Axis, Edit, NumberAxis, ValueAxis
from mmaprobe.parameters.datapath import (
    OVERFLOWS,
    PART_ROUNDINGS,
    Accumulator,
    Datapath,
    Encode,
    Fused,
    Product,
    Products,
    Split,
    Term,
    Zero,
    same_range,
    walk,
)
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.rewrite import map_fused, map_node, map_terms, with_encode


def term_role(term: Term) -> str:
    """``acc``: C or a rounded sum; ``products``; ``group``: a sum handed on."""
    if isinstance(term.of, Products):
        return "products"
    if isinstance(term.of, (Accumulator, Zero)) or getattr(term.of, "to", None) is not None:
        return "acc"
    return "group"


def term_roles(datapath: Datapath) -> list[tuple[str, bool]]:
    """(part, whether in a sum that is handed on) of every kind of term."""
    found: dict[tuple[str, bool], None] = {}
    for node in walk(datapath.tree):
        if isinstance(node, Fused):
            found |= {(term_role(term), node.to is None): None for term in node.terms}
    return list(found)


@lru_cache(maxsize=8192)
def terms(role: tuple[str, bool], **fields: Any) -> Edit:
    """Change these fields of the terms of one kind."""

    def at(node: Fused) -> Fused:
        if (node.to is None) != role[1]:
            return node
        return replace(node, terms=tuple(replace(t, **fields) if term_role(t) == role[0] else t for t in node.terms))

    return lambda path: map_fused(path, at)


def widths(role: tuple[str, bool], uncut: bool) -> Axis:
    return NumberAxis(lambda bits: terms(role, fraction_bits=bits), field_choices.widths(uncut))


def modes(role: tuple[str, bool]) -> Axis:
    return ValueAxis(
        tuple(terms(role, rounding=mode) for mode in formats.ROUNDINGS),
        tuple({"rounding": mode} for mode in formats.ROUNDINGS),
    )


def zeros(role: tuple[str, bool], values: Iterable[int | None]) -> Axis:
    return NumberAxis(lambda value: terms(role, zero_exponent=value), tuple(values))


def cutoffs(role: tuple[str, bool]) -> Axis:
    return NumberAxis(lambda value: terms(role, cutoff=value), field_choices.widths(True))


# --- what few units have

MOST_STICKY = 8
"""Bits that a rounding looks at, at most, where it does not look at all."""
MOST_CARRY = 8
"""Bits of a sum above its largest exponent, at most, where it has not as many as it needs."""
MOST_OFFSET = 6
"""How much higher or lower a term shows its exponent, at most."""


OFFSETS = tuple(range(-MOST_OFFSET, MOST_OFFSET + 1))
"""How much higher a term may show its exponent."""


def _terms_of(role: tuple[str, bool] | None, **fields: Any) -> Edit:
    """Change these fields of the terms of one kind, or of all."""
    return terms(role, **fields) if role else lambda path: map_terms(path, lambda term: replace(term, **fields))


def stickies(role: tuple[str, bool] | None) -> Axis:
    """How many bits a term's rounding looks at."""
    return NumberAxis(lambda bits: _terms_of(role, sticky_bits=bits), (None, *range(MOST_STICKY + 1)))


def shift_limits(role: tuple[str, bool] | None) -> Axis:
    """By how much a term is shifted at most."""
    return NumberAxis(lambda most: _terms_of(role, shift_limit=most), field_choices.widths(True))


def label_offsets(role: tuple[str, bool]) -> Axis:
    """How much higher a term shows its exponent."""
    return NumberAxis(lambda by: terms(role, label_offset=by), OFFSETS)


@lru_cache(maxsize=1)
def carries() -> Axis:
    """How many bits all aligned sums have above their largest exponents, and what becomes of what they do not hold."""
    some = [(bits, how) for bits in range(MOST_CARRY + 1) for how in choices(Fused, "carry")]
    return tuple(_of_sums(carry_bits=bits, carry=how) for bits, how in [(None, "wrap"), *some])


@lru_cache(maxsize=1)
def complements() -> Axis:
    """Whether aligned sums negate by ones' complement."""
    return tuple(_of_sums(complement=flag) for flag in (False, True))


def _of_sums(**fields: Any) -> Edit:
    return lambda path: map_fused(path, lambda node: replace(node, **fields))


@lru_cache(maxsize=64)
def missing_columns(most: int) -> Axis:
    """How many of the lowest columns of partial products are not there."""

    def without(columns: int | None) -> Edit:
        return lambda path: replace(path, product=replace(path.product, missing_columns=columns or 0))

    return NumberAxis(lru_cache(maxsize=None)(without), tuple(range(most + 1)))


REACHES = ((1, 1), (2, 2), (2, 3), (3, 3), (3, 5))
"""How many parts, and below what those of a product add up to, in emulations: 3xTF32, BF16x3, BF16x6, BF16x9."""
SPLIT_PARTS = 3
"""Parts at most that are to hold an operand."""


@lru_cache(maxsize=1)
def pair_orders() -> tuple[tuple[str, ...], ...]:
    """The products of parts that emulations add, the smallest or the largest first, those of a size by either part."""
    found = []
    for parts, reach in REACHES:
        pairs = [(i, j) for i, j in product(range(parts), repeat=2) if i + j < reach]
        for size, first in product((-1, 1), (-1, 1)):
            ordered = sorted(pairs, key=lambda pair: (size * sum(pair), first * pair[0]))
            found.append(tuple(f"{i}{j}" for i, j in ordered))
    return tuple(dict.fromkeys(found))


def part_formats(path: Datapath) -> tuple[str, ...]:
    """Formats of so many bits that some parts hold the operands, and not one part."""
    a, b = formats.get(path.a), formats.get(path.b)
    wide = max(a.fraction_bits, b.fraction_bits) + 1
    some = [fmt for fmt in formats.FORMATS.values() if same_range(a, fmt) and same_range(b, fmt) and fmt.nan == "ieee"]
    bits = {fmt.name: fmt.fraction_bits + 1 for fmt in some}
    return tuple(name for name, held in bits.items() if held < wide <= SPLIT_PARTS * held)


def split(path: Datapath, **fields: Any) -> Datapath:
    """The datapath whose operands are in parts, by these fields and those that it has."""
    known = path.product.split
    made = replace(known, **fields) if known is not None else Split(**fields)
    return replace(path, product=replace(path.product, split=made))


@lru_cache(maxsize=8)
def parts(names: tuple[str, ...]) -> Axis:
    """In which of these formats the parts are, and how they are rounded."""
    every = product(names, PART_ROUNDINGS)
    return tuple(partial(split, format=name, rounding=mode) for name, mode in every)


@lru_cache(maxsize=1)
def split_infinities() -> Axis:
    """What becomes of infinities and NaNs in parts."""
    return tuple(partial(split, infinities=how) for how in choices(Split, "infinities"))


# --- results

PARTS = ("product", "inner", "root", "result")


def encode_of(datapath: Datapath, part: str) -> Encode | None:
    """The Encode that plays a part; None where there is none."""
    if part == "product":
        return datapath.product.to
    if part == "result":
        return datapath.result
    nodes = [node for node in walk(datapath.tree) if getattr(node, "to", None) is not None]
    chosen = nodes[:1] if part == "root" else nodes[1:]
    return getattr(chosen[0], "to", None) if chosen else None


def encodes(part: str, change: Callable[[Encode], Encode]) -> Edit:
    """Change the Encodes of one part; ``sums``: inner ones and the root's."""

    def apply(path: Datapath) -> Datapath:
        if part == "product":
            return replace(path, product=replace(path.product, to=path.product.to and change(path.product.to)))
        if part == "result":
            return replace(path, result=path.result and change(path.result))

        if part == "root":
            return replace(path, tree=with_encode(path.tree, change))
        tree = map_node(path.tree, lambda node: with_encode(node, change))
        root: Encode = path.tree.to  # type: ignore[union-attr, assignment]
        return replace(path, tree=tree if part == "sums" else with_encode(tree, lambda _: root))

    return apply


@lru_cache(maxsize=256)
def encode_axis(part: str, **fields: tuple[Any, ...]) -> Axis:
    """Every combination of these values of an Encode's fields."""
    names = list(fields)
    return encode_values(part, [dict(zip(names, values, strict=True)) for values in product(*fields.values())])


def encode_values(part: str, every: Sequence[dict[str, Any]]) -> Axis:
    """Each of these values of some of an Encode's fields."""
    changes = [encodes(part, lambda to, v=values: replace(to, **v)) for values in every]  # type: ignore[misc]
    return ValueAxis(tuple(changes), tuple(every))


def parts_of(datapath: Datapath) -> list[str]:
    """The parts that Encodes play here; where inner sums and the root are alike also both together."""
    found = [part for part in PARTS if encode_of(datapath, part) is not None]
    return ["sums", *found] if "inner" in found else found


def roundings(part: str) -> Axis:
    return encode_axis(part, rounding=formats.ROUNDINGS, overflow=OVERFLOWS)


def first_cuts(datapath: Datapath, part: str) -> Axis:
    """No first cut, and every one at or above the precision's last places."""
    to = encode_of(datapath, "root" if part == "sums" else part)
    assert to is not None
    return _first_cuts(part, formats.get(to.format).fraction_bits + 12)


@lru_cache(maxsize=64)
def _first_cuts(part: str, most: int) -> Axis:
    return encode_values(part, [{"first": cut} for cut in (None, *product(range(1, most), formats.ROUNDINGS))])


def products(datapath: Datapath) -> list[Axis]:
    """The label of a product, and from where it is infinite."""
    return _products(formats.get(datapath.a).max_exponent + formats.get(datapath.b).max_exponent + 2)


@lru_cache(maxsize=64)
def _products(top: int) -> list[Axis]:
    def limit(value: int | None) -> Edit:
        return lambda path: replace(path, product=replace(path.product, overflow_exponent=value))

    labels = [
        lambda path, v=label: replace(path, product=replace(path.product, label=v))
        for label in choices(Product, "label")
    ]
    limits = None, *range(max(1, top - 300), top + 1)
    return [labels, NumberAxis(lru_cache(maxsize=None)(limit), limits, smooth=False)]
