"""What becomes of operands before a product and of sums after it: equal bits by the slow evaluator, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import mmaprobe
from cases.gemm_schedules import DOT, ONE, PLAIN, operands, schedules
from mmaprobe import _native, formats
from mmaprobe.devices.gemm import open_gemm
from mmaprobe.errors import UsageError
from mmaprobe.models import gemm as models
from mmaprobe.parameters.epilogue import Compute, Input, Scaling
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.schedule import Join, Promotion, Ranges, Schedule, Scope, from_text, to_text
from mmaprobe.parameters.table import to_table, write_record
from oracle import gemm as oracle

FAST = (Phase.explicit, Phase.generate)
"""Nothing is made smaller: a failing element names itself, and faults die at once."""
many = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, phases=FAST)
SHAPES = ("scalar", "row", "column", "matrix")
WIDE = st.sampled_from(("f32", "f32", "f64", "bf16", "f16"))


@st.composite
def inputs_of(draw: Any, name: str, shape: str) -> Input:
    rows = draw(st.integers(1, 3)) if shape in ("row", "matrix", "a", "b") else 1
    columns = draw(st.integers(1, 3)) if shape in ("column", "matrix", "a", "b") else 1
    return Input(name, draw(st.sampled_from(("f32", "bf16", "e4m3"))), shape, rows, columns)  # type: ignore[arg-type]


@st.composite
def with_epilogue(draw: Any) -> Schedule:
    made = draw(schedules())
    inputs = [draw(inputs_of(f"x{i}", draw(st.sampled_from(SHAPES)))) for i in range(4)]
    leaves = [each.name for each in inputs] + ["c"] * (made.c is not None)
    nodes, root = list[Compute](), "sum"
    for i in range(draw(st.integers(0, 4))):
        operation = draw(st.sampled_from(("multiply", "add", "fma", "maximum", "minimum")))
        extremum = operation in ("maximum", "minimum")
        others = [
            draw(st.sampled_from([*leaves, *(["0", "-1.5"] * extremum)])) for _ in range(1 + (operation == "fma"))
        ]
        if draw(st.booleans()):
            side = Compute(f"side{i}", "multiply", (others[-1] if others[-1] in leaves else "x0", "x1"), draw(WIDE))
            nodes.append(side)
            others[-1] = side.name
        of = draw(st.permutations([root, *others]))
        fmt = draw(st.sampled_from(("f32", "f64"))) if extremum else draw(WIDE)
        nan = draw(st.sampled_from(("propagate", "number"))) if extremum else "propagate"
        nodes.append(Compute(f"v{i}", operation, tuple(of), fmt, nan=nan))
        root = f"v{i}"
    sums = ["sum"] * (len({kernel.join.format for kernel in made.kernels}) == 1)
    amax = (
        (draw(st.sampled_from([*sums, *(node.name for node in nodes)])),)
        if (sums or nodes) and draw(st.booleans())
        else ()
    )
    d = draw(st.sampled_from(("f32", "bf16", "e4m3", "e5m2")))
    nodes.append(Compute("d", "convert", (root,), d, draw(st.sampled_from(("ieee", "largest")))))
    scalings = ()
    if draw(st.booleans()):
        shape = draw(st.sampled_from(("scalar", "row", "a")))
        inputs.append(draw(inputs_of("s", shape)))
        scalings = (Scaling("a", "s", draw(st.sampled_from((None, "s8", "e4m3")))),)
    used = {name for node in nodes for name in node.of} | {"s"}
    return replace(
        made, d=d, inputs=tuple(each for each in inputs if each.name in used), scalings=scalings,
        epilogue=tuple(nodes), amax=amax,
    )  # fmt: skip


def item(each: Input, value: Any, i: int, j: int) -> tuple[str, int]:
    """What an input has for a place."""
    i, j = i // each.rows, j // each.columns
    place: Any = {"scalar": (), "row": i, "column": j}.get(each.shape, (i, j))
    return each.format, int(value[place])


def some_of(fmt: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    made = formats.get(fmt)
    return rng.integers(0, 256, shape).astype(made.dtype) if made.kind == "integer" else operands(rng, made, shape)


class Asked:
    """One call of a random schedule: its operands, and what each element's tree is by the slow evaluator."""

    def __init__(self, made: Schedule, shape: tuple[int, int, int], seed: int, has_c: bool) -> None:
        (self.m, self.n, k), rng = shape, np.random.default_rng(seed)
        self.made, self.table, self.known = made, write_record(made), {each.name: each for each in made.inputs}
        stored = (made.scalings[0].stored if made.scalings else None) or made.a
        self.a, self.b = some_of(stored, rng, (self.m, k)), some_of(made.b, rng, (k, self.n))
        self.c = some_of("f32", rng, (self.m, self.n)) if made.c and has_c else None
        self.inputs = {each.name: some_of(each.format, rng, each.lengths(self.m, self.n, k)) for each in made.inputs}
        self.rows = [[self._scaled(stored, i, p) for p in range(k)] for i in range(self.m)]

    def _scaled(self, stored: str, i: int, p: int) -> int:
        code = int(self.a[i, p])
        if not self.made.scalings:
            return code
        return oracle.scaled((stored, code), item(self.known["s"], self.inputs["s"], i, p), self.made.a)

    def tree(self, i: int, j: int) -> oracle.Epilogue:
        """The epilogue of an element."""
        kernel = oracle.kernel_of(self.table, i, j, self.m, self.n, self.a.shape[1])
        assert kernel is not None
        primitive = to_table(load("x86-64").entries[DOT.primitive].datapath)
        one = oracle.Element(self.table, kernel, self.rows[i], self.b[:, j].tolist(), primitive)
        c = None if self.c is None else int(self.c[i, j])
        leaves: dict[str, tuple[str, int] | None] = {
            name: item(each, self.inputs[name], i, j) for name, each in self.known.items() if name != "s"
        }
        begins = self.a.shape[1] or (kernel["join"].get("start") == "c" and c is not None)
        total = (kernel["join"]["format"], one.sum(c)) if begins else oracle.EMPTY
        leaves |= {"sum": total, "c": None if c is None else ("f32", c)}
        return oracle.Epilogue(self.table, leaves)


