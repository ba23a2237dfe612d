"""Generators: known answers of Philox, purity, what the families really hit, native against reference, recipes."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mmaprobe import _native, formats
from mmaprobe.catalog import lookup
from mmaprobe.catalog.batch import Batch
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.generators import FAMILIES, MIX, Recipe, families_for, generate, generate_tiles, plan, regenerate
from mmaprobe.generators.families import KEPT, native_batch, reference_batch, stream_number
from mmaprobe.generators.operands import bit_length, normalised_product
from mmaprobe.generators.philox import philox
from mmaprobe.generators.space import target


def make(a: str, b: str, c: str | None, d: str, k: int, chunk: int = 0, scale: str | None = None, size: int = 0):
    name = f"test.{k}.{a}.{b}.{c}.{d}" + (f".sparse{chunk}" if chunk else "") + (f".{scale}.{size}" if scale else "")
    return Instruction(name, name, "test", 1, 1, k, a, b, c, d, chunk=chunk, scale=scale, scale_size=size)


F16 = make("f16", "f16", "f32", "f32", 16)
FMA = make("f32", "f32", "f32", "f32", 1)
FLOATS = [
    F16, FMA,
    make("f16", "f16", "f16", "f16", 16),
    make("bf16", "bf16", "f32", "f32", 2),
    make("bf16", "bf16", "f32", "f32", 32),
    make("f64", "f64", "f64", "f64", 1),
    make("f16", "f16", "f16", "f16", 1),
    make("f32", "f32", None, "f32", 4),
    make("f64", "f64", None, "f64", 2),
    make("e4m3", "e4m3", "f32", "f32", 32),
    make("e5m2", "e4m3", "f16", "f16", 32),
    make("e3m2", "e2m3", "f16", "f16", 32),
    make("e2m1", "e2m1", "f32", "f32", 64, scale="ue4m3", size=16),
    make("e2m1", "e2m1", "f32", "f32", 64, scale="ue8m0", size=32),
    make("e4m3", "e5m2", "f32", "f32", 32, scale="ue8m0", size=32),
    make("e4m3fnuz", "e5m2fnuz", "f32", "f32", 16),
    make("e2m1", "e2m1", "f32", "f32", 32),
    make("tf32", "tf32", "f32", "f32", 8),
    make("bf16", "bf16", "bf16", "bf16", 3),
]  # fmt: skip
SPARSE = [
    make("e4m3", "e5m2", "f16", "f16", 64, chunk=4),
    make("tf32", "tf32", "f32", "f32", 8, chunk=2),
    make("e2m1", "e2m1", "f32", "f32", 128, chunk=8, scale="ue8m0", size=32),
    make("s8", "u8", "s32", "s32", 32, chunk=4),
]
INTEGERS = [
    make("u8", "s8", "s32", "s32", 4),
    make("s16", "s16", "s32", "s32", 2),
    make("u8", "s8", None, "s16", 2),
    make("s4", "u4", "s32", "s32", 64),
    make("b1", "b1", "s32", "s32", 256),
]
ALL = FLOATS + SPARSE + INTEGERS
by_id = {"ids": lambda instruction: instruction.id}

KNOWN_ANSWERS = [  # Random123 kat_vectors, philox4x32 10
    ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def same(x: Batch, y: Batch) -> bool:
    left, right = dict(x.items()), dict(y.items())
    return left.keys() == right.keys() and all(
        value.dtype == right[name].dtype and np.array_equal(value, right[name]) for name, value in left.items()
    )


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_known_answers(counter, key, answer):
    words = philox(tuple(counter), tuple(key))
    assert " ".join(f"{int(word):08x}" for word in words) == answer


@pytest.mark.parametrize("instruction", ALL, **by_id)
def test_shapes_codes_and_purity(instruction):
    shapes = instruction.shapes(9)
    operand_formats = instruction.formats()
    for family in families_for(instruction):
        batch = generate(instruction, family, 5, 100, 9)
        for name, value in batch.items():
            assert value.size == np.prod(shapes[name])
            if name != "metadata":
                assert value.dtype == operand_formats[name].dtype
                assert int(value.max()) < operand_formats[name].code_limit
        assert batch.size == 9
        assert same(generate(instruction, family, 5, 103, 2), batch.slice(3, 5))
        assert not same(generate(instruction, family, 6, 100, 9), batch)
        assert generate(instruction, family, 5, 0, 0).size == 0


@pytest.mark.parametrize("instruction", SPARSE, **by_id)
def test_metadata_is_legal(instruction):
    legal = {4, 14} if instruction.chunk == 2 else {4, 8, 9, 12, 13, 14}
    for family in families_for(instruction):
        assert set(np.unique(generate(instruction, family, 3, 0, 500).metadata)) == legal


@pytest.mark.parametrize("build", _native.generator_builds())
@pytest.mark.parametrize("instruction", ALL, **by_id)
def test_native_equals_reference(instruction, build):
    random = np.random.default_rng(len(instruction.id))
    for family in families_for(instruction):
        for count in (1, 97):
            seed, start = (int(x) for x in random.integers(0, 2**63, 2, dtype=np.uint64))
            expected = reference_batch(instruction, family, seed, start, count)
            got = native_batch(instruction, family, seed, start, count, build)
            for name, codes in expected.items():
                assert np.array_equal(dict(got.items())[name], codes), (family, name)
            assert same(expected, got)


@pytest.mark.parametrize("build", _native.generator_builds())
@pytest.mark.parametrize("instruction", ALL, **by_id)
def test_earlier_versions_stay(instruction, build):
    for family in set(KEPT) & set(families_for(instruction)):
        for version in KEPT[family]:
            expected = reference_batch(instruction, family, 5, 1000, 97, version)
            assert same(expected, native_batch(instruction, family, 5, 1000, 97, build, version))
            assert not same(expected, native_batch(instruction, family, 5, 1000, 97, build))


def laid_out(instruction, batch, m, n):
    """Operands in the engine layout (csrc/cpu/tiles.hpp): ``batch`` holds whole tiles, or with n = 0 vectors."""
    out = {}
    for name, value in batch.items():
        if name == "metadata":
            continue
        if n == 0:
            value = value.reshape(len(value), -1)
            padded = np.zeros((-(-len(value) // 16) * 16, value.shape[1]), value.dtype)
            padded[: len(value)] = value
            out[name] = padded.reshape(-1, 16, value.shape[1]).swapaxes(1, 2)
        elif name in ("b", "scale_b"):
            out[name] = value.swapaxes(1, 2)
        else:
            padded = np.zeros((len(value), -(-m // 16) * 16, value.shape[2]), value.dtype)
            padded[:, :m] = value
            out[name] = padded.reshape(len(value), -1, 16, value.shape[2]).swapaxes(2, 3)
    return out


def made_layout(instruction, family, seed, start, count, m, n, build, shapes):
    outputs = [
        np.zeros(shapes[name].shape, shapes[name].dtype) if name in shapes else None
        for name in ("a", "b", "c", "scale_a", "scale_b")
    ]
    packed, number = target(instruction).packed(), FAMILIES.index(family)
    _native.generate_layout(packed, number, stream_number(family), seed, start, count, m, n, outputs, build)
    return dict(zip(("a", "b", "c", "scale_a", "scale_b"), outputs, strict=True))


@pytest.mark.parametrize("instruction", ALL, **by_id)
def test_engine_layout_holds_the_same_vectors(instruction):
    """``generate_layout`` makes the tiles of ``generate_tiles`` and the vectors of ``generate``."""
    shapes = [(16, 8), (8, 8), (64, 24), (8, 32), (24, 4), (1, 0)]
    for family, (m, n) in itertools.product(families_for(instruction), shapes):
        shaped = replace(instruction, m=m, n=max(n, 1))
        count = 37 if n == 0 else 2
        batch = (generate if n == 0 else generate_tiles)(shaped, family, 9, 2**32 - 40, count)
        expected = laid_out(shaped, batch, m, n)
        for build in _native.generator_builds():
            got = made_layout(instruction, family, 9, 2**32 - 40, count, m, n, build, expected)
            for name, value in expected.items():
                keep = np.True_
                if n == 0:
                    keep = (np.arange(16 * len(value)) < count).reshape(len(value), 1, 16)
                elif name not in ("b", "scale_b"):
                    keep = (np.arange(16 * value.shape[1]) < m).reshape(1, -1, 1, 16)
                assert np.array_equal(np.where(keep, got[name], 0), np.where(keep, value, 0)), (family, name, build)


def test_native_carries_into_the_upper_index_word():
    start = 2**32 - 20
    assert same(native_batch(F16, "tie", 3, start, 40), reference_batch(F16, "tie", 3, start, 40))


def values(name, codes):
    """Exact values as Fractions (None: infinite or NaN), and the decoded kinds."""
    decoded = formats.decode(formats.get(name), codes)
    parts = (decoded.kind, decoded.negative, decoded.exponent, decoded.significand)

    def exact(kind, negative, exponent, significand):
        if kind in (formats.INFINITE, formats.NAN):
            return None
        size = Fraction(int(significand)) * Fraction(2) ** int(exponent)
        return -size if negative else size

    return np.frompyfunc(exact, 4, 1)(*parts), decoded.kind


def exponent_of(value):
    guess = abs(value).numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= abs(value) else guess - 1


def outcome(terms, d):
    """What the exact sum of a vector's terms is to the result format."""
    total, largest = sum(terms), max(map(abs, terms))
    if not largest:
        return ["all_zero"]
    if not total:
        return ["zero"]
    place = Fraction(2) ** (max(exponent_of(total), d.min_exponent) - d.fraction_bits)
    rest = abs(total) / place % 1
    found = ["inexact"] if rest else []
    found += ["cancelled"] if abs(total) * 256 <= largest else []
    found += ["subnormal" if exponent_of(total) < d.min_exponent else "normal"]
    found += ["overflow"] if exponent_of(total) > d.max_exponent else []
    found += ["tie"] if rest == Fraction(1, 2) else []
    found += ["near_tie"] if 0 < abs(rest - Fraction(1, 2)) < Fraction(1, 16) else []
    return found


