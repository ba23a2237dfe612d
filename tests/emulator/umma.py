"""What a tensor core reads through a matrix descriptor: CuTe's canonical layouts of wgmma and tcgen05.

Source: CUTLASS 7107b0553, include/cute/arch/mma_sm100_desc.hpp (fields) and ``make_umma_desc`` (canonical layouts, in
units of 16 bytes); PTX ISA 9.4, shared memory descriptor.  Elements of 4 and 6 bits of kind f8f6f4: 16 in 16 bytes,
bit by bit from the front.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emulator.cute import cute
from emulator.registers import Array

UNIT = 16
MODES = {0: (0, 4, 3), 1: (2, 5, 2), 2: (3, 4, 3), 4: (2, 4, 3), 6: (1, 4, 3)}
"""Swizzle<B, M, S> of each layout type of tcgen05."""
BASE_32 = 1


def swizzled(address: Array, mode: int) -> Array:
    """Swizzle<B, M, S>: B bits from bit M + S on, into those from bit M on."""
    bits, base, shift = MODES[mode]
    return address ^ ((address & ((1 << bits) - 1) << (base + shift)) >> shift)


def fields(descriptor: int) -> tuple[int, int, int, int]:
    """(start, LBO, SBO) in bytes and the layout type of a tcgen05 descriptor; version 1 and nothing else."""
    assert descriptor >> 46 & 3 == 1, f"{descriptor:#x}: version"
    known = 0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 1 << 46 | 7 << 61
    assert not descriptor & ~known, f"{descriptor:#x}: base offset or reserved bits"
    start, lbo, sbo = ((descriptor >> low & 0x3FFF) * UNIT for low in (0, 16, 32))
    return start, lbo, sbo, descriptor >> 61


def addresses(descriptor: int, rows: int, units: int, along_mn: bool) -> Array:
    """Byte address of each unit of 16 bytes: (rows, units along K), or with MN contiguous (units along MN, k)."""
    start, lbo, sbo, mode = fields(descriptor)
    wide = 8 if mode == BASE_32 else 1 << MODES[mode][0]
    lbo, sbo = lbo // UNIT, sbo // UNIT
    if along_mn and wide == 1:
        first, second = ((1, 64), (0, sbo)), ((8, 64), (1, lbo))
    elif along_mn:
        first, second = ((wide, 64), (1, lbo)), ((4 if mode == BASE_32 else 8, 64), (wide, sbo))
    else:
        assert units <= max(wide, 2), f"{units} units along K with a swizzle of {wide}"
        first, second = ((8, 64), (wide, sbo)), (64, lbo if wide == 1 else 1)
    shape = (units, rows) if along_mn else (rows, units)
    lines = [
        np.array([cute(*mode_of, i) for i in range(size)]) for mode_of, size in zip((first, second), shape, strict=True)
    ]
    return swizzled(start + (lines[0][:, None] + lines[1]) * UNIT, mode)


def read(
    memory: NDArray[np.uint8], descriptor: int, mn: int, k: int, bits: int, *, padded: bool, turned: bool
) -> Array:
    """Codes (mn, k) of a matrix whose CTA's shared memory starts at address 0; ``turned``: MN is contiguous."""
    per = UNIT if padded else UNIT * 8 // bits
    line, other = np.indices((mn, k))
    if turned:
        line, other = other, line
    units = -(-(mn if turned else k) // per)
    at = addresses(descriptor, k if turned else mn, units, turned)
    unit = at[other // per, line] if turned else at[line, other // per]
    place = unit * 8 + other % per * bits
    every = np.unpackbits(memory, bitorder="little")
    return (every[place[..., None] + np.arange(bits)].astype(np.uint64) << np.arange(bits, dtype=np.uint64)).sum(-1)
