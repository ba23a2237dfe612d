"""A rendered kernel source compiled for the host: its data movement as a shared library."""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source

OPERANDS = ("a", "b", "c", "scale_a", "scale_b", "metadata", "d")
MANY = 8
FOLDER = Path(tempfile.mkdtemp(prefix="mmaprobe-emulator-"))


class Operands(ctypes.Structure):
    """``Operands`` of csrc/gpu/fragments.hpp."""

    _fields_ = [*((name, ctypes.c_void_p) for name in OPERANDS), ("items", ctypes.c_ulonglong)]


@cache
def library(text: str, level: str = "-O0") -> ctypes.CDLL:
    """C++ as a shared library; what g++ says where it does not compile."""
    path = FOLDER / f"{hashlib.sha256(f'{level} {text}'.encode()).hexdigest()[:24]}.so"
    command = ["g++", "-std=c++17", level, "-w", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(path))


def movement(source: Source) -> str:
    """What of a source moves data: all but its id and what only a GPU can run."""
    return re.sub(r"#ifndef MMAPROBE_HOST\n.*?\n#endif\n", "", source.text.split("\n", 1)[1], flags=re.DOTALL)


def host(source: Source, exports: str, items: int = 1) -> ctypes.CDLL:
    """The source with the functions that a test calls; sources that move data alike are one library.

    What moves many ``items`` is worth optimising.
    """
    text = f"#define MMAPROBE_HOST\n#define MMAPROBE_HD inline\n#include <stddef.h>\n{movement(source)}\n{exports}"
    return library(text, "-O1" if items > MANY else "-O0")


def operands(batch: Batch, d: object, items: int) -> Operands:
    """The arrays of a batch, and D's, as a kernel takes them."""
    arrays = {**dict(batch.items()), "d": d}
    return Operands(*(arrays[name].ctypes.data if name in arrays else None for name in OPERANDS), items)  # type: ignore[attr-defined]
