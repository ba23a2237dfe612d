"""The device function in a child process: its environment is set before its library loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.devices.base import open_device, run_tiles, run_vectors
from mmaprobe.devices.function import open_function, open_product
from mmaprobe.devices.products import open_product as open_any
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Batch

SOURCE = """
import os
import sys

import numpy as np

print("a library may print")
LOADED = os.environ.get("LIBRARY_MODE", "none")

def dot(a, b):
    return np.float32({"none": 0, "fast": 1}[LOADED] + a @ b)

def threads(a, b):
    return np.float32(int(os.environ["OPENBLAS_NUM_THREADS"]))

def product(a, b):
    return a @ b

def raises(a, b):
    raise ValueError("no such kernel")

def dies(a, b):
    os._exit(3)

def changes(a, b):
    a[:] = 0
    return a @ b
"""


@pytest.fixture
def library(tmp_path: Path) -> str:
    path = tmp_path / "library.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def ones(shape: tuple[int, ...]) -> Any:
    return np.ones(shape, np.float32).view(np.uint32)


def test_the_environment_is_there_when_the_library_loads(library: str) -> None:
    device = open_device(f"function:{library}:dot?k=4&env.LIBRARY_MODE=fast")
    d = run_vectors(device, device.instructions()[0], Batch(ones((2, 4)), ones((2, 4))))
    assert d.view(np.float32).tolist() == [5.0, 5.0]
    assert "env.LIBRARY_MODE=fast" in device.instructions()[0].id


def test_libraries_are_told_their_threads(library: str) -> None:
    device = open_function(f"{library}:threads?k=1&threads=3")
    d = run_vectors(device, device.instruction, Batch(ones((1, 1)), ones((1, 1))))
    assert d.view(np.float32).tolist() == [3.0]


def test_a_matrix_is_numpys_own() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((1, 5, 33), np.float32), rng.standard_normal((1, 33, 7), np.float32)
    device = open_device("function:numpy:matmul?m=5&n=7&k=33&threads=1")
    d = run_tiles(device, device.instructions()[0], Batch(a.view(np.uint32), b.view(np.uint32)))
    near = np.abs(d.view(np.float32) - a @ b)
    assert near.max() < 1e-4


def test_a_whole_product_has_every_shape(library: str) -> None:
    product = open_any(f"function:{library}:product?m=3&n=4&k=5&threads=1")
    assert (product.shape, product.a, product.d, product.threads) == ((3, 4, 5), "f32", "f32", 1)
    for m, n, k in ((3, 4, 5), (1, 1, 1), (70, 2, 3000)):
        d = product.multiply(ones((m, k)), ones((k, n)))
        assert (d.view(np.float32) == k).all()
        assert d.shape == (m, n)


@pytest.mark.parametrize(
    ("name", "said"),
    [("raises", "ValueError: no such kernel"), ("dies", "ended with exit code 3"), ("threads", "returned")],
)
def test_a_call_that_fails_is_said_and_the_next_one_is_asked(library: str, name: str, said: str) -> None:
    product = open_product(f"{library}:{name}?threads=1")
    for _ in range(2):
        with pytest.raises(DeviceError, match=said):
            product.multiply(ones((2, 2)), ones((2, 2)))


@pytest.mark.parametrize(
    ("argument", "error", "said"),
    [
        ("numpy:matmull?threads=1", UsageError, "numpy has no 'matmull'; did you mean matmul"),
        ("no_such_library:dot?threads=1", NotHereError, "No module named 'no_such_library'; install it"),
        ("numpy:matmul?threads=0", UsageError, "threads='0' must be a whole number from 1 on"),
        ("numpy:matmul?threads=5000", UsageError, "must be at most 1024"),
        ("numpy:matmul?env.=1", UsageError, "unknown option 'env.'"),
        ("numpy:matmul?env.A=%00", UsageError, "env.A is no variable"),
        ("numpy:matmul?m=99999&k=99999", UsageError, "choose a smaller k, m or n"),
        ("numpy:matmul?c=f32", UsageError, "a whole product takes no option c"),
    ],
)
def test_what_is_wrong_is_one_line(argument: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        open_product(argument)


def test_other_devices_are_no_whole_products() -> None:
    with pytest.raises(UsageError, match="multiplies no matrices of any shape"):
        open_any("cpu")
