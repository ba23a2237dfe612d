"""The fields of a datapath in the groups that a search varies together, from coarse to fine: all terms or results, a
level of sums, one role.

Each group is a base and the axes around it; a field that is absent (a rounding of the products, a format
between the steps) comes with bases of its own.  ``simple`` are numbers and roundings that are there; ``odd`` adds and
removes as well; ``ends`` is what happens at the ends of the range, ``odd_ends`` that together with numbers; ``signs``
what only the sign of a zero shows.  ``precisions`` are the numbers of fraction bits that answers show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.search.descent import Group
from mmaprobe.models.combinations import Axis, Edit, NumberAxis, ValueAxis
from mmaprobe.parameters.datapath import (
    OVERFLOWS,
    SUBNORMALS,
    Datapath,
    Encode,
    Fma,
    Fused,
    Split,
    Term,
    Zero,
    holds,
    walk,
)
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.groupings import scaled_elsewhere
from mmaprobe.parameters.rewrite import ENDS, aligned, map_fused, map_terms

Precisions = tuple[int, ...]
MOST_FIRST = 24
"""Bits, fewer than which products are cut to: those of f32's significand."""
ROOM = 12
"""Bits that a first cut of a sum keeps beyond those of its format, at most; tuned by ``tests/recovery``."""
MOST_MOVED = 12
"""Places that the exponent of a zero is moved by together with the number of fraction bits, at most."""
MOST_NEAR = 2
"""Places by which widths are moved where C is dropped below a unit, at most."""
KEPT = ("keep", "signed_zero")
"""Whether an operand's subnormals are kept or zeros of their sign."""
MOST_SIGNS = 40_000
"""Combinations of signs and flushes, at most: a second of one core where K is 64."""
TINY = (("keep", "after"), *(("signed_zero", when) for when in choices(Encode, "tininess")))
"""Whether tiny results are kept or zeros of their sign, and how they are judged tiny."""
SIGNED = ("subnormals", "tininess", "zero", "underflow")
"""Fields of an Encode of which signs of zeros tell."""
FURTHER = tuple(name for name in ENDS if name not in ("subnormals", "tininess", "overflow", "zero", "underflow"))
"""Fields of an Encode at the ends of its range that have no group of their own here."""


def simple(path: Datapath, hidden: bool = True) -> Iterator[Group]:
    """Precisions and roundings, labels and the zero exponent of all terms: nothing is added or removed.  ``hidden``:
    where a result shows little of a sum, exponents shown elsewhere as well."""
    terms, uncut = roles.term_roles(path), field_choices.may_be_uncut(path)
    yield from _widths(path, terms)
    for part in roles.parts_of(path):
        yield path, [rounding(part)]
        to = roles.encode_of(path, "root" if part == "sums" else part)
        if to is not None and to.first is not None:
            yield path, [first_modes(part, to.first[0])]
    if terms:
        yield path, [roles.products(path)[0], tied_widths(uncut)]
        yield path, [tied_zeros(path)]
    if (
        hidden and formats.get(path.d).fraction_bits < MOST_FIRST - 1
    ):  # which shows so little that numbers are mistaken for others
        yield from _shown_elsewhere(path, terms)
    if path.product.split is not None:
        yield from splits(path)


def tied(path: Datapath) -> Iterator[Group]:
    """All terms alike in width and rounding, and the label, all together."""
    yield path, [roles.products(path)[0], tied_widths(field_choices.may_be_uncut(path)), tied_modes()]


def odd(path: Datapath, precisions: Precisions, cuts: bool = True) -> Iterator[Group]:
    """Every group of precisions and roundings; without ``cuts`` the terms of sums stay as they are."""
    terms = roles.term_roles(path) if cuts else []
    yield from _widths(path, terms)
    yield from _results(path, precisions)
    yield from _conversions(path, precisions)
    if terms:
        yield path, [roles.products(path)[0], tied_widths(field_choices.may_be_uncut(path))]
    yield from _products(path, terms)
    for first, second in combinations(terms, 2):
        yield path, [roles.widths(first, False), roles.widths(second, False)]
        yield path, [roles.modes(first), roles.modes(second)]
    yield from _shown_elsewhere(path, terms)
    yield from _sums_cut_once_more(path, terms)