@many
@given(
    made=with_epilogue(), shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 9)),
    seed=st.integers(0, 99), has_c=st.booleans(), build=st.sampled_from(_native.engine_builds()),
)  # fmt: skip
def test_every_epilogue_as_in_exact_fractions(
    made: Schedule, shape: tuple[int, int, int], seed: int, has_c: bool, build: str
) -> None:
    call = Asked(made, shape, seed, has_c)
    if call.tree(0, 0).d(made.d) is None:
        with pytest.raises(UsageError, match="without C nothing of the epilogue is left"):
            models.gemm(made)(call.a, call.b, **call.inputs)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MMAPROBE_ISA", build)
        found = models.gemm(made)(call.a, call.b, call.c, **call.inputs)
    d, amax = found if made.amax else (found, {})
    sizes = list[int]()
    for i, j in np.ndindex(call.m, call.n):
        tree = call.tree(i, j)
        assert tree.d(made.d) == (made.d, d[i, j]), (i, j)
        sizes += [oracle.size(*value) for name in made.amax if (value := tree.value(name)) and value != oracle.EMPTY]
    if sizes:
        assert int(amax[made.amax[0]]) == max(sizes)


@many
@given(made=with_epilogue())
def test_an_epilogue_is_read_as_it_was_written(made: Schedule) -> None:
    assert from_text(to_text(made), "x.toml") == made


ALPHA, BETA = Input("alpha", "f32"), Input("beta", "f32")
BIAS = Input("bias", "f32", "column")
LINEAR = (
    Compute("of_c", "multiply", ("beta", "c"), "f32"),
    Compute("both", "fma", ("alpha", "sum", "of_c"), "f32"),
    Compute("biased", "add", ("both", "bias"), "f32"),
    Compute("positive", "maximum", ("biased", "0"), "f32"),
)
WHOLE = replace(ONE, inputs=(ALPHA, BETA, BIAS), epilogue=LINEAR)


