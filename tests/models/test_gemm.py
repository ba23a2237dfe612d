"""Matrix products by a schedule: equal bits by a slow evaluator on Fractions, any part alone, and what is refused."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import mmaprobe
from cases.gemm_schedules import DOT, ONE, PLAIN, SHARED, bands, operands, ranges, schedules
from mmaprobe import _native, formats
from mmaprobe.errors import UsageError
from mmaprobe.models import engine
from mmaprobe.models import gemm as models
from mmaprobe.models.gemm_program import COLUMNS, OPERATIONS, gemm_program
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.schedule import (
    Accumulators,
    Bands,
    GemmKernel,
    GemmStep,
    Join,
    Promotion,
    Ranges,
    Region,
    Schedule,
    Scope,
    from_text,
    known_schedules,
    schedule_named,
    to_text,
)
from mmaprobe.parameters.table import to_table, write_record
from oracle import gemm as oracle

SOME = 12
"""Elements of D that are held against the slow evaluator."""
some = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip


@some
@given(
    made=schedules(),
    shape=st.tuples(st.integers(1, 4) | st.just(37), st.integers(1, 4) | st.just(29), st.integers(0, 21)),
    seed=st.integers(0, 99),
    build=st.sampled_from(_native.engine_builds()),
)
def test_every_schedule_as_in_exact_fractions(
    made: Schedule, shape: tuple[int, int, int], seed: int, build: str
) -> None:
    (m, n, k), rng, table = shape, np.random.default_rng(seed), write_record(made)
    a, b = operands(rng, formats.get(made.a), (m, k)), operands(rng, formats.get(made.b), (k, n))
    c = operands(rng, formats.get("f32"), (m, n)) if made.c else None
    primitive = to_table(load("x86-64").entries[DOT.primitive].datapath)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MMAPROBE_ISA", build)
        d = models.gemm(made)(a, b, c)
    for i, j in rng.permutation(list(np.ndindex(m, n)))[:SOME]:
        kernel = oracle.kernel_of(table, i, j, m, n, k)
        assert kernel is not None
        one = oracle.Element(table, kernel, a[i].tolist(), b[:, j].tolist(), primitive)
        assert d[i, j] == one.value(None if c is None else int(c[i, j])), (i, j)


@some
@given(made=schedules())
def test_a_schedule_is_read_as_it_was_written(made: Schedule) -> None:
    assert from_text(to_text(made), "x.toml") == made


@given(rule=ranges, k=st.integers(0, 200))
@settings(deadline=None, derandomize=True)
def test_every_k_is_in_one_range(rule: Ranges, k: int) -> None:
    assert [each for part in rule.of(k) for each in part] == list(range(k))
    assert all(rule.of(k))


@given(rule=bands(), length=st.integers(0, 40))
@settings(deadline=None, derandomize=True, max_examples=400)
def test_bands_place_by_place(rule: Bands, length: int) -> None:
    table = write_record(rule)
    assert rule.of(length).tolist() == [oracle.is_in(table, place, length) for place in range(length)]


def test_rules_of_ranges() -> None:
    def cut(rule: Ranges, k: int) -> list[int]:
        return [len(part) for part in rule.of(k)]

    openblas = Ranges("halve_last", 320, unit=8)
    assert cut(openblas, 1000) == [320, 320, 184, 176]
    assert cut(openblas, 321) == [160, 161]
    assert cut(Ranges("halve_last", 10, unit=8), 20) == [10, 10]
    onednn = Ranges("halve_last", 256, half="up")
    assert (cut(onednn, 257), cut(onednn, 770)) == ([129, 128], [256, 256, 129, 129])
    mkl = Ranges("halve_short", 192)
    assert (cut(mkl, 192), cut(mkl, 193), cut(mkl, 385)) == ([192], [96, 96, 1], [192, 192, 1])
    assert cut(replace(mkl, half="up", unit=8), 193) == [104, 89]
    assert cut(replace(mkl, half="below", unit=8), 193) == [96, 96, 1]
    assert cut(replace(mkl, half="below", unit=4), 231) == [112, 112, 7]
    assert cut(Ranges("halve_short", 2, half="below", unit=8), 3) == [3]
    assert cut(Ranges("residue_first", 64), 130) == [2, 64, 64]
    assert cut(Ranges("ceil_split", unit=8, parts=3), 100) == [40, 40, 20]
    assert cut(Ranges("given", lengths=(3, 4)), 7) == [3, 4]


def cuts(made: Schedule, m: int, n: int, k: int) -> dict[tuple[int, int], list[int]]:
    """Of each element the lengths of its ranges."""
    return {
        (int(i), int(j)): [len(part) for part in kernel.ranges.of(k)]
        for kernel, rows, columns in made.areas(m, n, k)
        for i in rows
        for j in columns
    }


def test_workers_share_the_tiles() -> None:
    """Four tiles of three units and three workers: shares begin at units 0, 4 and 8 of twelve."""

    def told(rule: Ranges, k: int = 22) -> list[list[int]]:
        """Of the elements at the corners: down the first column of tiles, then the second."""
        found = cuts(replace(ONE, kernels=(replace(PLAIN, ranges=rule),)), 7, 9, k)
        assert len(found) == 7 * 9
        return [found[i, j] for j in (0, 8) for i in (0, 6)]

    assert told(SHARED) == [[22], [8, 14], [16, 6], [22]]
    assert told(replace(SHARED, group=1)) == [[22], [16, 6], [8, 14], [22]]
    assert told(replace(SHARED, groups_of="columns")) == [[22], [16, 6], [8, 14], [22]]
    assert told(replace(SHARED, workers=60)) == [[8, 8, 6]] * 4
    assert told(replace(SHARED, workers=1)) == [[22]] * 4
    assert told(SHARED, 0) == [[]] * 4


@pytest.mark.parametrize(("order", "sum_of_all"), [("chain", 0), ("last_first", 1), ("pairwise", 0)])
def test_ranges_are_added_in_the_order_that_is_said(order: Any, sum_of_all: int) -> None:
    """2^24 + 1 is 2^24 in f32; the last range, -2^24, takes it away before that or after."""
    kernel = replace(PLAIN, ranges=Ranges("uniform", 1), join=Join("f32", order))
    made = replace(ONE, c=None, kernels=(kernel,))
    d = models.gemm(made)(np.array([[2.0**24, 1, -(2.0**24)]], np.float32), np.ones((3, 1), np.float32))
    assert d[0, 0] == sum_of_all


def test_any_part_alone_is_that_part_of_the_whole() -> None:
    rng, product = np.random.default_rng(1), mmaprobe.gemm("openblas_haswell_f32")
    a, b = rng.standard_normal((29, 333), np.float32), rng.standard_normal((333, 337), np.float32)
    whole = product(a, b)
    for rows, columns in (
        (slice(5, 20), slice(300, 337)),
        (slice(None, None, 7), slice(0, 1)),
        (slice(3, 3), slice(9)),
    ):
        assert (product(a, b, rows=rows, columns=columns) == whole[rows, columns]).all()
    assert product(a, b, rows=slice(0, 2)).shape == (2, 337)


def test_a_part_reads_nothing_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, native = [], models._native.gemm

    def seen(*arguments: Any) -> None:
        shapes.append([len(arguments[3][1]), len(arguments[4][2])])
        native(*arguments)

    monkeypatch.setattr(models._native, "gemm", seen)
    models.gemm(ONE)(np.ones((300, 8), np.float32), np.ones((8, 700), np.float32), rows=slice(7), columns=slice(3))
    assert shapes == [[7, 3]]


@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize("fmt", ["f32", "f64"])
def test_products_are_rounded_where_that_is_said(fmt: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's own products and sums, one after the other; fused ones are others."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    kernel = replace(PLAIN, join=Join(fmt), accumulators=Accumulators(fmt), step=GemmStep("multiply_add"))
    made = replace(ONE, a=fmt, b=fmt, c=None, d=fmt, kernels=(kernel,))
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shape).astype(fmt.replace("f", "float")) for shape in ((9, 30), (30, 14)))
    total = np.zeros((9, 14), a.dtype)
    for k in range(30):
        total = total + a[:, k, None] * b[k]
    assert (models.gemm(made)(a, b) == total).all()
    fused = replace(made, kernels=(replace(kernel, step=GemmStep("fma")),))
    assert (models.gemm(fused)(a, b) != total).mean() > 0.3


@pytest.mark.parametrize("build", _native.engine_builds())
def test_every_nan_is_the_quiet_one(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of operands with payloads and signs, of 0 times infinity, and of ranges that are infinities of both signs."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    a, b = np.ones((3, 4), np.uint32), np.full((4, 2), 0x3F800000, np.uint32)
    a[0, 1], a[1, 2], b[2] = 0xFFC12345, 0x7F800000, 0
    a[2] = [0x7F800000, 0, 0, 0xFF800000]
    for cut in (Ranges(), Ranges("uniform", 2)):
        made = replace(ONE, c=None, kernels=(replace(PLAIN, ranges=cut, join=Join("f32", start="first")),))
        assert models.gemm(made)(a, b).tolist() == [[0x7FC00000] * 2] * 3


def test_blocks_and_slices_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of many blocks, K of many slices: what each of its parts is alone, in any layout of the operands."""
    rng, product = np.random.default_rng(2), models.gemm(replace(ONE, c=None))
    a, b = rng.standard_normal((300, 700), np.float32), rng.standard_normal((700, 410), np.float32)
    whole = product(a, b)
    parts = [[product(a[i : i + 100], b[:, j : j + 82]) for j in range(0, 410, 82)] for i in range(0, 300, 100)]
    assert (np.block(parts) == whole).all()
    for other in (np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: np.flip(np.flip(x).copy())):
        assert (product(other(a), other(b)) == whole).all()
    monkeypatch.setattr(models, "BLOCK", (7, 5))
    assert (product(a[:31], b[:, :23]) == whole[:31, :23]).all()


