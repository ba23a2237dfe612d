"""A unit with another parameter against itself: what changes, where, and that the file of it is a device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases.report_pages import Page, sound
from mmaprobe.cli import main
from mmaprobe.errors import UsageError
from mmaprobe.parameters.lookup import load, parameters_of
from mmaprobe.survey.altered_parameters import altered, field_change, fields_that_are_said, primitives_named

UNIT = "HMMA.16816.F32[f16,f16->f32]"
TILE = "mma.m16n8k16.f32.f16.f16.f32"
ONE_LESS = ["diff", "sm_90a", "--set", "tree.fraction_bits=24", "-i", TILE]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["diff", *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_what_changes_is_said_with_its_vector(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ONE_LESS, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["remarks"] == ["edited is sm_90a with tree.fraction_bits=24 in 1 primitive"]
    (pair,) = document["pairs"]
    assert pair["work"] == UNIT
    (told,) = pair["differences"]
    assert told["values"] == {"sm_90a": "25", "edited": "24"}
    assert told["results"]["sm_90a"] != told["results"]["edited"]
    assert pair["families"]["conly"] == {"differing": 0, "vectors": 2000}
    assert pair["families"]["cancel"]["differing"] > 200
    assert main(ONE_LESS) == 1
    said = capsys.readouterr().out
    assert said.count("why: mmaprobe explain sm_90a ") == 1
    assert "explain edited" not in said


def test_the_written_file_is_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    assert main([*ONE_LESS, "--write", str(file)]) == 1
    assert f"mmaprobe explain sm_90a {TILE}" in capsys.readouterr().out
    own, shipped = parameters_of(str(file)), load("sm_90a")
    assert own.entries.keys() == shipped.entries.keys()
    assert [name for name, entry in own.entries.items() if entry.datapath != shipped.entries[name].datapath] == [UNIT]
    assert (own.entries[UNIT].basis, own.entries[UNIT].source) == ("predicted", "sm_90a with tree.fraction_bits=24")
    assert (own.entries[UNIT].witnesses, own.entries[UNIT].evidence, own.entries[UNIT].notes) == ((), "", ())
    assert main(["diff", str(file), "--set", "tree.fraction_bits=25", "-i", UNIT]) == 1
    assert f"edited is {file} with tree.fraction_bits=25 in 1 primitive" in capsys.readouterr().out


@pytest.mark.long
def test_it_is_a_page_too(tmp_path: Path) -> None:
    assert main([*ONE_LESS, "--html", str(tmp_path / "p.html")]) == 1
    page = Page((tmp_path / "p.html").read_text("utf-8"))
    sound(page, (tmp_path / "p.html").read_text("utf-8"))
    assert (page.attributes["data-pair"], page.attributes["data-difference"]) == (1, 1)
    assert page.attributes["data-family"] == 14
    assert "edited is sm_90a with tree.fraction_bits=24 in 1 primitive." in page.text
    assert "mmaprobe explain edited" not in page.text


def test_a_change_that_changes_nothing_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "sm_90a", "--set", "tree.zero_exponent=-140", "-i", "HMMA.16816.F32"]) == 0
    assert "the same function, proved: a zero's exponent" in capsys.readouterr().out


def test_primitives_by_every_name() -> None:
    file = load("sm_90a")
    assert primitives_named(file, UNIT) == primitives_named(file, TILE) == primitives_named(file, UNIT.split("[")[0])
    assert set(primitives_named(file, "HMMA.16816.*")) >= {UNIT, "HMMA.16816.F16[f16,f16->f16]"}
    assert primitives_named(file, "*") == list(file.entries)
    assert primitives_named(file, "mma.m16n8k32.f32.e4m3.e4m3.f32") == [UNIT]  # two of these emulate it


def test_of_several_those_change_that_can() -> None:
    file = load("sm_90a")
    changed = altered(file, [field_change("tree.fraction_bits=24")], "*", "sm_90a").entries
    assert UNIT in changed
    assert not any(name.startswith(("DMMA", "IMMA", "FFMA")) for name in changed)
    two = altered(file, [field_change("tree.fraction_bits=24"), field_change("tree.to.rounding=RNE")], UNIT, "sm_90a")
    tree = two.entries[UNIT].datapath.tree
    read = [field_change("special.nan=local"), field_change("special.quiet=false")]  # read once NaNs have payloads
    assert not altered(file, read, UNIT, "sm_90a").entries[UNIT].datapath.special.quiet
    assert (tree.terms[0].fraction_bits, two.entries[UNIT].datapath.root.rounding) == (24, "RNE")  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "step", "=8", "step="])
def test_a_change_is_a_field_and_a_value(text: str) -> None:
    with pytest.raises(UsageError, match="write FIELD=VALUE, such as"):
        field_change(text)


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "mine.toml")
    assert "did you mean tree.fraction_bits" in refused(capsys, "sm_90a", "--set", "tree.fractio_bits=24")
    assert "already; nothing would change" in refused(capsys, "sm_90a", "--set", "tree.fraction_bits=25", "-i", UNIT)
    assert "sm_80 would be a third" in refused(capsys, "sm_90a", "sm_80", "--set", "step=8")
    assert "--write keeps what --set changes" in refused(capsys, "sm_90a", "sm_80", "--write", file)
    assert "a parameter file's name ends in .toml" in refused(capsys, *ONE_LESS[1:], "--write", str(tmp_path / "mine"))
    assert "no instruction of sm_90a matches" in refused(capsys, "sm_90a", "--set", "step=8", "-i", "*zz")
    unread = "means nothing there: what this datapath computes does not read it"
    for change in ("special.quiet=false", "special.priority=c a b", "tree.carry=saturate", "tree.to.tininess=before"):
        assert unread in refused(capsys, "sm_90a", "-i", UNIT, "--set", change)
    said = refused(capsys, "sm_90a", "-i", TILE)
    assert "Name a second ARCH, or a change with --set FIELD=VALUE" in said
    assert fields_that_are_said(load("sm_90a"), TILE).endswith(
        "has tree.fraction_bits=25, tree.zero_exponent=-133, tree.to.rounding=RZ, tree.to.overflow=infinity, "
        "tree.to.zero=positive, tree.to.underflow=positive"
    )
    assert not list(tmp_path.iterdir())
