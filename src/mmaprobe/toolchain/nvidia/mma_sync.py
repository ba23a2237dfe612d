"""``mma.sync``: its operands in the order of the PTX text, with the choices that the layouts name."""

from __future__ import annotations

from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import layout, operands
from mmaprobe.toolchain.fragments import BATCH, movement
from mmaprobe.toolchain.nvidia.assembly import Assembly
from mmaprobe.toolchain.source import Parts, Source, device_only, heading, template

TEMPLATE = "cuda/warp_batch.cuh"


def parts(instruction: Instruction, architecture: str) -> Parts:
    """What moves a warp's items, and the instruction."""
    fragments = {name: layout(instruction, architecture, name) for name in operands(instruction)}
    items = dict(fragments["d"].axes).get("product", 1)
    return Parts(movement(instruction, fragments, items), device_only(multiply(instruction, fragments)), items=items)


def source(instruction: Instruction, architecture: str) -> Source:
    """The kernel of an mma.sync: a warp runs one item at a time, of Volta's four."""
    made = parts(instruction, architecture)
    text = "\n\n".join(
        [heading(instruction, architecture), made.movement, template(BATCH), template(TEMPLATE), made.multiply]
    )
    return Source(instruction.id, architecture, text, items=made.items)


def multiply(instruction: Instruction, fragments: dict[str, Fragment]) -> str:
    """The function ``multiply``: D = A B + C as one instruction on the registers of a warp.

    Source: PTX ISA 9.1, mma: ``d, a, b, c[, e, selector][, scale_a, {byte_a, thread_a}, scale_b, {byte_b, thread_b}]``.
    """
    asm, made = Assembly(), instruction
    parts = [asm.results("d", fragments["d"].registers, made.d)]
    for name, fmt in (("a", made.a), ("b", made.b), ("c", made.c or "")):
        parts.append(asm.operands(name, fragments[name].registers, fmt if fmt != "f32" or name == "c" else ""))
    if "metadata" in fragments:
        parts += [asm.operands("metadata", 1)[1:-1], _choice(fragments["metadata"], "selector")]
    for name in ("scale_a", "scale_b"):
        if name in fragments:
            ids = ", ".join(_choice(fragments[name], choice) for choice in ("byte_id", "thread_id"))
            parts += [asm.operands(name, 1), f"{{{ids}}}"]
    body = asm.statement([f"{made.opcode} {', '.join(parts)};"])
    return f"MMAPROBE_DEVICE void multiply(Registers& of) {{\n{body}\n}}"


def _choice(fragment: Fragment, name: str) -> str:
    return str(dict(fragment.choices)[name][0])
