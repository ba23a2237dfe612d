"""Sums that are complemented in the frame of C's sign: argued never to be tiny, and held against narrow formats."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.complements import stays_normal, tiny_c_unseen
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Operand, Product, Products, Special, Term
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour

CODES = (0, 8, 1, 9, 3, 15)
"""Zeros of both signs, the smallest, 1.5 and the largest number of e2m1."""
FACTORS = (0, 8, 1, 15)


def complemented(lanes: int = 2, bits: int = 3, offset: int = -2, c: str = "signed_zero", **rules: Any) -> Datapath:
    """Products of e2m1 and a C of e5m2 that shows less than its exponent: all is cut, and complemented."""
    terms = (Term(Products(tuple(range(lanes))), bits), Term(Accumulator(), bits, label_offset=offset))
    to = replace(Encode("e5m2", zero="positive", subnormals="zero", underflow="positive"), **rules)
    own: Any = Operand(subnormals=c)  # type: ignore[arg-type]
    special = Special(code=0x7F)
    tree = Fused(terms, to, complement=True)
    return Datapath("e2m1", "e2m1", "e5m2", "e5m2", lanes, tree, operand_c=own, special=special)


def every(path: Datapath) -> Batch:
    """Products of every kind in each lane, beside every C."""
    lane = np.array(list(product(CODES, FACTORS)), np.uint8)
    chosen = np.array(list(product(range(len(lane)), repeat=min(path.k, 2))), np.int64)
    chosen = np.hstack([chosen, *[chosen[:, :1]] * (path.k - chosen.shape[1])])
    c = np.arange(256, dtype=np.uint8)
    pairs = lane[np.repeat(chosen, c.size, axis=0)]
    return Batch(pairs[..., 0], pairs[..., 1], np.tile(c, len(chosen)))


def differs(one: Datapath, other: Datapath) -> bool:
    first, second = evaluate_many([one, other], every(one))
    return bool((first != second).any())


@pytest.mark.parametrize("rounding", ["RNE", "RNA"])
@pytest.mark.parametrize(
    ("field", "value"),
    [("subnormals", "keep"), ("subnormals", "signed_zero"), ("tininess", "encoded"), ("underflow", "signed")],
)
def test_no_sum_is_tiny(field: str, value: str, rounding: str) -> None:
    path = complemented(rounding=rounding)
    other = mutate(path, f"tree.to.{field}", value)
    assert stays_normal(path, other)
    assert argument(path, Neighbour(f"tree.to.{field}", value, other)) is not None
    assert not differs(path, other)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (complemented(lanes=3), "keep"),  # three zeros take more than half a place
        (complemented(bits=2), "keep"),  # a unit is a whole place
        (complemented(offset=0), "keep"),
        (complemented(c="keep"), "keep"),
        (complemented(rounding="RZ"), "keep"),
    ],
    ids=["three lanes", "two bits", "no offset", "C kept", "toward zero"],
)
def test_sums_that_may_be_tiny(path: Datapath, value: str) -> None:
    other = mutate(path, "tree.to.subnormals", value)
    assert not stays_normal(path, other)
    assert differs(path, other)


def test_judged_before_it_is_rounded_a_sum_is_tiny() -> None:
    path = complemented()
    other = mutate(path, "tree.to.tininess", "before")
    assert not stays_normal(path, other)
    assert differs(path, other)


@pytest.mark.parametrize(
    ("path", "value", "argued"),
    [
        (complemented(), "keep", True),
        (complemented(c="keep"), "signed_zero", True),
        (complemented(), "zero", False),  # the frame is C's sign
        (complemented(subnormals="signed_zero", underflow="signed"), "keep", False),
        (complemented(subnormals="keep"), "keep", False),
    ],
    ids=["keep", "flush", "its sign", "signed", "kept"],
)
def test_a_tiny_c_is_unseen(path: Datapath, value: str, argued: bool) -> None:
    other = mutate(path, "operand_c.subnormals", value)
    assert tiny_c_unseen(path, other) is argued
    assert differs(path, other) is not argued


@pytest.mark.parametrize(("subnormals", "argued"), [("keep", False), ("signed_zero", True), ("zero", True)])
def test_labels_of_operands_that_are_never_subnormal(subnormals: Any, argued: bool) -> None:
    own = Operand(subnormals=subnormals)
    path = replace(complemented(), operand_a=own, operand_b=own)
    other = replace(path, product=Product(label="operands"))
    found = argument(path, Neighbour("product.label", "operands", other))
    assert (found is not None) is argued
    assert differs(path, other) is not argued
