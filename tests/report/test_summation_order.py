"""The summation order of a datapath in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    lanes_of,
    walk,
)
from mmaprobe.parameters.lookup import load
from mmaprobe.report.datapath.order import summation_order


def aligned(*terms: Node) -> Fused:
    return Fused.alike(terms, 24)


EIGHT, MORE, C = Products(tuple(range(8))), Products(tuple(range(8, 16))), Accumulator()
TO_F32, TO_BF16 = Encode("f32"), Encode("bf16")


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (Fused.alike((C, EIGHT), 24, to=TO_F32), "8 products + c at once"),
        (Fused.alike((aligned(EIGHT), C), 24, to=TO_F32), "8 products at once; then c"),
        (Fused.alike((aligned(EIGHT), aligned(MORE), C), 24, to=TO_F32),
         "2 groups of 8 products, each at once; then both sums + c"),
        (Fused.alike((aligned(aligned(EIGHT), aligned(MORE)), C), 24, to=TO_F32),
         "2 groups of 8 products, each at once; then both sums; then c"),
        (Fused.alike((Exact((EIGHT,)), Exact((MORE,)), C), 24, to=TO_F32),
         "2 groups of 8 products, each exactly; then both sums + c at once"),
        (Fused.alike((aligned(EIGHT), aligned(Products((8, 9))), C), 24, to=TO_F32),
         "8 products at once; 2 products at once; then both sums + c"),
        (Add(Fused.alike((EIGHT,), 24, to=TO_F32), C, TO_F32), "(8 products at once)+c"),
        (Add(C, Exact((EIGHT,), TO_F32), TO_F32), "c+(8 products exactly)"),
        (Exact((Fused.alike((C, EIGHT), 24, to=TO_F32),), TO_BF16), "8 products + c at once; then to bf16"),
        (Exact((Products((0,)),), TO_F32), "1 product"),
        (Exact((C, Products((0,))), TO_F32), "1 product + c exactly"),
        (Fma(Add(Products((0,)), Products((1,)), TO_F32), (2, 3), TO_F32), "(0+1) then fma 2 then 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_summation_order_in_words(tree: Node, said: str) -> None:
    """By itself, and as one of two steps."""
    k = 1 + max(lane for node in walk(tree) for lane in lanes_of(node))
    path = Datapath("f16", "f16", "f32", tree.to.format, k, tree)
    assert summation_order(path) == said
    assert summation_order(replace(path, k=2 * k, step=k)) == f"2 times: {said}"


def test_every_shipped_order_is_in_words_and_short() -> None:
    """A line of a terminal of 80 columns, without a word of the parameter file's."""
    orders = {
        summation_order(entry.datapath)
        for architecture in ("sm_90a", "sm_100a", "gfx908", "gfx942", "gfx1201", "riscv-vlen128", "x86-64", "aarch64")
        for entry in load(architecture).entries.values()
    }
    assert len(orders) > 30
    assert [order for order in orders if len(order) > 80 or "fused" in order or "exact " in order] == []
