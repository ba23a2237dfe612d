"""What the compiler made of a kernel: its matrix instructions as nvdisasm prints them, held against the lowering."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mmaprobe.catalog.lowering import Lowering
from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.compiler import run_tool

OVERRIDE = "MMAPROBE_NVDISASM"
"""The environment's name for another nvdisasm: that of CUDA 13 does not read sm_70, 12.8 does."""

_MATRIX = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]+MMA[\w.]*)", re.MULTILINE)
_PLACE = re.compile(r"\.STEP\d|\.2CTA|\.WS\b|\.64x\d+x\d+|\.SF_\w+$")
_CODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", re.MULTILINE)


@cache
def nvdisasm() -> str:
    """The path of nvdisasm: MMAPROBE_NVDISASM, the wheel's, or the one on PATH; NotHereError that says what to do."""
    given = os.environ.get(OVERRIDE)
    if given:
        return given
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        found = shutil.which("nvdisasm")
    else:
        found = find_nvidia_binary_utility("nvdisasm") or shutil.which("nvdisasm")
    if not found:
        raise NotHereError("nvdisasm is not installed: pip install 'mmaprobe[cuda13]'")
    return str(found)


def disassemble(cubin: bytes) -> str:
    """The text of a cubin; NotHereError where nvdisasm is missing or does not read it."""
    tool = nvdisasm()
    with tempfile.TemporaryDirectory(prefix="mmaprobe-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = run_tool([tool, "-c", str(path)])
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NotHereError(
            f"{tool} does not read the kernel: {said[-1] if said else 'no reason given'}; set {OVERRIDE} to another one"
        )
    return done.stdout


def matrix_opcodes(text: str) -> dict[str, int]:
    """How often each matrix opcode stands in a disassembly, spelled as primitives spell it.

    The steps of one sequence are one opcode; of wgmma the tile, of tcgen05 the pair and .ws are no part of one.
    """
    return dict(sorted(Counter(_PLACE.sub("", opcode) for opcode in _MATRIX.findall(text)).items()))


def code_hash(text: str) -> str:
    """SHA-256 of the instructions alone: the same for the same code, whatever names surround it."""
    return hashlib.sha256("\n".join(_CODE.findall(text)).encode()).hexdigest()


def differences(way: Lowering, opcodes: Mapping[str, int], before: int = 0) -> list[str]:
    """How the matrix instructions of a kernel differ from those that the catalog's lowering states; [] where not.

    ``before``: so many of the same opcode the kernel runs first, to fill what the instruction uses.
    """
    stated = {name.partition("[")[0] for name in way.primitives if "MMA" in name}
    found = []
    if set(opcodes) != stated:
        found.append(
            f"opcodes {', '.join(sorted(opcodes)) or 'none'}, the catalog says {', '.join(sorted(stated)) or 'none'}"
        )
    elif sum(opcodes.values()) != way.count + before:
        found.append(f"{sum(opcodes.values()) - before} matrix instructions, the catalog says {way.count}")
    return found
