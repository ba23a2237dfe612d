"""Sums of so many bits, shifts and stickies of limited reach, truncated multipliers: each rule by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.strategies import vectors
from mmaprobe.equivalence.arguments import argument
from mmaprobe.errors import UsageError
from mmaprobe.models import engine, stages
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Product, Products, Term
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.table import from_table, to_table
from mmaprobe.report.datapath.meaning import meaning
from second_source.by_hand import raw

ONE, MINUS, ZERO, TWO = 0x3C00, 0xBC00, 0x0000, 0x4000
HIGH = 0x3E00  # 1.5
F32_ONE, F32_TWO, F32_FOUR, F32_MINUS_FOUR = 0x3F800000, 0x40000000, 0x40800000, 0xC0800000


def four(term: Term, **rules: object) -> Datapath:
    """Four f16 products and c by the rules of a term, to f32."""
    terms = (term, replace(term, of=Accumulator()))
    return Datapath("f16", "f16", "f32", "f32", 4, Fused(terms, Encode(rounding="RZ"), **rules))  # type: ignore[arg-type]


PLAIN = Term(Products((0, 1, 2, 3)), 10)


@pytest.mark.parametrize(
    ("carry", "values", "c", "d"),
    [
        ("wrap", (ONE, ONE, ONE, ZERO), 0, 0x40400000),  # 3 is below 2^(0 + 1 + 1)
        ("wrap", (ONE, ONE, ONE, ONE), 0, F32_MINUS_FOUR),  # 4 is not: modulo 8
        ("wrap", (ONE, ONE, ONE, ONE), F32_ONE, 0xC0400000),
        ("saturate", (ONE, ONE, ONE, ONE), F32_ONE, 0x407FF000),  # 4 - 2^-10
        ("saturate", (MINUS, MINUS, MINUS, MINUS), 0xBF800000, F32_MINUS_FOUR),
        ("wrap", (HIGH, HIGH, HIGH, HIGH), F32_TWO, 0xC1000000),  # E is 1: 8 modulo 16
    ],
)
def test_a_sum_has_so_many_bits(carry: str, values: tuple[int, ...], c: int, d: int) -> None:
    path = four(PLAIN, carry_bits=1, carry=carry)
    assert raw(path, list(values), [ONE] * 4, c) == d


def test_a_sum_that_wraps_to_zero_is_a_zero_of_terms_that_are_none() -> None:
    whole = four(PLAIN, carry_bits=0)  # modulo 4: what 1 + 1 + 1 + 1 leaves
    assert raw(whole, [ONE] * 4, [ONE] * 4, 0) == 0
    down = replace(whole, tree=replace(whole.tree, to=Encode(rounding="RD")))  # type: ignore[call-arg]
    assert raw(down, [ONE] * 4, [ONE] * 4, 0) == 0x80000000
    assert raw(down, [MINUS] * 4, [ONE] * 4, 0) == 0x80000000


def test_a_sum_of_which_a_term_keeps_every_bit_has_as_many_as_it_needs() -> None:
    assert raw(four(replace(PLAIN, fraction_bits=None), carry_bits=0), [ONE] * 4, [ONE] * 4, F32_FOUR) == 0x41000000


@pytest.mark.parametrize(
    ("sticky_bits", "low", "d"),
    [
        (None, 0x1401, 0x3F804000),  # half a last place of 9 bits and a little: up
        (None, 0x1400, F32_ONE),  # the half alone: a tie, to even
        (1, 0x1401, F32_ONE),  # the half alone is seen
        (1, 0x1600, F32_ONE),
        (0, 0x1600, F32_ONE),  # nothing is seen: truncated
        (2, 0x1600, 0x3F804000),  # one half and a half of it
    ],
)
def test_a_rounding_looks_at_so_many_bits(sticky_bits: int | None, low: int, d: int) -> None:
    """The products are 1 and low times 1; 0x1400 is 2^-10."""
    path = four(replace(PLAIN, fraction_bits=9, rounding="RNE", sticky_bits=sticky_bits))
    assert raw(path, [ONE, low, ZERO, ZERO], [ONE] * 4, 0) == d


def test_a_shift_stops_at_its_limit() -> None:
    """2^-12 beside 1, shifted by 8 at most, is as if it were 2^-8; what a cutoff drops stays dropped."""
    path = four(replace(PLAIN, shift_limit=8))
    tiny = [ONE, 0x0C00, ZERO, ZERO]  # 2^-12
    assert raw(path, tiny, [ONE] * 4, 0) == 0x3F808000
    assert raw(four(PLAIN), tiny, [ONE] * 4, 0) == F32_ONE
    assert raw(four(replace(PLAIN, shift_limit=8, cutoff=10)), tiny, [ONE] * 4, 0) == F32_ONE
    assert raw(path, [ONE, 0x1C00, ZERO, ZERO], [ONE] * 4, 0) == 0x3F808000  # 2^-8 itself
    uncut = replace(PLAIN, shift_limit=8, fraction_bits=None)
    assert raw(four(uncut), tiny, [ONE] * 4, 0) == 0x3F808000


@pytest.mark.parametrize(
    ("columns", "a", "b", "d"),
    [
        (0, 0x3C03, 0x3C03, 0x3F80C048),  # (1 + 3u)^2 with u = 2^-10
        (1, 0x3C03, 0x3C03, 0x3F80C040),  # without 1 * 1
        (2, 0x3C03, 0x3C03, 0x3F80C020),  # and the two 2 * 1
        (11, 0x3C03, 0x3C03, 0x3F808000),  # of 3 * 2^10, twice, the 2^11 is left each
        (21, 0x3C03, 0x3C03, 0),
        (3, 0x0003, 0x3C01, 0x34400000),  # a subnormal's places are those of the lowest normal
    ],
)
def test_a_multiplier_lacks_its_lowest_columns(columns: int, a: int, b: int, d: int) -> None:
    path = replace(four(replace(PLAIN, fraction_bits=None)), product=Product(missing_columns=columns))
    assert raw(path, [a, ZERO, ZERO, ZERO], [b, ZERO, ZERO, ZERO], 0) == d


RARE = replace(
    four(replace(PLAIN, rounding="RNE", sticky_bits=2, shift_limit=9), carry_bits=1, carry="saturate"),
    product=Product(missing_columns=5),
)


def test_the_fields_are_written_read_and_said() -> None:
    assert from_table(to_table(RARE)) == RARE
    table = to_table(RARE)
    assert (table["tree"]["carry_bits"], table["tree"]["carry"]) == (1, "saturate")
    assert table["tree"]["terms"][1] == {"of": "c", "sticky_bits": 2, "shift_limit": 9}
    said = meaning(RARE)
    assert "to nearest even 10 bits below it by the next 2 bits alone, shifted by 9 at most" in said
    assert "with 1 carry bit above it, beyond which it saturates" in said
    assert "a product lacks the partial products of its 5 lowest columns" in said


def test_the_neighbours_of_the_fields_are_other_functions_and_no_argument_claims_more() -> None:
    near = {(each.field, each.value): each for each in neighbours(RARE)}
    rare = ("carry_bits", "carry", "sticky_bits", "shift_limit", "missing_columns")
    found = [each for (field, _), each in near.items() if field.rpartition(".")[2] in rare]
    fields = {each.field.rpartition(".")[2] for each in found}
    assert fields == set(rare)
    some = [vectors(RARE, seed, 4000) for seed in range(6)]
    told = [
        each
        for each in found
        if any((engine.evaluate(each.datapath, v) != engine.evaluate(RARE, v)).any() for v in some)
    ]
    assert [(each.field, each.value) for each in found if each not in told] == []
    assert not any(argument(RARE, each) for each in near.values())


def test_products_are_shared_by_datapaths_that_form_them_alike_alone() -> None:
    """Of many datapaths that are evaluated at once, in any order, each is as it is alone."""
    some = vectors(RARE, 11, 2000)
    every = [replace(RARE, product=Product(missing_columns=n)) for n in (0, 3, 9, 9, 0, 16)]
    table = engine.evaluate_many(every, some)
    assert all((row == engine.evaluate(path, some)).all() for row, path in zip(table, every, strict=True))
    assert (table[0] != table[2]).any()


def test_the_engine_is_the_stages_on_many_vectors() -> None:
    some = vectors(RARE, 3, 5000)
    assert (engine.evaluate(RARE, some) == stages.evaluate(RARE, some)).all()


def test_what_the_record_refuses() -> None:
    with pytest.raises(UsageError, match="missing_columns is 3; products of integers must have 0"):
        Datapath("s8", "s8", "s32", "s32", 4, Fused((PLAIN,), Encode("s32", overflow="wrap")),
                 product=Product(missing_columns=3))  # fmt: skip
    with pytest.raises(UsageError, match="missing_columns is 107"):
        Product(missing_columns=107)
    with pytest.raises(UsageError, match="carry is 'lost'; it must be one of wrap, saturate"):
        Fused((PLAIN,), carry_bits=1, carry="lost")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="sticky_bits is -1"):
        replace(PLAIN, sticky_bits=-1)
