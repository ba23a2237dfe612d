"""The device form of the generators: built on the host it makes what ``generate`` makes; NVRTC compiles it."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cases.generators import make
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.errors import UsageError
from mmaprobe.generators import FAMILIES, families_for, generate
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import stream_number, vector_shapes
from mmaprobe.toolchain.generator_forms import domain_text
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.nvdisasm import disassemble
from mmaprobe.toolchain.source import Source, flattened

ROLES = ("a", "b", "c", "scale_a", "scale_b", "metadata")
HOST = """
using namespace mmaprobe::MMAPROBE_BUILD;
using namespace mmaprobe::MMAPROBE_BUILD::generators;
// Codes and how often each item was put, operand by operand, `row` items a vector.
struct Kept {
    bool a_wanted, b_wanted;
    u64* codes[6];
    unsigned char* times[6];
    void keep(int role, int k, u64 code) { codes[role][k] = code; ++times[role][k]; }
    bool wants_a() const { return a_wanted; }
    bool wants_b() const { return b_wanted; }
    void a(int k, u64 code) { keep(0, k, code); }
    void b(int k, u64 code) { keep(1, k, code); }
    void c(u64 code) { keep(2, 0, code); }
    void scale_a(int g, u64 code) { keep(3, g, code); }
    void scale_b(int g, u64 code) { keep(4, g, code); }
    void metadata(int chunk, u32 item) { keep(5, chunk, item); }
};
extern "C" void vectors(int family, unsigned number, u64 seed, u64 start, int count, int parts, int wants,
                        u64* const* codes, unsigned char* const* times, const int* row) {
    for (int i = 0; i < count; ++i)
        for (int part = 0; part < parts; ++part) {
            Kept put{bool(wants & 1), bool(wants & 2), {}, {}};
            for (int role = 0; role < 6; ++role) {
                put.codes[role] = codes[role] + i * row[role];
                put.times[role] = times[role] + i * row[role];
            }
            make_vector(DOMAIN, family, Stream{seed, number}, start + u64(i), part, parts, put);
        }
}
"""
KERNEL = """
using namespace mmaprobe::MMAPROBE_BUILD;
using namespace mmaprobe::MMAPROBE_BUILD::generators;
struct Summed {
    u64 sum;
    __device__ bool wants_a() const { return true; }
    __device__ bool wants_b() const { return true; }
    __device__ void a(int k, u64 code) { sum += code * (2 * k + 1); }
    __device__ void b(int k, u64 code) { sum ^= code * (2 * k + 3); }
    __device__ void c(u64 code) { sum += code; }
    __device__ void scale_a(int g, u64 code) { sum += code * (2 * g + 5); }
    __device__ void scale_b(int g, u64 code) { sum ^= code * (2 * g + 7); }
    __device__ void metadata(int chunk, u32 item) { sum += item * u32(2 * chunk + 9); }
};
extern "C" __global__ void mmaprobe_run(u64 seed, u64 start, u32 number, int family, u64* out) {
    Summed put{0};
    make_vector(DOMAIN, family, Stream{seed, number}, start + threadIdx.x / 2, threadIdx.x % 2, 2, put);
    out[threadIdx.x] = put.sum;
}
"""
FORMS = [
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16", "sm_120a"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_90a"),
    ("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32", "sm_90a"),
    ("mma.sync.aligned.m8n8k32.row.col.s32.u4.s4.s32", "sm_90a"),
    ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32", "sm_120a"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0", "sm_120a"),
    ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "sm_120a"),
    ("mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_90a"),
    ("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90a"),
    ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32", "sm_90a"),
    (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
        ".f32.e2m1.e2m1.f32.ue4m3",
        "sm_120a",
    ),
]
COUNT = 60


def text_of(made: Instruction) -> str:
    return flattened("model/vectors.hpp") + domain_text([int(number) for number in domain(made).packed()])


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generators")


@cache
def library(compiler: str, made: Instruction, folder: Path) -> ctypes.CDLL:
    path = folder / f"{compiler}-{len(list(folder.iterdir()))}.so"
    command = [
        compiler, "-std=c++17", "-DMMAPROBE_HD=inline", "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable",
        "-fwrapv", "-shared", "-fPIC", "-x", "c++",
    ]  # fmt: skip
    done = subprocess.run(
        [*command, "-", "-o", str(path)], input=text_of(made) + HOST, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(path))


def made_by(
    built: ctypes.CDLL, made: Instruction, family: str, seed: int, start: int, parts: int, wants: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(codes, how often each was put) of every operand."""
    shapes = {role: shape for role, (shape, _) in vector_shapes(made, COUNT).items()}
    codes = [np.zeros(shapes.get(role, (COUNT, 0)), np.uint64) for role in ROLES]
    times = [np.zeros(x.shape, np.uint8) for x in codes]
    built.vectors(
        FAMILIES.index(family), ctypes.c_uint(stream_number(family)), ctypes.c_ulonglong(seed),
        ctypes.c_ulonglong(start), COUNT, parts, wants,
        (ctypes.c_void_p * 6)(*(x.ctypes.data for x in codes)),
        (ctypes.c_void_p * 6)(*(x.ctypes.data for x in times)),
        (ctypes.c_int * 6)(*(x.size // COUNT for x in codes)),
    )  # fmt: skip
    return {role: (codes[i], times[i]) for i, role in enumerate(ROLES) if role in shapes}


def check(compiler: str, made: Instruction, folder: Path) -> None:
    """Every family, parts and wish: each wanted item is put once, with the code that ``generate`` makes."""
    built = library(compiler, made, folder)
    seed, start = 0x9E3779B97F4A7C15, (1 << 32) - COUNT // 2
    for family in families_for(made):
        expected = dict(generate(made, family, seed, start, COUNT).items())
        for parts, wants in [(1, 3), (2, 3), (4, 3), (2, 1), (2, 2), (1, 0)]:
            got = made_by(built, made, family, seed, start, parts, wants)
            assert got.keys() == expected.keys()
            for role, (codes, times) in got.items():
                wanted = role == "c" or wants & (2 if role in ("b", "scale_b") else 1)
                assert not wanted or (times == 1).all(), (family, role, parts, wants)
                assert (times <= 1).all(), (family, role, parts, wants)
                assert (codes == np.where(times > 0, expected[role], 0)).all(), (family, role, parts, wants)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("compiler", "name", "architecture"),
    [
        pytest.param(compiler, *form, marks=pytest.mark.needs(compiler))
        for compiler, step in (("g++", 1), ("clang++", 4))
        for form in FORMS[::step]
    ],
)
def test_threads_make_what_generate_makes(compiler: str, name: str, architecture: str, folder: Path) -> None:
    check(compiler, instruction(name, architecture), folder)


@pytest.mark.needs("g++")
def test_formats_without_a_negative_zero(folder: Path) -> None:
    check("g++", make("e4m3fnuz", "e5m2fnuz", "f32", "f32", 16), folder)


@pytest.mark.needs("cuda")
@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_75"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_90a"),
        ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0", "sm_121a"),
        ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32", "sm_80"),
    ],
)
def test_nvrtc_compiles_every_family_without_local_memory_or_calls(name: str, architecture: str) -> None:
    """The domain is a constant of the code: it lies nowhere in memory."""
    source = Source(name, architecture, text_of(instruction(name, architecture)) + KERNEL)
    text = disassemble(nvrtc.compile_source(source).binary)
    assert "IMAD" in text
    for opcode in ("LDL", "STL", "RET", "LDG"):
        assert f" {opcode}" not in text, opcode


def test_a_target_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a domain has 85 integers .* not 3"):
        domain_text([1, 2, 3])
