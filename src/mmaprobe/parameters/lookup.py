"""What is known about an architecture: its shipped parameters, and the datapath of an instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architecture_base, lowering
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.catalog.modifiers import unmodified
from mmaprobe.errors import UsageError
from mmaprobe.parameters.composition import compose
from mmaprobe.parameters.datapath import Datapath, Encode, Operand
from mmaprobe.parameters.files import Basis, Entry, ParameterFile, from_text
from mmaprobe.parameters.modified import changes, modified
from mmaprobe.parameters.shared import shared_entries

ROUNDING = {"rn": "RNE", "rd": "RD", "ru": "RU", "rz": "RZ"}
"""The control register's rounding modes as roundings."""


@cache
def load(architecture: str) -> ParameterFile:
    """The shipped parameters of an architecture; entry by entry the longest match wins.

    ``x86-64+intel`` is its own entries over those of ``x86-64``.  An
    architecture without a file has no entries.  UsageError for one that the
    catalog does not know.
    """
    base = architecture_base(architecture)
    if base == architecture:
        return _shipped(architecture)
    own, shared = _shipped(architecture), load(base)
    return replace(own, entries={**shared.entries, **own.entries})


def entry_for(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> Entry:
    """The entry of the one primitive that an instruction is made of; UsageError where there is none.

    Where the compiler emulates the instruction that is the primitive inside.
    """
    way = lowering(instruction, architecture)
    ruled = instruction.takes and unmodified(instruction) != instruction.id
    if ruled:
        raise UsageError(f"no datapath is known for {instruction.id}: its modifiers are not modelled")
    known = (file or load(architecture)).entries
    if way.unplaced or len(way.primitives) != 1 or way.primitives[0] not in known:
        raise UsageError(f"no datapath is known for {_unknown(instruction, architecture, way)}")
    return known[way.primitives[0]]


def datapath_for(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> Datapath:
    """What an instruction computes on an architecture: its lowering over its primitive's datapath.

    The control state that the instruction's modifiers name is applied where
    the primitive follows it.  ``file`` replaces the shipped parameters.
    UsageError where nothing is known or the lowering is no datapath.
    """
    entry = entry_for(architecture, instruction, file)
    way = lowering(instruction, architecture)
    if way.kind == "emulated":
        return compose(entry.datapath, way, instruction)
    whole = selected(entry.datapath, way, instruction) if instruction.chunk else chain(entry.datapath, way)
    return in_control_state(modified(whole, instruction), instruction.modifier, entry.follows)


def basis_for(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> Basis:
    """On what an instruction's datapath rests: its primitive's basis, or a prediction of what its modifiers do."""
    entry = entry_for(architecture, instruction, file)
    return "predicted" if changes(instruction) else entry.basis


def chain(datapath: Datapath, way: Lowering) -> Datapath:
    """The datapath of one primitive applied again and again along K, each on the result before it.

    Its steps follow one another as the steps of one datapath do; UsageError
    where that does not hold (a last conversion, another C format, NaN
    priorities by lane).
    """
    for step in way.applications:
        if len(step.lanes) != datapath.k:
            raise UsageError(f"{way.instruction}: {step.primitive} has {datapath.k} lanes, not {len(step.lanes)}")
    order = tuple(step.lanes[lane] for step in way.applications for piece in datapath.steps for lane in piece)
    if len(way.applications) == 1 and way.applications[0].lanes == tuple(range(datapath.k)):
        return datapath
    if datapath.result or datapath.c != datapath.d or datapath.operand_c != Operand() or datapath.special.priority:
        raise UsageError(f"{way.instruction}: results of {way.primitives[0]} cannot be chained into its next use")
    ascending = order == tuple(range(len(order)))
    return replace(datapath, k=len(order), step=datapath.step_length, order=None if ascending else order)


def selected(datapath: Datapath, way: Lowering, made: Instruction) -> Datapath:
    """The datapath of a sparse instruction: its primitive's, whose lanes are the selected ones alone.

    UsageError where the lowering applies it more than once or it has another number of lanes.
    """
    if len(way.applications) != 1 or datapath.k != made.selected:
        raise UsageError(f"{made.id}: {way.primitives[0]} has {datapath.k} lanes and selects {made.selected} once")
    return datapath


def in_control_state(datapath: Datapath, state: Mapping[str, str], follows: tuple[str, ...]) -> Datapath:
    """The datapath under a control state: ``rounding``, ``ftz`` and ``daz`` as far as it ``follows`` them.

    ``rounding`` replaces the rounding of every Encode, ``ftz`` makes every
    Encode flush to a zero of the result's sign, ``daz`` every operand and
    every intermediate result, which is an operand of the next operation.
    """
    active = {key: value for key, value in state.items() if key in follows}
    encode: dict[str, Any] = {}
    if "rounding" in active:
        encode["rounding"] = ROUNDING[active["rounding"]]
    if "ftz" in active:
        encode["subnormals"] = "signed_zero"
    changed: Datapath = _map_encodes(datapath, encode) if encode else datapath
    if "daz" in active:
        operands = ("operand_a", "operand_b", *(("operand_c",) if changed.c is not None else ()))
        flushed: Any = {name: replace(getattr(changed, name), subnormals="signed_zero") for name in operands}
        changed = replace(changed, **flushed)
        if "ftz" not in active:
            before: Any = changed.tree  # a root always has ``to``
            changed = _map_encodes(changed, {"subnormals": "signed_zero", "tininess": "encoded"})
            after: Any = changed.tree
            changed = replace(changed, tree=replace(after, to=before.to))
    return changed


def _map_encodes(value: Any, changes: Mapping[str, Any]) -> Any:
    if isinstance(value, Encode):
        return replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(_map_encodes(item, changes) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _map_encodes(getattr(value, f.name), changes) for f in fields(value)})
    return value


@cache
def _shipped(architecture: str) -> ParameterFile:
    own = _own(architecture)
    return replace(own, entries={**shared_entries(architecture, own.entries), **own.entries})


@cache
def _own(architecture: str) -> ParameterFile:
    name = f"{architecture}.toml"
    found = resources.files("mmaprobe.parameters") / "data" / name
    if not found.is_file():
        return ParameterFile(architecture)
    return from_text(found.read_text("utf-8"), name, _Shipped())


class _Shipped(dict[str, Mapping[str, Entry]]):
    """The shipped entries of an architecture that ``same_as`` names, read when asked for."""

    def __contains__(self, architecture: object) -> bool:
        return (resources.files("mmaprobe.parameters") / "data" / f"{architecture}.toml").is_file()

    def __getitem__(self, architecture: str) -> Mapping[str, Entry]:
        return _own(architecture).entries


def _unknown(instruction: Instruction, architecture: str, way: Lowering) -> str:
    made_of = " + ".join(way.primitives) or way.note or "no matrix instruction"
    return (
        f"{instruction.id} on {architecture} ({way.kind}: {made_of}); "
        f"run `mmaprobe derive --device ... '{instruction.id}'` on that hardware"
    )
