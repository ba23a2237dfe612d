"""The device ``mutant:ARCH/PRIMITIVE/FIELD=VALUE``: a model with one seeded fault."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.devices.model import ModelDevice
from mmaprobe.errors import UsageError, near
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import Entry, ParameterFile
from mmaprobe.parameters.lookup import parameters_of
from mmaprobe.parameters.mutate import mutate


def open_mutant(argument: str) -> ModelDevice:
    """The model of ARCH, or of a parameter file, with FIELD of one primitive's datapath set to VALUE.

    FIELD is a dotted path into the TOML form (``tree.to.rounding``,
    ``operand_a.subnormals``, ``step``), VALUE what ``parameters.mutate.mutate``
    reads.  PRIMITIVE may leave its formats out
    where that is unambiguous.  UsageError for an unknown part, with the near
    names, and for a change that changes nothing.
    """
    path, toml, rest = argument.partition(".toml/")
    parts = [path + ".toml", *rest.split("/", 1)] if toml else argument.split("/", 2)
    field, _, value = parts[-1].partition("=")
    if len(parts) != 3 or not field or not value:
        raise UsageError(
            f"mutant {argument!r}: write mutant:ARCH/PRIMITIVE/FIELD=VALUE, or mutant:FILE.toml/PRIMITIVE/FIELD=VALUE"
        )
    architecture, name, _ = parts
    file = parameters_of(architecture)
    entry = _find(file, name)
    mutated = mutate(entry.datapath, field, value)
    if mutated == entry.datapath:
        raise UsageError(f"mutant {argument!r}: {entry.primitive} already has {field}={value}")
    return ModelDevice(f"mutant:{argument}", with_datapath(file, entry.primitive, mutated))


def with_datapath(file: ParameterFile, primitive: str, datapath: Datapath) -> ParameterFile:
    """The file with the datapath of one primitive replaced; all else stays."""
    return replace(file, entries={**file.entries, primitive: replace(file.entries[primitive], datapath=datapath)})


def _find(file: ParameterFile, name: str) -> Entry:
    if name in file.entries:
        return file.entries[name]
    found = [entry for primitive, entry in file.entries.items() if primitive.partition("[")[0] == name]
    if len(found) == 1:
        return found[0]
    raise UsageError(f"{file.architecture} has no primitive {name!r}{near(name, file.entries)}")
