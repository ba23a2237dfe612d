"""Where the elements of one operand lie: lane, register and bit of each, and arrays packed that way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.formula import Formula
from mmaprobe.catalog.layout_algebra import Layout, fit, joined
from mmaprobe.errors import UsageError, near

LayoutStatus = Literal["checked", "single source", "open"]
STATUSES = ("checked", "single source", "open")
Array = NDArray[Any]
NOTHING, ALWAYS = Formula("0"), Formula("1")


@dataclass(frozen=True)
class Fragment:
    """One operand's elements in the registers of a wave, or in the lanes and columns of tensor memory.

    A place is (lane, slot): slot s of a lane occupies the ``bits`` bits from
    bit ``s * bits`` upward of the lane's registers, ``register_bits`` each,
    lowest first (elements may cross from one register to the next).  The
    element of ``width`` bits stands ``shift`` bits above the low end of its
    slot.  ``at`` gives the array index that a place holds, a formula an axis
    in ``lane``, ``slot`` and the names of ``choices``; where ``active`` is
    there and 0, the place holds nothing.  Each element has ``replication``
    places, all of which must hold it.  In tensor memory a register is one
    32-bit column; of a pair of CTAs the second has lanes 128 to 255.
    ``choices`` are what the instruction's immediates select (thread id, byte
    id, selector, op_sel): the values allowed, the one in force first.  ``claim``
    names it among the layouts that sources claim where which is right is open.
    """

    name: str
    operand: str
    space: str
    lanes: int
    slots: int
    bits: int
    width: int
    axes: tuple[tuple[str, int], ...]
    at: tuple[tuple[str, Formula], ...]
    shift: Formula = NOTHING
    active: Formula | None = None
    choices: tuple[tuple[str, tuple[int, ...]], ...] = ()
    register_bits: int = 32
    replication: int = 1
    status: LayoutStatus = "checked"
    source: str = ""
    note: str = ""
    claim: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise UsageError(f"{self.name}: status {self.status!r}; it is one of {', '.join(STATUSES)}")
        if tuple(name for name, _ in self.axes) != tuple(name for name, _ in self.at):
            raise UsageError(f"{self.name}: formulas of {[n for n, _ in self.at]} for axes {[n for n, _ in self.axes]}")
        places = {"lane", "slot", *dict(self.choices)}
        for formula, known in [
            *((formula, places) for _, formula in self.at),
            (self.active or ALWAYS, places),
            (self.shift, set(dict(self.choices))),
        ]:
            if formula.names - known:
                raise UsageError(f"{self.name}: nothing binds {', '.join(sorted(formula.names - known))}")

    @property
    def registers(self) -> int:
        """Registers a lane (columns of tensor memory)."""
        return -(-self.slots * self.bits // self.register_bits)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the operand's array, without the batch."""
        return tuple(size for _, size in self.axes)

    @property
    def per_register(self) -> int:
        """Slots a register; UsageError where elements cross from one register to the next."""
        if self.register_bits % self.bits:
            raise UsageError(f"{self.name}: {self.bits}-bit elements cross registers; use slots")
        return self.register_bits // self.bits

    def choose(self, chosen: dict[str, int]) -> dict[str, int]:
        """Every choice with its value: as given, else the one in force; UsageError for a name or value unknown."""
        known = dict(self.choices)
        for name, value in chosen.items():
            if name not in known:
                raise UsageError(f"{self.name} has no choice {name!r}{near(name, known)}")
            if value not in known[name]:
                raise UsageError(f"{self.name}: {name} is one of {', '.join(map(str, sorted(known[name])))}; {value}?")
        return {name: chosen.get(name, values[0]) for name, values in self.choices}

    @cached_property
    def _places(self) -> dict[str, Array]:
        lane, slot = np.indices((self.lanes, self.slots))
        return {"lane": lane, "slot": slot}

    def held(self, **choices: int) -> Array:
        """Which places hold an element, (lanes, slots)."""
        chosen = self.choose(choices)
        if self.active is None:
            return np.ones((self.lanes, self.slots), bool)
        return np.broadcast_to(self.active(**self._places, **chosen), (self.lanes, self.slots)).astype(bool)

    def coordinates(self, **choices: int) -> dict[str, Array]:
        """The array index at each place, (lanes, slots) an axis; without meaning where nothing is ``held``."""
        chosen = self.choose(choices)
        shape = (self.lanes, self.slots)
        return {axis: np.broadcast_to(f(**self._places, **chosen), shape) for axis, f in self.at}

    def as_layout(self, **choices: int) -> Layout | None:
        """(lane, slot) to the element's number in its array, k the slowest axis, else the first the fastest.

        As CuTe writes a thread-value layout, each mode coalesced; None where places are empty or no layout does it.
        """
        number, step = np.zeros((self.lanes, self.slots), np.int64), 1
        index = self.coordinates(**choices)
        for axis, size in sorted(self.axes, key=lambda each: each[0] == "k"):
            number, step = number + step * index[axis], step * size
        lane, slot = fit(number[:, 0].tolist()), fit(number[0].tolist())
        if lane is None or slot is None or not self.held(**choices).all():
            return None
        return joined(lane, slot) if (number == number[:, :1] + number[:1]).all() else None

    def _indices(self, chosen: dict[str, int]) -> tuple[Array, tuple[Array, ...]]:
        held = self.held(**chosen)
        return held, tuple(index[held] for index in self.coordinates(**chosen).values())

    @staticmethod
    def _of(index: tuple[Array, ...]) -> Any:
        return (Ellipsis, *index)

    def pack(self, codes: Array, **choices: int) -> Array:
        """Registers (..., lanes, registers) of an array of codes (..., *shape); places that hold nothing are 0."""
        codes = np.asarray(codes)
        lead = codes.shape[: codes.ndim - len(self.axes)]
        if codes.shape[len(lead) :] != self.shape:
            raise UsageError(
                f"{self.name}: an array (..., {', '.join(map(str, self.shape))}) is packed; {codes.shape}?"
            )
        held, index = self._indices(choices)
        slots = np.zeros((*lead, self.lanes, self.slots), np.uint64)
        slots[..., held] = codes[self._of(index)].astype(np.uint64) << np.uint64(self.shift(**self.choose(choices)))
        width = np.arange(self.bits, dtype=np.uint64)
        bits = (slots[..., None] >> width & np.uint64(1)).astype(np.uint8).reshape(*lead, self.lanes, -1)
        spare = self.registers * self.register_bits - bits.shape[-1]
        bits = np.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, spare)])
        return np.packbits(bits, axis=-1, bitorder="little").view(f"<u{self.register_bits // 8}")

    def unpack(self, registers: Array, **choices: int) -> Array:
        """The codes (..., *shape) that registers (..., lanes, registers) hold; of several places of one, the last."""
        words = np.ascontiguousarray(registers, f"<u{self.register_bits // 8}")
        if words.shape[-2:] != (self.lanes, self.registers):
            raise UsageError(f"{self.name}: registers (..., {self.lanes}, {self.registers}); {words.shape}?")
        bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")[..., : self.slots * self.bits]
        grid = bits.reshape(*words.shape[:-1], self.slots, self.bits).astype(np.uint64)
        slots = (grid << np.arange(self.bits, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64)
        low = np.uint64(self.shift(**self.choose(choices)))
        codes = slots >> low & np.uint64((1 << self.width) - 1)
        held, index = self._indices(choices)
        out = np.zeros((*words.shape[:-2], *self.shape), np.uint64)
        out[self._of(index)] = codes[..., held]
        return out

    def c(self, axis: str, *, by_register: bool = False) -> str:
        """The index along an axis as C in ``lane`` and ``slot``, or in ``lane``, ``r`` and ``e`` by register."""
        formula = dict(self.at)[axis]
        return (self._by_register(formula) if by_register else formula).c

    def c_held(self, *, by_register: bool = False) -> str:
        """Whether a place holds an element, as C."""
        formula = self.active or ALWAYS
        return (self._by_register(formula) if by_register else formula).c

    def _by_register(self, formula: Formula) -> Formula:
        wide = self.per_register
        if wide == 1:
            return formula.bind({"slot": Formula("r")})
        named = formula.replace(Formula(f"slot // {wide}"), "r").replace(Formula(f"slot % {wide}"), "e")
        return named.bind({"slot": Formula(f"r * {wide} + e")})

    @property
    def elements(self) -> int:
        """Elements of the operand."""
        return prod(self.shape)
