"""CuPy on a stand-in for NVIDIA's driver: its arrays in and out, and memory from its allocator.

Each test runs with a stand-in for CuPy, and with the real wheel where it is installed: arrays, allocators, pointers and
errors are its own then, on the stand-in GPU's memory; what CuPy asks a driver for is put in its place.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator.batches import random_batch
from mmaprobe import formats
from mmaprobe.api import OpenDevice
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu.driver import LostError, OutOfMemoryError
from mmaprobe.devices.gpu.launch import item_bytes
from mmaprobe.devices.nvidia.machine import Machine
from mmaprobe.errors import DeviceError, NotHereError
from mmaprobe.operands.edge import from_bits, to_bits
from mmaprobe.operands.resident import Resident
from mmaprobe.vendors import NVIDIA
from stand_ins.fake_cuda import FakeCuda, device, model

pytestmark = pytest.mark.needs("cuda.bindings")

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
BATCH = random_batch(MADE, 40, 1)


class Block:
    """Memory of the stand-in GPU, which goes back to the pool when nobody holds it."""

    def __init__(self, pool: Pool, address: int, size: int) -> None:
        self.pool, self.address, self.size = pool, address, size

    def __del__(self) -> None:
        self.pool.kept.append((self.address, self.size))
        self.pool.used -= self.size


class Pool:
    """CuPy's default pool: it keeps what it gets back, and allocates up to ``limit`` bytes of the GPU (0: no limit)."""

    def __init__(self, gpu: FakeCuda, limit: int = 0) -> None:
        self.gpu, self.limit, self.used, self.most, self.asked = gpu, limit, 0, 0, 0
        self.kept: list[tuple[int, int]] = []

    def malloc(self, size: int) -> Block | None:
        """A block; None where there is none."""
        self.asked += 1
        fitting = min((each for each in self.kept if each[1] >= size), key=lambda each: each[1], default=None)
        if fitting is not None:
            self.kept.remove(fitting)
        else:
            if self.limit and self.used + self.free_bytes() + size > self.limit:
                self.free_all_blocks()
            status, address = (2, None) if self.limit and self.used + size > self.limit else self.gpu.cuMemAlloc(size)
            if int(status):
                return None
            fitting = int(address), size
        self.used += fitting[1]
        self.most = max(self.most, self.used)
        return Block(self, *fitting)

    def free_all_blocks(self) -> None:
        while self.kept:
            self.gpu.cuMemFree(self.kept.pop()[0])

    def free_bytes(self) -> int:
        return sum(size for _, size in self.kept)

    def used_bytes(self) -> int:
        return self.used

    def get_limit(self) -> int:
        return self.limit


class Places:
    """Stands for CuPy's contexts: which are current, and which were."""

    def __init__(self) -> None:
        self.current: list[object] = []
        self.seen: list[object] = []

    @contextmanager
    def at(self, what: object) -> Iterator[object]:
        self.current.append(what)
        self.seen.append(what)
        yield what
        self.current.pop()


class NoMemory(MemoryError):
    """``cupy.cuda.memory.OutOfMemoryError``."""


