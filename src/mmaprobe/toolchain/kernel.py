"""A compiled kernel: the binary of one instruction for one architecture, and how it is launched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mmaprobe.toolchain.source import Geometry, Source


@dataclass(frozen=True)
class Kernel(Geometry):
    """What a device loads: ``cubin`` with its kernel ``source.ENTRY``, and what compiled it (``NVRTC 13.5``)."""

    instruction: str
    architecture: str
    cubin: bytes
    toolchain: str

    @classmethod
    def of(cls, source: Source, cubin: bytes, toolchain: str) -> Kernel:
        """The binary of a source."""
        return cls(source.instruction, source.architecture, cubin, toolchain, **source.geometry)

    @property
    def hash(self) -> str:
        """SHA-256 of the binary."""
        return hashlib.sha256(self.cubin).hexdigest()
