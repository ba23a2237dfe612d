"""Parameter files: tables with axes, and the rows that architectures share."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from test_parameters import FMA, SAMPLES

from mmaprobe.catalog.architectures import Architectures
from mmaprobe.catalog.lookup import architectures
from mmaprobe.errors import UsageError
from mmaprobe.parameters import shared
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Operand, Products
from mmaprobe.parameters.expand_axes import expand
from mmaprobe.parameters.files import Entry, from_text, to_text
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.shared import entries_of
from mmaprobe.parameters.shared import parse_shared as parse_shared

DATA = Path(shared.__file__).parent / "data"

AXES = """
schema = 1
architecture = "arch"
[common]
us = "our own"
cut = { rounding = "RZ" }
[[primitive]]
name = "P.{A}{neg}[{a},{a}->{d},k{k}]"
axes = [
  [{ a = ["f16", "bf16"] }],
  [{ neg = "", sign = "keep" }, { neg = "{negA}", sign = "flip" }],
  [{ d = "f32", k = 4, to = "{cut}", from = "{us} 4" }],
]
basis = "published"
source = "{from} runs"
notes = { "tree.to" = "as {us} say" }
[primitive.datapath]
a = "{a}"
b = "{a}"
c = "{d}"
d = "{d}"
k = "{k}"
operand_a = { sign = "{sign}" }
tree = { node = "exact", terms = ["c", "0..3"], to = "{to}" }
[end]
primitives = 4
"""


def test_a_table_with_axes_is_many_primitives() -> None:
    made = from_text(AXES, "a.toml")
    names = [f"P.{a.upper()}{neg}[{a},{a}->f32,k4]" for a in ("f16", "bf16") for neg in ("", "{negA}")]
    assert list(made.entries) == names
    last = made.entries[names[3]]
    assert (last.source, last.notes) == ("our own 4 runs", (("tree.to", "as our own say"),))
    tree = Exact((Accumulator(), Products((0, 1, 2, 3))), Encode(rounding="RZ"))
    assert last.datapath == Datapath("bf16", "bf16", "f32", "f32", 4, tree, operand_a=Operand(sign="flip"))
    assert from_text(to_text(made), "b.toml") == made


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{from} runs", "{form} runs", "nothing binds {form}; did you mean from"),
        ("primitives = 4", "primitives = 1", "a.toml: truncated: it holds 4 primitives"),
        ('[{ a = ["f16", "bf16"] }]', '{ a = "f16" }', "axes: expected a list of lists of tables"),
        ("k = 4", 'k = "4"', "a.toml: P.F16[f16,f16->f32,k4]: datapath.k: expected int, got '4'"),
        ("{neg}[", "[", "a.toml: P.F16[f16,f16->f32,k4] is there twice"),
    ],
)
def test_wrong_axes_are_named(old: str, new: str, said: str) -> None:
    assert old in AXES
    with pytest.raises(UsageError, match=re.escape(said)):
        from_text(AXES.replace(old, new), "a.toml")


HERE = Architectures({"x": "", "y": "", "z": "", "w": ""}, {"two": ("x", "y")})
SHARED = """
schema = 1
[[primitive]]
name = "I{k}.{A}[{a}]"
architectures = ["two", "z"]
axes = [[{ k = 4, last = 3 }], [{ a = ["s8", "u8"] }]]
basis = "published"
source = "a manual of {architecture}"
datapath = { a = "{a}", b = "s8", c = "s32", d = "s32", k = "{k}", tree = { node = "exact", \
terms = ["c", "0..{last}"], to = { format = "s32", overflow = "wrap" } } }
[[primitive]]
name = "{of}.SP"
like = "{of}"
architectures = ["x"]
axes = [[{ of = ["P", "I4.S8[s8]", "unknown"] }]]
basis = "predicted"
source = "as {of}"
[end]
rows = 2
"""


def test_shared_rows_make_entries_of_the_architectures_they_name() -> None:
    own = {"P": Entry("P", FMA, "published", "a manual", follows=("daz",))}
    found = {name: entries_of(parse_shared(SHARED, "s.toml"), "s.toml", name, own, HERE) for name in "xyw"}
    assert list(found["y"]) == ["I4.S8[s8]", "I4.U8[u8]"]
    assert found["w"] == {}
    integer = found["x"]["I4.U8[u8]"]
    assert integer == Entry("I4.U8[u8]", SAMPLES["integer"], "published", "a manual of x", origin="x")
    alike = found["x"]["P.SP"]
    assert alike == Entry("P.SP", FMA, "predicted", "as P", follows=("daz",), origin="x")
    assert found["x"]["I4.S8[s8].SP"].datapath == replace(SAMPLES["integer"], a="s8")
    assert "unknown.SP" not in found["x"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "s.toml: schema is 2; this version of mmaprobe reads 1"),
        ("schema = 1", "schema = ", "s.toml: Invalid value"),
        ("rows = 2", "rows = 3", "s.toml: truncated: it holds 2 rows and its [end] says"),
        ('architectures = ["x"]', "", "s.toml, row 2: key 'architectures' is missing"),
        ('architectures = ["x"]', 'architectures = ["v"]', "s.toml, row 2: unknown architecture 'v'"),
        ("{last}", "{least}", "s.toml, row 1: nothing binds {least}; did you mean last"),
        ('like = "{of}"', 'alike = "{of}"', "s.toml, row 2: P.SP: unknown key 'alike'"),
        ('source = "as {of}"', 'same_as = "y"\nsource = ""', "s.toml, row 2: P.SP: needs either a datapath or same_as"),
        ("{of}.SP", "P", "s.toml, row 2: P is there twice"),
    ],
)
def test_broken_shared_rows_are_refused_by_file_and_row(old: str, new: str, said: str) -> None:
    assert old in SHARED
    own = {"P": Entry("P", FMA, "published", "a manual")}
    with pytest.raises(UsageError, match="^" + re.escape(said)):
        entries_of(parse_shared(SHARED.replace(old, new), "s.toml"), "s.toml", "x", own, HERE)


def test_an_architectures_own_file_is_stronger() -> None:
    """And what a whole file takes over from another does not hide what rows say of it."""
    assert load("sm_86").entries["HMMA.SP.16832.F32[f16,f16->f32]"].basis == "predicted"
    assert load("sm_86").entries["HMMA.16816.F32[f16,f16->f32]"].basis == "published"
    assert load("sm_80").entries["IMMA.16832.S8.U8[s8,u8->s32]"].basis == "published"
    assert load("sm_80").entries["IMMA.16832.S8.U8.SAT[s8,u8->s32]"].basis == "predicted"


def test_every_shared_row_is_an_entry_somewhere() -> None:
    """A row whose ``like`` no architecture knows would say nothing, unnoticed."""
    known = {name for architecture in architectures() for name in load(architecture).entries}
    files = sorted((DATA / "shared").glob("*.toml"))
    assert files
    for file in files:
        rows = tomllib.loads(file.read_text())["primitive"]
        made = {table["name"] for row in rows for table in expand(row, {"architecture": ""})}
        assert made <= known, file.name


@pytest.mark.parametrize("file", sorted(DATA.glob("*.toml")), ids=lambda file: file.stem)
def test_everything_common_is_used(file: Path) -> None:
    text = file.read_text()
    assert [name for name in tomllib.loads(text).get("common", {}) if f"{{{name}}}" not in text] == []