class RuntimeFailure(RuntimeError):
    """``cupy.cuda.runtime.CUDARuntimeError``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class OnGpu:
    """What both kinds of arrays say of themselves; CuPy's own asks a driver."""

    places: Places
    data: Any
    shape: Any
    dtype: Any
    nbytes: Any

    @property
    def device(self) -> Any:
        return self.places.at("device 0")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        kind = np.dtype(f"V{self.dtype.itemsize}") if self.dtype.isbuiltin != 1 else self.dtype
        return {"shape": self.shape, "typestr": kind.str, "data": (self.data.ptr, False), "version": 3, "stream": 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return NVIDIA.memory, 0

    def __dlpack__(self, stream: int | None = None) -> Any:
        raise BufferError(f"{self.dtype} is not supported by DLPack")

    def get(self) -> Any:
        found = np.empty(self.shape, self.dtype)
        ctypes.memmove(found.ctypes.data, self.data.ptr, found.nbytes)
        return found


def stand_in(pool: Pool, places: Places) -> Any:
    """A module like CuPy."""

    class Array(OnGpu):
        __module__ = "cupy"

        def __init__(self, shape: Any, dtype: Any, memptr: Any) -> None:
            self.shape, self.dtype, self.data = shape, np.dtype(dtype), memptr

        def view(self, dtype: Any) -> Array:
            return Array(self.shape, dtype, self.data)

    def alloc(size: int) -> Any:
        block = pool.malloc(size)
        if block is None:
            raise NoMemory(f"Out of memory allocating {size} bytes")
        return types.SimpleNamespace(ptr=block.address, owner=block)

    cupy = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(CUDARuntimeError=RuntimeFailure, is_hip=False)
    vars(cupy).update(cuda=types.SimpleNamespace(alloc=alloc, runtime=runtime), Array=Array)
    return cupy


def wheel(pool: Pool, places: Places, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The real one."""
    import cupy

    class Array(OnGpu, cupy.ndarray):  # type: ignore[misc]
        __module__ = "cupy"
        shape, dtype, data = cupy.ndarray.shape, cupy.ndarray.dtype, cupy.ndarray.data

    def allocator(size: int) -> Any:
        block = pool.malloc(size)
        if block is None:
            raise cupy.cuda.memory.OutOfMemoryError(size, pool.used, pool.limit)
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(block.address, size, block, 0), 0)

    monkeypatch.setattr(cupy, "Array", Array, raising=False)
    cupy.cuda.set_allocator(allocator)
    return cupy


@pytest.fixture(params=["stand-in", pytest.param("wheel", marks=pytest.mark.needs("cupy"))])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """CuPy on a stand-in GPU: ``gpu``, its ``pool``, ``places`` and the module."""
    gpu, places = FakeCuda(shared=True), Places()  # whose context CuPy keeps
    pool = Pool(gpu)
    cupy = stand_in(pool, places) if request.param == "stand-in" else wheel(pool, places, monkeypatch)

    class Null:
        def __enter__(self) -> None:
            places.current.append("default stream")
            places.seen.append("default stream")

        def __exit__(self, *_: object) -> None:
            places.current.pop()

    def asarray(host: Any) -> Any:
        held = cupy.cuda.alloc(max(host.nbytes, 1))
        ctypes.memmove(held.ptr, np.ascontiguousarray(host).ctypes.data, host.nbytes)
        return cupy.Array(host.shape, host.dtype, memptr=held)

    runtime = cupy.cuda.runtime
    monkeypatch.setattr(cupy.Array, "places", places, raising=False)
    monkeypatch.setattr(cupy.cuda, "Device", lambda index: places.at(f"device {index}"), raising=False)
    monkeypatch.setattr(cupy.cuda, "Stream", types.SimpleNamespace(null=Null()), raising=False)
    monkeypatch.setattr(runtime, "getDeviceCount", lambda: 1, raising=False)
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: pool, raising=False)
    monkeypatch.setattr(cupy, "asarray", asarray, raising=False)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    yield types.SimpleNamespace(gpu=gpu, pool=pool, places=places, cupy=cupy)
    if request.param == "wheel":
        cupy.cuda.set_allocator(None)


def test_arrays_go_in_and_come_out_on_their_gpu(installed: Any) -> None:
    """Read where they lie, without a copy; D is an array of CuPy's on the same GPU, in the operands' own kind."""
    at, gpu = installed.cupy.asarray, installed.gpu
    gpu.cuCtxPushCurrent(0)  # CuPy's
    operands = dict(BATCH.items())
    typed = [at(operands[name].view(kind)) for name, kind in (("a", "f2"), ("b", "f2"), ("c", "f4"))]
    multiply = OpenDevice(device(gpu, cupy=installed.cupy)).instruction(MADE)
    before = gpu.copied
    multiply(*(value[:0] for value in operands.values()))
    known, before = gpu.copied - before, gpu.copied
    installed.places.seen.clear()
    d = multiply(*typed)
    assert gpu.copied - before == known, "an operand went through host memory"
    assert isinstance(d, installed.cupy.Array)
    assert d.dtype == np.float32
    assert (d.get().view(np.uint32) == model(MADE, BATCH)).all()
    assert installed.places.seen[-1] == "device 0", "made while the operand's GPU is the current one"
    bits = multiply(*(at(value) for value in operands.values()))
    assert bits.dtype == np.uint32
    mixed = multiply(typed[0], operands["b"], operands["c"])
    assert (mixed.get().view(np.uint32) == d.get().view(np.uint32)).all()


@pytest.mark.parametrize(("name", "own"), [("bf16", "bfloat16"), ("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2")])
def test_types_that_numpy_lacks(installed: Any, name: str, own: str) -> None:
    """CuPy holds those of ml_dtypes; its DLPack refuses some, and the other interface calls them bytes."""
    installed.gpu.cuCtxPushCurrent(0)
    fmt, dtype = formats.get(name), np.dtype(getattr(ml_dtypes, own))
    codes = np.arange(24, dtype=fmt.dtype).reshape(4, 6)
    like = installed.cupy.asarray(codes).view(dtype)
    bits, typed = to_bits("test", "a", like, fmt, (NVIDIA.memory,))
    assert isinstance(bits, Resident)
    assert (bits.address, bits.shape, bits.dtype, typed) == (like.data.ptr, (4, 6), fmt.dtype, True)
    back = from_bits(codes, fmt, True, like)
    assert (back.dtype, back.shape) == (dtype, (4, 6))
    assert (back.get().view(fmt.dtype) == codes).all()


def test_memory_comes_from_cupys_allocator(installed: Any) -> None:
    """On the device and its default stream; all of it goes back, and what the pool keeps is used again."""
    gpu, pool = installed.gpu, installed.pool
    opened = device(gpu, cupy=installed.cupy)
    assert (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
    assert pool.asked > 5
    assert (pool.used, gpu.used) == (0, pool.free_bytes())
    assert installed.places.current == []
    assert set(installed.places.seen) == {"device 0", "default stream"}
    held = gpu.used
    opened.run(MADE, BATCH)
    assert gpu.used == held
    opened.close()
    assert pool.used == 0


def test_a_users_limit_holds(installed: Any) -> None:
    """Of the pool: a batch is cut to it; where one item does not fit that is said."""
    gpu, pool = installed.gpu, installed.pool
    pool.limit = 60 * item_bytes(MADE)
    assert (device(gpu, cupy=installed.cupy).run(MADE, BATCH) == model(MADE, BATCH)).all()
    assert 0 < pool.most <= pool.limit
    pool.limit = 1000
    pool.free_all_blocks()
    with pytest.raises(OutOfMemoryError, match=r"cuda:0: CuPy's allocator has no \d+ bytes: .*CUPY_GPU_MEMORY_LIMIT"):
        device(gpu, cupy=installed.cupy).run(MADE, BATCH)


def test_what_cupy_s_runtime_answers_is_the_driver_s(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = installed.cupy.cuda.runtime.CUDARuntimeError

    def refuses(size: int) -> Any:
        raise failure(status)

    monkeypatch.setattr(installed.cupy.cuda, "alloc", refuses)
    for status, kind in ((214, LostError), (719, DeviceError), (2, OutOfMemoryError)):
        with pytest.raises(kind, match=rf"CuPy's allocator answers CUDA_ERROR_\w+ \({status}\)"):
            device(installed.gpu, cupy=installed.cupy).run(MADE, BATCH)


def test_cupy_that_does_not_work_here_is_none(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a newer driver, for AMD's GPUs, for fewer GPUs; or where it would keep a GPU that one process may have."""
    runtime, failure = installed.cupy.cuda.runtime, installed.cupy.cuda.runtime.CUDARuntimeError

    def old() -> int:
        raise failure(35)

    for name, value in (("getDeviceCount", old), ("getDeviceCount", lambda: 0), ("is_hip", True)):
        with monkeypatch.context() as patch:
            patch.setattr(runtime, name, value)
            assert device(installed.gpu, cupy=installed.cupy).run(MADE, BATCH).shape == (40, 16, 8)
    installed.gpu.mode = 3
    device(installed.gpu, cupy=installed.cupy).run(MADE, BATCH)
    assert installed.pool.asked == 0


def test_nothing_imports_cupy_before_a_gpu_is_used() -> None:
    """Not the package, nor a device that is only opened."""
    said = "import sys, mmaprobe, mmaprobe.devices.nvidia.device, mmaprobe.cli; sys.exit('cupy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", said], check=False).returncode == 0
    asked: list[str] = []

    def module(name: str) -> Any:
        asked.append(name)
        raise ImportError(name)

    gpu = FakeCuda()
    opened = device(gpu)
    driver = opened._driver
    driver._machine = Machine(module=module)  # type: ignore[attr-defined]
    opened.supports(MADE)
    assert asked == []
    opened.run(MADE, BATCH)
    assert asked == ["cupy"]


def a_gpu_is_here() -> bool:
    try:
        open_device("cuda:0").instructions()
    except NotHereError:
        return False
    return True


def test_the_example_runs_where_there_is_a_gpu() -> None:
    """Elsewhere it says in one line that it did not; its exit code is not 0."""
    script = Path(__file__).parents[2] / "docs" / "cupy_arrays.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, env=environment)
    if find_spec("cupy") and a_gpu_is_here():
        assert done.returncode == 0, done.stdout + done.stderr
        assert "equal to the model's" in done.stdout
    else:
        assert done.returncode == 3, done.stdout + done.stderr
        assert done.stdout.endswith("; nothing was run\n")
        assert done.stdout.count("\n") == 1
