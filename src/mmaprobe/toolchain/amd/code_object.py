"""What clang made of a kernel for AMD: its matrix instruction as llvm-objdump prints it, held against the catalog."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import layout, operands
from mmaprobe.errors import DeviceError, NotHereError
from mmaprobe.toolchain.amd.clang import INSTALL
from mmaprobe.toolchain.amd.inline import UNPRINTED, names_no_c
from mmaprobe.toolchain.compiler import run_tool

OVERRIDE = "MMAPROBE_LLVM_OBJDUMP"
"""The environment's name for another llvm-objdump."""
NAMES = ("llvm-objdump-22", "/opt/rocm/llvm/bin/llvm-objdump", "llvm-objdump")
ORDER = ("d", "a", "b", "c", "metadata", "scale_a", "scale_b")

_AMDHSA = b"\x40"
_MATRIX = re.compile(r"^\s*(v_(?:mfma|smfmac|wmma|swmmac)\w*)\s+(.*)$")
_DOT = re.compile(r"^\s*(v_dot\d\w*?)(?:_e32)?\s+(.*)$")
_REGISTERS = re.compile(r"^[avs](?:\d+(?:\.[lh])?|\[(\d+):(\d+)\])$")
_TARGET = re.compile(rb"amdgcn-amd-amdhsa--(gfx[0-9a-f]+(?:-[0-9a-z]+)*)")


@dataclass(frozen=True)
class Matrix:
    """One matrix instruction of a disassembly: its mnemonic, registers of each operand (0: none), and modifiers."""

    mnemonic: str
    registers: tuple[int, ...]
    modifiers: tuple[tuple[str, str], ...]


@cache
def objdump() -> str:
    """The path of llvm-objdump; NotHereError that says what to install."""
    found = os.environ.get(OVERRIDE) or next(filter(None, map(shutil.which, NAMES)), "")
    if not found:
        raise NotHereError(f"llvm-objdump is not installed: {INSTALL}, or set {OVERRIDE} to one")
    return found


def target(code: bytes) -> str:
    """The architecture that a code object is for (``gfx942``), as its metadata say; DeviceError where they do not."""
    found = set(_TARGET.findall(code))
    if code[:4] != b"\x7fELF" or len(found) != 1:
        raise DeviceError(f"{len(code)} bytes that begin {code[:8]!r} are no AMD code object; compile the kernel again")
    return str(found.pop().decode())


def code_object_version(code: bytes) -> int:
    """5 of a code object V5; 0 of what tells none (LLVM 22, AMDGPU usage: EI_ABIVERSION is 2 less, from V4 on)."""
    return code[8] + 2 if code[:4] == b"\x7fELF" and code[7:8] == _AMDHSA and code[8] in (2, 3, 4) else 0


def number(code: bytes, key: str) -> int:
    """A number of the kernel's metadata (``wavefront_size``, ``vgpr_spill_count``); DeviceError where it is not there.

    The metadata are MessagePack: a text behind its length, then small integers as themselves, others behind 0xcc to
    0xce and big-endian.  Source: LLVM 22, AMDGPU usage, code object V5 metadata.
    """
    text = f".{key}".encode()
    at = code.find(bytes([0xA0 | len(text)]) + text if len(text) < 32 else text)
    if at < 0:
        raise DeviceError(f"a code object of {len(code)} bytes does not tell its {key}; compile the kernel again")
    first = code.index(text, at) + len(text)
    size = {0xCC: 1, 0xCD: 2, 0xCE: 4}.get(code[first], 0)
    return int.from_bytes(code[first + 1 : first + 1 + size], "big") if size else code[first]


RESOURCES = {
    "vgprs": "vgpr_count", "agprs": "agpr_count", "sgprs": "sgpr_count", "spilled_vgprs": "vgpr_spill_count",
    "spilled_sgprs": "sgpr_spill_count", "local_bytes": "private_segment_fixed_size",
    "shared_bytes": "group_segment_fixed_size",
}  # fmt: skip
"""What a kernel takes, and the metadata that tell it; only gfx9 has AGPRs, which are counted in ``vgprs`` as well."""


