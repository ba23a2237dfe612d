"""Vectors a few small changes away from others.

A vector that came near to telling two datapaths apart differs in little from one that does: a last place of c, a sign,
a lane less.  So what was made in any other way has children here, of one to three changes each; no change knows
anything of a datapath.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints
from mmaprobe.operands.batch import Batch, Bits, join, take

CHANGED = "a few changes away"
"""What they are called among generators."""
CHANCES = (1.0, 0.6, 0.3)
"""How likely a vector is to be changed once, and once more, and once more."""
BINADES = 3
"""Binades by which a code moves at most."""
Place = tuple[Ints, Ints] | Ints
"""Vectors and lanes of a or b, or vectors of c."""


class Children:
    """Copies of vectors, changed in place; ``others`` are as many, whose codes some take over."""

    def __init__(self, instruction: Instruction, vectors: Batch, others: Batch, rng: np.random.Generator) -> None:
        self.instruction, self.others, self.rng = instruction, others, rng
        self.operands = {name: np.array(value) for name, value in vectors.items()}

    def lanes(self, rows: Ints) -> Ints:
        """A lane of each vector."""
        return self.rng.integers(0, self.instruction.k, len(rows))

    def places(self, rows: Ints) -> Iterator[tuple[str, Place]]:
        """One code of each vector: of a, of b or c, of each in a third of the vectors; without c, of a or b."""
        names = [name for name in ("a", "b", "c") if name in self.operands]
        chosen = self.rng.integers(0, len(names), len(rows))
        for number, name in enumerate(names):
            mine = rows[chosen == number]
            yield name, mine if name == "c" else (mine, self.lanes(mine))

    def moved(self, rows: Ints, by: Callable[[formats.Format, int], Ints]) -> None:
        """One code of each vector further from zero by so many codes, or nearer, as far as to zero or the infinity."""
        for name, place in self.places(rows):
            fmt = formats.get(getattr(self.instruction, name))
            old = self.operands[name][place]
            self.operands[name][place] = _moved(fmt, old, by(fmt, len(old)))

    def negated(self, name: str, place: Place) -> None:
        """These codes with the other sign, where both signs are numbers."""
        fmt = formats.get(getattr(self.instruction, name))
        old = self.operands[name][place]
        can = np.logical_not(formats.is_zero(fmt, old)) | (fmt.nan != "negative_zero")
        self.operands[name][place] = np.where(can, old ^ fmt.dtype.type(fmt.sign_mask), old)

    def kept(self, rows: Ints, keep: NDArray[np.bool_]) -> None:
        """Other lanes than these as zeros."""
        self.operands["a"][rows] = np.where(keep, self.operands["a"][rows], 0)


def _size(fmt: formats.Format) -> np.unsignedinteger:
    """All bits of a code but the sign."""
    found: np.unsignedinteger = fmt.dtype.type(fmt.code_limit - 1 - fmt.sign_mask)
    return found


def _moved(fmt: formats.Format, codes: Bits, by: Ints) -> Bits:
    top = fmt.largest if fmt.infinity_code is None else fmt.infinity_code
    size = (codes & _size(fmt)).astype(np.int64)
    return _signed(fmt, np.where(size > top, size, np.clip(size + by, 0, top)).astype(fmt.dtype), codes)


def _signed(fmt: formats.Format, sizes: Bits, signs: Bits) -> Bits:
    """Codes of these sizes and the signs of others; where -0 is a NaN, zeros have none."""
    signed = sizes | (signs & fmt.dtype.type(fmt.sign_mask))
    found: Bits = signed if fmt.nan != "negative_zero" else np.where(sizes == 0, sizes, signed)
    return found


# --- changes


def step(made: Children, rows: Ints) -> None:
    """One or two last places up or down."""
    made.moved(rows, lambda fmt, count: made.rng.choice([-2, -1, -1, 1, 1, 2], count) << fmt.padding)


def binade(made: Children, rows: Ints) -> None:
    """A few binades up or down."""
    ways = [by for by in range(-BINADES, BINADES + 1) if by]
    made.moved(rows, lambda fmt, count: made.rng.choice(ways, count) << (fmt.fraction_bits + fmt.padding))


def digit(made: Children, rows: Ints) -> None:
    """One bit of the fraction."""
    for name, place in made.places(rows):
        fmt = formats.get(getattr(made.instruction, name))
        old = made.operands[name][place]
        bits = made.rng.integers(0, max(fmt.fraction_bits, 1), len(old)) + fmt.padding
        sizes = (old & _size(fmt)) ^ (np.uint64(1) << bits.astype(np.uint64)).astype(fmt.dtype)
        made.operands[name][place] = _signed(fmt, sizes, old)


def flip(made: Children, rows: Ints) -> None:
    """The other sign."""
    for name, place in made.places(rows):
        made.negated(name, place)


def end(made: Children, rows: Ints) -> None:
    """Zero, 1, or an end of the subnormal or normal numbers, of the sign that was there."""
    for name, place in made.places(rows):
        fmt = formats.get(getattr(made.instruction, name))
        normal = 1 << (fmt.fraction_bits + fmt.padding)
        ends = [0, fmt.one, 1 << fmt.padding, normal - (1 << fmt.padding), normal, fmt.largest]
        old = made.operands[name][place]
        made.operands[name][place] = _signed(fmt, made.rng.choice(np.array(ends, fmt.dtype), len(old)), old)


def other(made: Children, rows: Ints) -> None:
    """A product, or c, of another vector."""
    of_c = made.rng.integers(0, 3, len(rows)) == 0
    if made.others.c is not None:
        made.operands["c"][rows[of_c]] = made.others.c[rows[of_c]]
    rest = rows[~of_c]
    here, there = made.lanes(rest), made.lanes(rest)
    made.operands["a"][rest, here] = made.others.a[rest, there]
    made.operands["b"][rest, here] = made.others.b[rest, there]


def swap(made: Children, rows: Ints) -> None:
    """Two lanes in each other's place."""
    first, second = made.lanes(rows), made.lanes(rows)
    for name in ("a", "b"):
        codes = made.operands[name]
        codes[rows, first], codes[rows, second] = codes[rows, second], codes[rows, first]


