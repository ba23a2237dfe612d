"""What sums add first: groups, terms that join a finished sum, traces of directed roundings, narrow results."""

from __future__ import annotations

from typing import Any

import pytest

from mmaprobe.catalog import lookup
from mmaprobe.devices.base import open_device
from mmaprobe.formats import ROUNDINGS
from mmaprobe.parameters.datapath import Accumulator, Add, Datapath, Encode, Exact, Fma, Fused, Node, Products, Term
from mmaprobe.probing import probe
from stand_ins.probed import Path

C = Accumulator()
RZ = Encode("f32", rounding="RZ")


def tree_of(tree: Node, status: str = "exact", k: int = 8, **more: Any) -> Any:
    device = Path(Datapath("bf16", "bf16", "f32", "f32", k, tree, **more))
    found = probe(device, device.instruction, ("summation_tree",))["summation_tree"]
    assert found.status == status, found.text
    return found.answer


def fused(*terms: Any) -> dict[str, Any]:
    return {"kind": "fused", "terms": list(terms)}


@pytest.mark.parametrize("bits", [None, 20, 24, 30])
@pytest.mark.parametrize(
    "lanes", [((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 2, 4, 6), (1, 3, 5, 7)), ((1, 2, 3), (0, 4, 5, 6, 7))]
)
def test_groups_of_a_fused_sum(lanes: tuple[tuple[int, ...], ...], bits: int | None) -> None:
    groups = [Fused.alike((Products(some),), bits) if bits else Exact((Products(some),)) for some in lanes]
    answer = tree_of(Fused.alike((*groups, C), 24, to=RZ))
    assert answer == fused(*(fused(*some) for some in sorted(lanes)), "c")


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_groups_under_any_alignment(rounding: str) -> None:
    groups = [Exact((Products(some),)) for some in ((0, 1, 4, 5), (2, 3, 6, 7))]
    answer = tree_of(Fused.alike((*groups, C), 24, rounding, to=RZ))
    assert answer == fused(fused(0, 1, 4, 5), fused(2, 3, 6, 7), "c")


def test_c_may_keep_more_bits_than_the_products_it_is_aligned_with() -> None:
    step = Fused((Term(Products((0, 1, 2, 3)), 20), Term(C, 60)), RZ)
    assert tree_of(step, step=4) == fused(fused("c", 0, 1, 2, 3), 4, 5, 6, 7)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_a_chain_under_any_rounding_in_any_order(rounding: str) -> None:
    order = (3, 0, 7, 1, 6, 2, 5, 4)
    answer = tree_of(Fma(C, tuple(range(8)), Encode("f32", rounding=rounding)), order=order)
    assert answer == {"kind": "fma", "acc": "c", "lanes": list(order)}


def test_a_sum_that_cannot_count_its_units() -> None:
    to = Encode("f32", first=(3, "RNE"))
    answer = tree_of(Fma(C, tuple(range(32)), to), k=32)
    assert answer == {"kind": "fma", "acc": "c", "lanes": list(range(32))}


def test_a_sum_on_the_way_may_have_fewer_exponents_than_the_result() -> None:
    half = Encode("f16", rounding="RNE")
    device = Path(
        Datapath("e5m2", "e2m3", "bf16", "bf16", 4, Add(C, Fma(Products((0,)), (1, 2, 3), half), Encode("bf16")))
    )
    found = probe(device, device.instruction, ("summation_tree",))["summation_tree"]
    assert found.answer == {"kind": "add", "terms": [
        {"kind": "fma", "acc": {"kind": "add", "terms": [0, 1]}, "lanes": [2, 3]}, "c"]}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [
    ("v_mfma_f32_16x16x16_f16", "(fused(p0, p1, p2, p3, p4, p5, p6, p7) + c) + fused("),
    ("v_mfma_f32_16x16x32_fp8_fp8", "fused(p0, p2, p4, p6, p8, p10, p12, p14), fused(p1, p3"),
])  # fmt: skip
def test_cdna3_adds_its_products_first(name: str, text: str) -> None:
    device = open_device("model:gfx942")
    found = probe(device, lookup.instruction(name, "gfx942"), ("summation_tree",))["summation_tree"]
    assert (found.status, text in found.text) == ("exact", True), found.text


def test_the_f64_chain_under_any_rounding_costs_tiles_in_proportion_to_k() -> None:
    device = open_device("model:sm_90a")
    for mode in ("", ".rz", ".rm", ".rp"):
        name = f"mma.m16n8k16.f64.f64.f64.f64{mode}"
        found = probe(device, lookup.instruction(name, "sm_90a"), ("summation_tree",))["summation_tree"]
        assert found.status == "exact"
        assert found.tiles <= 4 * 16
