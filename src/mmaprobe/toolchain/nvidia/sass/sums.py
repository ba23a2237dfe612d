"""Sums as symbols: what an accumulator holds is a number that names which products were added to it, and in what order.

A matrix instruction is given the numbers of A's and B's elements in place of their values; each element of its result
gets a new number, a handle.  0 is +0.  ``order`` follows a handle back to the nested tuple that it stands for:

    ()                 +0
    (order, (k, ...))  an order, and a step of the matrix instruction onto it; NOTHING for a product of zeros
    ("+", x, y)        a rounded addition of two, which may come in either order: x has the lower first k
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import DeviceError

Order = tuple[Any, ...]
Numbers = NDArray[np.int64]
FIRST = 1 << 20
"""The first handle: no address or index of a small product is as large."""
NOTHING = -1
"""k of a lane whose operands are the zeros beyond a matrix."""


def added(x: Order, y: Order) -> Order:
    """The sum of two."""
    return ("+", x, y) if _first(x) <= _first(y) else ("+", y, x)


def _first(order: Order) -> int:
    """The lowest k of an order's first step; NOTHING of +0."""
    while order and (order[0] == "+" or order[0]):
        order = order[1] if order[0] == "+" else order[0]
    return min((k for k in order[1] if k != NOTHING), default=NOTHING) if order else NOTHING


@dataclass(frozen=True)
class Multiplied:
    """A matrix instruction's result: the handles of C, and the numbers of the elements of A (M, K) and B (K, N); the
    places (M, N) of its handles in the order in which they were given."""

    c: Numbers
    a: Numbers
    b: Numbers
    rows: Numbers
    columns: Numbers


@dataclass(frozen=True)
class Added:
    """Handles that were added, one a lane."""

    x: Numbers
    y: Numbers


@dataclass
class Sums:
    """All handles of a run, of a product of shape (M, N, K): element (m, k) of A has number 1 + m K + k, element (k, n)
    of B 1 + k N + n, and 0 is a zero that was filled in."""

    shape: tuple[int, int, int]
    _starts: list[int] = field(default_factory=list)
    _nodes: list[Multiplied | Added] = field(default_factory=list)
    _next: int = FIRST

    def new(self, node: Multiplied | Added, count: int) -> Numbers:
        """So many handles for the results of a node."""
        self._starts.append(self._next)
        self._nodes.append(node)
        made = np.arange(self._next, self._next + count)
        self._next += count
        return made

    def orders(self, handles: Numbers, m: Numbers, n: Numbers) -> list[Order]:
        """The order of each handle, as that of element (m, n) of D; DeviceError where it holds products of another
        element, lanes of A and B that do not belong together, or no sum at all."""
        found: list[Order] = [()] * len(handles)
        node_of = np.searchsorted(self._starts, handles, "right") - 1
        for number in np.unique(node_of):
            chosen = np.flatnonzero(node_of == number)
            live = chosen[handles[chosen] != 0]
            if not len(live):
                continue
            at, which = handles[live], (m[live], n[live])
            if number < 0 or at.max() >= self._next:
                raise DeviceError(f"D[{which[0][0]}, {which[1][0]}] holds {int(at[0]):#x}, which is no sum")
            node, place = self._nodes[number], at - self._starts[number]
            made = self._added(node, place, *which) if isinstance(node, Added) else self._step(node, place, *which)
            for index, order in zip(live, made, strict=True):
                found[index] = order
        return found

    def _added(self, node: Added, place: Numbers, m: Numbers, n: Numbers) -> list[Order]:
        pairs = zip(self.orders(node.x[place], m, n), self.orders(node.y[place], m, n), strict=True)
        return [added(x, y) for x, y in pairs]

    def _step(self, node: Multiplied, place: Numbers, m: Numbers, n: Numbers) -> list[Order]:
        before = self.orders(node.c[place], m, n)
        _, columns, depth = self.shape
        of_a, of_b = node.a[node.rows[place]], node.b[:, node.columns[place]].T
        k_a = np.where(of_a == 0, NOTHING, of_a - 1 - m[:, None] * depth)
        k_b, n_b = np.divmod(of_b - 1, columns)
        k_b = np.where(of_b == 0, NOTHING, k_b)
        wrong = (k_a != k_b) | ((of_b != 0) & (n_b != n[:, None])) | (k_a < NOTHING) | (k_a >= depth)
        if wrong.any():
            element, lane = np.argwhere(wrong)[0]
            raise DeviceError(
                f"D[{m[element]}, {n[element]}] is given the product of element {of_a[element, lane] - 1} of A and "
                f"element {of_b[element, lane] - 1} of B, which is none of its own"
            )
        kinds, kind = np.unique(k_a, axis=0, return_inverse=True)
        steps = [tuple(step.tolist()) for step in kinds]
        made: dict[tuple[int, int], Order] = {}  # equal orders are one object, which is compared at once
        return [
            made.setdefault((id(order), number), (order, steps[number]))
            for order, number in zip(before, kind.ravel().tolist(), strict=True)
        ]
