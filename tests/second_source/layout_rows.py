"""Instructions made from the golden tables of operands, without the catalog."""

from __future__ import annotations

import csv
import io
import lzma
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mmaprobe.catalog import layouts
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction

GOLDEN = Path(__file__).parents[1] / "golden"
FORMATS = {
    "s1z4m11": "ti16", "fp8": "e4m3", "bf8": "e5m2", "fp6": "e2m3", "bf6": "e3m2", "fp4": "e2m1",
    "iu8": "u8", "i8": "s8", "iu4": "u4", "i32": "s32", "xf32": "tf32",
}  # fmt: skip


def read(name: str) -> list[dict[str, str]]:
    """The rows of a golden table."""
    return list(csv.DictReader(io.StringIO(lzma.decompress((GOLDEN / name).read_bytes()).decode("utf-8"))))


def scale_size(row: dict[str, str]) -> int:
    """Logical k that share a scale: 32, or 16 for four scales of K 64, twice that where sparse."""
    block = 16 if row["scale_vec"] in ("4X", "block16") else 32
    return block * 2 if row["sparse"] else block


def chunk(row: dict[str, str], a: str) -> int:
    """Logical k that one metadata item covers."""
    if row["sparse"] in ("", "0"):
        return 0
    if a == "tf32":
        return 2
    packed = a in ("s4", "u4") or (a == "e2m1" and "mxf4" in row["family"])
    return 8 if packed and row["family"] not in ("swmmac",) else 4


def nvidia(row: dict[str, str]) -> Iterator[Instruction]:
    """A PTX form as instructions: of allowed sets the first and last of each, every M."""
    for m in row["m"].split("|"):
        for n in shapes_n(row["n"], int(m)):
            for a, b, d in formats(row):
                yield Instruction(
                    row["ptx"], row["ptx"], row["family"], int(m), n, int(row["k"]), a, b,
                    d if row["c_type"] in ("", row["d_type"]) else row["c_type"], d,
                    modifiers=modifiers(row["extra"]), chunk=chunk(row, a),
                    scale=row["scale_type"].split("|")[0] or None if row["block_scale"] else None,
                    scale_size=scale_size(row) if row["block_scale"] else 0,
                )  # fmt: skip


def modifiers(extra: str) -> tuple[tuple[str, str], ...]:
    """Where A lies, if not in shared memory."""
    return tuple(("a", place) for place in ("regs", "tmem") if f"A {place}" in extra)


def shapes_n(text: str, m: int) -> list[int]:
    """The first, a middle and the last N of ``8..256/8``; all of ``64|128``; of ``(M=64)`` parts the one for m."""
    parts = [part for part in text.split(" or ") if "(M=" not in part or f"(M={m})" in part]
    out: set[int] = set()
    for token in re.split(r"[|,]", parts[0].partition(" (")[0]):
        low, high, step = (int(x) for x in (re.split(r"\.\.|/", token) if ".." in token else (token, token, "1")))
        out |= {low, low + (high - low) // step // 2 * step, high}
    return sorted(out)


def formats(row: dict[str, str]) -> list[tuple[str, str, str]]:
    """Formats of A, B and D: each that A may have with itself, and each that D may have."""
    named = [FORMATS.get(a, a) for a in row["a_type"].split("|")]
    second = [FORMATS.get(b, b) for b in row["b_type"].split("|")]
    pairs = list(zip(named, second, strict=True)) if len(named) == len(second) else [(named[0], second[0])]
    return [(a, b, d) for a, b in pairs for d in row["d_type"].split("|")]


def amd(row: dict[str, str]) -> Iterator[tuple[Instruction, str]]:
    """An AMD row as instructions, with the architecture whose spelling each has."""
    for entry in row["spelled"].split():
        architecture, mnemonic = entry.split("=")
        for a, b in zip(row["a_type"].split("|"), row["b_type"].split("|"), strict=True):
            a, b, c, d = (FORMATS.get(x, x) for x in (a, b, row["c_type"], row["d_type"]))
            scaled = row["family"] in ("mfma_scale", "wmma_scale", "wmma_scale16")
            yield Instruction(
                mnemonic, mnemonic, row["family"], int(row["m"]), int(row["n"]), int(row["k"]), a, b, c, d,
                modifiers=(("wave", row["wave"]),), blocks=int(row["blocks"]), chunk=chunk(row, a),
                scale="ue8m0" if scaled else None,
                scale_size=(16 if "16" in row["family"] else 32) if scaled else 0,
            ), architecture  # fmt: skip


NVIDIA = read("nvidia_operands.csv.xz")
AMD = read("amd_operands.csv.xz")


@cache
def fragments() -> tuple[Fragment, ...]:
    """Every fragment that the golden rows have, one for each set of formulas, open ones too."""
    made: dict[object, tuple[Instruction, str]] = {}
    for row in NVIDIA:
        opcode = re.split(r"\.m\d|kind", row["ptx"])[0]
        if not row["family"].startswith("wmma"):
            for instruction in nvidia(row):
                widths = (instruction.a, instruction.d) if "f8f6f4" in row["family"] else row["family"]
                key = (opcode, widths, instruction.m, instruction.k, instruction.d, instruction.modifiers)
                made.setdefault(
                    (*key, row["scale_vec"], row["ptx"][-20:-12] if instruction.m == 8 else ""),
                    (instruction, "sm_100a"),
                )
    for row in AMD:
        for instruction, architecture in amd(row):
            key = (row["family"], row["m"], row["k"], row["blocks"], row["wave"], architecture[:5])
            key = (*key, "bf16f32" in instruction.opcode)
            made.setdefault((*key, instruction.a, instruction.d), (instruction, architecture))
    for wave in (32, 64):  # V_DOT, of which no golden table tells: every lane multiplies what its registers hold
        modifiers = (("wave", "64"),) * (wave == 64)
        for a, d, k in (("f16", "f32", 2), ("f16", "f16", 2), ("e4m3", "f32", 4), ("u4", "s32", 8)):
            dot = Instruction("v_dot", f"v_dot{k}_{d}_{a}", "dot", 1, 1, k, a, a, d, d, modifiers, blocks=wave)
            made["v_dot", wave, a, d] = (dot, "gfx1200")
    found: dict[object, Fragment] = {}
    for instruction, architecture in made.values():
        for operand in layouts.operands(instruction):
            for one in layouts.candidates(instruction, architecture, operand):
                found.setdefault((one.name, one.at, one.active, one.bits, one.width, one.lanes), one)
    return tuple(found.values())
