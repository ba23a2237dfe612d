"""What a cubin says of itself: the architecture in its ELF header.

``e_machine`` is 190 (EM_CUDA).  ABI version 7 (up to CUDA 12) has the number of
the architecture in bits 7:0 of ``e_flags``, version 8 in bits 15:8.  Source:
LLVM 22, ``BinaryFormat/ELF.h`` (EF_CUDA_SM, EF_CUDA_SM_MASK).
"""

from __future__ import annotations

import struct

from mmaprobe.errors import DeviceError

EM_CUDA = 190
_SHIFTS = {7: 0, 8: 8}


def architecture_number(cubin: bytes) -> int:
    """90 of a cubin for sm_90 or sm_90a; DeviceError for what is no cubin, or of an ABI that is not known."""
    if len(cubin) < 64 or cubin[:4] != b"\x7fELF" or struct.unpack_from("<H", cubin, 18)[0] != EM_CUDA:
        raise DeviceError(f"{len(cubin)} bytes that begin {cubin[:8]!r} are no cubin; compile the kernel again")
    if cubin[8] not in _SHIFTS:
        raise DeviceError(f"a cubin of ABI version {cubin[8]}, of which {', '.join(map(str, _SHIFTS))} are known")
    return int(struct.unpack_from("<I", cubin, 48)[0]) >> _SHIFTS[cubin[8]] & 0xFF
