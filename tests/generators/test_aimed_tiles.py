"""Whole tiles whose rows aim: native against reference, what rows aim at off the diagonal, versions and recipes."""

from __future__ import annotations

import zlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cases.generators import F16, FLOATS, INTEGERS, SPARSE, by_id, make, same
from mmaprobe import _native, formats
from mmaprobe.errors import UsageError
from mmaprobe.generators import Recipe, families_for, generate, generate_tiles, regenerate
from mmaprobe.generators.families import TILE_VERSIONS, VERSIONS
from mmaprobe.generators.tiles import (
    can_aim,
    native_tiles,
    reference_tiles,
    takes_aims,
    tile_version,
    tile_window,
    vector_at,
)
from mmaprobe.operands.batch import outputs_of
from stand_ins.circuit import Fault, kills

SHAPES = [(16, 8), (8, 8), (24, 5), (1, 20), (40, 17)]
TILED = [replace(each, m=16, n=8) for each in FLOATS]
SCALED = [each for each in TILED if each.scale]
NVFP4, MXFP4, MXFP8 = SCALED
HALF, BFLOAT = TILED[0], replace(make("bf16", "bf16", "f32", "f32", 16), m=16, n=8)
EIGHT = replace(make("e4m3", "e4m3", "f32", "f32", 8), m=16, n=8)
MADE = {
    "cancel": 0xF5D54FA4, "ulp": 0x98223394, "tie": 0x35129E45, "zlad": 0x96503B3C,
    "tiny": 0x7EE770A5, "subnormals": 0x466C299C, "extremes": 0x42CDD12A, "conly": 0x3DC4FD41,
    "zeros": 0x560FB121, "specials": 0x715BE3B7, "multiplier": 0xAA04F94F, "carries": 0x71947D81, "codes": 0x2B3DD42C,
}  # fmt: skip
"""CRC-32 of a, b and c of three tiles of each family: a recipe names them for ever."""
MADE_SCALED = {
    "cancel": 0x49B55860, "ulp": 0x553F5076, "tie": 0x0CEA317F, "zlad": 0x205488C3,
    "tiny": 0x6D4667B6, "subnormals": 0x50062A1F, "extremes": 0x306C1264, "conly": 0x32422F08,
    "zeros": 0x2FC57AC5, "specials": 0x70CAD5D7, "codes": 0x65673D89, "carries": 0x88C7BB57,
}  # fmt: skip
"""The same of a, b, c and both scales of mxf4nvf4's."""


def families_of(instruction):
    return [family for family in families_for(instruction) if family in TILE_VERSIONS and can_aim(instruction, family)]


def test_what_has_rows_that_aim():
    assert all(takes_aims(each) for each in TILED)
    others = [replace(F16, k=1024), replace(F16, random="u32"), replace(NVFP4, scale_size=8)]
    for each in (*SPARSE, *INTEGERS, *others):
        assert not takes_aims(replace(each, m=16, n=8))
    assert not takes_aims(F16)


@pytest.mark.parametrize("instruction", TILED, **by_id)
def test_native_tiles_are_the_references(instruction):
    for family in families_of(instruction):
        for number, (m, n) in enumerate(SHAPES):
            shaped = replace(instruction, m=m, n=n)
            at = 2**32 - 40 if number == 0 else 1000 * number
            count = 19 if number == 1 else 3  # words of 16 tiles are drawn together
            expected = reference_tiles(shaped, family, 2**40 + 9, at, count)
            for build in _native.generator_builds():
                assert same(native_tiles(shaped, family, 2**40 + 9, at, count, build), expected), (family, m, n, build)


@pytest.mark.parametrize("family", TILE_VERSIONS)
def test_a_tile_is_what_it_was(family):
    tiles = native_tiles(EIGHT if family == "codes" else HALF, family, 5, 48, 3)
    assert zlib.crc32(b"".join(part.tobytes() for part in (tiles.a, tiles.b, tiles.c))) == MADE[family]


