"""Models compiled in for a GPU's threads: built for the host and held against the engine; NVRTC compiles them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cases.compiled_models import library, outputs, text_of
from cases.short_sums import near, random_short_sum
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import forms, instruction
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.models import stages
from mmaprobe.models.engine import evaluate
from mmaprobe.models.kernels import KERNELS, SHORT_SUMS, kernel
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.models.sparse import dense_vectors
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Accumulator, Fused, Products, Split
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.toolchain.compiled import compiled_model
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.nvdisasm import disassemble
from mmaprobe.toolchain.source import Source, flattened

FORMS = [
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a", "FUSED"),
    ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "sm_90a", "FUSED"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90a", "FUSED"),
    ("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "sm_90a", "FUSED"),
    ("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "sm_90a", "FUSED"),
    ("wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e4m3", "sm_90a", "FUSED"),
    (
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m3.f32.ue8m0",
        "sm_120a", "FUSED",
    ),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80", "FUSED"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_80", "FUSED"),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_90a", "FUSED"),
    ("mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "sm_90a", "FUSED"),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2", "sm_90a", "FUSED"),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "sm_80", "INTEGER_WRAPS"),
    ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "sm_90a", "INTEGER_SATURATES"),
    ("mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32", "sm_80", "INTEGER_WRAPS"),
    ("mma.sp.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32", "sm_80", "INTEGER_WRAPS"),
    ("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc", "sm_80", "INTEGER_WRAPS"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_90a", "CHAIN"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90a", "LATE_C"),
    (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
        "sm_120a", "GROUPED",
    ),
    ("v_mfma_f32_16x16x16_f16", "gfx942", "TWO_STAGE"),
    ("v_mfma_f32_32x32x4bf16", "gfx90a", "PAIRS"),
    ("v_wmma_f32_16x16x16_f16", "gfx1100", "SHORT_SUMS"),
    ("v_wmma_f16_16x16x16_f16", "gfx1100", "SHORT_SUMS"),
    ("v_dot2_bf16_bf16", "gfx1150", "SHORT_SUMS"),
    ("v_wmma_bf16_16x16x16_bf16", "gfx1201", "SHORT_SUMS"),
    ("v_dot4_f32_fp8_bf8", "gfx1201", "SHORT_SUMS"),
    ("v_swmmac_f16_16x16x32_f16", "gfx1201", "SHORT_SUMS"),
]  # fmt: skip
COUNT = 200  # vectors of each family


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def expected(made: Instruction, architecture: str, vectors: Batch) -> Bits:
    dense = dense_vectors(made, vectors) if made.chunk else vectors
    return evaluate(datapath_for(architecture, made), dense)


ROW, COLUMN = ("a", "scale_a", "metadata"), ("b", "c", "scale_b")


def turned(vectors: Batch, *names: str) -> Batch:
    """These operands of the next vector beside the others of each."""
    moved = {name: np.roll(value, -1, 0) for name, value in vectors.items() if name in names}
    return replace(vectors, **moved)


BUILDS = [
    pytest.param(compiler, *form, marks=pytest.mark.needs(compiler))
    for compiler, step in (("g++", 1), ("clang++", 4))
    for form in FORMS[::step]
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("compiler", "name", "architecture", "kernel"), BUILDS)
def test_a_thread_computes_what_the_engine_does(
    compiler: str, name: str, architecture: str, kernel: str, folder: Path
) -> None:
    made = instruction(name, architecture)
    words = program(datapath_for(architecture, made))
    assert KERNELS[words[COLUMNS["header"].index("kernel")]] == kernel
    built = library(text_of(made, architecture), compiler, folder)
    for family in families_for(made):
        vectors = generate(made, family, 11, 0, COUNT)
        one, two, four = outputs(built, vectors)
        pairs = (vectors, turned(vectors, *COLUMN), turned(vectors, *ROW))
        own, next_column, next_row = (expected(made, architecture, pair) for pair in pairs)
        all_four = np.stack([own, next_column, next_row, np.roll(own, -1)], 1)
        assert (one == own).all(), family
        assert (two == all_four[:, :2]).all(), family
        assert (four == all_four).all(), family


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40))
def test_short_sums_unlike_any_units(seed: int, folder: Path) -> None:
    """In the frame of C's sign and in parts, of every format and order, with what follows an overflow or underflow."""
    path = random_short_sum(seed)
    words = program(path)
    assert words is not None
    check = "\nstatic_assert(mmaprobe::MMAPROBE_BUILD::compiled::Model::UP_A >= 0);\n"
    built = library(compiled_model(words.tolist()) + check, "g++", folder)
    for exponent in (-150, -127, -125, -24, -14, 0, 15, 126):
        vectors = near(path, exponent, 400)
        assert (outputs(built, vectors)[0] == stages.evaluate(path, vectors)).all(), exponent


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["gfx1100", "gfx1150", "gfx1201"])
def test_every_short_sum_of_a_target(architecture: str, folder: Path) -> None:
    """Each datapath once, and a changed one of each."""
    paths = dict.fromkeys(datapath_for(architecture, form.first) for form in forms(architecture))
    sums = [path for path in paths if kernel(path) == SHORT_SUMS]
    assert len(sums) >= 4
    for number, path in enumerate(sums):
        others = [other for _, _, other in neighbours(path) if kernel(other) == SHORT_SUMS]
        for each in (path, others[number % len(others)]):
            words = program(each)
            assert words is not None
            built = library(compiled_model(words.tolist()), "g++", folder)
            for exponent in (-150, -127, -14, 15, 126):
                vectors = near(each, exponent, 1000)
                assert (outputs(built, vectors)[0] == stages.evaluate(each, vectors)).all(), (each, exponent)


