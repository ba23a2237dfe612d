"""Hold two parameter files against each other: which primitives are the same function, and what tells the others apart.

A primitive is the same function where an argument that the checker accepts says so (``equivalence``), in whatever words
the two files have it; another one where a vector says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.equivalence.same_function import ProofStep, same_function
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import ParameterFile
from mmaprobe.survey.comparison import VECTORS, difference

Verdict = Literal["same", "written otherwise", "another function", "undecided"]
FIRST = 1000
"""Vectors of every family that are tried before an argument is sought: most differences show on these."""
SEED = 0
"""Of the vectors: what is said of two files does not change."""


@dataclass(frozen=True)
class ComparedDatapaths:
    """``same``: one record.  ``written otherwise``: the same function, by ``proof``.  ``another function``: ``vector``
    (d is the second's answer) has another answer in the first, ``other``; without one the operands are others.
    ``undecided``: no vector of ``VECTORS`` of every family tells, and no argument was found."""

    verdict: Verdict
    proof: tuple[ProofStep, ...] = ()
    vector: Witness | None = None
    other: int = 0


def compared(old: ParameterFile, new: ParameterFile) -> Iterator[tuple[str, ComparedDatapaths]]:
    """What becomes of each primitive that both files have."""
    for name, entry in old.entries.items():
        if name in new.entries:
            yield name, compare_datapaths(entry.datapath, new.entries[name].datapath)


@cache
def compare_datapaths(old: Datapath, new: Datapath) -> ComparedDatapaths:
    """Whether two datapaths are the same function."""
    if old == new:
        return ComparedDatapaths("same")
    if operands_of(old) != operands_of(new):
        return ComparedDatapaths("another function")
    made = plain_instruction(old)
    found = difference(made, old, new, SEED, FIRST)
    proof = None if found else same_function(old, new)
    if proof is not None:
        return ComparedDatapaths("written otherwise", proof)
    found = found or difference(made, old, new, SEED, VECTORS)
    return ComparedDatapaths("another function", (), *found) if found else ComparedDatapaths("undecided")


def operands_of(path: Datapath) -> tuple[object, ...]:
    """What a datapath multiplies and adds, whatever it makes of it: formats, K, scales."""
    scale = (path.scale.format, path.scale.size) if path.scale else None
    return path.a, path.b, path.c, path.d, path.k, path.product.multiply, scale, path.random


def plain_instruction(path: Datapath) -> Instruction:
    """An instruction that computes one such vector."""
    scale = (path.scale.format, path.scale.size) if path.scale else (None, 0)
    return Instruction(
        "primitive", "primitive", "primitive", 1, 1, path.k, path.a, path.b, path.c, path.d,
        scale=scale[0], scale_size=scale[1], multiply=path.product.multiply, random=path.random,
    )  # fmt: skip
