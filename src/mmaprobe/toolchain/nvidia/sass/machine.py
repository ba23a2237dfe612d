"""A CTA of a compiled kernel run instruction by instruction, its matrix instructions on symbols (``sass.sums``).

Every warp runs alone until it meets a barrier, the others stand still meanwhile.  A copy to shared memory is done
``late``, when its group is waited for, or at once: a kernel that reads a slot too soon is wrong in the first way, one
that fills a slot that is still read in the second.  Shared memory begins as numbers of no element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.fragment import Fragment
from mmaprobe.errors import DeviceError
from mmaprobe.toolchain.nvidia.sass.integers import COMPARE, JOIN, MASK, Values, funnel, lop3, permute, signed
from mmaprobe.toolchain.nvidia.sass.listing import ZERO, MachineCode, CodeListing, CodeOperand
from mmaprobe.toolchain.nvidia.sass.sums import Added, Multiplied, Numbers, Sums

LANES = 32
"""Threads of a warp."""
MOST_STEPS = 1_000_000
"""Instructions that a warp may run: a kernel that goes on is one that does not end."""
POISON = 0xFF
"""Bytes of shared memory that nothing was written to."""
LOCAL = 1 << 12
"""Bytes of local memory of a thread, where registers are spilled to."""
BARRIER = "barrier"
"""What a warp says when it waits for the others of its CTA."""


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


@dataclass
class Cta:
    """One CTA: its code, the constant bank, and what it shares."""

    listing: CodeListing
    constants: bytes
    memory: GlobalMemory
    sums: Sums
    units: dict[str, Units]
    threads: int
    index: int
    shared: NDArray[np.uint8]
    late: bool
    backwards: bool = False

    def run(self) -> None:
        """Until all warps have ended; DeviceError where one does what no kernel of ours should."""
        warps = [Warp(self, number) for number in range(self.threads // LANES)]
        running = {warp: warp.run() for warp in (reversed(warps) if self.backwards else warps)}
        while running:
            said = {warp: next(steps, None) for warp, steps in running.items()}
            running = {warp: running[warp] for warp, what in said.items() if what is not None}


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

    def run(self) -> Iterator[str]:
        """Step until every thread has ended; yields where it waits for other warps."""
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
            if code.name == "BAR":
                yield BARRIER
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
                self.ur[operand.number] = uniform(value)
            case "UP":
                self.up[operand.number] = uniform(value)
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
    if "WIDE" in modifiers:
        warp.put_wide(d, x * y + warp.value(c, wide=True), acting)
        return
    if "HI" in modifiers:
        product = np.asarray(x).astype(object) * np.asarray(y).astype(object)
        warp.put(d, (np.asarray(product // (1 << 32)).astype(np.int64) + warp.value(c)) & MASK, acting)
        return
    total = (x * y & MASK) + warp.value(c)
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
        _write_shared(warp.cta, *move)


def _write_shared(cta: Cta, to: Numbers, data: NDArray[np.uint8]) -> None:
    places = to[:, None] + np.arange(data.shape[1])
    if places.min() < 0 or places.max() >= len(cta.shared):
        raise DeviceError(f"shared address {int(to[0]):#x} is outside of the {len(cta.shared)} bytes of the CTA")
    cta.shared[places] = data


def _commit(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    warp.groups.append(warp.copies)
    warp.copies = []


def _await_copies(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """DEPBAR.LE SB0, n: all groups of copies but the last n are done."""
    done = len(warp.groups) - code.operands[1].number
    for group in warp.groups[: max(done, 0)]:
        for move in group:
            _write_shared(warp.cta, *move)
    del warp.groups[: max(done, 0)]


def _load_matrices(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """LDSM: four 8 x 8 matrices of 16-bit elements whose rows lie at the addresses of eight lanes each."""
    d, at = code.operands
    rows = warp.address(at)
    if rows.min() < 0 or rows.max() + 16 > len(warp.cta.shared):
        raise DeviceError(f"shared address {int(rows.max()):#x} is outside of the CTA's {len(warp.cta.shared)} bytes")
    count = next((int(each) for each in modifiers if each in ("2", "4")), 1)
    read = warp.cta.shared[rows[:, None] + np.arange(16)].view(np.uint16).reshape(4, 8, 8).astype(np.int64)
    lane = np.arange(LANES)
    for number in range(count):
        tile = read[number].T if "MT88" in modifiers else read[number]
        low, high = (tile[lane // 4, lane % 4 * 2 + half] for half in (0, 1))
        warp.put(CodeOperand("R", d.number + number), low | high << 16, acting)


def _mma(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """HMMA: handles of D for those of C and the numbers of A's and B's elements."""
    units = warp.cta.units.get(code.opcode)
    if units is None or not acting.all():
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
    """Whether a predicate holds in any lane, or in all."""
    d, asked = code.operands
    held = np.broadcast_to(warp.predicate(asked), LANES)[acting]
    warp.put(d, np.bool_(held.any() if "ANY" in modifiers else held.all()), acting)


def _count(warp: Warp, code: MachineCode, modifiers: frozenset[str], acting: Values) -> None:
    """RED.ADD of 64 bits."""
    at, value = code.operands
    added = np.broadcast_to(warp.value(value, wide=True), LANES)
    for lane in np.flatnonzero(acting):
        to, place = warp.cta.memory.bytes_at(warp.address(at)[[lane]], 8)
        to[place[0] : place[0] + 8].view(np.uint64)[0] += np.uint64(added[lane])


ACTIONS: dict[str, Action] = {
    "IADD3": _add3, "IMAD": _multiply_add, "LEA": _lea, "LOP3": _lop3, "PLOP3": _plop3, "SHF": _shift,
    "ISETP": _compare, "MOV": _move, "PRMT": _permute, "SEL": _select, "VIADD": _add, "P2R": _gather, "R2P": _scatter,
    "VOTE": _vote, "S2R": _special, "CS2R": _special, "LDC": _move, "R2UR": _move, "LDS": _nothing, "NOP": _nothing,
    "BSSY": _nothing, "BSYNC": _nothing, "BAR": _nothing, "BRA": _branch, "EXIT": _exit, "LDGSTS": _copy,
    "LDGDEPBAR": _commit, "DEPBAR": _await_copies, "LDSM": _load_matrices, "HMMA": _mma, "FADD": _float_add,
    "STG": _store, "RED": _count, "REDG": _count, "STL": _spill, "LDL": _refill,
}  # fmt: skip
"""What each opcode does; those of the uniform datapath do the same with the warp's registers."""
ACTIONS |= {
    name: ACTIONS[same]
    for name, same in {
        "UIADD3": "IADD3", "UIMAD": "IMAD", "ULEA": "LEA", "ULOP3": "LOP3", "UPLOP3": "PLOP3", "USHF": "SHF",
        "UISETP": "ISETP", "UMOV": "MOV", "USEL": "SEL", "UPRMT": "PRMT", "S2UR": "S2R", "ULDC": "MOV", "VOTEU": "VOTE",
    }.items()
}  # fmt: skip
