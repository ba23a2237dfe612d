"""The kernel of sums that C joins last (Hopper's emulated FP8), and labels of normalised operands: the stages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.engine import MODES, batch
from cases.engine_layout import run_groups, run_tiles, tiles_of
from mmaprobe import _native, formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine, stages
from mmaprobe.models.kernels import FUSED, INTERPRETER, LATE_C, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Fused,
    Node,
    Product,
    Products,
    Special,
    Zero,
)
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import neighbours

BUILDS = _native.engine_builds()
FORM = "mma.sync.aligned.m16n8k{}.row.col.{}"
FORMS = {
    name: instruction(FORM.format(k, name), "sm_90a")
    for k, name in (
        (32, "f32.e4m3.e4m3.f32"), (16, "f32.e4m3.e5m2.f32"), (32, "f32.e5m2.e5m2.f32"),
        (32, "f16.e5m2.e4m3.f16"), (16, "f16.e5m2.e5m2.f16"),
    )
}  # fmt: skip
PATHS = {name: datapath_for("sm_90a", made) for name, made in FORMS.items()}
HEADER = COLUMNS["header"].index


def check(path: Datapath, vectors: Batch, m: int = 16, n: int = 8) -> None:
    """Groups and tiles of the kernel are the stages'; without conversions of binary16 there is none that ends in it."""
    found = run_groups(path, vectors)
    if found is None:
        assert path.d == "f16"
        return
    assert (found == stages.evaluate(path, vectors)).all(), path
    tiles = tiles_of(vectors, m, n)
    expected = evaluate_tiles(lambda part: stages.evaluate(path, part), tiles)
    assert (run_tiles(path, tiles) == expected).all(), path
    assert (engine.evaluate_tiles(path, tiles) == expected).all(), path


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", FORMS)
def test_every_build_and_generator_is_the_stages(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = PATHS[name]
    assert kernel(path) == LATE_C
    for i, family in enumerate(families_for(FORMS[name])):
        check(path, generate(FORMS[name], family, i, 0, 96), 16, 3)
    for mode in MODES:
        check(path, batch(path, mode, 1, 128))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FORMS)
def test_one_changed_field_is_honoured_or_interpreted(name: str) -> None:
    taken = refused = 0
    for _, _, path in neighbours(PATHS[name]):
        if kernel(path) == LATE_C:
            taken += 1
            for mode in MODES:
                check(path, batch(path, mode, 5, 32), n=2)
        else:
            refused += 1
    assert taken
    assert refused


def sums(lanes: list[tuple[int, ...]], bits: int, zero: int | None, to: Encode) -> Node:
    """Fused sums of these lanes, one after the other, from +0."""
    node: Node = Zero()
    for some in lanes:
        node = Fused.alike((node, Products(some)), bits, "RZ", zero, to)
    return node