def classify(instruction, family, count):
    """Share of vectors by what they are; subnormal operands as subnormal_a, _b, _c."""
    batch = generate(instruction, family, 11, 0, count)
    operands = {name: values(getattr(instruction, name), codes) for name, codes in batch.items() if name in "abc"}
    scale = [np.ones((count, 1), object)] * 2
    if instruction.scale:
        pair = (values(instruction.scale, codes)[0] for codes in (batch.scale_a, batch.scale_b))
        scale = [np.repeat(value, instruction.scale_size, axis=1) for value in pair]
    tally: Counter[str] = Counter()
    for row in range(count):
        tally.update(f"subnormal_{name}" for name, (_, kind) in operands.items() if (kind[row] == 2).any())
        parts = [np.ravel(value[row]) for value, _ in operands.values()] + [part[row] for part in scale]
        if any(value is None for part in parts for value in part):
            tally["special"] += 1
            continue
        terms = list(parts[0] * parts[1] * parts[-1] * parts[-2])
        tally.update(outcome(terms + (list(parts[2]) if instruction.c else []), formats.get(instruction.d)))
    return Counter({name: number / count for name, number in tally.items()})


def product_window(instruction):
    """Binary places between the largest and the smallest product."""
    parts = [
        formats.get(name) for name in (instruction.a, instruction.b, *[instruction.scale] * bool(instruction.scale))
    ]
    return sum(f.max_exponent - f.min_exponent + f.fraction_bits for f in parts)


