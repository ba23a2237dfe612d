"""Sums inside sums as the probe of the summation tree reads them: any lanes in any group, the steps in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mmaprobe.derivation.structures import ACC, Structure
from mmaprobe.parameters.datapath import Encode, Fused, Node, Products, Term

Form = Any
"""A tree as the probe answers it: a lane, ``"c"``, or a mapping of kind and terms."""
Pattern = tuple[Any, ...]
"""What a step adds, its lanes by their places in it: a lane each, or a pattern of a sum inside."""


@dataclass(frozen=True)
class Handed:
    """A structure with sums that are handed on; ``groups``: the places of each group of a step that is summed first,
    innermost; ``nested``: there are groups inside the sum of a step."""

    structure: Structure
    groups: tuple[tuple[int, ...], ...]
    nested: bool


def handed_on(form: Form, k: int, has_c: bool) -> list[Handed]:
    """The structures of a tree in which every step hands sums of products on to the sum with C, or the step before,
    as it reads first; none of any other tree.

    A tree does not show whether C joins the sum of the groups or the groups themselves, nor always that lanes beside a
    group are a group too.
    """
    steps = _steps(form, has_c)
    lanes = [sorted(_lanes(step)) for step in steps]
    patterns = [_placed(step, _places(own)) for step, own in zip(steps, lanes, strict=True)]
    size = k // max(len(steps), 1)
    if any(
        pattern is None or len(own) != size or pattern != patterns[0]
        for pattern, own in zip(patterns, lanes, strict=True)
    ):
        return []
    order = tuple(lane for own in lanes for lane in own)
    moved = None if order == tuple(range(k)) else order
    pattern = patterns[0] if patterns else None
    return [] if pattern is None else [_handed(each, moved, size, has_c) for each in _readings(pattern)]


def _readings(pattern: Pattern) -> Iterator[Pattern]:
    """What a step may add where the tree reads so."""
    if not _sums(pattern):
        return
    whole = pattern[0] if len(pattern) == 1 and _sums(pattern[0]) else pattern
    loose = tuple(part for part in whole if isinstance(part, int))
    ways = [whole, (*_sums(whole), loose)] if len(loose) > 1 and _sums(whole) else [whole]
    for way in ways:
        beside = [way] if len(way) > 1 else []
        handed = [(way,) if len(way) > 1 else way]
        yield from (*beside, *handed) if whole is pattern else (*handed, *beside)


def _sums(pattern: Pattern) -> Pattern:
    return tuple(part for part in pattern if isinstance(part, tuple))


def _handed(pattern: Pattern, order: tuple[int, ...] | None, size: int, has_c: bool) -> Handed:
    name = f"sums inside a sum over {size}"
    structure = Structure(name, size, lambda to: _root(pattern, has_c, to), order, fused=True)
    return Handed(structure, tuple(_innermost(pattern)), any(map(_sums, _sums(pattern))))


def _steps(form: Form, has_c: bool) -> list[list[Form]]:
    """What each step adds to C or to the step before, the first step first; nothing where it is no such tree."""
    steps: list[list[Form]] = []
    while form != "c":
        if not isinstance(form, Mapping) or form["kind"] not in ("add", "fused") or form.get("lossless"):
            return []
        before = [term for term in form["terms"] if _has_c(term)]
        steps.append([term for term in form["terms"] if not _has_c(term)])
        if not before:
            return [] if has_c or len(steps) > 1 else steps
        form = before[0]
    return steps[::-1]


def _has_c(form: Form) -> bool:
    if isinstance(form, Mapping):
        return any(map(_has_c, (*form.get("terms", ()), *([form["acc"]] if "acc" in form else []))))
    return bool(form == "c")


def _lanes(part: Form) -> list[int]:
    """The lanes of a list of terms, of a term, or of a pattern; the lanes of what is no aligned sum too."""
    if isinstance(part, Mapping):
        return _lanes([*part.get("terms", ()), *part.get("lanes", ()), *([part["acc"]] if "acc" in part else [])])
    return [lane for term in part for lane in _lanes(term)] if isinstance(part, (list, tuple)) else [part]


def _places(lanes: list[int]) -> dict[int, int]:
    return {lane: place for place, lane in enumerate(lanes)}


def _placed(terms: list[Form], places: Mapping[int, int]) -> Pattern | None:
    """The pattern of some terms: sums inside by their first place, then lanes; None where some are no aligned sums."""
    found: list[Any] = []
    for term in terms:
        if not isinstance(term, Mapping):
            found.append(places[term])
            continue
        inner = _placed(term["terms"], places) if term["kind"] == "fused" else None
        if inner is None:
            return None
        found.append(inner)
    return tuple(sorted(found, key=lambda part: (not isinstance(part, tuple), min(_lanes([part])))))


def _innermost(pattern: Pattern) -> list[tuple[int, ...]]:
    """The lanes that meet in one sum first."""
    lanes = tuple(part for part in pattern if isinstance(part, int))
    return [
        *([lanes] if lanes else []),
        *(each for part in pattern if isinstance(part, tuple) for each in _innermost(part)),
    ]


def _root(pattern: Pattern, has_c: bool, to: Encode) -> Node:
    return Fused((*_terms(pattern), *((Term(ACC),) if has_c else ())), None, "RZ", None, to)


def _terms(pattern: Pattern) -> tuple[Term, ...]:
    lanes = tuple(part for part in pattern if isinstance(part, int))
    sums = (Term(Fused(_terms(part), None)) for part in pattern if isinstance(part, tuple))
    return (*sums, *((Term(Products(lanes)),) if lanes else ()))
