"""NumPy's own products, run in a process of its own: OpenBLAS chooses kernels and threads when it is loaded.

``python numpy_products.py`` prints which OpenBLAS NumPy has and the kernels that it chose; where a folder is named, it
writes D.npz there from the matrices of AB.npz.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Sequence
from os import environ
from pathlib import Path
from typing import Any

import numpy as np

ENVIRONMENT = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}
WANTED = "OpenBLAS 0.3.31, Haswell"


def asked(*words: str) -> str:
    """What a child of this environment prints."""
    command = [sys.executable, __file__, *words]
    done = subprocess.run(command, env={**environ, **ENVIRONMENT}, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def products(pairs: Sequence[tuple[Any, Any]], folder: Path) -> list[Any]:
    """A @ B of each pair."""
    np.savez(folder / "AB.npz", *[each for pair in pairs for each in pair])
    asked(str(folder))
    found = np.load(folder / "D.npz")
    return [found[name] for name in found.files]


def identity() -> str:
    """OpenBLAS' version and kernels; empty where NumPy has another library."""
    for path in Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"):
        library = ctypes.CDLL(str(path))
        said = []
        for name in ("config", "corename"):
            read = getattr(library, f"scipy_openblas_get_{name}64_", None)
            if read is not None:
                read.restype = ctypes.c_char_p
                said.append(read().decode())
        if len(said) == 2:
            version = ".".join(said[0].split()[1].split(".")[:3])
            return f"OpenBLAS {version}, {said[1]}"
    return ""


if __name__ == "__main__":
    np.ones((16, 16), np.float32) @ np.ones((16, 16), np.float32)  # a processor without these kernels says nothing
    print(identity())
    for folder in map(Path, sys.argv[1:]):
        given = np.load(folder / "AB.npz")
        matrices = [given[name] for name in given.files]
        np.savez(folder / "D.npz", *[a @ b for a, b in zip(matrices[::2], matrices[1::2], strict=True)])
