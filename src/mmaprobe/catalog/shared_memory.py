"""Matrices of wgmma and tcgen05 in shared memory: the address of each element, a layout with its swizzle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from mmaprobe.catalog.formula import Formula
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_algebra import Composed, Layout, Swizzle, parse
from mmaprobe.catalog.layouts import facts, refuse_absent, sheets, width
from mmaprobe.errors import UsageError


@dataclass(frozen=True)
class SharedMatrix:
    """One operand in shared memory: ``mn`` rows of A (columns of B) by ``k``, on a start address of 0.

    ``layout`` takes two of ``mn``, ``k`` and ``x``, those that ``at`` names, to
    the byte address, ``x`` the byte along the contiguous axis; ``address`` is
    that as a formula.  ``x`` is ``x_bits // 8``.  Elements of 4 and 6 bits are two a byte
    or, padded, stand bit by bit at the front of every 16 bytes for 16 elements.
    """

    name: str
    mn: int
    k: int
    element_bits: int
    swizzle: int
    lbo: int
    sbo: int
    at: tuple[str, ...]
    layout: Composed
    x_bits: Formula
    source: str = ""

    def bit(self, mn: Any, k: Any) -> Any:
        """The first bit of element (mn, k), counted from the matrix's start; integers or arrays."""
        x = self.x_bits(mn=mn, k=k)
        places = {"mn": mn, "k": k, "x": x // 8}
        return self.layout(*(places[name] for name in self.at)) * 8 + x % 8

    @cached_property
    def address(self) -> Formula:
        """The byte address in ``mn``, ``k`` and ``x``."""
        return offset_formula(self.layout, self.at)

    @property
    def c(self) -> str:
        """The byte address as C in ``mn``, ``k`` and ``x``, the byte along the contiguous axis."""
        return self.address.c

    @property
    def bytes(self) -> int:
        """Bytes from the start to the end of the last element's byte."""
        mn, k = np.indices((self.mn, self.k))
        return int((self.bit(mn, k) + self.element_bits - 1).max()) // 8 + 1


def shared_matrix(
    mn: int, k: int, element_bits: int, swizzle: int = 128, *, major: str = "k_major", padded: bool = False,
    lbo: int | None = None, sbo: int | None = None,
) -> SharedMatrix:  # fmt: skip
    """A matrix of mn x k elements; strides that are not given are those of one without gaps.

    ``major`` is ``k_major``, ``mn_major``, or ``mn_major_32b`` (128-byte
    swizzle in units of 32 bytes).  Raises UsageError for a swizzle it lacks.
    """
    table = _address(major, swizzle)
    along = "k" if major == "k_major" else "mn"
    spread = f"{along} // 16 * 128 + {along} % 16 * {element_bits}" if padded else f"{along} * {element_bits}"
    x_bits = Formula(spread).bind({})
    extent = x_bits(k=k, mn=mn) // 8
    numbers = {"W": swizzle, "B": (swizzle // 16).bit_length() - 1, "MN": mn, "K": k, "X": extent}
    numbers |= {name: int(Formula(text).bind(numbers)()) for name, text in table["packed"].items()}
    numbers |= {name: given for name, given in (("LBO", lbo), ("SBO", sbo)) if given is not None}
    return SharedMatrix(major, mn, k, element_bits, swizzle, numbers["LBO"], numbers["SBO"], tuple(table["at"]),
                        _bound(table["layout"], numbers), x_bits, table["source"])  # fmt: skip


def _address(major: str, swizzle: int) -> dict[str, Any]:
    """The record of matrices of one major in one swizzle; UsageError where there is none."""
    tables = [table for sheet in sheets() for table in sheet.data.get("address", ()) if table["name"] == major]
    found: dict[str, Any] | None = next((one for one in tables if swizzle in one["widths"]), None)
    if found is None:
        widths = sorted(w for one in tables for w in one["widths"])
        raise UsageError(f"{major}: a swizzle of {swizzle} bytes; it has {', '.join(map(str, widths)) or 'none'}")
    return found


def _bound(text: str, numbers: dict[str, int]) -> Composed:
    """A layout with a swizzle, its names replaced by numbers."""
    found = parse(re.sub(r"[A-Za-z]\w*", lambda name: str(numbers.get(name[0], name[0])), text))
    assert isinstance(found, Composed)
    return found


def offset_formula(layout: Composed, names: Sequence[str]) -> Formula:
    """A layout's offset in the names of its modes' indices; of one name in the number of its coordinate."""
    modes = layout.layout.modes if len(names) > 1 else (layout.layout,)
    sums = (_sum(mode, name) for mode, name in zip(modes, names, strict=True))
    plain = Formula(" + ".join([str(layout.offset), *sums])).bind({})
    return _swizzled(layout.swizzle).bind({"b": plain}) if layout.swizzle.bits else plain


def _sum(mode: Layout, name: str) -> str:
    """A mode's offset as a formula: index // (sizes before) % size * stride, a term a leaf; the last one is open."""
    sizes = [size for size, _ in mode.leaves]
    terms = [f"{name} // {prod(sizes[:place])} % {size} * {step}" for place, (size, step) in enumerate(mode.leaves)]
    terms[-1] = f"{name} // {prod(sizes[:-1])} * {mode.leaves[-1][1]}"
    return " + ".join(terms)


def _swizzled(swizzle: Swizzle) -> Formula:
    """What a swizzle makes of ``b``, as a formula."""
    read, written = swizzle.base + max(0, swizzle.shift), swizzle.base + max(0, -swizzle.shift)
    return Formula(f"b ^ ((b >> {read} & {(1 << swizzle.bits) - 1}) << {written})").bind({})


def matrix(instruction: Instruction, operand: str, swizzle: int = 128) -> SharedMatrix:
    """Operand ``a`` or ``b`` of a wgmma or tcgen05 instruction in shared memory, without gaps.

    Major along K unless the modifier ``trans_a`` or ``trans_b`` says otherwise (of
    32 bits in the 128-byte swizzle of 32-byte units, of 4 and 6 bits never: CuTe mma_sm100_desc);
    one instruction's M x K or K x N, of a pair of CTAs the part that one holds.
    Raises UsageError for an operand in registers or tensor memory, or open.
    """
    known = facts(instruction, "", operand)
    if not instruction.opcode.startswith(("wgmma.", "tcgen05.")) or operand not in ("a", "b"):
        raise UsageError(
            f"{instruction.id}: {operand} is no matrix in shared memory; ask catalog.layouts.layout for it"
        )
    if known["place"] != "smem":
        raise UsageError(f"{instruction.id}: a lies in {known['place']}; ask catalog.layouts.layout for it")
    refuse_absent(instruction, known)
    bits = width(known["format"])
    turned = f"trans_{operand}" in instruction.modifier
    if turned and bits < 8:
        raise UsageError(f"{instruction.id}: {operand} of {bits} bits lies along K only, without trans_{operand}")
    major = "k_major" if not turned else "mn_major_32b" if bits == 32 else "mn_major"
    padded = bits < 8 and "f8f6f4" in instruction.opcode
    share = 2 if "cta_group::2" in instruction.opcode else 1
    return shared_matrix(known["mn"] // share, known["depth"], bits, swizzle, major=major, padded=padded)
