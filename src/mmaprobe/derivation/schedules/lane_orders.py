"""Which product of a step each lane of a primitive takes: two tables of lanes by lanes, one turned into the other."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.integer]
MOST_TRIED = 20_000
"""Lanes that are tried for products at most."""


def lane_order(told: Table, foretold: Table) -> tuple[int, ...] | None:
    """``order`` with told[order[i], order[j]] = foretold[i, j] for all lanes i and j but the diagonal; None: none was
    found.  The lowest product goes to the first lane that may have it."""
    if told.shape != foretold.shape:
        return None
    if (_off(told) == _off(foretold)).all():
        return tuple(range(len(told)))
    lanes = _kinds(foretold)
    fitting = [[lane for lane, own in enumerate(lanes) if own == kind] for kind in _kinds(told)]
    if not all(fitting):
        return None
    taken, left = list[int](), [MOST_TRIED]
    if not _placed(told, foretold, fitting, taken, left):
        return None
    order = np.empty(len(told), np.intp)
    order[taken] = np.arange(len(told))
    return tuple(order.tolist())


def _placed(told: Table, foretold: Table, fitting: list[list[int]], taken: list[int], left: list[int]) -> bool:
    """Whether products from ``len(taken)`` on have lanes; ``taken`` are those of all of them then."""
    product = len(taken)
    if product == len(told):
        return True
    before = np.arange(product)
    for lane in fitting[product]:
        left[0] -= 1
        if left[0] < 0:
            return False
        if lane in taken or not (
            (told[product, before] == foretold[lane, taken]).all()
            and (told[before, product] == foretold[taken, lane]).all()
        ):
            continue
        taken.append(lane)
        if _placed(told, foretold, fitting, taken, left):
            return True
        taken.pop()
    return False


def _off(table: Table) -> Table:
    """The table without its diagonal."""
    found: Table = table[~np.eye(len(table), dtype=bool)]
    return found


def _kinds(table: Table) -> list[tuple[object, ...]]:
    """Of every place what its row and its column hold, in any order, but the diagonal."""
    held = table.astype(object)
    np.fill_diagonal(held, None)
    return [
        tuple(frozenset(Counter(line).items()) for line in (held[place], held[:, place])) for place in range(len(held))
    ]
