"""What a cubin says of itself: the architecture in its ELF header, and the registers of its kernel (``.nv.info``).

``e_machine`` is 190 (EM_CUDA).  ABI version 7 (up to CUDA 12) has the number of
the architecture in bits 7:0 of ``e_flags``, version 8 in bits 15:8.  Source:
LLVM 22, ``BinaryFormat/ELF.h`` (EF_CUDA_SM, EF_CUDA_SM_MASK).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mmaprobe.errors import DeviceError

EM_CUDA = 190
"""The machine of an ELF file for an NVIDIA GPU."""
_SHIFTS = {7: 0, 8: 8}
_SIZED = 4
"""EIFMT_SVAL: an attribute whose value follows, with its size."""
_REGISTERS = 0x2F
"""EIATTR_REGCOUNT."""
_PARAMETERS = 0x0A
"""EIATTR_PARAM_CBANK."""


def architecture_number(cubin: bytes) -> int:
    """90 of a cubin for sm_90 or sm_90a; DeviceError for what is no cubin, or of an ABI that is not known."""
    if len(cubin) < 64 or cubin[:4] != b"\x7fELF" or struct.unpack_from("<H", cubin, 18)[0] != EM_CUDA:
        raise DeviceError(f"{len(cubin)} bytes that begin {cubin[:8]!r} are no cubin; compile the kernel again")
    if cubin[8] not in _SHIFTS:
        raise DeviceError(f"a cubin of ABI version {cubin[8]}, of which {', '.join(map(str, _SHIFTS))} are known")
    return int(struct.unpack_from("<I", cubin, 48)[0]) >> _SHIFTS[cubin[8]] & 0xFF


def registers(cubin: bytes) -> int:
    """Registers of a thread, as ptxas -v prints them; DeviceError where the cubin does not tell."""
    for payload in _attributes(cubin, _REGISTERS):
        return int(struct.unpack_from("<I", payload, 4)[0])
    raise DeviceError("the cubin does not tell its kernel's registers; compile it again")


def parameters(cubin: bytes, kernel: str) -> tuple[int, int]:
    """Where the parameters of a kernel lie in constant bank 0, and their bytes; DeviceError where it does not tell."""
    for payload in _attributes(cubin, _PARAMETERS, f".nv.info.{kernel}".encode()):
        start, size = struct.unpack_from("<HH", payload, 4)
        return int(start), int(size)
    raise DeviceError(f"the cubin does not tell where {kernel} has its parameters; compile it again")


def _attributes(cubin: bytes, wanted: int, section: bytes = b".nv.info") -> Iterator[bytes]:
    """The payloads of one attribute in ``.nv.info``: bytes of kind, attribute, and size where the kind has one."""
    content, at = _section(cubin, section), 0
    while at + 4 <= len(content):
        kind, attribute, size = struct.unpack_from("<BBH", content, at)
        length = size if kind == _SIZED else 0
        if (kind, attribute) == (_SIZED, wanted):
            yield content[at + 4 : at + 4 + length]
        at += 4 + length


def _section(cubin: bytes, name: bytes) -> bytes:
    """The content of an ELF section; empty where there is none."""
    start = struct.unpack_from("<Q", cubin, 40)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    rows = [struct.unpack_from("<IIQQQQ", cubin, start + number * size) for number in range(count)]
    for row in rows:
        at = rows[names][4] + row[0]
        if cubin[at : cubin.index(b"\0", at)] == name:
            return cubin[row[4] : row[4] + row[5]]
    return b""
