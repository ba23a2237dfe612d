"""The page of two units' differences: it shows what was found, and nothing of it becomes markup."""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cases.report_pages import Page, sound
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.generators import generate
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.files import Entry, ParameterFile, to_text
from mmaprobe.parameters.lookup import datapath_for, load
from mmaprobe.parameters.mutate import mutate
from mmaprobe.report.page.differences import ALL_TOGETHER, page_of
from mmaprobe.survey.family_kills import SEED, VECTORS, family_kills
from mmaprobe.survey.unit_pairs import PairedUnits, paired, paired_primitives

UNIT = "HMMA.16816.F32[f16,f16->f32]"
WIDE = "DMMA.8x8x4[f64,f64->f64]"
AMPERE_HOPPER = ("sm_80", "sm_90a")


def page_at(to: Path, *words: str, code: int = 1) -> Page:
    assert main(["diff", *words, "--html", str(to)]) == code
    page = Page(to.read_text("utf-8"))
    sound(page, to.read_text("utf-8"))
    return page


def altered(entry: Entry, **fields: str) -> Entry:
    """An entry whose datapath has other values; ``__`` stands for a dot."""
    path = entry.datapath
    for field, value in fields.items():
        path = mutate(path, field.replace("__", "."), value)
    return replace(entry, datapath=path)


def file_of(*entries: Entry) -> ParameterFile:
    return ParameterFile("sm_90a", {entry.primitive: entry for entry in entries})


def written(path: Path, *entries: Entry) -> Path:
    path.write_text(to_text(file_of(*entries)), "utf-8")
    return path


@pytest.fixture(scope="module")
def generations() -> PairedUnits:
    return paired(*AMPERE_HOPPER)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("units") / "p.html"
    page_at(file, *AMPERE_HOPPER)
    return file.read_text("utf-8")


@pytest.mark.long
def test_it_shows_what_was_found(generations: PairedUnits, text: str) -> None:
    page, apart = Page(text), [pair for pair in generations.pairs if not pair.same]
    assert page.attributes["data-pair"] == len(apart) == 23
    assert page.attributes["data-same"] == len(generations.pairs) - len(apart) == 71
    assert page.attributes["data-alone"] == sum(map(len, generations.alone)) > 20
    assert page.attributes["data-row"] == page.classes["card"] == 8
    assert page.attributes["data-difference"] == 9
    assert page.tags["svg"] >= 2 * 8 * 2
    assert "94 pairs of instructions with the same formats and K: 71 the same function, 23 not." in page.text
    assert "(recorded)" in page.text
    assert "(measured)" in page.text


def test_marked_bits_are_those_that_differ(generations: PairedUnits, text: str) -> None:
    cards = page_of(generations, AMPERE_HOPPER, "again").cards
    shown = [view for card in cards for view in card.shown]
    assert all(view.both is not None for view in shown)
    answers = [[int(side.code, 16) for side in view.both.sides] for view in shown if view.both]
    assert Page(text).tags["mark"] == sum(2 * (first ^ second).bit_count() for first, second in answers)
    found = {(told.other, told.vector.d) for pair in generations.pairs for told in pair.told if told.vector}
    assert {(first, second) for first, second in answers} <= found


def test_no_two_cards_have_one_heading(tmp_path: Path) -> None:
    """Pairs of the same formats and K, such as the roundings of f64, are told apart by an instruction."""
    whole = page_at(tmp_path / "p.html", "sm_90a", "gfx942", "-i", "*f64*").text
    headings = re.findall(r"<h3 .*?</h3>", (tmp_path / "p.html").read_text("utf-8"))
    said = [Page(heading).text for heading in headings]
    assert len(set(said)) == len(said) == 4
    assert said[1] == "f64 x f64 + f64 -> f64, K = 4 mma.m8n8k4.f64.f64.f64.f64.rz"
    assert "Which NaN comes out" in whole


