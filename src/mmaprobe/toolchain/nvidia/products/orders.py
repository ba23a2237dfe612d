"""The order of every sum of a compiled product, read from its machine code, and held against a schedule."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.layouts import layout
from mmaprobe.catalog.lookup import instruction
from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import Accumulators, GemmKernel, Schedule
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia import nvdisasm
from mmaprobe.toolchain.nvidia.cubin import parameters
from mmaprobe.toolchain.nvidia.products.multistage import STEP, Multistage
from mmaprobe.toolchain.nvidia.products.ring import CONSUMERS
from mmaprobe.toolchain.nvidia.products.warp_specialised import WarpSpecialised
from mmaprobe.toolchain.nvidia.sass.listing import listing
from mmaprobe.toolchain.nvidia.sass.machine import (
    POISON,
    Cta,
    GlobalMemory,
    HeldElements,
    SharedUnits,
    TensorMap,
    Units,
)
from mmaprobe.toolchain.nvidia.sass.sums import NOTHING, Order, Sums, added
from mmaprobe.toolchain.source import ENTRY

A, B, D, DONE, PARTS, ARRIVED, BANK_0 = (each << 32 for each in range(1, 8))
"""Addresses of the arrays of a run, and of constant bank 0."""
SHARED = 1 << 10
"""Bytes of shared memory before a kernel's own (sm_90 and later keep them)."""
BANK = 1 << 12
"""Bytes of the constant bank that parameters lie in."""
MOST_ELEMENTS = 0xFFFF - 1
"""Elements of A and of B: each has a number of 16 bits, and two numbers are of none."""
BANK_POINTER = 0x198
"""Where bank 0 holds the address of its parameters (sm_90), which tensor copies are told."""
MAP = 128
"""Bytes of a tensor map."""
PRODUCT_ALIGNMENT = 64
"""Bytes on which the parameters of a kernel with tensor maps begin."""

Product = Multistage | WarpSpecialised


@dataclass(frozen=True)
class Orders:
    """The kinds of order that were read, each with its elements (m, n) of D, and how many tiles the kernel counted."""

    kinds: dict[Order, tuple[tuple[int, int], ...]]
    tiles: int


def read_orders(product: Product, made: Kernel, *, late: bool = True, backwards: bool = False) -> Orders:
    """The orders of a compiled kernel, disassembled: ``orders_in``."""
    start, _ = parameters(made.binary, ENTRY)
    return orders_in(product, nvdisasm.disassemble(made.binary), start, late=late, backwards=backwards)


def orders_in(product: Product, text: str, start: int, *, late: bool = True, backwards: bool = False) -> Orders:
    """All CTAs of a disassembly run on symbols (``sass.machine``), the parameters from byte ``start`` of bank 0 on.

    CTAs run one after the other, ``backwards`` the last one first.  UsageError for a product that has too many elements
    to number; DeviceError where an element of D holds anything but a sum of its own products, or the code has an
    instruction that is not known here.
    """
    m, n, k = product.m, product.n, product.k
    if max(m * k, k * n) > MOST_ELEMENTS:
        raise UsageError(f"{m} x {n} x {k}: A or B has more than {MOST_ELEMENTS:,} elements; read a smaller product")
    sums, memory = Sums((m, n, k)), GlobalMemory()
    d, done = np.zeros((m, n), np.uint32), np.zeros(1, np.uint64)
    a = np.arange(1, m * k + 1, dtype=np.uint16).reshape(m, k)
    b = np.arange(1, k * n + 1, dtype=np.uint16).reshape(k, n)
    for address, array in ((A, a), (B, b), (D, d), (DONE, done)):
        memory.add(address, array)
    code, units = listing(text), _units(product)
    if isinstance(product, WarpSpecialised):
        memory.add(PARTS, np.zeros((product.most_parts, m, n), np.uint32))
        memory.add(ARRIVED, np.zeros((product.order.steps, CONSUMERS), np.uint32))
        bank, maps = _bank_with_maps(product, start, a, b)
    else:
        bank, maps = (bytes(start) + struct.pack("<4Q", A, B, D, DONE)).ljust(BANK, b"\0"), {}
    for index in sorted(range(product.groups), reverse=backwards):
        shared = np.full(SHARED + product.shared, POISON, np.uint8)
        Cta(code, bank, memory, sums, units, product.threads, index, shared, late, backwards, maps).run()
    rows, columns = np.indices((m, n)).reshape(2, -1)
    kinds: dict[Order, list[tuple[int, int]]] = {}
    for order, *at in zip(sums.orders(d.reshape(-1).astype(np.int64), rows, columns), rows, columns, strict=True):
        kinds.setdefault(order, []).append((int(at[0]), int(at[1])))
    return Orders({order: tuple(elements) for order, elements in kinds.items()}, int(done[0]))


