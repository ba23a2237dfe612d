"""Datapaths to begin with: every structure that may be the device's, with the numbers that single terms showed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.nested_trees import handed_on
from mmaprobe.derivation.hypotheses.structures import (
    Structure,
    fused_structures,
    grouped_structures,
    rounded_structures,
    scaled_structures,
)
from mmaprobe.derivation.hypotheses.tree_structures import structures_of
from mmaprobe.derivation.search.single_terms import Alone, held
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import MOST_DEPTH, Datapath, Encode, Special
from mmaprobe.parameters.moves import MOVES

Named = dict[Datapath, str]
"""Datapaths, each with what its structure is called."""


def read_structures(instruction: Instruction, answer: Any, exact: bool) -> list[Structure]:
    """Every structure whose summation tree is the one that a probe read; where it read no more than a window shows,
    also those of the same steps that add c after."""
    k, has_c, size = instruction.k, instruction.c is not None, instruction.scale_size
    handed = handed_on(answer, k, has_c)
    found = [*structures_of(answer, k, size), *(each.structure for each in handed)]
    if exact:
        return _shallow(instruction, found)
    steps = {each.step for each in found if each.order is None}
    after = [*fused_structures(k, has_c), *(scaled_structures(k, has_c, size) if size else ())]
    names = {each.name.removesuffix(", read") for each in found}
    more = (each for each in after if each.step in steps and each.apart and each.name not in names)
    return _shallow(instruction, [*found, *more])


def all_structures(instruction: Instruction) -> list[Structure]:
    """Every structure of the grammar, its lanes as they come."""
    k, has_c, size = instruction.k, instruction.c is not None, instruction.scale_size
    scaled = scaled_structures(k, has_c, size) if size else ()
    every = [*fused_structures(k, has_c), *scaled, *rounded_structures(k, has_c), *grouped_structures(k, has_c)]
    return _shallow(instruction, every)


def _shallow(instruction: Instruction, structures: list[Structure]) -> list[Structure]:
    """Those whose trees a record can hold: a chain written out over hundreds of lanes is too deep for one."""
    if instruction.k < MOST_DEPTH // 2:
        return structures
    found = []
    for each in structures:
        with suppress(UsageError):
            grammar.build(instruction, each, Encode(instruction.d))
            found.append(each)
    return found


def starts(instruction: Instruction, structures: Iterable[Structure], alone: Alone, code: int) -> Named:
    """The structures with the numbers of single terms, each result format that these leave, and one code for NaNs."""
    found: Named = {}
    for each in structures:
        for path in alone.starts(lambda to, shape=each: grammar.build(instruction, shape, to)):  # type: ignore[misc]
            found.setdefault(replace(path, order=each.order, special=Special("canonical", code)), each.name)
    return found


def variants(path: Datapath, name: str) -> Named:
    """Where C enters and which products are summed together changed, with the same numbers."""
    found: Named = {}
    for field in ("accumulation", "grouping"):
        for value, changed in MOVES[field](path):
            try:
                found.setdefault(held(changed), f"{name}, {field} {value}")
            except UsageError:
                continue
    return found
