"""What the tensor cores of one CTA or a pair see in tensor memory: lanes of 512 columns to matrices, by CuTe's layouts.

Source: CUTLASS 7107b0553, include/cute/atom/mma_traits_sm100_frag.hpp: ``tmem_frg``, ``tmem_frg_ws``, ``tmem_sf_frg``,
``tmem_e_frg``, ``tmem_e_frg_ws``, in its virtual addresses: 128 lanes, then the next column of one element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.cute import cute
from emulator.registers import Array

LANES = 128
DISAGREE = 1 << 63
Places = tuple[Array, Array]
"""Lane and first bit of each element of one CTA, (copies, rows, columns)."""


def by_modes(rows: tuple[Any, Any], columns: tuple[Any, Any], shape: tuple[int, int], bits: Any) -> Places:
    """Places of rows x columns from the two modes of a CuTe layout; a column of it is ``bits`` wide."""
    first = np.array([cute(*rows, i) for i in range(shape[0])])
    second = np.array([cute(*columns, i) for i in range(shape[1])])
    address = (first[:, None] + second)[None]
    return address % LANES, np.asarray(address // LANES * bits).astype(int)


def copied(places: Places, lanes: list[int]) -> Places:
    """The places again, so many lanes further each."""
    lane, bit = places
    return np.concatenate([lane + more for more in lanes]), np.concatenate([bit] * len(lanes))


def accumulator(m: int, n: int, *, pair: bool, ws: bool) -> Places:
    """D: ``m`` rows of one CTA."""
    if m == 128:
        return by_modes((128, 1), (n, 128), (m, n), 32)
    if ws and m == 32:
        return by_modes((32, 1), ((n // 4, 4), (128, 32)), (m, n), 32)
    if ws or pair:
        return by_modes((64, 1), ((n // 2, 2), (128, 64)), (m, n), 32)
    return by_modes(((16, 4), (1, 32)), (n, 128), (m, n), 32)


def multiplicand(m: int, k: int, bits: int, *, pair: bool) -> Places:
    """A: ``m`` rows of one CTA, ``bits`` a place."""
    if m == 128:
        return by_modes((128, 1), (k, 128), (m, k), bits)
    if pair:
        return copied(by_modes((64, 1), (k, 128), (m, k), bits), [0, 64])
    return by_modes(((16, 4), (1, 32)), (k, 128), (m, k), bits)


def scales(lines: int, count: int, first: int, *, halves: bool) -> Places:
    """One byte a scale: ``lines`` rows of A or columns of B, ``count`` along K from byte ``first``, in every 32 lanes.

    ``halves``: the two data paths of 64 rows each have half of B's columns.
    """
    part = lines // 2 if halves else lines
    lane, bit = by_modes(((32, -(-part // 32)), (1, 512)), (count, 128), (part, count), 8)
    if halves:
        lane, bit = np.concatenate([lane, lane + 64], 1), np.concatenate([bit, bit], 1)
    return copied((lane, bit + 8 * first), [0, 32] if halves else [0, 32, 64, 96])


def metadata(m: int, k: int, chunk: int, bits: int, selector: int) -> Places:
    """Four bits a chunk; ``bits`` of an element of A: of 16 and 32 the selector picks one of two columns."""
    tall = m // 16
    if bits == 32:
        rows, columns, each = ((8, 2, tall), (1, 1024, 16)), ((8, 2), (128, 8)), 2.0
    elif bits == 16:
        rows, columns, each = ((8, 2, tall), (1, 2048, 16)), ((16, 2), (128, 8)), 1.0
    else:
        rows, columns, each = (m, 1), (k, 128), 1.0 if bits == 8 else 0.5
    lane, bit = by_modes(rows, columns, (m, k), each)
    found = lane[..., ::chunk], bit[..., ::chunk] + 32 * selector
    return copied(found, list(range(0, LANES, m)))


def read(memory: Array, column: int, places: Places, width: int, shift: int = 0) -> Array:
    """Codes of ``width`` bits ``shift`` above each place, of one CTA's (lanes, columns); marked where copies differ."""
    lane, bit = places
    words = memory[lane, column + bit // 32].astype(np.uint64) >> (bit % 32 + shift).astype(np.uint64)
    codes = words & np.uint64((1 << width) - 1)
    return np.where((codes == codes[0]).all(0), codes[0], np.uint64(DISAGREE))


def write(memory: Array, column: int, places: Places, codes: Array) -> None:
    """Whole columns of 32 bits."""
    lane, bit = places
    memory[lane[0], column + bit[0] // 32] = codes