def ends(path: Datapath) -> Iterator[Group]:
    """Zero exponents, what is flushed, what overflows: each alone and in the pairs that hide each other."""
    terms, parts = roles.term_roles(path), roles.parts_of(path)
    operands, flushes = operand_flushes(path), [flush(part) for part in parts]
    if terms:
        yield path, [tied_zeros(path)]
    yield path, operands
    yield from ((path, [each]) for each in flushes)
    yield path, [field_choices.flush()]
    yield path, [field_choices.overflow()]
    yield from ((path, [overflow(part)]) for part in parts)
    yield from (
        (path, [roles.encode_axis(part, **{name: choices(Encode, name)})]) for name in FURTHER for part in parts
    )
    yield path, [*operands, field_choices.flush()]
    yield path, [roles.products(path)[1]]
    if path.product.split is not None:
        yield path, [roles.split_infinities()]
    if len(terms) > 1:
        yield from ((path, [zeros(path, role)]) for role in terms)
    if terms:
        yield from ((path, [tied_zeros(path), each]) for each in (*flushes, *operands))
        yield path, [roles.products(path)[0]]
        yield path, [roles.products(path)[0], tied_zeros(path)]
    apart = [each for each, part in zip(flushes, parts, strict=True) if part != "sums"]
    yield from ((path, [first, second]) for first, second in combinations(apart, 2))
    yield from ((path, [roles.roundings(part)]) for part in parts)


def odd_ends(path: Datapath, precisions: Precisions) -> Iterator[Group]:
    """Numbers and ends in the pairs that hide each other, and every group of numbers."""
    terms = roles.term_roles(path)
    yield from _held_otherwise(path)
    yield from simple(path)
    if terms:
        if any(term.zero_exponent is not None for term in _terms(path)):
            yield path, [moved_grids(path), tied_modes()]
        if with_zeros(path) != path:
            yield with_zeros(path), [tied_zeros(path)]
        yield path, [roles.products(path)[0], tied_zeros(path), tied_widths(False)]
    for role in terms:
        yield path, [zeros(path, role), roles.widths(role, False)]
        yield path, [roles.cutoffs(role), roles.widths(role, False), roles.modes(role)]
        yield path, [roles.products(path)[0], roles.widths(role, False), roles.modes(role)]
        yield from ((path, [zeros(path, role), each]) for each in operand_flushes(path))
        yield from ((path, [roles.cutoffs(role), each]) for each in operand_flushes(path))
    if len(terms) > 1:
        yield from ((path, [zeros(path, role), flush(part)]) for role in terms for part in roles.parts_of(path))
    yield from odd(path, precisions)
    for _, other in scaled_elsewhere(path):
        if roles.term_roles(other):
            yield other, [tied_widths(field_choices.may_be_uncut(other))]
    yield from _exact_sums_cut(path, terms)


def _exact_sums_cut(path: Datapath, terms: list[tuple[str, bool]]) -> Iterator[Group]:
    """The exact sums aligned and cut: those inside or around sums that are cut already keep a width of their own."""
    cut = aligned(path)
    if cut == path:
        return
    added = [role for role in roles.term_roles(cut) if role not in terms] if terms else []
    if not added:
        yield cut, [tied_widths(False), tied_modes()]
    yield from ((cut, [roles.widths(role, False), roles.modes(role)]) for role in added)