def test_alpha_beta_bias_and_relu() -> None:
    a, b = np.array([[1, 2], [3, -4]], np.float32), np.array([[1, 0, 2], [0, 1, 2]], np.float32)
    c, bias = np.full((2, 3), 10, np.float32), np.array([0, 1, -90], np.float32)
    d = models.gemm(WHOLE)(a, b, c, alpha=2.0, beta=0.5, bias=bias)
    assert d.tolist() == [[7, 10, 0], [11, 0, 0]]
    assert models.gemm(WHOLE)(a, b, alpha=2, beta=7, bias=bias).tolist() == [[2, 5, 0], [6, 0, 0]]
    part = models.gemm(WHOLE)(a, b, c, rows=slice(1, 2), columns=slice(2, None, -2), alpha=2, beta=0.5, bias=bias)
    assert part.tolist() == [[0, 11]]
    empty = models.gemm(WHOLE)(a[:, :0], b[:0], c, alpha=2, beta=0.5, bias=bias)
    assert empty.tolist() == [[5, 6, 0], [5, 6, 0]]


def test_of_no_products_d_is_beta_c() -> None:
    """An infinite alpha is not multiplied by a sum that is not there; -0 stays; a clamp is of +0, and so is D."""
    c = np.array([[4, -0.0]], np.float32)
    none = np.zeros((1, 0), np.float32), np.zeros((0, 2), np.float32)
    bare = replace(WHOLE, inputs=(ALPHA, BETA), epilogue=LINEAR[:2])
    for alpha in (np.inf, np.nan, 3.0):
        d = models.gemm(bare)(*none, c, alpha=np.float32(alpha), beta=0.5)
        assert d.view(np.uint32).tolist() == [[0x40000000, 0x80000000]]
        assert models.gemm(bare)(*none, alpha=np.float32(alpha), beta=0.5).view(np.uint32).tolist() == [[0, 0]]
    product = Compute("scaled", "multiply", ("alpha", "sum"), "f32")
    for clamp, said in ((("maximum", "-2"), 0.0), (("minimum", "5"), 0.0), (("maximum", "2"), 2.0)):
        last = Compute("clamped", clamp[0], ("scaled", clamp[1]), "f32")  # type: ignore[arg-type]
        made = replace(ONE, c=None, inputs=(ALPHA,), epilogue=(product, last))
        assert models.gemm(made)(*none, alpha=np.float32(np.inf)).tolist() == [[said, said]]


@pytest.mark.parametrize("build", _native.engine_builds())
def test_of_no_products_sizes_are_those_of_the_values_that_are_there(build: str, monkeypatch: Any) -> None:
    """What the missing sum would be multiplied by has a size, though no element is made of it; the product has none."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    side = Compute("side", "multiply", ("alpha", "bias"), "f32")
    scaled = Compute("scaled", "multiply", ("side", "sum"), "f32")
    for last, c, d in ((scaled, None, [0, 0]), (Compute("d", "add", ("scaled", "c"), "f32"), [[5.0, -6.0]], [5, -6])):
        nodes = (side, scaled) if last is scaled else (side, scaled, last)
        made = replace(ONE, c="f32" if c else None, inputs=(ALPHA, BIAS), epilogue=nodes, amax=("side", "scaled"))
        bias = np.array([3, -7], np.float32)
        given = () if c is None else (np.array(c, np.float32),)
        found, sizes = models.gemm(made)(np.zeros((1, 0), np.float32), np.zeros((0, 2), np.float32), *given,
                                         alpha=np.float32(2), bias=bias)  # fmt: skip
        assert found.tolist() == [d]
        assert {name: float(value) for name, value in sizes.items()} == {"side": 14.0, "scaled": 0.0}


def test_of_no_products_scales_by_groups_of_k_are_none() -> None:
    """An operand's scales have then no group; nothing of them is read, and D is C."""
    scales = Input("s", "f32", "a", rows=2, columns=3)
    made = replace(ONE, inputs=(scales,), scalings=(Scaling("a", "s"),))
    c = np.array([[1, -0.0, 3], [4, 5, 6], [7, 8, 9]], np.float32)
    none = np.zeros((3, 0), np.float32), np.zeros((0, 3), np.float32)
    d = models.gemm(made)(*none, c, s=np.zeros((2, 0), np.float32))
    assert (d.view(np.uint32) == c.view(np.uint32)).all()


