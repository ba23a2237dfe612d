"""The source of a fused campaign: generators, instruction, model and comparison for one datapath."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.toolchain.compiled import compiled_model
from mmaprobe.toolchain.fragments import CODES, METADATA_BITS, code_type
from mmaprobe.toolchain.generator_forms import domain_text
from mmaprobe.toolchain.source import Parts, Source, flattened, heading, template
from mmaprobe.toolchain.tools import WARPS
from mmaprobe.toolchain.vendors import family_of

GENERATORS, TEMPLATE = "model/vectors.hpp", "gpu/campaign.hpp"
MOST_SHARED = 64 << 10
"""Bytes of shared memory of a CTA at most; every GPU has as many (CUDA C++ guide; LLVM, AMDGPU usage)."""
ITEM = 8
"""Bytes of a decoded item at most."""
LINE = 80
"""Bytes beside the items of a row or column at most."""
ARRAYS = 160
"""Bytes that the beginnings of arrays are moved by at most."""


def takes(instruction: Instruction) -> bool:
    """Whether there is a campaign for an instruction's family and shape."""
    fits = instruction.m % 2 == instruction.n % 2 == 0 or instruction.lane_wise
    return fits and instruction.random is None and family_of(instruction) is not None


def campaign_source(
    instruction: Instruction, architecture: str, domain: Sequence[int], program: Sequence[int]
) -> Source:
    """The campaign of an instruction that is taken: one kernel where its family has one and a tile fits, else stages.

    ``domain``: what the generators must know of it (``generators.domain.Domain.packed``); ``program``: the
    datapath (``models.program``).
    """
    family = family_of(instruction)
    assert family is not None
    parts = None if family.parts is None else family.parts(instruction, architecture)
    if parts is not None:
        memory = _memory(instruction, parts)
        each = parts.matrices + memory
        groups = min((MOST_SHARED - parts.slack) // each, family.groups)  # dynamic memory begins anywhere
        if groups:
            text = _text(instruction, architecture, domain, program, parts, (groups, memory), family.fused)
            return Source(
                instruction.id, architecture, text, threads=parts.threads, groups=groups,
                items=parts.items * instruction.blocks, shared=(groups * each + parts.slack) * family.dynamic,
                campaign="fused",
            )  # fmt: skip
    threads = parts.threads if parts is not None and parts.threads < 128 else 32
    alone = Parts(template("gpu/fragments.hpp"), "", threads=threads)
    text = _text(instruction, architecture, domain, program, alone, (WARPS, 0), family.staged)
    return Source(instruction.id, architecture, text, threads=threads, groups=WARPS, campaign="staged")


def _text(
    instruction: Instruction, architecture: str, domain: Sequence[int], program: Sequence[int], parts: Parts,
    sizes: tuple[int, int], ends: Sequence[str],
) -> str:  # fmt: skip
    seen: set[str] = set()
    return "\n\n".join(
        [
            heading(instruction, architecture),
            parts.movement,
            flattened(GENERATORS, seen),
            domain_text(domain),
            compiled_model(program, instruction.chunk, seen, dots=not instruction.lane_wise),
            _shape(instruction, parts, *sizes),
            *(flattened(name, seen) for name in (TEMPLATE, *ends)),
            parts.multiply,
        ]
    )


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
    """Bytes of a group's ``Memory`` in campaign.hpp at most, a multiple of 16."""
    size, formats = _sizes(instruction), instruction.formats()
    item = {name: fmt.dtype.itemsize for name, fmt in formats.items()}
    m, n, k, live = size["m"], size["n"], size["k"], size["live"]
    decoded = m * ((ITEM + bool(size["chunks"])) * live + LINE) + n * (ITEM * k + LINE)
    codes = m * live * item["a"] + k * n * item["b"] + m * size["chunks"] + (m + n) * size["scales"]
    results = m * n * max(item["d"], item.get("c", 1)) + size["side"] * item.get("c", 1)
    return -(-parts.items * instruction.blocks * (decoded + codes + results) // 16) * 16 + ARRAYS


def _shape(instruction: Instruction, parts: Parts, groups: int, memory: int) -> str:
    formats = instruction.formats()
    numbers = {
        **_sizes(instruction), "tiles": parts.items * instruction.blocks, "blocks": instruction.blocks,
        "threads": parts.threads, "groups": groups, "matrices": parts.matrices, "bytes": parts.matrices + memory,
    }  # fmt: skip
    types = {"A": "a", "B": "b", "C": "c", "D": "d", "Scale": "scale_a"}
    lines = [f"  static constexpr int {name} = {value};" for name, value in numbers.items()]
    lines.append(f"  static constexpr bool has_c = {'true' if 'c' in formats else 'false'};")
    for name, operand in types.items():
        lines.append(f"  using {name} = {code_type(formats[operand]) if operand in formats else CODES[METADATA_BITS]};")
    return "struct Shape {\n" + "\n".join(lines) + "\n};"
