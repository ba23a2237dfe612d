"""Parameter files: the TOML form of a datapath, reading, inheriting, errors, control states, chains."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.lowering import Application, Lowering
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.chaining import chain
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
from mmaprobe.parameters.files import Entry, ParameterFile, from_text, read_parameter_file, to_text
from mmaprobe.parameters.lookup import basis_for, datapath_for, in_control_state, load
from mmaprobe.parameters.table import fields, from_table, set_field, spelt_out_table, to_table

C = Accumulator()
F32 = Encode(rounding="RZ", overflow="infinity", zero="positive")
FUSED = Datapath(
    "f16", "f16", "f32", "f32", 16,
    Fused.alike((C, Products(tuple(range(8)))), 24, "RZ", -132, F32),
    step=8,
)  # fmt: skip
FMA = Datapath("f32", "f32", "f32", "f32", 1, Fma(C, (0,), Encode()), special=Special("local", 0xFFC00000, ("a", "b")))
SAMPLES = {
    "fused": FUSED,
    "fma": FMA,
    "bf16 dot": Datapath(
        "bf16", "bf16", "f32", "f32", 2,
        Fma(C, (1, 0), Encode(subnormals="signed_zero", tininess="before")),
        operand_a=Operand("signed_zero"), operand_c=Operand("zero", 0xFFFFE000),
        special=Special("global", 0xFFC00000, ("a0", "b0", "a1", "b1", "c"), signalling_first=True),
    ),
    "tree of adds": Datapath(
        "f32", "f32", None, "f32", 4,
        Add(Add(Fma(Zero(), (0,), Encode()), Products((1,)), Encode()), Exact((Products((2, 3)),)), Encode()),
        product=Product(Encode("f32"), "normalised", 128),
    ),
    "nested fused": Datapath(
        "e4m3", "e5m2", "f32", "f32", 8,
        Fused(
            (
                Term(Fused((Term(Products((0, 2))), Term(Products((1, 3)), 3, "RD", 5))), 31, "RD"),
                Term(C, 25, "RD", -126, 25),
            ),
            Encode(first=(31, "RD")),
        ),
        step=4, order=(7, 6, 5, 4, 3, 2, 1, 0), result=Encode("f32"),
    ),
    "scaled": Datapath(
        "e2m1", "e2m1", "f32", "f32", 32,
        Exact((C, Exact((Products(tuple(range(16))),), scaled=True), Exact((Products(tuple(range(16, 32))),))), F32),
        scale=Scale("ue4m3", 16, "group"),
    ),
    "integer": Datapath(
        "u8", "s8", "s32", "s32", 4, Exact((C, Products((0, 1, 2, 3))), Encode("s32", overflow="wrap"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("full", [False, True])
def test_datapaths_survive_toml(name: str, full: bool) -> None:
    table = to_table(SAMPLES[name], full)
    text = tomli_w.dumps(table)
    assert from_table(tomllib.loads(text)) == SAMPLES[name]
    assert tomli_w.dumps(to_table(from_table(tomllib.loads(text)), full)) == text


def test_the_form_is_readable() -> None:
    assert to_table(FUSED) == {
        "a": "f16", "b": "f16", "c": "f32", "d": "f32", "k": 16, "step": 8,
        "tree": {
            "node": "fused", "terms": ["c", "0..7"], "fraction_bits": 24, "zero_exponent": -132,
            "to": {"rounding": "RZ", "overflow": "infinity", "zero": "positive"},
        },
    }  # fmt: skip
    assert "code = 0xffc00000" in tomli_w.dumps(to_table(FMA))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("step", "8", "datapath.step: expected int, got '8'"),
        ("step", 5, "datapath: a step of 5 lanes does not divide K = 16"),
        ("a", "f17", "datapath: a: unknown format 'f17'"),
        ("stepp", 8, "datapath.stepp: unknown key; did you mean step?"),
        ("tree.to.rounding", "RX", "datapath.tree.to: rounding is 'RX'"),
        ("tree.node", "fold", "datapath.tree: expected 'c', 'zero', lanes, or a table whose node is one of fma"),
        ("tree.terms", ["c", "0..x"], "datapath.tree.terms.1: lanes '0..x': cannot read"),
        ("tree.terms", ["c", "0..6"], "datapath: the tree does not use each of the lanes"),
        ("tree.terms", 3, "datapath.tree.terms: expected a list, got 3"),
        ("tree.to.first", "RD", "datapath.tree.to.first: expected a number and a rounding"),
        ("product", {"label": "loud"}, "datapath.product.label: 'loud'; it must be one of encoded"),
        ("operand_a", 3, "datapath.operand_a: expected a table, got 3"),
        ("order", [1], "datapath.order: expected text, got [1]"),
    ],
)
def test_wrong_keys_are_named_by_their_path(path: str, value: object, said: str) -> None:
    table = to_table(FUSED)
    *parents, last = path.split(".")
    holder = table
    for key in parents:
        holder = holder[key]
    holder[last] = value
    with pytest.raises(UsageError, match="^" + re.escape(said)):
        from_table(table)
    table = to_table(FUSED)
    del table["k"]
    with pytest.raises(UsageError, match=re.escape("datapath.k: missing")):
        from_table(table)


def test_fields_can_be_listed_and_changed() -> None:
    paths = dict(fields(FUSED))
    assert paths["tree.fraction_bits"] == 24
    assert paths["tree.terms.1.cutoff"] == "none"
    assert paths["tree.to.tininess"] == "after"
    for path, value in paths.items():
        assert set_field(FUSED, path, value) == FUSED
    tree = FUSED.tree
    assert isinstance(tree, Fused)
    assert set_field(FUSED, "tree.zero_exponent", "none").tree == Fused.alike(
        [term.of for term in tree.terms], 24, "RZ", None, F32
    )
    with pytest.raises(UsageError, match=r"no field 'tree.fraction'; did you mean tree.fraction_bits"):
        set_field(FUSED, "tree.fraction", 3)
    with pytest.raises(UsageError, match=r"no field 'tree\.terms\.7.cutoff'"):
        set_field(FUSED, "tree.terms.7.cutoff", 3)


SPELLINGS = {
    "shared": {"fraction_bits": 24, "rounding": "RD", "zero_exponent": -126, "terms": ["c", "0..3"]},
    "one says it again": {
        "fraction_bits": 24, "rounding": "RD", "zero_exponent": -126,
        "terms": [{"of": "c", "fraction_bits": 24, "rounding": "RD"}, "0..3"],
    },
    "all say it": {
        "fraction_bits": 60, "rounding": "RD",
        "terms": [{"of": of, "fraction_bits": 24, "zero_exponent": -126} for of in ("c", "0..3")],
    },
}  # fmt: skip


def spelt(table: dict[str, Any]) -> Datapath:
    return from_table(
        {"a": "f16", "b": "f16", "c": "f32", "d": "f32", "k": 4, "tree": {"node": "fused", "to": {}, **table}}
    )


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_who_says_a_rule_makes_no_other_datapath(spelling: dict[str, Any]) -> None:
    """A node's rule that its terms share and a rule that each says itself are one record, written in one way."""
    found, shared = spelt(spelling), spelt(SPELLINGS["shared"])
    assert found == shared
    assert hash(found) == hash(shared)
    assert to_table(found) == to_table(shared)