@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize(("to", "most"), [("e5m2", 0x7B), ("e4m3", 0x7E), ("f16", 0x7BFF), ("f32", 0x7F7FFFFF)])
@pytest.mark.parametrize("held", ["f32", "f16", "f64"])
def test_a_saturating_cast_keeps_no_infinity(to: str, most: int, held: str, build: str, monkeypatch: Any) -> None:
    """As ``cvt.satfinite`` and OCP's saturation mode have it: NaN stays, all else beyond the largest is that."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    nodes = Compute("kept", "add", ("sum", "c"), held), Compute("d", "convert", ("kept",), to, "largest")  # type: ignore[arg-type]
    made = replace(ONE, d=to, epilogue=nodes)
    c = np.array([[np.inf, -np.inf, 3e38, -3e38, np.nan, 1]], np.float32)
    d = models.gemm(made)(np.zeros((1, 1), np.float32), np.zeros((1, 6), np.float32), c)
    found = [int(code) for code in d.view(formats.get(to).dtype)[0]]
    sign = formats.get(to).sign_mask
    beyond = [0x7F61B1E6, 0xFF61B1E6] if to == "f32" and held != "f16" else [most, most | sign]
    assert found == [most, most | sign, *beyond, formats.get(to).nan_code, formats.get(to).one]


def test_where_alpha_is_rounded_changes_bits() -> None:
    """MKL's way: alpha times an operand is rounded before the product."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((9, 40), np.float32), rng.standard_normal((40, 8), np.float32)
    before = replace(ONE, c=None, inputs=(ALPHA,), scalings=(Scaling("a", "alpha"),))
    after = replace(ONE, c=None, inputs=(ALPHA,), epilogue=(Compute("scaled", "multiply", ("sum", "alpha"), "f32"),))
    alpha = np.float32(0.7)
    assert (models.gemm(before)(a, b, alpha=alpha) == models.gemm(replace(ONE, c=None))(a * alpha, b)).all()
    assert (models.gemm(after)(a, b, alpha=alpha) == models.gemm(replace(ONE, c=None))(a, b) * alpha).all()
    assert (models.gemm(after)(a, b, alpha=alpha) != models.gemm(before)(a, b, alpha=alpha)).mean() > 0.3


def test_c_is_scaled_before_the_sum_starts_from_it() -> None:
    """beta times C is rounded, whether the sum starts from it, ends with it, or is of no products; without C none."""
    rng, beta = np.random.default_rng(8), Input("beta", "f32", "column")
    a, b = rng.standard_normal((5, 40), np.float32), rng.standard_normal((40, 6), np.float32)
    c, scale = rng.standard_normal((5, 6), np.float32), rng.standard_normal(6, np.float32)
    for join in (Join("f32", start="c"), Join("f32")):
        plain = replace(ONE, kernels=(replace(PLAIN, ranges=Ranges("uniform", 16), join=join),))
        made = replace(plain, inputs=(beta,), scalings=(Scaling("c", "beta"),))
        for k in (40, 0):
            scaled = models.gemm(made)(a[:, :k], b[:k], c, beta=scale)
            assert (scaled == models.gemm(plain)(a[:, :k], b[:k], c * scale)).all()
        assert (models.gemm(made)(a, b, beta=scale) == models.gemm(plain)(a, b)).all()
    named = Compute("d", "add", ("sum", "c"), "f32")
    d = models.gemm(replace(ONE, inputs=(beta,), scalings=(Scaling("c", "beta"),), epilogue=(named,)))(
        a, b, c, beta=scale
    )
    assert (d == models.gemm(replace(ONE, c=None))(a, b) + c * scale).all()
    with pytest.raises(UsageError, match="C is f32; beta must be of its format"):
        replace(ONE, inputs=(Input("beta", "f64"),), scalings=(Scaling("c", "beta"),))
    with pytest.raises(UsageError, match="stored is 's8'; C comes in its own format"):
        Scaling("c", "beta", "s8")


def test_weights_of_bytes_with_scales_by_group() -> None:
    made = replace(
        ONE, c=None, inputs=(Input("scales", "f32", "b", rows=4),), scalings=(Scaling("b", "scales", "s8"),)
    )  # fmt: skip
    rng = np.random.default_rng(6)
    a, weights = rng.standard_normal((5, 10), np.float32), rng.integers(-128, 128, (10, 7)).astype(np.int8)
    scales = rng.standard_normal((3, 7), np.float32)
    b = weights.astype(np.float32) * np.repeat(scales, 4, axis=0)[:10]
    whole = models.gemm(made)(a, weights, scales=scales)
    assert (whole == models.gemm(replace(ONE, c=None))(a, b)).all()
    assert (models.gemm(made)(a, weights, columns=slice(5, 1, -1), scales=scales) == whole[:, 5:1:-1]).all()


