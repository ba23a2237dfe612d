"""The native engine against the NumPy stages, IEEE arithmetic, and its own builds against each other."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pytest

from cases.engine import DATAPATHS, MODES, batch
from mmaprobe import _native, formats
from mmaprobe.errors import UsageError
from mmaprobe.models import engine, kernels, program_rows, stages
from mmaprobe.models.bit_budget import WIDTHS, bit_budget
from mmaprobe.models.program import _Builder, _template, plain_program, program
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import (
    Accumulator,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Operand,
    Product,
    Products,
    Scale,
    Special,
)
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import neighbourhood

BUILDS = _native.engine_builds()
FMA64 = DATAPATHS["fma f64"]


def test_layout_is_that_of_the_header() -> None:
    layout = _native.engine_layout()
    assert tuple(layout.pop("opcodes")) == program_rows.OPCODES
    assert tuple(layout.pop("kernels")) == kernels.KERNELS
    assert {name: tuple(columns) for name, columns in layout.items()} == program_rows.COLUMNS


@pytest.mark.parametrize("name", DATAPATHS)
def test_a_program_filled_in_is_the_one_that_is_made(name: str) -> None:
    """Of what is written alike but for Encodes and terms one program is made, whichever comes first."""
    every = [DATAPATHS[name], *(near.datapath for near in neighbourhood(DATAPATHS[name])[::3])]
    for paths in (every, every[::-1]):
        _template.cache_clear()
        for path in paths:
            builder, found = _Builder(path, shared=False), plain_program(path)
            assert (found is None) == (builder.budget.reason is not None)
            if found is None:
                continue
            made = builder.template()
            assert found.words.tolist() == made.words.tolist(), path
            assert [(each.at.tolist(), each.by) for each in found.ruled] == [
                (each.at.tolist(), each.by) for each in made.ruled
            ]
        assert _template.cache_info().misses < len(every)


@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
def test_rounding_table_is_shift_right(rounding: str) -> None:
    table = program_rows.rounding_table(rounding)
    value = np.arange(64)
    for negative in (False, True):
        sign = np.full(value.shape, negative)
        row = int(negative) << 3 | value >> 2 & 4 | value >> 2 & 2 | (value & 7 != 0)
        expected = formats.shift_right(value, np.full(value.shape, 4), sign, rounding)
        assert ((value >> 4) + (table >> row & 1) == expected).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DATAPATHS)
def test_engine_is_the_stages(name: str, mode: str) -> None:
    datapath = DATAPATHS[name]
    assert engine.refusal(datapath) is None
    vectors = batch(datapath, mode, seed=1, count=150)
    expected = stages.evaluate(datapath, vectors)
    wrong = np.flatnonzero(engine.evaluate(datapath, vectors) != expected)
    assert not wrong.size, f"vectors {wrong[:5]} of {name}"


def fma_of(a: str, d: str, to: Encode, **more: Any) -> Datapath:
    """One fused multiply-add, which no kernel computes but the interpreter."""
    return Datapath(a, a, d, d, 1, Fma(Accumulator(), (0,), to), **more)


def every(datapath: Datapath, a: list[int], b: list[int], c: list[int]) -> Batch:
    """All combinations of some codes."""
    one, other, third = (x.ravel() for x in np.meshgrid(a, b, c, indexing="ij"))
    types = [formats.get(name).dtype for name in (datapath.a, datapath.b, datapath.c or "f32")]
    return Batch(one[:, None].astype(types[0]), other[:, None].astype(types[1]), third.astype(types[2]))


def test_every_code_of_a_format_with_one_nan() -> None:
    """The NaN of fnuz formats is the code of a negative zero."""
    datapath = fma_of("e4m3fnuz", "f32", Encode(), special=Special(code=0x7FC00000))
    vectors = every(datapath, list(range(256)), [0x40, 0x80, 0xC8], [0, 0x80000000, 0x3F800000])
    d = engine.evaluate(datapath, vectors)
    assert (d == stages.evaluate(datapath, vectors)).all()
    assert ((d == 0x7FC00000) == ((vectors.a == 0x80) | (vectors.b == 0x80))[:, 0]).all()


@pytest.mark.parametrize("policy", ["keep", "zero", "signed_zero"])
def test_a_flushed_operand_and_its_sign(policy: Any) -> None:
    datapath = fma_of("f16", "f16", Encode("f16"), operand_a=Operand(policy), special=Special(code=0x7E00))
    vectors = every(
        datapath, [0, 1, 0x3FF, 0x400, 0x8000, 0x8001, 0x83FF, 0x8400], [0x3C00, 0xBC00, 0x7C00], [0, 0x8000]
    )
    d = engine.evaluate(datapath, vectors)
    assert (d == stages.evaluate(datapath, vectors)).all()
    small = (vectors.a[:, 0] == 0x8001) & (vectors.b[:, 0] == 0x3C00) & (vectors.c == 0x8000)
    assert d[small].tolist() == [{"keep": 0x8001, "zero": 0, "signed_zero": 0x8000}[policy]]


def test_a_payload_that_does_not_fit_leaves_a_nan() -> None:
    special = Special("global", 0x7E00, ("a0", "b0", "c"), quiet=False)
    datapath = Datapath("f32", "f32", "f16", "f16", 1, Fma(Accumulator(), (0,), Encode("f16")), special=special)
    vectors = every(datapath, [0x7F800001, 0xFF800001, 0x7F802000, 0x7FC00001], [0x3F800000], [0])
    d = engine.evaluate(datapath, vectors)
    assert (d == stages.evaluate(datapath, vectors)).all()
    assert d.tolist() == [0x7E00, 0xFE00, 0x7C01, 0x7E00]


@pytest.mark.parametrize(("tininess", "lost"), [("before", [1, 1, 0]), ("after", [1, 0, 0]), ("encoded", [0, 0, 0])])
def test_when_a_result_is_tiny(tininess: Any, lost: list[int]) -> None:
    """2^-14 (1 - 2^-11), which has a code of 11 bits and is half a place of a subnormal short of 2^-14; a product
    nearer to it, which rounds up to it; and 2^-14."""
    datapath = fma_of("f32", "f16", Encode("f16", subnormals="signed_zero", tininess=tininess))
    codes = np.float32([2**-14 * (1 - 2**-11), 2**-14 * (1 - 2**-13), 2**-14]).view(np.uint32)
    vectors = every(datapath, codes.tolist(), [0x3F800000], [0])
    d = engine.evaluate(datapath, vectors)
    assert (d == stages.evaluate(datapath, vectors)).all()
    assert [int(code == 0) for code in d] == lost


def test_a_product_at_the_bound_is_infinite() -> None:
    """From 2^128 on, although with C the sum would be finite again; by the interpreter and by the kernel."""
    alone = Datapath("bf16", "bf16", "f32", "f32", 1, Exact((Products((0,)), Accumulator()), Encode()),
                     product=Product(overflow_exponent=128))  # fmt: skip
    for datapath in (alone, DATAPATHS["CDNA3 bf16"]):
        a = np.zeros((64, datapath.k), np.uint16)
        a[:, 0] = 0x5F80  # 2^64
        b = a.copy()
        b[::2, 0] = 0x5F7F  # a place below 2^64
        vectors = Batch(a, b, np.full(64, 0xFF000000, np.uint32))  # -2^127
        d = engine.evaluate(datapath, vectors)
        assert (d == stages.evaluate(datapath, vectors)).all()
        assert (d[1::2] == 0x7F800000).all()
        assert (d[::2] < 0x7F800000).all()


@pytest.mark.parametrize("where", ["product", "group"])
def test_a_zero_scale_times_an_infinity_is_a_nan(where: Any) -> None:
    """Each side's scale a zero, one or a NaN, beside finite and infinite lanes; no unit has such formats, a hypothesis
    may."""
    lanes = Products((0, 1))
    terms = (lanes if where == "product" else Exact((lanes,), scaled=True), Accumulator())
    datapath = Datapath(
        "e5m2", "e5m2", "f32", "f32", 2, Fused.alike(terms, 24, "RZ", to=Encode()), scale=Scale("ue4m3", 2, where),
        special=Special(code=0x7FC00000),
    )  # fmt: skip
    one, zero, half, infinity, minus = 0x38, 0, 0x38, 0x7C, 0xFC
    rows = list(itertools.product((half, infinity, minus), (one, zero, 0x7F), (one, zero, 0x7F)))
    a, scale_a, scale_b = np.array(rows, np.uint8).T[:, :, None]
    other = np.full_like(a, half)
    vectors = Batch(np.hstack([a, other]), np.hstack([other, other]), np.zeros(len(a), np.uint32), scale_a, scale_b)
    d = engine.evaluate(datapath, vectors)
    assert (d == stages.evaluate(datapath, vectors)).all()
    for result, (lane, *scales) in zip(d.tolist(), rows, strict=True):
        invalid = 0x7F in scales or (lane != half and zero in scales)
        infinite = {infinity: 0x7F800000, minus: 0xFF800000}.get(lane)
        wanted = 0x7FC00000 if invalid else infinite or (0 if zero in scales else 0x3F000000)
        assert result == wanted, (lane, scales)


def test_every_shipped_datapath_runs_natively() -> None:
    """The parameter files: none is refused, all agree with the stages."""
    data = resources.files("mmaprobe.parameters") / "data"
    architectures = sorted(path.name.removesuffix(".toml") for path in data.iterdir() if path.name.endswith(".toml"))
    shipped = {entry.datapath for name in architectures for entry in load(name).entries.values()}
    assert len(shipped) > 50
    for datapath in shipped:
        assert engine.refusal(datapath) is None
        for mode in MODES:
            vectors = batch(datapath, mode, seed=10, count=40)
            assert (engine.evaluate(datapath, vectors) == stages.evaluate(datapath, vectors)).all(), datapath


@pytest.mark.parametrize("name", ["fma f64", "vdpbf16ps", "T-FDPA f16", "CDNA1 bf16", "CDNA3 fp8", "s8", "mxf4nvf4"])
def test_all_builds_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    datapath = DATAPATHS[name]
    for mode in MODES:
        vectors = batch(datapath, mode, seed=2, count=1000)
        results = []
        for build in BUILDS:
            monkeypatch.setenv("MMAPROBE_ISA", build)
            results.append(engine.evaluate(datapath, vectors))
        assert all((result == results[0]).all() for result in results)


def test_unknown_build_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", "mmx")
    with pytest.raises(UsageError, match=r"mmx.*baseline"):
        engine.evaluate(FMA64, batch(FMA64, "uniform", 0, 1))


def test_float64_addition_and_multiplication_are_ieee() -> None:
    """x * 1 + c and x * y + 0 are the machine's own sum and product."""
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(20000) * 2.0 ** rng.integers(-40, 40, 20000) for _ in range(2))
    one, zero = np.ones_like(x), np.zeros_like(x)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        columns = (a.view(np.uint64)[:, None], b.view(np.uint64)[:, None])
        return engine.evaluate(FMA64, Batch(*columns, c.view(np.uint64))).view(np.float64)

    assert (run(x, one, y) == x + y).all()
    assert (run(x, y, zero) == x * y).all()