def test_its_commands_follow_the_vectors(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = re.findall(r"mmaprobe (explain .* c=0x\w+)", Page(text).text)
    assert len(lines) == 18  # both units of each of the nine
    for line in lines[:4]:
        assert main(shlex.split(line)) == 0
    assert "result" in capsys.readouterr().out


def test_families_are_counted(generations: PairedUnits) -> None:
    made = instruction("mma.m16n8k16.f32.f16.f16.f32", "sm_90a")
    old = datapath_for("sm_90a", made)
    new = mutate(old, "tree.fraction_bits", "24")
    counts = {each.family: each.differing for each in family_kills(old, new)}
    first, second = evaluate_many([old, new], generate(made, "cancel", SEED, 0, VECTORS))
    assert counts["cancel"] == int((first != second).sum()) > VECTORS // 20
    assert counts["multiplier"] == 0
    assert not any(each.differing for each in family_kills(old, old))


def test_primitives_of_two_files_are_paired_by_name() -> None:
    shipped = load("sm_90a").entries
    unit, wide = shipped[UNIT], shipped[WIDE]
    new = file_of(altered(unit, tree__fraction_bits="24", tree__to__rounding="RNE"), replace(wide, follows=("daz",)))
    found = paired_primitives(file_of(unit, wide, shipped["FFMA[f32,f32->f32]"]), new)
    assert [(pair.name, pair.same) for pair in found.pairs] == [(UNIT, False), (WIDE, False)]
    assert [told.field for told in found.pairs[0].told if told.vector] == ["tree.fraction_bits", "tree.to.rounding"]
    assert [(told.field, told.before, told.after) for told in found.pairs[1].told] == [("follows", "", "daz")]
    assert [[one.name for one in some] for some in found.alone] == [["FFMA[f32,f32->f32]"], []]
    page = page_of(found, ("sm_90a", "a/own.toml"), "again")
    assert page.names == ("sm_90a", "own.toml")
    assert page.cards[0].shown[0].explained[1].startswith("mmaprobe explain a/own.toml mma.m16n8k16.f32.f16.f16.f32 ")


def test_a_primitive_of_other_operands_has_no_vector(tmp_path: Path) -> None:
    shipped = load("sm_90a").entries
    other = replace(shipped["HMMA.1688.F32[f16,f16->f32]"], primitive=UNIT)
    page = page_at(tmp_path / "p.html", "sm_90a", str(written(tmp_path / "own.toml", other)))
    assert page.attributes["data-difference"] == 0
    assert page.attributes["data-silent"] > 0


def test_what_only_all_together_shows_is_headed_so() -> None:
    (pair,) = paired(*AMPERE_HOPPER, "mma.m16n8k8.f32.bf16.bf16.f32").pairs
    silent = replace(pair, told=tuple(replace(each, vector=None) for each in pair.told))
    (card,) = page_of(PairedUnits((silent,), ((), ())), AMPERE_HOPPER, "again").cards
    assert [(view.what, view.values) for view in card.shown] == [(ALL_TOGETHER, None)]
    assert len(card.silent) == len(pair.told)


def test_nothing_of_a_hostile_name_becomes_markup(tmp_path: Path) -> None:
    shipped = load("sm_90a").entries[UNIT]
    file = written(tmp_path / '"><img src=x onerror=alert(1)>&\u202e.toml', altered(shipped, tree__fraction_bits="24"))
    page = page_at(tmp_path / "p.html", "sm_90a", str(file))
    assert page.text.count('"><img src=x onerror=alert(1)>&\\u202e.toml') > 3
    assert "\u202e" not in (tmp_path / "p.html").read_text("utf-8")


def test_the_same_units_make_the_same_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.html"
    page_at(file, "x86-64+amd", "x86-64+intel")
    first = file.read_bytes()
    assert main(["diff", "x86-64+amd", "x86-64+intel", "--html", str(file)]) == 1
    assert file.read_bytes() == first
    capsys.readouterr()
    assert main(["diff", "x86-64+amd", "x86-64+intel", "--html", str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["page"], told["bytes"]) == (str(file), file.stat().st_size)
    assert (told["pairs"], told["differ"], told["differences"]) == (12, 1, 1)


def test_it_ends_as_the_command_does_without_it(tmp_path: Path) -> None:
    same = page_at(tmp_path / "p.html", "sm_80", "sm_89", code=0)
    assert same.attributes["data-pair"] == 0
    none = page_at(tmp_path / "q.html", "sm_89", "gfx942", "-i", "*e4m3*", code=4)
    assert none.attributes["data-alone"] > 0


def test_what_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["diff", "x86-64+amd", "x86-64+intel", "--html"]
    assert main([*words, str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder; name a file: --html {tmp_path / 'differences.html'}" in capsys.readouterr().err
    other = tmp_path / "p.txt"
    assert main([*words, str(other)]) == 2
    assert f"{other}: a page's name ends in .html: --html {other}.html" in capsys.readouterr().err
    mine = tmp_path / "mine.toml"
    assert main(["diff", "gfx942", "--set", "code=0x0", "--write", str(mine), "--html", str(other)]) == 2
    assert "name ends in .html" in capsys.readouterr().err
    assert not mine.exists()
    (tmp_path / "file").touch()
    assert main([*words, str(tmp_path / "file" / "p.html")]) == 6
    assert "choose another file with --html FILE" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main([*words, str(tmp_path / "p.html")]) == 3
    assert "pip install 'mmaprobe[report]'" in capsys.readouterr().err
