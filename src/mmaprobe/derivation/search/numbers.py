"""Precisions and roundings of a datapath by groups of fields that are varied together, the likeliest first.

Each group is a base and the axes of a grid around it; a field that is absent (a rounding of the products, a format
between the steps) comes with bases of its own.  ``precisions`` are the numbers of fraction bits that answers show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from typing import Any

from mmaprobe import formats
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.search.loss import Axis
from mmaprobe.models.grid import Change, Numbers
from mmaprobe.parameters.datapath import Datapath, Encode, Fused, walk
from mmaprobe.parameters.rewrite import map_fused

Group = tuple[Datapath, list[Axis]]
Precisions = tuple[int, ...]
MOST_FIRST, ROOM = 24, 12
"""Products are cut to fewer bits than this; a sum keeps so many more than its format at most."""


def groups(path: Datapath, precisions: Precisions, cuts: bool = True) -> Iterator[Group]:
    """Every group around a datapath; without ``cuts`` the terms of sums stay as they are."""
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
    yield from _sums_cut_once_more(path, terms)


def singles(path: Datapath, precisions: Precisions) -> Iterator[Group]:
    """The groups that add or remove nothing and vary one part alone: what a datapath is told from when it is found."""
    terms, uncut = roles.term_roles(path), field_choices.may_be_uncut(path)
    for role in terms:
        yield path, [roles.widths(role, uncut), roles.modes(role)]
    for part in roles.parts_of(path):
        yield path, [first_cuts(part, precisions), rounding(part)]
    yield path, [roles.products(path)[0]]


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
    if path.result is not None:
        yield path, [first_cuts(inner, precisions), rounding(inner), rounding("result")]


def converted(path: Datapath, name: str) -> Datapath:
    """The datapath with this format in between, and a last conversion to its result's."""
    wide = roles.encodes(_inner(path), lambda to: replace(to, format=name, first=None))(path)
    return replace(wide, result=path.result or Encode(path.d))


def _products(path: Datapath, terms: list[tuple[str, bool]]) -> Iterator[Group]:
    """Products exact, rounded to a format, or to a number of bits."""
    fused = [tied_widths(field_choices.may_be_uncut(path)), tied_modes()] if terms else []
    if path.product.to is not None:
        yield with_product(path, None), fused
    for name in wide_formats():
        if formats.get(name).container_bits < 64:
            yield with_product(path, Encode(name)), [rounding("product")]
    for mode in formats.ROUNDINGS:
        yield with_product(path, Encode("f32")), [numbered_cuts("product", mode, MOST_FIRST)]


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


def _level(handed: bool, **fields: Any) -> Change:
    """Change all terms of the sums that are handed on, or of those that are rounded."""

    def at(node: Fused) -> Fused:
        if (node.to is None) != handed:
            return node
        return replace(node, terms=tuple(replace(term, **fields) for term in node.terms))

    return lambda path: map_fused(path, at)


@lru_cache(maxsize=4)
def level_widths(handed: bool, uncut: bool) -> Axis:
    """Every number of fraction bits, the same of all terms of a level of sums."""
    return Numbers(lambda bits: _level(handed, fraction_bits=bits), field_choices.widths(uncut))


@lru_cache(maxsize=2)
def level_modes(handed: bool) -> Axis:
    return [_level(handed, rounding=mode) for mode in formats.ROUNDINGS]


def rounding(part: str) -> Axis:
    return roles.encode_axis(part, rounding=formats.ROUNDINGS)


@lru_cache(maxsize=64)
def first_cuts(part: str, precisions: Precisions) -> Axis:
    """No first cut, and one to each of these numbers of bits."""
    return roles.encode_axis(part, first=(None, *product(precisions, formats.ROUNDINGS)))


@lru_cache(maxsize=64)
def numbered_cuts(part: str, mode: str, most: int) -> Axis:
    """A first cut of a part to every number of bits below ``most``."""

    def cut(bits: int | None) -> Change:
        return roles.encodes(part, lambda to: replace(to, first=None if bits is None else (bits, mode)))

    return Numbers(cut, tuple(range(1, most)))
