"""Ones' complement in the frame of c's sign, labels shown higher or lower, NaN codes by cause: each rule by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.strategies import vectors
from mmaprobe.errors import UsageError
from mmaprobe.models import engine, stages
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Operand, Products, Special, Term
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.table import from_table, to_table
from second_source.by_hand import raw

ONE, MINUS, ZERO, MINUS_ZERO = 0x3C00, 0xBC00, 0x0000, 0x8000
INF = 0x7C00
F32_ONE, F32_MINUS = 0x3F800000, 0xBF800000
PAIR = Datapath(
    "f16", "f16", "f32", "f32", 2,
    Fused((Term(Products((0, 1)), 24), Term(Accumulator(), 24, label_offset=-2)),
          Encode(zero="positive", underflow="positive"), complement=True),
    operand_c=Operand("signed_zero"), special=Special("cause", 0xFFC00000, factor_code=0xFFC00A3D),
)  # fmt: skip
"""Two products and c, of which the products keep 24 bits and c 26, negated by ones' complement."""


@pytest.mark.parametrize(
    ("a", "c", "d"),
    [
        ((MINUS, ZERO), 0, 0xBF800000),  # -(2^24 + 1) units of 2^-24, rounded to 24 bits
        ((MINUS, ONE), 0, 0xB3800000),  # what cancels leaves one unit, 2^-24
        ((ONE, MINUS), 1 << 31, 0x33800000),  # in the frame of -0 the positive one is larger
        ((ONE, MINUS_ZERO), F32_MINUS, 0x33800000),  # a zero of the frame's sign adds nothing: one unit
        ((ONE, ZERO), F32_MINUS, 0x34000000),  # a zero of the other sign adds one: two units
        ((ONE, MINUS_ZERO), F32_ONE, 0x40000000),  # 2 - 2^-24, to nearest even: 2
        ((ZERO, MINUS_ZERO), 0, 0),  # nothing shows an exponent
    ],
)
def test_a_term_of_another_sign_than_c_is_one_unit_larger(a: tuple[int, int], c: int, d: int) -> None:
    assert raw(PAIR, list(a), [ONE, ONE], c) == d


def test_a_sum_of_which_a_term_keeps_every_bit_is_not_complemented() -> None:
    tree = PAIR.tree
    assert isinstance(tree, Fused)
    uncut = replace(PAIR, tree=replace(tree, terms=(tree.terms[0], replace(tree.terms[1], fraction_bits=None))))
    assert raw(uncut, [MINUS, ONE], [ONE, ONE], 0) == 0


def test_the_unit_is_that_of_the_finest_term() -> None:
    tree = PAIR.tree
    assert isinstance(tree, Fused)
    finer = replace(PAIR, tree=replace(tree, terms=(tree.terms[0], replace(tree.terms[1], fraction_bits=27))))
    assert raw(finer, [MINUS, ONE], [ONE, ONE], 0) == 0xB2000000  # 2^-27


def test_an_offset_moves_what_a_term_shows_to_the_largest_exponent_and_to_its_cutoff() -> None:
    tree = Fused((Term(Products((0,)), 4), Term(Accumulator(), 4, label_offset=-2)), Encode())
    path = Datapath("f16", "f16", "f32", "f32", 1, tree)
    tiny = 0x2C00  # 2^-4
    for offset, kept in ((-2, 0x3F880000), (0, 0x3F880000), (1, F32_ONE)):  # c = 1 shows 2^offset
        terms = (tree.terms[0], replace(tree.terms[1], label_offset=offset))
        assert raw(replace(path, tree=replace(tree, terms=terms)), [tiny], [ONE], F32_ONE) == kept
    terms = (tree.terms[0], replace(tree.terms[1], cutoff=1, fraction_bits=None))
    assert raw(replace(path, tree=replace(tree, terms=terms)), [ONE], [ONE], F32_ONE) == F32_ONE  # shown 2 below
    assert raw(replace(path, tree=replace(tree, terms=terms)), [0x3800], [ONE], F32_ONE) == 0x3FC00000


