"""The kernel of trees of rounded operations (DPPS, DPPD, VFMADD231PH, AMX) is the stages in every control state."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.engine import MODES, batch
from cases.engine_layout import run_groups, run_interpreter, run_tiles, tiles_of
from mmaprobe import _native, formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators import families_for, generate
from mmaprobe.models import stages
from mmaprobe.models.kernels import CHAIN, INTERPRETER, TREE, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import ADD, COLUMNS, FMA, LOAD_C, PRODUCT, STORE
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Fma,
    Node,
    Operand,
    Product,
    Products,
    Special,
    Zero,
)
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import neighbours

BUILDS = _native.engine_builds()
NAN_CODE = {"f16": 0xFE00, "f32": 0xFFC00000, "f64": 0xFFF8 << 48}
FACTORS = {"f16": ["f16"], "f32": ["f32", "f16", "bf16"], "f64": ["f64"]}
ROUNDINGS = ("RNE", "RZ", "RD", "RU")


def of(form: str, architecture: str = "x86-64+intel") -> Datapath:
    return datapath_for(architecture, instruction(form, architecture))


def states(unit: str, flushes: bool = True) -> list[str]:
    """The ids of a unit in each of its control states."""
    found = []
    for flush in ("", "daz,", "ftz,", "daz,ftz,") if flushes else ("",):
        for rounding in ("", "rounding=rd,", "rounding=ru,", "rounding=rz,"):
            said = (flush + rounding).rstrip(",")
            found.append(f"{unit}{{{said}}}" if said else unit)
    return found


CHAINED = [f"x86.vfmadd.{name}" for name in ("f32", "f64")]
STATES = {
    name: of(name)
    for name in [
        *(name for unit in ("x86.dpps", "x86.dppd", *CHAINED) for name in states(unit)),
        *states("x86.vfmadd.f16", False),
    ]
}
OTHERS = {
    "DPPS of AMD": of("x86.dpps", "x86-64+amd"), "AMX bf16": of("x86.tdpbf16ps"), "AMX f16": of("x86.tdpfp16ps"),
    "FMMLA": of("arm.fmmla", "aarch64"), "FMOPS": of("arm.fmopa.f64{neg_a}", "aarch64"),
}  # fmt: skip


def specials(name: str, rng: np.random.Generator, codes: Bits) -> Bits:
    """The codes, some of them infinities, NaNs of both kinds, zeros, subnormals and the ends of the range."""
    fmt = formats.get(name)
    infinity = fmt.infinity_code or 0
    least = 1 << fmt.fraction_bits
    plain = [0, 1, least - 1, least, infinity - 1, infinity, infinity + 1, infinity | fmt.quiet_bit, infinity + 3]
    both = np.array([code | sign for code in plain for sign in (0, fmt.sign_mask)], fmt.dtype)
    return np.where(rng.random(codes.shape) < 1 / 6, rng.choice(both, codes.shape), codes)


def drawn(path: Datapath, mode: str, seed: int, count: int) -> Batch:
    """Vectors of a mode; of `special` with many of those."""
    vectors = batch(path, "uniform" if mode == "special" else mode, seed, count)
    if mode != "special":
        return vectors
    rng = np.random.default_rng(seed)
    c = None if vectors.c is None or path.c is None else specials(path.c, rng, vectors.c)
    return replace(vectors, a=specials(path.a, rng, vectors.a), b=specials(path.b, rng, vectors.b), c=c)


def needs_what_a_build_lacks(path: Datapath) -> bool:
    """The baseline build has no fused multiply-add, which of binary16 it does not need."""
    return os.environ.get("MMAPROBE_ISA") == "baseline" and path.product.to is None and path.d != "f16"


def check(path: Datapath, mode: str, seed: int, count: int = 256, m: int = 16, n: int = 8) -> None:
    """Groups and tiles of the kernel are the stages'."""
    assert kernel(path) == TREE
    vectors = drawn(path, mode, seed, max(count, m * n))
    found = run_groups(path, vectors)
    if found is None:
        assert needs_what_a_build_lacks(path)
        return
    expected = stages.evaluate(path, vectors)
    assert (found == expected).all(), f"groups, {mode}, {path}"
    assert (run_interpreter(path, vectors) == expected).all(), f"interpreter, {mode}, {path}"
    tiles = tiles_of(vectors, m, n)
    computed = run_tiles(path, tiles)
    assert computed is not None
    assert (computed == evaluate_tiles(lambda some: stages.evaluate(path, some), tiles)).all(), f"tiles, {mode}, {path}"


def test_every_control_state_has_a_kernel() -> None:
    chains = {name for unit in CHAINED for name in states(unit, False)}
    assert {name for name, path in STATES.items() if kernel(path) == TREE} == set(STATES) - chains
    assert {kernel(STATES[name]) for name in chains} == {CHAIN}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", [*STATES, *OTHERS])
