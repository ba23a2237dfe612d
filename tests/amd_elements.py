"""AMD's layouts the other way round, element to (register, lowest bit, lane): written apart from the shipped formulas.

These are the functions that were held against amd_matrix_instruction_calculator
1.3.2 element by element (gfx908, gfx90a, gfx942, gfx11, gfx12), and against the
tables in Composable Kernel's MX tests (gfx950's f8f6f4, gfx1250's K 128).
``k`` of a sparse A counts kept values; ``q`` is a group of four dense k.
"""

from __future__ import annotations

Place = tuple[int, int, int]


def slot(number: int, bits: int) -> tuple[int, int]:
    """Register and bit of an element's number inside one lane."""
    return number * bits // 32, number * bits % 32


def mfma_in(dim: int, k_size: int, blocks: int, bits: int, row: int, k: int, block: int = 0, chunk: int = 0) -> Place:
    per_lane = k_size * dim * blocks // 64
    if chunk and per_lane > chunk:
        groups = 64 // (dim * blocks)
        piece, inside = divmod(k, chunk)
        group, number = piece % groups, piece // groups * chunk + inside
    else:
        group, number = divmod(k, per_lane)
    register, bit = slot(number, bits)
    return register, bit, row + dim * (block + blocks * group)


def mfma_out(m: int, n: int, bits: int, i: int, j: int, block: int = 0) -> Place:
    stacked = 1 if bits == 64 else 4
    groups = 64 // n
    beside = max(1, 64 * stacked // (m * n))
    strip, inside = divmod(i, stacked)
    register = block * (m * n // 64) + strip // groups * stacked + inside
    lane = j + n * (block % beside) + n * beside * (strip % groups)
    return (2 * register if bits == 64 else register), 0, lane


def smfmac_index(m: int, k_size: int, i: int, q: int, cbsz: int, abid: int) -> Place:
    per_lane = k_size // 2 * m // 64 // 2
    group, number = divmod(q, per_lane)
    offset = abid % (8 // per_lane) * 4 * per_lane if cbsz == 0 else 0
    return 0, offset + 4 * number, i + m * group


def wmma11_out(wave: int, bits: int, i: int, j: int, half: int) -> Place:
    step = wave // 16
    return i // step, 16 * half if bits == 16 else 0, j + 16 * (i % step)


Bits = list[tuple[int, int]]

G12_DENSE: dict[tuple[int, int, int], tuple[Bits, Bits]] = {
    (16, 16, 32): ([(0, 2), (3, 1)], [(2, 1)]),
    (16, 16, 64): ([(0, 2)], [(2, 1), (3, 1)]),
    (8, 16, 32): ([(0, 3)], [(3, 1)]),
    (8, 16, 64): ([(0, 2)], [(3, 1), (2, 1)]),
    (4, 16, 32): ([(0, 3)], [(3, 1)]),
    (4, 16, 64): ([(0, 3)], [(3, 1)]),
    (4, 32, 32): ([(0, 4)], [(4, 1)]),
    (4, 32, 64): ([(0, 3)], [(4, 1), (3, 1)]),
}
"""(bits, K, wave): (lowest bit of k, how many) that make the slot, and the group of 16 lanes."""

G12_SPARSE_B: dict[tuple[int, int, int], tuple[Bits, Bits]] = {
    (16, 32, 32): ([(0, 3), (4, 1)], [(3, 1)]),
    (16, 32, 64): ([(0, 3)], [(3, 1), (4, 1)]),
    (8, 32, 32): ([(0, 4)], [(4, 1)]),
    (8, 32, 64): ([(0, 3)], [(4, 1), (3, 1)]),
    (4, 32, 32): ([(0, 4)], [(4, 1)]),
    (4, 32, 64): ([(0, 3)], [(4, 1), (3, 1)]),
    (4, 64, 32): ([(0, 5)], [(5, 1)]),
    (4, 64, 64): ([(0, 4)], [(5, 1), (4, 1)]),
}

G12_SPARSE_A: dict[tuple[int, int, int], tuple[Bits, Bits]] = {
    (16, 32, 32): ([(2, 1), (4, 1)], [(3, 1)]),
    (16, 32, 64): ([(2, 1)], [(3, 1), (4, 1)]),
    (8, 32, 32): ([(2, 2)], [(4, 1)]),
    (8, 32, 64): ([(2, 1)], [(4, 1), (3, 1)]),
    (4, 32, 32): ([(2, 2)], [(4, 1)]),
    (4, 32, 64): ([(2, 2)], [(4, 1)]),
    (4, 64, 32): ([(2, 3)], [(5, 1)]),
    (4, 64, 64): ([(2, 2)], [(5, 1), (4, 1)]),
}


def pick(k: int, fields: Bits) -> int:
    """Fields of k side by side, the first lowest."""
    out = place = 0
    for low, count in fields:
        out |= (k >> low & (1 << count) - 1) << place
        place += count
    return out


def wmma12_in(
    table: dict[tuple[int, int, int], tuple[Bits, Bits]], key: tuple[int, int, int], row: int, k: int
) -> Place:
    number, group = table[key]
    register, bit = slot(pick(k, number), key[0])
    return register, bit, row + 16 * pick(k, group)


def swmmac12_a(key: tuple[int, int, int], i: int, kept: int) -> Place:
    number, group = G12_SPARSE_A[key]
    q, which = divmod(kept, 2)
    register, bit = slot(2 * pick(4 * q, number) + which, key[0])
    return register, bit, i + 16 * pick(4 * q, group)


def swmmac12_index(key: tuple[int, int, int], i: int, q: int, index_key: int) -> Place:
    number, group = G12_SPARSE_A[key]
    width = sum(count for _, count in number)
    return 0, (4 << width) * index_key + 4 * pick(4 * q, number), i + 16 * pick(4 * q, group)


def wmma12_out(wave: int, bits: int, i: int, j: int) -> Place:
    number, group = (i % 8, i // 8) if wave == 32 else (i % 4, i // 8 + 2 * (i // 4 % 2))
    register, bit = slot(number, bits)
    return register, bit, j + 16 * group


def wmma1250_in(bits: int, k_size: int, row: int, k: int) -> Place:
    chunk = min({32: 2, 64: 2, 16: 8, 8: 16, 6: 32, 4: 32}[bits], k_size // 2)
    piece, inside = divmod(k, chunk)
    register, bit = slot(piece // 2 * chunk + inside, bits)
    return register, bit, row + 16 * (piece % 2)


def wmma1250_out(bits: int, i: int, j: int) -> Place:
    register, bit = slot(i % 8, bits)
    return register + (8 if i >= 16 else 0), bit, j + 16 * (i % 16 // 8)
