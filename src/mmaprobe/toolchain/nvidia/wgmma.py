"""``wgmma``: its matrices in shared memory, its operands in the order of the PTX text, and the kernel around them."""

from __future__ import annotations

from mmaprobe.catalog.descriptors import descriptor
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import layout, operands
from mmaprobe.toolchain.fragments import structs
from mmaprobe.toolchain.nvidia.assembly import Assembly
from mmaprobe.toolchain.nvidia.shared_matrices import ALIGNMENT, MATRICES, absent_matrix, matrix_struct, placed
from mmaprobe.toolchain.nvidia.shared_matrices import TEMPLATE as SHARED_TEMPLATE
from mmaprobe.toolchain.source import Parts, Source, device_only, heading, template

TEMPLATE = "cuda/wgmma.cuh"
BATCH = "cuda/wgmma_batch.cuh"
THREADS = 128
"""Threads of a warpgroup (PTX ISA)."""
WITH_C = ("setp.ne.b32 scale_d, 1, 0;",)
WITHOUT_C = (".reg .b32 none; mov.b32 none, %%ctaid.z;", "setp.ne.b32 scale_d, none, 0;")
"""Grids have no third dimension, which the compiler does not know: it cannot replace the accumulator by zero."""


def parts(instruction: Instruction, architecture: str) -> Parts:
    """What moves a warpgroup's items, and the instruction."""
    shared = [name for name in MATRICES if name == "b" or instruction.modifier.get("a") != "regs"]
    held = [name for name in operands(instruction) if name not in shared]
    fragments = {name: layout(instruction, architecture, name) for name in held}
    placements = {name: placed(instruction, name) for name in shared}
    matrices = [
        matrix_struct(instruction, name, placements[name], descriptor("wgmma.matrix"))
        if name in shared
        else absent_matrix(name)
        for name in MATRICES
    ]
    movement = "\n\n".join(
        [
            template("gpu/fragments.hpp"),
            template(SHARED_TEMPLATE),
            structs(instruction, fragments),
            *matrices,
            f"constexpr int ALIGNMENT = {ALIGNMENT};",
            template(TEMPLATE),
        ]
    )
    held_bytes = sum(-(-each.bytes // ALIGNMENT) * ALIGNMENT for each in placements.values())
    multiplied = device_only(multiply(instruction, fragments))
    return Parts(movement, multiplied, threads=THREADS, matrices=held_bytes, slack=ALIGNMENT)


def source(instruction: Instruction, architecture: str) -> Source:
    """The kernel of a wgmma: one warpgroup a CTA, one item at a time."""
    made = parts(instruction, architecture)
    text = "\n\n".join([heading(instruction, architecture), made.movement, template(BATCH), made.multiply])
    return Source(instruction.id, architecture, text, threads=THREADS, groups=1)


def multiply(instruction: Instruction, fragments: dict[str, Fragment]) -> str:
    """The function ``multiply``: D = scale-d C + A B, fenced before and waited for.

    Source: PTX ISA 9.1, wgmma.mma_async: ``d, a | a-desc, b-desc[, metadata, selector], scale-d[, imm-scale-a,
    imm-scale-b][, imm-trans-a][, imm-trans-b]``; the sequence: asynchronous warpgroup level matrix instructions.
    """
    asm, given = Assembly(), instruction.modifier
    parts = [asm.results("d", fragments["d"].registers, instruction.d, updated=True)]
    parts.append(asm.operands("a", fragments["a"].registers) if "a" in fragments else asm.value("l", "a"))
    parts.append(asm.value("l", "b"))
    if "metadata" in fragments:
        chosen = dict(fragments["metadata"].choices)["selector"][0]
        parts += [asm.operands("metadata", 1)[1:-1], str(chosen)]
    parts += ["scale_d", *immediates(instruction, "a" in fragments)]
    body = asm.statement(
        [
            "{ .reg .pred scale_d;",
            *(WITHOUT_C if given.get("scale_d") == "0" else WITH_C),
            "wgmma.fence.sync.aligned;",
            f"{instruction.opcode} {', '.join(parts)};",
            "wgmma.commit_group.sync.aligned;",
            "wgmma.wait_group.sync.aligned 0; }",
        ],
        memory=True,
    )
    return f"MMAPROBE_DEVICE void multiply(Registers& of, Word64 a, Word64 b) {{\n  (void)a;\n{body}\n}}"


def immediates(instruction: Instruction, a_in_registers: bool) -> list[str]:
    """Signs of A and B (floating formats), then transposition (16-bit formats; of A in shared memory only)."""
    made, given = instruction.formats()["a"], instruction.modifier
    signs = ["-1" if name in given else "1" for name in ("neg_a", "neg_b")]
    turned = ["1" if name in given else "0" for name in ("trans_a", "trans_b")]
    if made.kind != "float":
        return []
    return signs + (turned[a_in_registers:] if made.bits == 16 else [])
