"""Pair what two architectures compute, by formats and K, and find out what tells the two apart.

A pair of datapaths is the same function where an argument says so.  Where a vector tells them apart, each thing that is
said differently is tried alone: put into the other datapath it must give the first one's answer to a vector that the
two answer differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Witness, join, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import TERM_FIELD, datapath_changes, outline
from mmaprobe.parameters.files import BASES, Basis, Entry, ParameterFile
from mmaprobe.parameters.lookup import basis_for, datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.survey.file_comparison import ComparedDatapaths, compare_datapaths, operands_of, plain_instruction
from mmaprobe.validation.shrink import shrink

VECTORS = 1000
"""Of every family: as many as most differences show on."""
SEED = 78
"""Of the vectors: what is said of two architectures does not change."""
STRUCTURE = ("tree", "step", "order")
"""Fields that stand together where two trees have other nodes."""
Work = tuple[object, ...]
Runs = tuple[dict[str, list[str]], dict[str, str]]
Units = dict[Work, dict[Datapath, list[Instruction]]]


@dataclass(frozen=True)
class ToldDifference:
    """One thing that two datapaths have otherwise; ``vector`` is one on which it alone makes the difference: d is the
    second's answer, ``other`` the first's.  None where no vector was found that shows it alone."""

    field: str
    before: Any
    after: Any
    vector: Witness | None = None
    other: int = 0


@dataclass(frozen=True)
class UnitPair:
    """Instructions of two architectures that multiply the same formats and add as many products, with their
    datapaths, or primitives of one name; ``told``: what they have otherwise, where they are not the same function;
    ``bases``: on what each datapath rests, of an instruction or another; ``asked``: the instruction of each side that
    computes its datapath and nothing around it, so that a vector of the pair is one of its vectors, of a sparse pair
    that of the lanes which metadata keep; ``name``: of primitives, ``names`` being the instructions that are made of
    them."""

    work: Instruction
    sparse: bool
    saturates: bool
    names: tuple[tuple[str, ...], tuple[str, ...]]
    datapaths: tuple[Datapath, Datapath]
    found: ComparedDatapaths
    told: tuple[ToldDifference, ...] = ()
    bases: tuple[tuple[Basis, ...], tuple[Basis, ...]] = ((), ())
    asked: tuple[str, str] = ("", "")
    name: str = ""

    @property
    def same(self) -> bool:
        """Whether they are shown to be the same function, in whatever control state."""
        return self.found.verdict in ("same", "written otherwise") and not self.told


@dataclass(frozen=True)
class OneSided:
    """What one architecture computes and the other does not; ``name``: of a primitive that one file alone has."""

    work: Instruction
    sparse: bool
    saturates: bool
    name: str = ""


@dataclass(frozen=True)
class PairedUnits:
    """The pairs of two architectures, and what only one of them computes."""

    pairs: tuple[UnitPair, ...]
    alone: tuple[tuple[OneSided, ...], tuple[OneSided, ...]]


def paired(first: str, second: str, glob: str = "*") -> PairedUnits:
    """The instructions of two architectures in pairs: all, or those of which one has an id, short form or other name
    that ``glob`` matches.  UsageError for one that names nothing on either."""
    wanted = glob if lookup.is_glob(glob) else _named(glob, first, second)
    units = [_units(name) for name in (first, second)]
    chosen = [work for work in dict.fromkeys((*units[0], *units[1])) if _asked(work, units, wanted)]
    if not chosen and wanted != "*":
        raise UsageError(f"neither {first} nor {second} has an instruction with a model that {glob!r} names")
    pairs = [
        _pair(work, (old, new), (units[0][work][old], units[1][work][new]), (first, second))
        for work in chosen for old, new in _nearest(list(units[0].get(work, ())), list(units[1].get(work, ())))
    ]  # fmt: skip
    alone = [
        tuple(
            OneSided(plain_instruction(next(iter(own[work]))), bool(work[0]), bool(work[1]))
            for work in chosen if work in own and work not in other
        )
        for own, other in ((units[0], units[1]), (units[1], units[0]))
    ]  # fmt: skip
    return PairedUnits(tuple(pairs), (alone[0], alone[1]))


def paired_primitives(old: ParameterFile, new: ParameterFile) -> PairedUnits:
    """The primitives of one name of two parameter files in pairs, and those that one file alone has."""
    alone = [
        tuple(
            OneSided(plain_instruction(entry.datapath), False, False, name)
            for name, entry in own.entries.items() if name not in other.entries
        )
        for own, other in ((old, new), (new, old))
    ]  # fmt: skip
    runs = {architecture: _runs(architecture) for architecture in {old.architecture, new.architecture}}
    pairs = [
        _same_named((entry, new.entries[name]), (runs[old.architecture], runs[new.architecture]))
        for name, entry in old.entries.items() if name in new.entries
    ]  # fmt: skip
    return PairedUnits(tuple(pairs), (alone[0], alone[1]))


def _same_named(entries: tuple[Entry, Entry], runs: tuple[Runs, Runs]) -> UnitPair:
    first, second = entries
    paths, name = (first.datapath, second.datapath), first.primitive
    found, told = _held(paths)
    if set(first.follows) != set(second.follows):
        told = (*told, ToldDifference("follows", " ".join(first.follows), " ".join(second.follows)))
    (made_of, bare), (other_made_of, other_bare) = runs
    names = (tuple(made_of.get(name, ())), tuple(other_made_of.get(name, ())))
    asked, bases = (bare.get(name, ""), other_bare.get(name, "")), ((first.basis,), (second.basis,))
    return UnitPair(plain_instruction(paths[0]), False, False, names, paths, found, told, bases, asked, name)


def _runs(architecture: str) -> Runs:
    """Of each primitive the instructions that are made of it, and the first dense one that is nothing else."""
    made_of: dict[str, list[str]] = {}
    bare: dict[str, str] = {}
    for form in lookup.forms(architecture):
        for name in dict.fromkeys(form.way.primitives):
            made_of.setdefault(name, []).append(form.first.id)
        alone = None if form.first.chunk else bare_primitive(architecture, form.first)
        if alone is not None:
            bare.setdefault(alone, form.first.id)
    return made_of, bare


def _nearest(first: list[Datapath], second: list[Datapath]) -> list[tuple[Datapath, Datapath]]:
    """Each datapath of one side with that of the other of which least is said otherwise; each pair once."""
    if not (first and second):
        return []
    apart = {(old, new): len(list(datapath_changes(old, new))) for old in first for new in second}
    pairs = [(old, min(second, key=lambda new: apart[old, new])) for old in first]
    pairs += [(min(first, key=lambda old: apart[old, new]), new) for new in second]
    return list(dict.fromkeys(pairs))


def _named(name: str, first: str, second: str) -> str:
    """The id of an instruction that one of the architectures has, by any of its names."""
    try:
        return lookup.instruction(name, first).id
    except UsageError:
        return lookup.instruction(name, second).id


def _units(architecture: str) -> Units:
    """What an architecture computes: the instructions whose datapath is known, by operands and datapath."""
    found: Units = {}
    for form in lookup.forms(architecture):
        with suppress(UsageError):
            path = datapath_for(architecture, form.first)
            work = (bool(form.first.chunk), form.first.saturates, *operands_of(path))
            found.setdefault(work, {}).setdefault(path, []).append(form.first)
    return found


def _asked(work: Work, units: Sequence[Units], wanted: str) -> bool:
    ids = [made.id for own in units for some in own.get(work, {}).values() for made in some]
    return wanted == "*" or any(name == wanted or lookup.matches_text(name, wanted) for name in ids)


def _pair(
    work: Work, paths: tuple[Datapath, Datapath], forms: tuple[list[Instruction], list[Instruction]],
    architectures: tuple[str, str],
) -> UnitPair:  # fmt: skip
    names, bases = zip(*map(_named_on, forms, architectures), strict=True)
    asked = (names[0][0], names[1][0])
    return UnitPair(
        plain_instruction(paths[0]), bool(work[0]), bool(work[1]), names, paths, *_held(paths), bases, asked
    )


def _held(paths: tuple[Datapath, Datapath]) -> tuple[ComparedDatapaths, tuple[ToldDifference, ...]]:
    """What two datapaths are to each other, and what they have otherwise where they are not one function."""
    found = compare_datapaths(*paths)
    if found.verdict != "another function":
        return found, ()
    if found.vector is None:  # they take other operands: no vector is one of both
        return found, tuple(ToldDifference(*change) for change in datapath_changes(*paths))
    return found, tuple(_told(plain_instruction(paths[0]), *paths))


def _named_on(forms: Sequence[Instruction], architecture: str) -> tuple[tuple[str, ...], tuple[Basis, ...]]:
    """The ids of instructions, and on what their datapath rests, the strongest basis first."""
    bases = {basis_for(architecture, made) for made in forms}
    return tuple(made.id for made in forms), tuple(sorted(bases, key=BASES.index))


def _told(made: Instruction, old: Datapath, new: Datapath) -> Iterator[ToldDifference]:
    """Everything that is said differently, each with a vector that shows it alone where one was found."""
    parts = list(_parts(old, new))
    hybrids = [path for *_, path in parts if path is not None]
    pool = mixed_vectors(made, SEED, VECTORS)
    if can_attack(made):
        pool = join([pool, attack_vectors(made, old, [new], SEED, VECTORS)])
    first, second, *others = evaluate_many([old, new, *hybrids], pool)
    answers = iter(others)
    for field, before, after, hybrid in parts:
        own = None if hybrid is None else next(answers)
        if hybrid is None or not (alone := np.flatnonzero((first != second) & (own == first))).size:
            yield ToldDifference(field, before, after)
        else:
            yield ToldDifference(field, before, after, *_smallest(made, take(pool, alone[:1]), (old, new, hybrid)))


def _smallest(made: Instruction, vector: Batch, paths: tuple[Datapath, Datapath, Datapath]) -> tuple[Witness, int]:
    """The smallest form of a vector on which the third datapath still answers as the first, the second otherwise."""
    devices = [DatapathDevice(made, path) for path in paths]

    def differ(tried: Batch) -> Any:
        first, second, hybrid = (device.run_vectors(made, tried) for device in devices)
        return (first != second) & (hybrid == first)

    small = shrink(made, vector, differ)
    first, second, _ = (int(device.run_vectors(made, small)[0]) for device in devices)
    return Witness.of(small, second), first


def _parts(old: Datapath, new: Datapath) -> Iterator[tuple[str, Any, Any, Datapath | None]]:
    """(field, old value, new value, the new datapath with this alone as in the old one, None where that is none)."""
    structure = outline(old.tree) != outline(new.tree)
    if structure:
        whole = None
        with suppress(UsageError):
            whole = replace(new, tree=old.tree, step=old.step, order=old.order)
        yield "tree", outline(old.tree), outline(new.tree), whole
    for field, before, after in datapath_changes(old, new):
        if structure and field.partition(".")[0] in STRUCTURE:
            continue
        one = None
        with suppress(UsageError):
            one = mutate(new, field, before, own=TERM_FIELD.fullmatch(field) is not None)
        yield field, before, after, one
