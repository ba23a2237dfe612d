"""Sums inside sums as the probe of the summation tree reads them: any lanes in any group, the steps in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mmaprobe.derivation.hypotheses.read_trees import Sum, holds_c, lanes_of, parsed, steps_of
from mmaprobe.derivation.hypotheses.structures import ACC, Structure
from mmaprobe.parameters.datapath import Encode, Fused, Node, Products, Term

Pattern = tuple[Any, ...]
"""What a step adds, its lanes by their places in it: a lane each, or a pattern of a sum inside."""


@dataclass(frozen=True)
class Handed:
    """A structure with sums that are handed on; ``groups``: the places of each group of a step that is summed first,
    innermost; ``nested``: there are groups inside the sum of a step."""

    structure: Structure
    groups: tuple[tuple[int, ...], ...]
    nested: bool


def handed_on(answer: Any, k: int, has_c: bool) -> list[Handed]:
    """The structures of a tree in which every step hands sums of products on to the sum with C, or the step before,
    as it reads first; none of any other tree.

    A tree does not show whether C joins the sum of the groups or the groups themselves, nor always that lanes beside a
    group are a group too.
    """
    tree = parsed(answer)
    if not isinstance(tree, Sum) or holds_c(tree) != has_c:
        return []
    steps = steps_of(tree)
    lanes = [sorted(lanes_of(step)) for step in steps]
    patterns = [_pattern(step, own) for step, own in zip(steps, lanes, strict=True)]
    size, pattern = k // len(steps), patterns[0]
    if pattern is None or set(patterns) != {pattern} or set(map(len, lanes)) != {size}:
        return []
    order = tuple(lane for own in lanes for lane in own)
    moved = None if order == tuple(range(k)) else order
    return [_handed(each, moved, size, has_c) for each in _readings(pattern)]


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


def _pattern(step: Sum, lanes: list[int]) -> Pattern | None:
    """What is added to C: sums inside by their first place, then lanes; None where some are no aligned sums."""
    return None if step.lossless else _placed(step, {lane: place for place, lane in enumerate(lanes)})


def _placed(part: Sum, places: Mapping[int, int]) -> Pattern | None:
    found: list[Any] = []
    for term in part.terms:
        if isinstance(term, Sum):
            inner = None if term.pair else _placed(term, places)
            if inner is None:
                return None
            found.append(inner)
        elif isinstance(term, int):
            found.append(places[term])
    return tuple(sorted(found, key=lambda each: (not isinstance(each, tuple), _first(each))))


def _first(part: Any) -> int:
    return min(map(_first, part)) if isinstance(part, tuple) else int(part)


def _innermost(pattern: Pattern) -> list[tuple[int, ...]]:
    """The lanes that meet in one sum first."""
    lanes = tuple(part for part in pattern if isinstance(part, int))
    return [
        *([lanes] if lanes else []),
        *(each for part in pattern if isinstance(part, tuple) for each in _innermost(part)),
    ]


def _root(pattern: Pattern, has_c: bool, to: Encode) -> Node:
    return Fused((*_terms(pattern), *((Term(ACC),) if has_c else ())), to)


def _terms(pattern: Pattern) -> tuple[Term, ...]:
    lanes = tuple(part for part in pattern if isinstance(part, int))
    sums = (Term(Fused(_terms(part))) for part in pattern if isinstance(part, tuple))
    return (*sums, *((Term(Products(lanes)),) if lanes else ()))
