"""Where each value of A goes: one 1 in A, a number in every place of B, and the row and the k that D shows.

A kept value c of row c mod M is 1, all others 0.  B is 1 everywhere (which row
of D is reached), then the digits of k in base 4 (which k the value meets).  Of a
sparse A all metadata items keep the first lanes of their chunk; then, for each
bit of a chunk's number, those of chunks with that bit keep the last lanes: which
item decides about a value follows from the bits at which the k that it meets
changes.  What the values are called is what the kernel's layout names them.

Answer: "as named", or {"row,c": "row,k,chunk"} of each value that goes elsewhere.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.session.exact_values import UnrepresentableError, values_of
from mmaprobe.probing.session.session import ProbeSession

Ints = NDArray[np.int64]
BASE = 4
"""The digits in which k is written: small enough whole numbers for every format."""
NOWHERE = -1
"""Where a value is of which D does not say a place."""
SHOWN = 3
"""Places that a text names."""


async def follow_one_hot(session: ProbeSession) -> Finding:
    """Where values of A go (see the module)."""
    made = session.instruction
    if made.blocks > 1 or made.scale:
        raise UnrepresentableError("values of A are followed one at a time in one MFMA block without scales only")
    digits = max(-(-(made.k - 1).bit_length() // 2), 1)
    bits = (made.k // made.chunk - 1).bit_length() if made.chunk else 0
    k = np.arange(made.k)
    planes = [np.ones(made.k, np.int64), *(k // BASE**place % BASE for place in range(digits))]
    late = k % made.chunk * 2 // made.chunk if made.chunk else k
    tiles = _tiles(session, [*planes, *[late] * bits], [0] * len(planes) + [1 << bit for bit in range(bits)])
    d = _decoded(session, await session.run_tiles(tiles)).reshape(made.selected, len(planes) + bits, made.m, made.n)
    seen = [_seen(d[c], digits, bits) for c in range(made.selected)]
    named = _named(session)
    moved = {f"{c % made.m},{c}": _said(seen[c]) for c in range(made.selected) if seen[c] != named[c]}
    if not moved:
        return session.finding("bounded", "as named", f"each of {made.selected} values of A meets the k that it names")
    shown = [f"a[{place}] meets {to}" for place, to in list(moved.items())[:SHOWN]]
    text = f"{len(moved)} of {made.selected} values of A go elsewhere (row,k,chunk): {'; '.join(shown)}"
    return session.finding("contradictory", moved, text + "; ..." * (len(moved) > SHOWN))


def _tiles(session: ProbeSession, planes: list[Ints], chosen: list[int]) -> Batch:
    """For each kept value of A and each plane of B a tile; chunks whose number has the plane's bit keep last lanes."""
    made = session.instruction
    shapes = made.shapes(made.selected * len(planes))
    value = np.repeat(np.arange(made.selected), len(planes))
    codes = {name: np.zeros(shape, session.formats[name].dtype) for name, shape in shapes.items() if name in "abc"}
    codes["a"][np.arange(len(value)), value % made.m, value] = session.operand("a", Fraction(1))
    digits = np.array([session.operand("b", Fraction(digit)) for digit in range(BASE)], codes["b"].dtype)
    rows = np.array(planes)
    codes["b"][...] = digits[np.tile(rows, (made.selected, 1))][..., None]
    if made.chunk:
        items = legal_items(made.chunk)
        first, last = items[0], items[-1]
        late = np.array([[bool(chunk & bit) for chunk in range(made.k // made.chunk)] for bit in chosen])
        rows = np.where(np.tile(late, (made.selected, 1)), last, first).astype(np.uint8)
        codes["metadata"] = np.broadcast_to(rows[:, None, :], shapes["metadata"]).copy()
    return Batch(**codes)


def _decoded(session: ProbeSession, d: Bits) -> Ints:
    """Magnitudes of D as whole numbers; NOWHERE for what is none."""
    codes, where = np.unique(d, return_inverse=True)
    whole = [NOWHERE if v is None or v.denominator != 1 else abs(int(v)) for v in values_of(session.d, codes)]
    return np.array(whole, np.int64)[where].reshape(d.shape)


def _seen(d: Ints, digits: int, bits: int) -> tuple[int, int, int]:
    """Row, k and chunk of one value, from its planes (planes, M, N); NOWHERE where D does not say one."""
    reached = np.flatnonzero(d[0].any(axis=-1))
    if len(reached) != 1 or (d[0, reached[0]] != 1).any():
        return NOWHERE, NOWHERE, NOWHERE
    row = d[1:, reached[0]]
    if (row != row[:, :1]).any() or (row < 0).any() or (row >= BASE).any():
        return int(reached[0]), NOWHERE, NOWHERE
    k = sum(int(row[place, 0]) * BASE**place for place in range(digits))
    return int(reached[0]), k, sum(int(row[digits + bit, 0] > 0) << bit for bit in range(bits))


def _named(session: ProbeSession) -> list[tuple[int, int, int]]:
    """The same by the names of the values."""
    made = session.instruction
    if not made.chunk:
        return [(c % made.m, c, 0) for c in range(made.k)]
    item = np.full((1, made.m, made.k // made.chunk), legal_items(made.chunk)[0], np.uint8)
    kept = kept_positions(made, item)[0, 0]
    return [(c % made.m, int(kept[c]), int(kept[c]) // made.chunk) for c in range(made.selected)]


def _said(place: tuple[int, int, int]) -> str:
    return ",".join("?" if each == NOWHERE else str(each) for each in place)
