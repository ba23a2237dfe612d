"""Enumerations: vectors that are counted through, each once, until there are no more of them.

A family of ``families`` has vectors without end; an enumeration has ``size`` of them, and its vector ``i`` is the same
whatever the seed (random bits of a result aside, which are no part of what is counted).

- ``pairs``: every pair of codes of a and b, where these have 16 bits in all at most, alone in every lane, all other
  lanes zeros.  Where A is sparse, each stored element meets every lane of B that its metadata can name.  Scales are 1.
- ``scales``: every pair of codes of the scales of A and B of each scale block, seen by one of its lanes after the
  other, which alone multiplies two numbers from 1 to 2 whose fraction bits are all ones.
- ``selections``: every legal item of metadata of each chunk, seen by each element stored for it, which alone is one,
  while the chunk's lanes of B hold numbers of which no two are alike.

The first two with every one of ``ADDENDS`` as C, of which none hides a bit of a product that the result could hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import kept_lanes, legal_items
from mmaprobe.errors import UsageError
from mmaprobe.generators.domain import CodeLayout, Domain, domain
from mmaprobe.generators.families_circuit import NARROW
from mmaprobe.generators.operands import Codes, Ints, encode, mirrored
from mmaprobe.operands.batch import Batch

ENUMERATED: dict[str, int] = {"pairs": 1, "scales": 1, "selections": 1}
"""Every enumeration with the version of its rule; a recipe names both."""
NUMBERS = {name: 0x8000 + number for number, name in enumerate(ENUMERATED)}
"""Their numbers in the counter of random words, beyond those of families."""
ADDENDS = ("zero", "far below", "the opposite")
"""What C is by turns.  Of floats zero, the least positive number, and minus the product, cut to C's precision (of the
scales their powers of two); of integers zero, all ones (below the sign that an unsigned C lacks) and 0101..."""


@dataclass(frozen=True)
class Enumeration:
    """What is ``counted`` through: how many of it and in words, that which turns fastest first."""

    name: str
    counted: tuple[tuple[int, str], ...]

    @property
    def size(self) -> int:
        """Vectors in all."""
        return prod(count for count, _ in self.counted)

    def __str__(self) -> str:
        return " x ".join(f"{count:,} {words}" for count, words in self.counted)


def enumerations_of(made: Instruction) -> tuple[Enumeration, ...]:
    """The enumerations of an instruction; none where its operands are wide, dense and without scales."""
    t, found = domain(made), []
    addends = ((len(ADDENDS), "addends"),) if t.c.present else ()
    if _narrow(t):
        lanes = "stored elements with lanes of B" if made.chunk else "lanes"
        pairs = ((1 << (t.a.bits + t.b.bits), f"pairs of {made.a} and {made.b}"), (len(_meetings(made)), lanes))
        found.append(Enumeration("pairs", (*pairs, *addends)))
    if made.scale is not None:
        scales = ((1 << 2 * t.scale.bits, f"pairs of scales of {made.scale}"), (t.space.live, "lanes"))
        found.append(Enumeration("scales", (*scales, *addends)))
    if made.chunk:
        items, stored = len(legal_items(made.chunk)), made.chunk // 2
        counted = ((stored, "stored elements"), (items, "items of metadata"), (made.k // made.chunk, "chunks"))
        found.append(Enumeration("selections", counted))
    return tuple(found)


def enumeration(made: Instruction, name: str) -> Enumeration:
    """The one of this name; UsageError where the instruction has none."""
    every = {each.name: each for each in enumerations_of(made)}
    if name not in every:
        known = ", ".join(every) or "nothing"
        raise UsageError(f"{made.id}: no {name} of it are counted through; it has {known}")
    return every[name]


def left_out(made: Instruction) -> tuple[str, ...]:
    """What no enumeration of an instruction goes through, in words: of its own, beside several live lanes and other C,
    which none does."""
    t, found = domain(made), []
    if not _narrow(t):
        bits = formats.get(made.a).bits + formats.get(made.b).bits
        found.append(f"2^{bits} pairs of {made.a} and {made.b} in each of {t.space.live} lanes")
    if made.chunk:
        found.append("selections of several chunks together")
        found += ["kept lanes named in the other order"] * made.unordered
    if made.random is not None:
        found.append(f"random bits: {made.random} for each result")
    return tuple(found)


def enumerated(made: Instruction, name: str, start: int, count: int) -> Batch:
    """Vectors ``start`` to ``start + count - 1`` of an enumeration, in one-vector shapes, without random bits.

    UsageError for an enumeration that the instruction has not, and beyond its end.
    """
    whole = enumeration(made, name)
    if not 0 <= start <= start + count <= whole.size:
        raise UsageError(f"{made.id}: {name} has {whole.size:,} vectors, not {start:,} to {start + count - 1:,}")
    index = np.arange(start, start + count)
    turns = np.unravel_index(index, [size for size, _ in whole.counted], order="F")
    return RULES[name](made, *turns)


def _narrow(t: Domain) -> bool:
    return t.a.bits + t.b.bits <= NARROW


def _pairs(made: Instruction, pair: Ints, meeting: Ints, addend: Ints | int = 0) -> Batch:
    t = domain(made)
    stored, lane, item = np.array(_meetings(made)).T[:, meeting]
    quiet = _quiet(made, len(pair))
    _put(quiet, "a", stored, pair & ((1 << t.a.bits) - 1))
    _put(quiet, "b", lane, pair >> t.a.bits)
    if made.chunk:
        _put(quiet, "metadata", lane // made.chunk, item)
    if "c" in quiet:
        quiet["c"] = _addends(made)[addend, pair]
    return Batch(**quiet)


def _scales(made: Instruction, pair: Ints, stored: Ints, addend: Ints | int = 0) -> Batch:
    t = domain(made)
    quiet, group = _quiet(made, len(pair)), stored // t.space.group_lanes
    for role, at, f in (("a", stored, t.a), ("b", _default_lanes(made)[stored], t.b)):
        _put(quiet, role, at, _full(f))
    _put(quiet, "scale_a", group, pair & ((1 << t.scale.bits) - 1))
    _put(quiet, "scale_b", group, pair >> t.scale.bits)
    if "c" in quiet:
        quiet["c"] = _scaled_addends(made)[addend, pair]
    return Batch(**quiet)


def _selections(made: Instruction, stored: Ints, turn: Ints, chunk: Ints) -> Batch:
    t, quiet = domain(made), _quiet(made, len(stored))
    _put(quiet, "a", chunk * (made.chunk // 2) + stored, _one(t.a))
    for lane in range(made.chunk):
        unlike = (int(_one(t.b)) + (lane << t.b.padding)) & ((1 << t.b.bits) - 1)
        _put(quiet, "b", chunk * made.chunk + lane, unlike)
    _put(quiet, "metadata", chunk, np.array(legal_items(made.chunk))[turn])
    return Batch(**quiet)


def _one(f: CodeLayout) -> Codes:
    return encode(f, False, 0, 0) if f.is_float else np.asarray(1, np.uint64)


def _full(f: CodeLayout) -> Codes:
    """The largest number below 2."""
    return encode(f, False, 0, (1 << f.fraction) - 1) if f.is_float else np.asarray(1, np.uint64)


def _put(vectors: dict[str, NDArray[Any]], role: str, place: Ints, codes: Any) -> None:
    """One item of each vector."""
    vectors[role][np.arange(len(place)), place] = codes


def _quiet(made: Instruction, count: int) -> dict[str, NDArray[Any]]:
    """Vectors of zeros: scales 1, of every chunk the first selection."""
    t, operands = domain(made), made.formats()
    lengths = {"a": t.space.live, "b": t.space.k, "scale_a": t.space.groups, "scale_b": t.space.groups}
    made_of = {role: np.zeros((count, lengths[role]), f.dtype) for role, f in operands.items() if role in lengths}
    for role in made_of.keys() & {"scale_a", "scale_b"}:
        made_of[role][:] = encode(t.scale, False, 0, 0)
    if t.c.present:
        made_of["c"] = np.zeros(count, operands["c"].dtype)
    if made.chunk:
        made_of["metadata"] = np.full((count, made.k // made.chunk), legal_items(made.chunk)[0], np.uint8)
    return made_of


@lru_cache(maxsize=64)
def _meetings(made: Instruction) -> tuple[tuple[int, int, int], ...]:
    """(stored element, lane of B, item of metadata), one for every lane that an element can be multiplied with."""
    if not made.chunk:
        return tuple((lane, lane, 0) for lane in range(made.k))
    found: dict[tuple[int, int], int] = {}
    for item in legal_items(made.chunk):
        for stored, lane in enumerate(kept_lanes(made.chunk)[item].tolist()):
            found.setdefault((stored, lane), item)
    return tuple(
        (chunk * (made.chunk // 2) + stored, chunk * made.chunk + lane, item)
        for chunk in range(made.k // made.chunk) for (stored, lane), item in sorted(found.items())
    )  # fmt: skip


def _default_lanes(made: Instruction) -> Ints:
    """The lane of B that each stored element meets by the first selection of every chunk."""
    if not made.chunk:
        return np.arange(made.k)
    kept = kept_lanes(made.chunk)[legal_items(made.chunk)[0]].astype(np.int64)
    lanes: Ints = (np.arange(0, made.k, made.chunk)[:, None] + kept).reshape(-1)
    return lanes


@lru_cache(maxsize=16)
def _addends(made: Instruction) -> NDArray[Any]:
    """C of each of ``ADDENDS`` and pair of codes: (3, pairs)."""
    t = domain(made)
    pair = np.arange(1 << (t.a.bits + t.b.bits), dtype=np.uint64)
    a, b = pair & np.uint64((1 << t.a.bits) - 1), pair >> np.uint64(t.a.bits)
    return _three(made, mirrored(t, a, b, 0, 0) if t.c.is_float else a)


@lru_cache(maxsize=16)
def _scaled_addends(made: Instruction) -> NDArray[Any]:
    """The same of each pair of codes of scales."""
    t, fmt = domain(made), made.formats()["scale_a"]
    pair = np.arange(1 << 2 * t.scale.bits)
    said = formats.decode(fmt, np.arange(1 << t.scale.bits, dtype=fmt.dtype))
    power = said.exponent + np.maximum(formats.bit_length(said.significand), 1) - 1
    both = power[pair & ((1 << t.scale.bits) - 1)] + power[pair >> t.scale.bits]
    return _three(made, mirrored(t, _full(t.a), _full(t.b), both, 0))


def _three(made: Instruction, opposite: Codes) -> NDArray[Any]:
    c, dtype = domain(made).c, made.formats()["c"].dtype
    if c.is_float:
        second, third = encode(c, False, c.low, 0), opposite
    else:
        bits = (1 << c.bits) - 1
        second, third = np.asarray(bits if c.sign else bits >> 1, np.uint64), np.asarray(bits // 3, np.uint64)
    return np.stack([np.broadcast_to(each, opposite.shape).astype(dtype) for each in (np.uint64(0), second, third)])


RULES: dict[str, Callable[..., Batch]] = {"pairs": _pairs, "scales": _scales, "selections": _selections}
