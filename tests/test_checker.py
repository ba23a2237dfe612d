"""The checker of arguments: it accepts what was found, and nothing that was tampered with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.arguments import argument
from mmaprobe.derivation.bounds import accumulator_span, trace
from mmaprobe.derivation.checker import RULES, Argument, numbers, refute
from mmaprobe.derivation.identities import IDENTITIES
from mmaprobe.derivation.spans import Span, encoded, operand_span
from mmaprobe.parameters.datapath import Datapath, Encode
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