def test_promotions_with_scales_of_groups() -> None:
    """Scales of A by row and 8 of K, of B by 3 columns and 8 of K: what the slow evaluator makes of every element."""
    inputs = Input("of_a", "f32", "a", columns=8), Input("of_b", "f32", "b", rows=8, columns=3)
    kernel = replace(PLAIN, promotion=Promotion(4, "f32", ("of_a", "of_b")))
    made = replace(ONE, c=None, kernels=(kernel,), inputs=inputs)
    rng, (m, n, k) = np.random.default_rng(11), (4, 7, 21)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    scales = {each.name: rng.standard_normal(each.lengths(m, n, k), np.float32) for each in inputs}
    d = models.gemm(made)(a, b, **scales)
    table, codes = write_record(made), {name: value.view(np.uint32) for name, value in scales.items()}
    for i, j in np.ndindex(m, n):
        one = oracle.Element(
            table, table["kernels"][0], a[i].view(np.uint32).tolist(), b[:, j].view(np.uint32).tolist(), {}
        )
        one.scale = lambda p, i=i, j=j: oracle.product(
            item(inputs[0], codes["of_a"], i, p), item(inputs[1], codes["of_b"], p, j), "f32"
        )
        assert d[i, j].view(np.uint32) == one.value(None)
    part = models.gemm(made)(a, b, rows=slice(1, 3), columns=slice(6, 1, -2), **scales)
    assert (part == d[1:3, 6:1:-2]).all()


def test_panels_of_scaled_operands_join(monkeypatch: pytest.MonkeyPatch) -> None:
    made = replace(
        ONE, c=None, inputs=(Input("s", "f32", "row"), Input("t", "f32", "column")),
        scalings=(Scaling("a", "s"), Scaling("b", "t")),
    )  # fmt: skip
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((20, 6), np.float32), rng.standard_normal((6, 30), np.float32)
    s, t = rng.standard_normal(20, np.float32), rng.standard_normal(30, np.float32)
    whole = models.gemm(made)(a, b, s=s, t=t)
    monkeypatch.setattr(models, "PANEL", 40)
    assert (models.gemm(made)(a, b, s=s, t=t) == whole).all()


def test_every_layout_is_the_same_product() -> None:
    rng, product = np.random.default_rng(8), models.gemm(replace(ONE, c=None))
    a, b = rng.standard_normal((9, 17), np.float32), rng.standard_normal((17, 5), np.float32)
    whole = product(a, b)
    for layout in ("NN", "NT", "TN", "TT"):
        x, y = (m.T.copy() if way == "T" else m for m, way in zip((a, b), layout, strict=True))
        assert (product(x, y, layout=layout) == whole).all()


def test_a_batch_is_its_products_one_by_one() -> None:
    rng = np.random.default_rng(9)
    a, b, c = (rng.standard_normal((3, *shape), np.float32) for shape in ((4, 7), (7, 6), (4, 6)))
    bias = rng.standard_normal(6, np.float32)
    product = models.gemm(WHOLE)
    whole = product(a, b, c, alpha=1, beta=2, bias=bias)
    assert whole.shape == (3, 4, 6)
    for i in range(3):
        assert (product(a[i], b[i], c[i], alpha=1, beta=2, bias=bias) == whole[i]).all()


def test_d_is_written_where_the_caller_says() -> None:
    rng, product = np.random.default_rng(10), models.gemm(replace(ONE, c=None))
    a, b = rng.standard_normal((4, 9), np.float32), rng.standard_normal((9, 6), np.float32)
    held = np.full((8, 12), 7, np.uint32)
    product(a, b, out=held[::2, 1::2])
    assert (held[::2, 1::2].view(np.float32) == product(a, b)).all()
    typed = np.zeros((6, 4), np.float32).T
    product(a, b, out=typed)
    assert (typed == product(a, b)).all()
    held[::2, 1::2] = 7
    assert (held == 7).all()


