"""What others call an instruction, read by the rules of ``spellings.toml``, and an id with parts left out.

A reading is a glob of ids, or what an instruction becomes in machine code; ``lookup`` finds what there is of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.toml import parsed, shipped

FILE = "spellings.toml"
SCHEMA = 1
"""What ``spellings.toml`` says its schema is."""
LOOSE = "an id with parts left out"
MOST_CHARACTERS = 200
"""Of a name that is read; what is longer is none."""


@dataclass(frozen=True)
class NameReading:
    """What a name may mean: ids that match ``glob``, of those that become ``lowers`` where that is not empty."""

    what: str
    glob: str
    lowers: str = ""


@dataclass(frozen=True, eq=False)
class Spelling:
    """A rule: names that match ``pattern`` stand for ``ids``, or for what becomes ``lowers``; ``dots``: what ids have
    for a dot in a name."""

    what: str
    pattern: str
    formats: Mapping[str, str]
    ids: Sequence[str] = ("*",)
    lowers: str = ""
    words: Mapping[str, Mapping[str, str]] | None = None
    dots: str = "."
    source: str = ""

    @cached_property
    def whole(self) -> re.Pattern[str]:
        """The pattern, capitals or not."""
        return re.compile(self.pattern, re.IGNORECASE)

    def read(self, name: str) -> Iterator[NameReading]:
        """What the name means by this rule; nothing where it does not match."""
        found = self.whole.fullmatch(name)
        if found is not None:
            filled = {group: self._word(group, text or "") for group, text in found.groupdict().items()}
            for glob in self.ids:
                yield NameReading(self.what, glob.format_map(filled), self.lowers.format_map(filled).upper())

    def _word(self, group: str, text: str) -> str:
        low = text.lower()
        return (self.words or {}).get(group, {}).get(low, self.formats.get(low, low.replace(".", self.dots)))


@cache
def spellings() -> tuple[Spelling, ...]:
    """The rules that ship."""
    data: dict[str, Any] = parsed(FILE, shipped("mmaprobe.catalog")[FILE], SCHEMA)
    return tuple(
        Spelling(formats=data["formats"], **{**rule, "pattern": rule["pattern"].replace("%format%", data["format"])})
        for rule in data["spelling"]
    )


def readings(name: str) -> Iterator[NameReading]:
    """What a name may mean by any rule; operands behind it, and dots in place of what was left out, are passed over."""
    bare = name.strip()[:MOST_CHARACTERS]
    opcode = (bare if "<" in bare else bare.partition(" ")[0]).rstrip(".…;,")
    for rule in spellings():
        yield from rule.read(opcode)
    if len(parts_of(opcode)) > 1 and not set("*?[") & set(opcode):
        yield NameReading(LOOSE, "*" + "*.".join(parts_of(opcode)) + "*")


def parts_of(name: str) -> list[str]:
    """The parts of an id in their order."""
    return [part for part in re.split(r"\.", name.lower()) if part]


def fits(reading: NameReading, made: Instruction) -> bool:
    """Whether an id that matches the glob is meant: with parts left out its own parts stand in their order, and no
    modifier is one of those."""
    if reading.what != LOOSE:
        return True
    if made.modifiers:
        return False
    left = iter(parts_of(made.opcode))
    return all(part in left for part in parts_of(reading.glob.replace("*", "")))


def least(found: Sequence[Instruction]) -> Sequence[Instruction]:
    """Of instructions that a name with parts left out may mean the one to whose parts all others add some; else all."""
    for made in found:
        own = parts_of(made.opcode)
        if all(_adds(own, parts_of(other.opcode)) for other in found):
            return [made]
    return found


def _adds(own: Sequence[str], other: Sequence[str]) -> bool:
    left = iter(other)
    return all(part in left for part in own)


def of_size(found: Sequence[Instruction], lowers: str) -> Sequence[Instruction]:
    """Of instructions that become something those of whose size its name speaks (``16816``, ``8x8x4``); else all."""
    sizes = lowers.split(".")
    own = [made for made in found if {f"{made.m}{made.n}{made.k}", f"{made.m}X{made.n}X{made.k}"} & set(sizes)]
    return own or found
