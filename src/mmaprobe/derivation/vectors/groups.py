"""Vectors for a structure whose groups are known, on which one kind of term shows alone; other lanes are zero."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.hypotheses.nested_trees import Handed
from mmaprobe.derivation.vectors.plain import Ints, code, powers, split, unit, window
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits

KINDS = ("own", "beside", "c", "sum", "tie", "round")
"""What shows (see ``Aimed.vectors``)."""
UNITS = 5
"""Units at most that lie below the largest term."""
REACH = 48
"""Binades below the largest term in which they lie: twice the significand of f32."""
NEAR = 8
"""Binades below it in which one of them lies where all else cancels; in every other vector four times as many."""
PAST = 16
"""Binades past the last place of a result in which terms lie that only its rounding can tell."""


@dataclass
class _Draft:
    """One vector: how far below the top its terms are, C (None: zero) and the products by their lanes; two products
    that cancel; products that are powers of two; whether C is one."""

    below: dict[int, int]
    c: int | None = None
    pair: tuple[int, int] | None = None
    powers: list[int] = field(default_factory=list)
    round: bool = False


@dataclass(frozen=True)
class Aimed:
    """Vectors of one step of a structure at a time."""

    instruction: Instruction
    handed: Handed

    @property
    def kinds(self) -> list[str]:
        """The kinds that this structure can show."""
        gone = [] if self.instruction.c is not None else ["c", "sum", "tie"]
        return [kind for kind in KINDS if kind not in gone and (kind != "beside" or len(self.handed.groups) > 1)]

    def vectors(self, kind: str, seed: int, count: int) -> Batch:
        """``own``: two products cancel, units in their group; ``beside``: units in other groups; ``c``: C, too;
        ``sum``: C, and units far below it; ``tie``: one of them half a place of the result; ``round``: C and a few
        products, none far from another."""
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        return self._encoded(rng, [self._draft(rng, kind) for _ in range(count)])

    def _draft(self, rng: np.random.Generator, kind: str) -> _Draft:
        own, others = self._group(rng)
        last = formats.get(self.instruction.d).fraction_bits
        x, y, *rest = own if len(own) > 1 else (*own, *own)
        free = {"own": rest, "beside": others, "c": [*rest, *others]}.get(kind, [*own, *others])
        units = 2 if kind == "tie" else rng.integers(1, UNITS + 1)
        lanes = [int(lane) for lane in rng.permutation(free)[:units]] if free else []
        if kind == "round":
            return _Draft({lane: int(rng.integers(0, last + 2)) for lane in lanes}, 0)
        if kind in ("sum", "tie"):
            draft = _Draft({lane: last + int(rng.integers(1, PAST)) for lane in lanes}, 0)
            if kind == "tie":
                draft.below[lanes[0]] = last + int(rng.integers(1, 3))
                draft.powers, draft.round = lanes[: rng.integers(1, 3)], bool(rng.integers(0, 2))
            return draft
        below = {lane: int(rng.integers(1, REACH)) for lane in lanes} | {x: 0, y: 0}
        near = NEAR << 2 * int(rng.integers(0, 2))
        below |= {lane: int(rng.integers(1, near)) for lane in lanes[:1]}
        return _Draft(below, int(rng.integers(0, REACH)) if kind == "c" else None, (x, y))

    def _group(self, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        """The lanes of a group, of two or more, in some step, in any order, and the other lanes of the step."""
        structure = self.handed.structure
        order = structure.order or tuple(range(self.instruction.k))
        start = structure.step * int(rng.integers(0, self.instruction.k // structure.step))
        several = [group for group in self.handed.groups if len(group) > 1] or self.handed.groups
        own = [order[start + i] for i in rng.permutation(several[rng.integers(0, len(several))])]
        return own, [lane for lane in order[start : start + structure.step] if lane not in own]

    def _highest(self, drafts: list[_Draft], d: Format, high: int) -> Ints:
        """The exponent from which the largest product lies at the window's top: narrow products reach far below C."""
        nearest = np.array([min(draft.below.values(), default=0) for draft in drafts])
        found: Ints = np.minimum(high + nearest, max(high, d.max_exponent - 4 - self.instruction.k.bit_length()))
        return found

    def _encoded(self, rng: np.random.Generator, drafts: list[_Draft]) -> Batch:
        count, k = len(drafts), self.instruction.k
        a, b, d = (formats.get(name) for name in (self.instruction.a, self.instruction.b, self.instruction.d))
        low, high = window(self.instruction, a, b, d)
        top = self._highest(drafts, d, high) - rng.integers(0, 1 + (high - low) // PAST, count)
        exponents, live = np.full((count, k), low, np.int64), np.zeros((count, k), bool)
        for row, draft in enumerate(drafts):
            for lane, below in draft.below.items():
                exponents[row, lane], live[row, lane] = max(top[row] - below, low), True
        batch: dict[str, Bits] = {}
        for name, fmt, exponent in zip("ab", (a, b), split(rng, exponents, a, b), strict=True):
            codes = code(rng, fmt, exponent)
            for row, draft in enumerate(drafts):
                codes[row, draft.powers] = powers(fmt, codes[row, draft.powers])
                if draft.pair is not None:
                    x, y = draft.pair
                    codes[row, y] = codes[row, x] ^ fmt.dtype.type(fmt.sign_mask if name == "b" else 0)
            batch[name] = np.where(live, codes, 0).astype(fmt.dtype)
        if self.instruction.c is not None:
            c = formats.get(self.instruction.c)
            exponent = top - np.array([draft.c or 0 for draft in drafts])
            codes = code(rng, c, np.clip(exponent, max(c.min_exponent, d.min_exponent + 3), c.max_exponent - 2))
            codes = np.where([draft.round for draft in drafts], powers(c, codes), codes)
            batch["c"] = np.where([draft.c is not None for draft in drafts], codes, 0).astype(c.dtype)
        if self.instruction.scale is not None:
            blocks = (count, k // self.instruction.scale_size)
            batch |= {role: np.full(blocks, unit(self.instruction.scale)) for role in ("scale_a", "scale_b")}
        return Batch(**batch)
