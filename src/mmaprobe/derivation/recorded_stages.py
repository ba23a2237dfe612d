"""Stage after stage over recorded vectors: what each leaves of the grammar.

Vectors are used in the order in which they are safe: plain ones (operands and
result finite and normal) decide structure, precision and roundings; those with
zeros the zero exponent; finite ones the ends of the range; the rest special
values.  A stage without vectors decides nothing.  Where plain ones leave too much,
and of sums in sums, whose parts have numbers of their own, they alone decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.primitive_view import Frame
from mmaprobe.derivation.recorded_hypotheses import end_variants, nested_hypotheses, plain_hypotheses, zero_variants
from mmaprobe.derivation.survivors import Indices, Listed, Living
from mmaprobe.derivation.vectors.mixtures import hard_vectors, nan_operands
from mmaprobe.generators import families_for
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.parameters.rewrite import wider_formats
from mmaprobe.parameters.table import flatten, to_table

LEAST_PLAIN = 64
"""With fewer plain vectors than these, vectors with zeros decide the structure too."""
MOST = 48
"""If more unlike structures than these are left, nothing else is decided."""
TELLING = 4000
"""Vectors of every family by which what is left is held to be alike."""


class Composed(Listed):
    """Datapaths of the searched instruction, evaluated as the whole that its frame makes of each."""

    def __init__(self, frame: Frame, paths: Sequence[Datapath]) -> None:
        found = list(frame.composed(paths))
        super().__init__([path for path, _ in found])
        self.wholes = [whole for _, whole in found]

    def evaluate(self, indices: Indices, vectors: Batch) -> Bits:
        return evaluate_many([self.wholes[i] for i in indices], vectors)


class Elimination:
    """Stage after stage over recorded vectors in dense form; ``closest`` is kept for when none is left.

    ``used``: the vectors that decided.  ``loose``: the fields of sums in sums that these leave open.
    """

    def __init__(self, frame: Frame, vectors: Batch, answers: Bits, seed: int) -> None:
        self.frame, self.vectors, self.answers, self.seed = frame, vectors, answers, seed
        self.stage = "structures"
        self.closest: Datapath | None = None
        self.used = np.arange(len(answers))
        self.loose: tuple[str, ...] = ()

    def run(self) -> list[Datapath]:
        """What is left of the grammar; empty where nothing is."""
        inner = self.frame.searched
        if not formats.get(inner.d).is_float:
            return self._agree(grammar.integer_hypotheses(inner), np.ones(len(self.answers), bool))
        left: list[Datapath] = []
        for stage in self._plain_stages():
            for some in stage:
                if self.closest is None:
                    self.closest = next(iter(some), None)
                left += self._plainly(some)
            if left:
                break
        cores = self._representatives(left) if left else self._sums_in_sums()
        if len(cores) > MOST or self.loose:
            self.used = np.flatnonzero(self.masks["plain"])
            return left or cores
        return self._specials(self._ends(cores))

    def _sums_in_sums(self) -> list[Datapath]:
        """One of each class, and what all that were found differ in."""
        if self.frame.primitive:
            return []
        made = self.frame.searched
        found = nested_hypotheses(made, made.d, self._default_code, *self._plain_seen)
        changes = (datapath_changes(found[0], other) for other in found[1:])
        self.loose = tuple(dict.fromkeys(field for each in changes for field, _, _ in each))
        return self._representatives(found)

    def _plain_stages(self) -> Iterator[Iterator[Living]]:
        """Sums of one precision, then with a wider format in between."""
        inner, moved = self.frame.searched, not self.frame.primitive
        yield plain_hypotheses(inner, [(name, "") for name in self._narrower()], self._default_code, moved)
        yield plain_hypotheses(inner, [(name, inner.d) for name in wider_formats(inner.d)], self._default_code, moved)

    @cached_property
    def _plain_seen(self) -> tuple[Batch, Bits]:
        chosen = np.flatnonzero(self.masks["plain"])
        return take(self.vectors, chosen), self.answers[chosen]

    def _plainly(self, some: Living) -> Iterable[Datapath]:
        """The hypotheses that agree with the plain vectors."""
        return (
            self._agree(list(some), self.masks["plain"]) if self.frame.primitive else some.agreeing(*self._plain_seen)
        )

    @cached_property
    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """Which vectors each stage may use."""
        instruction = self.frame.made
        normal, zeroed = (np.ones(len(self.answers), bool) for _ in range(2))
        finite = ~nan_operands(instruction, self.vectors)
        for name, value in self.vectors.items():
            if name in instruction.formats():
                kind = formats.decode(instruction.formats()[name], value).kind.reshape(len(self.answers), -1)
                normal &= (kind == formats.NORMAL).all(axis=1)
                zeroed &= ((kind == formats.NORMAL) | (kind == formats.ZERO)).all(axis=1)
                finite &= (kind < formats.INFINITE).all(axis=1)
        result = formats.decode(formats.get(instruction.d), self.answers).kind == formats.NORMAL
        plain = normal & result
        return {"plain": plain if plain.sum() >= LEAST_PLAIN else zeroed & result,
                "zeroed": zeroed & result, "finite": finite, "all": np.ones_like(finite)}  # fmt: skip

    def unasked(self, path: Datapath) -> Iterator[str]:
        """Fields of a datapath of which no vector speaks: those of the stages that had none or were left out, and what
        sums in sums leave open."""
        if not formats.get(self.frame.instruction.d).is_float:
            return
        yield from self.loose
        if not (self.masks["finite"] & ~self.masks["plain"])[self.used].any():
            fields = dict(flatten(to_table(path, full=True)))
            yield from (field for field in fields if field.endswith("zero_exponent"))
        if self.masks["finite"][self.used].all():
            yield "special"

    @cached_property
    def codes(self) -> tuple[int, ...]:
        """The NaNs recorded, that of an invalid operation first; the format's own where there is none."""
        fmt = formats.get(self.frame.instruction.d)
        if not fmt.is_float:
            return ()
        is_nan = formats.decode(fmt, self.answers).kind == formats.NAN
        invalid = is_nan & ~nan_operands(self.frame.made, self.vectors)
        found = [int(code) for mask in (invalid, is_nan) for code in np.unique(self.answers[mask])[:3]]
        return tuple(dict.fromkeys(found)) or (fmt.nan_code or 0,)

    @property
    def _default_code(self) -> int:
        inner = formats.get(self.frame.inner.d).nan_code or 0
        return self.codes[0] if self.frame.inner.d == self.frame.instruction.d else inner

    def _narrower(self) -> list[str]:
        """The result format, after the narrowest that holds all answers where none uses its last places."""
        fmt = formats.get(self.frame.inner.d)
        if self.frame.inner.d != self.frame.instruction.d:
            return [fmt.name]
        used = int(np.bitwise_or.reduce(self.answers[self.masks["plain"]])) if self.masks["plain"].any() else -1
        twins = [
            other.name for other in formats.FORMATS.values()
            if other.is_float and other.padding > fmt.padding and other.container_bits == fmt.container_bits
            and other.exponent_bits == fmt.exponent_bits and used & ((1 << other.padding) - 1) == 0
        ]  # fmt: skip
        return [*sorted(twins, key=lambda name: formats.get(name).fraction_bits)[:1], fmt.name]

    def _agree(self, paths: Sequence[Datapath], mask: NDArray[np.bool_]) -> list[Datapath]:
        chosen = np.flatnonzero(mask)
        if paths and self.closest is None:
            self.closest = paths[0]
        every = Living.of([Composed(self.frame, paths)], Allowance(None))
        return list(every.agreeing(take(self.vectors, chosen), self.answers[chosen]))

    def _representatives(self, paths: list[Datapath]) -> list[Datapath]:
        """The first of each class that vectors of every family tell apart."""
        if not paths:
            return []
        kinds = self.kinds([self.frame.whole(path) for path in paths])
        return [path for number, path in enumerate(paths) if kinds[number] == number]

    def kinds(self, wholes: list[Datapath]) -> NDArray[np.int64]:
        """For each whole datapath the place of the first that answers vectors of every family alike."""
        table = evaluate_many(wholes, self._telling)
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return np.asarray(first[inverse.reshape(-1)], np.int64)

    @cached_property
    def _telling(self) -> Batch:
        made = self.frame.made
        return hard_vectors(made, families_for(made), self.seed + 31, TELLING)

    def _ends(self, cores: list[Datapath]) -> list[Datapath]:
        """Zero exponents and the ends of the range: each where the other does not matter, then both together."""
        rest = self.masks["finite"] & ~self.masks["plain"]
        if not rest.any() or not cores:
            return cores
        self.stage = "the ends of the range"
        found: list[Datapath] = []
        for core in cores:
            self.closest = core
            zeros, alike = self._by_answers(self._agree(list(zero_variants(core)), self.masks["zeroed"]))
            steady = alike & self.masks["finite"]
            ends = self._agree(list(end_variants(zeros[0])), steady) if zeros else []
            both = [path for end in ends for path in zero_variants(end, zeros)]
            found += self._agree(both, self.masks["finite"])
        return found

    def _by_answers(self, paths: list[Datapath]) -> tuple[list[Datapath], NDArray[np.bool_]]:
        """The first datapath of each kind of answers to the finite vectors, and which vectors all answer alike."""
        if not paths:
            return [], np.zeros(len(self.answers), bool)
        table = evaluate_many([self.frame.whole(path) for path in paths], self.vectors)
        first = np.sort(np.unique(table[:, self.masks["finite"]], axis=0, return_index=True)[1])
        return [paths[i] for i in first], np.asarray((table == table[0]).all(axis=0))

    def _specials(self, paths: list[Datapath]) -> list[Datapath]:
        rest = ~self.masks["finite"]
        if not rest.any() or not paths:
            return paths
        self.stage = "special values"
        self.closest = paths[0]
        alive = self._representatives(paths)[:MOST]
        every = [path for each in alive for path in dict.fromkeys(grammar.special_variants(each, self.codes))]
        return self._agree(every, self.masks["all"])
