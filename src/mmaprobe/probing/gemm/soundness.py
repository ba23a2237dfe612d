"""What every matrix product owes: all lanes counted, nothing of one row or column in another, the same answer again."""

from __future__ import annotations

import numpy as np

from mmaprobe.probing.gemm.calls import Floats, ProductCalls
from mmaprobe.probing.gemm.elements import draw
from mmaprobe.showing import of_which

SPREAD = 8
"""Powers of two, up and down, that magnitudes are spread over where answers must repeat."""
LANE = 0.5
"""Of each operand, the share of rows or columns that are NaN where leaks are looked for."""


def check_soundness(calls: ProductCalls, m: int, n: int, k: int, rng: np.random.Generator) -> list[str]:
    """What is wrong, a line each: none of it leaves an order to look for.  UnrepeatedError for answers that differ."""
    found = [_leaks(calls, m, n, k, rng), _uncounted(calls, m, n, k)]
    shapes = {"a": (m, k), "b": (k, n)}
    a, b = (draw(calls, r * c, rng, SPREAD, name).reshape(r, c) for name, (r, c) in shapes.items())
    d = calls.ask_twice(a, b)
    if k > 1 and m * n > 1 and len(np.unique(d)) == 1:
        found.append(f"every element of D is {d[0, 0]:#x}, whatever A and B are")
    return [each for each in found if each]


def _uncounted(calls: ProductCalls, m: int, n: int, k: int) -> str:
    """Ones in, K out: a lane that is dropped or taken twice is a number that is not K."""
    one: tuple[Floats, Floats] = np.ones((m, k)), np.ones((k, n))
    expected = calls.values(calls.bits(np.array([float(k)]), calls.d))[0]
    d = calls.values(calls.ask(calls.bits(one[0], calls.a), calls.bits(one[1], calls.b)))
    wrong = np.argwhere(d != expected)
    if not len(wrong) or k > 1 << (calls.d.fraction_bits + 1):
        return ""
    i, j = wrong[0]
    return f"of ones D[{i}, {j}] is {d[i, j]:g}, not K = {k}; {of_which(len(wrong), d.size, 'element', 'are')} wrong"


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
