"""The smallest product on which two still differ: K, M and N made smaller, then live lanes fewer and values plainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.gemm.families import operands
from mmaprobe.validation.products.comparing import Difference, ProductPair, Shape
from mmaprobe.validation.shrink import shrink

LOOKED_AT = 128
"""Elements of each family that are looked at, in two calls or more, before nothing differs at a shape."""
GROWTH = 1.3
"""A length that is tried is so much larger than the one before it."""
FEW = 24
"""Live lanes up to which values are made plainer, too: that takes some calls for each of them."""
PLAINER = 24
"""Steps in which values are made plainer at most."""


@dataclass(frozen=True)
class Smallest:
    """x (K) and y (K): row i of A and column j of B of a product of this shape, in which ``other`` rows and columns
    are zero, or (``beside``) as they were drawn; ``answers`` are D[i, j] of both."""

    shape: Shape
    at: tuple[int, int]
    x: Bits
    y: Bits
    answers: tuple[int, int]
    beside: Difference | None

    @property
    def live(self) -> tuple[int, ...]:
        """Lanes at which neither x nor y is +0."""
        return tuple(np.flatnonzero((self.x != 0) & (self.y != 0)).tolist())

    def operands(self, x: Bits | None = None, y: Bits | None = None) -> tuple[Bits, Bits]:
        """A and B, with another row and column at the place."""
        (m, n, k), (i, j) = self.shape, self.at
        if self.beside is not None:
            a, b = self.beside.a.copy(), self.beside.b.copy()
        else:
            a, b = np.zeros((m, k), self.x.dtype), np.zeros((k, n), self.y.dtype)
        a[i], b[:, j] = self.x if x is None else x, self.y if y is None else y
        return a, b


def smallest(products: ProductPair, first: Difference, rng: np.random.Generator) -> Smallest:
    """What is left of a difference when nothing more can be taken away by these steps."""
    found = first
    for axis in (2, 0, 1, 2):
        found = _shorter(products, found, axis, rng)
    return _plainer(products, _isolated(products, found))


def answers_at(products: ProductPair, made: Smallest, x: Bits, y: Bits) -> tuple[int, int]:
    """D[i, j] of both, of another row and column."""
    given = products.ask(*made.operands(x, y))
    first, second = (int(each[made.at]) for each in given)
    return first, second


def _shorter(products: ProductPair, first: Difference, axis: int, rng: np.random.Generator) -> Difference:
    """The difference at the shortest length of an axis at which one is seen; lengths between it and the longest one
    without are halved away."""
    full, low, found = first.shape[axis], 0, first
    for length in _lengths(full):
        seen = _seen(products, first, _with(first.shape, axis, length), rng)
        if seen is not None:
            found = seen
            break
        low = length
    while found.shape[axis] - low > 1:
        middle = (low + found.shape[axis]) // 2
        seen = _seen(products, first, _with(first.shape, axis, middle), rng)
        if seen is None:
            low = middle
        else:
            found = seen
    return found


def _lengths(full: int) -> Iterator[int]:
    length = 1
    while length < full:
        yield length
        length = max(length + 1, int(length * GROWTH))


def _with(shape: Shape, axis: int, length: int) -> Shape:
    m, n, k = (length if axis == number else each for number, each in enumerate(shape))
    return m, n, k


def _seen(products: ProductPair, first: Difference, shape: Shape, rng: np.random.Generator) -> Difference | None:
    """A difference at a shape, of fresh operands of the families that may show one."""
    shown = () if products.p.of_integers else ("masks",)
    for family in dict.fromkeys((*shown, first.family)):
        for _ in range(max(2, LOOKED_AT // (shape[0] * shape[1]))):
            try:
                a, b = operands(products.p, family, shape, rng)
                differ = products.differ(a, b)
            except UsageError:
                break  # one of the two has no such shape
            if differ.any():
                i, j = np.argwhere(differ)[0]
                return Difference(family, a, b, (int(i), int(j)))
    return None


def _isolated(products: ProductPair, found: Difference) -> Smallest:
    """The element alone, all other rows and columns zero, where it still differs so."""
    (i, j), answers = found.at, (0, 0)
    x, y = found.a[i].copy(), found.b[:, j].copy()
    for beside in (None, found):
        made = Smallest(found.shape, found.at, x, y, answers, beside)
        if products.differ(*made.operands())[i, j]:
            break
    return _kept(products, made, x, y)


def _kept(products: ProductPair, made: Smallest, x: Bits, y: Bits) -> Smallest:
    return Smallest(made.shape, made.at, x, y, answers_at(products, made, x, y), made.beside)


def _plainer(products: ProductPair, made: Smallest) -> Smallest:
    """Fewer live lanes, then, of few, plainer values."""

    def differs(x: Bits, y: Bits) -> bool:
        return bool(products.differ(*made.operands(x, y))[made.at])

    x, y = _fewer(made.x, made.y, differs)
    if np.count_nonzero((x != 0) & (y != 0)) <= FEW:
        one = Instruction(
            "gemm.element", "gemm.element", "gemm", 1, 1, len(x), products.p.a.name, products.p.b.name, None,
            products.p.d.name,
        )  # fmt: skip
        plain = shrink(
            one,
            Batch(a=x[None], b=y[None]),
            lambda vectors: np.array([differs(a, b) for a, b in zip(vectors.a, vectors.b, strict=True)]),
            PLAINER,
        )
        x, y = plain.a[0], plain.b[0]
    return _kept(products, made, x, y)


def _fewer(x: Bits, y: Bits, differs: Callable[[Bits, Bits], bool]) -> tuple[Bits, Bits]:
    """Runs of live lanes made zero, long ones first, while the answers differ."""
    live = np.flatnonzero((x != 0) | (y != 0))
    size = len(live)
    while size:
        start = 0
        while start < len(live):
            left = np.delete(live, slice(start, start + size))
            tried = np.zeros_like(x), np.zeros_like(y)
            tried[0][left], tried[1][left] = x[left], y[left]
            if differs(*tried):
                (x, y), live = tried, left
            else:
                start += size
        size //= 2
    return x, y
