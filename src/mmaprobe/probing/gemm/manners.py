"""Does it matter how a product is called: is all of D written, do alignment or a batch change its bits?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mmaprobe.devices.products import Manner, knows_manners
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.elements import draw_matrices
from mmaprobe.probing.gemm.integer_values import integer_operands
from mmaprobe.probing.gemm.soundness import SPREAD
from mmaprobe.showing import counted, of_which

LANES = 3
"""Equal products of one call, whose bits are compared."""
PLACES = (Manner(shift=1), Manner(shift=3, pad=5))
"""Where operands lie that nobody has aligned: one element after a register's width, and rows at odd distances."""
CANARIES = (0xA5, 0x5A)
"""Bytes of the two patterns that D is written over: an element that was not written has both of them."""


@dataclass(frozen=True)
class MannerFinding:
    """What was asked (``written``, ``alignment``, ``batch``), and whether D is the ``same``, ``differs``, or why it was
    ``not asked``."""

    question: str
    status: Literal["same", "differs", "not asked"]
    said: str


def ask_manners(calls: ProductCalls, shape: tuple[int, int, int], rng: np.random.Generator) -> list[MannerFinding]:
    """A finding for each question; none of a product that is called in one manner alone."""
    if not knows_manners(calls.product):
        return []
    drawn = integer_operands(calls, "uniform", shape, rng) if calls.of_integers else None
    a, b = drawn or draw_matrices(calls, shape, rng, SPREAD)
    plain = calls.ask_so(a, b, Manner())
    found = [_placed(calls, a, b, plain), _batched(calls, a, b, plain)]
    return [_written(calls, a, b), *found] if calls.product.writes else found


def _written(calls: ProductCalls, a: Bits, b: Bits) -> MannerFinding:
    """D of two calls over different patterns."""
    size = calls.d.dtype.itemsize
    fills = [int.from_bytes(bytes([canary] * size), "little") for canary in CANARIES]
    first, second = (calls.ask_so(a, b, Manner(fill=fill)) for fill in fills)
    left = (first == fills[0]) & (second == fills[1])
    if left.any():
        i, j = np.argwhere(left)[0]
        return MannerFinding("written", "differs", f"D[{i}, {j}] is not written; {_of(int(left.sum()), left.size)}")
    other = first != second
    if other.any():
        i, j = np.argwhere(other)[0]
        said = f"D[{i}, {j}] depends on what stood in out before; {_of(int(other.sum()), other.size)}"
        return MannerFinding("written", "differs", said)
    return MannerFinding("written", "same", "all of D is written, over two patterns")


def _placed(calls: ProductCalls, a: Bits, b: Bits, plain: Bits) -> MannerFinding:
    for manner in PLACES:
        where = f"operands {counted(manner.shift, 'element')} after an address that 64 divides"
        where += f", rows {manner.pad} further apart" if manner.pad else ""
        try:
            differ = calls.ask_so(a, b, manner) != plain
        except (DeviceError, UsageError) as error:
            return MannerFinding("alignment", "not asked", str(error))
        if differ.any():
            return MannerFinding("alignment", "differs", f"with {where} {_of(int(differ.sum()), differ.size)}")
    return MannerFinding("alignment", "same", f"the same bits at {len(PLACES)} other alignments of the operands")


def _batched(calls: ProductCalls, a: Bits, b: Bits, plain: Bits) -> MannerFinding:
    """D of each of a few equal products of one call, beside the product alone."""
    try:
        every = calls.ask_so(a, b, Manner(batch=LANES))
    except (DeviceError, UsageError) as error:
        return MannerFinding("batch", "not asked", str(error))
    for lane, d in enumerate(every):
        differ = d != plain
        if differ.any():
            said = f"as product {lane} of {LANES} equal ones of a call {_of(int(differ.sum()), differ.size)}"
            return MannerFinding("batch", "differs", said)
    return MannerFinding("batch", "same", f"the same bits in each of {LANES} products of a call")


def _of(count: int, size: int) -> str:
    return f"{of_which(count, size, 'element', 'have')} other bits"
