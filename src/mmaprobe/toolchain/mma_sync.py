"""``mma.sync``: its operands in the order of the PTX text, with the choices that the layouts name."""

from __future__ import annotations

from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.toolchain.assembly import Assembly

TEMPLATE = "cuda/mma_sync.cuh"


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