def random_datapath(rng: np.random.Generator) -> Datapath:
    """A datapath of the family: formats, order, steps, bits, zero exponent, result and labels at random."""
    step, steps = int(rng.choice([1, 2, 4, 8, 16])), int(rng.integers(1, 4))
    k, by = step * steps, 2 if step % 2 == 0 and rng.integers(0, 2) else 1
    places = rng.permutation(k // by)
    order = [int(by * place + i) for place in places for i in range(by)]
    d = str(rng.choice(["f32", "f16"]))
    rounding: Any = rng.choice(["RZ", "RNE"])
    to = Encode(d, rounding, overflow="infinity", zero="positive", underflow=str(rng.choice(["positive", "signed"])))  # type: ignore[arg-type]
    zero = None if rng.integers(0, 4) == 0 else -130 - int(rng.integers(0, 9))
    names = ("e4m3", "e5m2", "e3m2", "e2m1", "e4m3fnuz", "e5m2fnuz", "f16", "bf16")
    a, b = (str(name) for name in rng.choice(names, 2))
    label: Any = rng.choice(["encoded", "operands"])
    in_steps = [tuple(order[i : i + step]) for i in range(0, k, step)]
    tree = Add(sums(in_steps, int(rng.integers(8, 29)), zero, to), Accumulator(), Encode(d))
    code = 0x7FFF if d == "f16" else 0x7FFFFFFF
    return Datapath(a, b, d, d, k, tree, product=Product(label=label), special=Special(code=code))


@pytest.mark.parametrize("build", BUILDS)
def test_random_datapaths(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    rng = np.random.default_rng(7)
    for i in range(60):
        path = random_datapath(rng)
        assert kernel(path) == LATE_C, path
        for mode in ("uniform", MODES[i % len(MODES)]):
            check(path, batch(path, mode, i, 64), 16, 2)


@pytest.mark.parametrize("build", BUILDS)
def test_sums_of_subnormal_operands(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few fraction bits below labels of the operands' leading bits, in the fast way and in exact lanes."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    rng = np.random.default_rng(3)
    to = Encode("f32", "RZ", "infinity", zero="positive", underflow="positive")
    for a, b in (("e4m3", "e5m2"), ("f16", "e4m3"), ("e5m2fnuz", "f16"), ("bf16", "bf16"), ("f16", "bf16")):
        tree = Fused.alike((Accumulator(), Products(tuple(range(4)))), 6, "RZ", None, to)
        special = Special(code=0x7FFFFFFF)
        encoded = Datapath(a, b, "f32", "f32", 8, tree, 4, special=special)
        path = replace(encoded, product=Product(label="operands"))
        assert kernel(path) == FUSED
        vectors = batch(path, "clustered", 2, 640)
        given = ((vectors.a, formats.get(a)), (vectors.b, formats.get(b)))
        tiny = [x & x.dtype.type(fmt.sign_mask | (1 << fmt.fraction_bits) - 1) for x, fmt in given]
        some = [np.where(rng.random(x.shape) < 0.7, x, y) for x, y in zip(tiny, (vectors.a, vectors.b), strict=True)]
        close = replace(vectors, a=some[0], b=some[1], c=np.zeros_like(vectors.c))
        check(path, close)
        differs = (stages.evaluate(path, close) != stages.evaluate(encoded, close)).any()
        assert differs or (a, b) == ("bf16", "bf16")  # whose products of two are below all others


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", ["f32.e4m3.e4m3.f32", "f16.e5m2.e5m2.f16"])
def test_infinite_sums_and_every_special_c(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums beyond the range of f16, zeros of both signs, and C special, tiny or the sum's opposite."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = PATHS[name]
    vectors = batch(path, "clustered", 9, 512)
    assert vectors.c is not None
    wide = path.d == "f32"
    ends = np.array([0, 1, 0x0080, 0x7C00, 0x7BFF, 0x7E00, 0x7D01, 0x8000], np.uint32)
    if wide:
        ends = np.array([0, 1, 0x00800000, 0x7F800000, 0x7F7FFFFF, 0x7FC00000, 0x7F800001, 1 << 31], np.uint32)
    sign = ends.dtype.type(1 << (31 if wide else 15))
    rng = np.random.default_rng(4)
    c = (rng.choice(ends, 512) ^ np.where(rng.random(512) < 0.5, sign, 0)).astype(vectors.c.dtype)
    a, b = vectors.a.copy(), vectors.b.copy()
    a[::3], b[::3] = a[::3] & 0x83 | 0x70, b[::3] & 0x83 | 0x70  # large
    a[1::5] = 0x80
    check(path, replace(vectors, a=a, b=b, c=c))
    alone = stages.evaluate(path, replace(vectors, a=a, b=b, c=np.zeros_like(c)))
    check(path, replace(vectors, a=a, b=b, c=alone ^ alone.dtype.type(sign)))


def changed(**fields: Any) -> Datapath:
    path = PATHS["f32.e4m3.e4m3.f32"]
    assert isinstance(path.tree, Add)
    return replace(path, tree=replace(path.tree, **fields))


TO = Encode("f32", "RZ", "infinity", zero="positive", underflow="positive")
HALVES = [tuple(range(16)), tuple(range(16, 32))]
OTHERS: dict[str, Datapath] = {
    "C rounded down": changed(to=Encode(rounding="RD")),
    "C first": changed(x=Accumulator(), y=sums(HALVES, 25, -133, TO)),
    "a step that is longer": changed(x=sums([tuple(range(20)), tuple(range(20, 32))], 25, -133, TO)),
    "a step that is cut elsewhere": changed(
        x=Fused.alike((sums(HALVES[:1], 24, -133, TO), Products(HALVES[1])), 25, "RZ", -133, TO)
    ),
    "a zero that counts": changed(x=sums(HALVES, 25, -100, TO)),
    "labels of products": replace(PATHS["f32.e4m3.e4m3.f32"], product=Product(label="normalised")),
    "an order of its own": replace(PATHS["f32.e4m3.e4m3.f32"], order=tuple(reversed(range(32)))),
    "another C": replace(PATHS["f32.e4m3.e4m3.f32"], c="f16"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_the_kernel_does_not_do_is_left_to_the_interpreter(name: str) -> None:
    assert kernel(OTHERS[name]) == INTERPRETER


def refused(**words: int) -> None:
    """The program with these words of the header of its sums, or of its own, is refused."""
    made = program(PATHS["f32.e4m3.e4m3.f32"])
    assert made is not None
    made = made.copy()
    inner = int(made[made[HEADER("rules")] + COLUMNS["late_c"].index("sums")])
    for name, value in words.items():
        own = name.removeprefix("own_")
        made[HEADER(own) + (0 if own != name else inner)] = value
    with pytest.raises(ValueError, match="not a program of this engine version"):
        _native.engine_evaluate([made], [None] * 6, np.zeros((1, 0), np.uint32), "")


@pytest.mark.parametrize(
    "words",
    [{"kernel": LATE_C}, {"k": 16}, {"words": 1 << 20}, {"words": -1}, {"version": 5}, {"c": 40}, {"own_c": -1},
     {"own_rules": 1 << 20}, {"own_k": 16}, {"a": -4}, {"d": 1 << 30}],
    ids=str,
)  # fmt: skip
def test_sums_that_are_no_program_for_the_same_operands_are_refused(words: dict[str, int]) -> None:
    refused(**words)


def test_an_order_with_a_lane_too_many_and_operands_of_other_widths_are_refused() -> None:
    made = program(PATHS["f32.e4m3.e4m3.f32"])
    assert made is not None
    order = int(made[made[HEADER("rules")] + COLUMNS["late_c"].index("order")])
    sums_at = int(made[made[HEADER("rules")] + COLUMNS["late_c"].index("sums")])
    inner_a = sums_at + int(made[sums_at + HEADER("a")]) + COLUMNS["operand"].index("bytes")
    for at, value in ((order + 3, 32), (order, -1), (inner_a, 2)):
        words = made.copy()
        words[at] = value
        with pytest.raises(ValueError, match="not a program of this engine version"):
            _native.engine_evaluate([words], [None] * 6, np.zeros((1, 0), np.uint32), "")
