"""What is known about an architecture: its shipped parameters, and the datapath of an instruction."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from mmaprobe.catalog import outside
from mmaprobe.catalog.architectures import Architectures, every, ships
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import agreed, lowering, parts
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.catalog.names import architecture_of, device_of
from mmaprobe.catalog.supplements import all_or_nothing
from mmaprobe.catalog.toml import read_toml, text_of
from mmaprobe.errors import UsageError
from mmaprobe.parameters.chaining import chain, converted
from mmaprobe.parameters.composition import compose
from mmaprobe.parameters.datapath import Datapath, Encode
from mmaprobe.parameters.exact_sums import compose_exact, is_exact_sum
from mmaprobe.parameters.files import BASES, Basis, Entry, ParameterFile, alike, from_text, read_parameter_file
from mmaprobe.parameters.measured import with_measured
from mmaprobe.parameters.modified import changes, modified
from mmaprobe.parameters.shared import shared_entries

DIGESTS = "digests.toml"
REMEMBERED = 256
"""Architectures whose parameters are remembered as they were with what had been added by then."""
ROUNDING = {"rn": "RNE", "rd": "RD", "ru": "RU", "rz": "RZ"}
"""The control register's rounding modes as roundings."""


@dataclass(frozen=True, eq=False)
class AddedParameters:
    """A parameter file that counts as what ships of its architecture (``add_catalog``)."""

    file: ParameterFile


_ADDED: list[AddedParameters] = []


def add_catalog(path: str | Path) -> None:
    """Add the rows and architectures of a catalog file to those that every command and call knows (``outside``).

    Of a parameter file those that it carries along, and its entries: they come before what ships of its architecture,
    in ``load`` and so in ``model:ARCH`` and in what a run compares with.  UsageError naming the file where anything in
    it is wrong; nothing of it is added then.

    >>> import mmaprobe
    >>> mmaprobe.add_catalog("acme1.toml")
    Traceback (most recent call last):
    mmaprobe.errors.UsageError: acme1.toml: No such file or directory
    """
    if "architecture" in read_toml(text_of(Path(path)), str(path)):
        _ADDED.append(AddedParameters(_known_file(Path(path))))
    else:
        outside.add_catalog(path)


def load(architecture: str) -> ParameterFile:
    """The shipped parameters of an architecture, or those added; entry by entry the longest match wins.

    ``x86-64+intel`` is its own entries over those of ``x86-64``.  An
    architecture without a file has what the one that it is like predicts of it,
    else no entries.  UsageError for one that the catalog does not know, and for
    a generation whose parts differ.
    """
    return _loaded(architecture, tuple(_ADDED), every())


@lru_cache(maxsize=REMEMBERED)
def _loaded(architecture: str, more: tuple[AddedParameters, ...], here: Architectures) -> ParameterFile:
    return agreed(architecture, partial(_load, more), "their parameters", _datapaths)


def _load(more: tuple[AddedParameters, ...], part: str) -> ParameterFile:
    base = architecture_of(part)
    found = ParameterFile(base)
    for name in (base, part) if "+" in part else (base,):
        for file in (_shipped(name), *(each.file for each in more if each.file.architecture == name)):
            found = replace(file, entries={**found.entries, **file.entries})
    return found


def _datapaths(file: ParameterFile) -> object:
    return frozenset((name, entry.datapath, entry.follows) for name, entry in file.entries.items())


def edited(file: ParameterFile) -> bool:
    """Whether the parameters of an architecture of ours are not those that ship: whether anything in them means another
    thing.

    A parameter file is meant to be edited; nobody should take one that was for ours.
    """
    name = file.architecture
    return ships(name) and _digests().get(name, ParameterFile(name).digest) != file.digest


def known_parameters() -> tuple[str, ...]:
    """The architectures of which parameters ship."""
    return tuple(_digests())


@cache
def _digests() -> dict[str, str]:
    text = (resources.files("mmaprobe.parameters") / DIGESTS).read_text("utf-8")
    return dict(tomllib.loads(text))