def test_a_term_keeps_every_bit_or_is_cut_whatever_the_others_are() -> None:
    """In memory none is no cut; written, a term says its own where not all are alike."""
    sums = [Fused((Term(C, mine, "RD"), Term(Products((0, 1, 2, 3)), other, "RD")), F32)
            for mine in (None, 24) for other in (None, 24, 30)]  # fmt: skip
    assert len(set(sums)) == 6
    for tree in sums:
        path = Datapath("f16", "f16", "f32", "f32", 4, tree)
        assert from_table(to_table(path)) == from_table(to_table(path, full=True)) == path
        assert from_table(spelt_out_table(path)) == path
    mixed = Datapath("f16", "f16", "f32", "f32", 4, sums[1])
    assert mixed == set_field(
        Datapath("f16", "f16", "f32", "f32", 4, sums[4]), "tree.terms.0.fraction_bits", "none", True
    )
    table = to_table(mixed)["tree"]
    assert (table["fraction_bits"], table["terms"]) == ("none", ["c", {"of": "0..3", "fraction_bits": 24}])


FILE = ParameterFile(
    "arch",
    {
        "P[f16,f16->f32]": Entry(
            "P[f16,f16->f32]", FUSED, "measured", "a run", "e1", notes=(("tree.zero_exponent", "any value"),),
            witnesses=(Witness((0x3C00, 0) * 8, (0,) * 16, 0x80000000, 1, note="shows it"),), origin="arch",
        ),
        "Q": Entry("Q", FMA, "published", "a manual", follows=("rounding", "daz"), covers=("clamp",), origin="arch"),
    },
    "tool 1", "here",
)  # fmt: skip