def resources(code: bytes) -> dict[str, int]:
    """What a kernel takes of a compute unit: registers of each kind, those spilled, and memory in bytes."""
    return {name: number(code, key) for name, key in RESOURCES.items() if key != "agpr_count" or b".agpr_count" in code}


def disassemble(code: bytes, wave: int) -> list[str]:
    """The instructions of a code object for waves of ``wave`` lanes, which llvm-objdump cannot tell by itself."""
    tool = objdump()
    with tempfile.TemporaryDirectory(prefix="mmaprobe-") as folder:
        path = Path(folder) / "kernel.co"
        path.write_bytes(code)
        lanes = f"--mattr={'+' if wave == 64 else '-'}wavefrontsize64"
        command = [tool, "-d", "--no-show-raw-insn", "--no-leading-addr", lanes, str(path)]
        done = run_tool(command)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise NotHereError(f"{tool} does not read the kernel: {said[-1] if said else 'no reason given'}: {INSTALL}")
    lines = (line.partition("//")[0].strip() for line in done.stdout.splitlines() if line.startswith("\t"))
    return [line for line in lines if line]


def matrices(lines: list[str], opcode: str = "") -> list[Matrix]:
    """The matrix instructions of a disassembly, in order; of a form of V_DOT its V_DOT, with which models also sum."""
    kind = _DOT if opcode.startswith("v_dot") else _MATRIX
    return [_matrix(found[1], found[2]) for found in map(kind.match, lines) if found]


def _matrix(mnemonic: str, rest: str) -> Matrix:
    operand_text, modifiers = [], []
    for word in re.sub(r",\s+", " ", rest).split():
        if ":" in word and not _REGISTERS.match(word):
            key, _, value = word.partition(":")
            modifiers.append((key, re.sub(r"[\[\],]", "", value)))
        elif re.fullmatch(r"[a-z_]{5,}", word):
            modifiers.append((word, ""))
        else:
            operand_text.append(word)
    kept = tuple(sorted((key, value) for key, value in modifiers if not value or set(value) != {"0"}))
    return Matrix(mnemonic, tuple(map(_count, operand_text)), kept)


def _count(text: str) -> int:
    found = _REGISTERS.match(text)
    if not found:
        return 0
    return int(found[2]) - int(found[1]) + 1 if found[1] else 1


def code_hash(lines: list[str]) -> str:
    """SHA-256 of the instructions alone."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def stated(made: Instruction, architecture: str) -> Matrix:
    """The matrix instruction that the catalog says: opcode, registers of the layouts, modifiers of the id."""
    has = operands(made)
    counts = tuple(layout(made, architecture, name).registers for name in ORDER if name in has)
    if names_no_c(made):
        counts = (counts[0], *counts[1:3], *counts[4:])  # D holds C
    written = tuple(pair for pair in made.modifiers if pair[0] not in UNPRINTED)
    return Matrix(made.opcode, counts, written)


def differences(made: Instruction, architecture: str, found: list[Matrix]) -> list[str]:
    """How the matrix instructions of a kernel differ from the one that the catalog says; [] where not."""
    if len(found) != 1:
        return [f"{len(found)} matrix instructions, the catalog says 1"]
    one, wanted = found[0], stated(made, architecture)
    pairs = {
        "opcode": (one.mnemonic, wanted.mnemonic),
        "registers": (_counted(one.registers), _counted(wanted.registers)),
        "modifiers": (_spelled(one.modifiers), _spelled(wanted.modifiers)),
    }
    return [f"{name} {got}, the catalog says {want}" for name, (got, want) in pairs.items() if got != want]


def _counted(registers: tuple[int, ...]) -> str:
    return " ".join(map(str, registers))


def _spelled(modifiers: tuple[tuple[str, str], ...]) -> str:
    return " ".join("=".join(filter(None, pair)) for pair in modifiers) or "none"
