"""A pack: compiled kernels of one architecture in a folder, with the hash of their disassembly and the toolchain.

``pack.json`` lists them; a kernel is a file ``<hash>.cubin`` beside it.  The list is written last, so that a folder
without it is no pack, and every binary is held against its hash when it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mmaprobe.errors import UsageError, near
from mmaprobe.evidence.files import Field, read_json, write_bytes, write_json
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Geometry

SCHEMA = 1
KIND = "mmaprobe pack"
LIST = "pack.json"


@dataclass(frozen=True)
class Packed:
    """One kernel of a pack: its binary's and its disassembly's hash, its matrix instructions, how it is launched."""

    instruction: str
    binary: str
    code: str
    opcodes: dict[str, int]
    geometry: dict[str, int]


@dataclass(frozen=True)
class Pack:
    """The kernels of one architecture in a folder."""

    folder: Path
    architecture: str
    toolchain: str
    kernels: dict[str, Packed]

    def kernel(self, instruction: str) -> Kernel:
        """The kernel of an instruction; UsageError where the pack lacks it or its binary is damaged."""
        if instruction not in self.kernels:
            raise UsageError(
                f"the pack {self.folder} has no {instruction}{near(instruction, self.kernels)}; "
                f"mmaprobe compile --arch {self.architecture} --instruction '{instruction}' --out {self.folder}"
            )
        packed = self.kernels[instruction]
        path = self.folder / f"{packed.binary}.cubin"
        try:
            cubin = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; the pack is not whole, make it again") from error
        made = Kernel(instruction, self.architecture, cubin, self.toolchain, **packed.geometry)
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

    UsageError where the folder holds a pack of another architecture or toolchain; CannotWriteError.
    """
    kept = check_pack(folder, architecture, toolchain)
    kernels = dict(kept.kernels)
    for each in built:
        if each.kernel is None:
            continue
        made = each.kernel
        write_bytes(folder / f"{made.hash}.cubin", made.cubin)
        kernels[each.instruction] = Packed(each.instruction, made.hash, each.code, each.opcodes, made.geometry)
    pack = Pack(folder, architecture, toolchain, dict(sorted(kernels.items())))
    write_json(folder / LIST, _form(pack))
    return pack


def _form(pack: Pack) -> dict[str, Any]:
    kernels = {
        name: {"binary": packed.binary, "code": packed.code, "opcodes": packed.opcodes, **packed.geometry}
        for name, packed in pack.kernels.items()
    }
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "architecture": pack.architecture,
        "toolchain": pack.toolchain,
        "kernels": kernels,
    }


def open_pack(folder: Path) -> Pack:
    """The pack in a folder; UsageError naming the file and key where it is none."""
    root = read_json(folder / LIST)
    root["kind"].one_of(KIND)
    root["schema"].one_of(SCHEMA)
    kernels = {name: _packed(name, root["kernels"][name]) for name in root["kernels"].typed(dict)}
    return Pack(folder, root["architecture"].text, root["toolchain"].text, kernels)


def _packed(name: str, row: Field) -> Packed:
    opcodes = {opcode: row["opcodes"][opcode].whole for opcode in row["opcodes"].typed(dict)}
    geometry = {each.name: row[each.name].whole for each in fields(Geometry)}
    return Packed(name, row["binary"].text, row["code"].text, opcodes, geometry)