def test_primitives_in_many_steps_are_one_after_the_other() -> None:
    """K in programs of many steps gives the bits of a schedule that promotes, hence stops, after each step."""
    rng, name = np.random.default_rng(3), "HGMMA.F32[f16,f16->f32,k16]"
    step = GemmStep("primitive", "sm_90a", name)
    made = replace(ONE, a="f16", b="f16", c=None, kernels=(replace(PLAIN, step=step, join=Join("f32", start="first")),))
    a = rng.standard_normal((21, 700)).astype(np.float16)
    b = rng.standard_normal((700, 34)).astype(np.float16)
    a[3, 5], b[600, 7] = np.inf, np.nan
    path, d = load("sm_90a").entries[name].datapath, np.zeros((1, 21, 34), np.uint32)
    for start in range(0, 700, 16):
        x, y = np.zeros((1, 21, 16), np.uint16), np.zeros((1, 16, 34), np.uint16)
        some = slice(start, min(start + 16, 700))
        x[0, :, : some.stop - start], y[0, : some.stop - start] = a[:, some].view(np.uint16), b[some].view(np.uint16)
        one = engine.evaluate_tiles(path, Batch(a=x, b=y, c=d))
        assert one is not None
        d = one
    assert (models.gemm(made)(a, b).view(np.uint32) == d[0]).all()