def reaches_below_normal(instruction):
    """Whether products can be as small as the lowest result."""
    low = sum(
        formats.get(name).min_exponent - formats.get(name).fraction_bits for name in (instruction.a, instruction.b)
    )
    d = formats.get(instruction.d)
    return low + (-250 if instruction.scale == "ue8m0" else 0) < d.min_exponent - d.fraction_bits


@pytest.mark.parametrize("instruction", [i for i in FLOATS if i.scale != "ue4m3"], **by_id)
def test_families_hit_what_they_are_named_for(instruction):
    count = 150 if instruction.k < 32 else 60
    tie = classify(instruction, "tie", count)
    assert tie["tie"] > 0.25
    assert tie["near_tie"] > 0.05
    cancel = classify(instruction, "cancel", count)
    if product_window(instruction) > 20:  # e2m1 and e3m2 products span too little to cancel deeply
        assert cancel["cancelled"] + cancel["zero"] > 0.3
        assert cancel["cancelled"] > 0.1
    low = classify(instruction, "subnormals", count)
    assert low["subnormal_a"] > 0.3
    assert low["subnormal_b"] > 0.3
    ladder = classify(instruction, "zlad", count)
    if reaches_below_normal(instruction):
        assert low["subnormal"] > 0.2
        assert ladder["subnormal"] > 0.5
        assert classify(instruction, "tiny", count)["subnormal"] > 0.4
    d = formats.get(instruction.d)
    if formats.get(instruction.a).max_exponent + formats.get(instruction.b).max_exponent > d.max_exponent:
        assert classify(instruction, "extremes", count)["overflow"] > 0.3
    if instruction.c:
        alone = classify(instruction, "conly", count)
        assert alone["subnormal"] > 0.2
        assert alone["normal"] > 0.2
    assert classify(instruction, "zeros", count)["all_zero"] > 0.4
    assert classify(instruction, "clustered", count)["normal"] > 0.8


