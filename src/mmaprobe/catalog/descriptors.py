"""Descriptors of wgmma and tcgen05: named fields to the integer that the instruction takes, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from mmaprobe.catalog.layouts import sheets
from mmaprobe.errors import UsageError, near


@dataclass(frozen=True)
class BitField:
    """``bits`` bits from bit ``low``; holds value / ``unit``, or the code of a word of ``values``.

    A ``window`` drops the bits of an address from that bit upward first.
    """

    name: str
    low: int
    bits: int
    unit: int = 1
    window: int = 0
    values: tuple[tuple[str, int], ...] = ()

    def encode(self, value: int | str, where: str) -> int:
        """The field's bits in place; UsageError where the value does not fit."""
        known = dict(self.values)
        if known:
            if str(value) not in known:
                raise UsageError(f"{where}: {self.name} is one of {', '.join(known)}; {value!r} came")
            return known[str(value)] << self.low
        number = int(value) % (1 << self.window) if self.window else int(value)
        code, rest = divmod(number, self.unit)
        if rest or not 0 <= code < 1 << self.bits:
            unit = f" in steps of {self.unit}" if self.unit > 1 else ""
            raise UsageError(f"{where}: {self.name} is 0 to {((1 << self.bits) - 1) * self.unit}{unit}; {value} came")
        return code << self.low

    def decode(self, word: int) -> int | tuple[str, ...]:
        """What a word's bits say: the number, or the words that the code may stand for."""
        code = word >> self.low & ((1 << self.bits) - 1)
        return tuple(name for name, value in self.values if value == code) if self.values else code * self.unit


@dataclass(frozen=True)
class Descriptor:
    """The fields of one descriptor of ``bits`` bits, and the bits that are always 1."""

    name: str
    bits: int
    fields: tuple[BitField, ...]
    constant: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        taken = self.constant
        for field in self.fields:
            mask = ((1 << field.bits) - 1) << field.low
            if mask & taken or mask >> self.bits or any(code >> field.bits for _, code in field.values):
                raise UsageError(f"descriptor {self.name}: field {field.name} overlaps another or does not fit")
            taken |= mask

    def encode(self, **values: int | str) -> int:
        """The descriptor; a field that is not named is 0."""
        known = {field.name: field for field in self.fields}
        for name in values:
            if name not in known:
                raise UsageError(f"descriptor {self.name} has no field {name!r}{near(name, known)}")
        return self.constant | sum(known[name].encode(value, self.name) for name, value in values.items())

    def decode(self, word: int) -> dict[str, int | tuple[str, ...]]:
        """Every field of a descriptor; UsageError where bits are set that belong to none."""
        every = self.constant | sum(((1 << field.bits) - 1) << field.low for field in self.fields)
        if word & ~every or word & self.constant != self.constant:
            raise UsageError(f"descriptor {self.name}: {word:#x} is none")
        return {field.name: field.decode(word) for field in self.fields}


@cache
def descriptors() -> dict[str, Descriptor]:
    """Every descriptor of the shipped files, by name."""
    made = (_descriptor(table) for sheet in sheets() for table in sheet.data.get("descriptor", ()))
    return {descriptor.name: descriptor for descriptor in made}


def _descriptor(table: dict[str, Any]) -> Descriptor:
    fields = tuple(
        BitField(**{**field, "values": tuple((str(name), code) for name, code in field.get("values", {}).items())})
        for field in table["field"]
    )
    return Descriptor(
        table["name"], table["bits"], fields, 1 << table["constant"] if "constant" in table else 0, table["source"]
    )


def descriptor(name: str) -> Descriptor:
    """The descriptor called ``name``: ``wgmma.matrix``, ``tcgen05.instruction``, ...; UsageError otherwise."""
    known = descriptors()
    if name not in known:
        raise UsageError(f"unknown descriptor {name!r}{near(name, known)}")
    return known[name]