def _bank_with_maps(
    product: WarpSpecialised, start: int, a: NDArray[np.uint16], b: NDArray[np.uint16]
) -> tuple[bytes, dict[int, TensorMap]]:
    """Constant bank 0 of a kernel with tensor maps, and the maps by their address; they lie in front of all else."""
    first = -(-start // PRODUCT_ALIGNMENT) * PRODUCT_ALIGNMENT
    boxes = product.boxes()
    maps = {BANK_0 + first + number * MAP: TensorMap(array, box)
            for number, (array, box) in enumerate(zip((a, b), boxes, strict=True))}  # fmt: skip
    given = bytes(2 * MAP) + struct.pack("<3Q", D, PARTS, ARRIVED)
    given = given.ljust(-(-len(given) // PRODUCT_ALIGNMENT) * PRODUCT_ALIGNMENT, b"\0") + struct.pack("<Q", DONE)
    bank = bytearray((bytes(first) + given).ljust(BANK, b"\0"))
    bank[BANK_POINTER : BANK_POINTER + 8] = struct.pack("<Q", BANK_0 + start)
    return bytes(bank), maps


def _units(product: Product) -> dict[str, Units | SharedUnits]:
    """The layouts of the product's matrix opcode, under the name that the disassembler gives it."""
    made = instruction(product.opcode, product.architecture)
    kind = "" if product.operands == "f16" else ".BF16"
    d = HeldElements(layout(made, product.architecture, "d"))
    if isinstance(product, WarpSpecialised):
        return {f"HGMMA.{made.m}x{made.n}x{made.k}.F32{kind}": SharedUnits((made.m, made.k), (made.k, made.n), d)}
    a, b = (HeldElements(layout(made, product.architecture, operand)) for operand in "ab")
    return {f"HMMA.{made.m}{made.n}{made.k}.F32{kind}": Units(a, b, d)}


def stated_order(kernel: GemmKernel, k: int, lanes: int = STEP) -> Order:
    """The order that a schedule's kernel states for K: of steps of a primitive with so many lanes.

    UsageError for what our kernels have not: promotion, scalar tails, another order of lanes, a start from C.
    """
    if kernel.promotion or kernel.tail != "zeros" or kernel.step.order or kernel.join.start == "c":
        raise UsageError(f"kernel {kernel.name}: promotion, scalar tails, lane orders and starts from C are not read")
    partial = []
    for piece in kernel.join.chained(kernel.ranges.of(k)):
        steps = [
            tuple(j if j in piece else NOTHING for j in range(start, start + lanes))
            for start in range(piece.start, piece.stop, lanes)
        ]
        accumulators: list[Order] = []
        for dealt in kernel.accumulators.dealt(len(steps)):
            chain: Order = ()
            for step in dealt:
                chain = (chain, steps[step])
            accumulators.append(chain)
        partial.append(_with_rest(kernel.accumulators, accumulators, steps))
    if not partial:
        return ()
    pairwise = kernel.join.order == "pairwise"
    if kernel.join.start == "zero":
        partial = [(), _joined(partial, True)] if pairwise else [(), *partial]
    return _joined(partial, pairwise)


def _with_rest(rule: Accumulators, accumulators: list[Order], steps: Sequence[Order]) -> Order:
    """The sum of the accumulators, and of the steps that go to none of them."""
    pairwise, left = rule.join != "chain", [steps[i] for i in rule.after(len(steps)).places()]
    first, second = ([accumulators[i] for i in term] for term in rule.terms())
    whole = _joined(first, pairwise)
    if rule.rest == "before":
        whole = _onto(whole, left)
    if second:
        whole = added(whole, _joined(second, pairwise))
    return whole if rule.rest == "before" else _onto(whole, left)


def _onto(whole: Order, steps: Sequence[Order]) -> Order:
    """A sum with steps that are added to it."""
    for step in steps:
        whole = (whole, step)
    return whole


def _joined(terms: list[Order], pairwise: bool) -> Order:
    """The sum of some: a chain, or neighbours."""
    while len(terms) > 1:
        if pairwise:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            terms = [*(added(x, y) for x, y in pairs), *terms[len(terms) // 2 * 2 :]]
        else:
            terms = [added(terms[0], terms[1]), *terms[2:]]
    return terms[0]


def differences(read: Orders, schedule: Schedule, shape: tuple[int, int, int]) -> list[str]:
    """Where orders differ from those that a schedule states for a shape, a line each kind; [] where they do not."""
    m, n, k = shape
    stated: dict[tuple[int, int], Order] = {}
    for kernel, rows, columns in schedule.areas(m, n, k):
        order = stated_order(kernel, k)
        stated |= {(int(row), int(column)): order for row in rows for column in columns}
    wrong: Counter[tuple[Order, Order]] = Counter()
    first: dict[tuple[Order, Order], tuple[int, int]] = {}
    for order, elements in read.kinds.items():
        for element in elements:
            if order != stated[element]:
                wrong[order, stated[element]] += 1
                first.setdefault((order, stated[element]), element)
    return [
        f"{count} elements, D[{first[pair][0]}, {first[pair][1]}] the first, are {spell(pair[0])}; "
        f"the schedule says {spell(pair[1])}"
        for pair, count in wrong.most_common()
    ]


def spell(order: Order) -> str:
    """``0+[0:16]+[16:32]``: a chain of steps, each the range of its k; additions of sums in brackets."""
    if not order:
        return "0"
    if order[0] == "+":
        return f"({spell(order[1])} + {spell(order[2])})"
    chain: list[str] = []
    while order and order[0] != "+":
        order, step = order
        chain.append(_span(step))
    return "+".join([spell(order), *reversed(chain)])


def _span(step: tuple[int, ...]) -> str:
    live = [k for k in step if k != NOTHING]
    if not live:
        return "[]"
    if live == list(range(live[0], live[0] + len(live))):
        return f"[{live[0]}:{live[-1] + 1}]"
    return f"[{','.join(map(str, live))}]"