def copy(made: Children, rows: Ints) -> None:
    """A lane as another one is, or as what takes it away."""
    first, second = made.lanes(rows), made.lanes(rows)
    for name in ("a", "b"):
        made.operands[name][rows, second] = made.operands[name][rows, first]
    away = made.rng.integers(0, 2, len(rows)) == 0
    made.negated("a", (rows[away], second[away]))


def spread(made: Children, rows: Ints) -> None:
    """All lanes as one is."""
    lane = made.lanes(rows)
    for name in ("a", "b"):
        made.operands[name][rows] = made.operands[name][rows, lane][:, None]


def thin(made: Children, rows: Ints) -> None:
    """Half of the lanes as zeros."""
    made.kept(rows, made.rng.integers(0, 2, (len(rows), made.instruction.k)) == 0)


def alone(made: Children, rows: Ints) -> None:
    """All lanes but two as zeros."""
    every = np.arange(made.instruction.k)
    made.kept(rows, (every == made.lanes(rows)[:, None]) | (every == made.lanes(rows)[:, None]))


def zeros(made: Children, rows: Ints) -> None:
    """All zeros of a, and c where it is one, with the other sign."""
    for name in ("a", "c"):
        if name in made.operands:
            fmt = formats.get(getattr(made.instruction, name))
            where = np.argwhere(formats.is_zero(fmt, made.operands[name][rows]))
            made.negated(name, rows[where[:, 0]] if name == "c" else (rows[where[:, 0]], where[:, 1]))


def scale(made: Children, rows: Ints) -> None:
    """One scale a code up or down, or that of another vector."""
    assert made.instruction.scale is not None
    fmt = formats.get(made.instruction.scale)
    for number, name in enumerate(("scale_a", "scale_b")):
        mine = rows[rows % 2 == number]
        blocks = made.operands[name].shape[1]
        place = mine, made.rng.integers(0, blocks, len(mine))
        by = made.rng.choice([-1, 1], len(mine)).astype(np.int64)
        taken = getattr(made.others, name)[place]
        moved = _moved(fmt, made.operands[name][place], by)
        made.operands[name][place] = np.where(made.rng.integers(0, 2, len(mine)) == 0, taken, moved)


Change = Callable[[Children, Ints], None]
CHANGES: tuple[Change, ...] = (
    step, step, binade, digit, flip, end, other, swap, copy, spread, thin, alone, zeros,
)  # fmt: skip
"""The changes, one as likely as another; of blocks with scales also those."""


def changed_vectors(instruction: Instruction, sources: Sequence[Batch], seed: int, count: int) -> Batch:
    """About ``count`` vectors (floats, dense) that are one to three changes away from some of these, from as many of
    each source."""
    rng = np.random.default_rng([seed, 0xC4A26E])
    each = -(-count // len(sources))
    parents = join([take(source, rng.integers(0, source.size, each)) for source in sources])
    made = Children(instruction, parents, take(parents, rng.permutation(parents.size)), rng)
    changes = CHANGES if instruction.scale is None else (*CHANGES, scale)
    for chance in CHANCES:
        changed = rng.random(parents.size) < chance
        kinds = np.where(changed, rng.integers(0, len(changes), parents.size), len(changes))
        for number, change in enumerate(changes):
            change(made, np.flatnonzero(kinds == number))
    return Batch(**made.operands)