def test_every_count_of_vectors() -> None:
    datapath = DATAPATHS["T-FDPA f16"]
    vectors = batch(datapath, "clustered", seed=3, count=200)
    whole = engine.evaluate(datapath, vectors)
    for count in (0, 1, 63, 64, 65, 129):
        assert (engine.evaluate(datapath, vectors.slice(0, count)) == whole[:count]).all()
        assert (engine.evaluate(datapath, vectors.slice(count, 200)) == whole[count:]).all()


def test_strided_and_big_endian_operands() -> None:
    datapath = DATAPATHS["fma f64"]
    vectors = batch(datapath, "clustered", seed=4, count=100)
    assert vectors.c is not None
    other = Batch(np.asfortranarray(vectors.a), vectors.b.astype(">u8"), np.repeat(vectors.c, 2)[::2])
    assert (engine.evaluate(datapath, other) == engine.evaluate(datapath, vectors)).all()


def test_what_does_not_fit_is_refused_and_computed_exactly() -> None:
    wide = Datapath(
        "f64", "f64", "f64", "f64", 2, Exact((Products((0, 1)), Accumulator()), Encode("f64")),
        special=Special(code=0x7FF8 << 48),
    )  # fmt: skip
    reason = engine.refusal(wide)
    assert reason is not None
    assert f"{bit_budget(wide).bits} bits" in reason
    vectors = batch(wide, "clustered", seed=6, count=50)
    assert (engine.evaluate(wide, vectors) == stages.evaluate(wide, vectors)).all()