@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [
        ((0x7C01, ONE), (ONE, ONE), 0x7F800001, 0xFFC00A3D),  # a NaN of a before everything
        ((INF, 0x7E00), (ZERO, ONE), 0, 0xFFC00A3D),
        ((INF, ONE), (ZERO, ONE), 0xFF812345, 0xFFC00000),  # an invalid product before c's NaN
        ((INF, INF), (ONE, MINUS), 0x7F812345, 0xFFC00000),  # and infinities of both signs among the products
        ((INF, ONE), (ONE, ONE), 0xFF812345, 0xFFC12345),  # c's own, quieted
        ((INF, ONE), (ONE, ONE), 0xFF800000, 0xFFC00000),  # infinities of both signs with c
        ((ONE, ONE), (ONE, ONE), 0x7FC00007, 0x7FC00007),
    ],
)
def test_the_cause_says_the_code(a: tuple[int, int], b: tuple[int, int], c: int, d: int) -> None:
    assert raw(PAIR, list(a), list(b), c) == d


def test_a_later_step_keeps_the_code_of_an_earlier_one_but_for_causes_of_its_own() -> None:
    tree = PAIR.tree
    steps = replace(PAIR, k=4, step=2, tree=tree)
    ones = [ONE] * 4
    assert raw(steps, [0x7E00, ONE, ONE, ONE], ones, 0) == 0xFFC00A3D
    assert raw(steps, [0x7E00, ONE, INF, ONE], [ONE, ONE, ZERO, ONE], 0) == 0xFFC00000
    assert raw(steps, [INF, ONE, ONE, 0x7E00], [ZERO, ONE, ONE, ONE], 0) == 0xFFC00A3D
    assert raw(steps, ones, ones, 0xFF812345) == 0xFFC12345
    loud = replace(steps, special=replace(steps.special, quiet=False))
    assert raw(loud, ones, ones, 0xFF812345) == 0xFF812345


def test_a_nan_that_the_last_conversion_makes_is_no_cause_of_a_step() -> None:
    tree = Fused.alike((Products((0,)), Accumulator()), 24, to=Encode("f32"))
    path = Datapath(
        "f16", "f16", "f32", "e4m3", 1, tree, result=Encode("e4m3"), special=Special("cause", 0x7F, factor_code=0xFF)
    )
    assert raw(path, [0x7E00], [ONE], 0) == 0xFF
    assert raw(path, [ONE], [ONE], 0x7F800000) == 0x7F  # infinity, which e4m3 has not


def test_the_fields_are_written_and_read() -> None:
    table = to_table(PAIR)
    assert table["tree"]["complement"] is True
    assert table["tree"]["terms"][1] == {"of": "c", "label_offset": -2}
    assert str(table["special"]["factor_code"]) == "0xffc00a3d"
    assert from_table(table) == PAIR


def test_what_a_rule_by_cause_cannot_say_is_refused() -> None:
    with pytest.raises(UsageError, match="under cause there is none"):
        replace(PAIR, special=replace(PAIR.special, priority=("c",)))
    with pytest.raises(UsageError, match="NaN code of a and b \\(f32\\) is"):
        replace(PAIR, special=replace(PAIR.special, factor_code=1 << 33))
    with pytest.raises(UsageError, match="s32 has no NaN"):
        replace(PAIR, c="s32", d="s32", tree=replace(PAIR.tree, to=Encode("s32")), operand_c=Operand())  # type: ignore[call-arg]


def test_the_engine_settles_the_codes_of_many_vectors_at_once() -> None:
    steps = replace(PAIR, k=8, step=2)
    some = vectors(steps, 7, 3000)
    assert (engine.evaluate(steps, some) == stages.evaluate(steps, some)).all()


def test_the_neighbours_of_the_fields_are_other_functions() -> None:
    near = {each.field: [] for each in neighbours(PAIR)}
    for each in neighbours(PAIR):
        near[each.field].append(each)
    assert [each.value for each in near["tree.terms.1.label_offset"]] == ["-3", "-1", "0"]
    assert [each.value for each in near["tree.complement"]] == ["false"]
    assert "0xffc00a3c" in {each.value for each in near["special.factor_code"]}
    assert "special.signalling_first" not in near
    some = [vectors(PAIR, seed, 4000) for seed in range(4)]
    for field in ("tree.terms.1.label_offset", "tree.complement", "special.factor_code"):
        for each in near[field]:
            assert any((engine.evaluate(each.datapath, v) != engine.evaluate(PAIR, v)).any() for v in some), each
    plain = replace(PAIR, tree=Fused.alike((Products((0, 1)), Accumulator()), 24, to=Encode()), special=Special())
    assert not {"tree.complement", "special.factor_code"} & {each.field for each in neighbours(plain)}
