"""One product held against another: what was compared, and the smallest product that tells them apart, explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmaprobe.devices.products import MatrixProduct
from mmaprobe.parameters.schedule_changes import ScheduleChange, schedule_changes
from mmaprobe.validation.products.comparing import ELEMENTS, ProductComparison, compare_products, products_of
from mmaprobe.validation.products.partial_sums import PartialSum, partial_sums, schedule_of
from mmaprobe.validation.products.smallest import Smallest, smallest


@dataclass(frozen=True)
class ProductVerdict:
    """``changes``: what two schedules say otherwise, where both products are schedules; ``least`` and ``sums``: where
    an element differs."""

    p: MatrixProduct
    q: MatrixProduct
    comparison: ProductComparison
    changes: tuple[ScheduleChange, ...] = ()
    least: Smallest | None = None
    sums: tuple[PartialSum, ...] = ()

    @property
    def exit_code(self) -> int:
        """That of the comparison."""
        return self.comparison.exit_code


def hold_against(
    p: MatrixProduct, q: MatrixProduct, elements: int = ELEMENTS, seed: int = 0, families: Sequence[str] = ()
) -> ProductVerdict:
    """Compare two products at the shape of the first one and others (``compare_products``), and shrink what differs."""
    products = products_of(p, q)
    compared = compare_products(products, elements, seed, families)
    own, other = schedule_of(p), schedule_of(q)
    changes = schedule_changes(own, other) if own is not None and other is not None else []
    if compared.first is None:
        return ProductVerdict(p, q, compared, tuple(changes))
    least = smallest(products, compared.first, np.random.default_rng(seed))
    return ProductVerdict(p, q, compared, tuple(changes), least, tuple(partial_sums(products, least)))
