"""A CTA of a compiled kernel run instruction by instruction, its matrix instructions on symbols (``sass.sums``).

Every warp runs alone until it meets a barrier or waits, the others stand still meanwhile.  What is asynchronous,
copies to shared memory and what wgmma reads there, is done ``late``, when it is waited for, or at once: a kernel that
reads a slot too soon, or fills one that is still read, is wrong in one of the ways.  Shared memory begins as numbers of
no element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.descriptors import descriptor
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.layout_algebra import Swizzle
from mmaprobe.catalog.shared_memory import shared_matrix
from mmaprobe.errors import DeviceError
from mmaprobe.toolchain.nvidia.sass.integers import COMPARE, JOIN, MASK, Values, funnel, lop3, permute, signed
from mmaprobe.toolchain.nvidia.sass.listing import ZERO, CodeListing, CodeOperand, MachineCode
from mmaprobe.toolchain.nvidia.sass.sums import Added, Multiplied, Numbers, Sums

LANES = 32
"""Threads of a warp."""
MOST_STEPS = 1_000_000
"""Instructions that a warp may run: a kernel that goes on is one that does not end."""
BOX = Swizzle(3, 4, 3)
"""How a tensor copy places units of 16 bytes."""
POISON = 0xFF
"""Bytes of shared memory that nothing was written to."""
LOCAL = 1 << 12
"""Bytes of local memory of a thread, where registers are spilled to."""
WAITS = (0, 0)
"""What a warp says when it waits for a phase of a barrier in shared memory."""
FRESH = 1 << 20
"""A barrier in shared memory is made by a word of which bits 20:1 are this less its arrivals."""


@dataclass
class GlobalMemory:
    """Global memory: arrays at addresses."""

    arrays: dict[int, NDArray[Any]] = field(default_factory=dict)

    def add(self, address: int, array: NDArray[Any]) -> None:
        """An array, from an address on."""
        self.arrays[address] = array

    def bytes_at(self, addresses: Numbers, size: int) -> tuple[NDArray[np.uint8], Numbers]:
        """The bytes of the array that holds these addresses, and their places in it; DeviceError where none does."""
        for start, array in self.arrays.items():
            inside = addresses - start
            if len(inside) and inside.min() >= 0 and inside.max() + size <= array.nbytes:
                return array.reshape(-1).view(np.uint8), inside
        raise DeviceError(f"address {int(addresses[0]):#x} is in no array of the launch")


class HeldElements:
    """Where the elements of one operand lie in the registers of a group of lanes: the layout's places, worked out."""

    def __init__(self, of: Fragment) -> None:
        self.registers, self.shape = of.registers, of.shape
        self.places = tuple(index.reshape(-1) for index in of.coordinates().values())
        self._halves = of.bits == 16

    def elements(self, registers: Numbers) -> Numbers:
        """The array of the operand; ``registers`` (lanes, registers)."""
        found = np.zeros(self.shape, np.int64)
        if self._halves:
            registers = np.stack([registers & 0xFFFF, registers >> 16], -1)
        found[self.places] = registers.reshape(-1)
        return found


@dataclass(frozen=True)
class Units:
    """How the operands of a matrix opcode lie in registers."""

    a: HeldElements
    b: HeldElements
    d: HeldElements


@dataclass(frozen=True)
class SharedUnits:
    """The shapes of A (M, K) and B (K, N) of a matrix opcode that descriptors place in shared memory, and its D."""

    a: tuple[int, int]
    b: tuple[int, int]
    d: HeldElements


@dataclass(frozen=True)
class TensorMap:
    """What a tensor copy is told: a matrix, and the rows and columns of a box of it; rows of a box are 128 bytes, and
    their units of 16 are swizzled."""

    array: NDArray[np.uint16]
    box: tuple[int, int]


@dataclass
class PhaseBarrier:
    """A barrier in shared memory (mbarrier): arrivals and bytes that are out of a phase, and how many are over."""

    arrivals: int
    pending: int
    bytes: int = 0
    phases: int = 0

    def arrive(self, arrivals: int, expected: int = 0, came: int = 0) -> None:
        """Arrivals, bytes that are to come, and bytes that came."""
        self.pending -= arrivals
        self.bytes += expected - came
        if self.pending < 0:
            raise DeviceError(f"more arrive at a barrier than the {self.arrivals} it was made for")
        if self.pending == 0 and self.bytes == 0:
            self.phases, self.pending = self.phases + 1, self.arrivals


