"""The parameters of an architecture with other values in some fields of some primitives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from fnmatch import fnmatchcase

from mmaprobe.catalog import lookup
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.parameters.diff import is_structure
from mmaprobe.parameters.files import Entry, ParameterFile
from mmaprobe.parameters.lookup import entries_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import means_something
from mmaprobe.parameters.table import fields, flatten, to_table

SAID = 12
"""Fields that are named where somebody asks for a change and says none."""


@dataclass(frozen=True)
class FieldChange:
    """A field of a datapath, as ``mutate`` takes it, and the value that it is to have."""

    field: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}={self.value}"


def field_change(text: str) -> FieldChange:
    """The change that ``FIELD=VALUE`` spells."""
    field, equals, value = text.partition("=")
    if not (field and equals and value):
        raise UsageError(f"--set {brief(text)}: write FIELD=VALUE, such as tree.fraction_bits=24")
    return FieldChange(field, value)


def altered(file: ParameterFile, changes: Sequence[FieldChange], wanted: str, called: str) -> ParameterFile:
    """The entries that ``wanted`` names, with every change; of several those that have such fields and values.

    Each rests on a prediction, whatever the file's own rests on, and keeps no witness and no note.  ``called``: the
    file's name.  UsageError where no entry takes the changes, or none is another datapath then.
    """
    found: dict[str, Entry] = {}
    refused: dict[str, UsageError] = {}
    names = primitives_named(file, wanted)
    said = ", ".join(map(str, changes))
    for name in names:
        before = path = file.entries[name].datapath
        try:
            for change in changes:
                path = mutate(path, change.field, change.value)
        except UsageError as error:
            refused[name] = error
            continue
        if not any(means_something(each, change.field) for each in (before, path) for change in changes):
            refused[name] = UsageError(f"{said} means nothing there: what this datapath computes does not read it")
        elif path != before:
            found[name] = replace(
                file.entries[name], datapath=path, basis="predicted", source=f"{called} with {said}", evidence="",
                covers=(), notes=(), witnesses=(),
            )  # fmt: skip
    if not found and len(refused) == len(names):
        nearest = max(refused, key=lambda name: _nearness(file.entries[name], changes[0].field))
        raise UsageError(f"{nearest}: {refused[nearest]}")
    if not found:
        raise UsageError(
            f"{next(name for name in names if name not in refused)} has {said} already; nothing would change"
        )
    return replace(file, entries=found)


def _nearness(entry: Entry, field: str) -> float:
    """How near the nearest field of an entry comes to a name."""
    return max(SequenceMatcher(None, name, field).ratio() for name, _ in fields(entry.datapath))


def primitives_named(file: ParameterFile, wanted: str) -> list[str]:
    """The primitives of a file that a name or glob is of, or that instructions of its architecture are made of.

    A primitive may leave its formats out.  UsageError where there is none.
    """
    names = [name for name in file.entries if wanted in ("*", name, _bare(name))]
    if not names and lookup.is_glob(wanted):
        names = [name for name in file.entries if fnmatchcase(name, wanted) or fnmatchcase(_bare(name), wanted)]
    if names:
        return names
    if not file.entries:
        raise UsageError(f"no parameters of {file.architecture} are known; nothing is there to change")
    try:
        made = lookup.match(file.architecture, wanted)
    except UsageError as error:
        raise UsageError(f"{error}{near(wanted, file.entries)}") from None
    return list(dict.fromkeys(e.primitive for each in made for e in entries_for(file.architecture, each, file)))


def _bare(name: str) -> str:
    return name.partition("[")[0]


def fields_that_are_said(file: ParameterFile, wanted: str) -> str:
    """Fields of the first primitive that is named, with their values: what a change may be of."""
    name = primitives_named(file, wanted)[0]
    said = flatten(to_table(file.entries[name].datapath))
    rules = [f"{field}={value}" for field, value in said if "." in field and not is_structure(field)]
    return f"{name} has {', '.join(rules[:SAID])}"
