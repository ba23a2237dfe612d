"""Structural neighbours: each has a name, can be made again by it, and is another function or argued to be the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.catalog.lookup import architectures, instruction
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.sum_order import canonical, same_sum
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Add, Datapath, Exact, Fused, walk
from mmaprobe.parameters.diff import outline
from mmaprobe.parameters.lookup import datapath_for, load
from mmaprobe.parameters.moves import MOVES, moved, moves
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood
from mmaprobe.parameters.table import fields_said, from_table, rules_said


def path_of(arch: str, name: str) -> Datapath:
    return datapath_for(arch, instruction(name, arch))


HOPPER = path_of("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")
HALF_STEPS = path_of("sm_80", "mma.m16n8k16.f32.f16.f16.f32")
TREE = path_of("gfx90a", "v_mfma_f32_16x16x16f16")
GROUPS = path_of("gfx942", "v_mfma_f32_32x32x16_bf8_bf8")
MXF4 = path_of("sm_100a", "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.m128n8k64.f32.e2m1.e2m1.ue8m0")
DOT = path_of("x86-64+intel", "x86.tdpbf16ps")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("arch", [*architectures(), "x86-64+intel"])
def test_each_is_new_and_can_be_made_again_by_name(arch: str) -> None:
    for path in {entry.datapath for entry in load(arch).entries.values()}:
        found = neighbourhood(path)
        made = [n.datapath for n in found]
        assert len(set(made)) == len(made)
        assert path not in made
        assert all(mutate(path, n.field, n.value) == n.datapath for n in found if n.field in MOVES)


@pytest.mark.parametrize(
    ("path", "field", "value", "tree"),
    [
        (HOPPER, "arrangement", "reversed", "fused(c, 15..0)"),
        (HOPPER, "grouping", "even and odd, cut", "fused(c, fused(0..14:2), fused(1..15:2))"),
        (HOPPER, "grouping", "halves, exact", "fused(c, exact(0..7), exact(8..15))"),
        (HOPPER, "accumulation", "after", "add(fused(0..15), c)"),
        (HOPPER, "accumulation", "beside the sum of the products", "fused(fused(0..15), c)"),
        (HALF_STEPS, "accumulation", "last, from zero", "add(fused(fused(zero, 0..7), 8..15), c)"),
        (TREE, "grouping", "one after the other", "add(c, add(add(add(0, 1), 2), 3))"),
        (TREE, "grouping", "fused", "add(c, exact(0..3))"),
        (TREE, "accumulation", "before the products", "add(add(add(c, 0), 1), add(2, 3))"),
        (TREE, "accumulation", "in one exact sum", "exact(c, 0..3)"),
        (GROUPS, "grouping", "merged", "fused(fused(fused(0..15)), c)"),
        (
            GROUPS,
            "grouping",
            "groups halved",
            "fused(fused(fused(0..6:2), fused(8..14:2), fused(1..7:2), fused(9..15:2)), c)",
        ),
        (MXF4, "grouping", "merged two by two", "fused(exact(0..31), exact(32..63), c)"),
        (
            MXF4,
            "grouping",
            "groups halved",
            "fused(exact(0..7), exact(8..15), exact(16..23), exact(24..31), exact(32..39), exact(40..47), "
            "exact(48..55), exact(56..63), c)",
        ),
        (GROUPS, "grouping", "groups exact", "fused(fused(exact(0..14:2), exact(1..15:2)), c)"),
        (DOT, "grouping", "merged", "add(c, fma(zero; 0..31))"),
    ],
)
def test_structures(path: Datapath, field: str, value: str, tree: str) -> None:
    assert outline(moved(path, field, value).tree) == tree


def test_what_groups_share_is_said_once() -> None:
    halved = moved(MXF4, "grouping", "groups halved")
    assert fields_said(halved) > fields_said(MXF4)
    assert rules_said(halved) == rules_said(MXF4) < rules_said(mutate(halved, "tree.terms.1.fraction_bits", "34"))


def test_formats_between_and_nan_rules() -> None:
    between = moved(HALF_STEPS, "between", "f16")
    assert between.result is not None
    assert (getattr(between.tree, "to").format, between.result.format) == ("f16", "f32")  # noqa: B009
    assert moved(between, "between", "none").result is None
    assert moved(HOPPER, "nan_rule", "the first NaN, c before ascending").special.priority[:3] == ("c", "a0", "b0")
    first = replace(HOPPER, special=moved(HOPPER, "nan_rule", "the first NaN, ascending, then c").special)
    loud = moved(first, "nan_rule", "each node its own, a b acc, signalling ones first").special
    assert (loud.nan, loud.signalling_first) == ("local", True)
    assert moved(HOPPER, "products", "bf16").product.to is not None
    with pytest.raises(UsageError, match="no grouping 'thirds'; there is 'halves, exact'"):
        mutate(HOPPER, "grouping", "thirds")


def test_the_order_of_a_sum_is_no_structure() -> None:
    for path in (HOPPER, HALF_STEPS, TREE):
        found = argument(path, Neighbour("arrangement", "reversed", moved(path, "arrangement", "reversed")))
        assert found is not None
        assert found.rule == "same sum"
    apart = Neighbour("arrangement", "even and odd", moved(TREE, "arrangement", "even and odd"))
    assert argument(TREE, apart) is None


def test_payloads_keep_the_order_written() -> None:
    dot = path_of("x86-64", "x86.dppd")
    assert isinstance(dot.tree, Add)
    swapped = mutate(dot, "tree.swap", "true")
    assert not same_sum(dot, swapped)
    fused = moved(dot, "grouping", "fused")
    assert isinstance(fused.tree, Exact)
    assert same_sum(dot, fused)
    assert not same_sum(dot, dot)
    assert canonical(canonical(HOPPER)) == canonical(HOPPER)


def test_terms_and_the_whole_sum_take_each_others_cut() -> None:
    """CDNA3 cuts terms and then the whole sum: where the first is 31 bits, terms cut there are a neighbour, and have it
    as one of theirs."""
    terms = mutate(GROUPS, "cut", "32 bits at 31 RD")
    assert terms.root.first is None
    assert GROUPS.root.first == (31, "RD")
    assert mutate(terms, "cut", "the whole at 31 RD") == GROUPS
    assert "the whole at 25 RZ" in dict(MOVES["cut"](HOPPER))
    assert not dict(MOVES["cut"](TREE))


def test_what_keeps_every_bit_is_cut_at_what_can_matter() -> None:
    """f16 products have labels up to 30, and c bits down to 2**-149: beside a tie of the largest that lowest bit is the
    first to go, at 30 + 149 - 1 bits; and a little above it, at a half of that, and so on, and at each bit just below
    the last of f32, since what few operands show refutes one cut and not another.  A term alone that is uncut is cut as
    well."""
    exact = path_of("gfx908", "v_mfma_f32_32x32x4f16")
    cuts = dict(MOVES["cut"](exact))
    depths = (178, 176, 174, 170, 89, 44, *range(36, 24, -1))
    assert list(cuts) == [f"what is uncut with c at {bits} bits RZ" for bits in depths]
    assert all(isinstance(cut.tree, Fused) and {t.fraction_bits for t in cut.tree.terms} == {bits}
               for bits, cut in zip(depths, cuts.values(), strict=True))  # fmt: skip
    uncut = mutate(HOPPER, "tree.terms.0.fraction_bits", "uncut")
    assert any(name.startswith("what is uncut with c") for name in dict(MOVES["cut"](uncut)))


def test_a_chain_and_an_addition_are_cut_like_any_sum() -> None:
    """An f32 product is 48 bits wide and makes a tie of f32 alone, below 2**128: c's lowest bit is the first to go."""
    to = {"format": "f32"}
    chain = {
        "a": "f32", "b": "f32", "c": "f32", "d": "f32", "k": 2,
        "tree": {"node": "fma", "acc": "c", "lanes": "0,1", "to": to},
    }  # fmt: skip
    cuts = dict(MOVES["cut"](from_table(chain, "a chain")))
    depths = (275, 273, 271, 267, 137, 68, *range(36, 24, -1))
    assert list(cuts) == [f"what is uncut with c at {bits} bits RZ" for bits in depths]
    for bits, cut in zip(depths, cuts.values(), strict=True):
        links = [node for node in walk(cut.tree) if isinstance(node, Fused)]
        assert [len(link.terms) for link in links] == [2, 2]
        assert {term.fraction_bits for link in links for term in link.terms} == {bits}
    both = {"node": "add", "x": {"node": "fma", "acc": "zero", "lanes": "0,1", "to": to}, "y": "c", "to": to}
    apart = list(MOVES["cut"](from_table(chain | {"tree": both}, "c after")))
    assert {name.split(" at ")[0] for name, _ in apart} == {"what is uncut without c"}