@dataclass
class Cta:
    """One CTA: its code, the constant bank, and what it shares."""

    listing: CodeListing
    constants: bytes
    memory: GlobalMemory
    sums: Sums
    units: Mapping[str, Units | SharedUnits]
    threads: int
    index: int
    shared: NDArray[np.uint8]
    late: bool
    backwards: bool = False
    maps: dict[int, TensorMap] = field(default_factory=dict)
    barriers: dict[int, PhaseBarrier] = field(default_factory=dict)
    copies: list[Callable[[], None]] = field(default_factory=list)

    def run(self) -> None:
        """Until all warps have ended; DeviceError where one does what no kernel of ours should, or none can go on."""
        warps = [Warp(self, number) for number in range(self.threads // LANES)]
        if self.backwards:
            warps.reverse()
        running = {warp: warp.run() for warp in warps}
        held: dict[Warp, tuple[int, int]] = {}
        while running:
            before = sum(warp.ran for warp in warps)
            for warp in [each for each in running if held.get(each, WAITS) == WAITS]:
                said = next(running[warp], None)
                if said is None:
                    del running[warp]
                    held.pop(warp, None)
                else:
                    held[warp] = said
            self._release(held)
            if running and sum(warp.ran for warp in warps) == before:
                if not self.copies:
                    raise DeviceError(f"deadlock: {len(running)} warps wait, and nothing is under way")
                self.copies.pop(-1 if self.backwards else 0)()

    def _release(self, held: dict[Warp, tuple[int, int]]) -> None:
        """Let warps go that have all come to their barrier: its number, and of how many threads it is."""
        for barrier in set(held.values()) - {WAITS}:
            came = [warp for warp, what in held.items() if what == barrier]
            if len(came) * LANES == barrier[1]:
                for warp in came:
                    del held[warp]

    def barrier(self, address: int) -> PhaseBarrier:
        """A barrier in shared memory; DeviceError where none was made."""
        if address not in self.barriers:
            raise DeviceError(f"no barrier was made at shared address {address:#x}")
        return self.barriers[address]

    def read(self, places: Numbers) -> Numbers:
        """The 16-bit elements at shared addresses."""
        if places.min() < 0 or places.max() + 2 > len(self.shared):
            raise DeviceError(f"shared address {int(places.max()):#x} is outside of the CTA's {len(self.shared)} bytes")
        return self.shared[places].astype(np.int64) | self.shared[places + 1].astype(np.int64) << 8

    def write(self, to: Numbers, data: NDArray[np.uint8]) -> None:
        """Bytes, a row of them from each shared address on."""
        places = to[:, None] + np.arange(data.shape[1])
        if places.min() < 0 or places.max() >= len(self.shared):
            raise DeviceError(f"shared address {int(to[0]):#x} is outside of the CTA's {len(self.shared)} bytes")
        self.shared[places] = data


class Warp:
    """32 threads: registers, predicates, and where each thread is."""

    def __init__(self, cta: Cta, number: int) -> None:
        self.cta, self.number = cta, number
        self.r = np.zeros((256, LANES), np.int64)
        self.p = np.zeros((8, LANES), bool)
        self.ur = np.zeros(64, np.int64)
        self.local = np.zeros((LOCAL // 4, LANES), np.int64)
        self.up = np.zeros(8, bool)
        self.at = np.zeros(LANES, np.int64)
        self.alive = np.ones(LANES, bool)
        self.copies: list[tuple[Numbers, NDArray[np.uint8]]] = []
        self.groups: list[list[tuple[Numbers, NDArray[np.uint8]]]] = []
        self.products: list[list[Callable[[], None]]] = [[]]
        self.said: tuple[int, int] | None = None
        self.ran = 0

    def run(self) -> Iterator[tuple[int, int]]:
        """Step until every thread has ended; yields ``WAITS``, or at which barrier it is, and of how many threads."""
        codes = self.cta.listing.codes
        for _ in range(MOST_STEPS):
            if not self.alive.any():
                return
            place = int(self.at[self.alive].min())
            active = self.alive & (self.at == place)
            code = codes[place]
            self.at[active] = place + 1
            acting = active if code.guard is None else active & self.predicate(code.guard)
            if not acting.any():
                continue
            action = ACTIONS.get(code.name)
            if action is None:
                raise DeviceError(f"instruction {code.text} at {code.address:#x} is none that is known here")
            try:
                action(self, code, code.modifiers, acting)
            except (ValueError, IndexError, TypeError) as error:
                raise DeviceError(f"instruction {code.text} at {code.address:#x}: {error}") from error
            self.ran += self.said != WAITS
            if self.said is not None:
                yield self.said
                self.said = None
        raise DeviceError(f"warp {self.number} does not end within {MOST_STEPS} instructions")

    # Operands

    def value(self, operand: CodeOperand, wide: bool = False) -> Values:
        """The pattern of an operand, 32 bits or, ``wide``, 64."""
        match operand.kind:
            case "immediate":
                return np.int64(operand.number & (MASK if not wide else -1))
            case "constant":
                read = self.cta.constants[operand.number : operand.number + (8 if wide else 4)]
                found: Values = np.int64(int.from_bytes(read, "little"))
            case "R" | "UR":
                bank = self.r if operand.kind == "R" else self.ur
                found = np.int64(0)
                if operand.number != ZERO:
                    found = bank[operand.number].copy()
                    if wide:
                        found = found | bank[operand.number + 1] << 32
            case _:
                raise DeviceError(f"{operand.text} is no number")
        if operand.inverse:
            found = ~found & MASK
        return (-found & MASK) if operand.minus and not wide else -found if operand.minus else found

    def predicate(self, operand: CodeOperand) -> Values:
        """A predicate, of the warp or of each lane."""
        bank = self.p if operand.kind == "P" else self.up
        found = np.True_ if operand.number == ZERO else bank[operand.number]
        return ~found if operand.inverse else found

    def put(self, operand: CodeOperand, value: Values, acting: Values) -> None:
        """Write a register or a predicate in the lanes that act."""
        if operand.number == ZERO:
            return
        match operand.kind:
            case "R":
                self.r[operand.number] = np.where(acting, value, self.r[operand.number])
            case "P":
                self.p[operand.number] = np.where(acting, value, self.p[operand.number])
            case "UR":
                self.ur[operand.number] = uniform(np.broadcast_to(value, LANES)[acting])
            case "UP":
                self.up[operand.number] = uniform(np.broadcast_to(value, LANES)[acting])
            case _:
                raise DeviceError(f"{operand.text} is no place to write to")

    def put_wide(self, operand: CodeOperand, value: Values, acting: Values) -> None:
        """Write a pair of registers."""
        if operand.number != ZERO:
            self.put(operand, value & MASK, acting)
            self.put(CodeOperand(operand.kind, operand.number + 1), value >> 32 & MASK, acting)

    def address(self, operand: CodeOperand) -> Numbers:
        """The sum of an address' parts, for each lane."""
        total = np.full(LANES, operand.number, np.int64)
        for part in operand.parts:
            total = total + self.value(part, wide=".64" in part.text)
        return total


def exact(value: Values) -> Values:
    """Integers that do not overflow."""
    return np.asarray(value).astype(object)


def uniform(value: Values) -> Any:
    """The one value of a warp; DeviceError where lanes differ."""
    values = np.unique(value)
    if len(values) != 1:
        raise DeviceError("a register of the whole warp is given several values")
    return values[0]


# Instructions

Action = Callable[[Warp, MachineCode, frozenset[str], Values], None]


def _split(code: MachineCode) -> tuple[list[CodeOperand], list[CodeOperand]]:
    """The operands up to the first destination's predicates, and those that are read."""
    operands = list(code.operands)
    count = 1
    while count < len(operands) and operands[count].kind in ("P", "UP") and not operands[count].inverse:
        count += 1
    return operands[:count], operands[count:]


def _add3(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """d = a + b + c, with carries out, and with X those that come in."""
    (d, *carry), rest = _split(code)
    numbers = [each for each in rest if each.kind not in ("P", "UP")]
    carried = [each for each in rest if each.kind in ("P", "UP")]
    total: Values = sum(_unsigned(warp, each) for each in numbers)
    if "X" in modifiers:
        total = total + sum(np.where(warp.predicate(each), 1, 0) for each in carried)
    warp.put(d, total & MASK, acting)
    for place, out in enumerate(carry[:1]):
        warp.put(out, (total >> 32 + place) != 0, acting)


def _unsigned(warp: Warp, operand: CodeOperand) -> Values:
    """An addend; one that is subtracted counts as its complement and 1."""
    if operand.minus:
        plain = CodeOperand(operand.kind, operand.number, text=operand.text)
        return (~warp.value(plain) & MASK) + 1
    return warp.value(operand)


def _multiply_add(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    (d, *out), (a, b, c, *carried) = _split(code)
    x, y = warp.value(a), warp.value(b)
    if modifiers & {"WIDE", "HI"} and "U32" not in modifiers:
        x, y = signed(x), signed(y)
    if modifiers & {"WIDE", "HI"}:
        total = exact(x) * exact(y) + exact(warp.value(c, wide=True)) * ("WIDE" in modifiers)
        if "X" in modifiers:
            total = total + sum(exact(np.where(warp.predicate(each), 1, 0)) for each in carried)
        low, high = (np.asarray(total >> by & MASK).astype(np.int64) for by in (0, 32))
        if "HI" in modifiers:
            warp.put(d, high + warp.value(c) & MASK, acting)
        else:
            warp.put(d, low, acting)
            warp.put(CodeOperand(d.kind, d.number + 1 if d.number != ZERO else ZERO), high, acting)
        for each in out:
            warp.put(each, np.asarray(total >> 64 != 0).astype(bool), acting)
        return
    total = (np.multiply(x, y) & MASK) + warp.value(c)  # the lower bits are right whatever overflows
    if "X" in modifiers:
        total = total + sum(np.where(warp.predicate(each), 1, 0) for each in carried)
    warp.put(d, total & MASK, acting)
    for each in out:
        warp.put(each, total >> 32 != 0, acting)


def _lea(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """d = (a << s) + b, or with HI the upper half of {c, a} << s, + b; SX32: c is a's sign."""
    (d, *out), (a, b, *rest) = _split(code)
    low = warp.value(a)
    high = rest.pop(0) if "HI" in modifiers and "SX32" not in modifiers else None
    shift = rest.pop(0).number if rest and rest[0].kind == "immediate" else 0
    carried = [each for each in rest if each.kind in ("P", "UP")]
    if "HI" not in modifiers:
        shifted = low << shift & MASK
    elif "SX32" in modifiers:
        shifted = signed(low) >> (32 - shift) & MASK
    else:
        assert high is not None
        shifted = (warp.value(high) << 32 | low) >> (32 - shift) & MASK
    total = shifted + _unsigned(warp, b)
    if "X" in modifiers:
        total = total + sum(np.where(warp.predicate(each), 1, 0) for each in carried)
    warp.put(d, total & MASK, acting)
    for each in out:
        warp.put(each, total >> 32 != 0, acting)


def _lop3(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    operands = list(code.operands)
    truth = operands.pop(0) if operands[0].kind in ("P", "UP") else None
    d, a, b, c, table, *_ = operands
    result = lop3(warp.value(a), warp.value(b), warp.value(c), table.number)
    warp.put(d, result, acting)
    if truth is not None:
        warp.put(truth, result != 0, acting)


def _plop3(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, other, a, b, c, *tables = code.operands
    inputs = [np.where(warp.predicate(each), 1, 0) for each in (a, b, c)]
    index = inputs[0] << 2 | inputs[1] << 1 | inputs[2]
    for place, table in zip((d, other), tables, strict=True):
        warp.put(place, (table.number >> index & 1) != 0, acting)


def _shift(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, low, by, high = code.operands
    warp.put(d, funnel(modifiers, warp.value(low), warp.value(by), warp.value(high)), acting)


def _compare(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, other, a, b, joined, *low = code.operands
    x, y = warp.value(a), warp.value(b)
    if "U32" not in modifiers:
        x, y = signed(x), signed(y)
    (name,) = modifiers & COMPARE.keys()
    found = COMPARE[name](x, y)
    if "EX" in modifiers:
        below = warp.predicate(low[0])
        strict = COMPARE[name[0] + "T" if name[0] in "LG" else name](x, y)
        found = np.where(np.equal(x, y), below, strict)
    join = JOIN[next(iter(modifiers & JOIN.keys()))]
    warp.put(d, join(found, warp.predicate(joined)), acting)
    warp.put(other, join(~np.asarray(found), warp.predicate(joined)), acting)


def _move(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    wide = "64" in modifiers
    (warp.put_wide if wide else warp.put)(code.operands[0], warp.value(code.operands[1], wide), acting)


def _permute(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, a, selector, b = code.operands
    warp.put(d, permute(warp.value(a), warp.value(b), selector.number), acting)


def _select(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, a, b, which = code.operands
    warp.put(d, np.where(warp.predicate(which), warp.value(a), warp.value(b)), acting)


def _add(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, a, b = code.operands
    warp.put(d, warp.value(a) + warp.value(b) & MASK, acting)


def _special(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, name = code.operands
    threads = warp.number * LANES + np.arange(LANES)
    known = {"SR_TID.X": threads, "SR_CTAID.X": np.int64(warp.cta.index), "SR_CgaCtaId": np.int64(0),
             "SR_LANEID": np.arange(LANES), "SRZ": np.int64(0)}  # fmt: skip
    if name.text not in known:
        raise DeviceError(f"special register {name.text} is none that is known here")
    wide = code.opcode.startswith("CS2R") and "32" not in modifiers
    (warp.put_wide if wide else warp.put)(d, known[name.text], acting)


def _gather(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """P2R: the predicates that a mask chooses, as bits."""
    d, _, kept, mask = code.operands
    bits = sum(np.where(warp.p[number], 1 << number, 0) for number in range(7))
    chosen = warp.value(mask)
    warp.put(d, (warp.value(kept) & ~chosen & MASK) | (bits & chosen), acting)


def _scatter(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """R2P: bits as the predicates that a mask chooses."""
    _, source, mask = code.operands
    for number in range(7):
        if warp.value(mask) >> number & 1:
            warp.put(CodeOperand("P", number), warp.value(source) >> number & 1 != 0, acting)


def _nothing(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """Of no meaning where warps run alone."""


def _registers_granted(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """USETMAXREG: a request for registers is granted."""
    if code.operands[0].kind == "UP":
        warp.put(code.operands[0], np.True_, acting)


def _branch(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    warp.at[acting] = warp.cta.listing.labels[code.operands[-1].text]


def _exit(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    warp.alive &= ~acting


def _copy(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """LDGSTS: 16 bytes a lane from global to shared memory, zeros where its last predicate does not hold."""
    to, from_, *there = code.operands
    size = next(int(each) for each in modifiers if each.isdigit()) // 8
    lanes = np.flatnonzero(acting)
    read = lanes[np.broadcast_to(warp.predicate(there[0]), LANES)[lanes]] if there else lanes
    data = np.zeros((LANES, size), np.uint8)
    if len(read):
        source, places = warp.cta.memory.bytes_at(warp.address(from_)[read], size)
        data[read] = source[places[:, None] + np.arange(size)]
    move = warp.address(to)[lanes], data[lanes]
    if warp.cta.late:
        warp.copies.append(move)
    else:
        warp.cta.write(*move)


def _commit(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    warp.groups.append(warp.copies)
    warp.copies = []


def _await_copies(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """DEPBAR.LE SB0, n: all groups of copies but the last n are done."""
    done = len(warp.groups) - code.operands[1].number
    for group in warp.groups[: max(done, 0)]:
        for move in group:
            warp.cta.write(*move)
    del warp.groups[: max(done, 0)]


def _load_matrices(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """LDSM: four 8 x 8 matrices of 16-bit elements whose rows lie at the addresses of eight lanes each."""
    d, at = code.operands
    rows = warp.address(at)
    count = next((int(each) for each in modifiers if each in ("2", "4")), 1)
    read = warp.cta.read(rows[:, None] + 2 * np.arange(8)).reshape(4, 8, 8)
    lane = np.arange(LANES)
    for number in range(count):
        tile = read[number].T if "MT88" in modifiers else read[number]
        low, high = (tile[lane // 4, lane % 4 * 2 + half] for half in (0, 1))
        warp.put(CodeOperand("R", d.number + number), low | high << 16, acting)


def _mma(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """HMMA: handles of D for those of C and the numbers of A's and B's elements."""
    units = warp.cta.units.get(code.opcode)
    if not isinstance(units, Units) or not acting.all():
        raise DeviceError(f"matrix instruction {code.text} is not one of the kernel's, or not of the whole warp")
    d, a, b, c, *_ = code.operands
    held = [_registers(warp, each, of) for each, of in ((a, units.a), (b, units.b), (c, units.d))]
    node = Multiplied(held[2].reshape(-1), units.a.elements(held[0]), units.b.elements(held[1]), *units.d.places)
    made = warp.cta.sums.new(node, LANES * units.d.registers).reshape(LANES, units.d.registers)
    for number in range(units.d.registers):
        warp.put(CodeOperand("R", d.number + number), made[:, number], acting)


def _registers(warp: Warp, operand: CodeOperand, of: HeldElements) -> Numbers:
    """(lanes, registers) that an operand names the first of."""
    if operand.number == ZERO:
        return np.zeros((LANES, of.registers), np.int64)
    return warp.r[operand.number : operand.number + of.registers].T.copy()


def _float_add(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """FADD of two sums: a sum of its own, also where one is +0, which may be no sum of products."""
    d, a, b = code.operands
    x, y = (np.broadcast_to(warp.value(each), LANES).copy() for each in (a, b))
    warp.put(d, warp.cta.sums.new(Added(x, y), LANES), acting)


def _store(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    at, source = code.operands
    words = next((int(each) // 32 for each in modifiers if each in ("64", "128")), 1)
    lanes = np.flatnonzero(acting)
    to, places = warp.cta.memory.bytes_at(warp.address(at)[lanes], 4 * words)
    values = np.stack(
        [
            np.broadcast_to(warp.value(CodeOperand("R", source.number + i if source.number != ZERO else ZERO)), LANES)[
                lanes
            ]
            for i in range(words)
        ],
        1,
    )
    to[places[:, None] + np.arange(4 * words)] = values.astype(np.uint32).view(np.uint8)


def _spill(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """STL of a register."""
    at, source = code.operands
    places = warp.address(at) % LOCAL // 4
    lanes = np.flatnonzero(acting)
    warp.local[places[lanes], lanes] = np.broadcast_to(warp.value(source), LANES)[lanes]


def _refill(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """LDL of a register."""
    d, at = code.operands
    warp.put(d, warp.local[warp.address(at) % LOCAL // 4, np.arange(LANES)], acting)


def _vote(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """Whether a predicate holds in any lane, or in all; or the lanes in which it does, as bits."""
    *places, asked = code.operands
    held = np.broadcast_to(warp.predicate(asked), LANES) & acting
    for place in places:
        if place.kind in ("R", "UR"):
            warp.put(place, np.int64(sum(1 << lane for lane in np.flatnonzero(held).tolist())), acting)
        else:
            warp.put(place, np.bool_(held.any() if "ANY" in modifiers else held[acting].all()), acting)


def _elect(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """The lowest lane that acts."""
    warp.put(code.operands[0], np.arange(LANES) == np.flatnonzero(acting)[0], acting)


def _ones(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    d, a = code.operands
    warp.put(d, np.bitwise_count(warp.value(a)).astype(np.int64), acting)


def _highest(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """FLO: the place of the highest bit that is 1."""
    d, a = code.operands
    warp.put(d, np.int64(int(uniform(warp.value(a))).bit_length() - 1), acting)


def _add_and_limit(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """VIADDMNMX: the smaller, where its predicate holds, or larger of a + b and c."""
    d, a, b, c, smaller = code.operands
    x, y = warp.value(a) + warp.value(b) & MASK, warp.value(c)
    if "U32" not in modifiers:
        x, y = signed(x), signed(y)
    warp.put(d, np.where(warp.predicate(smaller), np.minimum(x, y), np.maximum(x, y)) & MASK, acting)


def _meet(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """BAR.SYNC of a number, and of so many threads or all."""
    number, *threads = code.operands
    warp.said = int(uniform(warp.value(number))), threads[0].number if threads else warp.cta.threads


def _phase(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """SYNCS: make a barrier in shared memory, arrive at it, or wait until the phase of a parity (bit 31) is over."""
    d, *rest = code.operands
    at, value = (rest[0], rest[1]) if rest[0].kind == "memory" else (rest[1], rest[2])
    places, cta = warp.address(at), warp.cta
    if "EXCH" in modifiers:
        arrivals = FRESH - (int(uniform(warp.value(value))) >> 1)
        cta.barriers[int(uniform(places[acting]))] = PhaseBarrier(arrivals, arrivals)
    elif "ARRIVE" in modifiers:
        expected = np.broadcast_to(warp.value(value), LANES)
        for lane in np.flatnonzero(acting):
            cta.barrier(int(places[lane])).arrive(1, int(expected[lane]))
    else:
        parity = int(uniform(np.broadcast_to(warp.value(value), LANES)[acting])) >> 31
        if cta.barrier(int(uniform(places[acting]))).phases % 2 == parity:
            warp.at[acting] -= 1
            warp.said = WAITS
        warp.put(d, np.True_, acting)


def _copy_box(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """UTMALDG.2D [to, barrier, x, y], [map]: a box of a matrix, zeros beyond it, with 128-byte rows swizzled."""
    to, barrier, x, y = (int(warp.ur[code.operands[0].parts[0].number + i]) for i in range(4))
    place = int(warp.value(code.operands[1].parts[0], wide=True))
    if place not in warp.cta.maps:
        raise DeviceError(f"no tensor map lies at {place:#x}")
    of, cta = warp.cta.maps[place], warp.cta
    rows, columns = (start + np.arange(size) for start, size in zip((signed(y), signed(x)), of.box, strict=True))
    data = np.zeros(of.box, np.uint16)
    there = (rows < of.array.shape[0])[:, None] & (columns < of.array.shape[1])
    data[there] = of.array[np.ix_(rows[rows < of.array.shape[0]], columns[columns < of.array.shape[1]])].reshape(-1)
    places = BOX(to + np.arange(data.size) * 2)

    def land() -> None:
        cta.write(places, data.reshape(-1, 1).view(np.uint8))
        cta.barrier(barrier).arrive(0, came=data.nbytes)

    cta.copies.append(land)
    if not cta.late:
        cta.copies.pop()()


def _warpgroup_mma(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """HGMMA: a warp's 16 rows of D, from matrices in shared memory that two descriptors name; with gsb0 it ends a
    group, which is all that one into RZ does."""
    ends = any(each.text == "gsb0" for each in code.operands)
    if code.operands[0].number == ZERO:
        warp.products.append([])
        return
    units = warp.cta.units.get(code.opcode)
    if not isinstance(units, SharedUnits) or not acting.all():
        raise DeviceError(f"matrix instruction {code.text} is not one of the kernel's, or not of the whole warp")
    d, matrices, c, *rest = code.operands
    first = int(re.findall(r"\d+", matrices.text)[0])
    words = [int(warp.ur[first + i] | warp.ur[first + i + 1] << 32) for i in (0, 2)]
    without = any(each.kind == "UP" and not warp.predicate(each) for each in rest)
    lanes = slice(warp.number % 4 * LANES, (warp.number % 4 + 1) * LANES)
    rows, columns = (place.reshape(-1, units.d.registers)[lanes].reshape(-1) for place in units.d.places)
    count = units.d.registers
    held = np.zeros((LANES, count), np.int64) if without else _registers(warp, c, units.d)
    depth, width = units.b
    node = Multiplied(
        held.reshape(-1), np.zeros((LANES // 2, depth), np.int64), np.zeros((depth, width), np.int64),
        rows - rows.min(), columns,
    )  # fmt: skip

    def read() -> None:
        turned = [f"tnsp{name}" in matrices.text for name in "AB"]
        node.a[:] = warp.cta.read(_places(words[0], units.a, turned[0]))[rows.min() : rows.min() + LANES // 2]
        node.b[:] = warp.cta.read(_places(words[1], (width, depth), turned[1])).T

    warp.products[-1].append(read)
    if not warp.cta.late:
        warp.products[-1].pop()()
    if ends:
        warp.products.append([])
    made = warp.cta.sums.new(node, LANES * count).reshape(LANES, count)
    for number in range(count):
        warp.put(CodeOperand("R", d.number + number), made[:, number], acting)


def _places(word: int, shape: tuple[int, int], turned: bool) -> Numbers:
    """The shared address of each element (mn, k) of a matrix that a descriptor names."""
    fields = descriptor("wgmma.matrix").decode(word)
    start, lbo, sbo = (int(str(fields[name])) for name in ("start", "LBO", "SBO"))
    (swizzle,) = fields["swizzle"] if isinstance(fields["swizzle"], tuple) else (fields["swizzle"],)
    plain, swizzled = _matrix(shape, int(swizzle), lbo, sbo, turned)
    return np.asarray(swizzled(start + plain))


@cache
def _matrix(shape: tuple[int, int], swizzle: int, lbo: int, sbo: int, turned: bool) -> tuple[Numbers, Swizzle]:
    """The offsets of a matrix' elements before the swizzle, which is of addresses, and the swizzle."""
    mn, k = shape
    major, given = ("mn_major", lbo) if turned else ("k_major", None)
    of = shared_matrix(mn, k, 16, swizzle, major=major, lbo=given, sbo=sbo)
    plain = replace(of, layout=replace(of.layout, swizzle=Swizzle(0, 0, 0)))
    return np.asarray(plain.bit(*np.indices(shape))) // 8, of.layout.swizzle


def _await_products(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """WARPGROUP.DEPBAR: all groups of matrix instructions but the last n are done."""
    if "DEPBAR" in modifiers:
        done = max(len(warp.products) - 1 - code.operands[1].number, 0)
        for group in warp.products[:done]:
            for read in group:
                read()
        del warp.products[:done]


def _load(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """LDG of one word or more."""
    d, at = code.operands
    words = next((int(each) // 32 for each in modifiers if each in ("64", "128")), 1)
    lanes = np.flatnonzero(acting)
    source, places = warp.cta.memory.bytes_at(warp.address(at)[lanes], 4 * words)
    read = source[places[:, None] + np.arange(4 * words)].view(np.uint32)
    for number in range(words):
        value = np.zeros(LANES, np.int64)
        value[lanes] = read[:, number]
        warp.put(CodeOperand("R", d.number + number), value, acting)


def _shared_word(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """LDS and STS of a word."""
    one, other = code.operands
    lanes = np.flatnonzero(acting)
    if code.name == "STS":
        words = np.broadcast_to(warp.value(other), LANES)[lanes].astype(np.uint32)
        warp.cta.write(warp.address(one)[lanes], words.reshape(-1, 1).view(np.uint8))
        return
    places, value = warp.address(other), np.zeros(LANES, np.int64)
    value[lanes] = warp.cta.read(places[lanes]) | warp.cta.read(places[lanes] + 2) << 16
    warp.put(one, value, acting)


def _atomic(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """ATOMG.ADD: what was there before comes back."""
    if "ADD" not in modifiers:
        raise DeviceError(f"instruction {code.text}: a wait has run out, or it is none that is known here")
    _, d, at, value = code.operands
    size = 8 if "64" in modifiers else 4
    added, before = np.broadcast_to(warp.value(value, size == 8), LANES), np.zeros(LANES, np.int64)
    for lane in np.flatnonzero(acting):
        to, place = warp.cta.memory.bytes_at(warp.address(at)[[lane]], size)
        word = to[place[0] : place[0] + size].view(np.uint64 if size == 8 else np.uint32)
        before[lane] = int(word[0])
        word[0] = (int(word[0]) + int(added[lane])) % (1 << 8 * size)
    warp.put(d, before, acting)


def _count(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """RED.ADD: an atomic addition of which nothing comes back."""
    nothing = CodeOperand("R", ZERO)
    _atomic(warp, replace(code, operands=(nothing, nothing, *code.operands)), modifiers, acting)


ACTIONS: dict[str, Action] = {
    "IADD3": _add3, "IMAD": _multiply_add, "LEA": _lea, "LOP3": _lop3, "PLOP3": _plop3, "SHF": _shift,
    "ISETP": _compare, "MOV": _move, "PRMT": _permute, "SEL": _select, "VIADD": _add, "P2R": _gather, "R2P": _scatter,
    "VOTE": _vote, "S2R": _special, "CS2R": _special, "LDC": _move, "R2UR": _move, "NOP": _nothing,
    "BSSY": _nothing, "BSYNC": _nothing, "BAR": _meet, "BRA": _branch, "EXIT": _exit, "LDGSTS": _copy,
    "LDGDEPBAR": _commit, "DEPBAR": _await_copies, "LDSM": _load_matrices, "HMMA": _mma, "FADD": _float_add,
    "STG": _store, "RED": _count, "REDG": _count, "STL": _spill, "LDL": _refill, "LDS": _shared_word,
    "STS": _shared_word, "LDG": _load, "ATOMG": _atomic, "ELECT": _elect, "POPC": _ones, "FLO": _highest,
    "VIADDMNMX": _add_and_limit, "SYNCS": _phase, "UTMALDG": _copy_box, "HGMMA": _warpgroup_mma,
    "WARPGROUP": _await_products, "USETMAXREG": _registers_granted,
}  # fmt: skip
"""What each opcode does; those of the uniform datapath do the same with the warp's registers."""
ACTIONS |= {
    name: ACTIONS[same]
    for name, same in {
        "UIADD3": "IADD3", "UIMAD": "IMAD", "ULEA": "LEA", "ULOP3": "LOP3", "UPLOP3": "PLOP3", "USHF": "SHF",
        "UISETP": "ISETP", "UMOV": "MOV", "USEL": "SEL", "UPRMT": "PRMT", "S2UR": "S2R", "ULDC": "MOV", "VOTEU": "VOTE",
        "UPOPC": "POPC", "UFLO": "FLO",
    }.items()
}  # fmt: skip
ACTIONS |= dict.fromkeys(("YIELD", "WARPSYNC", "FENCE", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "BREAK"), _nothing)