def test_a_range_is_filled_up_by_products_of_zeros() -> None:
    """Negative products that vanish are -0; those of the last range, of 3 of 4 or 5 of 8, become +0 by the zeros."""
    own = GemmKernel("own", Ranges("uniform", 8), Join("f32", start="first"), Accumulators("f32"), GemmStep(filled=4))
    made = Schedule("f32", "f32", "f32", Scope("none"), (own,), (Region("own", rest=True),))
    a = np.full((1, 16), -1e-30, np.float32)
    answers = {k: np.signbit(models.gemm(made)(a[:, :k], -a.T[:k])).all() for k in (3, 4, 8, 12, 13, 15, 16)}
    assert [k for k, minus in answers.items() if minus] == [4, 8, 12, 16]


def test_lanes_beyond_a_range_are_zeros() -> None:
    """Ranges of 24 in steps of 16 are ranges of 32 whose last 8 products are of zeros."""
    rng, step = np.random.default_rng(12), GemmStep("primitive", "sm_90a", "HGMMA.F32[f16,f16->f32,k16]")
    a, b = rng.standard_normal((6, 96)).astype(np.float16), rng.standard_normal((96, 5)).astype(np.float16)
    wide_a, wide_b = np.zeros((6, 128), np.float16), np.zeros((128, 5), np.float16)
    for i in range(4):
        wide_a[:, 32 * i : 32 * i + 24], wide_b[32 * i : 32 * i + 24] = (
            a[:, 24 * i : 24 * i + 24],
            b[24 * i : 24 * i + 24],
        )
    short, long = (
        replace(ONE, a="f16", b="f16", c=None, kernels=(replace(PLAIN, step=step, ranges=Ranges("uniform", length)),))
        for length in (24, 32)
    )
    assert (models.gemm(short)(a, b) == models.gemm(long)(wide_a, wide_b)).all()


