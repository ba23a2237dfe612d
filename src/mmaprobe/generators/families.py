"""Named families of vectors, their weights, and ``generate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mmaprobe import _native, formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError, near
from mmaprobe.generators import families_circuit, families_tile, reference
from mmaprobe.generators.domain import domain
from mmaprobe.generators.enumerations import ENUMERATED, NUMBERS, enumerated, enumeration
from mmaprobe.generators.random_bits import random_bits
from mmaprobe.native_module import agree
from mmaprobe.operands.batch import Batch

VERSIONS: dict[str, int] = {
    "uniform": 1, "clustered": 3, "cancel": 1, "ulp": 1, "tie": 1, "zlad": 1, "tiny": 1, "subnormals": 1,
    "extremes": 1, "conly": 1, "zeros": 1, "specials": 1,
    "codes": 1, "multiplier": 1, "carries": 1,
}  # fmt: skip
"""Every family with the version of its rule; a recipe names both.  The order numbers the families: append only."""
agree("generator_versions", [(name.upper(), version) for name, version in VERSIONS.items()])

KEPT: dict[str, tuple[int, ...]] = {"clustered": (1, 2)}
"""Earlier versions that recipes may name."""

TILE_VERSIONS: dict[str, int] = dict.fromkeys((*families_tile.TILE_FAMILIES, "codes"), 2)
"""Families that make whole tiles by a rule of their own, with its version: it makes tiles only, beside the version of
separate vectors (``generators.tiles``)."""
agree("tile_versions", [(name.upper(), TILE_VERSIONS[name]) for name in VERSIONS if name in TILE_VERSIONS])

FAMILIES: tuple[str, ...] = tuple(VERSIONS)

MIX: dict[str, int] = {
    "cancel": 19, "ulp": 14, "tie": 15, "clustered": 14, "zlad": 10, "subnormals": 9, "extremes": 5, "conly": 3,
    "zeros": 3, "tiny": 3, "specials": 5, "uniform": 3,
    "codes": 8, "multiplier": 8, "carries": 6,
}  # fmt: skip
"""Share of each family in a validation, in parts of their sum (a judgement that mutants must confirm)."""

MOST_LANES = 512
"""Lanes that the native generator has room for (``csrc/cpu/bindings/generators.cpp``); of more, the NumPy reference
makes the vectors."""

INTEGER_FAMILIES = ("uniform", "extremes", "specials")

STREAMED = ("uniform", "clustered")
"""What draws a and b apart from each other, so that every row of a tile and every column make such a vector."""

CIRCUIT_FAMILIES = tuple(families_circuit.CIRCUIT_FAMILIES)
"""What aims at one fault of a circuit, not at the rules that a datapath follows."""


def families_for(instruction: Instruction) -> tuple[str, ...]:
    """The families that make sense for an instruction.

    Integers know uniform bits, extremes and specials (boundary values mixed
    in); ``conly`` needs an operand C, ``cancel`` two terms, ``subnormals``
    operand formats that have them, ``codes`` pairs of codes that are few,
    ``multiplier`` floats of which they are many, ``carries`` two terms, of
    integers C.
    """
    t = domain(instruction)
    narrow = t.a.bits + t.b.bits <= families_circuit.NARROW
    if not t.a.is_float:
        return (*INTEGER_FAMILIES, *["codes"] * narrow, *["carries"] * t.c.present)
    missing = {"multiplier" if narrow else "codes"}
    if not t.c.is_float:
        missing.add("conly")
    if t.space.live + t.c.is_float < 2:
        missing |= {"cancel", "tie", "ulp", "carries"}
    if not (t.a.implicit and t.b.implicit):
        missing.add("subnormals")
    return tuple(name for name in FAMILIES if name not in missing)


def check_family(instruction: Instruction, family: str) -> None:
    """UsageError with the near names for a family that does not exist or does not fit the instruction."""
    if family in ENUMERATED:
        enumeration(instruction, family)
        return
    known = families_for(instruction)
    if family not in FAMILIES:
        raise UsageError(f"unknown generator family {family!r}{near(family, FAMILIES)}")
    if family not in known:
        raise UsageError(f"{instruction.id}: family {family!r} does not fit it; it has {', '.join(known)}")


def versions_of(family: str) -> tuple[int, ...]:
    """Every version of a family that this package makes, the present one last."""
    return (*KEPT.get(family, ()), (VERSIONS | ENUMERATED)[family])


def stream_number(family: str, version: int | None = None) -> int:
    """Counter word 3 of a family's random words: version in the upper half, number in the lower."""
    if family in ENUMERATED:
        return (version or ENUMERATED[family]) << 16 | NUMBERS[family]
    return (version or VERSIONS[family]) << 16 | FAMILIES.index(family)


