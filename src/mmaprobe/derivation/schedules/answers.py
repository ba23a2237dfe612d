"""Answers of one class of elements that kernels are held against bit by bit: whatever was asked, in part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats as number_formats
from mmaprobe.derivation.schedules.pairs import ClassView
from mmaprobe.derivation.schedules.values import Formats
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.schedule import GemmKernel
from mmaprobe.probing.gemm.calls import Asked
from mmaprobe.probing.gemm.elements import EqualRows

MOST_SIDE = 48
"""Rows, and columns, of a call that kernels are held against at most; the others say the same again."""


@dataclass
class ClassAnswers:
    """Calls, of each some rows and columns that are wholly of the class; a NaN is any NaN."""

    view: ClassView
    formats: Formats
    calls: list[Asked] = field(default_factory=list)

    def add(self, asked: Iterable[Asked]) -> None:
        """Keep what the class answers in these calls, whose D has the shape of the class's map."""
        rows, columns = (_some(each) for each in (self.view.rows, self.view.columns))
        self.calls += [Asked(a[rows], b[:, columns], d[np.ix_(rows, columns)]) for a, b, d in asked]

    def add_rows(self, asked: Iterable[EqualRows]) -> None:
        """Keep what the class answers in calls of equal rows."""
        i, j = self.view.rows[0], self.view.columns[0]
        self.calls += [Asked(each.x[None], each.y[:, None], each.d[i : i + 1, j : j + 1]) for each in asked]

    def miss(self, kernel: GemmKernel, k: int | None = None) -> str:
        """The first element that a kernel gives otherwise, in words, of calls of this K alone; empty: there is none."""
        for number, asked in enumerate(self.calls):
            if k in (None, asked.a.shape[1]) and (said := self._miss(kernel, asked)):
                return f"at K = {asked.a.shape[1]}, answer {number + 1}, {said}"
        return ""

    def _miss(self, kernel: GemmKernel, asked: Asked) -> str:
        try:
            d = computed(kernel, self.formats, asked.a, asked.b)
        except UsageError as error:
            return str(error)
        wrong = np.argwhere(differing(self.formats.d, d, asked.d))
        if not len(wrong):
            return ""
        i, j = wrong[0]
        return f"D[{i}, {j}] is {asked.d[i, j]:#x}, not {d[i, j]:#x}"

    def agreeing(self, kernels: Sequence[GemmKernel], k: int | None = None) -> list[GemmKernel]:
        """Those that give every bit."""
        return [each for each in kernels if not self.miss(each, k)]


def computed(kernel: GemmKernel, formats: Formats, a: Bits, b: Bits) -> Bits:
    """D (M, N) of A (M, K) and B (K, N) by a kernel."""
    d: Bits = Gemm(formats.alone(kernel)).run(a[None], b[None])[0]
    return d


def differing(fmt: str, x: Bits, y: Bits) -> NDArray[np.bool_]:
    """Which elements differ, two NaNs being equal."""
    of = number_formats.get(fmt)
    there: NDArray[np.bool_] = (x != y) & ~(number_formats.is_nan(of, x) & number_formats.is_nan(of, y))
    return there


def _some(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """So many of these places at most, spread over them."""
    chosen: NDArray[np.intp] = places[np.unique(np.linspace(0, len(places) - 1, MOST_SIDE).astype(np.intp))]
    return chosen
