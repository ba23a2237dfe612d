"""Matrices in shared memory as a Hopper tensor core reads them: descriptors, CuTe's canonical layouts, swizzles.

Source: PTX ISA 9.1, wgmma, matrix descriptor format; CUTLASS 7107b0553, include/cute/arch/mma_sm90_desc.hpp
(``GmmaDescriptor``), include/cute/atom/mma_traits_sm90_gmma.hpp (the canonical layouts above ``make_gmma_desc``, in
units of elements, T of them in 16 bytes), include/cute/swizzle.hpp (``Swizzle<B, 4, 3>``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.cute import Places, places
from emulator.registers import Array

WINDOW = 1 << 18
"""Bytes that a descriptor's start address can name."""


@dataclass(frozen=True)
class Descriptor:
    """The fields of a ``GmmaDescriptor``; strides in bytes."""

    start: int
    lbo: int
    sbo: int
    base_offset: int
    layout_type: int

    @classmethod
    def of(cls, word: int) -> Descriptor:
        def field(low: int, bits: int) -> int:
            return word >> low & ((1 << bits) - 1)

        unused = field(14, 2) | field(30, 2) | field(46, 3) | field(52, 10)
        assert not unused, f"{word:#x}: unused bits are set"
        return cls(16 * field(0, 14), 16 * field(16, 14), 16 * field(32, 14), field(49, 3), field(62, 2))

    @property
    def chunks(self) -> int:
        """Units of 16 bytes in a swizzled row: INTERLEAVE 1, B128 8, B64 4, B32 2."""
        return (1, 8, 4, 2)[self.layout_type]

    def swizzled(self, byte: Array) -> Array:
        """``Swizzle<B, 4, 3>`` on byte addresses: B bits from bit 7 on are xored into those from bit 4 on."""
        mask = (self.chunks - 1) << 7
        return byte ^ (byte & mask) >> 3


def canonical(found: Descriptor, lines: int, depth: int, bits: int, mn_major: bool) -> Places:
    """The element that (line, k) is, from the start on: CuTe's canonical layout of one instruction's operand."""
    unit, wide = 128 // bits, found.chunks
    sbo, lbo = (8 * stride // bits for stride in (found.sbo, found.lbo))
    shape: tuple[Any, Any]
    if not mn_major:
        shape, stride = ((8, lines // 8), (unit, depth // unit)), ((wide * unit, sbo), (1, lbo if wide == 1 else unit))
    else:
        groups = lines // (unit * wide)
        shape = ((unit, wide, groups), (8, depth // 8))
        stride = ((1, unit, sbo if wide == 1 else lbo), (wide * unit, lbo if wide == 1 else sbo))
    assert tuple(map(np.prod, shape)) == (lines, depth), "the operand is no whole number of atoms"
    return places(shape, stride)


def matrix(memory: Array, first: int, word: int, lines: int, depth: int, bits: int, mn_major: bool) -> Array:
    """The codes (items, lines, depth) that a descriptor names in shared memory.

    ``memory`` (items, bytes) is what of the window lies from address ``first`` on; the rest reads as noise.
    """
    found = Descriptor.of(word)
    if found.base_offset:
        raise AssertionError(f"{word:#x}: a base offset, which no pattern of ours has")
    offset = canonical(found, lines, depth, bits, mn_major) * bits
    byte = found.swizzled(found.start + offset // 8)
    out = np.zeros((len(memory), lines, depth), np.uint64)
    for number in range(max(bits // 8, 1)):
        address = (byte + number) % WINDOW
        place = np.clip(address - first, 0, memory.shape[1] - 1)
        read = np.where(place == address - first, memory[:, place], (address * 167 >> 3).astype(np.uint8))
        out |= read.astype(np.uint64) << np.uint64(8 * number)
    return out >> (offset % 8).astype(np.uint64) & np.uint64((1 << bits) - 1)
