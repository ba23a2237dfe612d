"""Row-major tiles through the kernels: as in the engine layout, which NumPy makes here, for every shape and width."""

from __future__ import annotations

import platform
from itertools import product

import numpy as np
import pytest

from cases.engine import DATAPATHS, batch
from cases.engine_layout import run_tiles, tiles_of
from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction
from mmaprobe.models import engine
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for

F64 = datapath_for("sm_90a", instruction("mma.m8n8k4.f64.f64.f64.f64"))
PATHS = {
    **{name: DATAPATHS[name] for name in (
        "T-FDPA f16", "T-FDPA f16 to f16", "T-FDPA tf32", "T-FDPA e4m3", "mxf8f6f4", "mxf4nvf4", "s8", "s4",
        "vpdpbusd", "b1 xor", "CDNA1 f16",
    )},
    "f64": F64,
}  # fmt: skip
ROWS, COLUMNS = (1, 4, 8, 16, 21, 32), (1, 2, 4, 5, 8, 12, 16, 17, 24, 40)


def check(path: Datapath, m: int, n: int, count: int) -> None:
    tiles = tiles_of(batch(path, "clustered", m * n, count * m * n), m, n)
    expected, found = run_tiles(path, tiles), engine.evaluate_tiles(path, tiles)
    assert expected is not None
    assert found is not None
    assert (found == expected).all(), f"{m} x {n} of {path}"


@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize("name", PATHS)
def test_every_shape(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    if name == "f64" and build == "baseline" and platform.machine() == "x86_64":
        pytest.skip("this build has no fused multiply-add, so no kernel of it")
    for m, n in product(ROWS, COLUMNS):
        check(PATHS[name], m, n, 2)


@pytest.mark.parametrize("name", PATHS)
def test_more_than_a_piece(name: str) -> None:
    check(PATHS[name], 16, 8, 257)


def test_dropped_results_serve_the_next_call() -> None:
    shape = (1 << 10, 16, 8)
    first = _native.results(np.dtype(np.uint32), shape)
    assert (first.shape, first.dtype, first.flags.c_contiguous, first.flags.writeable) == (shape, "uint32", True, True)
    place, view = first.ctypes.data, first[3:]
    del first
    second = _native.results(np.dtype(np.uint32), shape)
    assert second.ctypes.data != place, "memory in use was handed out"
    del view
    assert _native.results(np.dtype(np.uint32), shape).ctypes.data == place


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 4), (5,), (1 << 20,), (3, 1 << 20)])
def test_results_of_every_size(shape: tuple[int, ...]) -> None:
    made = _native.results(np.dtype(np.uint64), shape)
    made[...] = 7
    assert made.shape == shape
    assert (made == 7).all()
