"""A compiled kernel: the binary of one instruction for one architecture, and how it is launched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mmaprobe.toolchain.source import Source


@dataclass(frozen=True)
class Kernel:
    """What a device loads: ``cubin`` with its kernel ``source.ENTRY``, the geometry of its ``Source``, its stamp.

    ``toolchain`` says what compiled it (``NVRTC 13.5``).
    """

    instruction: str
    architecture: str
    cubin: bytes
    toolchain: str
    threads: int = 32
    groups: int = 4
    items: int = 1
    cluster: int = 1
    shared: int = 0

    @classmethod
    def of(cls, source: Source, cubin: bytes, toolchain: str) -> Kernel:
        """The binary of a source."""
        geometry = {name: getattr(source, name) for name in ("threads", "groups", "items", "cluster", "shared")}
        return cls(source.instruction, source.architecture, cubin, toolchain, **geometry)

    @property
    def hash(self) -> str:
        """SHA-256 of the binary."""
        return hashlib.sha256(self.cubin).hexdigest()