def test_a_long_chain_is_cut_at_few_depths() -> None:
    """Each cut of it is a sum a lane."""
    table = {
        "a": "f32", "b": "f32", "c": "f32", "d": "f32", "k": 16,
        "tree": {"node": "fma", "acc": "c", "lanes": "0..15", "to": {"format": "f32"}},
    }  # fmt: skip
    assert [int(name.split()[-3]) for name in dict(MOVES["cut"](from_table(table, "a long chain")))] == [
        275,
        137,
        68,
        34,
    ]


def test_a_zero_that_shows_nothing_is_tried_with_exponents_down_to_the_last_place() -> None:
    """The lower one is, the fewer terms it cuts: of scaled products of few bits, -133 was the only one that shows."""
    shown = [n.value for n in neighbourhood(mutate(HOPPER, "tree.zero_exponent", "none")) if "zero_exponent" in n.field]
    assert shown == ["-126", "-133", "-141", "-145", "-147", "-148"]


def test_bits_and_the_exponent_of_a_zero_move_together() -> None:
    """Beside zeros alone a sum cuts a tiny term at the same place: only both show that there are more bits."""
    cuts = dict(MOVES["cut"](HOPPER))
    for by in (-1, 1, 4, 12):
        tree = cuts[f"all at {by:+} bits, zeros at {by:+}"].tree
        assert isinstance(tree, Fused)
        assert {(term.fraction_bits, term.zero_exponent) for term in tree.terms} == {(25 + by, -133 + by)}
    assert not [name for name in dict(MOVES["cut"](mutate(HOPPER, "tree.zero_exponent", "none"))) if "zeros at" in name]