def test_specials_hold_every_kind_of_nan():
    batch = generate(FMA, "specials", 1, 0, 4000)
    nan = np.concatenate([codes.ravel() for _, codes in batch.items()])
    nan = nan[(nan & 0x7FFFFFFF) > 0x7F800000]
    quiet = (nan & 0x400000) != 0
    assert quiet.any()
    assert (~quiet).any()
    assert len(np.unique(nan)) > 300
    assert {0x7F800000, 0xFF800000, 0, 0x80000000} <= set(
        np.concatenate([x.ravel() for _, x in batch.items()]).tolist()
    )


def test_zeros_have_all_signs():
    batch = generate(F16, "zeros", 1, 0, 2000)
    product = (batch.a ^ batch.b) >> 15
    zero = (((batch.a & 0x7FFF) == 0) | ((batch.b & 0x7FFF) == 0)).all(axis=1)
    assert ((product == 1).all(axis=1) & zero & (batch.c == 0x80000000)).mean() > 0.1
    assert ((product == 0).any(axis=1) & (product == 1).any(axis=1) & zero).mean() > 0.2


def test_integer_extremes_overflow_and_stay_inside():
    batch = generate(INTEGERS[0], "extremes", 2, 0, 4000)
    total = (batch.a.astype(np.int64) * batch.b.view(np.int8)).sum(axis=1) + batch.c.view(np.int32)
    outside = (total > 2**31 - 1) | (total < -(2**31))
    assert 0.05 < outside.mean() < 0.95
    assert {0, 1, 127, 128, 129, 255} <= set(np.unique(batch.b).tolist())


def test_products_of_significands():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 53, 500, dtype=np.uint64) >> rng.integers(0, 53, 500, dtype=np.uint64)
    y = rng.integers(0, 1 << 53, 500, dtype=np.uint64) >> rng.integers(0, 53, 500, dtype=np.uint64)
    x[0], y[0] = 1, 1
    top, exponent = normalised_product(x, y)
    for u, v, got, e in zip(x.tolist(), y.tolist(), top.tolist(), exponent.tolist(), strict=True):
        exact = u * v
        if exact:
            assert e == exact.bit_length() - 1
            assert got == (exact << 128 >> (e + 65))
    assert bit_length(np.array([0, 1, 2**53 + 1, 2**64 - 1], np.uint64)).tolist() == [0, 1, 54, 64]