@pytest.mark.parametrize(("operation", "signs"), [("maximum", [0, 0, 0, 1]), ("minimum", [0, 1, 1, 1])])
def test_zeros_of_both_signs(operation: Any, signs: list[int]) -> None:
    """+0 is above -0: K = 0 and C in place of the sum give what is compared."""
    made = replace(
        ONE, kernels=(replace(PLAIN, join=Join("f32", start="c")),), inputs=(Input("x", "f32", "matrix"),),
        epilogue=(Compute("most", operation, ("sum", "x"), "f32"),),
    )  # fmt: skip
    c, x = np.array([[0.0, 0.0, -0.0, -0.0]], np.float32), np.array([[0.0, -0.0, 0.0, -0.0]], np.float32)
    for build in _native.engine_builds():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MMAPROBE_ISA", build)
            d = models.gemm(made)(np.ones((1, 0), np.float32), np.ones((0, 4), np.float32), c, x=x)
        assert np.signbit(d).tolist() == [signs]


@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize("operation", ["maximum", "minimum"])
def test_a_nan_wins_or_the_number_does(operation: Any, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    c, x = np.array([[np.nan, 3, np.nan]], np.float32), np.array([[3, -np.nan, np.nan]], np.float32)
    for nan, said in (("propagate", [0x7FC00000] * 3), ("number", [0x40400000, 0x40400000, 0x7FC00000])):
        made = replace(
            ONE, kernels=(replace(PLAIN, join=Join("f32", start="c")),), inputs=(Input("x", "f32", "matrix"),),
            epilogue=(Compute("most", operation, ("sum", "x"), "f32", nan=nan),),  # type: ignore[arg-type]
        )  # fmt: skip
        d = models.gemm(made)(np.ones((1, 0), np.float32), np.ones((0, 3), np.float32), c, x=x)
        assert d.view(np.uint32).tolist() == [said]


def test_the_largest_size_of_a_part() -> None:
    made = replace(WHOLE, amax=("both",))
    a = np.array([[1], [-9]], np.float32)
    d, amax = models.gemm(made)(a, np.ones((1, 2), np.float32), alpha=1, beta=0, bias=np.zeros(2, np.float32))
    assert d.tolist() == [[1, 1], [0, 0]]
    assert {name: float(value) for name, value in amax.items()} == {"both": 9.0}


NARROW = replace(ONE, c=None, scope=Scope("x", layouts=("NN", "TN"), most_batch=2))
A, B = np.ones((2, 4), np.float32), np.ones((4, 2), np.float32)


OTHER = replace(PLAIN, name="other", join=Join("f64"))


def node(**changed: Any) -> Compute:
    return Compute(**{"name": "x", "operation": "add", "of": ("sum", "c"), "format": "f32"} | changed)


def asked(made: Schedule, *operands: Any, **more: Any) -> object:
    return mmaprobe.gemm(made)(*(operands or (A, B)), **more)


def huge(side: int) -> Any:
    """A matrix of one row or column that takes no memory."""
    return np.broadcast_to(np.float32(1), (side, 1))


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: node(operation="gelu"), "gelu; it needs the device's own function as a measured table of all f32 inputs"),
    (lambda: node(operation="sigmoid"), "the result is not claimed"),
    (lambda: node(operation="divide"), "operation is 'divide'; it must be one of multiply, add, fma"),
    (lambda: node(of=("sum",)), "of is ['sum']; add takes 2"),
    (lambda: node(of=("sum", "1")), "of has the number 1; only maximum and minimum take numbers"),
    (lambda: node(operation="maximum", format="bf16"), "format is bf16; maximum is of f32 or f64"),
    (lambda: node(overflow="largest"), "overflow is largest; only convert has one"),
    (lambda: node(nan="number"), "nan is number; only maximum and minimum have one"),
    (lambda: node(name="sum"), "name of a value is 'sum'; it must be small letters"),
    (lambda: Input("out", "f32"), "name of an input is 'out'"),
    (lambda: Input("x", "f32", "row", columns=2), "columns is 2; x has none of its own"),
    (lambda: replace(ONE, epilogue=(node(of=("sum", "beta")),)), "x is of 'beta', which is no value before it"),
    (lambda: replace(ONE, epilogue=(node(of=("c", "c")),)), "sum is used 0 times; it must be used once"),
    (lambda: replace(ONE, epilogue=(node(), node(name="y", of=("x", "x")))), "x is used 2 times"),
    (lambda: replace(ONE, epilogue=(node(), node(of=("x", "c")))), "'x' is there twice"),
    (lambda: replace(ONE, epilogue=(node(format="f64"),)), "the last value of the epilogue is f64; D is f32"),
    (lambda: replace(ONE, inputs=(ALPHA,)), "input alpha is used nowhere"),
    (lambda: replace(ONE, inputs=(ALPHA, ALPHA)), "input alpha is there twice"),
    (lambda: replace(ONE, scalings=(Scaling("a", "alpah"),), inputs=(ALPHA,)), "no input 'alpah'; did you mean alpha"),
    (lambda: replace(ONE, scalings=(Scaling("a", "bias"),), inputs=(BIAS,)), "bias is one a column; a takes"),
    (lambda: replace(ONE, amax=("both",)), "amax: no value 'both'"),
    (lambda: replace(ONE, amax=("sum",), kernels=(PLAIN, OTHER)), "amax: the sums of kernels are of f32, f64"),
    (lambda: mmaprobe.gemm(ONE)(A[0], B), "operand A is of shape (4,); it must be a matrix, or a batch"),
    (lambda: asked(WHOLE, beta=1, bias=np.zeros(2, np.float32)), "input alpha is missing: f32, of shape ()"),
    (lambda: asked(WHOLE, alpha=0.1, beta=1, bias=A[0, :2]), "input alpha is 0.1, which is no f32; hand over one"),
    (lambda: asked(WHOLE, alpha=1, beta=1, bias=A[0]), "input bias is of shape (4,); it must be (2,)"),
    (lambda: asked(ONE, gamma=1), "no input 'gamma'; the schedule takes none"),
    (lambda: asked(NARROW, A, B.T.copy(), layout="NT"), "the layout is NT; the schedule holds for NN, TN"),
    (lambda: asked(NARROW, A, B, layout="nn"), "layout is 'nn'; it must be one of NN, NT, TN, TT"),
    (lambda: asked(NARROW, np.ones((3, 2, 4), np.float32), np.ones((3, 4, 2), np.float32)), "the batch is 3; the sch"),
    (lambda: Promotion(4, "f32", ("x", "y", "z")), "they must be at most 2 names of inputs"),
    (lambda: replace(ONE, kernels=(replace(PLAIN, promotion=Promotion(1, "f32", ("s",))),)), "promotion: no input 's'"),
    (
        lambda: asked(
            replace(
                ONE, inputs=(Input("s", "f32", "a", columns=3),),
                kernels=(replace(PLAIN, promotion=Promotion(4, "f32", ("s",))),),
            ),
            s=np.ones((2, 2), np.float32),
        ),
        "kernel plain: products 0 to 3 are promoted at once, and s has a scale for every 3 of K",
    ),
    (lambda: Scope("x", layouts=("NX",)), "layouts is ['NX']; they must be of NN, NT, TN, TT"),
    (lambda: asked(ONE, out=np.zeros((2, 2), np.int8)), "out is int8 of shape (2, 2); it must be an array of f32"),
    (lambda: asked(ONE, out=np.zeros((3, 2), np.uint32)), "out is of shape (3, 2); D is (2, 2)"),
    (lambda: asked(ONE, out=np.lib.stride_tricks.as_strided(np.zeros(3, np.uint32), (2, 2), (4, 4))), "overlap: two"),
    (lambda: asked(ONE, A, B, out=A.view(np.uint32)[:, :2]), "out overlaps A, which is read while D is written"),
    (lambda: asked(ONE, huge(1 << 30), huge(1 << 30).T), "1,073,741,824 elements of D take 4,294,967,376"),
    (lambda: asked(replace(ONE, epilogue=(node(operation="multiply"),))), "without C nothing of the epilogue is left"),
]  # fmt: skip


def test_a_device_is_handed_no_inputs(tmp_path: Path) -> None:
    path = tmp_path / "whole.toml"
    path.write_text(to_text(WHOLE), encoding="utf-8")
    with pytest.raises(UsageError, match="the schedule takes alpha, beta, bias, which a device is not handed"):
        open_gemm(f"{path}?m=2&n=2&k=4")


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_is_named(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        wrong()
    assert said in str(error.value)
    assert "\n" not in str(error.value)
