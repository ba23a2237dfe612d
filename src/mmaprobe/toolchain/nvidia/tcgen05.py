"""``tcgen05.mma``: its operands in shared and in tensor memory, its descriptors, and the instruction itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mmaprobe.catalog.architectures import every
from mmaprobe.catalog.descriptors import descriptor
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import layout, operands
from mmaprobe.catalog.shared_memory import SharedMatrix
from mmaprobe.toolchain.fragments import structs
from mmaprobe.toolchain.nvidia.assembly import Assembly
from mmaprobe.toolchain.nvidia.shared_matrices import ALIGNMENT, MATRICES, absent_matrix, matrix_struct, placed
from mmaprobe.toolchain.nvidia.shared_matrices import TEMPLATE as SHARED_TEMPLATE
from mmaprobe.toolchain.source import Source, device_only, heading, template

TEMPLATE = "cuda/tcgen05.cuh"
THREADS = 128
"""Threads of a CTA: a warpgroup, whose warps reach all lanes of tensor memory (PTX ISA)."""
COLUMNS = 512
"""Columns of tensor memory; they are allocated in powers of two from 32 on (PTX ISA)."""
SHARED_MEMORY = 228 * 1024
"""Bytes of shared memory of a multiprocessor (CUDA programming guide, 10.0 to 11.0; of sm_107a the same is assumed)."""
APART = 16
"""Columns whose multiples operands in tensor memory start at (CuTe wants 4 for metadata)."""


def primed(instruction: Instruction) -> bool:
    """Whether an instruction uses what a collector holds, so that the kernel runs another first, which fills it."""
    return bool(re.search(r"^tcgen05\..*::(last)?use\b", instruction.opcode))


@dataclass(frozen=True)
class Placement:
    """Where the operands of one instruction go: matrices in shared memory, fragments in tensor memory."""

    instruction: Instruction
    architecture: str
    matrices: dict[str, SharedMatrix]
    fragments: dict[str, Fragment]

    @property
    def ctas(self) -> int:
        """CTAs that run one item together."""
        return 2 if "cta_group::2" in self.instruction.opcode else 1

    def starts(self) -> dict[str, int]:
        """The byte in shared memory at which each matrix starts, and the end of the last."""
        found, at = {}, 0
        for name in MATRICES:
            found[name] = at
            size = self.matrices[name].bytes if name in self.matrices else 0
            at += -(-size // ALIGNMENT) * ALIGNMENT
        return {**found, "end": at}

    def columns(self) -> dict[str, int]:
        """The column in tensor memory at which each operand starts, C where D does, and how many to allocate.

        All of them where a collector is filled first, so that no other CTA of the multiprocessor empties it.
        """
        found, at = {}, 0
        for name in ("d", "a", "scale_a", "scale_b", "metadata"):
            found[name] = at
            size = self.fragments[name].registers if name in self.fragments else 0
            at += -(-size // APART) * APART
        return {**found, "end": COLUMNS if primed(self.instruction) else max(32, 1 << (at - 1).bit_length())}

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a CTA; the kernel aligns the start of the matrices.

        So many that a multiprocessor holds no more CTAs than its tensor memory has columns for: then no allocation
        waits for another CTA, and two pairs never for each other.
        """
        resident = COLUMNS // self.columns()["end"]
        return max(self.starts()["end"] + ALIGNMENT, SHARED_MEMORY // (resident + 1))


def plan(instruction: Instruction, architecture: str) -> Placement:
    """The plan of an instruction; UsageError where a layout of it is open, or no descriptor describes it."""
    in_tensor_memory = instruction.modifier.get("a") == "tmem"
    shared = [name for name in MATRICES if name == "b" or not in_tensor_memory]
    matrices = {name: placed(instruction, name) for name in shared}
    rest = [name for name in operands(instruction) if name not in shared]
    return Placement(
        instruction, architecture, matrices, {name: layout(instruction, architecture, name) for name in rest}
    )


def source(instruction: Instruction, architecture: str) -> Source:
    """The kernel of an instruction."""
    made = plan(instruction, architecture)
    text = "\n\n".join(
        [
            heading(instruction, architecture),
            template("gpu/fragments.hpp"),
            template(SHARED_TEMPLATE),
            structs(instruction, made.fragments),
            *(_matrix(made, name) for name in MATRICES),
            _constants(made),
            template(TEMPLATE),
            device_only(multiply(made)),
        ]
    )
    return Source(instruction.id, architecture, text, threads=THREADS, groups=1, cluster=made.ctas, shared=made.shared)


def _matrix(made: Placement, name: str) -> str:
    if name not in made.matrices:
        return absent_matrix(name)
    return matrix_struct(made.instruction, name, made.matrices[name], descriptor("tcgen05.matrix"))


def _constants(made: Placement) -> str:
    starts, columns = made.starts(), made.columns()
    signalled = ".multicast::cluster.b64 [%0], %1" if made.ctas > 1 else ".b64 [%0]"
    cluster = f"__cluster_dims__({made.ctas}, 1, 1)" if made.ctas > 1 else ""
    return "\n".join(
        [
            f'#define MMAPROBE_SIGNALLED "{signalled}"',
            f'#define MMAPROBE_GROUP "cta_group::{made.ctas}"',
            f"#define MMAPROBE_CLUSTER {cluster}",
            f"constexpr int CTAS = {made.ctas}, ALIGNMENT = {ALIGNMENT};",
            f"constexpr int SHARED_A = {starts['a']}, SHARED_B = {starts['b']}, SHARED_BYTES = {starts['end']};",
            *(f"constexpr int COLUMN_{name.upper()} = {at};" for name, at in columns.items() if name != "end"),
            f"constexpr int COLUMNS = {columns['end']};",
            f"constexpr Word32 INSTRUCTION = {instruction_descriptor(made.instruction, made.architecture):#x};",
            f"constexpr bool PRIMED = {str(primed(made.instruction)).lower()};",
        ]
    )


def instruction_descriptor(instruction: Instruction, architecture: str) -> int:
    """The descriptor of shape, types and modifiers (PTX ISA 9.4, instruction descriptor).

    Selector and scale ids are 0, the first choice of their layouts; the shift of ``.ws`` is 0.
    """
    made, given = instruction, instruction.modifier
    fields: dict[str, int | str] = {"a": made.a, "b": made.b, "M": made.m, "N": made.n, "sparse": int(bool(made.chunk))}
    flags = ["neg_a", "neg_b"] if "kind::mxf4" in made.opcode else ["neg_a", "neg_b", "trans_a", "trans_b"]
    fields |= {name: int(name in given) for name in flags}
    doubled = int(made.selected == 64)  # of 8-bit places; 32 is the ordinary K
    if not made.scale:
        saturate = int("saturate" in given)
        return descriptor("tcgen05.instruction").encode(**fields, d=made.d, saturate=saturate, k64=doubled)
    fields["scale"] = made.scale
    if "kind::mxf8f6f4" in made.opcode:
        return descriptor("tcgen05.instruction.mxf8f6f4").encode(**fields, k64=doubled)
    size = {64: 0, 96: 1, 128: 2}[made.selected]
    later = every().among(architecture, ["sm_107a"])
    fields |= {"k_low": size & 1, "k_high": size >> 1, "sparsity_version": int(later)}
    return descriptor("tcgen05.instruction.mxf4").encode(**fields)


def multiply(made: Placement) -> str:
    """``multiply`` and, where a collector is used, ``prime``, which fills it and leaves D undefined."""
    opcode = re.sub(r"\.m\d+n\d+k\d+\..*", "", made.instruction.opcode)
    text = [_function("multiply", made, opcode, int(made.instruction.c is not None))]
    if primed(made.instruction):
        text.append(_function("prime", made, re.sub(r"::(last)?use\b", "::fill", opcode), 0))
    else:
        text.append("MMAPROBE_DEVICE void prime(const Issue&) {}")
    return "\n\n".join(text)


def _function(name: str, made: Placement, opcode: str, enable: int) -> str:
    """One function; operands in the order of the PTX text.

    ``[d], a | [a], b, [metadata], instruction, [scale_a], [scale_b], {disabled lanes}, enable_input_d, scale_input_d,
    zero_column_mask``.  No lane is disabled and no column zeroed: which ones is no operand of a batch.
    """
    asm, given = Assembly(), made.instruction.modifier

    def column(operand: str) -> str:
        return f"[{asm.value('r', f'of.tensor + COLUMN_{operand.upper()}')}]"

    parts = [column("d"), column("a") if "a" in made.fragments else asm.value("l", "of.a"), asm.value("l", "of.b")]
    parts += [column("metadata")] if "metadata" in made.fragments else []
    parts.append(asm.value("r", "INSTRUCTION"))
    parts += [column(scale) for scale in ("scale_a", "scale_b") if scale in made.fragments]
    if "disable_output_lane" in given:
        parts.append(f"{{{', '.join(asm.value('r', '0') for _ in range(4 * made.ctas))}}}")
    predicate = asm.value("r", str(enable))
    parts.append("enable")
    if "scale_input_d" in given:
        parts.append(given["scale_input_d"])
    if "zero_column_mask" in given:
        parts.append(asm.value("l", "0ull"))
    lines = [
        "{", ".reg .pred enable;", f"setp.ne.b32 enable, {predicate}, 0;", f"{opcode} {', '.join(parts)};", "}",
    ]  # fmt: skip
    return f"MMAPROBE_DEVICE void {name}(const Issue& of) {{\n{asm.statement(lines, memory=True)}\n}}"
