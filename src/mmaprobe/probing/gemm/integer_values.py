"""Matrices of integers by which products of them are asked and compared: families, and what every product owes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe.formats import Format, get, integer_range, whole_codes
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.showing import of_which

INTEGER_FAMILIES = ("uniform", "ends", "turning", "sparse", "small", "opposed")
"""Families by name.  ``uniform``: every code.  ``ends``: the largest and the smallest numbers, rows and columns of one
of them alone among them.  ``turning``: products of one sign on some lanes and of the other one on the next, so that
what saturates on the way is seen beside a small sum.  ``sparse``: ends on few lanes, all others 0, which a D of few
bits does not clamp.  ``small``: numbers about 0.  ``opposed``: every product has its negative, as near as the formats
have it, on another lane: of D is left what saturates."""
RUNS = (1, 2, 3, 4, 8, 16, 64)
"""Lanes after which turning products turn."""
FEW = 6
"""Lanes of a sparse row or column at most, about."""
BYTE = 8
"""Bits of a D that may be clamped by most values."""
PARTS = 0.5
"""Share of numbers of f32 that are no whole ones before they are scaled."""
LANE = 0.5
"""Share of rows and columns that are others where leaks are looked for."""
UNITS = 16
"""Lanes that are counted where D may be a sum, at most."""
GENTLE = 31
"""Size of B less its zero point at most where a sum is dialled: four products of it and a byte fit into 16 bits."""
SMALL = 3
"""Size of small numbers at most."""

Whole = NDArray[np.int64]
Zeros = tuple[int, Whole]
"""Zero points of A and of B: of B one, or one for each column."""


def integer_operands(
    calls: ProductCalls, family: str, shape: tuple[int, int, int], rng: np.random.Generator
) -> tuple[Bits, Bits]:
    """A (M, K) and B (K, N) of a family; an A of f32 has the numbers of u8, with parts of whole ones, times a scale."""
    m, n, k = shape
    whole = get("u8") if calls.a.is_float else calls.a
    a, b = _values(family, (m, k), whole, rng), _values(family, (n, k), calls.b, rng).T
    if family == "turning":
        b = _turned(b, rng)
    if family == "opposed" and k > 1:
        lanes = rng.permutation(k)
        first, second = lanes[: k // 2], lanes[k // 2 : k // 2 * 2]
        a[:, second], b[second] = a[:, first], np.clip(-b[first], *integer_range(calls.b))
    codes = _scaled_codes(a, rng) if calls.a.is_float else whole_codes(calls.a, a)
    return codes, np.ascontiguousarray(whole_codes(calls.b, b))


def _scaled_codes(a: Whole, rng: np.random.Generator) -> Bits:
    """Numbers of u8 less a zero point, with a half or other parts more, times a scale: codes of f32."""
    zero, part = int(rng.integers(256)), rng.choice([0.5, -0.5, 0.0, rng.random()], a.shape)
    x = np.clip(a - zero + part * (rng.random(a.shape) < PARTS), -zero, 255 - zero)
    if a.size:
        x.flat[0], x.flat[-1] = -zero, 255 - zero
    scale = np.float32(np.ldexp(1 if rng.random() < PARTS else 1 + rng.random(), int(rng.integers(-8, 8))))
    found: Bits = (x.astype(np.float32) * scale).view(np.uint32)
    return found


def _values(family: str, shape: tuple[int, int], fmt: Format, rng: np.random.Generator) -> Whole:
    low, high = integer_range(fmt)
    if family in ("uniform", "opposed"):
        return rng.integers(low, high, shape, endpoint=True)
    if family == "small":
        return rng.integers(max(low, -SMALL), SMALL + 1, shape)
    found: Whole = rng.choice([low, high, high], shape)
    if family == "sparse":
        return np.where(rng.random(shape) < FEW * rng.random((shape[0], 1)) / max(shape[1], 1), found, 0)
    if family == "ends":
        found[::3] = high
        found[1::5] = low
    else:
        found[:] = high
    return found


def _turned(b: Whole, rng: np.random.Generator) -> Whole:
    """Of each column runs of lanes, of one length, at the other end or at 0, one after the other."""
    found, low = b.copy(), int(b.min(initial=0))
    for j in range(b.shape[1]):
        run, other = int(rng.choice(RUNS)), int(rng.choice([min(low, 0), -int(b[:, j].max(initial=0)) * (low < 0), 0]))
        lanes = (np.arange(len(b)) + int(rng.integers(2 * run))) // run % 2 == 1
        found[lanes, j] = other
    return found


def check_integers(calls: ProductCalls, shape: tuple[int, int, int], rng: np.random.Generator) -> str:
    """An element that depends on other rows or columns; empty where none does.  UnrepeatedError for answers that
    differ."""
    m, n, _ = shape
    family = "sparse" if calls.d.bits <= BYTE else "uniform"
    a, b = integer_operands(calls, family, shape, rng)
    d = calls.ask_twice(a, b)
    if m == n == 1:
        return ""
    other = integer_operands(calls, "uniform", shape, rng)
    rows, columns = rng.random(m) < LANE, rng.random(n) < LANE
    rows[0], columns[-1] = m > 1, n > 1
    x, y = np.where(rows[:, None], other[0], a), np.where(columns[None], other[1], b)
    again = calls.ask(x.astype(a.dtype), y.astype(b.dtype))
    wrong = np.argwhere((again != d) & ~rows[:, None] & ~columns[None])
    if not len(wrong):
        return ""
    (i, j), which = wrong[0], of_which(len(wrong), d.size, "element", "are")
    return f"D[{i}, {j}] is other where only other rows and columns are; {which} wrong"


def constant(calls: ProductCalls, shape: tuple[int, int, int], rng: np.random.Generator) -> str:
    """That every element of D is one number, of every family; empty where it is not."""
    every = [np.unique(calls.ask(*integer_operands(calls, family, shape, rng))) for family in INTEGER_FAMILIES]
    seen = np.unique(np.concatenate(every))
    return f"every element of D is {seen[0]:#x}, whatever A and B are" if len(seen) == 1 else ""


def _beside(calls: ProductCalls, zeros: Zeros) -> tuple[int, Whole]:
    """Numbers of A and B that are 1 above their zero points, or below where nothing is above."""
    (_, high_a), (_, high_b) = integer_range(calls.a), integer_range(calls.b)
    one = zeros[0] + 1 if zeros[0] < high_a else zeros[0] - 1
    return one, np.where(zeros[1] < high_b, zeros[1] + 1, zeros[1] - 1)


def uncounted(calls: ProductCalls, shape: tuple[int, int, int], zeros: Zeros) -> str:
    """A lane whose product, alone beside zero points, changes nothing where that of another lane is added to D."""
    _, n, k = shape
    one, other = _beside(calls, zeros)
    b = whole_codes(calls.b, np.broadcast_to(other, (k, n)))
    base = calls.ask(whole_codes(calls.a, np.full((1, k), zeros[0])), b)
    wanted, found = whole_codes(calls.d, (one - zeros[0]) * (other - zeros[1])), list[Bits]()
    for start in range(0, k, shape[0]):
        lanes = np.arange(start, min(start + shape[0], k))
        a = np.full((len(lanes), k), zeros[0])
        a[np.arange(len(lanes)), lanes] = one
        found.append(calls.ask(whole_codes(calls.a, a), b))
    d = np.vstack(found)
    wrong = np.argwhere((d == base) & (d - base == wanted).any(0))
    if not len(wrong):
        return ""
    lane, j = wrong[0]
    return f"lane {lane} is not counted: alone it leaves D[., {j}] at {base[0, j]:#x}, as no other lane does"


def adds_units(calls: ProductCalls, shape: tuple[int, int, int], zeros: Zeros) -> bool:
    """Whether D is the number of lanes on which A and B are 1 above, or below, their zero points, of few of these."""
    (m, n, k), count = shape, min(shape[0], shape[2], UNITS)
    one, other = _beside(calls, zeros)
    a = np.full((m, k), zeros[0])
    for row in range(count):
        a[row, : row + 1] = one
    d = calls.ask(whole_codes(calls.a, a), whole_codes(calls.b, np.broadcast_to(other, (k, n))))[:count]
    wanted = np.arange(1, count + 1)[:, None] * ((one - zeros[0]) * (other - zeros[1]))
    return bool((d == whole_codes(calls.d, wanted)).all())


def dialled(
    calls: ProductCalls, sums: Whole, shape: tuple[int, int], zeros: Zeros
) -> tuple[Bits, Bits, NDArray[np.bool_]]:
    """A (of as many rows as there are sums), B (K, N), and which rows of D are these sums of A and B less their zero
    points: those that so many products reach."""
    n, k = shape
    (low_a, high_a), (low_b, high_b) = integer_range(calls.a), integer_range(calls.b)
    least, most = low_a - zeros[0], high_a - zeros[0]
    up, down = min(GENTLE, high_b - int(zeros[1].max())), max(-GENTLE, low_b - int(zeros[1].min()))
    kinds = [each for each in (up, down) if each]
    factors = np.array([kinds[lane % len(kinds)] for lane in range(k)])
    factors[-2:] = [np.sign(each) for each in (kinds * 2)[:2]][: len(factors[-2:])]
    left, a = sums.copy(), np.zeros((len(sums), k), np.int64)
    for lane, factor in enumerate(factors):
        taken = np.clip((abs(left) // abs(factor)) * np.sign(left) * np.sign(factor), least, most)
        a[:, lane], left = taken, left - taken * factor
    b = np.broadcast_to(factors[:, None] + zeros[1], (k, n))
    return whole_codes(calls.a, a + zeros[0]), whole_codes(calls.b, b), left == 0
