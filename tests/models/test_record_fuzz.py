"""Random records, legal and not: refused in one line, or computed alike; what read past its end is refused twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.strategies import vectors
from mmaprobe import _native
from mmaprobe.errors import UsageError
from mmaprobe.models import engine, stages
from mmaprobe.models.kernels import FUSED
from mmaprobe.models.program import program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Operand,
    Product,
    Products,
    Scale,
    Special,
    Term,
    Zero,
)
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import from_table, to_table
from record_fuzz import Tally, differences, try_seed

LANES = (0, 1, 2, 3)
SUM = Fused.alike((Products(LANES), Accumulator()), 25, to=Encode(rounding="RZ", overflow="infinity", zero="positive"))
PATH = Datapath("e4m3", "e4m3", "f32", "f32", 4, SUM)
SCALED = replace(PATH, scale=Scale("ue8m0", 2))


def fuzz(seeds: range) -> None:
    tally = Tally()
    with np.errstate(all="ignore"):
        for seed in seeds:
            try_seed(seed, tally)
    assert not tally.findings, str(tally)
    assert tally.counts["legal"] > len(seeds) / 2
    assert tally.counts["refused"] > len(seeds) / 10


def test_a_taste_of_random_records() -> None:
    fuzz(range(60))


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_random_records(part: int) -> None:
    fuzz(range(1000 + 300 * part, 1300 + 300 * part))


HOSTILE: list[dict[str, Any]] = [
    {"a": "f33"}, {"a": None}, {"a": 5}, {"a": []}, {"c": ""}, {"d": "b1"}, {"d": "ue8m0"}, {"d": "ti16"},
    {"k": 0}, {"k": -1}, {"k": True}, {"k": 4.0}, {"k": 10**8}, {"step": -4}, {"step": 3}, {"order": (0, 1, 2, 2)},
    {"order": (0,)}, {"order": [3, 2, 1, 0]}, {"tree": None}, {"tree": Products(LANES)}, {"scale": "ue8m0"},
    {"scale": Scale("ue8m0", 3)}, {"special": Special(code=1 << 32)},
    {"special": Special("global", 0x7FC00000, ("a4",))}, {"special": Special("global", 0x7FC00000, ("a", "b"))},
    {"special": Special("global", 0x7FC00000, ("c", "c"))},
    {"c": None, "special": Special("global", 0x7FC00000, ("c",))}, {"result": Encode("f16")},
    {"product": Product(multiply="and")}, {"product": None}, {"operand_a": Operand(mask=256)},
    {"operand_b": Operand(sign="flip"), "b": "s8"}, {"d": "s32", "special": Special("local", 0)},
    {"tree": Exact((Products((0, 1)), Products((2, 3))), Encode(), scaled=True)},
    {"tree": Fma(Products((0, 1)), (2, 3), Encode())}, {"tree": Exact((Products((0, 1, 2)),), Encode())},
    {"tree": Exact((Products((0, 1, 2, 3, 4)),), Encode())}, {"tree": Exact((Products(LANES),))},
]  # fmt: skip


@pytest.mark.parametrize("fields", HOSTILE, ids=lambda fields: " ".join(fields))
def test_a_datapath_that_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as found:
        replace(PATH, **fields)
    assert str(found.value).isprintable()


BROKEN = [
    (Products, ((),)), (Products, ([0],)), (Products, ((0, 0),)), (Products, ((-1,),)), (Products, ((True,),)),
    (Products, (range(3),)), (Fma, (Zero(), (), Encode())), (Fma, (None, (0,), Encode())), (Fma, (Zero(), (0,), None)),
    (Add, (Zero(), "c", Encode())), (Add, (Zero(), Zero(), None)), (Exact, ((),)), (Exact, ((Zero(),), "f32")),
    (Exact, ((Zero(),), None, 1)), (Fused, ((),)), (Fused, ((Zero(),),)), (Fused, ((Term(Zero()),), "f32")),
    (Fused.alike, ((), 25)), (Fused.alike, ((Zero(),), -1)), (Fused.alike, ((Zero(),), 10**8)),
    (Fused.alike, ((Zero(),), 2.0)), (Fused.alike, ((Zero(),), 25, "RNX")), (Fused.alike, ((Zero(),), 25, None)),
    (Fused.alike, ((Zero(),), 25, "RZ", 1 << 40)), (Term, (None,)), (Term, (Zero(), -1)), (Term, (Zero(), 10**8)),
    (Term, (Zero(), 3, "any text")), (Term, (Zero(), 3, "")), (Term, (Zero(), 3, "RZ", 10**9)),
    (Term, (Zero(), 3, "RZ", 0, -1)), (Special, ("canonical", -1)), (Special, ("canonical", 1 << 64)),
    (Special, ("canonical", "7")), (Special, ("first",)), (Special, ("global", 0, "a0")), (Special, ("local", 0, (1,))),
    (Special, ("local", 0, (), 1)), (Scale, ("s8", 4)), (Scale, ("e4m3", 4)), (Scale, ("ue8m0", 0)),
    (Scale, ("ue8m0", -2)), (Scale, ("ue8m0", 2, "here")), (Product, ("f32",)), (Product, (None, "any")),
    (Product, (None, "encoded", 1 << 40)), (Product, (None, "encoded", None, "or")), (Operand, ("flush",)),
    (Operand, ("keep", -1)), (Operand, ("keep", 1 << 64)), (Operand, ("keep", None, "minus")), (Encode, ("f31",)),
    (Encode, ("b1",)), (Encode, ("ue8m0",)), (Encode, ("ti16",)), (Encode, (None,)), (Encode, ("f32", "rne")),
    (Encode, ("f32", "RNE", "wrap")), (Encode, ("f32", "RNE", "ieee", "zero", "later")),
    (Encode, ("f32", "RNE", "ieee", "keep", "after", "minus")),
    (Encode, ("f32", "RNE", "ieee", "keep", "after", "ieee", "no")),
    *((Encode, ("f32", "RNE", "ieee", "keep", "after", "ieee", "signed", first))
      for first in ((-1, "RZ"), (10**8, "RZ"), (3, "any"), ("3", "RZ"), [3, "RZ"], (3,), 3)),
    (Encode, ("s32", "RNE", "wrap", "keep", "after", "ieee", "signed", (3, "RZ"))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_record_of_a_wrong_field_is_refused(kind: type, values: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError) as found:
        kind(*values)
    assert str(found.value).isprintable()


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("tree.terms.0.rounding", "any text", "RNX?|RU, RD"), ("special.code", "-1", "NaN code is -1"),
        ("special.code", "0x1_0000_0000", "0 to 0xffffffff|expected int"), ("k", "0", "whole number from 1"),
        ("tree.fraction_bits", "100000000", "whole number from 0 to 8192"), ("scale.size", "3", "must divide K = 4"),
        ("tree.terms.0.of", "0..99999999999", "lanes"), ("tree.to.first", "100000000 RZ", "bits of first"),
        ("tree.to.first", "² RZ", "expected a number and a rounding"), ("k", "9" * 5000, "expected int"),
        ("step", "100000000", "does not divide|cannot become"), ("a", "[" * 5000, "unknown format|expected str"),
        ("tree.terms.0.of", "[" * 5000, "lanes"),
    ],
)  # fmt: skip
def test_the_text_of_a_mutant_is_checked(field: str, value: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as found:
        mutate(SCALED, field, value)
    assert len(str(found.value)) < 400


def test_a_tree_without_end_is_refused() -> None:
    node: Any = Zero()
    for _ in range(250):
        node = Add(node, node, Encode())  # 2^250 nodes in 250
    with pytest.raises(UsageError, match="deeper than 192"):
        replace(PATH, tree=Exact((Products(LANES), node), Encode()))
    table = to_table(PATH)
    deep: Any = "c"
    for _ in range(3000):
        deep = {"node": "exact", "terms": [deep]}
    with pytest.raises(UsageError, match="deeper in each other than 256"):
        from_table(table | {"tree": deep})


def test_what_has_no_effect_is_computed_alike() -> None:
    """Scales that no node takes, and a local code without the quiet bit that the next node sets."""
    for path in (
        replace(PATH, scale=Scale("ue8m0", 2, "group")),
        replace(PATH, special=Special("local", 0x7F800001, ("acc", "a", "b"), quiet=True)),
    ):
        assert list(differences(path, vectors(path, 0, 256))) == []


def test_sums_of_floats_in_integers_are_what_the_rule_says() -> None:
    """Huge values and infinities saturate by their sign; a sum of two keeps the low bits of an integer that wraps."""
    to = Encode("s16", overflow="largest")
    path = Datapath("f32", "f32", "f32", "s16", 1, Add(Products((0,)), Accumulator(), to))
    bits = np.array([-np.inf, np.inf, -1e30, 1e30, 40000.0, -2.5], np.float32).view(np.uint32)
    batch = Batch(bits[:, None], np.full((6, 1), 0x3F800000, np.uint32), np.zeros(6, np.uint32))
    expected = [0x8000, 0x7FFF, 0x8000, 0x7FFF, 0x7FFF, 0xFFFE]
    assert stages.evaluate(path, batch).tolist() == expected
    assert engine.evaluate(path, batch).tolist() == expected
    wraps = replace(path, tree=Add(Products((0,)), Accumulator(), Encode("s16", overflow="wrap")))
    big = Batch(*(np.array(x, np.float32).view(np.uint32) for x in ([[2.0**100]], [[1.0]], [3.0])))
    assert stages.evaluate(wraps, big).tolist() == engine.evaluate(wraps, big).tolist() == [3]


def test_the_binding_refuses_a_program_that_reads_past_its_end() -> None:
    """Defence in depth: what Python's checks would never let through."""
    words = program(SCALED)
    assert words is not None
    assert words[COLUMNS["header"].index("kernel")] == FUSED
    batch = Batch(
        *(np.zeros((4, 4), np.uint8) for _ in "ab"), np.zeros(4, np.uint32), *(np.zeros((4, 2), np.uint8) for _ in "ab")
    )
    operands = [batch.a, batch.b, batch.c, batch.scale_a, batch.scale_b, None]
    out = np.zeros((1, 4), np.uint32)
    _native.engine_evaluate([words], operands, out)
    header = COLUMNS["header"]
    wrong = {
        "k": [0, -4, 1 << 40, 3], "a": [-1, 1 << 40, len(words)], "scale_size": [0, 3, -1], "registers": [0, 1],
        "code_end": [len(words) + 1, 1 << 40, 5], "code": [0, -1], "d": [len(words) - 1],
        "priority_count": [1 << 40, -1], "rules": [-1, 1 << 40], "version": [0], "words": [1],
    }  # fmt: skip
    for column, values in wrong.items():
        for value in values:
            bad = words.copy()
            bad[header.index(column)] = value
            for call in (
                lambda bad=bad: _native.engine_evaluate([bad], operands, out),
                lambda bad=bad: _native.engine_evaluate_tiles(
                    bad, [x if x.ndim == 1 else x[:, None] for x in operands[:5]], out, 4, 1, 1
                ),
            ):
                with pytest.raises(ValueError, match=r"not a program|has not"):
                    call()
    with pytest.raises(ValueError, match="width"):
        _native.engine_evaluate([words], operands, out.astype(np.uint8))