@pytest.mark.parametrize("family", families_of(NVFP4))
def test_a_tile_under_block_scales_is_what_it_was(family):
    tiles = native_tiles(NVFP4, family, 5, 48, 3)
    parts = (tiles.a, tiles.b, tiles.c, tiles.scale_a, tiles.scale_b)
    assert zlib.crc32(b"".join(part.tobytes() for part in parts)) == MADE_SCALED[family]


@pytest.mark.parametrize(("instruction", "family"), [
    (replace(HALF, m=64, n=40), "multiplier"), (replace(HALF, m=24, n=40), "cancel"),
    (replace(NVFP4, m=64, n=32), "tie"),
    (replace(MXFP8, m=64, n=32), "specials"), (replace(NVFP4, m=64, n=32), "codes"),
])  # fmt: skip
def test_a_window_is_the_first_rows_and_columns_of_a_tile(instruction, family):
    m, n = tile_window(instruction)
    assert (m, n) == (16, 8)
    whole = native_tiles(instruction, family, 3, 1000, 5)
    window = native_tiles(instruction, family, 3, 1000, 5, window=(m, n))
    for name, value in window.items():
        rows, columns = slice(m), slice(n)
        held = (rows, columns) if name == "c" else (slice(None), columns) if name in ("b", "scale_b") else (rows,)
        assert np.array_equal(value, getattr(whole, name)[(slice(None), *held)]), name


def test_a_tile_depends_on_its_index_seed_and_family_alone():
    five = native_tiles(BFLOAT, "ulp", 7, 160, 5)
    assert same(native_tiles(BFLOAT, "ulp", 7, 160 + 3 * 16, 2), five.slice(3, 5))
    for other in (native_tiles(BFLOAT, "ulp", 8, 160, 5), native_tiles(BFLOAT, "tie", 7, 160, 5)):
        assert not same(other, five)
    assert native_tiles(BFLOAT, "ulp", 7, 160, 0).a.shape == (0, 16, 16)


@pytest.mark.parametrize("instruction", TILED, **by_id)
def test_codes_are_finite_and_of_the_format(instruction):
    for family in families_of(instruction):
        for name, value in native_tiles(instruction, family, 1, 0, 40).items():
            fmt = instruction.formats()[name]
            assert value.dtype == fmt.dtype
            assert int(value.max()) < fmt.code_limit
            special = family in ("specials", "codes")
            assert special or not formats.is_nan(fmt, value).any(), (family, name)


def terms_of(instruction, vectors):
    """Products and C as floats, exactly."""
    kinds = instruction.formats()

    def value(name):
        parts = formats.decode(kinds[name], getattr(vectors, name))
        return np.ldexp(np.where(parts.negative, -1.0, 1.0) * parts.significand, parts.exponent)

    products = value("a") * value("b")
    if instruction.scale:
        products = products * np.repeat(value("scale_a") * value("scale_b"), instruction.scale_size, axis=1)
    return np.concatenate([products, value("c")[:, None]], axis=1)


def a_pair_cancels(terms):
    live = set(terms[terms != 0])
    return any(-each in live for each in live) and sum(map(Fraction, terms)) != 0


def is_a_tie(terms):
    """Whether a sum lies half way between two neighbours in f32."""
    total = abs(sum(map(Fraction, terms)))
    if total == 0:
        return False
    exponent = total.numerator.bit_length() - total.denominator.bit_length()
    exponent -= total < Fraction(2) ** exponent
    halves = total / Fraction(2) ** (max(exponent, -126) - 24)
    return halves.denominator == 1 and halves.numerator % 2 == 1


def is_subnormal(terms):
    return 0 < abs(sum(map(Fraction, terms))) < Fraction(2) ** -126


