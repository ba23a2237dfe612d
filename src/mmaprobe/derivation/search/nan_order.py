"""Read off which NaN operand wins: the order of all operands, by vectors with two NaNs each.

Every rule of the grammar (one order for the whole vector, or a choice at every
node) gives one total order of the operands as long as all NaNs are quiet.  The
order is measured by sorting: few launches, each of many pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, combinations_with_replacement, pairwise, product

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.session import Session
from mmaprobe.derivation.vectors.mixtures import nan_operands
from mmaprobe.derivation.vectors.specials import ones, put, quiet_codes
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Special

MOST_CODES = 3
"""Codes of NaNs in results that rules are made of, at most: of an invalid operation, and of operands; tuned by
``tests/recovery``."""
Pair = tuple[str, str]
PIVOTS = 3
"""Names by which a long list is divided at once: four parts a launch; tuned by ``tests/recovery``."""
SHORT = 12
"""Names of a list that is asked in all pairs, at most: 66 vectors; tuned by ``tests/recovery``."""


class NanOrder:
    """The operands that can be a NaN, in the order in which a device prefers them; ``path`` is any datapath of it."""

    def __init__(self, session: Session, path: Datapath) -> None:
        self.session, self.path = session, path
        self._asked: dict[Pair, bool] = {}
        self.instruction = session.instruction
        sides = [side for side in ("a", "b") if quiet_codes(self.instruction, side)]
        self.names = [f"{side}{lane}" for lane in range(self.instruction.k) for side in sides]
        self.names += ["c"] * (self.instruction.c is not None and bool(quiet_codes(self.instruction, "c")))
        pairs = combinations_with_replacement(sides, 2) if self.instruction.k > 1 else combinations(sides, 2)
        self.alike = any(self.signs(x, y) is None for x, y in pairs)

    def places(self, guess: Sequence[str] | None) -> dict[str, int] | None:
        """The place of each name in the order, the winner's first; names that no answer tells apart share one.

        A guess is only confirmed.  None where an answer is neither of two NaNs, or the answers are no order.
        """
        if guess is not None and self._confirms(guess):
            return self._placed([[name] for name in guess if name in self.names])
        parts = self._around_c() if self.alike else self._sorted()
        if parts is None:
            return None
        place = self._placed(parts)
        near = [pair for pair in self._asked if abs(place[pair[0]] - place[pair[1]]) == 1]
        return None if any(self._asked[x, y] != (place[x] < place[y]) for x, y in near) else place

    def _placed(self, parts: list[list[str]]) -> dict[str, int]:
        if self.alike and "c" in self.names:
            names = [name for part in parts for name in part]
            at = names.index("c")
            parts = [names[:at], ["c"], names[at + 1 :]]
        elif self.alike:
            parts = [self.names]
        return {name: number for number, part in enumerate(parts) for name in part}

    def _confirms(self, order: Sequence[str]) -> bool:
        """Whether the device prefers the operands in this order: neighbouring pairs are asked (where
        NaNs of a and b are all alike, each of them with c)."""
        names = [name for name in order if name in self.names]
        pairs = list(pairwise(names))
        if self.alike and "c" in names:
            before = names.index("c")
            pairs = [*((name, "c") for name in names[:before]), *(("c", name) for name in names[before + 1 :])]
        pairs = [(x, y) for x, y in pairs if self.signs(x[0], y[0])]
        if not pairs:
            return True
        vectors, first, _ = self._vectors(pairs)
        answers = self.session.ask(vectors)
        return bool((answers == first).all())

    def _sorted(self) -> list[list[str]] | None:
        parts: list[list[str]] = [self.names]
        while any(len(part) > 1 for part in parts):
            first = self._winners([pair for part in parts for pair in _pairs(part)])
            divided = [None if first is None else _divided(part, first) for part in parts]
            if any(each is None for each in divided):
                return None
            parts = [part for each in divided for part in each or []]
        return parts

    def _around_c(self) -> list[list[str]] | None:
        """The order where NaNs of a and b are all the same: those that win over c, c, the others."""
        others = [name for name in self.names if name != "c"]
        first = self._winners([(name, "c") for name in others if "c" in self.names and self.signs(name[0], "c")])
        if first is None:
            return None
        after = [name for name in others if not first.get((name, "c"), True)]
        return [[name for name in others if name not in after], ["c"] * ("c" in self.names), after]

    def _winners(self, pairs: Sequence[Pair]) -> dict[Pair, bool] | None:
        """Of each pair, whether the first name wins; None where an answer is neither of the two."""
        if not pairs:
            return {}
        vectors, first, second = self._vectors(pairs)
        answers = self.session.ask(vectors)
        if ((answers != first) & (answers != second)).any():
            return None
        found = dict(zip(pairs, (answers == first).tolist(), strict=True))
        self._asked |= found
        return found

    def _vectors(self, pairs: Sequence[Pair]) -> tuple[Batch, Bits, Bits]:
        """Ones, and two NaNs each that the result tells apart; the answers where the first wins, and the second."""
        vectors = ones(self.instruction, len(pairs))
        winners = np.zeros((2, len(pairs)), formats.get(self.instruction.d).dtype)
        for row, (x, y) in enumerate(pairs):
            signs = self.signs(x[0], y[0])
            assert signs is not None
            for at, (name, sign) in enumerate(((x, signs[0]), (y, signs[1]))):
                put(vectors, row, name, quiet_codes(self.instruction, name[0])[sign])
                winners[at, row] = self._moved[name[0], sign]
        return vectors, winners[0], winners[1]

    def signs(self, x: str, y: str) -> tuple[int, int] | None:
        """Which quiet NaN of each operand, so that the result shows whose it is."""
        every = [range(len(quiet_codes(self.instruction, side))) for side in (x, y)]
        return next(((i, j) for i, j in product(*every) if self._moved[x, i] != self._moved[y, j]), None)

    @cached_property
    def _moved(self) -> dict[tuple[str, int], int]:
        """What becomes of each operand's quiet NaNs as a result."""
        found = {}
        for side in ("a", "b", "c"):
            for number, code in enumerate(quiet_codes(self.instruction, side)):
                name = side if side == "c" else f"{side}0"
                vectors = ones(self.instruction, 1)
                put(vectors, 0, name, code)
                rule = replace(self.path, special=Special("global", 0, (name,)))
                found[side, number] = int(evaluate_many([rule], vectors)[0, 0])
        return found


