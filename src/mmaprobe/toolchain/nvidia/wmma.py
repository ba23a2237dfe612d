"""``wmma``: matrices in rows and columns of shared memory, opaque fragments in between, and the kernel around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import gcd, prod

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import width
from mmaprobe.toolchain.fragments import code_type
from mmaprobe.toolchain.nvidia.assembly import Assembly
from mmaprobe.toolchain.nvidia.shared_matrices import TEMPLATE as SHARED_TEMPLATE
from mmaprobe.toolchain.source import Source, device_only, heading, template

TEMPLATE = "cuda/wmma.cuh"
OPERANDS = ("a", "b", "c", "d")
WARPS = 4
"""Warps of a CTA."""
ALIGNMENT = 32
"""Bytes on which a matrix starts: the largest fragment that a lane may have of one line."""
LINE = 16
"""Bytes that a line's pitch is a multiple of, beside the fragment's."""


@dataclass(frozen=True)
class Staged:
    """One matrix in a warp's shared memory: lines from ``start`` on, ``stride`` elements apart.

    ``by_row``: its rows are contiguous, else its columns.  A lane's fragment has ``registers``.
    Source: PTX ISA 9.1, matrix fragments for WMMA (f16 A and B are held twice), matrix storage for WMMA: every line
    starts on a multiple of the fragment's bytes; elements below a byte are packed, the first lowest.
    """

    operand: str
    fmt: str
    rows: int
    columns: int
    by_row: bool
    start: int

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return width(self.fmt)

    @property
    def registers(self) -> int:
        """Registers of a lane, of 32 bits (of f64 of 64)."""
        if self.fmt == "f16" and self.operand in ("a", "b"):
            return 8
        return max(self.rows * self.columns * self.bits // (32 * max(self.bits, 32)), 1)

    @property
    def stride(self) -> int:
        """Elements from line to line."""
        pitch = max(self.registers * max(self.bits, 32) // 8, LINE)
        length = (self.columns if self.by_row else self.rows) * self.bits // 8
        return -(-length // pitch) * pitch * 8 // self.bits

    @property
    def end(self) -> int:
        """The byte behind the matrix, on which another may start."""
        count = (self.rows if self.by_row else self.columns) * self.stride * self.bits // 8
        return self.start + -(-count // ALIGNMENT) * ALIGNMENT


def staged(instruction: Instruction) -> dict[str, Staged]:
    """A, B, C and D one behind the other; A and B in the order that the opcode names, C and D by rows."""
    found = re.search(r"\.(row|col)\.(row|col)\.", instruction.opcode)
    assert found, f"{instruction.opcode} names no layouts"
    by_row = {"a": found[1] == "row", "b": found[2] == "row"}
    m, n, k = instruction.m, instruction.n, instruction.k
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}
    out: dict[str, Staged] = {}
    start = 0
    for name in OPERANDS:
        out[name] = Staged(name, instruction.formats()[name].name, *shapes[name], by_row.get(name, True), start)
        start = out[name].end
    return out


def struct(instruction: Instruction, of: Staged) -> str:
    """The struct of a matrix: a line is a row of A, C and D, a column of B; k runs along it."""
    down = of.operand == "b"
    lines, depth = (of.columns, of.rows) if down else (of.rows, of.columns)
    array = f"k * {of.columns} + line" if down else f"line * {of.columns} + k"
    along_k, cell = of.by_row != down, 8 // gcd(of.bits, 8)
    place = f"line * {of.stride} + k" if along_k else f"k * {of.stride} + line"
    return "\n".join(
        [
            f"struct Matrix{of.operand.upper()} {{",
            f"  using Code = {code_type(instruction.formats()[of.operand])};",
            f"  static constexpr int lines = {lines}, depth = {depth}, bits = {of.bits}, cell = {cell},",
            f"      elements = {prod((lines, depth))}, start = {of.start};",
            f"  static constexpr bool along_k = {'false' if down else 'true'};",
            f"  static MMAPROBE_DEVICE int at(int line, int k) {{ return {array}; }}",
            f"  static MMAPROBE_DEVICE int address(int line, int k) {{ return ({place}) * {of.bits} / 8; }}",
            "};",
        ]
    )


def source(instruction: Instruction, architecture: str) -> Source:
    """The kernel of a wmma: a warp runs one item at a time."""
    matrices = staged(instruction)
    numbers = {"WARPS": WARPS, "ALIGNMENT": ALIGNMENT, "WARP_BYTES": matrices["d"].end}
    text = "\n\n".join(
        [
            heading(instruction, architecture),
            template("gpu/fragments.hpp"),
            template(SHARED_TEMPLATE),
            *(struct(instruction, one) for one in matrices.values()),
            "\n".join(f"constexpr int {name} = {value};" for name, value in numbers.items()),
            template(TEMPLATE),
            device_only(multiply(instruction, matrices)),
        ]
    )
    return Source(instruction.id, architecture, text, groups=WARPS)


REGISTERS = {"f64": "f64", "f32": "f32"}
"""PTX types of registers; the rest are words."""


def multiply(instruction: Instruction, matrices: dict[str, Staged]) -> str:
    """The function ``multiply``: A, B and C loaded, D = A B + C, D stored.

    Source: PTX ISA 9.1, wmma.load, wmma.mma (``d, a, b, c``), wmma.store.
    """
    asm = Assembly()
    shape = f"m{instruction.m}n{instruction.n}k{instruction.k}"
    declared, loads, store, names = [], [], "", {}
    for name, of in matrices.items():
        declared.append(f".reg .{REGISTERS.get(of.fmt, 'b32')} {name}<{of.registers}>;")
        names[name] = f"{{{', '.join(f'{name}{number}' for number in range(of.registers))}}}"
        place = f"[{asm.value('r', f'start + Matrix{name.upper()}::start')}]"
        order = f"sync.aligned.{'row' if of.by_row else 'col'}.{shape}.shared.{of.fmt}"
        if name == "d":
            store = f"wmma.store.d.{order} {place}, {names[name]}, {of.stride};"
        else:
            loads.append(f"wmma.load.{name}.{order} {names[name]}, {place}, {of.stride};")
    operation = f"{instruction.opcode} {', '.join(names[name] for name in ('d', 'a', 'b', 'c'))};"
    body = asm.statement(["{", *declared, *loads, operation, store, "}"], memory=True)
    return f"MMAPROBE_DEVICE void multiply(Word32 start) {{\n{body}\n}}"
