"""Stored witnesses: one element of one product each, whose bits a schedule gives and another one does not.

A row of ``tests/golden/schedule_witnesses.json`` is [M, N, K, i, j, fill of a, fill of b, lanes, a, b, D]: row i of A
is ``fill of a`` but at the lanes, column j of B likewise, all codes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cases.gemm_schedules import ONE, PLAIN, SHARED
from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.schedule import Schedule, Scope, known_schedules, schedule_named

SHARED_K = "stream_k"
"""The schedule that no library is known to have: one of f32 in which workers share K."""
FILE = Path(__file__).parents[1] / "golden" / "schedule_witnesses.json"
REFUSED = -1
"""What a schedule answers whose regions overlap, or leave a gap, at this shape."""


@dataclass(frozen=True)
class SumWitness:
    """One element of a product of this shape: codes of its row of A and column of B, and its bits by a schedule."""

    shape: tuple[int, int, int]
    at: tuple[int, int]
    fill: tuple[int, int]
    lanes: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    d: int = 0

    def answer(self, schedule: Schedule) -> int:
        """The element by a schedule, whatever its scope; ``REFUSED`` where it has none."""
        (m, n, k), (i, j) = self.shape, self.at
        x, y = (self._row(formats.get(name), number) for number, name in enumerate((schedule.a, schedule.b)))
        a, b = np.broadcast_to(x, (1, m, k)), np.broadcast_to(y[:, None], (1, k, n))
        try:
            found = Gemm(replace(schedule, scope=Scope("any"))).run(a, b, rows=slice(i, i + 1), columns=slice(j, j + 1))
        except UsageError:
            return REFUSED
        return int(found[0, 0, 0])

    def _row(self, fmt: formats.Format, number: int) -> Any:
        codes = np.full(self.shape[2], self.fill[number], fmt.dtype)
        codes[list(self.lanes)] = (self.a, self.b)[number]
        return codes

    def row(self) -> list[Any]:
        """As the file has it."""
        return [*self.shape, *self.at, *self.fill, list(self.lanes), list(self.a), list(self.b), self.d]


def held() -> dict[str, Schedule]:
    """The schedules of which the file has witnesses, by name: those that ship, and ``SHARED_K``."""
    kernel = replace(PLAIN, ranges=replace(SHARED, workers=5))
    shared = replace(ONE, c=None, kernels=(kernel,))
    return {name: schedule_named(name) for name in known_schedules()} | {SHARED_K: shared}


def read() -> dict[str, Any]:
    """``pairs`` by the names of two schedules, ``witnesses`` and ``equal`` (field and value: why) by that of one."""
    held: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return held


def witness(row: list[Any]) -> SumWitness:
    """A row of the file."""
    m, n, k, i, j, fill_a, fill_b, lanes, a, b, d = row
    return SumWitness((m, n, k), (i, j), (fill_a, fill_b), tuple(lanes), tuple(a), tuple(b), d)
