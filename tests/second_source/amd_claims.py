"""The layouts that sources claim for operands where they are open, element to (register, lowest bit, lane).

Written apart from the shipped formulas, as the sources have them: for SMFMAC of gfx950 what the tests of
ROCm/hip-fpsan load into each lane, inverted; for SWMMAC of gfx1250 the functions of AMD's emulator.  ``neither`` is one
that nobody claims, for a unit on which every claim is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

from mmaprobe.catalog.instruction import Instruction
from second_source import amd_elements

WIDE = {16: (8, 16, 8), 8: (16, 32, 16)}
"""Of SWMMAC's operands by their bits: kept values and dense k that lie side by side in a lane, items of an index."""


def claim_place(made: Instruction, operand: str, bits: int, index: Mapping[str, int]) -> amd_elements.Place | None:
    """Where one element of an operand lies by the instruction's claim; None where that says nothing of the operand."""
    claim = made.modifier.get("layout", "").split(".")
    if operand == "c":
        return None
    if "v_smfmac" in made.opcode:
        return None if operand == "d" else _smfmac(made, operand, bits, index, claim[0])
    if operand == "d" and len(claim) > 1:
        register, _, lane = amd_elements.wmma1250_out(32, index["m"], index["n"])
        packed = amd_elements.wmma1250_out(16, index["m"], index["n"])
        return {"low": (register, 0, lane), "high": (register, 16, lane), "packed": packed}[claim[1]]
    return None if operand == "d" else _swmmac(made, operand, bits, index, claim[0])


def _smfmac(
    made: Instruction, operand: str, bits: int, index: Mapping[str, int], claim: str
) -> amd_elements.Place | None:
    if operand == "b":
        return _smfmac_b(made, bits, index["n"], index["k"], claim)
    if claim == "consecutive" or made.a in ("f16", "bf16"):
        return None  # as on gfx942
    q, which = divmod(index["k"], 2) if operand == "a" else (index["chunk"], 0)
    number, group = _nibble(made.m, q)
    place = amd_elements.slot(2 * number + which, bits) if operand == "a" else (0, 4 * number)
    return *place, index["m"] + made.m * group


def _nibble(m: int, q: int) -> tuple[int, int]:
    """Of a group of four dense k: its number among those of its lane, and the group of lanes."""
    if m == 16:
        return 2 * (q // 8 % 2) + 4 * (q % 4 // 2) + q % 2, 2 * (q // 16) + q // 4 % 2
    return q % 2 + 2 * (q // 4 % 2) + 4 * (q // 2 % 2), q // 8


def _smfmac_b(made: Instruction, bits: int, column: int, k: int, claim: str) -> amd_elements.Place:
    if claim == "consecutive":
        return amd_elements.mfma_in(made.n, made.k, 1, bits, column, k)
    lanes = 64 // made.n
    piece, inside = divmod(k, 8)
    if claim == "neither":
        inside ^= 4
    return *amd_elements.slot(piece // lanes * 8 + inside, bits), column + made.n * (piece % lanes)


def _swmmac(made: Instruction, operand: str, bits: int, index: Mapping[str, int], claim: str) -> amd_elements.Place:
    kept, dense, items = WIDE[16 if made.a in ("f16", "bf16") else 8]
    if operand == "metadata":
        q = index["chunk"]
        if claim == "halves":
            number, group = q % items, q // items
        else:
            number, group = _chunked(q, kept // 2)
        if claim == "neither":
            number ^= 1
        return number // 8, 4 * (number % 8), index["m"] + 16 * group
    number, group = _chunked(index["k"], kept if operand == "a" else dense)
    return *amd_elements.slot(number, bits), index["m" if operand == "a" else "n"] + 16 * group


def _chunked(k: int, wide: int) -> tuple[int, int]:
    """Place in a lane and group of lanes where chunks go to the two groups in turns."""
    piece, inside = divmod(k, wide)
    return piece // 2 * wide + inside, piece % 2
