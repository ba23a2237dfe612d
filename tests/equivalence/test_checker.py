"""The checker of arguments: it accepts what was found, and nothing that was tampered with."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.bounds import accumulator_span, trace
from mmaprobe.equivalence.checker import RULES, Argument, numbers, refute
from mmaprobe.equivalence.headroom import headroom
from mmaprobe.equivalence.record_rules import IDENTITIES
from mmaprobe.equivalence.spans import Span, encoded, operand_span, product_span
from mmaprobe.models import engine
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fma, Product, Products, Scale
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood

FORMS = (
    ("sm_70", "mma.m8n8k4.row.row.f32.f16.f16.f32"),
    ("sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    ("gfx90a", "v_mfma_f32_32x32x4f16"),
    ("gfx90a", "v_mfma_f32_32x32x4bf16"),
    ("gfx942", "v_mfma_f32_32x32x4_2b_f16"),
    ("aarch64", "arm.bfdot"),
)


def path_of(arch: str, name: str) -> Datapath:
    return datapath_for(arch, instruction(name, arch))


def argued(path: Datapath) -> list[tuple[Neighbour, Argument]]:
    return [(near, found) for near in neighbourhood(path) if (found := argument(path, near)) is not None]


@pytest.mark.parametrize(("arch", "name"), FORMS)
def test_an_argument_holds_for_its_own_change_alone(arch: str, name: str) -> None:
    path = path_of(arch, name)
    found = argued(path)
    assert found
    refuted = [near for near in neighbourhood(path) if argument(path, near) is None]
    for near, each in found:
        assert refute(path, near.datapath, each) == ""
        assert refute(path, path, each)
        for other in refuted:
            assert refute(path, other.datapath, each), (each.rule, each.place, other.field, other.value)


@pytest.mark.parametrize(("arch", "name"), FORMS)
def test_a_fact_that_claims_too_much_is_rejected(arch: str, name: str) -> None:
    """Every number of every fact, moved to the strong side, no longer follows from the datapath."""
    path = path_of(arch, name)
    for near, each in argued(path):
        if each.rule in IDENTITIES:
            continue
        spans = trace(path, accumulator_span(path)).spans
        for i, (place, values) in enumerate(each.facts):
            for j, step in ((0, 1), (1, 1), (2, -1), (3, -1), (4, 1), (5, -1)):
                if numbers(spans[place])[j] != values[j] or abs(values[j]) >= 1 << 20:
                    continue
                wrong = (*values[:j], values[j] + step, *values[j + 1 :])
                facts = (*each.facts[:i], (place, wrong), *each.facts[i + 1 :])
                assert refute(path, near.datapath, replace(each, facts=facts)), (each.rule, place, j)


def test_facts_that_are_missing_or_too_weak_are_rejected() -> None:
    path = path_of("gfx90a", "v_mfma_f32_32x32x4f16")
    near = Neighbour("tree.y.x.to.subnormals", "keep", mutate(path, "tree.y.x.to.subnormals", "keep"))
    found = argument(path, near)
    assert found is not None
    assert found.rule == "never tiny"
    assert "c is missing" in refute(
        path, near.datapath, replace(found, facts=tuple(fact for fact in found.facts if fact[0] != "c"))
    )
    kept = tuple(fact for fact in found.facts if fact[0] != "tree.y.x.to")
    assert "needs a fact" in refute(path, near.datapath, replace(found, facts=kept))
    weak = tuple((place, (values[0], -149, *values[2:]) if place == "tree.y.x.to" else values)
                 for place, values in found.facts)  # fmt: skip
    assert "does not hold" in refute(path, near.datapath, replace(found, facts=weak))
    assert "no rule" in refute(path, near.datapath, replace(found, rule="because"))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_speaks_of_its_fields_alone(rule: str) -> None:
    """Each rule is held against every refuted neighbour with all facts that are true."""
    path = path_of("gfx942", "v_mfma_f32_32x32x4_2b_f16")
    facts = tuple((place, numbers(span)) for place, span in trace(path, accumulator_span(path)).spans.items())
    for near in neighbourhood(path):
        place = near.field.rpartition(".")[0]
        if near.field.rpartition(".")[2] not in RULES[rule][2]:
            assert "says nothing" in refute(path, near.datapath, Argument(rule, place, facts))


def test_spans() -> None:
    half = operand_span("f16")
    assert half == Span(-24, -24, 16, 11, -14, 15, True)
    assert encoded(half, Encode("f32")) == replace(half, label_low=-24)
    flushed = encoded(half, Encode("f16", subnormals="signed_zero"))
    assert (flushed.least, flushed.lowest) == (-14, -24)
    assert not half.within(flushed)
    assert flushed.within(half)
    assert half.join(flushed) == half


def finite(name: str) -> list[tuple[int, int, int]]:
    """Significand, exponent of its last bit, and label, of every positive finite code."""
    fmt = formats.get(name)
    parts = formats.decode(fmt, np.arange(1 << fmt.bits, dtype=fmt.dtype))
    numbers = zip(parts.kind, parts.negative, parts.significand.tolist(), parts.exponent.tolist(), strict=True)
    kinds = (formats.NORMAL, formats.SUBNORMAL)
    return [(x, e, e + fmt.fraction_bits) for kind, minus, x, e in numbers if kind in kinds and not minus]


def by_label(one: tuple[int, int, int], other: tuple[int, int, int], label: str) -> int:
    """The label of a product."""
    (x, e, of_x), (y, f, of_y) = one, other
    lengths = {"operands": x.bit_length() + y.bit_length() - 2, "normalised": (x * y).bit_length() - 1}
    return of_x + of_y if label == "encoded" else e + f + lengths[label]


@pytest.mark.parametrize("label", ["encoded", "operands", "normalised"])
@pytest.mark.parametrize(("a", "b"), [("e4m3", "e5m2"), ("e2m3", "e2m1"), ("e3m2", "e3m2")])
def test_the_span_of_products_is_that_of_every_product(a: str, b: str, label: Any) -> None:
    """Each bound holds of all products, and some product reaches it, though the width allows for one bit more."""
    path = Datapath(a, b, None, "f32", 1, Exact((Products((0,)),), Encode()), product=Product(label=label))
    pairs = [(x, y, by_label(x, y, label)) for x in finite(a) for y in finite(b)]
    sizes = [(x[0] * y[0], x[1] + y[1]) for x, y, _ in pairs]
    labels = [of for _, _, of in pairs]
    tops = [e + p.bit_length() for p, e in sizes]
    lows = [e + (p & -p).bit_length() - 1 for p, e in sizes]
    width = max(top - low for top, low in zip(tops, lows, strict=True))
    found = product_span(path)
    assert replace(found, width=width) == Span(
        min(lows), min(tops) - 1, max(tops), width, min(labels), max(labels), True
    )
    assert width <= found.width <= width + 1
    reach = max(top - of for top, of in zip(tops, labels, strict=True))
    assert headroom(path, Products((0,))) == reach + (label == "normalised")


@pytest.mark.parametrize(("scale", "reach"), [("ue8m0", 2), ("ue4m3", 4)])
def test_the_headroom_of_scaled_products(scale: str, reach: int) -> None:
    """The largest fractions of both operands and of both scales: each pair doubles once; a power of two has none."""
    path = Datapath("e4m3", "e5m2", None, "f32", 1, Exact((Products((0,)),), Encode()), scale=Scale(scale, 1))
    a, b, s = (
        max(Fraction(x) * Fraction(2) ** (e - of) for x, e, of in finite(name)) for name in ("e4m3", "e5m2", scale)
    )
    assert 1 << reach - 1 <= a * b * s * s < 1 << reach
    assert headroom(path, Products((0,))) == reach


@pytest.mark.parametrize("bound", [31, 32, 33])
def test_products_stay_finite_where_none_reaches_the_bound(bound: int) -> None:
    """Products of two f16 go up to just below 2^32: a bound of 2^31 is seen, one of 2^32 is as good as none."""
    free = Datapath("f16", "f16", "f32", "f32", 1, Fma(Accumulator(), (0,), Encode()))
    near = replace(free, product=Product(overflow_exponent=bound))
    top = np.full((1, 1), 0x7BFF, np.uint16)
    largest = Batch(top, top, np.zeros(1, np.uint32))
    alike = bool((engine.evaluate(free, largest) == engine.evaluate(near, largest)).all())
    assert alike == (bound > 31)
    for path, other in ((free, near), (near, free)):
        spans = trace(path, accumulator_span(path)).spans
        facts = tuple((place, numbers(span)) for place, span in spans.items())
        said = refute(path, other, Argument("products stay finite", "product", facts))
        assert said == ("" if alike else "products stay finite does not hold")
    assert trace(near, accumulator_span(near)).spans["product"].top == min(bound, 32)
