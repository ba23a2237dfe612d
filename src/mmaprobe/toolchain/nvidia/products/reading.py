"""A product compiled, its machine code read in every way that it may run, and all of it held against its schedule."""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.errors import DeviceError
from mmaprobe.parameters.schedule import Schedule
from mmaprobe.showing import counted
from mmaprobe.toolchain.kernel_cache import kernel_of
from mmaprobe.toolchain.nvidia.products.named import Product
from mmaprobe.toolchain.nvidia.products.orders import differences, read_orders, spell
from mmaprobe.toolchain.nvidia.products.ring import explore
from mmaprobe.toolchain.nvidia.products.warp_specialised import WarpSpecialised


@dataclass(frozen=True)
class KernelReading:
    """``what`` was compiled, and by what; the ``kinds`` of order that its elements have, and how many have each; its
    ``schedule``; ``wrong``: how it differs from that, or what its code does that no kernel should; the ``states`` of
    its ring, 0 where it has none."""

    what: str
    toolchain: str
    kinds: tuple[tuple[str, int], ...]
    schedule: Schedule
    wrong: tuple[str, ...]
    states: int


def reading(of: Product) -> KernelReading:
    """Asynchronous copies and reads late, CTAs and warps forwards; and at once and backwards.

    NotHereError where the compiler or the disassembler is missing, UsageError for a product too large to read.
    """
    made = kernel_of(of.source())
    wrong: list[str] = []
    kinds: dict[str, int] = {}
    for late in (True, False):
        try:
            found = read_orders(of, made, late=late, backwards=not late)
        except DeviceError as error:
            wrong.append(str(error))
            continue
        kinds |= {spell(order): len(elements) for order, elements in found.kinds.items()}
        wrong += differences(found, of.schedule(), (of.m, of.n, of.k))
        if found.tiles != of.corners:
            wrong.append(f"the kernel counts {found.tiles} corners of D stored, of {of.corners}")
    states = 0
    if isinstance(of, WarpSpecialised):
        ring = explore(of.ring)
        states = ring.states
        wrong += [str(ring.fault)] if ring.fault else []
    launch = f"{counted(of.groups, 'CTA')} of {of.threads} threads"
    what = f"{of.m} x {of.n} x {of.k}, {launch}, {of.opcode} on {of.architecture}"
    return KernelReading(what, made.toolchain, tuple(kinds.items()), of.schedule(), tuple(dict.fromkeys(wrong)), states)
