"""What is added to the largest C is argued to be too little, or enough, to carry it over: each shown by vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog import lookup
from mmaprobe.equivalence.arguments import argument
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Products, Term
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood


def other(path: Datapath, field: str, value: str) -> Neighbour:
    """The neighbour with this value."""
    return next(each for each in neighbourhood(path) if each[:2] == (field, value))


def beside_the_largest(path: Datapath) -> Batch:
    """The largest C of either sign and what is just below it, with products of every sign and size."""
    a, c = formats.get(path.a), formats.get(path.c or path.d)
    rng, n = np.random.default_rng(7), 4000
    sizes = np.array([0, 1, 1 << a.fraction_bits, a.one, a.largest], a.dtype)
    signs = np.where(rng.random((2, n, path.k)) < 0.5, a.dtype.type(a.sign_mask), a.dtype.type(0))
    of_a, of_b = (rng.choice(sizes, (n, path.k)) | signs[i] for i in range(2))
    near = np.array([c.largest, c.largest - 1, c.largest - 2], c.dtype)
    negative = np.where(rng.random(n) < 0.5, c.dtype.type(c.sign_mask), c.dtype.type(0))
    return Batch(a=of_a, b=of_b, c=rng.choice(near, n) | negative)


def differ(path: Datapath, near: Neighbour, vectors: Batch) -> bool:
    """Whether a vector tells the neighbour."""
    answers = evaluate_many([path, near.datapath], vectors)
    return bool((answers[0] != answers[1]).any())


def floored(bits: int, groups: int, complement: bool = False) -> Datapath:
    """C, two places lower than it is, beside so many pairs of products, each floored: below half a last place of the
    largest C where it is floored to few bits."""
    pairs = [Fused.alike((Products((2 * i, 2 * i + 1)),), 24, "RD") for i in range(groups)]
    terms = tuple(Term(pair, bits, "RZ" if complement else "RD") for pair in pairs)
    c = Term(Accumulator(), 24 if not complement else bits, label_offset=-2)
    return Datapath(
        "f16", "f16", "f32", "f32", 2 * groups,
        Fused((*terms, c), Encode("f32", zero="positive"), complement=complement),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bits", "groups", "complement", "too_small"),
    [
        (24, 1, False, True), (23, 1, False, True), (22, 1, False, False), (20, 1, False, False),
        (24, 2, False, True), (23, 2, False, False), (24, 1, True, True), (24, 2, True, True),
    ],
)  # fmt: skip
def test_terms_that_are_floored_carry_the_largest_c_over_or_not(
    bits: int, groups: int, complement: bool, too_small: bool
) -> None:
    """Two units of half a place do, since a tie goes to the even infinity; less does not, and no vector tells."""
    path = floored(bits, groups, complement)
    near = other(path, "tree.to.overflow", "largest")
    assert (argument(path, near) is not None) == too_small
    assert differ(path, near, beside_the_largest(path)) != too_small


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("gfx1200", "v_wmma_f32_16x16x16_f16"), ("gfx1200", "v_dot4_f32_fp8_bf8"), ("gfx1100", "v_dot2_f32_f16"),
        ("x86-64+intel", "x86.tdpfp16ps"),
    ],
)  # fmt: skip
def test_no_vector_overflows_where_products_are_too_small(architecture: str, name: str) -> None:
    path = datapath_for(architecture, lookup.instruction(name, architecture))
    near = other(path, "tree.to.overflow", "largest")
    found = argument(path, near)
    assert found is not None
    assert found.rule in ("small products", "small sum")
    assert not differ(path, near, beside_the_largest(path))


CODES = [("v_dot4_f32_fp8_fp8", True), ("v_dot4_f32_fp8_bf8", False), ("v_dot4_f32_bf8_fp8", False)]


@pytest.mark.parametrize(("name", "unread"), CODES)
def test_a_code_by_cause_is_read_where_an_operand_is_infinite(name: str, unread: bool) -> None:
    """Every pair of codes in a lane, with every kind of C."""
    path = datapath_for("gfx1200", lookup.instruction(name, "gfx1200"))
    near = other(path, "special.code", "0x7fc00000")
    found = argument(path, near)
    assert (found is not None and found.rule == "code unread") == unread
    codes = np.arange(1 << 16, dtype=np.uint32)
    a, b = np.zeros((2, codes.size, path.k), np.uint8)
    a[:, 0], b[:, 0] = codes >> 8, codes & 0xFF
    a[:, 1], b[:, 1] = b[:, 0], a[:, 0] ^ 0x80
    some = np.array([0, 0x7F800000, 0xFF800000, 0x7FC00123, 0xFF800001, 0x3F800000], np.uint32)
    c = np.random.default_rng(3).choice(some, codes.size)
    assert differ(path, near, Batch(a=a, b=b, c=c)) != unread


def test_a_code_by_cause_may_be_read_where_something_overflows_inside() -> None:
    path = datapath_for("gfx1200", lookup.instruction("v_dot4_f32_fp8_fp8", "gfx1200"))
    assert isinstance(path.tree, Fused)
    inner = path.tree.terms[0].of
    assert isinstance(inner, Fused)
    limited = replace(path, product=replace(path.product, overflow_exponent=3))
    rounded = replace(
        path,
        tree=replace(
            path.tree, terms=(replace(path.tree.terms[0], of=replace(inner, to=Encode("f16"))), path.tree.terms[1])
        ),
    )
    for each in (limited, rounded):
        near = replace(each, special=replace(each.special, code=0x7FC00000))
        assert argument(each, Neighbour("special.code", "0x7fc00000", near)) is None