BLOCKS = {
    "a": "e4m3", "b": "e2m1", "c": "f32", "d": "f32", "k": 64, "step": 32, "scale": {"format": "ue8m0", "size": 16},
    "tree": {"node": "fused", "terms": ["c", "0..31"], "fraction_bits": 25, "to": {"format": "f32"}},
}  # fmt: skip


def test_scales_are_of_products_or_of_blocks() -> None:
    products = from_table(BLOCKS, "blocks")
    blocks = mutate(products, "grouping", "blocks scaled")
    assert outline(blocks.tree) == "fused(c, exact(0..15), exact(16..31))"
    assert blocks.scale is not None
    assert blocks.scale.where == "group"
    assert all(node.scaled for node in walk(blocks.tree) if isinstance(node, Exact))
    assert mutate(blocks, "grouping", "products scaled") == products
    half = from_table(BLOCKS | {"step": 8, "tree": BLOCKS["tree"] | {"terms": ["c", "0..7"]}}, "half a block")  # type: ignore
    assert outline(mutate(half, "grouping", "blocks scaled").tree) == "fused(c, exact(0..7))"
    across = from_table(BLOCKS | {"order": "0..31,32..62:2,33..63:2"}, "steps that take blocks otherwise")
    assert "blocks scaled" not in dict(MOVES["grouping"](across))
    assert not [name for name in dict(MOVES["grouping"](HOPPER)) if "scaled" in name]


def test_a_tree_that_takes_c_twice_or_sums_zeros_has_neighbours() -> None:
    to = {"format": "f32"}
    twice = {"node": "add", "x": {"node": "fma", "acc": "c", "lanes": "0,1", "to": to}, "y": "c", "to": to}
    zeros = {"node": "exact", "terms": [{"node": "exact", "terms": ["zero"]}, "0,1"], "to": to}
    for tree in (twice, zeros):
        path = from_table({"a": "f16", "b": "f16", "c": "f32", "d": "f32", "k": 4, "step": 2, "tree": tree}, "a tree")
        assert list(moves(path))
