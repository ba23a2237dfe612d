"""AMD's layouts the other way round, element to (register, lowest bit, lane): written apart from the shipped formulas.

These are the functions that were held against amd_matrix_instruction_calculator
1.3.2 element by element (gfx908, gfx90a, gfx942, gfx11, gfx12), and against the
tables in Composable Kernel's MX tests (gfx950's f8f6f4, gfx1250's K 128).
``k`` of a sparse A counts kept values; ``q`` is a group of four dense k.
"""

from __future__ import annotations

from collections.abc import Mapping

from mmaprobe.catalog.instruction import Instruction
from second_source import amd_claims

Place = tuple[int, int, int]
WIDTHS = {
    "f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16,
    "s32": 32, "u32": 32, "s16": 16, "u16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
    "e4m3": 8, "e5m2": 8, "e4m3fnuz": 8, "e5m2fnuz": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4,
    "ue8m0": 8, "ue5m3": 8, "ue4m3": 8,
}  # fmt: skip
"""Bits of an element as registers hold it."""


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


def scale_place(made: Instruction, architecture: str, operand: str, index: Mapping[str, int], chosen: int) -> Place:
    """gfx950: one scale a lane, in byte ``chosen``; gfx1250: the scales of a row in lanes of row ``chosen``."""
    row, block = index["n" if operand == "scale_b" else "m"], index["scale_block"]
    dim = made.n if operand == "scale_b" else made.m
    if architecture.startswith("gfx9"):
        return 0, 8 * chosen, row + dim * block
    return block // 4, 8 * (block % 4), row + (16 * chosen if dim == 16 else 0)


def places(
    made: Instruction, architecture: str, operand: str, sizes: tuple[int, int], index: Mapping[str, int],
    chosen: Mapping[str, int],
) -> list[Place]:  # fmt: skip
    """Where one element of an operand lies, all copies of it; ``sizes``: lanes of the wave, bits of the element."""
    wave, bits = sizes
    if "layout" in made.modifier and (claimed := amd_claims.claim_place(made, operand, bits, index)):
        return [claimed]
    k, block = index.get("k", 0), index.get("mfma_block", 0)
    if made.opcode.startswith("v_dot"):
        return [(*slot(k, bits), block)]  # V_DOT: every lane multiplies what its registers hold
    row = index["n"] if operand == "b" else index["m"]
    dim = made.n if operand == "b" else made.m
    if operand in ("c", "d"):
        return [out_place(made, architecture, sizes, index, chosen)]
    if operand == "metadata":
        if architecture.startswith("gfx9"):
            return [smfmac_index(made.m, made.k, row, index["chunk"], chosen["cbsz"], chosen["abid"])]
        key = (WIDTHS[made.a], made.k, wave)
        return [swmmac12_index(key, row, index["chunk"], chosen["index_key"])]
    if architecture.startswith("gfx9"):
        chunk = 16 if "f8f6f4" in made.opcode and bits == 8 else 0
        depth = made.k // 2 if made.chunk and operand == "a" else made.k
        return [mfma_in(dim, depth, made.blocks, bits, row, k, block, chunk)]
    if architecture.startswith("gfx11"):
        return [(*slot(k, bits), row + 16 * copy) for copy in range(wave // 16)]
    if architecture.startswith("gfx125"):
        register, bit, lane = wmma1250_in(bits, made.k, row % 16, k)
        return [(register + 8 * (row // 16), bit, lane)]
    key = (bits, made.k, wave)
    if made.chunk:
        return [swmmac12_a(key, row, k) if operand == "a" else wmma12_in(G12_SPARSE_B, key, row, k)]
    return [wmma12_in(G12_DENSE, key, row, k)]


def out_place(
    made: Instruction, architecture: str, sizes: tuple[int, int], index: Mapping[str, int], chosen: Mapping[str, int]
) -> Place:
    """Where one element of C or D lies."""
    wave, bits = sizes
    i, j = index["m"], index["n"]
    if architecture.startswith("gfx9"):
        return mfma_out(made.m, made.n, bits, i, j, index.get("mfma_block", 0))
    if architecture.startswith("gfx11"):
        return wmma11_out(wave, bits, i, j, chosen.get("op_sel", 0))
    if architecture.startswith("gfx125"):
        return wmma1250_out(bits, i, j)
    return wmma12_out(wave, bits, i, j)
