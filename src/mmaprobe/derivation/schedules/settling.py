"""Neighbours of a kernel that the search left open: calls of their own, each made where kernel and neighbour differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmaprobe.derivation.schedules.certificate import EVERY, FieldNeighbour, answered, certify
from mmaprobe.derivation.schedules.orders import order_of
from mmaprobe.derivation.schedules.pairs import ClassView
from mmaprobe.derivation.schedules.search import OrderRead, ask_grid, sampled
from mmaprobe.derivation.schedules.values import Formats, telling
from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import GemmKernel
from mmaprobe.probing.gemm.elements import EqualRows, ask_equal_rows

CALLS = 8
"""Calls at most that are made for the neighbours of one kernel."""
DRAWN = 200
"""Ks beyond ``EVERY`` at which the orders of a kernel and a neighbour are compared."""


def settle(
    kernel: GemmKernel, view: ClassView, k: int, readings: list[OrderRead], asked: list[EqualRows], formats: Formats,
    rng: np.random.Generator,
) -> list[FieldNeighbour]:  # fmt: skip
    """The verdict on every neighbour, after calls for those that are open, which come to ``readings`` and ``asked``.

    None at all: the kernel itself does not answer one of these calls so, or an answer is no size of any sum.
    """
    tried = set[GemmKernel]()
    for _ in range(CALLS):
        verdicts = certify(kernel, readings, asked, view.mask, formats)
        left = [other for each, other in verdicts if each.verdict == "open" and other not in tried]
        if not left:
            return [each for each, _ in verdicts]
        tried.add(left[0])
        found = _ask_order(kernel, left[0], view, k, rng)
        if found is not None:
            readings.append(found)
        else:
            asked += _ask_values(kernel, left[0], view, k, formats, rng)
        if readings[-1].pairs.misfits or not answered(kernel, readings[-1:], asked[-1:], view.mask, formats):
            return []
    return [each for each, _ in certify(kernel, readings, asked, view.mask, formats)]


def _ask_order(
    kernel: GemmKernel, other: GemmKernel, view: ClassView, k: int, rng: np.random.Generator
) -> OrderRead | None:
    """Sizes of pairs at the first K found at which the two add in different orders; None: they do not, or the product
    has no such K."""
    for lanes in _lengths(max(k, 2 * (kernel.ranges.length or 0)), k, rng):
        p, q = np.triu_indices(lanes, 1) if lanes <= EVERY else sampled(lanes, rng)
        where = np.flatnonzero(order_of(kernel, lanes).sizes(p, q) != order_of(other, lanes).sizes(p, q))
        if len(where):
            where = rng.permutation(where)
            try:
                return OrderRead(lanes, ask_grid(view, lanes, p[where], q[where]), (kernel,))
            except UsageError:
                return None
    return None


def _lengths(reach: int, k: int, rng: np.random.Generator) -> Sequence[int]:
    """Ks up to twice a reach, the one that was named and all small ones first."""
    return [k, *range(2, EVERY + 1), *rng.integers(EVERY + 1, max(2 * reach, EVERY + 2), DRAWN).tolist()]


def _ask_values(
    kernel: GemmKernel, other: GemmKernel, view: ClassView, k: int, formats: Formats, rng: np.random.Generator
) -> list[EqualRows]:
    """A call of equal rows that the two answer differently; none, where none was found."""
    rows = telling([kernel, other], formats, view.calls, k, rng)
    if rows is None:
        return []
    m, n = view.mask.shape
    try:
        return [ask_equal_rows(view.calls, m, n, *rows)]
    except UsageError:
        return []  # the product has no such K
