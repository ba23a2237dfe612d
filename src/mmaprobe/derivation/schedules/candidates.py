"""Primitives of the shipped parameter files that a step of a product may be: each datapath once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mmaprobe import formats
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import BASES
from mmaprobe.parameters.lookup import known_parameters, load
from mmaprobe.parameters.schedule import GemmStep


@dataclass(frozen=True)
class Candidate:
    """A datapath that may be a step, and the step that names it; ``names`` are all that have it."""

    datapath: Datapath
    step: GemmStep
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.step.primitive} of {self.step.architecture}"


@lru_cache(maxsize=64)
def candidates(a: str, b: str, d: str) -> tuple[Candidate, ...]:
    """Every datapath that adds products of these formats to an accumulator of format ``d``, the shortest first.

    Of the primitives that have one datapath the best founded names it, and of these the first in the alphabet.
    """
    found = dict[Datapath, list[tuple[int, str, str]]]()
    for architecture in known_parameters():
        for name, entry in load(architecture).entries.items():
            path = entry.datapath
            if (path.a, path.b, path.c, path.d) == (a, b, d, d) and _is_step(path):
                found.setdefault(path, []).append((BASES.index(entry.basis), architecture, name))
    made = [_candidate(path, sorted(names)) for path, names in found.items()]
    return tuple(sorted(made, key=lambda each: (each.datapath.k, each.datapath.step_length, str(each))))


def _is_step(path: Datapath) -> bool:
    """Whether a schedule may name it: ``GemmStep.datapath``."""
    return path.scale is None and path.random is None and formats.get(path.d).is_float


def _candidate(path: Datapath, names: list[tuple[int, str, str]]) -> Candidate:
    _, architecture, primitive = names[0]
    step = GemmStep("primitive", architecture, primitive)
    return Candidate(path, step, tuple(f"{name} of {where}" for _, where, name in names))