def test_every_state_of_a_unit_is_the_stages(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = (STATES | OTHERS)[name]
    if kernel(path) == TREE:
        for mode in (*MODES, "special"):
            check(path, mode, seed=1)


def encode(rng: np.random.Generator, d: str, rounding: str, flush: str) -> Encode:
    """How a result is rounded; `some`: of a few a subnormal one is a zero."""
    drops = flush == "some" and rng.random() < 1 / 2
    tininess = "encoded" if drops else "after" if flush == "all" else str(rng.choice(["before", "after", "encoded"]))
    subnormals: Any = "signed_zero" if drops or flush == "all" else "keep"
    return Encode(d, rounding, subnormals=subnormals, tininess=tininess)  # type: ignore[arg-type]


def random_tree(seed: int) -> Datapath:
    """A datapath that the kernel takes: any tree of its nodes over any formats."""
    rng = np.random.default_rng(seed)
    d = ("f32", "f64", "f16", "f32")[seed % 4]
    flush = "none" if d == "f16" else ("none", "all", "some")[seed % 3]
    rounding, length, fuses = ROUNDINGS[seed // 2 % 4], int(rng.choice([1, 2, 3, 4, 8])), seed // 4 % 2 == 0
    products = Product(None if fuses else encode(rng, d, rounding, flush))

    def joined(nodes: list[Node]) -> Node:
        if len(nodes) == 1:
            return nodes[0]
        cut = int(rng.integers(1, len(nodes)))
        return Add(joined(nodes[:cut]), joined(nodes[cut:]), encode(rng, d, rounding, flush))

    def chains(lanes: list[int]) -> list[Node]:
        cut = int(rng.integers(1, len(lanes) + 1))
        start: Node = Zero() if rng.random() < 1 / 2 else Accumulator()
        rest = chains(lanes[cut:]) if lanes[cut:] else []
        if rest and rng.random() < 1 / 2:
            start = rest.pop()
        return [*rest, Fma(start, tuple(lanes[:cut]), encode(rng, d, rounding, flush))]

    lanes = [int(lane) for lane in rng.permutation(length)]
    leaves = chains(lanes) if fuses else [Products((lane,)) for lane in lanes]
    some: list[Node] = [] if fuses and rng.random() < 1 / 2 else [Accumulator()]
    places = rng.permutation(len(leaves) + len(some))
    tree = joined([[*leaves, *some][place] for place in places])
    k = length * int(rng.integers(1, 4))
    names = [str(name) for name in rng.permutation(["a", "b", "acc"])]
    special = Special(
        ("canonical", "local")[seed // 3 % 2], NAN_CODE[d], tuple(names), signalling_first=bool(rng.random() < 1 / 2)
    )
    flushes: list[Any] = [str(rng.choice(["keep", "zero", "signed_zero"])) for _ in "abc"]
    signs: list[Any] = [str(rng.choice(["keep", "flip", "clear"])) for _ in "abc"]
    operands: dict[str, Any] = {
        f"operand_{name}": Operand(kept, sign=sign)
        for name, kept, sign in zip("abc", flushes, signs, strict=True)
        if name != "c" or seed % 5
    }
    a, b = (str(rng.choice(FACTORS[d])) for _ in range(2))
    return Datapath(a, b, d if seed % 5 else None, d, k, tree, length, product=products, special=special, **operands)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("build", BUILDS)
def test_random_trees_are_the_stages(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    taken = 0
    for seed in range(96):
        path = random_tree(seed)
        if kernel(path) == TREE:
            taken += 1
            for mode in ("special", MODES[seed % len(MODES)]):
                check(path, mode, seed, 48, 8, 3)
    assert taken > 80


@pytest.mark.parametrize("name", ["x86.dpps", "x86.dpps{daz}", "x86.dppd{ftz}", "x86.vfmadd.f16", "FMMLA"])
def test_one_changed_field_is_honoured_or_interpreted(name: str) -> None:
    taken = refused = 0
    for _, _, path in neighbours((STATES | OTHERS)[name]):
        if kernel(path) == TREE:
            taken += 1
            for mode in ("special", "low"):
                check(path, mode, 5, 64, 16, 2)
        else:
            refused += 1
    assert taken
    assert refused


@pytest.mark.parametrize("name", ["x86.dpps", "x86.dppd", "x86.vfmadd.f16", "x86.vfmadd.f32{daz,ftz}"])
def test_every_family_of_a_unit_is_the_stages(name: str) -> None:
    for family in families_for(instruction(name)):
        vectors = generate(instruction(name), family, 3, 11, 333)
        assert (run_groups(STATES[name], vectors) == stages.evaluate(STATES[name], vectors)).all(), family


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_sums_of_binary16_at_every_edge(rounding: str) -> None:
    """One product and C a unit of either's last place around ties, the ends of the range and of subnormals."""
    path = of("x86.vfmadd.f16" + ("" if rounding == "RNE" else f"{{rounding={rounding.lower()}}}"))
    rng = np.random.default_rng(6)
    count = 30_000
    a, b = rng.integers(0, 0x7C00, (2, count, 1), np.uint16)
    c = rng.integers(0, 0x7C00, count, np.uint16)
    exact = a.view(np.float16).astype(float) * b.view(np.float16).astype(float)
    for i, factor in enumerate((1.0, 0.5, 2.0, 2.0**-11, 2.0**11, 2.0**-12)):
        near = np.minimum(exact[i::7, 0] * factor, 65504).astype(np.float16).view(np.uint16)
        c[i::7] = np.minimum(near + rng.integers(0, 3, near.size, np.uint16), 0x7BFF)
    signs = rng.integers(0, 2, (2, count), np.uint16) << np.uint16(15)
    vectors = Batch(a | signs[0][:, None], b, c | signs[1])
    expected = stages.evaluate(path, vectors)
    assert ((expected & 0x7FFF) > 0x7BFE).any()
    assert ((expected & 0x7FFF) < 0x400).any()
    assert (run_groups(path, vectors) == expected).all()


BEFORE = Encode(subnormals="signed_zero", tininess="before")
DPPS, HALF = STATES["x86.dpps"], STATES["x86.vfmadd.f16"]


def with_tree(path: Datapath, **change: Any) -> Datapath:
    return replace(path, tree=replace(path.tree, **change))


def deep(size: int) -> Node:
    """Sums each of which waits for all that follow."""
    node: Node = Products((size - 1,))
    for lane in reversed(range(size - 1)):
        node = Add(Products((lane,)), node, Encode())
    return node


UNLIKE: dict[str, Datapath] = {
    "rounds one sum otherwise": with_tree(DPPS, to=Encode(rounding="RZ")),
    "rounds ties otherwise": with_tree(HALF, to=Encode("f16", "RNA")),
    "flushes one sum after rounding": with_tree(DPPS, to=Encode(subnormals="signed_zero")),
    "flushes before rounding": with_tree(STATES["x86.vfmadd.f32{ftz}"], to=BEFORE),
    "flushes binary16": with_tree(HALF, to=Encode("f16", subnormals="signed_zero", tininess="encoded")),
    "saturates": with_tree(HALF, to=Encode("f16", overflow="largest")),
    "exact products": replace(DPPS, product=Product()),
    "fused sums of rounded products": replace(HALF, product=Product(Encode("f16"))),
    "NaNs not quieted": replace(DPPS, special=replace(DPPS.special, quiet=False)),
    "a code that signals": replace(DPPS, special=replace(DPPS.special, code=0xFF800001)),
    "one NaN for all": replace(DPPS, special=replace(DPPS.special, nan="global", priority=())),
    "C of another format": replace(HALF, c="f32"),
    "binary32 products of binary64 sums": replace(STATES["x86.dppd"], a="f32"),
    "more values than wait": replace(DPPS, k=10, tree=deep(10)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLIKE)
def test_what_the_kernel_does_not_do_is_left_to_the_interpreter(name: str) -> None:
    assert kernel(UNLIKE[name]) == INTERPRETER


def test_as_many_values_as_wait() -> None:
    check(replace(DPPS, k=8, tree=deep(8)), "special", 3)


TREE_ROW = COLUMNS["tree"].index
HOSTILE: dict[str, list[int]] = {
    "a sum of one value": [LOAD_C, ADD, LOAD_C, STORE], "nothing kept": [STORE], "nothing to add to": [FMA, STORE],
    "a lane too many": [PRODUCT + 32 * 4, STORE], "a step of two values": [LOAD_C, PRODUCT, STORE],
    "a value left": [LOAD_C, STORE, LOAD_C], "too many values": [*[LOAD_C] * 9, *[ADD] * 8, STORE],
    "no operation": [9, STORE], "a word below zero": [LOAD_C, -32, ADD, STORE],
}  # fmt: skip


def refused(words: Any) -> None:
    with pytest.raises(ValueError, match="not a program of this engine version"):
        _native.engine_evaluate([words], [None] * 6, np.zeros((1, 0), np.uint32), "")


@pytest.mark.parametrize("name", HOSTILE)
def test_operations_that_leave_their_stack_are_refused(name: str) -> None:
    found = program(DPPS)
    assert found is not None
    words = np.append(found, np.array(HOSTILE[name], np.int64))
    words[COLUMNS["header"].index("words")] = words.size
    rules = words[COLUMNS["header"].index("rules")]
    words[rules + TREE_ROW("operations")], words[rules + TREE_ROW("count")] = found.size, len(HOSTILE[name])
    refused(words)


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        ("rules", "rounding", 4), ("rules", "count", 1 << 40), ("rules", "operations", -1), ("a", "bytes", 8),
        ("b", "bytes", 1), ("header", "fma_order", 0), ("header", "k", 128),
    ],
)  # fmt: skip
def test_a_program_of_this_kernel_with_another_row_is_refused(row: str, column: str, value: int) -> None:
    found = program(DPPS)
    assert found is not None
    words = found.copy()
    start = 0 if row == "header" else words[COLUMNS["header"].index(row)]
    words[start + COLUMNS[{"rules": "tree", "header": "header"}.get(row, "operand")].index(column)] = value
    refused(words)
