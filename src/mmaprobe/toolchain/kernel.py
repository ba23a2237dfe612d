"""A compiled kernel: the binary of one instruction for one architecture, and how it is launched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mmaprobe.toolchain.source import Geometry, Source
from mmaprobe.vendors import vendor_of


@dataclass(frozen=True)
class Kernel(Geometry):
    """What a device loads: ``binary`` (cubin or code object) with its kernel ``source.ENTRY``, and what compiled it."""

    instruction: str
    architecture: str
    binary: bytes
    toolchain: str

    @classmethod
    def of(cls, source: Source, binary: bytes, toolchain: str) -> Kernel:
        """The binary of a source."""
        return cls(source.instruction, source.architecture, binary, toolchain, **source.geometry)

    @property
    def hash(self) -> str:
        """SHA-256 of the binary."""
        return hashlib.sha256(self.binary).hexdigest()


def file_name(stem: str, architecture: str) -> str:
    """What a binary is called on disk: ``stem.co`` of AMD, ``stem.cubin`` of NVIDIA, of nobody's ``stem``."""
    vendor = vendor_of(architecture)
    return stem if vendor is None else f"{stem}{vendor.suffix}"
