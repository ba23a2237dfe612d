"""Which elements of A, B and C reach which element of D: rows, columns, lanes.

Random tiles of 0, 1 and -1, whose sums every unit gets right, against the
product of the matrices: agreement in several tiles leaves no room for another
placement (but for one order of lanes used in A and B alike, which is no more than
their names; sparse A meets the lanes that its metadata names).  Where they
disagree each operand is asked element by element: one 1 in A beside a B of ones,
and so on, which shows the rows and columns that it reaches; where that is right, tiles of few
products a sum tell whether sums of many are only rounded, and tiles of one sign whether those of both are only off by
what a term and its opposite leave, as where a unit negates by ones' complement.  An operand that the
instruction negates, and a C that it scales down, count as such.

Answer: ``{"a": "as named" | {element: outputs}, "b": ..., "c": ...}``; an entry lists what
came out elsewhere: ``"0,1": ["1,*"]`` where a[0, 1] reaches row 1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.modifiers import operand_signs
from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.evidence.records import Finding
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.session.exact_values import code_of, values_of
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession

TILES = 6
"""Random tiles that must be the products of their matrices."""
FEW = 3
"""Products a sum, where sums of more are rounded."""

WRONG = 1 << 40
"""The number that stands for what is none, or none that such tiles make."""
Ints = NDArray[np.int64]
_SIGNS: dict[str, Callable[[Ints], Ints]] = {
    "keep": lambda x: x, "flip": lambda x: -x, "clear": np.abs, "set": lambda x: -np.abs(x)
}  # fmt: skip


async def probe_layout(session: ProbeSession) -> Finding:
    """Placement of operands (see the module)."""
    rng = np.random.default_rng(session.bench.seed + 2)
    values: dict[str, Ints] = {
        name: _random(session, rng, name, TILES) for name in ("a", "b", "c") if name in session.formats
    }
    tiles = _tiles(session, rng, values, TILES)
    d, expected = await session.run_tiles(tiles), _products(session, tiles, values)
    if np.array_equal(_decoded(session.d, d), expected):
        answer: dict[str, Any] = dict.fromkeys(values, "as named")
        return session.finding("bounded", answer, f"{TILES} tiles of 0 and +-1 are the product of the matrices")
    answer = {name: await _element_by_element(session, rng, name) for name in values}
    moved = [name for name, where in answer.items() if where != "as named"]
    if moved:
        return session.finding("contradictory", answer, f"elements of {', '.join(moved)} reach other outputs")
    thin = values | {"a": np.where(rng.random(values["a"].shape).argsort(-1) < FEW, values["a"], 0)}
    if await _are_products(session, rng, thin):
        text = f"element by element, and {TILES} tiles of {FEW} products a sum; more of them are rounded"
        return session.finding("bounded", answer, text)
    near = session.is_float and np.array_equal(_decoded(session.d, d, nearest=True), expected)
    if near and await _are_products(session, rng, _of_one_sign(session, values)):
        text = f"element by element, and {TILES} tiles of one sign; those of both signs but for less than a half"
        return session.finding("bounded", answer, text)
    return session.finding("contradictory", answer, "one by one right, together wrong")


async def _are_products(session: ProbeSession, rng: np.random.Generator, values: dict[str, Ints]) -> bool:
    """Whether tiles of these values are the products of their matrices."""
    tiles = _tiles(session, rng, values, TILES)
    return np.array_equal(_decoded(session.d, await session.run_tiles(tiles)), _products(session, tiles, values))


def _of_one_sign(session: ProbeSession, values: dict[str, Ints]) -> dict[str, Ints]:
    """The values with the signs with which the unit has no negative one."""
    found = {name: np.abs(value) for name, value in values.items()}
    for name, value in found.items():
        found[name] = np.where(_signed(session, name, value) < 0, -value, value)
    return found


def _random(session: ProbeSession, rng: np.random.Generator, name: str, items: int) -> Ints:
    """0, 1 and, where the format has it, -1."""
    low = -1 if code_of(session.formats[name], Fraction(-1)) is not None else 0
    return rng.integers(low, 2, session.instruction.shapes(items)[name])


def _tiles(session: ProbeSession, rng: np.random.Generator, values: dict[str, Ints], items: int) -> Batch:
    """The values as codes, scales 1, metadata at random."""
    out: dict[str, Bits] = {}
    for name, shape in session.instruction.shapes(items).items():
        if name == "metadata":
            out[name] = rng.choice(np.array(legal_items(session.instruction.chunk), np.uint8), shape)
        elif name in values:
            fmt = session.formats[name]
            one = 1 << int(session.instruction.modifier.get("scale_input_d", 0)) if name == "c" else 1
            codes = [code_of(fmt, Fraction(v * one)) or 0 for v in (-1, 0, 1)]
            out[name] = np.array(codes, fmt.dtype)[values[name] + 1]
        else:
            out[name] = np.full(shape, session.formats[name].one, session.formats[name].dtype)
    return Batch(**out)


def _decoded(fmt: Format, d: Bits, nearest: bool = False) -> Ints:
    """Values of D as whole numbers, or the ``nearest`` ones; a code that is no small one counts as one that no sum
    has."""
    codes, where = np.unique(d, return_inverse=True)
    values = values_of(fmt, codes)
    whole = [v is not None and (nearest or v.denominator == 1) and abs(v) <= WRONG for v in values]
    numbers = [round(v) if is_whole and v is not None else WRONG for v, is_whole in zip(values, whole, strict=True)]
    return np.array(numbers, np.int64)[where].reshape(d.shape)


def _products(session: ProbeSession, tiles: Batch, values: dict[str, Ints]) -> Ints:
    """A times B plus C in whole numbers (x XOR y = x + y - 2xy), each with the sign that the modifiers give it."""
    signed = {name: _signed(session, name, value) for name, value in values.items()}
    a, b = signed["a"], signed["b"]
    if tiles.metadata is not None:
        lanes = kept_positions(session.instruction, tiles.metadata)
        met = np.take_along_axis(b[..., None, :, :], lanes[..., None], axis=-2)
        sums = np.einsum("...ik,...ikj->...ij", a, met)
    else:
        sums = a @ b
    if session.instruction.multiply == "xor":
        sums = a.sum(-1)[..., :, None] + b.sum(-2)[..., None, :] - 2 * sums
    return np.asarray(sums + signed.get("c", 0))


def _signed(session: ProbeSession, name: str, value: Ints) -> Ints:
    """An operand as the unit multiplies or adds it: of A and B even and odd lanes may have signs of their own."""
    ways = operand_signs(session.instruction).get(name, ("keep", "keep"))
    even, odd = (_SIGNS[way](value) for way in ways)
    if name == "c" or ways[0] == ways[1]:
        return even
    lanes = np.arange(value.shape[-1 if name == "a" else -2]) % 2
    return np.where(lanes if name == "a" else lanes[:, None], odd, even)


async def _element_by_element(session: ProbeSession, rng: np.random.Generator, name: str) -> Any:
    """One 1 in one operand, ones in the other, C zero (or the other way round): where it comes out."""
    shape = session.instruction.shapes(1)[name][1:]
    count = int(np.prod(shape))
    shapes = session.instruction.shapes(count)
    values = {other: np.zeros(shapes[other], np.int64) for other in shapes if other in ("a", "b", "c")}
    values[name] = np.eye(count, dtype=np.int64).reshape(count, *shape)
    if name != "c":
        values["b" if name == "a" else "a"][...] = 1
    tiles = _tiles(session, rng, values, count)
    d = _decoded(session.d, await session.run_tiles(tiles))
    expected = _products(session, tiles, values)
    wrong = [number for number in range(count) if not np.array_equal(d[number], expected[number])]
    return {_place(shape, n): _reached(d[n]) for n in wrong[:64]} or "as named"


def _place(shape: tuple[int, ...], number: int) -> str:
    return ",".join(str(i) for i in np.unravel_index(number, shape))


def _reached(d: Ints) -> list[str]:
    """The outputs that are not zero, whole rows and columns as one."""
    places = [tuple(int(i) for i in place) for place in np.argwhere(d)]
    rows = sorted({place[:-1] for place in places})
    if len(places) == len(rows) * d.shape[-1]:
        return [",".join(map(str, (*row, "*"))) for row in rows]
    columns = sorted({place[-1] for place in places})
    if len(places) == len(columns) * d[..., 0].size:
        return [f"*,{column}" for column in columns]
    return [",".join(map(str, place)) for place in places]


PROBE = Probe(
    order=30,
    asks="which element of A, B and C reaches which of D",
    rivals="as named, or where it comes out",
    experiment=probe_layout,
    of_tiles=True,
    sound=lambda answer: set(answer.values()) == {"as named"},
)