@pytest.mark.parametrize(("family", "event", "made"), [
    ("cancel", a_pair_cancels, HALF), ("cancel", a_pair_cancels, BFLOAT), ("tie", is_a_tie, HALF),
    ("tie", is_a_tie, BFLOAT), ("zlad", is_subnormal, BFLOAT),
    ("cancel", a_pair_cancels, NVFP4), ("cancel", a_pair_cancels, MXFP4), ("cancel", a_pair_cancels, MXFP8),
    ("tie", is_a_tie, NVFP4), ("tie", is_a_tie, MXFP4), ("tie", is_a_tie, MXFP8),
    ("zlad", is_subnormal, MXFP4), ("zlad", is_subnormal, MXFP8), ("tiny", is_subnormal, MXFP4),
])  # fmt: skip
def test_every_output_hits_what_single_vectors_hit(family, event, made):
    """Nine tenths of how often separate vectors do; tiles of vectors hit few off the diagonal."""
    tiles = 40
    alone = generate(made, family, 4, 0, tiles * made.m * made.n)

    def share(vectors):  # of every fourth: the results of a row depend on each other
        return np.mean([event(terms) for terms in terms_of(made, vectors)[::4]])

    rows, crossed = (outputs_of(generate_tiles(made, family, 4, 0, tiles, version)) for version in (2, 1))
    assert share(rows) >= 0.9 * share(alone)
    assert made.scale or share(crossed) < 0.5 * share(alone)  # of four bits any two products may cancel


def test_a_recipe_of_the_tiles_version_names_an_output():
    text = f"{HALF.id}/cancel.2/3/160@5,7"
    recipe = Recipe.parse(text)
    assert (str(recipe), recipe.version, recipe.place) == (text, 2, (5, 7))
    assert recipe == Recipe.of(HALF, "cancel", 3, 160, (5, 7), 2)
    assert same(regenerate(recipe, HALF), vector_at(native_tiles(HALF, "cancel", 3, 160, 1), 0, 5, 7))
    old = regenerate(f"{HALF.id}/cancel.1/3/160@5,7", HALF)
    assert same(old, vector_at(generate_tiles(HALF, "cancel", 3, 160, 1), 0, 5, 7))
    assert not same(old, regenerate(recipe, HALF))


@pytest.mark.parametrize(("text", "message"), [
    ("cancel.2/0/0", "makes whole tiles; name an output, @ROW,COLUMN"),
    ("clustered.4/0/0@0,0", "makes clustered.1 and clustered.2 and clustered.3"),
    ("cancel.3/0/0@0,0", "makes cancel.1, not version 3"),
    ("cancel.2/0/0@16,0", "tiles of 16 rows, 8 columns"),
    (f"cancel.2/0/{2**64 - 3}@0,0", "must fit 64 bits"),
])  # fmt: skip
def test_recipes_that_name_no_tile(text, message):
    with pytest.raises(UsageError, match=message):
        regenerate(f"{HALF.id}/{text}", HALF)


def test_tiles_that_do_not_exist_are_refused():
    with pytest.raises(UsageError, match="cancel has no version 2"):
        generate(HALF, "cancel", 0, 0, 1, 2)
    with pytest.raises(UsageError, match="dense tiles of floats without random bits"):
        generate_tiles(replace(SPARSE[0], m=16, n=8), "cancel", 0, 0, 1, 2)
    with pytest.raises(UsageError, match="does not fit it"):
        generate_tiles(replace(TILED[7], c=None), "conly", 0, 0, 1, 2)
    with pytest.raises(UsageError, match="clustered has no version 4"):
        generate_tiles(HALF, "clustered", 0, 0, 1, 4)