def generate(
    instruction: Instruction, family: str, seed: int, start: int, count: int, version: int | None = None
) -> Batch:
    """Vectors ``start`` to ``start + count - 1`` of a family or of an enumeration (``enumerations``), in one-vector
    shapes: a (n, K or K/2), b (n, K), c (n,), scale_* (n, K/S), metadata (n, K/chunk), random (n,).

    A pure function of its arguments: vector i depends on (instruction, family
    and its version, seed, i) alone; the version is the present one where none
    is named.  Raises UsageError for an unknown family or version, a seed or
    index outside 64 bits or beyond the end of an enumeration, or a negative count.
    """
    check_family(instruction, family)
    if version not in (None, *versions_of(family)):
        known = ", ".join(map(str, versions_of(family)))
        raise UsageError(f"{family} has no version {version}; this package makes {known}")
    if not 0 <= seed < 1 << 64 or not 0 <= start <= start + count <= 1 << 64:
        raise UsageError(f"seed {seed} and vectors {start}+{count} must fit 64 bits without sign")
    if family in ENUMERATED:
        made = enumerated(instruction, family, start, count)
    elif domain(instruction).space.k > MOST_LANES:
        made = reference_batch(instruction, family, seed, start, count, version)
    else:
        made = native_batch(instruction, family, seed, start, count, "", version)
    if instruction.random is None:
        return made
    fmt, stream = formats.get(instruction.random), stream_number(family, version)
    return replace(made, random=random_bits(fmt, seed, stream, start, count))


def native_batch(
    instruction: Instruction, family: str, seed: int, start: int, count: int, build: str = "",
    version: int | None = None,
) -> Batch:  # fmt: skip
    """``generate`` by the native module, GIL released; ``build`` names one instruction set's code, else the best."""
    t = domain(instruction)
    arrays = {name: np.empty(shape, dtype) for name, (shape, dtype) in vector_shapes(instruction, count).items()}
    outputs = [arrays.get(name) for name in ("a", "b", "c", "scale_a", "scale_b", "metadata")]
    stream = stream_number(family, version)
    _native.generate(t.packed(), FAMILIES.index(family), stream, seed, start, count, outputs, build)
    return Batch(**arrays)


def vector_shapes(instruction: Instruction, count: int) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and type of each operand of ``count`` separate vectors, but for random bits."""
    s = domain(instruction).space
    items: dict[str, tuple[int, ...]] = {
        "a": (s.live,),
        "b": (s.k,),
        "c": (),
        "scale_a": (s.groups,),
        "scale_b": (s.groups,),
    }
    found = {role: ((count, *items[role]), f.dtype) for role, f in instruction.formats().items() if role in items}
    if s.chunk:
        found["metadata"] = ((count, s.k // s.chunk), np.dtype(np.uint8))
    return found


def reference_batch(
    instruction: Instruction, family: str, seed: int, start: int, count: int, version: int | None = None
) -> Batch:
    """``generate`` by NumPy alone, in pieces that keep memory small."""
    t, stream = domain(instruction), stream_number(family, version)
    size = max(1, (1 << 17) // instruction.k)
    pieces = [
        reference.generate_codes(t, family, stream, seed, at, min(size, start + count - at))
        for at in range(start, max(start + count, start + 1), size)
    ]
    dtypes = {name: dtype for name, (_, dtype) in vector_shapes(instruction, count).items()}
    return Batch(
        **{name: np.concatenate([piece[name].astype(dtype) for piece in pieces]) for name, dtype in dtypes.items()}
    )


def plan(
    instruction: Instruction, vectors: int, mix: dict[str, int] | None = None, first: int = 0
) -> list[tuple[str, int, int]]:
    """(family, start, count) dividing ``vectors`` among the instruction's families by weight, at least one each.

    Each family numbers its own vectors, from 0 on.  The counts add up to ``vectors`` (or to one each, where fewer than
    the families are asked for).  ``first``: those that follow so many vectors of the mix.
    """
    weights = mix or MIX
    for name in mix or ():
        check_family(instruction, name)
    names = [name for name in families_for(instruction) if weights.get(name)]
    total = sum(weights[name] for name in names)
    heaviest = max(names, key=lambda name: weights[name])

    def counts(of: int) -> dict[str, int]:
        found = {name: max(1, of * weights[name] // total) for name in names}
        found[heaviest] = max(1, found[heaviest] + of - sum(found.values()))
        return found

    before = counts(first) if first else dict.fromkeys(names, 0)
    shares = [(name, before[name], count - before[name]) for name, count in counts(first + vectors).items()]
    return [share for share in shares if share[2] > 0]
