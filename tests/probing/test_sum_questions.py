"""Each question of the probe suite tells rival truths apart."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.formats import ROUNDINGS
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Product,
    Products,
    Special,
    Term,
)
from mmaprobe.probing import QUESTIONS, probe
from stand_ins.probed import Path, Standin, arithmetic, make_instruction

C = Accumulator()


def path(tree: Node, a: str = "bf16", d: str = "f32", c: str | None = "f32", k: int = 4, **more: Any) -> Path:
    return Path(Datapath(a, a, c, d, k, tree, **more))


def ask(device: Any, question: str, status: str = "exact") -> Any:
    found = probe(device, device.instruction, (question,))[question]
    assert found.status == status, found.text
    return found.answer


def fused(bits: int | None, rounding: str = "RZ", zero: int | None = -133, d: str = "f32", k: int = 4) -> Fused:
    to = Encode(d, rounding="RZ" if d == "f32" else "RNE", overflow="infinity", zero="positive")
    return Fused.alike((Products(tuple(range(k))), C), bits, rounding, zero, to)


def chain(rounding: str = "RNE", **more: Any) -> Fma:
    return Fma(C, (0, 1, 2, 3), Encode(rounding=rounding, **more))


# --- sums that do not cancel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [6, 13, 24])
@pytest.mark.parametrize("step", [1, 2, 4, 8])
def test_the_tree_of_sums_that_negate_by_ones_complement(bits: int, step: int) -> None:
    lanes = tuple(range(step))
    tree = replace(Fused.alike((C, Products(lanes)), bits, to=Encode(zero="positive")), complement=True)
    device = path(tree, k=8, step=step)
    found = probe(device, device.instruction, ("summation_tree", "cutoff"))
    assert found["summation_tree"].status == "bounded"
    assert found["summation_tree"].text.endswith(found["cutoff"].text)
    assert found["cutoff"].status == "inconclusive"
    expected: Any = "c"
    for first in range(0, 8, step):
        expected = {"kind": "fused", "terms": [expected, *range(first, first + step)]}
    if step == 1:
        expected = {"kind": "fma", "acc": "c", "lanes": list(range(8))}
    assert found["summation_tree"].answer == expected


def test_a_sum_that_loses_one_is_no_complement() -> None:
    """A single 1 comes out wrong as well: the device is not one that only negates otherwise."""
    device = path(Fused.alike((C, Products((0, 1, 2, 3))), 6, "RZ", 8, Encode()))
    found = probe(device, device.instruction, ("summation_tree",))["summation_tree"]
    assert found.status in ("contradictory", "inconclusive")
    assert "do not cancel" not in found.text


# --- precision and alignment ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [10, 13, 23, 24, 25, 31, 40])
def test_the_fraction_bits_of_a_fused_sum(bits: int) -> None:
    answer = ask(path(fused(bits)), "accumulator_precision")
    assert (answer["products"], answer["c"], answer["at_least"]) == (bits, bits, [])


def test_c_may_keep_other_bits_than_products() -> None:
    terms = (Term(Products((0, 1, 2, 3)), 26), Term(C, 20))
    answer = ask(path(Fused(terms, Encode(rounding="RZ"))), "accumulator_precision")
    assert (answer["products"], answer["c"]) == (26, 20)


def test_an_exact_sum_is_a_lower_bound() -> None:
    answer = ask(path(Exact((Products((0, 1, 2, 3)), C), Encode())), "accumulator_precision", "bounded")
    assert "products" in answer["at_least"]
    assert answer["products"] > 100


def test_a_narrow_format_reaches_the_cut_by_tipping() -> None:
    answer = ask(path(fused(25), a="e2m1"), "accumulator_precision")
    assert (answer["products"], answer["c"], answer["at_least"]) == (25, 25, [])


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_each_alignment_rounding_is_read_as_itself(rounding: str) -> None:
    answer = ask(path(fused(24, rounding)), "alignment_rounding")
    assert (answer["products"], answer["c"]) == ([rounding], [rounding])


def test_lanes_may_be_cut_differently() -> None:
    terms = (Term(Products((0, 2)), 24), Term(Products((1, 3)), 24, "RD"), Term(C, 24))
    answer = ask(path(Fused(terms, Encode(rounding="RZ"))), "alignment_rounding")
    assert answer["lanes"] == {"0": ["RZ"], "1": ["RD"], "2": ["RZ"], "3": ["RD"]}


def test_a_chain_aligns_nothing() -> None:
    assert ask(path(chain()), "alignment_rounding") == {"products": None, "c": None, "lanes": {}}


# --- intermediate rounding, where C enters ----------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_each_rounding_of_partial_sums_is_read_as_itself(rounding: str) -> None:
    answer = ask(path(chain(rounding), a="f32"), "intermediate_rounding")
    assert answer["sums"] == {"fraction_bits": 23, "rounding": [rounding]}
    assert answer["product"] == "exact"


@pytest.mark.parametrize("rounding", ["RNE", "RZ", "RU", "RD", "RA", "RNA", "RO"])
def test_each_rounding_of_products_is_read_as_itself(rounding: str) -> None:
    device = path(chain(), a="f32", product=Product(to=Encode(rounding=rounding)))
    answer = ask(device, "intermediate_rounding")
    assert (answer["product"], answer["product_rounding"]) == ("rounded", [rounding])
    assert answer["rounded_lanes"] == [0, 1, 2, 3]


def test_a_chain_that_starts_at_zero_rounds_its_first_product() -> None:
    instruction = make_instruction("f32", 3, "f32", "f32")
    rest = arithmetic(instruction, ((("c", 0), 1), 2))

    def dot(a: list[int], b: list[int], c: int | None) -> int:
        first = np.array(a[:1], np.uint32).view(np.float32) * np.array(b[:1], np.uint32).view(np.float32)
        return rest.dot([int(first.view(np.uint32)[0]), *a[1:]], [0x3F800000, *b[1:]], c)

    answer = ask(Standin(instruction, dot), "intermediate_rounding")
    assert (answer["product"], answer["rounded_lanes"]) == ("rounded", [0])


def test_products_that_always_fit_say_so() -> None:
    assert ask(path(chain()), "intermediate_rounding")["product"] == "fits"


@pytest.mark.parametrize(
    ("tree", "enters"),
    [
        (chain(), "first"),
        (fused(24), "with all"),
        (Add(Fma(Products((0,)), (1, 2, 3), Encode()), C, Encode()), "last"),
        (Fma(Add(Fma(Products((0,)), (1,), Encode()), C, Encode()), (2, 3), Encode()), "inside"),
    ],
)
def test_where_c_enters(tree: Node, enters: str) -> None:
    assert ask(path(tree), "c_position")["enters"] == enters


def test_an_instruction_without_c() -> None:
    device = arithmetic(make_instruction("f32", 4, None, "f32"), ((0, 1), (2, 3)))
    assert ask(device, "c_position")["enters"] == "absent"


# --- zeros ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", [-131, -132, -133, -140])
def test_the_zero_exponent(zero: int) -> None:
    assert ask(path(fused(25, zero=zero)), "zero_exponent")["exponent"] == zero


@pytest.mark.parametrize("zero", [-19, -20, -21])
def test_the_zero_exponent_of_half_precision_results(zero: int) -> None:
    device = path(fused(25, zero=zero, d="f16"), a="f16", d="f16", c="f16")
    assert ask(device, "zero_exponent")["exponent"] == zero


def test_zeros_that_take_no_part_are_a_bound() -> None:
    answer = ask(path(fused(25, zero=None)), "zero_exponent", "bounded")
    assert answer["exponent"] is None
    assert answer["at_most"] <= -149


def test_zeros_beyond_the_reach_of_a_format_are_bounded() -> None:
    """The lowest product, 2^-48, comes out whole beside zeros, with 25 bits kept."""
    answer = ask(path(fused(25), a="f16"), "zero_exponent", "bounded")
    assert (answer["exponent"], answer["at_most"]) == (None, -23)


@pytest.mark.parametrize(("zero", "rounding", "expected"), [
    ("ieee", "RNE", {"all_negative": "-", "mixed": "+", "cancel": "+", "zero": "ieee"}),
    ("ieee", "RD", {"all_negative": "-", "mixed": "-", "cancel": "-", "zero": "ieee"}),
    ("positive", "RNE", {"all_negative": "+", "mixed": "+", "cancel": "+", "zero": "positive"}),
])  # fmt: skip
def test_the_sign_of_zero(zero: str, rounding: str, expected: dict[str, str]) -> None:
    answer = ask(path(chain(rounding, zero=zero)), "signed_zero")
    assert {name: answer[name] for name in expected} == expected


@pytest.mark.parametrize("underflow", ["signed", "positive"])
def test_the_sign_of_an_underflow(underflow: Any) -> None:
    tree = Exact((Products((0, 1, 2, 3)), C), Encode(underflow=underflow))
    assert ask(path(tree), "signed_zero")["underflow"] == underflow


# --- NaN, infinity, overflow ------------------------------------------------------------------------------------------

ORDER = ("a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "c")


@pytest.mark.parametrize("code", [0x7FFFFFFF, 0xFFC00000, 0x7FC00000])
def test_one_fixed_nan(code: int) -> None:
    answer = ask(path(chain(), special=Special(code=code)), "nan_and_infinity")
    assert (answer["rule"], answer["code"]) == ("canonical", code)


@pytest.mark.parametrize("order", [ORDER, ORDER[::-1], ("c", *ORDER[:-1])])
@pytest.mark.parametrize("first", [False, True])
def test_the_nan_that_wins(order: tuple[str, ...], first: bool) -> None:
    special = Special("global", 0xFFC00000, order, signalling_first=first)
    answer = ask(path(chain(), special=special), "nan_and_infinity")
    assert (answer["rule"], tuple(answer["priority"])) == ("propagate", order)
    assert (answer["signalling_first"], answer["quiet"], answer["code"]) == (first, True, 0xFFC00000)


def test_a_payload_that_is_not_quieted() -> None:
    special = Special("global", 0x7FC00000, ORDER, quiet=False)
    assert ask(path(chain(), special=special), "nan_and_infinity")["quiet"] is False


def test_an_invalid_operation_beside_a_nan() -> None:
    everywhere = Special("global", 0xFFC00000, ORDER)
    in_place = Special("local", 0xFFC00000, ("acc", "a", "b"))
    one = ask(path(chain(), special=everywhere), "nan_and_infinity")["beside_invalid"]
    two = ask(path(chain(), special=in_place), "nan_and_infinity")["beside_invalid"]
    case = "a0 infinite, b0 zero; NaN in a3"
    assert set(one.values()) == {"nan"}
    assert two[case] == "invalid"


@pytest.mark.parametrize(("rule", "rounding", "positive"), [
    ("ieee", "RNE", "infinity"), ("ieee", "RZ", "largest"), ("infinity", "RZ", "infinity"),
    ("largest", "RNE", "largest"), ("ieee", "RD", "largest"),
])  # fmt: skip
def test_overflow(rule: str, rounding: str, positive: str) -> None:
    answer = ask(path(chain(rounding, overflow=rule)), "overflow")
    assert answer["positive"] == positive
    assert answer["negative"] == ("infinity" if rounding == "RD" else positive)


def test_a_partial_sum_overflows_in_a_chain_and_not_in_one_sum() -> None:
    assert ask(path(chain()), "overflow")["inner"] == "overflows"
    assert ask(path(Exact((Products((0, 1, 2, 3)), C), Encode())), "overflow")["inner"] == "absent"


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("rule", "expected"), [("wrap", "wrap"), ("largest", "saturate")])
def test_integers_wrap_or_saturate(rule: str, expected: str) -> None:
    tree = Exact((Products((0, 1, 2, 3)), C), Encode("s32", overflow=rule))
    answer = ask(path(tree, a="s8", d="s32", c="s32"), "overflow")
    assert answer == {"positive": expected, "negative": expected}


def test_a_sum_that_saturates_on_the_way_has_an_order() -> None:
    def dot(a: list[int], b: list[int], c: int | None) -> int:
        acc = np.int64(np.uint32(c or 0).view(np.int32))
        for x, y in zip(a, b, strict=True):
            acc = np.clip(acc + int(np.uint8(x).view(np.int8)) * int(np.uint8(y).view(np.int8)), -(2**31), 2**31 - 1)
        return int(acc) & 0xFFFFFFFF

    device = Standin(make_instruction("s8", 4, "s32", "s32"), dot)
    assert ask(device, "summation_tree", "inconclusive")["kind"] == "unknown"


# --- the device itself ------------------------------------------------------------------------------------------------


@dataclass
class Leaky(Standin):
    """The last bit of every output follows a neighbour's operand, or the batch before."""

    by: str = "row"
    last: int = field(default=0, init=False)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        d = super().run(instruction, batch)
        leak = int(batch.a[0, -1, 0]) & 1 if self.by == "row" else self.last
        self.last = int(batch.a[0, 0, 0]) & 1
        return d ^ d.dtype.type(leak)