def _pivots(part: Sequence[str]) -> list[str]:
    step = len(part) / (PIVOTS + 1)
    return [part[int(step * (i + 1))] for i in range(PIVOTS)]


def _pairs(part: Sequence[str]) -> Iterator[Pair]:
    """All pairs of a short list; each name of a long one with each pivot."""
    if len(part) <= SHORT:
        yield from combinations(part, 2)
        return
    pivots = _pivots(part)
    yield from combinations(pivots, 2)
    yield from ((name, pivot) for name in part if name not in pivots for pivot in pivots)


def _divided(part: list[str], first: Mapping[Pair, bool]) -> list[list[str]] | None:
    """The list in order, as far as the answers say: by how many each name wins against; None where that is no order."""
    compared = part if len(part) <= SHORT else _pivots(part)
    wins = {name: sum(_beats(name, other, first) for other in compared if other != name) for name in part}
    if len(part) <= SHORT:
        if sorted(wins.values()) != list(range(len(part))):
            return None
        return [[name] for name in sorted(part, key=lambda name: -wins[name])]
    ranked = sorted(compared, key=lambda name: -wins[name])
    if [wins[name] for name in ranked] != list(range(PIVOTS))[::-1]:
        return None
    parts: list[list[str]] = []
    for number in range(PIVOTS + 1):
        parts.append([name for name in part if name not in compared and wins[name] == PIVOTS - number])
        parts.append(ranked[number : number + 1])
    return [each for each in parts if each]


def _beats(x: str, y: str, first: Mapping[Pair, bool]) -> bool:
    return first[x, y] if (x, y) in first else not first[y, x]


def nan_codes(instruction: Instruction, vectors: Batch, answers: Bits) -> list[int]:
    """The NaNs that the device answers to special values; that of an invalid operation first, those of operands in the
    order of their codes: which of them is met most often is chance, and where nothing is invalid any one will do."""
    fmt = formats.get(instruction.d)
    is_nan = formats.is_nan(fmt, answers)
    invalid = answers[is_nan & ~nan_operands(replace(instruction, scale=None, scale_size=0), vectors)]
    first = _most_met(invalid, MOST_CODES)
    others = sorted(_most_met(answers[is_nan], MOST_CODES - len(first)))
    return list(dict.fromkeys([*first, *others])) or [fmt.nan_code or 0]


def _most_met(codes: Bits, most: int) -> list[int]:
    """The codes that are met most often, at most so many, those first."""
    values, counts = np.unique(codes, return_counts=True)
    found: list[int] = values[np.argsort(-counts, kind="stable")][:most].tolist()
    return found
