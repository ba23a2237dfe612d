"""The source of one kernel, and where the templates are that it is rendered from."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import NotHereError

ENTRY = "mmaprobe_run"
"""The kernel's name in every source."""

_INCLUDE = re.compile(r'^#include "([^"]+)"[^\n]*\n', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """How a kernel is launched.

    A group of ``threads`` (a warp, a warpgroup) runs ``items`` items of the batch at a time, and
    ``groups`` of them make a CTA; ``cluster`` CTAs run together; ``shared`` are the bytes of
    dynamic shared memory of a CTA.
    """

    threads: int = 32
    groups: int = 4
    items: int = 1
    cluster: int = 1
    shared: int = 0

    @property
    def geometry(self) -> dict[str, int]:
        """These numbers by name."""
        return {each.name: getattr(self, each.name) for each in fields(Geometry)}


@dataclass(frozen=True)
class Source(Geometry):
    """CUDA C++ of one instruction for one architecture: a kernel of batches, or of a ``campaign``, fused or staged."""

    instruction: str
    architecture: str
    text: str
    campaign: Literal["", "fused", "staged"] = ""

    @property
    def hash(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Parts:
    """What the kernels of one instruction share: code that moves its operands, and the function ``multiply``.

    A group of ``threads`` runs ``items`` items at a time; ``matrices`` are the bytes of shared
    memory that the instruction itself reads, from a multiple of ``slack`` on.
    """

    movement: str
    multiply: str
    threads: int = 32
    items: int = 1
    matrices: int = 0
    slack: int = 0


@cache
def template(name: str) -> str:
    """The text of a template in ``csrc``: ``gpu/fragments.hpp``."""
    package = Path(str(files("mmaprobe")))
    for root in (package / "csrc", package.parent.parent / "csrc"):
        if (root / name).is_file():
            return (root / name).read_text(encoding="utf-8")
    raise NotHereError(f"the template csrc/{name} is not installed; install mmaprobe again")


def flattened(name: str, seen: set[str] | None = None) -> str:
    """A file of ``csrc`` with everything that it includes by name in its place, each once."""
    seen = set() if seen is None else seen
    if name in seen:
        return ""
    seen.add(name)
    folder = name.rpartition("/")[0]

    def included(found: re.Match[str]) -> str:
        inner = found[1] if "/" in found[1] else f"{folder}/{found[1]}"
        return flattened(inner, seen)

    return _INCLUDE.sub(included, template(name).replace("#pragma once\n", ""))


def heading(instruction: Instruction, architecture: str) -> str:
    """What a source says first."""
    return f"// {instruction.id} on {architecture}"


def device_only(text: str) -> str:
    """What only a GPU can run."""
    return f"#ifndef MMAPROBE_HOST\n{text}\n#endif\n"
