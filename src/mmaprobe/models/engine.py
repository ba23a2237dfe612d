"""The native engine: a datapath evaluated on arrays of vectors at full speed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import _native, formats
from mmaprobe.errors import UsageError
from mmaprobe.models import stages
from mmaprobe.models.bit_budget import bit_budget
from mmaprobe.models.kernels import KERNELS
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS, OPCODES
from mmaprobe.native_module import agree
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath

Altered = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Of an axis the places of the words that it alters, what they are for each of its values, and its value in each
combination."""

agree(
    "engine_layout",
    {name: list(columns) for name, columns in COLUMNS.items()} | {"opcodes": list(OPCODES), "kernels": list(KERNELS)},
)


def refusal(datapath: Datapath) -> str | None:
    """Why the native engine cannot run a datapath (its exact path is then Python's); None where it can."""
    return bit_budget(datapath).reason


def as_fast(datapath: Datapath, than: Datapath) -> bool:
    """Whether the engine holds a datapath, where it holds another one."""
    return refusal(datapath) is None or refusal(than) is not None


def evaluate(datapath: Datapath, vectors: Batch) -> Bits:
    """d (n,) of vectors a (n, K), b (n, K), c (n,), scale_* (n, K/S), random (n,), as bit patterns.

    The rule is ``docs/datapath.md``; the results are those of ``stages.evaluate``
    to the bit, which also does what ``refusal`` names.  Raises UsageError where
    an operand is missing or of the wrong shape or type.
    """
    d: Bits = evaluate_many((datapath,), vectors)[0]
    return d


def evaluate_many(datapaths: Sequence[Datapath], vectors: Batch) -> Bits:
    """d (datapaths, n) of each datapath on the same vectors; all results have one container type.

    Operand formats, K and scale shapes must agree between the datapaths.
    """
    if not datapaths:
        raise UsageError("no datapath to evaluate")
    dtypes = {formats.get(datapath.d).dtype for datapath in datapaths}
    if len(dtypes) != 1:
        raise UsageError(f"results of different widths in one call: {', '.join(sorted(map(str, dtypes)))}")
    for datapath in {(path.a, path.b, path.c, path.k, path.scale, path.random): path for path in datapaths}.values():
        _check(datapath, vectors)
    out = _native.results(dtypes.pop(), (len(datapaths), vectors.size))
    programs = [program(datapath) for datapath in datapaths]
    native = [words for words in programs if words is not None]
    has_c = datapaths[0].c is not None
    if len(native) == len(programs):
        run_programs(native, has_c, vectors, out)
        return out
    for i, (datapath, words) in enumerate(zip(datapaths, programs, strict=True)):
        if words is None:
            out[i] = stages.evaluate(datapath, vectors)
        else:
            run_programs([words], has_c, vectors, out[i : i + 1])
    return out


def evaluate_tiles(datapath: Datapath, tiles: Batch) -> Bits | None:
    """D (n, M, N) of tiles a (n, M, K), b (n, K, N), c (n, M, N), scale_a (n, M, K/S), scale_b (n, K/S, N).

    None where the datapath has no kernel that works on whole tiles: ``evaluate``
    then takes each pair of a row and a column.  Raises UsageError where an
    operand is missing or of the wrong shape or type.
    """
    words = program(datapath)
    if words is None or datapath.random is not None or tiles.a.ndim != 3 or tiles.b.ndim != 3:
        return None
    (count, m, _), n = tiles.a.shape, tiles.b.shape[2]
    out = _native.results(formats.get(datapath.d).dtype, (count, m, n))
    has_c = datapath.c is not None
    try:
        done = _native.engine_evaluate_tiles(words, _ready(tiles, has_c)[:-1], out, count, m, n, build())
    except ValueError as error:
        raise UsageError(f"engine: {error}") from None
    return out if done else None


def _ready(operands: Batch, has_c: bool) -> list[Bits | None]:
    c = operands.c if has_c else None
    named = (operands.a, operands.b, c, operands.scale_a, operands.scale_b, operands.random)
    return [None if x is None else np.ascontiguousarray(x, x.dtype.newbyteorder("=")) for x in named]


def build() -> str:
    """The engine build that the environment asks for; the fastest where it says nothing."""
    return os.environ.get("MMAPROBE_ISA", "")


def run_programs(programs: list[NDArray[Any]], has_c: bool, vectors: Batch, out: Bits) -> None:
    """Row i of ``out`` becomes the results of program i."""
    try:
        _native.engine_evaluate(programs, _ready(vectors, has_c), out, build())
    except ValueError as error:
        raise UsageError(f"engine: {error}") from None


@dataclass(frozen=True)
class Patched:
    """A program that axes alter: its words, those ``free`` of which the largest that any axis says is right, where its
    sums begin, and what lifts an anchored grid (``combinations``)."""

    words: NDArray[np.int64]
    free: NDArray[np.bool_]
    sums: NDArray[np.int64]
    lift: int

    def run(self, axes: list[Altered], has_c: bool, vectors: Batch, out: Bits) -> None:
        """Row i of ``out`` becomes the results of the program altered by every axis as combination i says."""
        try:
            _native.engine_evaluate_combinations(
                self.words, axes, self.free, self.sums, self.lift, _ready(vectors, has_c), out, build()
            )
        except ValueError as error:
            raise UsageError(f"engine: {error}") from None


def _check(datapath: Datapath, vectors: Batch) -> None:
    """Every operand there, with the datapath's shape and container."""
    n, k = vectors.size, datapath.k
    expected: dict[str, tuple[tuple[int, ...], str]]
    expected = {"a": ((n, k), datapath.a), "b": ((n, k), datapath.b)}
    if datapath.c is not None:
        expected["c"] = ((n,), datapath.c)
    if datapath.scale is not None:
        expected["scale_a"] = expected["scale_b"] = ((n, k // datapath.scale.size), datapath.scale.format)
    if datapath.random is not None:
        expected["random"] = ((n,), datapath.random)
    given = dict(vectors.items())
    for name in sorted(expected.keys() | given.keys()):
        if name not in expected:
            raise UsageError(f"operand {name}: this datapath takes none, got shape {given[name].shape}")
        shape, fmt = expected[name]
        dtype = formats.get(fmt).dtype
        got = given.get(name)
        if got is None or got.shape != shape or got.dtype.newbyteorder("=") != dtype:
            came = "nothing" if got is None else f"{got.dtype} {got.shape}"
            raise UsageError(f"operand {name}: this datapath takes {dtype} {shape}, got {came}")