@pytest.mark.parametrize(
    ("name", "width"),
    [("T-FDPA f16", 64), ("fma f32", 64), ("fma f64", 128), ("CDNA1 f16", 320), ("CDNA1 bf16", 640), ("s8", 64)],
)
def test_budget_picks_the_width(name: str, width: int) -> None:
    assert bit_budget(DATAPATHS[name]).width == width
    assert width in WIDTHS


def test_many_datapaths_on_few_vectors() -> None:
    base = DATAPATHS["T-FDPA f16"]
    many = [mutate(base, "tree.fraction_bits", str(bits)) for bits in range(15, 30)]
    vectors = batch(base, "clustered", seed=7, count=40)
    together = engine.evaluate_many(many, vectors)
    assert together.shape == (15, 40)
    for row, datapath in zip(together, many, strict=True):
        assert (row == engine.evaluate(datapath, vectors)).all()
    assert len(np.unique(together, axis=0)) > 5


def test_flattening_is_quick() -> None:
    """A thousand fresh hypotheses take well under a second of flattening."""
    base = Datapath("f16", "f16", "f32", "f32", 4, Fma(Accumulator(), (0, 1, 2, 3), Encode()))
    many = [replace(base, special=Special(code=0x7F800001 + i)) for i in range(300)]
    vectors = batch(base, "clustered", seed=8, count=8)
    start = time.perf_counter()
    engine.evaluate_many(many, vectors)
    assert time.perf_counter() - start < 0.3


