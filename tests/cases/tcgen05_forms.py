"""Representatives of ``tcgen05.mma``: every kind and pair of formats, dense and sparse, shapes and places in turn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.lookup import architectures, catalog, forms
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.nvidia.tcgen05 import plan

ARCHITECTURES = tuple(name for name in architectures() if name.startswith("sm_1") and forms(name, "tcgen05.*"))
SHAPES = [
    (1, 64, 8),
    (2, 256, 32),
    (1, 128, 16),
    (2, 128, 64),
    (1, 64, 256),
    (2, 256, 224),
    (1, 128, 208),
    (2, 128, 32),
]
WS_SHAPES = [(1, 32, 64), (1, 64, 128), (1, 128, 256), (1, 128, 64), (1, 32, 128), (1, 64, 256)]
SCALED_SHAPES = [(1, 128, 8), (2, 256, 32), (1, 128, 104), (2, 256, 224), (1, 128, 256), (2, 256, 16)]
PLACES: list[dict[str, str]] = [
    {}, {"a": "tmem"}, {"trans_a": ""}, {"trans_b": ""}, {"trans_a": "", "trans_b": ""}, {"a": "tmem", "trans_b": ""},
]  # fmt: skip
PAIRS = [("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), ("e4m3", "e5m2"), ("s8", "u8"), ("ti16", "ti16"),
         ("e4m3", "e4m3"), ("e2m1", "e2m1")]  # fmt: skip
TURNS = 3
"""Forms of so many shapes and places of the pairs of formats above, of all others one."""


def spelled(first: Instruction, shape: tuple[int, int, int], modifiers: dict[str, str]) -> str:
    """The id of a form in another shape (CTAs, M, N) with other modifiers."""
    ctas, m, n = shape
    opcode = first.opcode.replace("cta_group::1", f"cta_group::{ctas}")
    return spell(re.sub(r"\.m\d+n\d+k", f".m{m}n{n}k", opcode), tuple(modifiers.items()))


def known(name: str, architecture: str) -> Instruction | None:
    """The instruction where the architecture has it."""
    entries = [entry for entry in catalog().named(name) if architecture in entry.ways]
    return entries[0].instruction if entries else None


def renders(made: Instruction, architecture: str) -> bool:
    """Whether no layout of it is open."""
    try:
        plan(made, architecture)
    except UsageError:
        return False
    return True


def firsts() -> list[tuple[Instruction, str]]:
    """One form of each kind, formats, sparsity and K, with an architecture; collectors and scale spellings aside."""
    found: dict[tuple[object, ...], tuple[Instruction, str]] = {}
    for name in ARCHITECTURES:
        for form in forms(name, "tcgen05.*"):
            made = form.first
            kind = re.sub(r"\.collector.*|\.m\d+n.*|\.(scale_vec::|block[13]).*", "", made.opcode)
            result = made.d if (made.a, made.b) in PAIRS else ""
            found.setdefault((kind, made.a, made.b, result, made.k, made.scale, made.scale_size), (made, name))
    return list(found.values())


def spellings(first: Instruction, start: int) -> Iterator[str]:
    """The ids of a form in places and shapes that both move on from a running number; of some without C."""
    shapes = WS_SHAPES if ".ws" in first.opcode else SCALED_SHAPES if first.scale else SHAPES
    without_c = {"enable_input_d": "0"} if start % 11 == 0 else {}
    for i in range(start, start + len(PLACES) * len(shapes)):
        shape = shapes[(i + i // len(PLACES)) % len(shapes)]
        yield spelled(first, shape, PLACES[i % len(PLACES)] | without_c)


def representatives() -> dict[str, tuple[Instruction, str, int]]:
    """By name a form, an architecture and a running number: of each form one, of those of ``PAIRS`` several.

    Left out are forms that are open in every shape.
    """
    found = {}
    for number, (first, architecture) in enumerate(firsts()):
        whole = known(spelled(first, (1, 128, 64), {}), architecture)
        if whole and renders(whole, architecture):
            for turn in range(TURNS if (first.a, first.b) in PAIRS else 1):
                found[f"{first.id}-{turn}"] = (first, architecture, 5 * number + 13 * turn)
    return found


def chosen(first: Instruction, architecture: str, start: int) -> Instruction:
    """The form in the first place and shape, from a running number on, that the catalog knows and that is not open."""
    options = (known(name, architecture) for name in spellings(first, start))
    return next(one for one in options if one and renders(one, architecture))
