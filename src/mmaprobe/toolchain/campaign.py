"""The source of a fused campaign: generators, instruction, model and comparison for one datapath."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.toolchain import mma_sync, wgmma
from mmaprobe.toolchain.compiled import compiled_model
from mmaprobe.toolchain.engine import flattened
from mmaprobe.toolchain.fragments import CODES, METADATA_BITS, code_type
from mmaprobe.toolchain.matrices import ALIGNMENT
from mmaprobe.toolchain.source import Parts, Source, heading, template
from mmaprobe.toolchain.target import target_text

GENERATORS, TEMPLATE = "model/vectors.hpp", "cuda/campaign.cuh"
FUSED = {32: ("cuda/campaign_warp.cuh", "cuda/campaign_kernel.cuh"),
         128: ("cuda/campaign_warpgroup.cuh", "cuda/campaign_kernel.cuh")}  # fmt: skip
"""The fused kernel, by the threads of a group."""
STAGED = ("cuda/campaign_stages.cuh",)
WARPS = 4
MOST_SHARED = 64 << 10
"""Bytes of shared memory of a CTA at most; every GPU from sm_70 on has as many (CUDA C++ guide)."""
ITEM, LINE, ARRAYS = 8, 80, 160
"""Bytes of a decoded item and beside the items of a row or column, at most; of arrays' beginnings."""


def takes(instruction: Instruction) -> bool:
    """Whether there is a campaign for an instruction's family and shape."""
    family = instruction.opcode.partition(".")[0]
    return (
        family in ("mma", "wgmma", "wmma", "tcgen05")
        and instruction.blocks == 1
        and instruction.m % 2 == instruction.n % 2 == 0
    )


def campaign_source(
    instruction: Instruction, architecture: str, target: Sequence[int], program: Sequence[int]
) -> Source:
    """The campaign of an instruction: one kernel for mma.sync and wgmma whose tiles fit shared memory, else in stages.

    ``target``: what the generators must know of it (``generators.space.Target.packed``); ``program``: the
    datapath (``models.program``).
    """
    parts = _parts(instruction, architecture)
    if parts is not None:
        memory = _memory(instruction, parts)
        each = parts.matrices + memory
        slack = ALIGNMENT if parts.matrices else 0  # nobody says where dynamic shared memory begins
        groups = min((MOST_SHARED - slack) // each, 1 if parts.threads > 32 else WARPS)
        shared = groups * each + slack
        if groups:
            ends = FUSED[parts.threads]
            text = _text(instruction, architecture, target, program, parts, (groups, memory), ends)
            return Source(
                instruction.id, architecture, text, threads=parts.threads, groups=groups, items=parts.items,
                shared=shared, campaign="fused",
            )  # fmt: skip
    alone = Parts(template("gpu/fragments.hpp"), "")
    text = _text(instruction, architecture, target, program, alone, (WARPS, 0), STAGED)
    return Source(instruction.id, architecture, text, groups=WARPS, campaign="staged")


def _text(
    instruction: Instruction, architecture: str, target: Sequence[int], program: Sequence[int], parts: Parts,
    sizes: tuple[int, int], ends: Sequence[str],
) -> str:  # fmt: skip
    seen: set[str] = set()
    return "\n\n".join(
        [
            heading(instruction, architecture),
            parts.movement,
            flattened(GENERATORS, seen),
            target_text(target),
            compiled_model(program, instruction.chunk, seen),
            _shape(instruction, parts, *sizes),
            *(flattened(name, seen) for name in (TEMPLATE, *ends)),
            parts.multiply,
        ]
    )


def _parts(instruction: Instruction, architecture: str) -> Parts | None:
    """What moves the operands of an instruction, and itself; None where it takes a kernel of its own."""
    families = {"mma": mma_sync.parts, "wgmma": wgmma.parts}
    family = families.get(instruction.opcode.partition(".")[0])
    return None if family is None else family(instruction, architecture)


def _sizes(instruction: Instruction) -> dict[str, int]:
    scales = instruction.k // instruction.scale_size if instruction.scale_size else 0
    return {
        "m": instruction.m,
        "n": instruction.n,
        "k": instruction.k,
        "live": instruction.selected,
        "chunks": instruction.k // instruction.chunk if instruction.chunk else 0,
        "scales": scales,
        "side": max(instruction.m, instruction.n),
    }


def _memory(instruction: Instruction, parts: Parts) -> int:
    """Bytes of a group's ``Memory`` in campaign.cuh at most, a multiple of 16."""
    size, formats = _sizes(instruction), instruction.formats()
    item = {name: fmt.dtype.itemsize for name, fmt in formats.items()}
    m, n, k, live = size["m"], size["n"], size["k"], size["live"]
    decoded = m * ((ITEM + bool(size["chunks"])) * live + LINE) + n * (ITEM * k + LINE)
    codes = m * live * item["a"] + k * n * item["b"] + m * size["chunks"] + (m + n) * size["scales"]
    results = m * n * max(item["d"], item.get("c", 1)) + size["side"] * item.get("c", 1)
    return -(-parts.items * (decoded + codes + results) // 16) * 16 + ARRAYS


def _shape(instruction: Instruction, parts: Parts, groups: int, memory: int) -> str:
    formats = instruction.formats()
    numbers = {
        **_sizes(instruction), "tiles": parts.items, "threads": parts.threads, "groups": groups,
        "matrices": parts.matrices, "bytes": parts.matrices + memory,
    }  # fmt: skip
    types = {"A": "a", "B": "b", "C": "c", "D": "d", "Scale": "scale_a"}
    lines = [f"  static constexpr int {name} = {value};" for name, value in numbers.items()]
    lines.append(f"  static constexpr bool has_c = {'true' if 'c' in formats else 'false'};")
    for name, operand in types.items():
        lines.append(f"  using {name} = {code_type(formats[operand]) if operand in formats else CODES[METADATA_BITS]};")
    return "struct Shape {\n" + "\n".join(lines) + "\n};"
