"""Blind recovery: shipped datapaths are derived back from their models, used as black boxes.

One of every family (``shipped.family``) of every architecture, dense, sparse, scaled,
emulated and converted, by ``MMAPROBE_DEPTH``: a sixth of them (quick), all (ci), or every
distinct datapath (full; ``nox -s recovery``).  The derived record must be the same function
on vectors that the derivation never saw and, field by field, either say the same or list
the field as open or equivalent in its certificate.  A wrong answer is a failure, and so is none.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from outcomes import LIMIT, Outcome, compared, judged, recover, vector
from shipped import SEED, Shipped, distinct, files, is_written_one_way, representatives

import oracle
from mmaprobe import formats
from mmaprobe.catalog.lookup import lowering
from mmaprobe.catalog.states import default_state
from mmaprobe.derivation import Derivation, derive, deriving
from mmaprobe.derivation.dense_view import dense_form
from mmaprobe.derivation.hypotheses.grammar import control_variants, control_words
from mmaprobe.devices.base import open_device
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.record_rules import IDENTITIES
from mmaprobe.equivalence.sum_order import one_operation, with_own_labels
from mmaprobe.evidence.records import Witness
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.sparse import dense_vectors
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
    Term,
    Zero,
    lanes_of,
    walk,
)
from mmaprobe.parameters.diff import TERM_FIELD, datapath_changes
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood
from mmaprobe.parameters.table import flatten, to_table
from mmaprobe.survey.comparison import compare_with_shipped

DEPTH = os.environ.get("MMAPROBE_DEPTH", "quick")
DRAWN = {"quick": representatives()[::6], "ci": representatives(), "full": distinct()}[DEPTH]
CHOSEN = [each for each in DRAWN if is_written_one_way(each.datapath)]
NARROWED = [
    each for each in (representatives() if DEPTH == "quick" else DRAWN) if not is_written_one_way(each.datapath)
]
NAMES = [each.name for each in CHOSEN]
STATES = [each for each in CHOSEN if each.kind == "state"]


@cache
def derived(name: str) -> tuple[Outcome, Derivation | None]:
    each = next(each for each in CHOSEN if each.name == name)
    device = open_device(f"model:{each.architecture}")
    return recover(name, each.kind, device, each.instruction, each.datapath, SEED, LIMIT)


def answered(each: Shipped) -> Derivation:
    """The derivation of a form, which is recovered."""
    outcome, derivation = derived(each.name)
    assert outcome.verdict == "recovered", outcome.line
    assert derivation is not None
    return derivation


IMITATED = (
    ("gfx942-v_mfma_f32_16x16x32_bf8_bf8", 0),
    ("sm_70-wmma.mma.sync.aligned.row.row.m16n16k16.f16.f32", 0),
    ("sm_80-mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16", 0),
    ("sm_100a-tcgen05.mma.cta_group::1.kind::mxf4.block_scale.m128n8k64.f32.e2m1.e2m1.ue8m0", 0),
    ("gfx942-v_mfma_f32_32x32x16_fp8_bf8", 0),
    ("gfx942-v_mfma_f32_32x32x16_fp8_fp8", 1),
    ("sm_70-wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16", 0),
)
"""Instructions of which, at a seed, other structures imitate the first answers."""


@pytest.mark.long
@pytest.mark.parametrize(("name", "seed"), IMITATED)
def test_what_others_imitate_is_found(name: str, seed: int) -> None:
    each = next(each for each in distinct() if each.name == name)
    device = open_device(f"model:{each.architecture}")
    outcome, _ = recover(name, each.kind, device, each.instruction, each.datapath, seed)
    assert outcome.verdict == "recovered", outcome.line


def meaningful(truth: Datapath, found: Datapath) -> list[tuple[str, Any, Any]]:
    """The changes that are not just another spelling.

    Steps may be written out as one tree, of sums that wrap nobody sees them, the operands of an addition have no order,
    a product that its format holds whole is not rounded (a multiply-add onto it adds two products, as an exact sum of
    two does; what is cut to odd and then to odd again is cut once),
    nobody reads labels where nothing is aligned, where nothing is flushed nobody
    judges what is tiny, a zero exponent may be another one where the formats prove
    that neither cuts anything, the first NaN of one operation is its own choice, a product is not infinite from a place
    that no product reaches, what is rounded to nearest overflows to infinity whether that is said or not, and a label
    that is shown elsewhere and tells nothing is the term's own.
    """
    truth, found = with_own_labels(truth), with_own_labels(found)
    changes = list(datapath_changes(truth, found))
    unseen = unrolled(truth) == unrolled(found) or IDENTITIES["modular"][0](truth, found, "tree")
    if unseen and {path for path, _, _ in changes} & {"tree", "step"}:
        changes = [change for change in changes if change[0].partition(".")[0] not in ("tree", "step", "order")]
    if not any(isinstance(node, Fused) for path in (truth, found) for node in walk(path.tree)):
        changes = [change for change in changes if change[0] != "product.label"]
    if one_operation(truth, replace(truth, special=found.special)):
        changes = [change for change in changes if not change[0].startswith("special.")]
    tables = [dict(flatten(to_table(each, full=True))) for each in (truth, found)]
    return [
        change
        for change in changes
        if not (change[0] == "product.overflow_exponent" and out_of_reach(truth, change[1:]))
        and not (change[0].endswith(".zero_exponent") and same_function(truth, change[0], change[2]))
        and not (change[0].endswith(".overflow") and {overflow(table, change[0]) for table in tables} == {"infinity"})
        and (
            not change[0].endswith(".tininess")
            or any(table.get(change[0].replace("tininess", "subnormals")) != "keep" for table in tables)
        )
    ]


def overflow(table: dict[str, Any], field: str) -> Any:
    """What a rounding overflows to: by IEEE 754, to nearest, infinity."""
    to_nearest = str(table.get(field.replace("overflow", "rounding"))).startswith("RN")
    return "infinity" if table.get(field) == "ieee" and to_nearest else table.get(field)


def same_function(truth: Datapath, field: str, value: str) -> bool:
    """Whether there is an argument that a datapath with another zero exponent is the same function."""
    other = mutate(truth, field, value, own=TERM_FIELD.fullmatch(field) is not None)
    return argument(truth, Neighbour(field, "", other)) is not None


def out_of_reach(datapath: Datapath, exponents: tuple[str, ...]) -> bool:
    """Whether every product is below two to each of these exponents."""
    top = formats.get(datapath.a).max_exponent + formats.get(datapath.b).max_exponent + 2
    return datapath.scale is None and all(value == "none" or int(value) >= top for value in exponents)


def unrolled(datapath: Datapath) -> Any:
    """The whole sum over K as nested tuples, the operands of additions sorted."""
    order, size = datapath.order or tuple(range(datapath.k)), datapath.step or datapath.k
    total: Any = "c"
    for start in range(0, datapath.k, size):
        total = shape(datapath, datapath.tree, order[start : start + size], total)
    return total


def shape(path: Datapath, node: Node, lanes: tuple[int, ...], acc: Any) -> Any:
    if isinstance(node, Accumulator):
        return acc
    if isinstance(node, Products):
        return tuple(sorted(lanes[lane] for lane in node.lanes))
    if isinstance(node, Fma):
        start, own = shape(path, node.acc, lanes, acc), tuple(lanes[lane] for lane in node.lanes)
        if start == "zero" and len(own) == 2 and held(path, node.to):
            start, own = own[:1], own[1:]
        if isinstance(start[0], int) and len(start) == len(own) == 1:
            return ("add", *sorted((start, own), key=repr))
        return ("fma", start[1], (*start[2], *own)) if start[0] == "fma" else ("fma", start, own)
    if isinstance(node, Add):
        return ("add", *sorted((shape(path, part, lanes, acc) for part in (node.x, node.y)), key=repr))
    if isinstance(node, (Fused, Exact)):
        terms = [term.of if isinstance(term, Term) else term for term in node.terms]
        if isinstance(node, Exact) and len(terms) == 1 and isinstance(terms[0], Accumulator):
            return acc
        if isinstance(node, Exact) and len(terms) == 1 and isinstance(terms[0], Products) and whole(path, node):
            return shape(path, terms[0], lanes, acc)
        if isinstance(node, Fused) and node.to and node.to.rounding != "RD":  # a zero is how to say that none is -0
            terms = [term for term in terms if not isinstance(term, Zero)]
        parts = sorted((shape(path, term, lanes, acc) for term in terms), key=repr)
        if isinstance(node, Fused) and odd_again(node):
            return ("add", *parts)
        if isinstance(node, Exact) and node.to and len(terms) == 1 and len(lanes_of(terms[0])) == 2:
            return ("add", *((lane,) for lane in parts[0]))
        return (type(node).__name__, *parts)
    return "zero"


def odd_again(node: Fused) -> bool:
    """Whether two values of f32 are cut to odd, two places or more below the last one of f32, and their sum to odd: as
    if nothing was cut.  What is cut leaves an odd last place, which the sum's rounding sees; where the sum is so much
    smaller that it would not, both are alike in size, and whole."""
    of_f32 = [isinstance(term.of, Accumulator) or getattr(term.of, "to", None) is not None for term in node.terms]
    cuts = [
        term.rounding == "RO" and (term.fraction_bits or 0) >= 25 and term.zero_exponent is None for term in node.terms
    ]
    to = node.to
    return (
        len(node.terms) == 2
        and all(of_f32)
        and all(cuts)
        and to is not None
        and (to.format, to.rounding) == ("f32", "RO")
    )


def whole(path: Datapath, node: Exact) -> bool:
    """Whether a node is one product, which the format that it rounds to holds."""
    return node.to is not None and len(lanes_of(node.terms[0])) == 1 and held(path, node.to)


def held(path: Datapath, encode: Encode) -> bool:
    """Whether a format holds every product of two operands."""
    if path.scale is not None:
        return False
    a, b, to = (formats.get(name) for name in (path.a, path.b, encode.format))
    least = a.min_exponent - a.fraction_bits + b.min_exponent - b.fraction_bits
    digits = to.fraction_bits >= a.fraction_bits + b.fraction_bits + 1 and to.min_exponent - to.fraction_bits <= least
    return digits and a.max_exponent + b.max_exponent + 1 <= to.max_exponent


def by_oracle(each: Shipped, datapath: Datapath, witness: Witness) -> int:
    """What the datapath gives for the witness, a sparse one by the lanes that its metadata keeps."""
    form, b = each.instruction, witness.b
    if form.chunk:
        kept = dense_vectors(form, vector(form, witness), lowering(form, each.architecture).sort is not None)
        b = tuple(int(code) for code in kept.b[0])
    scales = (witness.scale_a, witness.scale_b) if witness.scale_a else None
    return oracle.evaluate(to_table(datapath), witness.a, b, witness.c, scales)


def alike(each: Shipped, found: Datapath, others: list[Datapath]) -> bool:
    """Whether no judged vector tells any of the others from what was found."""
    answers = evaluate_many([found, *others], judged(each.instruction, each.datapath))
    return bool((answers == answers[0]).all())


def signs_alike(each: Shipped, found: Datapath) -> bool:
    """Whether no judged vector tells the truth from itself with all signs of zeros that are found elsewhere: a zero may
    lose its sign where C is rounded or in the sum that it enters."""
    moved = each.datapath
    for field, _, value in datapath_changes(each.datapath, found):
        if field.endswith((".zero", ".underflow")):
            moved = mutate(moved, field, str(value))
    return alike(each, moved, [each.datapath])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("each", CHOSEN, ids=NAMES)
def test_derived_back(each: Shipped) -> None:
    derivation = answered(each)
    found = derivation.datapath
    assert found is not None
    named = {entry.field for entry in derivation.certificate.entries if entry.verdict != "refuted"}
    unnamed = [change for change in meaningful(each.datapath, found) if change[0] not in named]
    if "tree.to.zero" in named and signs_alike(each, found):
        unnamed = [change for change in unnamed if not change[0].endswith(".zero")]
    assert not unnamed, f"{derivation.status}: the certificate does not name {unnamed}"
    assert derivation.status == ("bounded" if derivation.certificate.open_fields else "exact")
    assert derivation.fresh == deriving.usual_fresh(dense_form(each.instruction))
    comparison = compare_with_shipped(each.architecture, each.instruction, derivation, SEED)
    assert comparison.outcome in ("same", "equivalent")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("each", CHOSEN, ids=NAMES)
def test_its_certificate_holds(each: Shipped) -> None:
    """Every witness separates by the oracle; every equivalent neighbour is the same function on judged vectors."""
    derivation = answered(each)
    found = derivation.datapath
    assert found is not None
    same: list[Datapath] = []
    near = {(n.field, n.value): n.datapath for n in neighbourhood(found)}
    assert {(entry.field, entry.value) for entry in derivation.certificate.entries} == set(near)
    for entry in derivation.certificate.entries:
        other = near[entry.field, entry.value]
        if entry.verdict == "refuted":
            assert entry.witness is not None
            assert by_oracle(each, found, entry.witness) == entry.witness.d, entry
            assert by_oracle(each, other, entry.witness) != entry.witness.d, entry
        elif entry.verdict == "equivalent":
            assert entry.argument
            same.append(other)
        else:
            assert entry.searched > 0
    assert alike(each, found, same)


@pytest.mark.long
@pytest.mark.parametrize("each", NARROWED, ids=[each.name for each in NARROWED])
@pytest.mark.parametrize("seed", [0, SEED])
def test_what_is_narrowed_after_every_step_is_recovered(each: Shipped, seed: int) -> None:
    """RDNA's results of f16 and bf16, which hide most of what a step sums, as a function, however it is written."""
    device = open_device(f"model:{each.architecture}")
    outcome, _ = recover(each.name, each.kind, device, each.instruction, each.datapath, seed)
    assert outcome.verdict == "recovered", outcome.line


