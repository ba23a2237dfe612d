"""A matrix in shared memory as a C++ struct that the kernel templates take: ``csrc/cuda/shared.cuh`` has the rest."""

from __future__ import annotations

from math import gcd

from mmaprobe.catalog.descriptors import BitField, Descriptor
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.shared_memory import SharedMatrix, matrix
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.fragments import code_type

TEMPLATE = "cuda/shared.cuh"
MATRICES = {"a": "MatrixA", "b": "MatrixB"}
"""The struct of each operand."""
ALIGNMENT = 1024
"""Bytes on which the pattern of the widest swizzle starts: then the descriptor's base offset is 0."""
SWIZZLES = (128, 64, 32, 16)
"""Bytes of the swizzles of a matrix descriptor, the last of which is none (PTX ISA)."""
UNUSED_LBO = 16
"""What CuTe writes where a descriptor's leading dimension has no meaning."""


def placed(instruction: Instruction, operand: str) -> SharedMatrix:
    """Operand ``a`` or ``b`` in the widest swizzle whose atoms its contiguous bytes fill, so that no byte is idle.

    UsageError where they are not whole units of 16: no swizzle has such a matrix.
    """
    widest = matrix(instruction, operand)
    if widest.name == "mn_major_32b":
        return widest
    extent = widest.x_bits(mn=widest.mn, k=widest.k) // 8
    found = next((width for width in SWIZZLES if extent % width == 0), 0)
    if not found:
        axis = "K" if widest.name == "k_major" else "MN"
        raise UsageError(f"{instruction.id}: {operand} has {extent} bytes along {axis}; they must be a multiple of 16")
    return matrix(instruction, operand, found)


def constant_fields(of: SharedMatrix, descriptor: Descriptor) -> int:
    """The descriptor of a matrix at start address 0 (K-major and swizzled, its atoms lie side by side in one row)."""
    lbo = UNUSED_LBO if of.name == "k_major" and of.swizzle > SWIZZLES[-1] else of.lbo
    swizzle = "128_32" if of.name == "mn_major_32b" else of.swizzle
    return descriptor.encode(LBO=lbo, SBO=of.sbo, swizzle=swizzle)


def start_field(descriptor: Descriptor) -> str:
    """The start address's field as C in ``start``."""
    field: BitField = next(field for field in descriptor.fields if field.name == "start")
    return f"Word64(start % {1 << field.window}u / {field.unit}u) << {field.low}"


def matrix_struct(instruction: Instruction, operand: str, of: SharedMatrix, descriptor: Descriptor) -> str:
    """The struct of a matrix; its lines may be a part of those of the operand's array."""
    fmt = instruction.formats()[operand]
    elements = instruction.m * instruction.selected if operand == "a" else instruction.k * instruction.n
    stored = f"line * {instruction.selected} + k" if operand == "a" else f"k * {instruction.n} + line"
    cell = 8 // gcd(of.element_bits, 8)
    return "\n".join(
        [
            f"// {of.name}, swizzle {of.swizzle}: {of.source}",
            f"struct {MATRICES[operand]} {{",
            f"  using Code = {code_type(fmt)};",
            f"  static constexpr int lines = {of.mn}, depth = {of.k}, bits = {of.element_bits}, cell = {cell},",
            f"      bytes = {of.bytes}, elements = {elements};",
            f"  static constexpr bool along_k = {'true' if operand == 'a' else 'false'};",
            f"  static MMAPROBE_DEVICE int at(int line, int k) {{ return {stored}; }}",
            "  static MMAPROBE_DEVICE int address(int mn, int k) {",
            f"    const int x = ({of.x_bits.c}) / 8;",
            f"    return {of.c};",
            "  }",
            "  static MMAPROBE_DEVICE Word64 describe(Word32 start) {",
            f"    return {constant_fields(of, descriptor):#018x}ull | {start_field(descriptor)};",
            "  }",
            "};",
        ]
    )


def absent_matrix(operand: str) -> str:
    """The struct of an operand that does not lie in shared memory."""
    return f"using {MATRICES[operand]} = AbsentMatrix;"
