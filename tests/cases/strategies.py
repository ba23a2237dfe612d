"""Random datapaths of every shape that ``docs/datapath.md`` allows, and random vectors for them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mmaprobe import formats
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    OVERFLOWS,
    PART_ROUNDINGS,
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Operand,
    Product,
    Products,
    Scale,
    Special,
    Split,
    Term,
    Zero,
    same_range,
)
from mmaprobe.parameters.described import descriptions
from mmaprobe.parameters.rewrite import map_encodes

OPERANDS = ["f16", "bf16", "tf32", "f32", "e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "e3m2", "e2m3", "e2m1", "f64"]
RESULTS = ["f32", "f32", "f32", "f16", "bf16", "f64"]
NARROWER = {"f32": ["f32", "e8m13", "tf32", "bf16"], "f16": ["f16"], "bf16": ["bf16"], "f64": ["f64", "f32", "f16"]}
INTEGER_OPERANDS = ["s8", "u8", "s16", "u16", "s4", "u4", "b1", "ti16"]
roundings = st.sampled_from(formats.ROUNDINGS)
subnormals = st.sampled_from(["keep", "keep", "zero", "signed_zero"])


def words(record: type) -> dict[str, tuple[str, ...]]:
    """By field of a record the words that it may hold in a float."""
    found = {name: each.choices for name, each in descriptions(record).items() if each.choices}
    return found | ({"overflow": OVERFLOWS} if "overflow" in found else {})


def encodes(names: list[str]) -> st.SearchStrategy[Encode]:
    """Encodes into one of these float formats."""
    first = st.none() | st.tuples(st.integers(1, 60), roundings)
    return st.builds(
        Encode, format=st.sampled_from(names), first=st.none() | first,
        **{name: st.sampled_from(some) for name, some in words(Encode).items()},
    )  # fmt: skip


@st.composite
def shares(draw: st.DrawFn, lanes: list[int], count: int) -> list[tuple[int, ...]]:
    """The lanes, shuffled and dealt into ``count`` piles, some of them empty."""
    lanes = draw(st.permutations(lanes))
    cuts = sorted(draw(st.lists(st.integers(0, len(lanes)), min_size=count - 1, max_size=count - 1)))
    bounds = [0, *cuts, len(lanes)]
    return [tuple(lanes[start:stop]) for start, stop in pairwise(bounds)]


@st.composite
def nodes(draw: st.DrawFn, lanes: tuple[int, ...], to: st.SearchStrategy[Encode], depth: int, root: bool) -> Node:
    """A tree over exactly these lanes; the root (and whatever is an Fma or an Add) has an Encode."""
    leaves: list[Node] = [Products(lanes)] if lanes else [Accumulator(), Zero(), Accumulator()]
    if not root and (depth == 0 or draw(st.booleans())) and not lanes:
        return draw(st.sampled_from(leaves))
    if not root and len(lanes) == 1 and draw(st.booleans()):
        return Products(lanes)
    kind = draw(st.sampled_from(["fma", "add", "fused", "exact"] if lanes else ["add", "fused", "exact"]))
    own = to if root else st.none() | to
    if kind == "fma":
        mine, below = draw(shares(list(lanes), 2))
        if not mine:
            mine, below = below, mine
        return Fma(draw(nodes(below, to, max(depth - 1, 0), False)), mine, draw(to))
    if kind == "add":
        x, y = draw(shares(list(lanes), 2))
        sides = [draw(nodes(side, to, max(depth - 1, 0), False)) for side in (x, y)]
        return Add(sides[0], sides[1], draw(to))
    children = draw(terms(lanes, to, depth))
    if kind == "exact":
        return Exact(children, draw(own))
    shared = Term(Zero(), draw(fraction_bits), draw(roundings), draw(zero_exponents))
    ruled = tuple(draw(ruled_terms(child, shared)) for child in children)
    return Fused(ruled, draw(own), draw(complements), draw(carry_bits), draw(st.sampled_from(["wrap", "saturate"])))


carry_bits = st.none() | st.none() | st.integers(0, 4)
complements = st.sampled_from([False, False, True])
fraction_bits = st.none() | st.integers(3, 40) | st.integers(0, 80)
zero_exponents = st.none() | st.integers(-160, 20) | st.just(-999)


@st.composite
def terms(draw: st.DrawFn, lanes: tuple[int, ...], to: st.SearchStrategy[Encode], depth: int) -> tuple[Node, ...]:
    """Terms that use exactly these lanes, in any order, with c or zero among them now and then."""
    made: list[Node] = []
    count = draw(st.integers(1, 3)) if depth else 1
    for share in draw(shares(list(lanes), count)):
        if share and (depth == 0 or draw(st.booleans())):
            made.append(Products(share))
        elif depth:
            made.append(draw(nodes(share, to, depth - 1, False)))
    if not made or draw(st.booleans()):
        made.append(draw(st.sampled_from([Accumulator(), Accumulator(), Zero()])))
    return tuple(draw(st.permutations(made)))


def ruled_terms(node: Node, shared: Term) -> st.SearchStrategy[Term]:
    """The node as a term, often by the rules that it shares with the others."""
    own = st.builds(
        Term, st.just(node), fraction_bits=st.just(shared.fraction_bits) | st.none() | st.integers(3, 40),
        rounding=st.just(shared.rounding) | roundings,
        zero_exponent=st.just(shared.zero_exponent) | zero_exponents, cutoff=st.none() | st.integers(0, 40),
        label_offset=st.just(0) | st.integers(-40, 40), sticky_bits=st.none() | st.none() | st.integers(0, 6),
        shift_limit=st.none() | st.none() | st.integers(0, 60),
    )  # fmt: skip
    return st.just(replace(shared, of=node)) | own


@st.composite
def specials(draw: st.DrawFn, d: str, k: int, has_c: bool) -> Special:
    """A NaN rule; ``global`` names any operands in any order."""
    fmt = formats.get(d)
    assert fmt.nan_code is not None
    code = draw(st.sampled_from([fmt.nan_code, fmt.nan_code | fmt.sign_mask, fmt.nan_code | 1]))
    rule = draw(st.sampled_from(["canonical", "global", "local", "cause"]))
    priority: tuple[str, ...] = ()
    if rule == "global":
        names = [f"{side}{i}" for i in range(k) for side in "ab"] + ["c"] * has_c
        priority = tuple(draw(st.permutations(names)))[: draw(st.integers(0, len(names)))]
    elif rule == "local":
        priority = tuple(draw(st.permutations(["a", "b", "acc"])))[: draw(st.sampled_from([0, 3, 3]))]
    factor_code = draw(st.sampled_from([Special.factor_code, fmt.nan_code, fmt.nan_code | 2]))
    if fmt.container_bits < 32 and factor_code == Special.factor_code:
        factor_code = fmt.nan_code
    return Special(rule, code, priority, draw(st.booleans()), draw(st.booleans()), factor_code)


@st.composite
def operands(draw: st.DrawFn, name: str) -> Operand:
    fmt = formats.get(name)
    low_bits = draw(st.integers(0, fmt.fraction_bits))
    mask = draw(st.none() | st.none() | st.just((fmt.code_limit - 1) & ~((1 << low_bits) - 1)))
    sign = draw(st.sampled_from(["keep", "keep", "flip", "clear", "set"])) if fmt.has_sign_bit else "keep"
    return Operand(draw(subnormals), mask, sign)


def splits(a: str, b: str) -> st.SearchStrategy[Split | None]:
    """Parts of operands of these formats, where they have formats of their range."""
    ranges = [{fmt for fmt in formats.FORMATS if same_range(formats.get(name), formats.get(fmt))} for name in (a, b)]
    names = sorted(name for name in ranges[0] & ranges[1] if formats.get(name).nan == "ieee")
    if not names:
        return st.none()
    others = st.lists(st.sampled_from([f"{i}{j}" for i in range(3) for j in range(3) if i or j]), unique=True)
    pairs = others.flatmap(lambda some: st.permutations(["00", *some])).map(tuple)
    some = st.builds(
        Split, st.sampled_from(names), pairs, st.sampled_from(PART_ROUNDINGS), st.sampled_from(["together", "apart"]),
        st.sampled_from(["whole", "parts"]),
    )  # fmt: skip
    return st.none() | some


@st.composite
def with_random_bits(draw: st.DrawFn, path: Datapath) -> Datapath:
    """The datapath as it is, or with random bits that some of its roundings take."""
    name = draw(st.sampled_from([None, None, "u8", "u16", "u32"]))
    if name is None:
        return path
    most = formats.get(name).bits
    bits = st.sampled_from([0, 1, most]) | st.integers(0, most)
    return map_encodes(replace(path, random=name), lambda to: replace(to, random_bits=draw(bits)))


@st.composite
def datapaths(draw: st.DrawFn) -> Datapath:
    """Any datapath on floats: chains, sums, fused and exact nodes nested up to three deep, steps, orders, NaN rules,
    random bits."""
    a = draw(st.sampled_from(OPERANDS))
    b = draw(st.just(a) | st.sampled_from(OPERANDS))
    d = draw(st.sampled_from(RESULTS))
    inner = NARROWER[d]
    c = draw(st.none() | st.just(d) | st.just(d))
    size, count = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    tree = draw(nodes(tuple(range(size)), encodes(inner), draw(st.integers(0, 2)), True))
    k = size * count
    order = draw(st.none() | st.none() | st.permutations(range(k)))
    product = Product(
        draw(st.none() | st.none() | encodes(["f32", "f16", "e8m13"])),
        draw(st.sampled_from(["encoded", "encoded", "operands", "normalised"])),
        draw(st.none() | st.none() | st.sampled_from([128, 16, 4])),
        missing_columns=draw(st.just(0) | st.just(0) | st.integers(1, 60)),
        split=draw(splits(a, b)),
    )
    path = Datapath(
        a, b, c, d, k, tree, size, None if order is None else tuple(order), draw(operands(a)), draw(operands(b)),
        draw(operands(c)) if c else Operand(), product, None,
        draw(st.none() | encodes([d])), draw(specials(d, k, c is not None)),
    )  # fmt: skip
    return draw(with_random_bits(path))


@st.composite
def scaled_datapaths(draw: st.DrawFn) -> Datapath:
    """Block-scaled datapaths: each product scaled, or the exact sum of a block (as mxf4nvf4)."""
    a = draw(st.sampled_from(["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]))
    blocks, size = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    where = draw(st.sampled_from(["product", "group"]))
    scale = Scale(draw(st.sampled_from(["ue8m0", "ue4m3", "ue5m3"])), size, where)
    groups = [tuple(range(i * size, (i + 1) * size)) for i in range(blocks)]
    group = where == "group"
    parts: list[Node] = [Exact((Products(lanes),), scaled=True) if group else Products(lanes) for lanes in groups]
    to = draw(encodes(["f32"]))
    tree = Fused.alike((*parts, Accumulator()), draw(fraction_bits), draw(roundings), draw(zero_exponents), to)
    label = draw(st.sampled_from(["encoded", "operands", "normalised"]))
    k = size * blocks
    return Datapath(
        a, a, "f32", "f32", k, tree, product=Product(label=label), scale=scale,
        special=draw(specials("f32", k, True)),
    )  # fmt: skip


@st.composite
def integer_datapaths(draw: st.DrawFn) -> Datapath:
    """Exact integer sums that wrap or saturate, per step or at the end; b1 with and, xor."""
    a = draw(st.sampled_from(INTEGER_OPERANDS))
    b = draw(st.just(a) | st.sampled_from([name for name in INTEGER_OPERANDS if (name == "b1") == (a == "b1")]))
    d = draw(st.sampled_from(["s32", "s32", "s16"]))
    to = Encode(format=d, overflow=draw(st.sampled_from(["wrap", "largest"])))
    size, count = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    c = draw(st.none() | st.just(d))
    leaves: list[Node] = [Products(tuple(range(size))), Accumulator()]
    multiply = draw(st.sampled_from(["and", "xor"])) if a == b == "b1" else "exact"
    return Datapath(a, b, c, d, size * count, Exact(tuple(leaves), to), size, product=Product(multiply=multiply))


def any_datapath() -> st.SearchStrategy[Datapath]:
    """Floats four times out of six."""
    return st.one_of(datapaths(), datapaths(), datapaths(), datapaths(), scaled_datapaths(), integer_datapaths())


# --- vectors


def codes(rng: np.random.Generator, fmt: formats.Format, shape: tuple[int, ...], centre: int) -> np.ndarray:
    """Codes of one format: uniform bits, clustered exponents, specials, subnormals and zeros, mixed."""
    limit = fmt.code_limit
    uniform = rng.integers(0, limit, shape, dtype=np.uint64, endpoint=False)
    if not fmt.is_float:
        edges = np.array([0, 1, fmt.largest, fmt.sign_mask, limit - 1], np.uint64)
        return np.where(rng.random(shape) < 0.3, rng.choice(edges, shape), uniform).astype(fmt.dtype)
    low = fmt.fraction_bits + fmt.padding
    sign = np.where(rng.random(shape) < 0.5, np.uint64(fmt.sign_mask), np.uint64(0))
    field = np.clip(centre + fmt.bias + rng.integers(-3, 4, shape), 0, (1 << fmt.exponent_bits) - 1).astype(np.uint64)
    fraction = rng.integers(0, 1 << low, shape, dtype=np.uint64)
    short = np.where(rng.random(shape) < 0.4, fraction & ~np.uint64((1 << max(low - 2, 0)) - 1), fraction)
    clustered = sign | field << np.uint64(low) | short
    named = [0, 1, fmt.largest, fmt.one, fmt.infinity_code or 0, fmt.nan_code or 0, 1 << low]
    named += [((fmt.infinity_code or 0) | 1 << fmt.padding)]  # a signalling NaN
    special = sign | rng.choice(np.array(named, np.uint64), shape)
    subnormal = sign | fraction
    kind = rng.random(shape)
    chosen = np.select(
        [kind < 0.6, kind < 0.75, kind < 0.82, kind < 0.9], [clustered, uniform, subnormal, sign], special
    )
    return (chosen & np.uint64(limit - 1)).astype(fmt.dtype)


def vectors(datapath: Datapath, seed: int, count: int) -> Batch:
    """``count`` vectors for a datapath, reproducible from the seed; exponents cluster near each other and near C."""
    rng = np.random.default_rng(seed)
    a, b = formats.get(datapath.a), formats.get(datapath.b)
    centre_a, centre_b = centres(datapath, rng)
    made: dict[str, Any] = {
        "a": codes(rng, a, (count, datapath.k), centre_a), "b": codes(rng, b, (count, datapath.k), centre_b)
    }  # fmt: skip
    tame = rng.random((count, 1)) < 0.5  # half of the vectors without infinities and NaNs
    if rng.random() < 0.3:  # NaNs quiet and signalling among all operands
        for name, fmt in (("a", a), ("b", b)):
            made[name] = np.where(rng.random(made[name].shape) < 0.4, nans(rng, fmt, made[name].shape), made[name])
    for name, fmt in (("a", a), ("b", b)):
        made[name] = np.where(tame & ~finite(fmt, made[name]), fmt.dtype.type(fmt.one), made[name])
    if datapath.k > 1:  # cancellation: a pair of lanes with equal products of opposite sign
        rows = np.flatnonzero(rng.random(count) < 0.3)
        i, j = rng.permutation(datapath.k)[:2]
        made["a"][rows, j] = made["a"][rows, i] ^ a.dtype.type(a.sign_mask if a.is_float else 0)
        made["b"][rows, j] = made["b"][rows, i]
    if datapath.c is not None:
        c = formats.get(datapath.c)
        made["c"] = addends(rng, c, count, centre_a + centre_b)
        made["c"] = np.where(tame[:, 0] & ~finite(c, made["c"]), c.dtype.type(0), made["c"])
    if datapath.scale is not None:
        fmt = formats.get(datapath.scale.format)
        for name in ("scale_a", "scale_b"):
            made[name] = codes(rng, fmt, (count, datapath.k // datapath.scale.size), int(rng.integers(-6, 7)))
    if datapath.random is not None:
        fmt = formats.get(datapath.random)
        drawn = rng.integers(0, fmt.code_limit, count)
        made["random"] = np.where(rng.random(count) < 0.2, fmt.code_limit - 1, drawn).astype(fmt.dtype)
    return Batch(**made)


def addends(rng: np.random.Generator, fmt: formats.Format, count: int, centre: int) -> np.ndarray:
    """C near the products; half of the time a third of them next to the lowest normal, where flushes decide."""
    made = codes(rng, fmt, (count,), centre + int(rng.integers(-8, 9)))
    if not fmt.is_float or rng.random() < 0.5:
        return made
    near = (1 << (fmt.fraction_bits + fmt.padding)) + rng.integers(-2, 3, count).astype(np.int64)
    signs = np.where(rng.random(count) < 0.5, np.uint64(fmt.sign_mask), np.uint64(0))
    return np.where(rng.random(count) < 0.3, near.astype(np.uint64) | signs, made).astype(fmt.dtype)


def nans(rng: np.random.Generator, fmt: formats.Format, shape: tuple[int, ...]) -> np.ndarray:
    """NaNs of the format with any sign and payload, half of the IEEE ones signalling; ones where it has none."""
    if not fmt.is_float or fmt.nan_code is None:
        return np.full(shape, fmt.one, fmt.dtype)
    code = np.full(shape, fmt.nan_code, np.uint64)
    if fmt.infinity_code is not None:
        payload = rng.integers(1, 1 << fmt.fraction_bits, shape, dtype=np.uint64) << np.uint64(fmt.padding)
        code = np.uint64(fmt.infinity_code) | payload
    return (code | np.where(rng.random(shape) < 0.5, np.uint64(fmt.sign_mask), np.uint64(0))).astype(fmt.dtype)


def centres(datapath: Datapath, rng: np.random.Generator) -> tuple[int, int]:
    """Exponents around which a and b cluster; often so that products lie at an end of d's range."""
    a, b, d = (formats.get(name) for name in (datapath.a, datapath.b, datapath.d))
    if not (a.is_float and b.is_float and d.is_float):
        return 0, 0
    centre_a = int(rng.integers(a.min_exponent - 2, a.max_exponent + 1))
    free = int(rng.integers(b.min_exponent - 2, b.max_exponent + 1))
    ends = [d.min_exponent, d.min_exponent - d.fraction_bits, d.min_exponent - d.fraction_bits, d.max_exponent]
    target = int(rng.choice([*ends, centre_a + free])) + int(rng.integers(-3, 4))
    return centre_a, int(np.clip(target - centre_a, b.min_exponent - 2, b.max_exponent))


def finite(fmt: formats.Format, bits: np.ndarray) -> np.ndarray:
    return formats.decode(fmt, bits).kind < formats.INFINITE