def test_wrong_operands_are_named() -> None:
    datapath = DATAPATHS["T-FDPA f16"]
    good = batch(datapath, "uniform", seed=9, count=4)
    with pytest.raises(UsageError, match="operand a"):
        engine.evaluate(datapath, replace(good, a=good.a[:, :3]))
    with pytest.raises(UsageError, match="operand b"):
        engine.evaluate(datapath, replace(good, b=good.b.astype(np.uint32)))
    with pytest.raises(UsageError, match="operand c"):
        engine.evaluate(datapath, replace(good, c=None))
    with pytest.raises(UsageError, match="operand scale_a"):
        engine.evaluate(datapath, replace(good, scale_a=good.a))


@pytest.mark.parametrize("operand", ["a", "b", "c", "scale_a", "scale_b"])
def test_a_program_takes_operands_as_it_was_made_for_alone(operand: str) -> None:
    """Items of twice the width, and twice as many, of vectors and of a tile; the arrays are large enough to be read."""
    datapath = DATAPATHS["mxf8f6f4"]
    words = program(datapath)
    assert words is not None
    out = np.zeros((1, 16), np.uint32)
    vectors, column = (batch(datapath, "uniform", seed=12, count=count) for count in (16, 1))
    tile = replace(vectors, b=column.b, scale_b=column.scale_b)

    def run(given: Batch, beside: Batch) -> None:
        engine.run_programs([words], True, given, out)
        operands = [beside.a, beside.b, beside.c, beside.scale_a, beside.scale_b]
        _native.engine_evaluate_tiles(words, operands, out, 1, 16, 1)

    def wider(x: Bits) -> Bits:
        return x.astype(f"u{2 * x.itemsize}")

    def more(x: Bits) -> Bits:
        return np.hstack([x.reshape(len(x), -1)] * 2)

    def changed(given: Batch, how: Callable[[Bits], Bits]) -> Batch:
        return replace(given, **{operand: how(getattr(given, operand))})

    run(vectors, tile)
    for how in (wider, more):
        with pytest.raises(UsageError, match="has not the width or the number of items"):
            run(changed(vectors, how), tile)
        with pytest.raises(ValueError, match="has not the width or the size of the tiles"):
            run(vectors, changed(tile, how))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_compare(dtype: type) -> None:
    x = np.arange(10000).astype(dtype)
    y = x.copy()
    assert _native.compare(x, y)[0] == 0
    y[[3, 5000, 9999]] ^= 1
    count, where = _native.compare(x, y, 2)
    assert count == 3
    assert where.tolist() == [3, 5000]
    with pytest.raises(ValueError, match="one dtype"):
        _native.compare(x, y[1:])


def test_what_alters_a_program_must_fit_it() -> None:
    """Places within the words, values that there are, one of each axis for every combination; the program that comes
    out is looked at as any other."""
    datapath = DATAPATHS["T-FDPA f16"]
    words, vectors = program(datapath), batch(datapath, "uniform", seed=13, count=5)
    assert words is not None
    patched = engine.Patched(words, np.zeros(len(words), bool), np.empty(0, np.int64), 1 << 40)
    at = np.arange(2) + len(words) - 2
    good = at, np.stack([words[at], words[at]]), np.array([0, 1, 1])
    out = np.empty((3, 5), np.uint32)
    patched.run([good], True, vectors, out)
    assert (out == engine.evaluate(datapath, vectors)).all()
    for which, bad in (
        (0, at + 1), (0, at - len(words)), (0, at[:1]), (1, good[1][:, :1]), (2, np.array([0, 1, 2])),
        (2, np.array([0, -1, 1])), (2, np.array([0, 1])),
    ):  # fmt: skip
        altered = tuple(bad if i == which else each for i, each in enumerate(good))
        with pytest.raises(UsageError, match="patches do not fit"):
            patched.run([altered], True, vectors, out)  # type: ignore[list-item]
    with pytest.raises(UsageError, match="patches do not fit"):
        replace(patched, sums=np.array([len(words) - 3])).run([good], True, vectors, out)
    with pytest.raises(UsageError, match="not a program"):
        patched.run([(np.array([0]), np.array([[99]]), np.zeros(3, np.int64))], True, vectors, out)