def call_of(**changed: Any) -> None:
    """The native function with one argument changed."""
    made = gemm_program(ONE, PLAIN, None, 4)
    matrices = {name: np.zeros(shape, np.uint32) for name, shape in (("a", (2, 4)), ("b", (4, 3)), ("d", (2, 3)))}
    given = {name: (matrix, *map(np.arange, matrix.shape)) for name, matrix in matrices.items()}
    given |= {
        "operations": np.array(made.rows), "programs": [], "order": np.zeros(0, np.int64), "values": [None, None],
        "chained": 4, "inputs": [], "largest": np.zeros(0, np.uint64), "most_rows": 8, "most_columns": 8,
    }  # fmt: skip
    _native.gemm(**given | changed)


ROW = np.array(gemm_program(ONE, PLAIN, None, 4).rows)


def with_column(name: str, value: int, operation: str) -> Any:
    rows = ROW.copy()
    rows[ROW[:, 0] == OPERATIONS.index(operation), COLUMNS.index(name)] = value
    return rows


def matrix(m: int, n: int, rows: Any = None, columns: Any = None, dtype: Any = np.uint32) -> Any:
    """A matrix with its rows and columns, all of them where nothing is said."""
    placed = [np.arange(length) if of is None else np.array(of) for of, length in ((rows, m), (columns, n))]
    return np.zeros((m, n), dtype), *placed


WRONG_CALLS: list[tuple[dict[str, Any], str]] = [
    ({"operations": ROW[:, :5]}, "operations have other columns"),
    ({"operations": ROW[1:]}, "the stack is empty"),
    ({"operations": np.concatenate([ROW, ROW])}, "what is left is not D"),
    ({"operations": np.repeat(ROW[:1], 70, axis=0)}, "the stack is too deep"),
    ({"operations": with_column("operation", len(OPERATIONS), "ADD")}, "no such operation"),
    ({"operations": with_column("bytes", 3, "ADD")}, "no such width"),
    ({"operations": with_column("operation", OPERATIONS.index("STEPS"), "CHAIN")}, "no such program"),
    ({"operations": with_column("count", 1 << 20, "CHAIN")}, "products beyond the operands"),
    ({"operations": with_column("end", 5, "CHAIN")}, "products beyond the operands"),
    ({"operations": with_column("run", 0, "CHAIN")}, "products beyond the operands"),
    ({"operations": with_column("operation", OPERATIONS.index("LOAD"), "CONSTANT")}, "no such input"),
    ({"operations": with_column("operation", OPERATIONS.index("AMAX"), "ADD")}, "no such size"),
    ({"operations": with_column("operation", OPERATIONS.index("FMA"), "ADD")}, "the stack is empty"),
    ({"a": matrix(2, 4, rows=[0, 2])}, "rows or columns beyond the matrix"),
    ({"b": matrix(4, 3, columns=[0, 1, -1])}, "rows or columns beyond the matrix"),
    ({"d": matrix(2, 3, rows=[0])}, "other numbers of rows or columns"),
    ({"inputs": [matrix(2, 3, rows=[0])]}, "other numbers of rows or columns"),
    ({"most_rows": 0}, "no such blocks"),
    ({"d": matrix(2, 3, dtype=np.uint16)}, "what is left is not D"),
    ({"chained": 8}, "numbers of another width"),
    ({"b": matrix(5, 3)}, "shapes do not fit"),
    ({"a": matrix(2, 4, dtype=np.uint16)}, "codes without values"),
    ({"values": [np.zeros(7, np.float32), None]}, "a value for each code"),
]


