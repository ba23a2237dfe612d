"""Vectors for telling NaN rules apart: a few special operands among ones."""

from __future__ import annotations

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints, unit
from mmaprobe.operands.batch import Batch, Bits

LIVE = (1.0, 0.85, 0.3)
"""How often there is a first special operand, a second, a third: one shows a code, two an order."""


def nan_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Ones with one to three special operands: quiet and signalling NaNs of any payload and sign, invalid products
    (zero times infinity, or a NaN scale); c is one of them as often as not, neighbouring lanes often."""
    rng = np.random.default_rng([seed, 0x4A4])
    vectors = ones(instruction, count)
    kinds = _kinds(instruction)
    lane = rng.integers(0, instruction.k, count)
    for number in range(len(LIVE)):
        near = rng.random(count) < 0.5
        lane = np.where(near, (lane + rng.integers(0, 2, count)) % instruction.k, rng.integers(0, instruction.k, count))
        kind = rng.integers(0, len(kinds), count)
        live = rng.random(count) < LIVE[number]
        for i, name in enumerate(kinds):
            rows = np.flatnonzero(live & (kind == i))
            _write(rng, instruction, vectors, name, rows, lane[rows])
    return vectors


def nans_beside_c(instruction: Instruction) -> Batch:
    """Ones with two NaNs, quiet or signalling, of either sign: that of c, and one of a or b in the first lane or the
    last: c is what it was only until the first step has taken it, and of many lanes chance seldom means the first."""
    every = {side: _every_nan(instruction, side) for side in ("a", "b", "c")}
    lanes = sorted({0, instruction.k - 1})
    pairs = [
        (f"{side}{lane}", code, of_c)
        for lane in lanes for side in ("a", "b") for code in every[side] for of_c in every["c"]
    ]  # fmt: skip
    vectors = ones(instruction, len(pairs))
    for row, (name, code, of_c) in enumerate(pairs):
        put(vectors, row, name, code)
        put(vectors, row, "c", of_c)
    return vectors


def _every_nan(instruction: Instruction, side: str) -> tuple[int, ...]:
    """The quiet NaNs of an operand, and signalling ones of either sign where it has them."""
    quiet = quiet_codes(instruction, side)
    if not quiet:
        return ()
    fmt = formats.get(getattr(instruction, side))
    if not fmt.quiet_bit or fmt.fraction_bits < 2 or fmt.infinity_code is None:
        return quiet
    least = fmt.infinity_code | 1 << fmt.padding
    return (*quiet, least, *([least | fmt.sign_mask] if fmt.has_sign_bit else []))


def _kinds(instruction: Instruction) -> list[str]:
    """What a special operand can be here: a NaN of a, b or c, an invalid product, a NaN scale."""
    sides = [side for side in ("a", "b") if quiet_codes(instruction, side)]
    infinite = [side for side in ("a", "b") if formats.get(getattr(instruction, side)).infinity_code is not None]
    invalid = [f"{side}*0" for side in infinite]
    scales = ["scale_a", "scale_b"] if instruction.scale is not None else []
    return [*sides, *invalid, *scales, *(["c", "c"] if instruction.c is not None else [])] or ["a"]


def _write(
    rng: np.random.Generator, instruction: Instruction, vectors: Batch, kind: str, rows: Ints, lane: Ints
) -> None:
    """Make these lanes of these vectors (or c) special, in place."""
    if kind == "c":
        assert vectors.c is not None
        vectors.c[rows] = _nans(rng, instruction, "c", rows.size)
    elif kind in ("scale_a", "scale_b"):
        assert instruction.scale is not None
        getattr(vectors, kind)[rows, lane // instruction.scale_size] = formats.get(instruction.scale).nan_code or 0
    elif len(kind) == 1:
        getattr(vectors, kind)[rows, lane] = _nans(rng, instruction, kind, rows.size)
    else:
        fmt = formats.get(getattr(instruction, kind[0]))
        getattr(vectors, kind[0])[rows, lane] = fmt.infinity_code
        getattr(vectors, "b" if kind[0] == "a" else "a")[rows, lane] = 0


def _nans(rng: np.random.Generator, instruction: Instruction, side: str, count: int) -> Bits:
    """NaNs of every kind that the format has; its largest value where it has none."""
    fmt = formats.get(getattr(instruction, side))
    code = np.full(count, fmt.nan_code if fmt.nan_code is not None else fmt.largest, np.uint64)
    if fmt.quiet_bit and fmt.fraction_bits > 1:
        assert fmt.infinity_code is not None
        low = rng.integers(1, 1 << (fmt.fraction_bits - 1), count).astype(np.uint64)
        low = np.where(rng.random(count) < 0.3, np.uint64(1), low) << np.uint64(fmt.padding)
        code = np.where(rng.random(count) < 0.4, np.uint64(fmt.infinity_code) | low, code | low)
    if fmt.has_sign_bit:
        code = code | np.where(rng.random(count) < 0.5, np.uint64(fmt.sign_mask), np.uint64(0))
    found: Bits = code.astype(fmt.dtype)
    return found


def quiet_codes(instruction: Instruction, side: str) -> tuple[int, ...]:
    """The quiet NaNs of an operand's format that differ in sign; none where it has none."""
    name = getattr(instruction, side)
    if name is None or formats.get(name).nan_code is None:
        return ()
    fmt = formats.get(name)
    code = fmt.nan_code
    assert code is not None
    return (code, code | fmt.sign_mask) if fmt.has_sign_bit else (code,)


def ones(instruction: Instruction, count: int) -> Batch:
    """Vectors whose every operand, and scale, is 1."""
    shapes: dict[str, tuple[int, ...]] = {"a": (count, instruction.k), "b": (count, instruction.k)}
    shapes |= {} if instruction.c is None else {"c": (count,)}
    names = {name: getattr(instruction, name) for name in shapes}
    if instruction.scale is not None:
        for name in ("scale_a", "scale_b"):
            shapes[name], names[name] = (count, instruction.k // instruction.scale_size), instruction.scale
    return Batch(**{name: np.full(shape, unit(names[name])) for name, shape in shapes.items()})


def put(vectors: Batch, row: int, name: str, code: int) -> None:
    """Write a code into one operand of one vector, in place; ``name``: a0, b0, ... c."""
    if name == "c":
        assert vectors.c is not None
        vectors.c[row] = code
    else:
        getattr(vectors, name[0])[row, int(name[1:])] = code
