"""What every matrix product owes: all lanes counted, nothing of one row or column in another, the same answer again."""

from __future__ import annotations

import numpy as np

from mmaprobe.probing.gemm.calls import Floats, ProductCalls
from mmaprobe.probing.gemm.elements import draw_matrices
from mmaprobe.probing.gemm.sizes import countable
from mmaprobe.showing import of_which

SPREAD = 8
"""Powers of two, up and down, that magnitudes are spread over where answers must repeat."""
LANE = 0.5
"""Of each operand, the share of rows or columns that are NaN where leaks are looked for."""


def check_soundness(calls: ProductCalls, m: int, n: int, k: int, rng: np.random.Generator) -> list[str]:
    """What is wrong, a line each: none of it leaves an order to look for.  UnrepeatedError for answers that differ."""
    found = [_leaks(calls, m, n, k, rng), _uncounted(calls, m, n, k)]
    a, b = draw_matrices(calls, (m, n, k), rng, SPREAD)
    d = calls.ask_twice(a, b)
    if k > 1 and m * n > 1 and (d == d[0, 0]).all():
        found.append(f"every element of D is {d[0, 0]:#x}, whatever A and B are")
    return [each for each in found if each]


def _uncounted(calls: ProductCalls, m: int, n: int, k: int) -> str:
    """Ones in, K out: a lane that is dropped or taken twice is a number that is not K.

    Where D cannot count to K, each column has ones on a part of the lanes alone; together they have all."""
    one: tuple[Floats, Floats] = np.ones((m, k)), np.ones((k, n))
    parts = np.array_split(np.arange(k), max(1, -(-k // countable(calls.d))))
    for start in range(0, len(parts), n):
        live = [parts[(start + j) % len(parts)] for j in range(n)]
        if len(parts) > 1:
            one[1][:] = 0
            for j, lanes in enumerate(live):
                one[1][lanes, j] = 1
        d = calls.values(calls.ask(calls.bits(one[0], calls.a), calls.bits(one[1], calls.b)))
        wrong = np.argwhere(d != [len(lanes) for lanes in live])
        if len(wrong):
            i, j = wrong[0]
            first, last, count = live[j][0], live[j][-1], len(live[j])
            meant = f"K = {k}" if len(parts) == 1 else f"{count}, with zeros beside lanes {first} to {last}"
            which = of_which(len(wrong), d.size, "element", "are")
            return f"of ones D[{i}, {j}] is {d[i, j]:g}, not {meant}; {which} wrong"
    return ""


def _leaks(calls: ProductCalls, m: int, n: int, k: int, rng: np.random.Generator) -> str:
    """NaN in some rows of A and some columns of B, one at the border of every element that must be K."""
    if m == n == 1 or calls.a.nan_code is None or calls.b.nan_code is None:
        return ""
    rows, columns = rng.random(m) < LANE, rng.random(n) < LANE
    rows[0], columns[-1] = m > 1, n > 1
    rows[-1], columns[0] = m == 1 and rows[-1], n == 1 and columns[0]
    a, b = np.ones((m, k)), np.ones((k, n))
    a[rows], b[:, columns] = np.nan, np.nan
    d = calls.values(calls.ask(calls.bits(a, calls.a), calls.bits(b, calls.b)))
    must = rows[:, None] | columns[None, :]
    wrong = np.argwhere(np.isnan(d) != must)
    if not len(wrong):
        return ""
    i, j = wrong[0]
    said = "is NaN, which only other rows and columns hold" if not must[i, j] else "is no NaN, which its operands hold"
    return f"D[{i}, {j}] {said}; {of_which(len(wrong), d.size, 'element', 'are')} wrong"
