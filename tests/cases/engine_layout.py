"""The engine's other ways: arrays in the engine layout (csrc/cpu/kernels/tiles.hpp) and back, the interpreter alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mmaprobe import _native, formats
from mmaprobe.models.kernels import INTERPRETER
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath

STRIP = 16


def _strips(x: Bits) -> Bits:
    """(tiles, M, items) to (tiles, strips, items, 16), zeros below."""
    count, m, items = x.shape
    strips = -(-m // STRIP)
    padded = np.zeros((count, strips * STRIP, items), x.dtype)
    padded[:, :m] = x
    return np.ascontiguousarray(padded.reshape(count, strips, STRIP, items).swapaxes(2, 3))


def layout_call(datapath: Datapath, tiles: Batch) -> Callable[[], Bits] | None:
    """What computes D in the engine layout of tiles laid out now; None where the datapath has no kernel."""
    count, m, _ = tiles.a.shape
    n = tiles.b.shape[2]
    columns = [None if x is None else np.ascontiguousarray(x.swapaxes(1, 2)) for x in (tiles.b, tiles.scale_b)]
    rows = [None if x is None else _strips(x) for x in (tiles.a, tiles.c, tiles.scale_a)]
    out = np.zeros((count, -(-m // STRIP), n, STRIP), formats.get(datapath.d).dtype)
    operands = [rows[0], columns[0], rows[1], rows[2], columns[1]]

    def call() -> Bits:
        assert _run(datapath, operands, out, count, m, n)
        return out

    return call if _run(datapath, operands, out, count, m, n) else None


def run_tiles(datapath: Datapath, tiles: Batch) -> Bits | None:
    """D (tiles, M, N) by the datapath's kernel; None where it has none."""
    call = layout_call(datapath, tiles)
    if call is None:
        return None
    count, m, _ = tiles.a.shape
    return call().swapaxes(2, 3).reshape(count, -1, tiles.b.shape[2])[:, :m]


def run_groups(datapath: Datapath, vectors: Batch) -> Bits | None:
    """d (n,) of vectors by the datapath's kernel on groups of 16; None where it has none."""
    groups = -(-vectors.size // STRIP)

    def pack(x: Bits | None) -> Bits | None:
        if x is None:
            return None
        rows = x.reshape(vectors.size, -1)
        padded = np.zeros((groups * STRIP, rows.shape[1]), x.dtype)
        padded[: vectors.size] = rows
        return np.ascontiguousarray(padded.reshape(groups, STRIP, -1).swapaxes(1, 2))

    operands = [pack(x) for x in (vectors.a, vectors.b, vectors.c, vectors.scale_a, vectors.scale_b)]
    out = np.zeros(groups * STRIP, formats.get(datapath.d).dtype)
    return out[: vectors.size] if _run(datapath, operands, out, groups, STRIP, 0) else None


def run_interpreter(datapath: Datapath, vectors: Batch) -> Bits:
    """d (n,) of vectors by the engine's interpreter, whether the datapath has a kernel or not."""
    words = program(datapath)
    assert words is not None
    words = words.copy()
    words[COLUMNS["header"].index("kernel")] = INTERPRETER
    operands = [vectors.a, vectors.b, vectors.c, vectors.scale_a, vectors.scale_b, vectors.random]
    out = np.empty((1, vectors.size), formats.get(datapath.d).dtype)
    ready = [None if x is None else np.ascontiguousarray(x) for x in operands]
    _native.engine_evaluate([words], ready, out, os.environ.get("MMAPROBE_ISA", ""))
    return out[0]


def _run(datapath: Datapath, operands: list[Bits | None], out: Bits, count: int, m: int, n: int) -> bool:
    words = program(datapath)
    assert words is not None
    return _native.engine_evaluate_layout(words, operands, out, count, m, n, os.environ.get("MMAPROBE_ISA", ""))


def tiles_of(vectors: Batch, m: int, n: int) -> Batch:
    """Tiles that take their rows, columns and addends from the vectors' operands, in order."""
    count = vectors.size // (m * n)

    def rows(x: Bits | None) -> Bits | None:
        return None if x is None else np.ascontiguousarray(x[: count * m].reshape(count, m, -1))

    def columns(x: Bits | None) -> Bits | None:
        return None if x is None else np.ascontiguousarray(x[: count * n].reshape(count, n, -1).swapaxes(1, 2))

    c = None if vectors.c is None else vectors.c[: count * m * n].reshape(count, m, n)
    a, b = rows(vectors.a), columns(vectors.b)
    assert a is not None
    assert b is not None
    return replace(vectors, a=a, b=b, c=c, scale_a=rows(vectors.scale_a), scale_b=columns(vectors.scale_b))