@pytest.mark.parametrize("each", STATES, ids=[each.name for each in STATES])
def test_control_states_from_their_relative(each: Shipped) -> None:
    """A control state derived from the default one is right too, and its refuted variants are really refuted."""
    device = open_device(f"model:{each.architecture}")
    start = derive(device, default_state(each.instruction), seed=SEED).datapath
    assert start is not None
    derivation = derive(device, each.instruction, seed=SEED, start=start)
    found = derivation.datapath
    assert found is not None, derivation.reason
    assert compared(each.instruction, each.datapath, found)[1] == 0, list(datapath_changes(each.datapath, found))
    same = []
    variants = {control_words(path): path for path in control_variants(start)}
    for entry in derivation.certificate.entries:
        if entry.field != "control state":
            continue
        if entry.verdict == "refuted":
            assert entry.witness is not None
            assert by_oracle(each, found, entry.witness) == entry.witness.d, entry
            assert by_oracle(each, variants[entry.value], entry.witness) != entry.witness.d, entry
        elif entry.verdict == "equivalent":
            same.append(variants[entry.value])
    assert alike(each, found, same)


def test_every_architecture_with_parameters_has_its_distinct_datapaths_here() -> None:
    """About 500 datapaths in all, each under one family; the families of all kinds and of every architecture."""
    assert {name for each in distinct() for name in each.also} == set(files())
    assert {each.kind for each in representatives()} == {each.kind for each in distinct()}
    assert 50 <= len(representatives()) <= 100
    assert {each.name for each in representatives()} <= {each.name for each in distinct()}