@pytest.mark.parametrize("instruction", ALL, **by_id)
def test_plan_divides_the_vectors(instruction):
    for vectors in (100, 1000, 12345):
        parts = plan(instruction, vectors)
        assert sum(count for _, _, count in parts) == vectors
        assert [name for name, _, _ in parts] == list(families_for(instruction))
        assert min(count for _, _, count in parts) >= 1
    assert all(count == 1 for _, _, count in plan(instruction, 1))


def test_plan_takes_a_mix():
    assert plan(F16, 40, {"tie": 3, "uniform": 1}) == [("uniform", 0, 10), ("tie", 0, 30)]
    with pytest.raises(UsageError, match="did you mean tie"):
        plan(F16, 40, {"ties": 1})
    with pytest.raises(UsageError, match="does not fit"):
        plan(INTEGERS[0], 40, {"tie": 1})


def test_mix_names_every_family():
    assert set(MIX) == set(FAMILIES)


def test_recipe_round_trip():
    recipe = Recipe.parse("x86.vfmadd.f32{daz,ftz,rounding=rz}/tie.1/18446744073709551615/17")
    assert recipe == Recipe("x86.vfmadd.f32{daz,ftz,rounding=rz}", "tie", 1, 2**64 - 1, 17)
    assert Recipe.parse(str(recipe)) == recipe
    own = Recipe.of(F16, "cancel", 9, 1234)
    assert same(regenerate(own, F16), generate(F16, "cancel", 9, 1234, 1))
    assert regenerate("x86.vdpbf16ps/ulp.1/0/3").a.shape == (1, 2)
    old = Recipe.parse("x86.vdpbf16ps/clustered.1/7/20")
    assert same(regenerate(old), reference_batch(lookup.instruction("x86.vdpbf16ps"), "clustered", 7, 20, 1, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x86.vdpbf16ps/tie/0/17", "not a recipe"),
        ("x86.vdpbf16ps/ti.1/0/17", "did you mean tie"),
        ("x86.vdpbf16ps/tie.9/0/17", "makes tie.1"),
        ("x86.vdpbf16ps/tie.1/18446744073709551616/17", "fit 64 bits"),
        ("x86.vdpbf16p/tie.1/0/17", "did you mean x86.vdpbf16ps"),
    ],
)
def test_bad_recipes(text, message):
    with pytest.raises(UsageError, match=message):
        regenerate(text)


def test_bad_arguments():
    for arguments in (("tie", -1, 0, 1), ("tie", 0, -1, 1), ("tie", 0, 0, -1), ("tie", 0, 2**64 - 1, 2)):
        with pytest.raises(UsageError, match="64 bits"):
            generate(F16, *arguments)
    with pytest.raises(UsageError, match="did you mean cancel"):
        generate(F16, "cancell", 0, 0, 1)
    with pytest.raises(UsageError, match="not for test"):
        regenerate(Recipe.of(F16, "tie", 0, 0), FMA)


def test_tiny_straddles_the_lowest_normal_result():
    """Values between the largest that rounds down to a subnormal and the lowest normal: what tells tininess rules."""
    batch = generate(FMA, "tiny", 2, 0, 6000)
    a, b, c = (values("f32", codes)[0].ravel() for codes in (batch.a, batch.b, batch.c))
    short = [(1 - abs(x) * 2**126) * 2**24 for x in a * b + c]  # in units of half a place below the lowest normal
    assert sum(Fraction(1, 2) < x < 1 for x in short) > 20
    assert sum(0 < x < Fraction(1, 2) for x in short) > 20
    product = [(1 - abs(x) * 2**126) * 2**24 for x in a * b]
    assert sum(0 < x < Fraction(1, 2) for x in product) > 20
