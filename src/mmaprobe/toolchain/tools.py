"""What a vendor's folder offers the rest of the toolchain: its module ``tools``, which the vendor's record names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Parts, Source

LANES, FUSED, STAGED = "gpu/campaign_lanes.hpp", "gpu/campaign_fused.hpp", "gpu/campaign_stages.hpp"
"""What campaigns of all vendors share, for the templates of a family: a group's lanes, one kernel, stages."""
WARPS = 4
"""Warps or waves of a CTA in stages; of a fused one at most, unless its family says otherwise."""


@dataclass(frozen=True)
class Family:
    """The instructions whose opcodes begin with ``opcodes``: ``source`` renders their kernels of batches.

    Of their campaigns ``fused`` and ``staged`` are the templates around the shared ones; ``parts`` moves operands and
    multiplies, None where the instruction takes a kernel of its own; ``groups`` make a CTA at
    most.  ``dynamic``: a launch gives the shared memory; else it is an array of the kernel.
    """

    opcodes: tuple[str, ...]
    source: Callable[[Instruction, str], Source]
    fused: tuple[str, ...]
    staged: tuple[str, ...]
    parts: Callable[[Instruction, str], Parts] | None = None
    groups: int = WARPS
    dynamic: bool = True


@dataclass(frozen=True)
class Listing:
    """Of a disassembly: its matrix instructions and how often each, the code's hash, and what differs (catalog).

    ``resources`` are what the kernel takes of a multiprocessor, as its binary tells.
    """

    opcodes: dict[str, int]
    code: str
    differs: list[str]
    resources: dict[str, int]


class Tools(Protocol):
    """A module ``tools``."""

    @property
    def FAMILIES(self) -> tuple[Family, ...]:
        """The families of its instructions."""

    def compiler(self, architecture: str) -> Compiler:
        """What compiles for an architecture here."""

    def named(self, name: str) -> Compiler | None:
        """The compiler of this name or at this path; None where it is none of the vendor's."""

    def disassembler(self) -> str:
        """The path of what reads kernels; NotHereError that says what to install."""

    def listed(self, wanted: Instruction, architecture: str, made: Kernel) -> Listing:
        """A kernel disassembled and held against the catalog; NotHereError where the disassembler is missing."""
