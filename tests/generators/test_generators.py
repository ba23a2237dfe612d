"""Generators: known answers of Philox, purity, native against reference, plans, recipes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from cases.generators import ALL, F16, FLOATS, FMA, INTEGERS, SPARSE, by_id, same
from mmaprobe import _native
from mmaprobe.catalog import lookup
from mmaprobe.errors import UsageError
from mmaprobe.generators import FAMILIES, MIX, Recipe, families_for, generate, generate_tiles, plan, regenerate
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import KEPT, native_batch, reference_batch, stream_number
from mmaprobe.generators.philox import philox

PI = ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0])
KNOWN_ANSWERS = [  # Random123 kat_vectors, philox4x32 10 and 7
    (10, [0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (10, [0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (10, *PI, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    (7, [0] * 4, [0] * 2, "5f6fb709 0d893f64 4f121f81 4f730a48"),
    (7, [0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "5207ddc2 45165e59 4d8ee751 8c52f662"),
    (7, *PI, "4dfccaba 190a87f0 c47362ba b6b5242a"),
]


@pytest.mark.parametrize(("rounds", "counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_known_answers(rounds, counter, key, answer):
    words = philox(tuple(counter), tuple(key), rounds)
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
    """Operands in the engine layout (kernels/tiles.hpp): ``batch`` holds whole tiles, or with n = 0 vectors."""
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
    packed, number = domain(instruction).packed(), FAMILIES.index(family)
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


@pytest.mark.parametrize("family", ["cancel", "specials", "multiplier"])
@pytest.mark.parametrize("instruction", [F16, FLOATS[5], FLOATS[8], FLOATS[12]], **by_id)
def test_engine_layout_holds_the_vectors_of_several_pieces(instruction, family):
    if family not in families_for(instruction):
        family = "carries"
    expected = laid_out(instruction, generate(instruction, family, 2, 5, 1_600), 1, 0)
    got = made_layout(instruction, family, 2, 5, 1_600, 1, 0, "", expected)
    for name, value in expected.items():
        assert np.array_equal(got[name], value), name


def test_native_carries_into_the_upper_index_word():
    start = 2**32 - 20
    assert same(native_batch(F16, "tie", 3, start, 40), reference_batch(F16, "tie", 3, start, 40))


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
