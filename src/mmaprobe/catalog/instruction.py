"""The record of one instruction, and its batch shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief
from mmaprobe.showing import Row, Showing

_ID = re.compile(r"([^{}]*)(?:\{([^{}]*)\})?")
_TOKEN = re.compile(r"[^\s\"'`;\\%$#@!&|<*?\x00-\x1f]{1,1000}")
"""Ids, opcodes and modifiers go into the source of kernels: nothing in them ends a text, a statement or a comment."""
_BIT_LIST = re.compile(r"\[([01,]+)\]")


RANDOM_FORMATS = ("u8", "u16", "u32")
"""What an operand of random bits may be."""


def spell(opcode: str, modifiers: tuple[tuple[str, str], ...]) -> str:
    """The id: the opcode, then the modifiers in braces, keys sorted."""
    inside = ",".join(f"{key}={value}" if value else key for key, value in sorted(modifiers))
    return f"{opcode}{{{inside}}}" if inside else opcode


def split(identifier: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Opcode and modifiers; a bit list may be written as the assembler prints it, ``neg=[1,0,0]``.

    UsageError for what is no text, or whose braces do not close once at its end.
    """
    found = _ID.fullmatch(identifier) if isinstance(identifier, str) and len(identifier) <= 1000 else None
    if not found:
        raise UsageError(
            f"instruction {brief(identifier)}: an id is an opcode and its modifiers, opcode{{key=value,key}}"
        )
    inside = _BIT_LIST.sub(lambda bits: bits[1].replace(",", ""), found[2] or "")
    parts = [part.strip() for part in inside.split(",") if part.strip()]
    pairs = tuple(sorted((part.partition("=")[0], part.partition("=")[2]) for part in parts))
    if len(dict(pairs)) < len(pairs):
        raise UsageError(f"instruction {brief(identifier)}: a modifier is there twice")
    return found[1], pairs


@dataclass(frozen=True, repr=False)
class Instruction(Showing):
    """One matrix or dot-product instruction with its modifiers.

    ``blocks`` counts independent MFMA blocks (an extra axis after the batch
    where above 1); ``chunk`` is the number of lanes one sparse metadata item
    covers (0: dense), ``unordered`` whether it may name the later lane first
    (catalog/sparsity.py); ``scale_size`` is the number of lanes that share a scale.
    ``random`` is the format of the random bits of a result, an operand of stochastic rounding.
    ``multiply`` says how bits are multiplied, ``saturates`` whether an integer
    result is limited to its range instead of wrapped.
    ``modifiers`` are sorted (key, value) pairs, defaults left out.
    """

    id: str
    opcode: str
    family: str
    m: int
    n: int
    k: int
    a: str
    b: str
    c: str | None
    d: str
    modifiers: tuple[tuple[str, str], ...] = ()
    blocks: int = 1
    chunk: int = 0
    unordered: bool = False
    scale: str | None = None
    scale_size: int = 0
    multiply: Literal["exact", "and", "xor"] = "exact"
    saturates: bool = False
    controls: tuple[str, ...] = ()  # which control state the instruction may obey: rounding, ftz, daz
    requires: tuple[str, ...] = ()  # CPU features
    takes: tuple[str, ...] = ()  # roles of the modifiers resolved by rule (catalog.modifiers)
    source: str = ""
    random: str | None = None

    def __post_init__(self) -> None:
        words = [word for pair in self.modifiers for word in pair if word]
        for word in (self.id, self.opcode, *words):
            if not isinstance(word, str) or not _TOKEN.fullmatch(word):
                raise UsageError(f"instruction {brief(self.id)}: {brief(word)} is no word of an id")
        for name in (self.a, self.b, self.d, self.c, self.scale):
            if name is not None:
                formats.get(name)
        if min(self.m, self.n, self.k, self.blocks) < 1:
            raise UsageError(f"{self.id}: shape {self.m}x{self.n}x{self.k} with {self.blocks} blocks")
        if self.chunk not in (0, 2, 4, 8) or self.k % (self.chunk or 1):
            raise UsageError(f"{self.id}: a metadata item covers 2, 4 or 8 lanes that divide K = {self.k}")
        if self.multiply not in ("exact", "and", "xor"):
            raise UsageError(f"{self.id}: multiply is {brief(self.multiply)}; it is one of exact, and, xor")
        if self.multiply != "exact" and (self.a, self.b) != ("b1", "b1"):
            raise UsageError(f"{self.id}: multiply is {self.multiply!r}, which only bits take, not {self.a}, {self.b}")
        if bool(self.scale) != bool(self.scale_size):
            raise UsageError(f"{self.id}: a scale format goes with a scale size")
        if self.random is not None and self.random not in RANDOM_FORMATS:
            raise UsageError(f"{self.id}: random is {brief(self.random)}; it is one of {', '.join(RANDOM_FORMATS)}")

    def in_a_line(self) -> str:
        """Its id, formats and shape."""
        sparse = ", sparse A" if self.chunk else ""
        scales = f", {self.scale} scales" if self.scale else ""
        many = f", {self.blocks} blocks" if self.blocks > 1 else ""
        of = f"{self.a} x {self.b}" + (f" + {self.c}" if self.c else "")
        return f"instruction {self.id}: {of} -> {self.d}, {self.m}x{self.n}x{self.k}{many}{scales}{sparse}"

    def as_row(self) -> Row:
        """What can be filtered by."""
        names = ("id", "family", "m", "n", "k", "a", "b", "c", "d", "scale", "scale_size", "blocks", "source")
        return {name: getattr(self, name) for name in names} | {"sparse": bool(self.chunk)}

    @property
    def modifier(self) -> dict[str, str]:
        """The modifiers by name."""
        return dict(self.modifiers)

    @property
    def lane_wise(self) -> bool:
        """True where M = N = 1: the unit's lanes are consecutive items of the batch."""
        return self.m == self.n == 1

    @property
    def selected(self) -> int:
        """How many lanes are multiplied: K, or half of them where A is sparse."""
        return self.k // 2 if self.chunk else self.k

    def shapes(self, batch: int) -> dict[str, tuple[int, ...]]:
        """Shape of each operand for ``batch`` items; absent operands are left out."""
        lead = (batch, self.blocks) if self.blocks > 1 else (batch,)
        out: dict[str, tuple[int, ...]] = {"a": (*lead, self.m, self.selected), "b": (*lead, self.k, self.n)}
        if self.c is not None:
            out["c"] = (*lead, self.m, self.n)
        if self.scale is not None:
            out["scale_a"] = (*lead, self.m, self.k // self.scale_size)
            out["scale_b"] = (*lead, self.k // self.scale_size, self.n)
        if self.chunk:
            out["metadata"] = (*lead, self.m, self.k // self.chunk)
        if self.random is not None:
            out["random"] = (*lead, self.m, self.n)
        return out

    def formats(self) -> dict[str, formats.Format]:
        """Format of each operand that has one, and of the result under ``d``."""
        named: dict[str, Any] = {"a": self.a, "b": self.b, "c": self.c, "d": self.d}
        named |= {"scale_a": self.scale, "scale_b": self.scale, "random": self.random}
        return {role: formats.get(name) for role, name in named.items() if name is not None}