@pytest.mark.parametrize(("changed", "said"), WRONG_CALLS, ids=[said for _, said in WRONG_CALLS])
def test_the_native_function_refuses(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call_of(**changed)


def test_without_products_d_is_c() -> None:
    c, empty = np.array([[-0.0, 3.5]], np.float32), np.ones((1, 0), np.float32)
    assert models.gemm(ONE)(empty, np.ones((0, 2), np.float32), c).tobytes() == c.tobytes()
    assert models.gemm(ONE)(empty, np.ones((0, 2), np.float32)).tobytes() == bytes(8)


def test_arrays_come_back_in_the_callers_kind() -> None:
    made = replace(ONE, a="bf16", b="bf16", c=None, kernels=(replace(PLAIN, step=DOT),))
    a, b = np.full((2, 3), 1.5, ml_dtypes.bfloat16), np.full((3, 2), 2, ml_dtypes.bfloat16)
    assert models.gemm(made)(a, b).tolist() == [[9, 9]] * 2
    bits = models.gemm(made)(a.view(np.uint16), b.view(np.uint16))
    assert bits.dtype == np.uint32
    assert bits.view(np.float32).tolist() == [[9, 9]] * 2


def test_the_example_in_the_docstring() -> None:
    finder = doctest.DocTestFinder().find(models.gemm, "gemm", globs={})
    assert doctest.DocTestRunner().run(finder[0]).failed == 0


def asked(made: Schedule, m: int = 2, n: int = 2, k: int = 4) -> None:
    models.gemm(made)(np.ones((m, k), np.float32), np.ones((k, n), np.float32))


GAP = (Region("plain", Bands(pieces=(2,))),)
TWICE = (Region("plain", columns=Bands(least=2)), Region("plain", Bands(pieces=(2,), places=(1,))))
SPLIT = to_text(ONE).replace("join = { ", "join = { splits = 2, ")
ODD = replace(PLAIN, step=DOT, ranges=replace(SHARED, tile=(4, 6, 7)))
OTHER = replace(PLAIN, step=replace(DOT, primitive="VDPBF16PS"))
BROKEN: list[tuple[Callable[[], object], str]] = [
    (lambda: asked(replace(ONE, regions=GAP), 3), r"element (2, 0) of 3 x 2 lies in no region"),
    (lambda: asked(replace(ONE, regions=TWICE)), r"element (1, 0) of 2 x 2 lies in regions 0 and 1"),
    (lambda: Ranges("given", lengths=(3, 4)).of(9), "K is 9, the lengths given add up to 7: k = 7 is left out"),
    (lambda: Ranges("given", lengths=(3, 4)).of(6), "k = 6 and more are used, which are not there"),
    (lambda: Ranges("uniform"), "length is missing; uniform takes length"),
    (lambda: Ranges("uniform", 3, parts=2), "parts is 2; uniform takes length"),
    (lambda: replace(SHARED, workers=0), "workers is 0; it must be a whole number from 1 to 65536"),
    (lambda: replace(SHARED, workers=None), "workers is missing; stream_k takes tile, workers, group, groups_of"),
    (lambda: replace(SHARED, group=0), "group is 0; it must be a whole number from 1"),
    (lambda: replace(SHARED, tile=(4, 6)), "tile is [4, 6]; it must be three lengths: M and N of a tile, K of a unit"),
    (lambda: replace(SHARED, tile=(4, 0, 8)), "tile is 0; it must be a whole number from 1"),
    (lambda: replace(SHARED, length=3), "length is 3; stream_k takes tile, workers, group, groups_of"),
    (lambda: Ranges("uniform", 3, group=2), "group is 2; uniform takes length"),
    (lambda: SHARED.of(22), "stream_k cuts K by tile; ask for the areas of a shape"),
    (lambda: Bands(SHARED), "blocks is stream_k; workers share K alone"),
    (lambda: list(replace(SHARED, tile=(1, 1, 8)).areas(1025, 1024, 8)), "have 1,049,600 tiles; workers share at most"),
    (lambda: models.gemm(replace(ONE, a="bf16", b="bf16", kernels=(ODD,))), "a unit of work is 7 k; it must be whole"),
    (lambda: Accumulators("f32", 2, block=3), "block is 3; it must be a multiple of count * run = 2"),
    (lambda: Accumulators("f32", 2, rest="after"), "rest is after; without a block no steps are left"),
    (lambda: Accumulators("f32", 2, block=2, rest="before"), "rest is before; of 2 accumulators that is first"),
    (lambda: Accumulators("f32", 2, block=2, late=2), "late is 2; it must be less than block, 2"),
    (lambda: Accumulators("f32", late=-1), "late is -1; it must be a whole number from 0"),
    (lambda: Accumulators("s32"), "format is s32; it must be a float with a sign"),
    (lambda: GemmStep("fma", "x86-64"), "architecture is 'x86-64'; fma takes none"),
    (lambda: GemmStep("fma", beyond="fma"), "beyond is fma; fma takes alike or the other one"),
    (lambda: replace(DOT, beyond="fma"), "beyond is fma; primitive takes alike alone"),
    (lambda: replace(PLAIN, step=GemmStep(beyond="multiply_add")), "without a block of accumulators no products are"),
    (lambda: GemmStep(filled=0), "filled is 0; it must be a whole number from 1 to 64"),
    (lambda: replace(PLAIN, accumulators=Accumulators("f32", 2), step=GemmStep(filled=2)), "1 of all but ranges of"),
    (lambda: replace(PLAIN, promotion=Promotion(2, "f32"), step=GemmStep(filled=2)), "without promotion"),
    (lambda: replace(DOT, order=(0, 0)), "order is [0, 0]; it must be a permutation"),
    (lambda: models.gemm(replace(ONE, kernels=(OTHER,))), "kernel plain: x86-64 knows no datapath of 'VDPBF16PS'"),
    (lambda: models.gemm(replace(ONE, kernels=(replace(PLAIN, step=DOT),))), "A bf16, B bf16, accumulator f32, the"),
    (lambda: replace(ONE, regions=(Region("plan"),)), "regions.0: no kernel 'plan'; did you mean plain"),
    (lambda: replace(ONE, c=None, kernels=(replace(PLAIN, join=Join("f32", start="c")),)), "the schedule has no C"),
    (lambda: Bands(pieces=(4,), places=(4,)), "places is 4; it must be a whole number from 0 to 3"),
    (lambda: asked(replace(ONE, scope=Scope("x", most_k=3))), "K is 4; the schedule holds for K from 0 to 3"),
    (lambda: models.gemm(ONE)(np.ones((2, 3), np.float32), np.ones((4, 2), np.float32)), "shapes do not fit: A (2, 3)"),
    (lambda: models.gemm(ONE)(np.ones(3, np.float32), np.ones((3, 2), np.float32)), "operand A is of shape (3,)"),
    (lambda: models.gemm("openblas_hasvell_f32"), "did you mean openblas_haswell_f32"),
    (lambda: from_text(to_text(ONE) + "streams = 2\n", "x.toml"), "x.toml.scope.streams: unknown key"),
    (lambda: from_text(SPLIT, "x.toml"), "x.toml.kernels.0.join.splits: unknown key"),
    (lambda: from_text("schema = 2", "x.toml"), "x.toml: schema is 2"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "said"), BROKEN, ids=[said for _, said in BROKEN])
def test_what_is_wrong_is_named(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        wrong()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_architecture_of_a_call_takes_the_place_of_the_schedules() -> None:
    made = replace(ONE, a="bf16", b="bf16", c=None, kernels=(replace(PLAIN, step=replace(DOT, architecture="gfx942")),))
    with pytest.raises(UsageError, match="gfx942 knows no datapath"):
        models.gemm(made)
    assert models.gemm(made, "x86-64").architecture == "x86-64"


def test_what_ships_is_read_as_it_was_written() -> None:
    for name in known_schedules():
        assert from_text(to_text(schedule_named(name)), name) == schedule_named(name)
