"""One question's conversation with a device: vectors in, exact values out, witnesses kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.evidence.records import Finding, FindingStatus, Witness
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.session.bench import Bench
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.exact_values import (
    ContradictionError,
    UnrepresentableError,
    Value,
    code_of,
    say,
    values_of,
)
from mmaprobe.probing.session.operands import operands_for, pairs_of
from mmaprobe.probing.session.rounds import Asking, Request, wait
from mmaprobe.probing.session.vectors import Vector, pack
from mmaprobe.probing.tree import Leaf

Terms = Mapping[Leaf, Fraction | int]


@dataclass
class ProbeSession:
    """Asks vectors and whole tiles for one question, and keeps its witnesses.

    ``leaves`` are what a sum is made of: ``"c"`` where the instruction takes
    C, and the lanes 0 .. k-1 (their products).  Where A is sparse these are the
    stored elements of A.  ``high`` and ``low``: exponents of the anchor and of the
    lowest unit (``experiments.window``), known before the questions begin.
    """

    bench: Bench
    question: str
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def instruction(self) -> Instruction:
        return self.bench.instruction

    @cached_property
    def formats(self) -> dict[str, Format]:
        return self.instruction.formats()

    @property
    def d(self) -> Format:
        return self.formats["d"]

    @property
    def k(self) -> int:
        """Lanes that are multiplied: K, or half of it where A is sparse."""
        return self.instruction.selected

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        return (*(("c",) if self.instruction.c else ()), *range(self.k))

    @property
    def plain_metadata(self) -> int:
        """The metadata item that keeps the first lanes of its chunk."""
        return legal_items(self.instruction.chunk)[0]

    @property
    def is_float(self) -> bool:
        return self.d.is_float

    @property
    def high(self) -> int:
        """Anchor exponent m (``experiments.window.anchor_exponent``)."""
        return int(self.bench.facts["high"])

    @property
    def low(self) -> int:
        """Exponent of the lowest unit (``experiments.window.unit_exponent``)."""
        return int(self.bench.facts["low"])

    @property
    def complement(self) -> str | None:
        """What a term and its opposite come out as, where they do not cancel (``experiments.window.complement``)."""
        left: str | None = self.bench.facts.get("complement")
        return left

    @property
    def window(self) -> int:
        """Bits between the anchor and the lowest unit: a probe sees no further."""
        return self.high - self.low

    def lowest(self, leaf: Leaf) -> int:
        """Exponent of the lowest term of a leaf: C reaches further down than the narrow formats' products."""
        if leaf != "c":
            return self.low
        return min(self.low, max(self.formats["c"].min_exponent, self.d.min_exponent))

    def window_of(self, leaf: Leaf) -> int:
        """Bits between the anchor and the lowest term of a leaf."""
        return self.high - self.lowest(leaf)

    def vector(self, terms: Terms, rest: Fraction | int = 0) -> Vector:
        """The vector whose leaves have these exact values, every other leaf ``rest``.

        Block scales are 1 where the operands alone can say the values.
        Raises UnrepresentableError naming the value that the formats lack.
        """
        lanes = {leaf: Fraction(value) for leaf, value in terms.items() if isinstance(leaf, int)}
        operands = operands_for(self.instruction, lanes, Fraction(rest))
        c = self.operand("c", Fraction(terms.get("c", rest))) if self.instruction.c else None
        return Vector(operands.a, operands.b, c, operands.scale_a, operands.scale_b)

    def placed(
        self, values: Sequence[Fraction], places: Iterable[Sequence[Leaf]], rest: Fraction | int = 0
    ) -> list[Vector]:
        """For each of the places, as many leaves as there are values, the vector with these values there, in order, and
        ``rest`` elsewhere: ``vector`` of many with the same few values."""
        said, k, made = [*values, Fraction(rest)], self.k, []
        pairs = pairs_of(self.instruction, said)
        if pairs is None:
            return [self.vector(dict(zip(place, values, strict=True)), rest) for place in places]
        *of_values, (rest_a, rest_b) = pairs
        in_c: Callable[[int], int | None] = cache(lambda n: self.operand("c", said[n]) if self.instruction.c else None)
        for place in places:
            a, b, at_c = {}, {}, len(values)
            for number, (leaf, pair) in enumerate(zip(place, of_values, strict=True)):
                if isinstance(leaf, int):
                    a[leaf], b[leaf] = pair
                else:
                    at_c = number
            made.append(Vector(Codes.of(k, rest_a, a), Codes.of(k, rest_b, b), in_c(at_c)))
        return made

    def operand(self, name: str, value: Fraction) -> int:
        """The code of ``value`` in the format of operand ``name``."""
        code = code_of(self.formats[name], value)
        if code is None:
            raise UnrepresentableError(f"{self.formats[name].name} has no {say(value)}")
        return code

    def try_vector(self, terms: Terms, rest: Fraction | int = 0) -> Vector | None:
        """``vector``, or None where the formats cannot express it."""
        try:
            return self.vector(terms, rest)
        except UnrepresentableError:
            return None

    async def ask(self, vectors: Sequence[Vector]) -> list[int]:
        """The device's codes; ContradictionError where a vector asked twice gave two."""
        known = self.bench.answers
        if any(vector not in known for vector in vectors):
            await wait([Request(self.question, vectors)])
        for vector in vectors if self.bench.conflicts else ():
            if vector in self.bench.conflicts:
                other = self.bench.conflicts[vector]
                self.note(vector, known[vector], f"asked again in another order: {other:#x}")
                raise ContradictionError(f"the same vector gave {known[vector]:#x} and {other:#x}")
        return [known[vector] for vector in vectors]

    async def sums_at(
        self, values: Sequence[Fraction], places: Iterable[Sequence[Leaf]], rest: Fraction | int = 0
    ) -> list[Value]:
        """``values`` of the vectors with these values at each of the places (``placed``)."""
        return await self.values(self.placed(values, places, rest))

    async def values(self, vectors: Sequence[Vector]) -> list[Value]:
        """Exact values of the answers; None for NaN and infinities."""
        return self.decode(await self.ask(vectors))

    async def sums(self, terms: Iterable[Terms], rest: Fraction | int = 0) -> list[Value]:
        """``values`` of vectors given by their leaves."""
        return await self.values([self.vector(t, rest) for t in terms])

    def decode(self, codes: Sequence[int]) -> list[Value]:
        """Exact values of result codes."""
        return values_of(self.d, np.array(codes, dtype=self.d.dtype))

    async def run_tiles(self, tiles: Batch) -> Bits:
        """D of whole tiles, run once."""
        request = Request(self.question, tiles=tiles)
        await wait([request])
        assert request.answer is not None
        return request.answer

    async def fact(self, name: str, find: Callable[[ProbeSession], Asking[Any]]) -> Any:
        """What ``find`` finds out, once for all questions: those that come later wait for the first."""
        bench = self.bench
        while name not in bench.facts:
            if name in bench.begun:
                await wait([])
                continue
            bench.begun.add(name)
            try:
                bench.facts[name] = await find(replace(self, witnesses=[]))
            except (UnrepresentableError, ContradictionError) as why:
                bench.facts[name] = why
            finally:
                bench.begun.discard(name)
        found = bench.facts[name]
        if isinstance(found, Exception):
            raise found
        return found

    def note(self, vector: Vector, d: int, text: str) -> None:
        """Keep a witness of the question."""
        self.witnesses.append(Witness.of(pack(self.instruction, [vector]), d, text))

    async def witness(self, terms: Terms, text: str, rest: Fraction | int = 0) -> None:
        """Ask one vector and keep it as a witness."""
        vector = self.vector(terms, rest)
        self.note(vector, (await self.ask([vector]))[0], text)

    def finding(self, status: FindingStatus, answer: Any, text: str) -> Finding:
        """A finding with this question's witnesses; ``probe`` fills in the costs."""
        return Finding(self.question, status, answer, text, tuple(self.witnesses))
