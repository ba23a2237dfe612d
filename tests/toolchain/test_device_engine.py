"""The model's engine from one source: NVRTC compiles it for GPUs; g++ and clang++ build its device form on the host."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators import families_for, generate
from mmaprobe.models.engine import evaluate
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.engine import MAIN, engine_source
from mmaprobe.toolchain.nvidia.nvdisasm import disassemble
from mmaprobe.toolchain.source import flattened

EXPORTS = """
using namespace mmaprobe::MMAPROBE_BUILD;
extern "C" long long thread_bytes(const i64* program) { return register_bytes(program); }
extern "C" void thread(const i64* program, const EngineOperands* g, void* scratch, i64 vector, void* out, int bytes) {
    const Sources sources = {{g->base[0], g->row[0]}, {g->base[1], g->row[1]}, {g->base[2], g->row[2]},
                             {g->base[3], g->row[3]}, {g->base[4], g->row[4]}};
    evaluate_one(program, sources, scratch, vector, out, bytes);
}
"""
FORMS = [
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_80"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_80"),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "sm_80"),
    ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", "sm_120a"),
    ("v_mfma_f32_16x16x16_f16", "gfx942"),
    ("x86.vdpbf16ps", "x86-64"),
]


class EngineOperands(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p * 5), ("row", ctypes.c_longlong * 5)]


@cache
def library(compiler: str, width: int, folder: Path) -> ctypes.CDLL:
    path = folder / f"{compiler}-{width}.so"
    text = engine_source("host", width).text + EXPORTS
    command = [compiler, "-std=c++17", "-O1", "-w", "-fwrapv", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    made = ctypes.CDLL(str(path))
    made.thread_bytes.restype = ctypes.c_longlong
    return made


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engine")


@pytest.mark.parametrize("compiler", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("g++", "clang++")])
@pytest.mark.parametrize(("name", "architecture"), FORMS)
def test_a_thread_computes_what_the_engine_does(compiler: str, name: str, architecture: str, folder: Path) -> None:
    """Every family of vectors, one vector at a time, through the text that a GPU runs."""
    made = instruction(name, architecture)
    datapath = datapath_for(architecture, made)
    words = np.ascontiguousarray(program(datapath), np.int64)
    built = library(compiler, int(words[COLUMNS["header"].index("width")]), folder)
    scratch = np.zeros(built.thread_bytes(words.ctypes.data_as(ctypes.c_void_p)) + 64, np.uint8)
    start = -scratch.ctypes.data % 64
    dtype = formats.get(datapath.d).dtype
    for family in families_for(made):
        vectors = generate(made, family, 3, 0, 40)
        expected = evaluate(datapath, vectors)
        got = np.zeros(vectors.size, dtype)
        arrays = [getattr(vectors, operand) for operand in ("a", "b", "c", "scale_a", "scale_b")]
        arrays = [None if array is None else np.ascontiguousarray(array) for array in arrays]
        given = EngineOperands(
            (ctypes.c_void_p * 5)(*(None if array is None else array.ctypes.data for array in arrays)),
            (ctypes.c_longlong * 5)(*(0 if x is None else x.shape[1] if x.ndim == 2 else 1 for x in arrays)),
        )
        for vector in range(vectors.size):
            built.thread(
                words.ctypes.data_as(ctypes.c_void_p), ctypes.byref(given),
                ctypes.c_void_p(scratch.ctypes.data + start), ctypes.c_longlong(vector),
                got.ctypes.data_as(ctypes.c_void_p), dtype.itemsize,
            )  # fmt: skip
        assert (got == expected).all(), family


@pytest.mark.needs("cuda")
@pytest.mark.parametrize(("architecture", "width"), [("sm_75", 64), ("sm_90a", 64), ("sm_120a", 64), ("sm_90a", 128)])
def test_nvrtc_compiles_the_engine(architecture: str, width: int) -> None:
    made = nvrtc.compile_source(engine_source(architecture, width))
    assert "mmaprobe_run" in disassemble(made.binary)


def test_a_file_is_flattened_once() -> None:
    text = flattened(MAIN)
    assert '#include "' not in text
    assert text.count("struct Context {") == 1
    assert text.index("struct Limbs") < text.index("struct Context {") < text.index("struct EngineOperands")
