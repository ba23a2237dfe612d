"""AMD's MFMA, SMFMAC, WMMA and SWMMAC: a wave's operands in its registers, and one instruction."""

from __future__ import annotations

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import layout, operands
from mmaprobe.toolchain.amd.builtins import call
from mmaprobe.toolchain.amd.inline import statement
from mmaprobe.toolchain.fragments import BATCH, movement
from mmaprobe.toolchain.source import Parts, Source, device_only, heading, template

OPERANDS, KERNEL = "hip/matrix.hpp", "hip/wave_batch.hpp"
WAVES = 4
"""Waves of a workgroup: one for each SIMD of a compute unit."""


def parts(instruction: Instruction, architecture: str) -> Parts:
    """What moves a wave's item, and the instruction."""
    fragments = {name: layout(instruction, architecture, name) for name in operands(instruction)}
    called = call(instruction, architecture, fragments)
    body = f"  keep(of.d, {called});" if called else statement(instruction, fragments)
    multiply = device_only(f"MMAPROBE_DEVICE void multiply(Registers& of) {{\n{body}\n}}")
    return Parts(movement(instruction, fragments), f"{template(OPERANDS)}\n{multiply}", threads=fragments["d"].lanes)


def source(instruction: Instruction, architecture: str) -> Source:
    """The kernel of a matrix instruction: a wave runs one item at a time."""
    made = parts(instruction, architecture)
    numbers = f"constexpr int LANES = {made.threads}, WAVES = {WAVES};"
    text = "\n\n".join(
        [
            heading(instruction, architecture),
            made.movement,
            template(BATCH),
            numbers,
            template(KERNEL),
            made.multiply,
        ]
    )
    return Source(instruction.id, architecture, text, threads=made.threads, groups=WAVES)