def test_a_shape_that_the_fast_way_does_not_fit_is_interpreted(folder: Path) -> None:
    """Six lanes are no whole number of quads."""
    whole = instruction("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_90a")
    path = datapath_for("sm_90a", whole)
    assert isinstance(path.tree, Fused)
    terms = tuple(replace(path.tree.terms[0], of=node) for node in (Accumulator(), Products(tuple(range(6)))))
    path = replace(path, k=6, tree=replace(path.tree, terms=terms))
    words = program(path)
    assert words is not None
    assert KERNELS[words[COLUMNS["header"].index("kernel")]] == "FUSED"
    check = "\nstatic_assert(sizeof(mmaprobe::MMAPROBE_BUILD::compiled::Model::Row{}.code) == 12);\n"
    built = library(compiled_model(words.tolist()) + check, "g++", folder)
    vectors = generate(whole, "clustered", 11, 0, COUNT)
    vectors = replace(vectors, a=np.ascontiguousarray(vectors.a[:, :6]), b=np.ascontiguousarray(vectors.b[:, :6]))
    assert (outputs(built, vectors)[0] == evaluate(path, vectors)).all()


def test_labels_of_normalised_operands_are_interpreted(folder: Path) -> None:
    """Subnormal operands that show the exponents of their leading bits, in sums with few fraction bits."""
    made = instruction("wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2", "sm_90a")
    encoded = datapath_for("sm_90a", made)
    path = replace(encoded, product=replace(encoded.product, label="operands"))
    words = program(path)
    assert words is not None
    assert KERNELS[words[COLUMNS["header"].index("kernel")]] == "FUSED"
    built = library(compiled_model(words.tolist()), "g++", folder)
    vectors = generate(made, "clustered", 11, 0, COUNT)
    vectors = replace(vectors, a=vectors.a & 0x83, b=vectors.b & 0xBF, c=np.zeros_like(vectors.c))
    assert (outputs(built, vectors)[0] == evaluate(path, vectors)).all()
    assert (evaluate(path, vectors) != evaluate(encoded, vectors)).any()


def test_operands_in_parts_are_interpreted(folder: Path) -> None:
    """An f32 sum of four lanes, each of six products of bf16 parts."""
    made = instruction("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "sm_90a")
    path = datapath_for("sm_90a", made)
    pairs = ("02", "11", "20", "01", "10", "00")
    for split in (Split("bf16", pairs), Split("bf16", pairs[3:], "RZ", "apart", "parts")):
        whole = replace(path, product=replace(path.product, split=split))
        words = program(whole)
        assert words is not None
        built = library(compiled_model(words.tolist()), "g++", folder)
        vectors = generate(made, "clustered", 11, 0, COUNT)
        assert (outputs(built, vectors)[0] == evaluate(whole, vectors)).all()
        assert (evaluate(whole, vectors) != evaluate(path, vectors)).any()


KERNEL = """
using namespace mmaprobe::MMAPROBE_BUILD::compiled;
extern "C" __global__ void mmaprobe_run(const unsigned long long* given, unsigned long long* made) {
    __shared__ Model::Row rows[16];
    __shared__ Model::Column columns[8];
    const int thread = threadIdx.x, g = thread / 4, t = thread % 4;
    for (int k = thread; k < 16 * LIVE; k += 32) Model::put_a(rows[k / LIVE], k % LIVE, given[k]);
    for (int k = thread; k < 8 * K; k += 32) Model::put_b(columns[k / K], k % K, given[k]);
    for (int k = thread; k < 16 * GROUPS; k += 32) Model::put_scale_a(rows[k % 16], k / 16, given[k]);
    for (int k = thread; k < 8 * GROUPS; k += 32) Model::put_scale_b(columns[k % 8], k / 8, given[k]);
    __syncwarp();
    if (thread < 16) Model::seal(rows[thread]);
    if (thread < 8) Model::seal(columns[thread]);
    __syncwarp();
    Model::evaluate_four(rows[g], rows[g + 8], columns[2 * t], columns[2 * t + 1], given + 4 * thread,
                         made + 4 * thread);
}
"""
COMPILED = [
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a", "DFMA.RM"),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2", "sm_90a", "DFMA.RM"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_80", "DFMA.RM"),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "sm_80", "IDP.4A"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_90a", "DFMA"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90a", "CALL"),
]


@pytest.mark.needs("cuda")
@pytest.mark.parametrize(("name", "architecture", "opcode"), COMPILED)
def test_nvrtc_compiles_a_model(name: str, architecture: str, opcode: str) -> None:
    text = text_of(instruction(name, architecture), architecture) + KERNEL
    made = nvrtc.compile_source(Source(name, architecture, text))
    assert opcode in disassemble(made.binary)


def test_a_chunk_that_no_instruction_has_is_refused() -> None:
    with pytest.raises(UsageError, match="metadata of 3 lanes an item: it must be one of 0, 2, 4, 8"):
        compiled_model([1, 2], 3)


def test_headers_that_stand_before_are_left_out() -> None:
    made = instruction(*FORMS[0][:2])
    words = program(datapath_for(FORMS[0][1], made))
    assert words is not None
    seen: set[str] = set()
    before = flattened("model/vectors.hpp", seen)
    text = before + compiled_model(words.tolist(), 0, seen)
    assert text.count("struct Limbs {") == 1
    assert {"model/compiled.hpp", "model/operands.hpp"} <= seen
