"""Schedules of integers found by asking alone: random ones, their neighbours, and products that lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.integer_schedules import drawn_biased, drawn_rescaled, drawn_sums, integer_schedule
from cases.random_products import Modelled
from mmaprobe.derivation.schedules.identify import Identification, identify
from mmaprobe.derivation.schedules.mapping import map_product
from mmaprobe.derivation.schedules.rescaling import KINDS, Rescaling, ScaleSearch, given
from mmaprobe.devices.products import open_product
from mmaprobe.errors import UsageError
from mmaprobe.formats import whole_numbers
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.integer_sums import NO_BIAS, IntegerSums, LaneGroups, Rescale
from mmaprobe.parameters.quantised import Quantised
from mmaprobe.parameters.schedule import Schedule, Scope
from mmaprobe.probing.gemm.calls import ProductCalls, UnrepeatedError
from mmaprobe.probing.gemm.integer_values import INTEGER_FAMILIES, dialled, integer_operands
from mmaprobe.report.tables.schedules import identified_json, identified_lines

PAIRS = integer_schedule("u8", "s8", "s32", IntegerSums("s32", groups=LaneGroups(2)))
OTHER = (95, 70, 53, 132)
"""K that were not asked."""


def differ(found: Identification, truth: Schedule) -> int:
    """Elements that what was found gives otherwise, of families at K that were not asked; of none that was found 0."""
    if found.schedule is None:
        return 0
    calls, rng, made = (
        ProductCalls(Modelled(truth), 0),
        np.random.default_rng(9),
        replace(found.schedule, scope=Scope("x")),
    )
    assert truth.integers is not None
    wrong, n = 0, truth.integers.columns() or 19
    for k in OTHER:
        for family in INTEGER_FAMILIES:
            a, b = (each[None] for each in integer_operands(calls, family, (20, n, k), rng))
            wrong += int((Gemm(made).run(a, b) != Gemm(truth).run(a, b)).sum())
    return wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(24))
def test_random_integers_are_recovered_or_left_open(number: int) -> None:
    truth = (drawn_rescaled if number % 2 else drawn_sums)(np.random.default_rng(number))
    found = identify(Modelled(truth, (24, 24, 96)), seed=number)
    assert found.status in ("exact", "bounded"), (truth.integers, found.why)
    assert found.status == "exact" or found.why
    assert differ(found, truth) == 0, (truth.integers, found.schedule)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(24))
def test_random_integers_with_a_bias_are_recovered_or_left_open(number: int) -> None:
    truth = drawn_biased(np.random.default_rng(number), 8)
    found = identify(Modelled(truth, (24, 8, 96)), seed=number)
    assert found.status in ("exact", "bounded"), (truth.integers, found.why)
    assert found.status == "exact" or found.why
    assert differ(found, truth) == 0, (truth.integers, found.schedule)


BIASES = ("-700", "4096", "12", "-3")
"""Of four columns."""
FRACTIONS = ("0x1.9ap+7", "-0x1.4cp+5", "0x1p-1", "0x1.81p+8")
"""The same of f32."""


@pytest.mark.parametrize("d", ["u8", "s32", "f32"])
def test_a_bias_of_each_column_is_found_and_its_neighbours_are_refuted(d: str) -> None:
    rule = {"u8": Rescale(("0x1.8765p-9",), zero="90"), "f32": Rescale(("0x1.8p-9",)), "s32": None}[d]
    truth = integer_schedule("u8", "s8", d, IntegerSums("s32", zero_a=("7",), bias=BIASES, rescale=rule))
    found = identify(Modelled(truth, (24, 4, 96)))
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert found.schedule.integers == truth.integers
    assert [each.verdict for each in found.neighbours if each.field == "bias"] == ["refuted", "refuted"]
    assert {each.shape[1] for each in found.held} == {4}


@pytest.mark.parametrize(("d", "added"), [("u8", "before"), ("f32", "after")])
def test_a_bias_of_f32_is_found_where_no_whole_number_fits(d: str, added: Any) -> None:
    rule = Rescale(("0x1.234p-9",), zero="90" if d == "u8" else "0", bias=FRACTIONS, bias_added=added)
    truth = integer_schedule("u8", "s8", d, IntegerSums("s32", rescale=rule))
    found = identify(Modelled(truth, (24, 4, 96)))
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert found.schedule.integers is not None
    assert found.schedule.integers.bias == ("0",)
    assert found.schedule.integers.rescale is not None
    assert found.schedule.integers.rescale.bias != NO_BIAS
    assert differ(found, truth) == 0


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]])
def test_an_interval_of_scales_ends_with_scales_that_give_every_answer(kind: Rescaling) -> None:
    """And the next one on either side gives one otherwise."""
    like = Rescale(("0x1p+0",), zero="90")
    truth = kind.at((23 << 30) + 12_345_678 if kind.by == "fixed" else 0x3B438765, like)
    calls = ProductCalls(
        Modelled(integer_schedule("u8", "s8", "u8", IntegerSums("s32", rescale=truth)), (24, 4, 96)), 9
    )
    search = ScaleSearch(calls, 4, 96, (0, np.zeros(1, np.int64)))
    search.ask([0, 100, 5_000, -5_000, 17_001, -16_999])
    found = search.interval(kind, 0, like, 0)
    assert found is not None
    assert found[0] < found[1]
    for each, right in ((found[0] - 1, False), (found[0], True), (found[1], True), (found[1] + 1, False)):
        assert (given(kind.at(each, like), search.sums, "u8") == search.told[:, 0]).all() == right


def test_zero_points_of_columns_are_found_each() -> None:
    for d in ("s32", "f32"):
        rule = Rescale(("0x1.8p-9",)) if d == "f32" else None
        sums = IntegerSums("s32", zero_a=("100",), zero_b=("3", "-7", "0", "127"), rescale=rule)
        truth = integer_schedule("u8", "s8", d, sums)
        found = identify(Modelled(truth, (24, 4, 96)))
        assert (found.status, found.why) == ("exact", [])
        assert found.schedule is not None
        assert found.schedule.integers == sums


@pytest.mark.parametrize(
    "rule",
    [Quantised(), Quantised(of="row", by="multiply", rounding="away"), Quantised("s8", by="multiply")],
)
def test_an_a_of_f32_that_is_quantised_is_found(rule: Quantised) -> None:
    sums = IntegerSums(
        "s32", groups=LaneGroups(2), zeros="after", quantised=rule,
        rescale=Rescale(("0x1.234p-7",), bias=("0x1.8p-2",)),
    )  # fmt: skip
    found = identify(Modelled(Schedule("f32", "s8", "f32", Scope("none"), integers=sums), (24, 4, 96)))
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert (found.schedule.a, found.schedule.integers) == ("f32", sums)
    told = {each.field: each.verdict for each in found.neighbours if each.field.startswith("quantised")}
    assert told == {"quantised.of": "refuted", "quantised.by": "refuted", "quantised.rounding": "refuted"}
    assert any("A becomes" in line for line in identified_lines(found, None))


def test_an_a_of_f32_that_is_cut_in_another_way_is_never_guessed() -> None:
    """Numbers that are not whole are others first: of whole ones nothing shows it."""
    sums = IntegerSums("s32", quantised=Quantised(), rescale=Rescale(("0x1.234p-7",)))
    truth = Schedule("f32", "s8", "f32", Scope("none"), integers=sums)

    def nudged(a: Any, b: Any, d: Any) -> Any:
        x = a.view(np.float32)
        fraction = x != np.rint(x)
        moved = np.ascontiguousarray(np.where(fraction, x * np.float32(0.75), x)).view(np.uint32)
        return Gemm(truth).run(moved[None], b[None])[0]

    found = identify(Modelled(truth, (24, 4, 96), nudged))
    assert (found.status, found.schedule) == ("bounded", None)
    assert found.why == ["no way to quantise A that was tried gives every answer"]


def test_pairs_of_bytes_that_saturate_and_what_is_beside_them() -> None:
    found = identify(Modelled(PAIRS))
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert found.schedule.integers == PAIRS.integers
    told = {(each.field, each.value): each.verdict for each in found.neighbours}
    for near in (("groups.stride", "2"), ("groups.lanes", "3"), ("groups.overflow", "wrap"), ("groups", "none")):
        assert told[near] == "refuted", near
    assert told["overflow", "saturate"] == "refuted"
    assert set(told.values()) == {"refuted"}
    assert found.schedule.scope.most_k > 1 << 17  # so many bytes were added that the sum left s32
    lines = identified_lines(found, None)
    assert "sums of s32 that wrap; products of 2 lanes are added in s16 first, which saturates" in lines
    assert len(identified_json(found)["neighbours"]) == len(told)


@pytest.mark.parametrize(
    ("sums", "d"),
    [
        (IntegerSums("s16", "saturate"), "s16"),
        (IntegerSums("s16", "saturate", every=2), "s16"),
        (IntegerSums("s32", groups=LaneGroups(4, 4)), "s32"),
        (IntegerSums("s32", groups=LaneGroups(2), zero_a=("100",), zero_b=("-3",), zeros="after"), "s32"),
    ],
)
def test_where_something_saturates_is_told(sums: IntegerSums, d: str) -> None:
    found = identify(Modelled(integer_schedule("u8", "s8", d, sums)))
    assert found.schedule is not None, found.why
    assert found.schedule.integers == sums


@pytest.mark.parametrize("rounding", ["even", "away", "up", "down", "zero"])
@pytest.mark.parametrize("added", ["after", "before"])
def test_roundings_of_ties_are_told(rounding: Any, added: Any) -> None:
    rule = Rescale(("0x1p-9",), rounding=rounding, zero="3", zero_added=added)
    truth = integer_schedule("u8", "s8", "s8", IntegerSums("s32", rescale=rule))
    found = identify(Modelled(truth, (24, 24, 192)))
    assert found.status == "exact", found.why
    assert found.schedule is not None
    assert found.schedule.integers is not None
    assert found.schedule.integers.rescale is not None
    assert found.schedule.integers.rescale.rounding == rounding
    assert differ(found, truth) == 0


@pytest.mark.long
def test_scales_of_columns_are_found_each() -> None:
    words = ("0x1.8p-9", "0x1.4p-10", "0x1.234p-9", "0x1p-8")
    for d in ("f32", "u8"):
        rule = Rescale(words, zero="0" if d == "f32" else "7")
        truth = integer_schedule("u8", "s8", d, IntegerSums("s32", rescale=rule))
        found = identify(Modelled(truth, (24, 4, 96)))
        assert found.schedule is not None, found.why
        assert found.schedule.integers is not None
        assert found.schedule.integers.rescale is not None
        assert (found.schedule.integers.rescale.scale == words) or d == "u8"
        assert (found.schedule.scope.least_n, found.schedule.scope.most_n) == (4, 4)
        calls = ProductCalls(Modelled(truth, (24, 4, 96)), 0)
        a, b = integer_operands(calls, "sparse", (20, 4, 77), np.random.default_rng(1))
        made = replace(found.schedule, scope=Scope("x"))
        assert (Gemm(made).run(a[None], b[None]) == Gemm(truth).run(a[None], b[None])).all()


def test_sums_are_dialled() -> None:
    calls, sums = ProductCalls(Modelled(PAIRS), 0), np.array([0, 1, -1, 255, -70000, 123456, 1 << 40])
    a, b, good = dialled(calls, sums, (3, 60), (4, np.array([-5])))
    x, y = whole_numbers(calls.a, a) - 4, whole_numbers(calls.b, b) + 5
    assert good.tolist() == [True] * 6 + [False]
    assert ((x @ y)[good] == sums[good][:, None]).all()


def lying(change: Any, schedule: Schedule = PAIRS) -> Identification:
    return identify(Modelled(schedule, (24, 24, 96), change))


def test_products_that_are_none_are_wrong_and_say_how() -> None:
    def dropped(a: Any, b: Any, d: Any) -> Any:
        if a.shape[1] < 97:
            return Gemm(replace(PAIRS, integers=IntegerSums("s32"))).run(a[None, :, :90], b[None, :90])[0]
        return d

    def leaking(a: Any, b: Any, d: Any) -> Any:
        return d + a[:1, :1].astype(np.uint32)

    found = lying(dropped)
    assert (found.status, found.why) == (
        "wrong", ["lane 90 is not counted: alone it leaves D[., 0] at 0x0, as no other lane does"]
    )  # fmt: skip
    found = lying(leaking)
    assert found.status == "wrong"
    assert "is other where only other rows and columns are" in found.why[0]
    assert lying(lambda a, b, d: d * 0).why == ["every element of D is 0x0, whatever A and B are"]


def test_answers_that_do_not_repeat_end_it() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(UnrepeatedError, match="answered in two ways"):
        lying(lambda a, b, d: d + rng.integers(0, 2, d.shape).astype(np.uint32))


def test_a_faulty_lane_of_three_is_outside_of_the_grammar_and_never_guessed() -> None:
    def other(a: Any, b: Any, d: Any) -> Any:
        return d + ((a[:, :1] > 200) & (b[:1] > 100)).astype(np.uint32)

    found = lying(other, replace(PAIRS, integers=IntegerSums("s32")))
    assert (found.status, found.schedule) == ("bounded", None)


def test_orders_of_integers_are_not_mapped_and_the_line_names_the_next_command() -> None:
    product = open_product("gemm:mlas_avx2_u8s8?m=8&n=8&k=40")
    with pytest.raises(UsageError, match=r"no order to map; .* mmaprobe gemm identify 'gemm:mlas_avx2_u8s8"):
        map_product({0: product}, [(4, 4, 40)], {})
