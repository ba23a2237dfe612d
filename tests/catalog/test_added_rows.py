"""Rows and architectures from outside of the package: found as ours are, or refused in one line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.catalog import lookup, outside, supplements
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import layout, open_reason
from mmaprobe.errors import UsageError

ACME = """\
schema = 1

[architectures]
acme1 = {}

[[row]]
family = "acme"
opcode = "acme.dot{k}"
axes = [[{ k = 4 }, { k = 8 }]]
m = 1
n = 1
k = "{k}"
a = "f16"
b = "f16"
c = "f32"
d = "f32"
[[row.on]]
architectures = ["acme1"]
primitive = "DOT{k}[{a},{b}->{d}]"
"""
LAYOUT = """
[[fragment]]
name = "acme.a"
operands = ["a"]
applies = { opcode = "acme.dot*" }
lanes = 4
at = { m = "0", k = "lane + 4*slot" }
source = "a manual"
"""


def add(text: str, origin: str = "acme.toml") -> None:
    outside.add(outside.parse_catalog(text, origin))


def test_rows_from_outside_are_found_as_ours_are() -> None:
    add(ACME)
    made = mmaprobe.instruction("acme.dot8")
    assert (made.k, made.a, made.d) == (8, "f16", "f32")
    assert lookup.lowering(made, "acme1").primitives == ("DOT8[f16,f16->f32]",)
    assert [each.id for each in lookup.match("acme1", "acme.*")] == ["acme.dot4", "acme.dot8"]
    assert "acme1" in lookup.architectures()


def test_what_ships_is_as_it_was() -> None:
    before = lookup.instructions("sm_90a"), lookup.instruction("x86.dpps")
    add(ACME)
    assert (lookup.instructions("sm_90a"), lookup.instruction("x86.dpps")) == before


def test_one_that_is_like_another_has_its_instructions_and_its_parameters() -> None:
    add('schema = 1\n[architectures]\nsm_130x = { like = "sm_121a" }\n')
    made = "mma.m16n8k16.f32.f16.f16.f32"
    assert mmaprobe.model("sm_130x", made).datapath == mmaprobe.model("sm_121a", made).datapath
    assert mmaprobe.device("model:sm_130x").supports(made)


def test_another_target_of_ours_stays_ours() -> None:
    before = lookup.parts("sm_121")
    add('schema = 1\n[architectures]\nsm_121b = { like = "sm_121a" }\n')
    assert lookup.architecture_base("sm_121") == "sm_121a"
    assert lookup.parts("sm_121") == before


def test_rows_whose_names_mean_other_architectures_are_other_rows() -> None:
    text = ACME.replace('["acme1"]', '["mine"]')
    add(f'{text}[where]\nmine = ["acme1"]\n')
    add(f'{text}[where]\nmine = ["x86-64"]\n', "other.toml")
    assert [name for name in ("acme1", "x86-64") if lookup.match(name, "acme.dot8")] == ["acme1", "x86-64"]


def test_a_row_adds_an_instruction_to_an_architecture_that_ships() -> None:
    add(ACME.replace('["acme1"]', '["x86-64"]'))
    assert lookup.lowering(lookup.instruction("acme.dot4"), "x86-64").primitives == ("DOT4[f16,f16->f32]",)
    assert "acme.dot4" in [each.id for each in lookup.instructions("x86-64")]


def test_the_same_twice_does_no_harm() -> None:
    add(ACME)
    before = supplements.added()
    add(ACME, "another.toml")
    assert supplements.added() == before


def test_layouts_come_with_the_rows() -> None:
    add(ACME + LAYOUT)
    found = layout(mmaprobe.instruction("acme.dot8"), "acme1", "a")
    assert (found.lanes, found.source) == (4, "a manual")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 2", "schema is 2; this version of mmaprobe reads 1"),
        ("[[row]]", "[[rows]]", "unknown key 'rows'; did you mean row"),
        ("[[row.on]]", "[[row.of]]", "unknown key 'of'; did you mean on"),
        ("m = 1\n", "mm = 1\n", "unknown key 'mm'; did you mean m"),
        ("m = 1\n", "", "key 'm' is missing"),
        ("m = 1\n", "m = 0\n", "shape 0x1x4"),
        ("m = 1\n", "m = -1\n", "m is '-1'; it must be a whole number"),
        ("m = 1\n", "m = 99999999\n", "an operand of 399,999,996 elements; at most 1,048,576"),
        ('a = "f16"', 'a = "f61"', "unknown format 'f61'; did you mean f64, f16"),
        ('a = "f16"', 'a = "f16"\nscale = "ue8m0"', "a scale format goes with a scale size"),
        ('a = "f16"', 'a = "f16"\nchunk = 3', "covers 2, 4 or 8 lanes"),
        ('a = "f16"', 'a = "f16"\nunordered = "perhaps"', "unordered is 'perhaps'; it must be true or false"),
        ('a = "f16"', 'a = "f16"\ncontrols = ["roundin"]', "unknown key 'roundin'; did you mean rounding"),
        ('opcode = "acme.dot{k}"', 'opcode = "acme.dot"', "acme.dot is there twice on acme1"),
        ('opcode = "acme.dot{k}"', 'opcode = "acme dot{k}"', "is no word of an id"),
        ('opcode = "acme.dot{k}"', "opcode = 3", "opcode is 3; it must be a text"),
        ('["acme1"]', '["acme7"]', "unknown architecture 'acme7'; did you mean acme1"),
        ('["acme1"]', "[]", "it is on no architecture"),
        ('["acme1"]', '["acme1", "x86-64"]\nstep = 3', "the lanes of acme.dot4 are not 0..3, each once"),
        ("primitive", 'kind = "nativ"\nprimitive', "kind 'nativ'; it is one of native, split, emulated"),
        ('"DOT{k}[', '"DOT {k}[', "is no name of a primitive"),
        ("{b}->", "{bb}->", "nothing binds 'bb'"),
        ("acme1 = {}", "acme1 = { kile = 3 }", "architecture acme1 is a dict of 1; it must be {} or"),
        ("acme1 = {}", '"acme 1" = {}', "is no name of an architecture"),
        ("acme1 = {}", 'acme1 = { like = "sm_0" }', "acme1 is like 'sm_0', which is not there before it"),
        ("acme1 = {}", 'acme1 = {}\nsm_80 = { like = "acme1" }', "architecture sm_80 is in what ships with mmaprobe"),
        ("[architectures]", '[groups]\nhopper = ["acme1"]\n[architectures]', "group hopper is in what ships"),
        ("[architectures]", "[groups]\nacme1 = []\n[architectures]", "group acme1 has the name of an architecture"),
        ("[architectures]", '[groups]\nsm_80 = ["acme1"]\n[architectures]', "sm_80: that name means something already"),
        ("acme1 = {}", "acme1 = {}\nhopper = {}", "architecture hopper: that name means something already"),
        ("acme1 = {}", "acme1 = {}\nh-200 = {}", "architecture h-200: that name means something already"),
        ("acme1 = {}", "acme1 = {}\nsm_121 = {}", "architecture sm_121: that name means something already"),
        ("[architectures]", "groups = 3\n[architectures]", "groups is 3; it must be a table"),
        ("[[row]]", "row = 3\n[x]", "unknown key 'x'"),
        ('family = "acme"', 'family = "acme"\naxes = 4\nranges = 5', "Cannot overwrite"),
        ("[[{ k = 4 }, { k = 8 }]]", '[[{ k = ["0..65535"], x = ["0..9"] }]]', "an axis has more than 65536 choices"),
        ("[[{ k = 4 }, { k = 8 }]]", '[[{ k = ["1..20000"] }]]', "it has more than 10,000 forms on acme1"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_line_and_adds_nothing(old: str, new: str, message: str) -> None:
    before = supplements.added()
    assert old in ACME
    with pytest.raises(UsageError) as caught:
        add(ACME.replace(old, new, 1))
    assert str(caught.value).startswith("acme.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert supplements.added() == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('d = "f32"', 'd = "f16"', "acme.dot4 is on acme1 already, in acme.toml; d is 'f16' here and 'f32' there"),
        ('"DOT{k}[', '"DAT{k}[', "acme.dot4 is on acme1 already, in acme.toml; applications is"),
        ("acme1 = {}", 'acme1 = { like = "sm_80" }', "architecture acme1 is in acme.toml already, where it is like no"),
    ],
)
def test_two_files_that_say_otherwise(old: str, new: str, message: str) -> None:
    add(ACME)
    before = supplements.added()
    with pytest.raises(UsageError) as caught:
        add(ACME.replace(old, new), "other.toml")
    assert str(caught.value).startswith("other.toml")
    assert message in str(caught.value)
    assert supplements.added() == before


def test_an_id_of_ours_cannot_be_changed() -> None:
    text = ACME.replace("acme.dot{k}", "x86.dpps").replace("[[{ k = 4 }, { k = 8 }]]", "[[{ k = 4 }]]")
    with pytest.raises(UsageError, match=r"x86\.dpps is on x86-64 already, in cpu\.toml; .* here and .* there"):
        add(text.replace('["acme1"]', '["x86-64"]'))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("applies = { opcode", "applies = { opcod", "unknown key 'opcod'; did you mean opcode"),
        ('applies = { opcode = "acme.dot*" }\n', "", "acme.a: key 'applies' is missing"),
        ('at = { m = "0", k = "lane + 4*slot" }\n', "", "acme.a: key 'at' is missing"),
        ("lanes = 4", "lanes = 4\ncases = 'none'", "nothing is called 'none'"),
        ('operands = ["a"]', 'operands = "a"', "acme.a: operands is 'a', which is no list"),
        ("[[fragment]]", "[[absent]]", "acme.a: key 'reason' is missing"),
        ("lanes = 4", "lones = 4", "unknown key 'lones'; did you mean lanes"),
    ],
)
def test_a_wrong_layout(old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^acme\.toml") as caught:
        add(ACME + LAYOUT.replace(old, new))
    assert message in str(caught.value)
    assert not any("row" in each.data and each.origin == "acme.toml" for each in supplements.added())


def test_a_layout_from_outside_changes_none_of_ours() -> None:
    """Whatever it says that it applies to."""
    wanted = mmaprobe.instruction("mma.m16n8k16.f32.f16.f16.f32")
    before = layout(wanted, "sm_80", "a")
    everywhere = LAYOUT.replace('{ opcode = "acme.dot*" }', "{}")
    add(f"{ACME}{everywhere}[[container]]\napplies = {{}}\nbits = 4\n")
    assert layout(wanted, "sm_80", "a") == before
    add('schema = 1\n[[absent]]\nname = "b"\napplies = {}\nstatus = "open"\nreason = "none"\n', "other.toml")
    assert layout(wanted, "sm_80", "a") == before
    assert not open_reason(wanted, "sm_80")


def test_a_layout_without_a_formula_is_one_line() -> None:
    add(ACME + LAYOUT.replace('m = "0", ', ""))
    with pytest.raises(UsageError, match=r"^acme\.toml, acme\.a: acme\.dot8: 'm' is missing$"):
        layout(mmaprobe.instruction("acme.dot8"), "acme1", "a")


@pytest.mark.parametrize(("text", "message"), [(None, "No such file"), (b"\xff\xfe", "not a text file")])
def test_a_file_that_cannot_be_read(text: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "acme.toml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(UsageError, match=message):
        mmaprobe.add_catalog(path)


def test_what_is_carried_along_is_read_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of an architecture, with what it is told of with, and nothing else."""
    add(ACME.replace("acme1 = {}", "acme0 = {}").replace('"acme1"', '"acme0"'))
    add('schema = 1\n[architectures]\nacme1 = { like = "acme0" }\n', "like.toml")
    add(ACME.replace("acme", "other"), "other.toml")
    assert outside.carried("x86-64") == ""
    path = tmp_path / "carried.toml"
    path.write_text(outside.carried("acme1"), "utf-8")
    assert "other" not in path.read_text("utf-8")
    monkeypatch.setattr(supplements, "_ADDED", [])
    mmaprobe.add_catalog(path)
    assert [each.id for each in lookup.instructions("acme1")] == ["acme.dot4", "acme.dot8"]
    assert tomllib.loads(outside.carried("acme1")) == tomllib.loads(path.read_text("utf-8"))


def test_an_instruction_that_a_device_made_is_the_same_in_the_catalog() -> None:
    pairs = (("format", "f16"), ("k", "{4}"))
    made = Instruction(
        "acme.own{format=f16,k={4}}", "acme.own", "own", 2, 3, 8, "f16", "bf16", None, "f32", pairs, chunk=4,
        scale="ue8m0", scale_size=4, controls=("daz",), saturates=True, unordered=True, source="a page",
    )  # fmt: skip
    outside.add_instruction(made, "own", "a device")
    assert lookup.instructions("own") == (made,)
    assert lookup.lowering(made, "own").primitives == (made.id,)