def rare(path: Datapath) -> Iterator[Group]:
    """What few units have: sums of so many bits, roundings that see so many, shifts that stop, negation by ones'
    complement, an exponent shown elsewhere, products without their lowest columns; each with what it hides."""
    for columns in truncations(path):
        yield path, [columns]
        yield path, [columns, rounding("root")]
    terms = roles.term_roles(path)
    if not terms:
        return
    every = [*terms, None] if len(terms) > 1 else [None]
    yield path, [roles.carries()]
    yield path, [roles.carries(), tied_widths(False)]
    for role in every:
        yield path, [roles.stickies(role), roles.modes(role) if role else tied_modes()]
        yield path, [roles.shift_limits(role)]
        yield path, [roles.shift_limits(role), roles.widths(role, False) if role else tied_widths(False)]
    for offset in (role for role in terms if role[0] == "acc"):
        yield path, [roles.complements(), roles.label_offsets(offset)]
        yield path, [roles.complements(), roles.label_offsets(offset), tied_widths(False)]
        yield path, [roles.label_offsets(offset), roles.cutoffs(offset)]
        yield path, [roles.label_offsets(offset), zeros(path, offset)]
    yield path, [roles.complements(), tied_widths(False)]


def complemented(path: Datapath) -> bool:
    """Whether a sum negates by ones' complement."""
    return any(isinstance(node, Fused) and node.complement for node in walk(path.tree))


def truncations(path: Datapath) -> list[Axis]:
    """How many of the lowest columns of partial products are not there, of floats."""
    a, b = formats.get(path.a), formats.get(path.b)
    return [roles.missing_columns(a.fraction_bits + b.fraction_bits + 1)] if a.is_float and b.is_float else []


def splits(path: Datapath) -> Iterator[Group]:
    """Operands in parts of every format that few of hold them, and the products of these that emulations add: side by
    side, and each in a step of its own, the order of which shows then."""
    names = roles.part_formats(path)
    if not names or path.scale is not None:
        return
    sizes: set[frozenset[str]] = set()
    for pairs, added in product(roles.pair_orders(), choices(Split, "added")):
        alike = added == "together" and not any(isinstance(node, Fma) for node in walk(path.tree))
        if len(pairs) > 1 or added == "together":
            if not (alike and frozenset(pairs) in sizes):
                yield roles.split(path, format=names[0], pairs=pairs, added=added), [roles.parts(names)]
            sizes |= {frozenset(pairs)} if alike else set()


def _held_otherwise(path: Datapath) -> Iterator[Group]:
    """Another format for what a first cut has made short already, with the roundings and overflows of that format."""
    for part in parts_apart(path):
        to = roles.encode_of(path, part)
        if part != "result" and to is not None and to.first is not None:
            for name in wide_formats():
                if name != to.format and (part != "product" or formats.get(name).container_bits < 64):
                    held = roles.encodes(part, lambda to, name=name: replace(to, format=name))  # type: ignore[misc]
                    yield held(path), [roles.roundings(part)]


def signs(path: Datapath, alike: Callable[[Datapath], bool], pairs: bool = False) -> list[Axis]:
    """What is flushed as far as magnitudes do not tell it (``alike``; ``pairs``: of two changes at once), with every
    sign of a zero, as axes: only in combination do these show."""
    operands = {name: {how: field_choices.operand_set(name, how) for how in KEPT} for name in operand_names(path)}
    tiny = {part: {each: tiny_results(part, *each) for each in TINY} for part in parts_apart(path)}
    left = _untold(path, {**operands, **tiny}, alike, pairs)
    axes: list[Axis] = [
        [field_choices.operand_set(name, how) for how in SUBNORMALS if how in left[name] or how == "zero"]
        for name in operands
    ]
    for part in filter(left.get, tiny):  # parts that differ inside, whose magnitudes no one way gives, have none
        some = [each for each in TINY if each in left[part]]
        flushes = [(how, when) for kept, when in some for how in (("keep",) if kept == "keep" else SUBNORMALS[1:])]
        both = product(flushes, choices(Encode, "zero"), choices(Encode, "underflow"))
        values = [dict(zip(SIGNED, (*flush, *signs), strict=True)) for flush, *signs in both]
        axes.append(roles.encode_values(part, values))
    return axes