def test_which_rule_tiles_between_models_follow():
    assert tile_version(HALF, "cancel") == TILE_VERSIONS["cancel"] == 2
    assert tile_version(HALF, "clustered") == VERSIONS["clustered"]
    assert tile_version(F16, "cancel") == tile_version(replace(HALF, n=16), "cancel") == VERSIONS["cancel"]
    assert [tile_window(replace(HALF, m=m, n=n)) for m, n in ((16, 8), (64, 8), (8, 32))] == [(16, 8), (16, 8), (8, 8)]
    assert tile_version(replace(HALF, n=16), "cancel", windows=True) == tile_version(NVFP4, "carries") == 2
    blocks = [replace(HALF, blocks=2), replace(HALF, blocks=16, m=4, n=4)]
    assert [tile_version(each, "cancel") for each in blocks] == [VERSIONS["cancel"]] * 2  # an item has several tiles
    assert [tile_version(each, "cancel", windows=True) for each in blocks] == [2, VERSIONS["cancel"]]
    assert tile_version(EIGHT, "codes") == 2
    assert tile_version(EIGHT, "carries") == VERSIONS["carries"]  # so few binades that a tile's lanes reach too few
    assert tile_version(replace(make("f64", "f64", "f64", "f64", 4), m=16, n=8), "multiplier") == VERSIONS["multiplier"]
    with pytest.raises(UsageError, match=r"carries\.2 makes tiles of other formats"):
        generate_tiles(EIGHT, "carries", 0, 0, 1, 2)


@pytest.mark.parametrize(("made", "family", "faults"), [
    (HALF, "multiplier", [Fault(lane, partial=bit) for lane in (0, 7, 15) for bit in (0, 4, 9)]),
    (BFLOAT, "multiplier", [Fault(lane, partial=bit) for lane in (0, 7, 15) for bit in (0, 3, 6)]),
    (HALF, "carries", [Fault(lane, carry=bit) for lane in (0, 7, 15) for bit in range(12, 30, 3)]),
    (BFLOAT, "carries", [Fault(lane, carry=bit) for lane in (0, 7, 15) for bit in range(12, 30, 3)]),
])  # fmt: skip
def test_tiles_kill_faults_of_a_circuit_as_often_as_vectors(made, family, faults):
    """Of all faults together nine tenths as often."""
    tiles = 64
    alone = generate(made, family, 4, 0, tiles * made.m * made.n)
    rows = outputs_of(generate_tiles(made, family, 4, 0, tiles, 2))
    by_rows, by_vectors = (sum(kills(made, each, fault).size for fault in faults) for each in (rows, alone))
    assert by_rows >= 0.9 * by_vectors


def test_special_values_lie_in_rows_in_columns_in_results_and_in_one_lane():
    """Of the results of 400 tiles: with one special operand, with two in one lane, with many, and of C alone."""
    made = outputs_of(native_tiles(HALF, "specials", 4, 0, 400))
    a, b = ((x & 0x7FFF) >= 0x7C00 for x in (made.a, made.b))
    c = (made.c & 0x7FFFFFFF) >= 0x7F800000
    operands = a.sum(axis=1) + b.sum(axis=1)
    assert ((operands == 1) & ~c).mean() > 0.2
    assert ((operands == 0) & c).mean() > 0.02
    assert (a & b).any(axis=1).mean() > 0.03
    assert (operands > 4).mean() > 0.05
    zeros = (((made.a & 0x7FFF) == 0) & b) | (((made.b & 0x7FFF) == 0) & a)
    assert zeros.any(axis=1).mean() > 0.02
    assert (operands == 0).mean() < 0.6


def test_every_pair_of_codes_is_in_every_lane_of_a_round_of_tiles():
    """65,536 indices, 4,096 tiles: all pairs of numbers in each of 8 lanes, those of infinities and NaNs alone."""
    made = outputs_of(native_tiles(EIGHT, "codes", 3, 0, 4096))
    number = [code for code in range(256) if code & 127 != 127]
    for lane in (0, 3, 7):
        pairs = np.unique(made.a[:, lane].astype(int) << 8 | made.b[:, lane])
        assert np.isin([x << 8 | y for x in number for y in number], pairs).all()
    nan = ((made.a & 127) == 127).any(axis=1) | ((made.b & 127) == 127).any(axis=1)
    live = (made.a != 0) & (made.b != 0)
    assert live[nan].sum(axis=1).max() == 1
    later = outputs_of(native_tiles(EIGHT, "codes", 3, 65536, 512))  # the second round: alone
    assert ((later.a != 0) & (later.b != 0)).sum(axis=1).max() == 1
