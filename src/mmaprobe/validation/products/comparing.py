"""Two products at many shapes, family by family: every element of D, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.devices.products import MatrixProduct
from mmaprobe.errors import UsageError, near
from mmaprobe.exit_codes import EQUAL, INCONCLUSIVE, MISMATCH
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.families import families_of, operands

Shape = tuple[int, int, int]
SIDES = ((1.0, 1.0, 1.0), (0.3, 0.4, 2.3), (0.1, 0.2, 1.0), (0.6, 0.3, 0.37), (0.2, 0.7, 1.7), (0.07, 0.05, 4.1))
"""M, N and K of the shapes that are compared, as multiples of those that are named."""
CALLS = 1 << 40
"""Calls that a comparison may take: as many as it needs."""
MOST_PRODUCTS = 1 << 32
"""Products of numbers, M x N x K, of one call at most, but for the shape that is named."""
ELEMENTS = 1_000_000
"""Elements of D that are compared at least, where nothing else is said."""


@dataclass(frozen=True)
class ProductPair:
    """Two products; ``unequal`` is where answers differ: two NaNs do not, for no schedule says which one comes out."""

    p: ProductCalls
    q: ProductCalls

    def ask(self, a: Bits, b: Bits) -> tuple[Bits, Bits]:
        """The D of each."""
        return self.p.ask(a, b), self.q.ask(a, b)

    def unequal(self, x: Bits, y: Bits) -> NDArray[np.bool_]:
        """Where two D differ."""
        differ: NDArray[np.bool_] = (x != y) & ~(formats.is_nan(self.p.d, x) & formats.is_nan(self.p.d, y))
        return differ

    def differ(self, a: Bits, b: Bits) -> NDArray[np.bool_]:
        """Where the answers to one call differ."""
        return self.unequal(*self.ask(a, b))


@dataclass(frozen=True)
class ComparedCall:
    """One call of both: ``differing`` elements of M x N, and the places (rows and columns) where any does."""

    shape: Shape
    family: str
    differing: int
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return self.shape[0] * self.shape[1]


@dataclass(frozen=True)
class Difference:
    """Operands of a call on whose element ``at`` two products differ."""

    family: str
    a: Bits
    b: Bits
    at: tuple[int, int]

    @property
    def shape(self) -> Shape:
        return self.a.shape[0], self.b.shape[1], self.a.shape[1]


@dataclass
class ProductComparison:
    """What came of comparing two products; ``absent``: shapes that one of them does not have, with its reason."""

    products: ProductPair
    seed: int
    calls: list[ComparedCall] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    first: Difference | None = None

    @property
    def elements(self) -> int:
        """Elements compared."""
        return sum(each.elements for each in self.calls)

    @property
    def differing(self) -> int:
        """Elements that differ."""
        return sum(each.differing for each in self.calls)

    @property
    def exit_code(self) -> int:
        """1 where an element differs, 4 where none was compared."""
        return MISMATCH if self.differing else EQUAL if self.calls else INCONCLUSIVE


def products_of(p: MatrixProduct, q: MatrixProduct) -> ProductPair:
    """Two products that can be compared; UsageError where their formats are others."""
    own, other = (f"A {each.a}, B {each.b}, D {each.d}" for each in (p, q))
    if own != other:
        raise UsageError(f"{p.name} has {own}; {q.name} has {other}: there is nothing to compare")
    return ProductPair(ProductCalls(p, CALLS), ProductCalls(q, CALLS))


def compare_products(
    products: ProductPair,
    elements: int = ELEMENTS,
    seed: int = 0,
    families: Sequence[str] = (),
    shapes: Sequence[Shape] = (),
) -> ProductComparison:
    """Every element of D at ``shapes`` (those about the one that the first product names, where none are said), family
    by family, again and again until so many elements are compared, or some differ.

    UnrepeatedError where a product answers the call that differs first in two ways; DeviceError where one fails;
    UsageError for an unknown family.
    """
    known = families_of(products.p)
    for name in families:
        if name not in known:
            raise UsageError(f"no family {name!r}{near(name, known)}")
    found = ProductComparison(products, seed)
    rng = np.random.default_rng(seed)
    wanted = [(shape, family) for family in families or known for shape in shapes or about(products.p.product.shape)]
    while wanted:
        for shape, family in list(wanted):
            try:
                found.calls.append(_compared(found, shape, family, rng))
            except UsageError as error:
                wanted.remove((shape, family))
                said = f"{family} at {named(shape)}: {error}"
                found.absent.append(said)
        if found.differing or found.elements >= elements:
            break
    return found


def named(shape: Shape) -> str:
    """A shape as people write it."""
    return " x ".join(map(str, shape))


def about(shape: Shape) -> list[Shape]:
    """A shape and others: smaller ones and odd ones, of smaller and larger K."""
    m, n, k = shape
    found = {shape: None}
    for i, j, factor in SIDES:
        made = max(1, int(m * i)), max(1, int(n * j)), max(1, int(k * factor))
        if made != shape:
            made = made[0] | 1, made[1], made[2] | 1
        if made[0] * made[1] * made[2] <= MOST_PRODUCTS:
            found[made] = None
    return list(found)


def _compared(found: ProductComparison, shape: Shape, family: str, rng: np.random.Generator) -> ComparedCall:
    products = found.products
    a, b = operands(products.p, family, shape, rng)
    differ = products.differ(a, b)
    if differ.any() and found.first is None:
        for calls in (products.p, products.q):
            calls.ask_twice(a, b)
        i, j = np.argwhere(differ)[0]
        found.first = Difference(family, a, b, (int(i), int(j)))
    rows, columns = (tuple(np.flatnonzero(differ.any(axis)).tolist()) for axis in (1, 0))
    return ComparedCall(shape, family, int(differ.sum()), rows, columns)


def runs(places: Sequence[int]) -> Iterator[range]:
    """Places in order as runs of neighbours."""
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1:
            yield range(places[start], places[end - 1] + 1)
            start = end