def test_files_round_trip(tmp_path: Path) -> None:
    text = to_text(FILE)
    assert from_text(text, "x") == FILE
    assert to_text(from_text(text, "x")) == text
    (tmp_path / "arch.toml").write_text(text)
    assert read_parameter_file(tmp_path / "arch.toml") == FILE
    assert FILE.digest == read_parameter_file(tmp_path / "arch.toml").digest
    assert replace(FILE, toolchain="tool 2").digest != FILE.digest


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "f.toml: schema is 2; this version of mmaprobe reads up to 1"),
        ("schema = 1\n", "", "f.toml: schema is None"),
        ('architecture = "arch"\n', "", "f.toml: key 'architecture' is missing"),
        ('basis = "measured"', 'basis = "felt"', "f.toml: P[f16,f16->f32]: basis 'felt'; it is one of measured"),
        ('evidence = "e1"\n', "", "f.toml: P[f16,f16->f32]: basis 'measured' needs the evidence id"),
        ("step = 8", "step = 9", "f.toml: P[f16,f16->f32]: datapath: a step of 9 lanes"),
        ("fraction_bits = 24\n", "", "f.toml: P[f16,f16->f32]: datapath.tree.fraction_bits: missing"),
        ('name = "Q"', 'name = "P[f16,f16->f32]"', "f.toml: P[f16,f16->f32] is there twice"),
        ('name = "Q"', 'nam = "Q"', "f.toml: a primitive without name: unknown key 'nam'; did you mean name"),
        ('"daz",', '"das",', "f.toml: Q: follows 'das'; it is one of rounding"),
        ('"clamp",', '"clasp",', "f.toml: Q: covers 'clasp'; it is one of clamp"),
        ('d = "00000001"', "", "f.toml: P[f16,f16->f32]: "),
        ('c = "80000000"', 'c = "8z"', "f.toml: P[f16,f16->f32]: invalid literal"),
        ("primitives = 2", "primitives = 3", "f.toml: truncated: it holds 2 primitives and its [end] says"),
        ("step = 8", "step = ", "f.toml: Invalid value (at line "),
    ],
)
def test_broken_files_are_refused_by_name_and_key(old: str, new: str, said: str) -> None:
    text = to_text(FILE)
    assert old in text
    with pytest.raises(UsageError, match="^" + re.escape(said)):
        from_text(text.replace(old, new), "f.toml")


