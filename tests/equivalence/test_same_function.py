"""Arguments about conversions, late cuts and payloads: each holds up to its limit and no further, and vectors agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors
from mmaprobe.equivalence.conversions import odd_first, products_fit, rounded_alike
from mmaprobe.equivalence.nan_exhaustion import nan_rules_agree
from mmaprobe.equivalence.repeated_cuts import cut_again, zero_cut_again
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.equivalence.sum_order import one_operation, same_sum
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fma, Fused, Products, Special
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.moves import moved
from mmaprobe.parameters.mutate import mutate

FORMS = {
    "cdna3": ("gfx942", "v_mfma_f32_32x32x4_2b_f16"),
    "cdna3 bf16": ("gfx942", "v_mfma_f32_32x32x4_2b_bf16"),
    "cdna1": ("gfx908", "v_mfma_f32_32x32x4f16"),
    "hopper": ("sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    "half": ("sm_90a", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    "e2m1": ("sm_100a", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f16.e2m1.e2m1"),
    "e4m3": ("sm_100a", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f16.e4m3.e2m3"),
    "fma": ("x86-64", "x86.vfmadd.f32"),
}
PATHS = {name: datapath_for(arch, instruction(made, arch)) for name, (arch, made) in FORMS.items()}


def alike(form: str, one: Datapath, other: Datapath) -> bool:
    made = instruction(FORMS[form][1], FORMS[form][0])
    pools = (mixed_vectors(made, 1, 2000), attack_vectors(made, one, [other], 2, 30_000))
    return all(np.array_equal(*evaluate_many([one, other], pool)) for pool in pools)


@pytest.mark.parametrize(
    ("form", "bits", "holds"),
    [("cdna3", 33, True), ("cdna3", 40, True), ("cdna3", "uncut", True), ("cdna3", 31, False)],
)
def test_a_cut_made_again(form: str, bits: int | str, holds: bool) -> None:
    path = PATHS[form]
    other = mutate(path, "tree.terms.0.fraction_bits", str(bits))
    assert cut_again(path, other, "tree.terms.0") == holds
    assert not cut_again(path, other, "tree.terms.1")
    assert alike(form, path, other) or not holds
    for field, value in (("tree.to.first", "31 RZ"), ("tree.to.first", "none"), ("tree.rounding", "RZ")):
        assert not cut_again(mutate(path, field, value), mutate(other, field, value), "tree.terms.0")


@pytest.mark.parametrize(("zero", "holds"), [("-127", True), ("-125", True), ("none", True), ("-124", False)])
def test_a_zero_whose_cut_is_made_again(zero: str, holds: bool) -> None:
    path = PATHS["cdna3 bf16"]
    other = mutate(path, "tree.terms.1.zero_exponent", zero)
    assert zero_cut_again(path, other, "tree.terms.1") == holds
    assert alike("cdna3 bf16", path, other) or not holds


def test_formats_in_between() -> None:
    hopper, half = PATHS["hopper"], PATHS["half"]
    assert rounded_alike(hopper, moved(hopper, "between", "f64"))
    assert alike("hopper", hopper, moved(hopper, "between", "f64"))
    assert rounded_alike(half, moved(half, "between", "f64"))
    assert not rounded_alike(half, moved(half, "between", "f32"))
    assert not alike("half", half, moved(half, "between", "f32"))
    assert not rounded_alike(hopper, replace(moved(hopper, "between", "f64"), result=None))


@pytest.mark.parametrize(("first", "holds"), [("31 RD", True), ("52 RNO", True), ("53 RD", False), ("none", False)])
def test_a_format_in_between_that_holds_a_first_cut(first: str, holds: bool) -> None:
    path = mutate(mutate(PATHS["cdna3"], "tree.terms.0.fraction_bits", "uncut"), "tree.to.first", first)
    assert rounded_alike(path, moved(path, "between", "f64")) == holds
    assert alike("cdna3", path, moved(path, "between", "f64")) or not holds


def test_a_rounding_to_odd_first() -> None:
    half = PATHS["half"]
    between = moved(half, "between", "f32")
    odd = mutate(between, "tree.to.rounding", "RO")
    assert odd_first(half, odd)
    assert alike("half", half, odd)
    for wrong in (between, mutate(moved(half, "between", "tf32"), "tree.to.rounding", "RO")):
        assert not odd_first(half, wrong)
        assert not alike("half", half, wrong)


@pytest.mark.parametrize(("fmt", "holds"), [("f32", True), ("f64", True), ("bf16", False), ("tf32", False)])
def test_products_that_fit(fmt: str, holds: bool) -> None:
    path = PATHS["cdna1"]
    other = moved(path, "products", fmt)
    assert products_fit(path, other) == holds
    assert alike("cdna1", path, other) == holds
    assert not products_fit(PATHS["hopper"], moved(PATHS["hopper"], "products", fmt))  # labels are read there


@pytest.mark.parametrize(("form", "holds"), [("e2m1", True), ("e4m3", False), ("hopper", False)])
def test_groups_of_products_that_are_never_cut(form: str, holds: bool) -> None:
    path = PATHS[form]
    for value in ("pairs, exact", "halves, cut"):
        assert same_sum(path, moved(path, "grouping", value)) == holds
        assert alike(form, path, moved(path, "grouping", value)) == holds or form == "e4m3"  # seldom told there


def test_the_choice_of_one_operation() -> None:
    path = PATHS["fma"]
    same = replace(path, special=replace(path.special, nan="global", priority=("a0", "b0", "c")))
    assert one_operation(path, same)
    assert alike("fma", path, same)
    for priority in (("b0", "a0", "c"), ("c", "a0", "b0"), ("a0", "b0")):
        assert not one_operation(path, replace(same, special=replace(same.special, priority=priority)))
    assert not one_operation(path, replace(path, special=Special("canonical", path.special.code)))


def test_nan_rules_are_exhausted_where_operands_are_few() -> None:
    dot = datapath_for("x86-64", instruction("x86.vdpbf16ps"))
    assert nan_rules_agree(dot, moved(dot, "nan_rule", "each node its own, a b acc"))
    for value in ("each node its own, b a acc", "each node its own, acc a b", "canonical"):
        assert not nan_rules_agree(dot, moved(dot, "nan_rule", value))
    assert not nan_rules_agree(dot, mutate(dot, "tree.to.rounding", "RZ"))
    assert not nan_rules_agree(PATHS["hopper"], moved(PATHS["hopper"], "nan_rule", "each node its own, a b acc"))


# -- chains of arguments


def other_words(path: Datapath) -> Datapath:
    """What a derivation says of gfx942's f16: C first, one step written as none, no bound of the products, no zero's
    exponent."""
    assert isinstance(path.tree, Fused)
    written = replace(path, tree=replace(path.tree, terms=path.tree.terms[::-1]), step=0)
    return mutate(mutate(written, "product.overflow_exponent", "none"), "tree.terms.0.zero_exponent", "none", own=True)


def test_changes_that_are_argued_one_by_one() -> None:
    path = PATHS["cdna3"]
    proof = same_function(path, other_words(path))
    assert proof is not None
    assert {step.argument.rule for step in proof} == {"same sum", "products stay finite"}
    assert all(step.holds for step in proof)
    assert alike("cdna3", path, other_words(path))
    assert same_function(path, path) == ()


def test_who_pays_for_a_proof_can_end_it() -> None:
    """Every datapath of which an argument is looked for is told, those without one too."""
    path, told = PATHS["cdna3"], list[Datapath]()
    assert same_function(path, other_words(path), told.append) is not None
    assert len(told) > 3
    assert path in told

    def enough(path: Datapath) -> None:
        raise EOFError

    with pytest.raises(EOFError):
        same_function(path, other_words(path), enough)


@pytest.mark.parametrize(
    "change", [("tree.terms.0.fraction_bits", "23"), ("tree.to.first", "30 RD"), ("tree.to.subnormals", "zero")]
)
def test_one_change_too_many_is_no_proof(change: tuple[str, str]) -> None:
    path = PATHS["cdna3"]
    assert same_function(path, mutate(other_words(path), *change)) is None
    assert same_function(mutate(other_words(path), *change), path) is None


def test_a_chain_cut_into_steps() -> None:
    chain = Datapath("f32", "f32", "f32", "f32", 4, Fma(Accumulator(), (0, 1, 2, 3), Encode()))
    single = replace(chain, tree=Fma(Accumulator(), (0,), Encode()), step=1)
    assert same_function(chain, single)
    assert same_function(chain, replace(single, order=(1, 0, 2, 3))) is None


LANES = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)


def test_lanes_that_the_order_or_the_tree_puts_in_place() -> None:
    """Even and odd lanes of a step in two groups: by the lanes of the groups, or by the order."""
    to = Encode("f32", "RZ", first=(31, "RD"))

    def groups(*lanes: tuple[int, ...]) -> Fused:
        inner = Fused.alike(tuple(Fused.alike((Products(some),), 24, "RZ", None) for some in lanes), 24, "RZ")
        return Fused.alike((inner, Accumulator()), 30, "RD", to=to)

    even = Datapath("e4m3fnuz", "e4m3fnuz", "f32", "f32", 16, groups((0, 2, 4, 6), (1, 3, 5, 7)), step=8)
    halves = groups((0, 1, 2, 3), (4, 5, 6, 7))
    assert same_sum(even, replace(even, tree=halves, order=LANES))
    assert same_sum(even, replace(even, tree=halves, order=(*LANES[:8], *LANES[11:7:-1], *LANES[12:])))
    for wrong in (None, (*LANES[:8], *range(8, 16)), (*LANES[8:], *LANES[:8])):
        assert not same_sum(even, replace(even, tree=halves, order=wrong))


def test_a_sum_of_one_is_that_one() -> None:
    """Of one product, C or a rounded sum; not of several products, and not where it is rounded."""
    path = PATHS["cdna3"]
    assert isinstance(path.tree, Fused)
    inner, c = path.tree.terms

    def wrapped(*terms: Exact) -> Datapath:
        return replace(path, tree=replace(path.tree, terms=(inner, *(replace(c, of=term) for term in terms))))

    assert same_sum(path, wrapped(Exact((Accumulator(),))))
    assert not same_sum(path, wrapped(Exact((Accumulator(),), Encode("f32", "RZ"))))