@pytest.mark.parametrize(("by", "question"), [("row", "independence"), ("state", "determinism")])
def test_leaks_between_outputs_and_between_batches(by: str, question: str) -> None:
    instruction = make_instruction("bf16", 2, "f32", "f32", m=2)
    sound = arithmetic(instruction, (("c", 0), 1))
    finite = Standin(instruction, lambda a, b, c: (sum(a) * 31 + sum(b) * 17 + (c or 0)) & 0x7FFFFFF)
    leaky = Leaky(instruction, finite.dot, by=by)
    found = probe(leaky, instruction, (question,))[question]
    assert found.status == "contradictory"
    passed = probe(sound, instruction, ("summation_tree",))["summation_tree"]
    assert passed.status == "exact"


def test_questions_and_instructions_that_do_not_exist() -> None:
    device = path(chain())
    with pytest.raises(UsageError, match="did you mean overflow"):
        probe(device, device.instruction, ("overflw",))

    class Elsewhere(Path):
        def supports(self, instruction: Instruction) -> Any:
            return super().supports(instruction).__class__(False, "needs amx-bf16")

    with pytest.raises(NotHereError, match="needs amx-bf16"):
        probe(Elsewhere(device.datapath), device.instruction)


def test_every_finding_counts_its_cost_and_shows_witnesses() -> None:
    device = path(chain())
    findings = probe(device, device.instruction)
    assert tuple(findings) == QUESTIONS
    tree = findings["summation_tree"]
    assert tree.tiles > 0 < tree.launches
    assert tree.witnesses
    assert len(tree.witnesses[0].a) == 4


def test_probes_do_not_know_the_answers() -> None:
    code = "import sys, mmaprobe.probing; print([m for m in sys.modules if 'mmaprobe.m' in m or 'parameters' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