def test_truncated_files_never_load_partly(tmp_path: Path) -> None:
    text = to_text(FILE).rstrip()
    for size in range(len(text)):
        with pytest.raises(UsageError, match=r"^f\.toml: "):
            from_text(text[:size], "f.toml")
    assert from_text(text, "f.toml") == FILE
    with pytest.raises(UsageError, match=r"no\.toml: No such file"):
        read_parameter_file(tmp_path / "no.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"b\.toml: not a text file"):
        read_parameter_file(tmp_path / "b.toml")


def test_entries_can_be_inherited() -> None:
    text = 'schema = 1\narchitecture = "new"\n[[primitive]]\nname = "Q"\nbasis = "predicted"\nsource = "s"\n'
    end = "[end]\nprimitives = 1\n"
    made = from_text(text + 'same_as = "arch"\n' + end, "n.toml", {"arch": FILE.entries})
    assert made.entries["Q"] == replace(FILE.entries["Q"], basis="predicted", source="s", covers=(), origin="new")
    for name, said in (("arhc", "did you mean arch"), ("arch", "arch knows no such primitive")):
        wrong = text.replace('"Q"', '"R"') + f'same_as = "{name}"\n{end}'
        with pytest.raises(UsageError, match=said):
            from_text(wrong, "n.toml", {"arch": FILE.entries})
    with pytest.raises(UsageError, match="needs either a datapath or same_as"):
        from_text(text + end, "n.toml")
    text = 'schema = 1\narchitecture = "new"\nsame_as = "arch"\nsource = "s"\n[end]\nprimitives = 0\n'
    with pytest.raises(UsageError, match=r"n\.toml: key 'basis' is missing"):
        from_text(text, "n.toml", {"arch": FILE.entries})
    with pytest.raises(UsageError, match=r"n\.toml: basis 'measured' needs"):
        from_text('basis = "measured"\n' + text, "n.toml", {"arch": FILE.entries})
    whole = from_text('basis = "predicted"\n' + text, "n.toml", {"arch": FILE.entries})
    first = whole.entries["P[f16,f16->f32]"]
    notes = FILE.entries["P[f16,f16->f32]"].notes
    assert first == Entry("P[f16,f16->f32]", FUSED, "predicted", "s", notes=notes, origin="new")
    assert whole.entries["Q"].follows == ("rounding", "daz")
    assert whole.entries["Q"].covers == ()  # another basis covers what it covers
    part = from_text('basis = "predicted"\nwithout = ["P*"]\n' + text, "n.toml", {"arch": FILE.entries})
    assert list(part.entries) == ["Q"]
    with pytest.raises(UsageError, match=re.escape("n.toml: without 'R*': no primitive of arch matches")):
        from_text('basis = "predicted"\nwithout = ["R*"]\n' + text, "n.toml", {"arch": FILE.entries})


def test_control_state_reaches_every_encode_and_operand() -> None:
    path = SAMPLES["tree of adds"]
    state = {"rounding": "rz", "ftz": "", "daz": ""}
    text = str(in_control_state(path, state, ("rounding", "ftz", "daz")))
    assert "RNE" not in text
    assert text.count("rounding='RZ'") == str(path).count("rounding='RNE'")
    assert text.count("subnormals='signed_zero'") == text.count("Encode(") + (2 if path.c is None else 3)
    assert in_control_state(path, state, ()) == path
    assert in_control_state(path, {}, ("rounding", "ftz", "daz")) == path


def test_chains_become_steps() -> None:
    def way(*lanes: tuple[int, ...]) -> Lowering:
        pieces = tuple(Application("P", part, "previous" if i else "c") for i, part in enumerate(lanes))
        return Lowering("op", "arch", "split", pieces, "tool")

    once = tuple(range(16))
    twice = tuple(range(16, 32))
    assert chain({"P": FUSED}, way(once)) is FUSED
    assert chain({"P": FUSED}, way(once, twice)) == replace(FUSED, k=32)
    assert chain({"P": FUSED}, way(twice, once)).steps[0] == tuple(range(16, 24))
    with pytest.raises(UsageError, match="has 16 lanes, not 8"):
        chain({"P": FUSED}, way(once[:8]))
    with pytest.raises(UsageError, match="cannot be chained"):
        chain({"P": replace(FUSED, result=Encode("f32"))}, way(once, twice))


def test_a_basis_that_covers_more_makes_no_other_parameters() -> None:
    """RDNA4's parts compute alike; of one of them it is recorded, with clamp too."""
    made = instruction("v_wmma_i32_16x16x16_iu8{clamp}", "rdna4")
    assert len(load("rdna4").entries) == 74
    assert [basis_for(part, made) for part in ("gfx1200", "gfx1201", "rdna4")] == ["predicted", "recorded", "predicted"]
    assert datapath_for("gfx1201", made) == datapath_for("rdna4", made)
