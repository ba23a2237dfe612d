"""A pack: compiled kernels of one architecture in a folder, with the hash of their disassembly and the toolchain.

``pack.json`` lists them: those that run batches, and fused campaigns, each made for one datapath and known by the
hash of its source.  A kernel is a file beside it, ``<hash>.cubin`` or, of AMD, ``<hash>.co``.  The list is
written last, so that a folder without it is no pack.  Its rows are under a digest of the whole list, which is held
against them when it is read, and every binary is held against its hash when it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mmaprobe.errors import NotHereError, UsageError, near
from mmaprobe.evidence.files import FileValue, Lock, check_seal, read_json, sealed, write_bytes, write_json
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.kernel import Kernel, file_name
from mmaprobe.toolchain.source import Geometry, Source

SCHEMA = 3
"""What ``pack.json`` says its schema is."""
KIND = "mmaprobe pack"
LIST = "pack.json"


@dataclass(frozen=True)
class Packed:
    """One kernel of a pack: its binary's and its disassembly's hash, its matrix instructions, how it is launched.

    ``source``: the hash of a campaign's source; empty for a kernel of batches.
    """

    instruction: str
    binary: str
    code: str
    opcodes: dict[str, int]
    geometry: dict[str, int]
    source: str = ""


@dataclass(frozen=True)
class Pack:
    """The kernels of one architecture in a folder."""

    folder: Path
    architecture: str
    toolchain: str
    kernels: dict[str, Packed]
    campaigns: dict[str, Packed] = field(default_factory=dict)

    def kernel(self, instruction: str) -> Kernel:
        """The kernel of an instruction; UsageError where the pack lacks it or its binary is damaged."""
        if instruction not in self.kernels:
            raise UsageError(
                f"the pack {self.folder} has no {instruction}{near(instruction, self.kernels)}; "
                f"mmaprobe compile --arch {self.architecture} --instruction '{instruction}' --out {self.folder}"
            )
        return self.read(self.kernels[instruction])

    def campaign(self, source: Source) -> Kernel:
        """The campaign of a source; NotHereError where the pack lacks it, or has one of another text."""
        packed = self.campaigns.get(source.instruction)
        if packed is None or packed.source != source.hash:
            what = "no campaign" if packed is None else "a campaign for another datapath or version"
            raise NotHereError(
                f"the pack {self.folder} has {what} of {source.instruction}; mmaprobe compile --campaign "
                f"--arch {self.architecture} --instruction '{source.instruction}' --out {self.folder}"
            )
        return self.read(packed)

    def read(self, packed: Packed) -> Kernel:
        """The kernel of a row; UsageError where its binary is missing or damaged."""
        path = self.folder / file_name(packed.binary, self.architecture)
        try:
            binary = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; the pack is not whole, make it again") from error
        made = Kernel(packed.instruction, self.architecture, binary, self.toolchain, **packed.geometry)
        if made.hash != packed.binary:
            raise UsageError(f"{path} is not the kernel that {LIST} names: damaged or changed; make the pack again")
        return made


def check_pack(folder: Path, architecture: str, toolchain: str) -> Pack:
    """The pack that kernels may be put into, empty where there is none; UsageError where it is another's."""
    kept = open_pack(folder) if (folder / LIST).exists() else Pack(folder, architecture, toolchain, {})
    if (kept.architecture, kept.toolchain) != (architecture, toolchain):
        raise UsageError(
            f"{folder} holds a pack of {kept.architecture} by {kept.toolchain}, "
            f"not {architecture} by {toolchain}; choose another folder with --out"
        )
    return kept


def write_pack(folder: Path, architecture: str, toolchain: str, built: Iterable[Built]) -> Pack:
    """Put what was compiled into a folder, beside what a pack there holds already.

    UsageError where the folder holds a pack of another architecture or toolchain, or another process writes there;
    CannotWriteError.
    """
    with Lock(folder):
        kept = check_pack(folder, architecture, toolchain)
        kernels, campaigns = dict(kept.kernels), dict(kept.campaigns)
        for each in built:
            if each.kernel is None:
                continue
            made = each.kernel
            write_bytes(folder / file_name(made.hash, architecture), made.binary)
            packed = Packed(each.instruction, made.hash, each.code, each.opcodes, made.geometry, each.campaign)
            (campaigns if each.campaign else kernels)[each.instruction] = packed
        pack = Pack(folder, architecture, toolchain, dict(sorted(kernels.items())), dict(sorted(campaigns.items())))
        write_json(folder / LIST, sealed(_form(pack)))
        return pack


def _form(pack: Pack) -> dict[str, Any]:
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "architecture": pack.architecture,
        "toolchain": pack.toolchain,
        "kernels": {name: _row(packed) for name, packed in pack.kernels.items()},
        "campaigns": {name: _row(packed) | {"source": packed.source} for name, packed in pack.campaigns.items()},
    }


def _row(packed: Packed) -> dict[str, Any]:
    return {"binary": packed.binary, "code": packed.code, "opcodes": packed.opcodes, **packed.geometry}


def open_pack(folder: Path) -> Pack:
    """The pack in a folder; UsageError naming the file and key where it is none."""
    root = read_json(folder / LIST)
    root["kind"].one_of(KIND)
    if root["schema"].whole != SCHEMA:
        raise root["schema"].wrong(f"is not {SCHEMA}; make the pack again with mmaprobe compile")
    check_seal(root, SCHEMA)
    kernels = {name: _packed(name, row) for name, row in _rows(root["kernels"])}
    campaigns = {name: _packed(name, row, row["source"].text) for name, row in _rows(root["campaigns"])}
    return Pack(folder, root["architecture"].text, root["toolchain"].text, kernels, campaigns)


def _rows(table: FileValue) -> Iterator[tuple[str, FileValue]]:
    return ((name, table[name]) for name in table.typed(dict))


def _packed(name: str, row: FileValue, source: str = "") -> Packed:
    opcodes = {opcode: row["opcodes"][opcode].whole for opcode in row["opcodes"].typed(dict)}
    geometry = {each.name: row[each.name].whole for each in fields(Geometry)}
    return Packed(name, row["binary"].text, row["code"].text, opcodes, geometry, source)
