"""The page of a run: it shows what the evidence holds, whatever that is, and asks nobody for anything."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from cases.report_pages import (
    CPU,
    FAULT,
    HOPPER,
    HOSTILE,
    SPARSE,
    STATES,
    TILE,
    WIDE,
    Page,
    evidence_counts,
    some_of,
    sound,
    wrong_run,
)
from cases.sealing import replaced, reseal
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.cli.report import PAGE
from mmaprobe.evidence.records import Finding, Mismatch, Witness
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.evidence.store import Header, Part, Store, part_name
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.literal import parse_vector
from mmaprobe.parameters.diff import in_words
from mmaprobe.parameters.lookup import datapath_for, parameters_of
from mmaprobe.parameters.neighbours import neighbourhood
from mmaprobe.parameters.table import from_table
from mmaprobe.report.datapath.window import windows
from mmaprobe.report.page.cards import cards_of
from mmaprobe.report.page.mismatch_view import mismatch_views
from mmaprobe.report.page.page import UNEQUAL
from mmaprobe.report.page.special_values import special_answers
from mmaprobe.report.page.tree_drawing import draw_tree
from mmaprobe.report.page.window_drawing import draw_window
from mmaprobe.report.run_summary import RowOutcome
from mmaprobe.runs.kept import kept_rows


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return some_of(HOPPER, tmp_path_factory.mktemp("derived") / "run", TILE, WIDE, SPARSE)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wrong_run(tmp_path_factory.mktemp("wrong") / "run")


def page_of(run: Path, to: Path, *words: str) -> Page:
    assert main(["report", str(run), "--html", str(to), *words]) == 0
    page = Page(to.read_text("utf-8"))
    sound(page, to.read_text("utf-8"))
    return page


def test_the_page_shows_what_the_evidence_holds(derived: Path, tmp_path: Path) -> None:
    """The sparse unit computes what the dense one does, which is drawn once: 16 and 8 lanes."""
    page, store = page_of(derived, tmp_path / "p.html"), Store.open(derived)
    assert page.attributes["data-rival"] == evidence_counts(derived)["rivals"] == 94 + 88
    assert page.attributes["data-mismatch"] == 0
    assert page.attributes["data-row"] == page.classes["card"] == 3
    assert page.classes["product"] == 16 + 8
    compared = "12,000,000 vectors of 3 instructions were compared: 0 mismatches"
    assert f"{compared}; 1 of 3 instructions is not what the shipped parameter file says." in page.text
    assert "in 8 steps of 1 lane; subnormals kept" in page.text
    assert page.attributes["data-finding"] == sum(len(part.findings) for part in store.parts.values()) > 50
    assert all(name in page.text for name in store.parts)
    assert store.header.run in page.text
    assert "NVIDIA H100 80GB HBM3" in page.text
    assert "mmaprobe run --device cuda:0 --seed 1" in page.text
    assert "A fault on 1 in 3,333,333 of such vectors, or more, is excluded (95 %)." in page.text


def test_a_vector_refutes_the_rivals_that_answer_otherwise(derived: Path) -> None:
    """Each row again, by the model of the rival alone."""
    store = Store.open(derived)
    card = next(card for card in cards_of(store, kept_rows(store)) if card.row.instruction == TILE)
    path, made = from_table((store.parts[TILE].datapath or {})["datapath"]), instruction(TILE, "sm_90a")
    view = card.parts[0].certificate
    assert view is not None
    assert not view.missing
    rows = {(row.field, row.rival): row for row in view.rows}
    for near in neighbourhood(path):
        row = rows[in_words(near.field), near.value]
        if row.verdict == "refuted":
            vector = parse_vector(made, [each.partition("=")[2] or each for each in row.vector.split()])
            assert int(evaluate_many([near.datapath], vector)[0, 0]) == int(row.rival_says, 16) != int(row.device, 16)
            assert int(evaluate_many([path], vector)[0, 0]) == int(row.device, 16)
        else:
            assert row.argument


def test_control_states_and_what_an_older_version_counted(tmp_path: Path) -> None:
    page = page_of(some_of(CPU, tmp_path / "run", *STATES), tmp_path / "p.html")
    assert page.attributes["data-part"] == len(STATES)
    assert page.attributes["data-row"] == page.classes["card"] == 1
    assert "names 61 rivals, the one that wrote the evidence named 40" in page.text
    assert page.attributes["data-rival"] == evidence_counts(tmp_path / "run")["rivals"] + 61 - 40
    assert page.text.count("Certificate of x86.dppd{") == len(STATES) - 1


def test_the_same_evidence_makes_the_same_page(derived: Path, tmp_path: Path) -> None:
    page_of(derived, tmp_path / "one.html")
    page_of(derived, tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_mismatches_with_marked_bits_and_both_sides(wrong: Path, tmp_path: Path) -> None:
    page = page_of(wrong, tmp_path / "p.html")
    (part,) = Store.open(wrong).parts.values()
    assert page.attributes["data-mismatch"] == len(part.mismatches) == evidence_counts(wrong)["mismatches"] > 0
    pairs = [(each.vector.d, each.expected) for each in part.mismatches]
    pairs += [(each.shrunk.d, each.shrunk_expected or 0) for each in part.mismatches if each.shrunk is not None]
    assert page.tags["mark"] == sum(2 * (one ^ other).bit_count() for one, other in pairs)
    assert page.text.count("answers as if fraction bits kept below the largest exponent of the sum 24, not 25") == len(
        part.mismatches
    )
    assert "17 terms, none cut; sum 0x1.ffffffp-7, RZ to f32 0x1.fffffep-7" in page.text
    assert FAULT in page.text


def test_every_outcome_has_its_words_on_top(wrong: Path, tmp_path: Path) -> None:
    page = page_of(wrong, tmp_path / "p.html")
    assert re.search(
        r"of 1 instruction were compared: [\d,]+ mismatches; 1 of 1 instructions is not equal\.", page.text
    )
    assert UNEQUAL.keys() == set(get_args(RowOutcome)) - {"equal"}


def test_what_another_model_expected_is_not_explained(wrong: Path) -> None:
    (part,) = Store.open(wrong).parts.values()
    made, path = instruction(TILE, "sm_90a"), datapath_for("sm_90a", instruction(TILE, "sm_90a"))
    bare = [replace(each, reference_says="", device_as="") for each in part.mismatches]
    assert all(each.reference_says and each.device_as for each in mismatch_views(bare, made, "sm_90a", path, TILE))
    odd = [replace(each, expected=each.expected ^ 1 << 30) for each in bare]
    found = mismatch_views(odd, made, "sm_90a", path, TILE)
    assert not any(each.reference_says or each.device_as for each in found)


def test_a_change_is_shown_beside_the_older_run(tmp_path: Path) -> None:
    """One instruction computes something else, one is there no more."""
    old = some_of(CPU, tmp_path / "old", STATES[0], "x86.pmaddwd")
    new = some_of(CPU, tmp_path / "new", STATES[0], **{STATES[0]: STATES[-1]})
    page = page_of(new, tmp_path / "p.html", "--against", str(old))
    assert page.attributes["data-side"] == page.attributes["data-change"] == 2
    assert "x86.pmaddwd: vanished" in page.text
    assert re.search(r"rounding of .*: RNE -> RZ", page.text)
    assert re.search(r"a=0x\w+,\S+ b=\S+ gave 0x\w+, now 0x\w+\.", page.text)
    same = page_of(old, tmp_path / "q.html", "--against", str(old))
    assert (same.attributes["data-side"], same.attributes["data-change"]) == (2, 0)
    assert "There is no difference in meaning" in same.text


def hostile_run(folder: Path) -> Store:
    """A run of which every text is hostile."""
    witness = Witness((1,), (1,), 1, 1, note=HOSTILE)
    mismatch = Mismatch(witness, 5, HOSTILE, shrunk=witness, shrunk_expected=4, kinds=(HOSTILE,), seen=HOSTILE,
                        reference_says=HOSTILE, device_as=HOSTILE, format="f32")  # fmt: skip
    families = {HOSTILE: {"vectors": 9, "mismatches": 1, "version": 1}}
    cells = {"version": 1, "sampled": 2, "cells": {HOSTILE: {HOSTILE: 2, f"{HOSTILE} none": 0}}, "unreachable": {}}
    validation = {"families": families, "planned": 9, "vectors": 9, "mismatches": 1, "ref": HOSTILE, "coverage": cells}
    finding = Finding(HOSTILE, "exact", {}, HOSTILE)
    store = Store.create(
        folder, Header(HOSTILE, {HOSTILE: HOSTILE, "model_name": HOSTILE, "architecture": HOSTILE}, HOSTILE, 1,
                       {HOSTILE: HOSTILE}, {HOSTILE: {HOSTILE: [HOSTILE]}, "instruction": HOSTILE}, {"begun": HOSTILE}),
    )  # fmt: skip
    store.save(Part(HOSTILE, "finished", (finding,), None, {"outcome": HOSTILE}, validation, 9, 1, (mismatch,)))
    reason = {"datapath": None, "reason": HOSTILE, "again": None}
    store.save(Part(HOSTILE + "2", "partial", (), reason, None, {"error": HOSTILE, "error_code": 5}))
    store.save_step(StepRecord("survey", HOSTILE, "partial", HOSTILE))
    return store


def test_nothing_of_hostile_evidence_becomes_markup(tmp_path: Path) -> None:
    """``sound`` finds neither a script nor an image; what steers is written out."""
    hostile_run(tmp_path / "run")
    page = page_of(tmp_path / "run", tmp_path / "p.html")
    assert page.text.count("<script>alert(1)</script>") > 20
    assert page.text.count("&\\u202e\\x1b[2J") > 20
    assert not re.search("[\u202e\x1b]", (tmp_path / "p.html").read_text("utf-8"))
    assert not any(name.startswith("on") for name in page.attributes)


@pytest.mark.parametrize(
    ("file", "keys", "value", "said"),
    [
        ("manifest.json", ("identity", "driver"), 580, "key identity.driver must be a text"),
        (part_name(TILE), ("comparison",), "same", "key comparison must be a table"),
        (part_name(TILE), ("witnesses", 0, "c"), "0x" + "f" * 40, "no 1 code of c"),
        (part_name(TILE), ("witnesses", 0, "b"), ["0x1"], "no 16 codes of b"),
        (
            part_name(TILE),
            ("datapath", "certificate", "refuted"),
            "<b>",
            "key datapath.certificate.refuted must be a whole number",
        ),
        (part_name(TILE), ("datapath", "certificate"), {"refuted": 1}, "key datapath.certificate.open is missing"),
        (part_name(TILE), ("datapath", "datapath", "k"), -1, f"{TILE}: datapath: k is -1"),
    ],
)
def test_contents_that_cannot_be_are_one_line_though_their_digests_fit(
    derived: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, keys: tuple[Any, ...], value: Any,
    said: str,
) -> None:  # fmt: skip
    run = tmp_path / "run"
    shutil.copytree(derived, run)
    document = json.loads((run / file).read_text())
    holder = document
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    (reseal if file == "manifest.json" else replaced)(run / file, document)
    assert said in refused(capsys, 2, str(run), "--html", str(tmp_path / "p.html"))
    assert not (tmp_path / "p.html").exists()


@pytest.mark.parametrize("architecture", ["sm_90a", "gfx942", "gfx1201", "x86-64", "aarch64"])
def test_every_lane_is_drawn_once_and_every_bit_that_is_said(architecture: str) -> None:
    for name, entry in list(parameters_of(architecture).entries.items())[::3]:
        path = entry.datapath
        tree = Page(draw_tree(path, "t"))
        assert tree.classes["product"] == path.k, name
        for window in windows(path):
            drawn = Page(draw_window(window, "w"))
            high, low = window.span
            shown = sum(min(row.size, max(row.top - low + 1, 0)) for row in window.rows)
            assert drawn.classes["bit"] == shown, name
            assert all(row.top <= high and row.kept + row.seen + row.lost == row.size for row in window.rows)


def test_a_window_says_what_is_kept() -> None:
    """Hopper keeps 25 bits below the largest exponent of f16 products (22 bits) and of c, and truncates the others."""
    (window,) = windows(datapath_for("sm_90a", instruction(TILE, "sm_90a")))
    assert window.last == -25
    assert [(row.name, row.shift, row.kept, row.seen, row.lost) for row in window.terms] == [
        ("c", 0, 24, 0, 0), ("c", 14, 12, 0, 12), ("c", 26, 0, 0, 24),
        ("a product", 0, 22, 0, 0), ("a product", 16, 11, 0, 11), ("a product", 27, 0, 0, 22),
    ]  # fmt: skip
    assert window.result is not None
    assert (window.result.kept, window.result.lost) == (24, 2)
    rounded = windows(datapath_for("x86-64", instruction("x86.vdpbf16ps")))
    assert {(row.kept, row.seen) for row in rounded[0].terms if row.name == "c"} == {(24, 0), (12, 12), (0, 24)}


def test_special_values_are_the_models_answers() -> None:
    said = {each.asked: each.code for each in special_answers(datapath_for("x86-64", instruction("x86.vdpbf16ps")))}
    assert said["infinity · 0"] == "0xffc00000"
    assert said["signalling NaN with payload 1, · 1"] == "0x7fc10000"
    assert said["the smallest number in c"] == "0x00000000"
    assert not special_answers(datapath_for("x86-64", instruction("x86.pmaddwd")))


def test_without_a_file_it_lies_in_the_run_and_without_the_option_it_is_printed(
    derived: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(derived), "--html"]) == 0
    assert f"{derived / PAGE}: " in capsys.readouterr().out
    assert main(["report", str(derived), "--html", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == str(derived / PAGE)
    assert (told["bytes"], told["mismatches"]) == ((derived / PAGE).stat().st_size, 0)
    (derived / PAGE).unlink()
    assert main(["report", str(derived)]) == 0
    assert "mma.sync" in capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    assert main(["report", *words]) == code
    said = capsys.readouterr().err
    assert said.startswith("mmaprobe: ")
    assert said.count("\n") == 1
    return said


def test_what_is_no_run_is_one_line(derived: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = str(tmp_path / "p.html")
    assert "manifest.json" in refused(capsys, 2, str(tmp_path / "absent"), "--html", page)
    whole = {file.relative_to(derived): file.read_bytes() for file in derived.rglob("*") if file.is_file()}
    cut = tmp_path / "cut"
    for name, content in whole.items():
        (cut / name).parent.mkdir(parents=True, exist_ok=True)
        (cut / name).write_bytes(content)
    part = cut / part_name(TILE)
    part.write_bytes(part.read_bytes()[:-100])
    assert part.name in refused(capsys, 2, str(cut), "--html", page)
    part.unlink()
    assert part.name in refused(capsys, 2, str(cut), "--html", page)
    (cut / "manifest.json").write_text("{")
    assert "manifest.json" in refused(capsys, 2, str(cut), "--html", page)
    Store.create(tmp_path / "empty", Header("cpu", {}, "0.1.0", 1))
    assert "tells of no instruction yet" in refused(capsys, 4, str(tmp_path / "empty"), "--html", page)
    assert "--html" in refused(capsys, 2, str(derived), "--against", str(derived))
    assert not Path(page).exists()


def test_a_place_that_takes_no_file_is_one_line(
    derived: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert "--html FILE" in refused(capsys, 6, str(derived), "--html", str(tmp_path / "file" / "p.html"))
    assert "is a folder" in refused(capsys, 2, str(derived), "--html", str(tmp_path))
    (tmp_path / "report.html").mkdir()
    assert "is a folder" in refused(capsys, 2, str(derived), "--html", str(tmp_path / "report.html"))
    (tmp_path / "report.html").rmdir()
    for name in ("page", "page.txt", "page.html.gz"):
        assert f"ends in .html: --html {tmp_path / name}.html" in refused(
            capsys, 2, str(derived), "--html", str(tmp_path / name)
        )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]


def test_without_jinja2_one_line_says_how_to_get_it(
    derived: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "pip install 'mmaprobe[report]'" in refused(capsys, 3, str(derived), "--html", str(tmp_path / "p.html"))
    assert not list(tmp_path.iterdir())


def test_an_id_goes_on_in_a_new_line_behind_what_parts_its_words(tmp_path: Path) -> None:
    """And its text is the same: what is copied from the page is the id."""
    page = tmp_path / "page.html"
    assert main(["report", str(wrong_run(tmp_path / "run")), "--html", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "mma.<wbr>sync.<wbr>aligned.<wbr>m16n8k16.<wbr>row.<wbr>col.<wbr>f32.<wbr>f16" in text
    assert re.search(r"a=<wbr>0x0\*13,<wbr>0x3400,<wbr>0x0", text)
    assert not re.search(r"\w<wbr>|<wbr>[^\w+*{-]", text.replace("_<wbr>", ""))