def entries_for(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> tuple[Entry, ...]:
    """The entries of the primitives that an instruction is made of, in order of use; UsageError where one is unknown.

    Where the compiler emulates the instruction they are the primitives inside.
    """
    ask = partial(_entries, instruction, file)
    return agreed(architecture, ask, f"what {instruction.id} computes", lambda found: tuple(e.datapath for e in found))


def _entries(instruction: Instruction, file: ParameterFile | None, architecture: str) -> tuple[Entry, ...]:
    way = lowering(instruction, architecture)
    known = (file or load(architecture)).entries
    if not known.keys() >= set(way.primitives) or (
        way.unplaced and not is_exact_sum(known[way.primitives[-1]].datapath)
    ):
        raise UsageError(f"no datapath is known for {_unknown(instruction, architecture, way)}")
    return tuple(known[name] for name in way.primitives)


def entry_for(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> Entry:
    """The entry of the primitive that an instruction is made of, the last one where there are several."""
    return entries_for(architecture, instruction, file)[-1]


def datapath_for(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> Datapath:
    """What an instruction computes on an architecture: its lowering over its primitives' datapaths.

    The control state that the instruction's modifiers name is applied where
    the primitive follows it.  ``file`` replaces the shipped parameters.
    UsageError where nothing is known or the lowering is no datapath.
    """
    return agreed(architecture, partial(_datapath, instruction, file), f"what {instruction.id} computes")


def _datapath(instruction: Instruction, file: ParameterFile | None, architecture: str) -> Datapath:
    entries = entries_for(architecture, instruction, file)
    way = lowering(instruction, architecture)
    if way.kind == "emulated":
        inner = {entry.primitive: entry.datapath for entry in entries}
        if is_exact_sum(entries[-1].datapath):
            return compose_exact(entries[-1].datapath, way, instruction)
        return converted(compose(inner, way, instruction), way, instruction)
    if instruction.chunk:
        whole = selected(entries[-1].datapath, way, instruction)
    else:
        whole = converted(chain({entry.primitive: entry.datapath for entry in entries}, way), way, instruction)
    return in_control_state(modified(whole, instruction), instruction.modifier, entries[-1].follows)


def basis_for(architecture: str, instruction: Instruction, file: ParameterFile | None = None) -> Basis:
    """On what an instruction's datapath rests: its primitives' weakest basis, or a prediction.

    Predicted is what modifiers do, and that a routine which emulates ``satfinite`` limits the whole sum.
    Conversions of C and D around the primitives are published (PTX ISA, cvt).
    """
    found = parts(architecture)
    ways = [lowering(instruction, part) for part in found]
    entries = [entry for part in found for entry in entries_for(part, instruction, file)]
    covered = set.intersection(*(set(entry.covers) for entry in entries))
    if changes(instruction, covered) or (instruction.saturates and any(way.kind == "emulated" for way in ways)):
        return "predicted"
    bases: list[Basis] = [entry.basis for entry in entries]
    bases += ["published" for way in ways if way.convert_c or way.convert_d]
    return max(bases, key=BASES.index)


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


def read_file(path: Path) -> ParameterFile:
    """The parameter file at ``path``, which may say ``same_as`` of the shipped ones.

    What it says of an architecture that does not ship is added to the catalog.
    """
    found = read_parameter_file(path, _Shipped())
    outside.add_all(found.catalog, str(path))
    return found


def file_named(name: str) -> ParameterFile | None:
    """The parameter file that a name is the path of, by its end ``.toml``; None for the name of an architecture.

    UsageError where it is broken, or of an architecture that neither it nor the catalog says anything of.
    """
    return _known_file(Path(name)) if name.endswith(".toml") else None


def _known_file(path: Path) -> ParameterFile:
    with all_or_nothing():
        found = read_file(path)
        try:
            parts(found.architecture)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
    return found


def parameters_of(name: str) -> ParameterFile:
    """The parameter file that a name is the path of, by its end ``.toml``; else those of that architecture."""
    return file_named(name) or load(name)


@cache
def _shipped(architecture: str) -> ParameterFile:
    own = _own(architecture)
    entries = {**shared_entries(architecture, own.entries), **own.entries}
    return replace(own, entries=with_measured(architecture, entries))


@cache
def _own(architecture: str) -> ParameterFile:
    found = _file(architecture)
    if found.is_file():
        return from_text(found.read_text("utf-8"), found.name, _Shipped())
    other = next((each for each in every().line(architecture)[1:] if _file(each).is_file()), "")
    return alike(architecture, _own(other)) if other else ParameterFile(architecture)


def _file(architecture: str) -> Traversable:
    return resources.files("mmaprobe.parameters") / "data" / f"{architecture}.toml"


class _Shipped(dict[str, Mapping[str, Entry]]):
    """The shipped entries of an architecture that ``same_as`` names, read when asked for."""

    def __contains__(self, architecture: object) -> bool:
        return any(_file(each).is_file() for each in every().line(str(architecture)))

    def __getitem__(self, architecture: str) -> Mapping[str, Entry]:
        return _own(architecture).entries


def _unknown(instruction: Instruction, architecture: str, way: Lowering) -> str:
    made_of = " + ".join(way.primitives)
    kept = " --write FILE.toml, then model:FILE.toml" if outside.of(architecture) else ""
    return (
        f"{instruction.id} on {architecture} ({way.kind}: {made_of}), neither published nor measured; "
        f"where that hardware is: mmaprobe derive --device {device_of(architecture)} '{instruction.id}'{kept}"
    )