def fewer(axes: list[Axis]) -> list[Axis]:
    """The axes, the longest of them cut in half as often as it takes to make no more than ``MOST_SIGNS``."""
    axes = list(axes)
    while np.prod([float(len(axis)) for axis in axes]) > MOST_SIGNS:
        widest = max(range(len(axes)), key=lambda i: len(axes[i]))
        axes[widest] = list(axes[widest])[: len(axes[widest]) // 2]
    return axes


def _untold(
    path: Datapath, ways: dict[str, dict[Any, Edit]], alike: Callable[[Datapath], bool], pairs: bool
) -> dict[str, set[Any]]:
    """Of every field the values that magnitudes do not tell from the datapath's, alone or with one of another field."""
    left: dict[str, set[Any]] = {name: set() for name in ways}
    every = [(name, value, edit) for name, edits in ways.items() for value, edit in edits.items()]
    for name, value, edit in every:
        if alike(edit(path)):
            left[name].add(value)
    for (one, first, edit), (two, second, also) in combinations(every, 2) if pairs else ():
        if one != two and not (first in left[one] and second in left[two]) and alike(also(edit(path))):
            left[one].add(first)
            left[two].add(second)
    return left


def tiny_results(part: str, subnormals: Any, tininess: Any) -> Edit:
    """Keep or flush the tiny results of a part, judged tiny so."""
    return roles.encodes(part, lambda to: replace(to, subnormals=subnormals, tininess=tininess))


def operand_names(path: Datapath) -> list[str]:
    return [name for name in "abc" if name != "c" or path.c is not None]


def parts_apart(path: Datapath) -> list[str]:
    """The parts that Encodes play, each once."""
    return [part for part in roles.parts_of(path) if part != "sums"]


def operand_flushes(path: Datapath) -> list[Axis]:
    """Of each operand: subnormals kept or zeros of their sign."""
    return [[field_choices.operand_set(name, how) for how in KEPT] for name in operand_names(path)]


@lru_cache(maxsize=16)
def flush(part: str) -> Axis:
    """What becomes of tiny results of a part, and how they are judged tiny."""
    return roles.encode_values(part, [{"subnormals": kept, "tininess": when} for kept, when in TINY])


def overflow(part: str) -> Axis:
    return roles.encode_axis(part, overflow=OVERFLOWS)


def zeros(path: Datapath, role: tuple[str, bool]) -> Axis:
    """The exponent that a zero of one kind of term shows."""
    return roles.zeros(role, field_choices.zero_exponents(path))


def tied_zeros(path: Datapath) -> Axis:
    """The exponent that a zero shows, the same of all terms."""
    return _tied_zeros(tuple(field_choices.zero_exponents(path)))


@lru_cache(maxsize=64)
def _tied_zeros(values: tuple[int | None, ...]) -> Axis:
    return NumberAxis(all_zeros, values)


@lru_cache(maxsize=4096)
def all_zeros(value: int | None) -> Edit:
    """Set the zero exponent of every term."""
    return lambda path: map_terms(path, lambda term: replace(term, zero_exponent=value))


def moved_grids(path: Datapath) -> Axis:
    """Numbers of fraction bits and exponents of zeros that leave the grid of a sum of tiny terms where it is."""
    fewest = min((term.fraction_bits for term in _terms(path) if term.fraction_bits is not None), default=0)
    return NumberAxis(moved_grid, tuple(range(-min(MOST_MOVED, fewest), MOST_MOVED + 1)))


def _terms(path: Datapath) -> list[Term]:
    return [term for node in walk(path.tree) if isinstance(node, Fused) for term in node.terms]


@cache
def moved_grid(by: int) -> Edit:
    """So many more fraction bits of every term, and a zero that shows an exponent as much larger."""

    def at(term: Term) -> Term:
        if term.fraction_bits is None or term.zero_exponent is None:
            return term
        return replace(term, fraction_bits=term.fraction_bits + by, zero_exponent=term.zero_exponent + by)

    return lambda path: map_terms(path, at)


def with_zeros(path: Datapath) -> Datapath:
    """The datapath whose rounded aligned sums of products alone, or of groups, begin with a zero."""

    def at(node: Fused) -> Fused:
        if node.to is None or any(roles.term_role(term) == "acc" for term in node.terms):
            return node
        return replace(node, terms=(replace(node.terms[0], of=Zero()), *node.terms))

    return map_fused(path, at)


def without_zeros(path: Datapath) -> Datapath:
    """The datapath whose sums of other terms hold no zero: a zero takes the sign of one that is negative."""

    def at(node: Fused) -> Fused:
        terms = tuple(term for term in node.terms if not isinstance(term.of, Zero))
        return replace(node, terms=terms) if 0 < len(terms) < len(node.terms) else node

    return map_fused(path, at)


def _widths(path: Datapath, terms: list[tuple[str, bool]]) -> Iterator[Group]:
    """Fraction bits and roundings, of all terms together and of one kind."""
    uncut = field_choices.may_be_uncut(path)
    if terms:
        yield path, [tied_widths(uncut), tied_modes()]
    if any(handed for _, handed in terms):
        for handed in (True, False):
            yield path, [level_widths(handed, uncut), level_modes(handed)]
    for role in terms if len(terms) > 1 else ():
        yield path, [roles.widths(role, uncut), roles.modes(role)]


def _shown_elsewhere(path: Datapath, terms: list[tuple[str, bool]]) -> Iterator[Group]:
    """C, or the sum so far, shows another exponent than its own among the terms of a sum, with the width of all; it may
    also be dropped once it is below a unit."""
    widths = sorted({term.fraction_bits for term in _terms(path) if term.fraction_bits is not None})
    near = range(max(widths[0] - MOST_NEAR, 0), widths[-1] + MOST_NEAR + 1) if widths else ()
    for role in (role for role in terms if role[0] == "acc" and len(terms) > 1):
        yield path, [roles.label_offsets(role), tied_widths(False)]
        yield path, [[_dropped(role, *each) for each in product(near, roles.OFFSETS)]]


@lru_cache(maxsize=4096)
def _dropped(role: tuple[str, bool], bits: int, offset: int) -> Edit:
    """So many fraction bits of every term, and terms of one kind that show an exponent so much higher and are dropped
    where they are below a unit."""
    own = roles.terms(role, label_offset=offset, cutoff=bits - offset)
    return lambda path: own(map_terms(path, lambda term: replace(term, fraction_bits=bits)))


def _results(path: Datapath, precisions: Precisions) -> Iterator[Group]:
    for part in roles.parts_of(path):
        if part != "product":
            yield path, [first_cuts(part, precisions), rounding(part)]
    if path.result is not None:
        yield path, [rounding(_inner(path)), rounding("result")]
        yield replace(path, result=None), [rounding("root")]


def _sums_cut_once_more(path: Datapath, terms: list[tuple[str, bool]]) -> Iterator[Group]:
    """A first cut of the whole sum below the result's places, beside the cuts of its terms; terms dropped."""
    modes = {term.rounding for node in walk(path.tree) if isinstance(node, Fused) for term in node.terms}
    most = formats.get(roles.encode_of(path, "root").format).fraction_bits + ROOM  # type: ignore[union-attr]
    for mode in sorted(mode for mode in modes if mode):
        yield path, [numbered_cuts("root", mode, most), rounding("root")]
        for role in terms:
            yield path, [numbered_cuts("root", mode, most), roles.widths(role, field_choices.may_be_uncut(path))]
    for role in terms:
        yield path, [roles.cutoffs(role), roles.widths(role, field_choices.may_be_uncut(path))]


def _conversions(path: Datapath, precisions: Precisions) -> Iterator[Group]:
    """Another format between the steps."""
    inner = _inner(path)
    for name in wide_formats():
        yield converted(path, name), [rounding(inner), rounding("result")]
        if path.result is None:
            yield carried(path, name), [rounding(inner)]
    if path.result is not None:
        yield path, [first_cuts(inner, precisions), rounding(inner), rounding("result")]
        most = formats.get(roles.encode_of(path, "root").format).fraction_bits  # type: ignore[union-attr]
        yield from ((path, [numbered_cuts(inner, mode, most)]) for mode in formats.ROUNDINGS)


def converted(path: Datapath, name: str) -> Datapath:
    """The datapath with this format in between, and a last conversion to its result's."""
    wide = roles.encodes(_inner(path), lambda to: replace(to, format=name, first=None))(path)
    return replace(wide, result=path.result or Encode(path.d))


def carried(path: Datapath, name: str) -> Datapath:
    """The datapath with this format in between, and a last conversion that does all that its whole sum did."""
    wide = roles.encodes(_inner(path), lambda to: Encode(name, zero=to.zero, underflow=to.underflow))(path)
    last = roles.encode_of(path, "root")
    assert last is not None
    fits = holds(formats.get(path.d), formats.get(last.format))
    return replace(wide, result=last if fits else replace(last, format=path.d))


def _products(path: Datapath, terms: list[tuple[str, bool]]) -> Iterator[Group]:
    """Products exact, rounded to a format, or to a number of bits."""
    fused = [tied_widths(field_choices.may_be_uncut(path)), tied_modes()] if terms else []
    if path.product.to is not None:
        yield with_product(path, None), fused
    yield from rounded_products(path)
    for mode in formats.ROUNDINGS:
        yield with_product(path, Encode("f32")), [numbered_cuts("product", mode, MOST_FIRST)]


def rounded_products(path: Datapath) -> Iterator[Group]:
    """Products rounded to each format."""
    for name in wide_formats():
        if formats.get(name).container_bits < 64:
            yield with_product(path, Encode(name)), [roles.roundings("product")]


def with_product(path: Datapath, to: Encode | None) -> Datapath:
    """The datapath with its products rounded so."""
    return replace(path, product=replace(path.product, to=to))


def _inner(path: Datapath) -> str:
    """The part of the sums, all of them where there are several kinds."""
    return "sums" if "sums" in roles.parts_of(path) else "root"


@lru_cache(maxsize=1)
def wide_formats() -> tuple[str, ...]:
    """Formats that a sum can be rounded to: floats of 16 bits and more with infinities."""
    every = (formats.get(name) for name in formats.FORMATS)
    return tuple(f.name for f in every if f.is_float and f.nan == "ieee" and f.container_bits >= 16)


@lru_cache(maxsize=2)
def tied_widths(uncut: bool) -> Axis:
    """Every number of fraction bits, the same of all terms."""
    return field_choices.fraction_bits(uncut)


@lru_cache(maxsize=1)
def tied_modes() -> Axis:
    return field_choices.alignment()


def _level(handed: bool, **fields: Any) -> Edit:
    """Change all terms of the sums that are handed on, or of those that are rounded."""

    def at(node: Fused) -> Fused:
        if (node.to is None) != handed:
            return node
        return replace(node, terms=tuple(replace(term, **fields) for term in node.terms))

    return lambda path: map_fused(path, at)


@lru_cache(maxsize=4)
def level_widths(handed: bool, uncut: bool) -> Axis:
    """Every number of fraction bits, the same of all terms of a level of sums."""
    return NumberAxis(lambda bits: _level(handed, fraction_bits=bits), field_choices.widths(uncut))


@lru_cache(maxsize=2)
def level_modes(handed: bool) -> Axis:
    edits = tuple(_level(handed, rounding=mode) for mode in formats.ROUNDINGS)
    return ValueAxis(edits, tuple({"rounding": mode} for mode in formats.ROUNDINGS))


def rounding(part: str) -> Axis:
    return roles.encode_axis(part, rounding=formats.ROUNDINGS)


@lru_cache(maxsize=64)
def first_cuts(part: str, precisions: Precisions) -> Axis:
    """No first cut, and one to each of these numbers of bits."""
    return roles.encode_axis(part, first=(None, *product(precisions, formats.ROUNDINGS)))


@lru_cache(maxsize=64)
def first_modes(part: str, bits: int) -> Axis:
    """A first cut to so many bits, of every rounding."""
    return roles.encode_axis(part, first=tuple((bits, mode) for mode in formats.ROUNDINGS))


@lru_cache(maxsize=64)
def numbered_cuts(part: str, mode: str, most: int) -> Axis:
    """A first cut of a part to every number of bits below ``most``."""

    @cache
    def cut(bits: int | None) -> Edit:
        return roles.encodes(part, lambda to: replace(to, first=None if bits is None else (bits, mode)))

    return NumberAxis(cut, tuple(range(1, most)))
