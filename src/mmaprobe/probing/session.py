"""A conversation with one device about one instruction: vectors in, exact values out, costs counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, run_vectors, vectors_per_tile
from mmaprobe.evidence.records import Finding, Status, Witness
from mmaprobe.formats import Format
from mmaprobe.probing.structure import Leaf, Node
from mmaprobe.probing.terms import ContradictionError, UnrepresentableError, Value, code_of, say, split, values_of
from mmaprobe.probing.vectors import Vector, pack

Fact = Callable[["Session"], Any]


@dataclass
class Session:
    """Runs vectors on a device twice (in two orders), counts tiles and launches, keeps witnesses.

    ``leaves`` are what a sum is made of: ``"c"`` where the instruction takes
    C, and the lanes 0 .. K-1 (their products).  ``unstable`` says how the device
    contradicted itself, if it did.  ``facts`` names what several questions need
    to know first, and who finds it out (``suite.FACTS``).
    """

    device: Device
    instruction: Instruction
    facts: Mapping[str, Fact]
    seed: int = 0
    tiles: int = 0
    launches: int = 0
    witnesses: list[Witness] = field(default_factory=list)
    unstable: str | None = None
    _known: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def formats(self) -> dict[str, Format]:
        return self.instruction.formats()

    @property
    def d(self) -> Format:
        return self.formats["d"]

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        return (*(("c",) if self.instruction.c else ()), *range(self.instruction.k))

    @property
    def is_float(self) -> bool:
        return self.d.is_float

    def vector(self, terms: Mapping[Leaf, Fraction | int], rest: Fraction | int = 0) -> Vector:
        """The vector whose leaves have these exact values, every other leaf ``rest``.

        Raises UnrepresentableError naming the value that the formats lack.
        """
        lanes = [self.product(Fraction(terms.get(k, rest))) for k in range(self.instruction.k)]
        c = self.operand("c", Fraction(terms.get("c", rest))) if self.instruction.c else None
        return Vector(tuple(a for a, _ in lanes), tuple(b for _, b in lanes), c)

    def product(self, value: Fraction) -> tuple[int, int]:
        """Operands whose product is exactly ``value``."""
        found = split(self.formats["a"], self.formats["b"], value)
        if found is None:
            raise UnrepresentableError(f"no {self.instruction.a} x {self.instruction.b} product is {say(value)}")
        return found

    def operand(self, name: str, value: Fraction) -> int:
        """The code of ``value`` in the format of operand ``name``."""
        code = code_of(self.formats[name], value)
        if code is None:
            raise UnrepresentableError(f"{self.formats[name].name} has no {say(value)}")
        return code

    def ask(self, vectors: Sequence[Vector]) -> list[int]:
        """The device's codes, asked twice in two orders; ContradictionError if the two differ."""
        if not vectors:
            return []
        first = self._run(vectors)
        second = self._run(vectors[::-1])[::-1]
        for vector, one, other in zip(vectors, first, second, strict=True):
            if one != other:
                self.note(vector, one, f"asked again in another order: {other:#x}")
                self.unstable = f"the same vector gave {one:#x} and {other:#x}"
                raise ContradictionError(self.unstable)
        return first

    def values(self, vectors: Sequence[Vector]) -> list[Value]:
        """Exact values of the answers; None for NaN and infinities."""
        return self.decode(self.ask(vectors))

    def decode(self, codes: Sequence[int]) -> list[Value]:
        """Exact values of result codes."""
        return values_of(self.d, np.array(codes, dtype=self.d.dtype))

    def sums(self, terms: Iterable[Mapping[Leaf, Fraction | int]], rest: Fraction | int = 0) -> list[Value]:
        """``values`` of vectors given by their leaves."""
        return self.values([self.vector(t, rest) for t in terms])

    def try_vector(self, terms: Mapping[Leaf, Fraction | int], rest: Fraction | int = 0) -> Vector | None:
        """``vector``, or None where the formats cannot express it."""
        try:
            return self.vector(terms, rest)
        except UnrepresentableError:
            return None

    def _run(self, vectors: Sequence[Vector]) -> list[int]:
        self.launches += 1
        self.tiles += -(-len(vectors) // vectors_per_tile(self.instruction))
        answer = run_vectors(self.device, self.instruction, pack(self.instruction, vectors))
        return [int(code) for code in answer]

    def run_tiles(self, tiles: Batch) -> Bits:
        """D of whole tiles, once."""
        self.launches += 1
        self.tiles += tiles.size
        return self.device.run(self.instruction, tiles)

    def note(self, vector: Vector, d: int, text: str) -> None:
        """Keep a witness of the current question."""
        self.witnesses.append(Witness(vector.a, vector.b, vector.c, d, note=text))

    def witness(self, terms: Mapping[Leaf, Fraction | int], text: str, rest: Fraction | int = 0) -> None:
        """Ask one vector and keep it as a witness."""
        vector = self.vector(terms, rest)
        self.note(vector, self.ask([vector])[0], text)

    def fact(self, name: str) -> Any:
        """What ``facts`` can find out under this name, asked once a session."""
        if name not in self._known:
            self._known[name] = self.facts[name](self)
        return self._known[name]

    @property
    def high(self) -> int:
        """Anchor exponent m (``limits.anchor_exponent``)."""
        return int(self.fact("high"))

    @property
    def low(self) -> int:
        """Exponent of the lowest unit (``limits.unit_exponent``)."""
        return int(self.fact("low"))

    @property
    def window(self) -> int:
        """Bits between the anchor and the lowest unit: a probe sees no further."""
        return self.high - self.low

    @property
    def tree(self) -> Node | None:
        """The summation tree (``summation_tree.measure``), None where it could not be read."""
        tree: Node | None = self.fact("measured").tree
        return tree

    @property
    def rounding(self) -> tuple[str, ...]:
        """The result roundings that fit, of the eleven; empty where none could be read."""
        return tuple(self.fact("rounding"))

    @property
    def fault(self) -> str | None:
        """What the device gets wrong that every unit gets right (``limits.fault``)."""
        fault: str | None = self.fact("fault")
        return fault

    def finding(self, question: str, status: Status, answer: Any, text: str) -> Finding:
        """A finding with this question's witnesses; ``probe`` fills in the costs."""
        return Finding(question, status, answer, text, tuple(self.witnesses))
