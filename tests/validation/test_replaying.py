"""Mismatches are saved, read and asked again: by file, by part of evidence, by recipe; broken files are one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from cases.sealing import replaced, reseal
from cases.validated import DOT, GPU, HMMA, MODEL, TILE, Changed
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.errors import CannotWriteError, NotHereError, UsageError
from mmaprobe.evidence.records import Finding, Mismatch, Retest, Witness
from mmaprobe.generators import Recipe, regenerate
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.table import to_table
from mmaprobe.validation.mismatch_file import Saved, read_saved, save_mismatches
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.replaying import (
    RECORDED,
    Replayed,
    device_of,
    differing_witnesses,
    replay_saved,
    replayed_code,
    runs_no_program,
)

MUTANT = f"mutant:sm_90a/{HMMA}/tree.to.rounding=RNE"


def saved(path: Path, dut: str, ref: str, form: str, vectors: int = 4000, **more: Any) -> Path:
    assert mmaprobe.validate(dut, ref, form, vectors, 1, save=path, **more).examples
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a mutant that rounds otherwise."""
    return saved(tmp_path_factory.mktemp("saved") / "m.json", MUTANT, GPU.name, TILE.id)


def outcomes(found: list[Replayed]) -> set[str]:
    return {each.outcome for each in found}


def test_a_file_is_asked_again_on_its_devices_and_on_others(file: Path) -> None:
    found = mmaprobe.replay(file)
    assert [each.smallest for each in found] == [False, True] * 4
    assert outcomes(found) == {"wrong again"}
    assert {(each.dut, each.ref, each.exit_code) for each in found} == {(MUTANT, GPU.name, 1)}
    assert all(each.now.retests[0].outcome == "stable" for each in found)
    right = mmaprobe.replay(str(file), GPU.name)
    assert (outcomes(right), replayed_code(right)) == ({"right now"}, 0)
    assert outcomes(mmaprobe.replay(file, ref=MUTANT)) == {"right now"}, "the reference changed"
    otherwise = mmaprobe.replay(file, f"misbehaving:zeros?of={GPU.name}")
    assert outcomes(otherwise) == {"wrong otherwise"}
    assert {each.now.vector.d for each in otherwise} == {0}
    unsteady = mmaprobe.replay(file, f"misbehaving:call?n=3&of={MUTANT.replace('&', '%26')}")
    assert (outcomes(unsteady), replayed_code(unsteady)) == ({"unstable"}, 5)


def test_without_its_reference_the_recorded_answers_judge(file: Path) -> None:
    document = json.loads(file.read_text())
    document["ref"] = "process:/nowhere/program"
    other = file.with_name("other.json")
    reseal(other, document)
    found = mmaprobe.replay(other)
    assert {each.ref for each in found} == {RECORDED}
    assert outcomes(found) == {"wrong again"}
    assert outcomes(mmaprobe.replay(other, GPU.name)) == {"right now"}


@pytest.mark.parametrize(("fault", "form", "note"), [
    ("place?n=10", TILE.id, "only in row 1, column 2 of its tile"),
    ("lanes?n=4", DOT.id, "only as number 3 of a batch"),
])  # fmt: skip
def test_a_mismatch_that_needs_its_place_is_asked_there(fault: str, form: str, note: str, tmp_path: Path) -> None:
    model = GPU.name if form == TILE.id else MODEL.name
    device = f"misbehaving:{fault}&of={model}"
    path = saved(tmp_path / "m.json", device, model, form)
    document = json.loads(path.read_text())["mismatches"][0]
    assert ("tile" in document) == (form == TILE.id)
    assert outcomes(mmaprobe.replay(path)) == {"wrong again"}
    assert mmaprobe.replay(path)[0].now.vector.note == note
    assert outcomes(mmaprobe.replay(path, model)) == {"right now"}
    recipe = document["recipe"]
    (found,) = mmaprobe.replay(recipe, device, model)
    assert (found.outcome, found.now.vector.note) == ("wrong again", note)


def test_a_block_is_kept_as_a_tile(tmp_path: Path) -> None:
    """Of an instruction of several blocks the tile is one block."""
    made = instruction("v_mfma_f32_4x4x4_16b_f16", "gfx942")
    model = open_device("model:gfx942")
    recipe = Recipe.of(made, "uniform", 1, 0, (2, 3))
    (vector,) = (Witness.of(regenerate(recipe, made), 0, "only in row 2, column 3 of its tile"),)
    expected = int(run_vectors(model, made, regenerate(recipe, made))[0])
    wrong = Mismatch(replace(vector, d=expected ^ 1), expected, str(recipe))
    save_mismatches(tmp_path / "m.json", Saved(made.id, model.name, model.name, "bits", "0", (wrong,)), made)
    document = json.loads((tmp_path / "m.json").read_text())
    assert [len(document["mismatches"][0]["tile"][name]) for name in ("a", "b", "c", "place")] == [4, 4, 4, 2]
    assert outcomes(mmaprobe.replay(tmp_path / "m.json")) == {"right now"}


def test_a_recipe_needs_both_devices() -> None:
    recipe = f"{DOT.id}/tie.1/0/17"
    (same,) = mmaprobe.replay(recipe, MODEL, MODEL)
    assert (same.outcome, same.exit_code, same.before) == ("right now", 0, None)
    for device, ref in ((None, None), (MODEL.name, None), (None, MODEL.name)):
        with pytest.raises(UsageError, match="name both, with --device and --ref"):
            mmaprobe.replay(recipe, device, ref)
    with pytest.raises(UsageError, match="unknown generator family 'tei'"):
        mmaprobe.replay(f"{DOT.id}/tei.1/0/17", MODEL, MODEL)
    with pytest.raises(NotHereError, match="does not run on"):
        mmaprobe.replay(f"{TILE.id}/tie.1/0/17", MODEL, GPU)


def test_nothing_wrong_is_nothing_written(tmp_path: Path) -> None:
    assert mmaprobe.validate(MODEL, MODEL, DOT, 500, 1, save=tmp_path / "m.json").exit_code == 0
    assert not list(tmp_path.iterdir())


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    for path in (tmp_path, tmp_path / "mine.json"):
        with pytest.raises(UsageError, match="is no mismatch file; choose another file with --save"):
            mmaprobe.validate("process:/nowhere", MODEL, DOT, 500, 1, save=path)
    with pytest.raises(CannotWriteError, match="choose another file with --save"):
        saved(Path("/proc/nowhere/m.json"), f"misbehaving:zeros?of={MODEL.name}", MODEL.name, DOT.id, 500)
    with pytest.raises(UsageError, match="save is 5; it must be a path"):
        mmaprobe.validate(MODEL, MODEL, DOT, 500, 1, save=5)  # type: ignore[arg-type]


def test_where_no_file_can_be_put_is_said_before_anything_is_compared(tmp_path: Path) -> None:
    """A folder that takes none, a file in place of a folder; what can be written leaves nothing without a mismatch."""
    (tmp_path / "file").touch()
    for path in ("/proc/saved.json", tmp_path / "file" / "saved.json"):
        with pytest.raises(CannotWriteError, match=r"^cannot write .*saved.json: .*; choose another file with --save$"):
            mmaprobe.validate(MODEL, MODEL, DOT, 10**12, 1, save=path)
    mmaprobe.validate(MODEL, MODEL, DOT, 500, 1, save=tmp_path / "new" / "saved.json")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(("name", "may"), [
    ("cpu", True), ("cuda:0", True), ("hip:1", True), ("model:sm_90a", True), ("model:mine.toml", True),
    ("misbehaving:zeros?of=model:sm_90a", True), ("misbehaving:zeros", True), ("misbehaving:zeros?of=cpu&p=1", True),
    ("replay:folder", True), ("cuda:0?pack=/tmp/pack", False), ("process:rm -rf /", False), ("nowhere:0", False),
    ("function:os:system", False), ("misbehaving:zeros?of=process:rm", False), ("", False), ("cpus", False),
    ("misbehaving:zeros?of=%70rocess%3Arm", False), ("misbehaving:zeros?of=misbehaving:zeros%3Fof=process:rm", False),
])  # fmt: skip
def test_no_file_chooses_what_is_run(name: str, may: bool, file: Path) -> None:
    assert runs_no_program(name) is may
    (held,) = read_saved(file)
    if not may:
        with pytest.raises(UsageError, match="which may run anything: name it with --device"):
            device_of(replace(held, dut=name))


# Evidence


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run of a device that is wrong on one pair of codes, which no derivation of its datapath meets."""
    folder = tmp_path_factory.mktemp("evidence") / "e"
    device = f"misbehaving:pair?seed=4&of={MODEL.name}"
    report = mmaprobe.run(device, instruction="x86.pmaddubsw", out=folder, vectors=200_000, seed=1)
    assert report.mismatches
    return folder


def test_a_part_of_evidence_is_asked_again(evidence: Path) -> None:
    (part,) = (evidence / "instructions").glob("*.json")
    found = mmaprobe.replay(part)
    assert outcomes(found) == {"wrong again"}
    assert {each.ref for each in found} == {RECORDED}, "nothing was derived"
    assert outcomes(mmaprobe.replay(evidence, MODEL.name)) == {"right now"}
    assert len(mmaprobe.replay(evidence, MODEL.name)) == len(found)


def test_a_derived_datapath_is_the_reference_again(file: Path) -> None:
    (held,) = read_saved(file)
    path = to_table(datapath_for("sm_90a", TILE))
    derived = replace(held, ref="the derived datapath", datapath={"datapath": path})
    found = replay_saved(derived, open_device(MUTANT), None, TILE)
    assert {(each.ref, each.outcome) for each in found} == {("the derived datapath", "wrong again")}


def test_a_part_outside_of_its_folder_or_changed_is_refused(evidence: Path, tmp_path: Path) -> None:
    (part,) = (evidence / "instructions").glob("*.json")
    (tmp_path / "part.json").write_bytes(part.read_bytes())
    with pytest.raises(UsageError, match="is no part of an evidence folder"):
        mmaprobe.replay(tmp_path / "part.json", MODEL.name)
    whole = part.read_bytes()
    document = json.loads(whole)
    document["mismatches"][0]["vector"]["a"] = ["0x1"]
    replaced(part, document)
    try:
        with pytest.raises(UsageError, match=r"mismatches\[0\] is no mismatch of x86.pmaddubsw"):
            mmaprobe.replay(part, MODEL.name)
    finally:
        replaced(part, json.loads(whole))


# Broken files


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        inner: Any = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to

    return change


FIRST = ("mismatches", 0)
HUGE = "0x" + "f" * 5000
WRONG: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_set("kind", to="a song"), "kind is 'a song'; it must be one of"),
    (_set("schema", to=9), "is newer than 1"),
    (_set("instruction", to="x86.nonsense"), "unknown instruction 'x86.nonsense'"),
    (_set("instruction", to=DOT.id), "is no mismatch of x86.vdpbf16ps"),
    (_set("nan", to="some"), "nan is 'some'"),
    (_set("dut", to="process:touch /tmp/x"), "the file names the device 'process:touch /tmp/x', which may run"),
    (_set("dut", to="model:sm_1"), "unknown architecture 'sm_1'"),
    (_set("mismatches", to={}), "must be a list"),
    (_set(*FIRST, "vector", "a", to=["0x1"]), "operand a must have shape"),
    (_set(*FIRST, "vector", "a", to=[]), "is no mismatch of"),
    (_set(*FIRST, "vector", "a", 0, to=HUGE), "is no mismatch of"),
    (_set(*FIRST, "vector", "a", 0, to="-0x1"), "is no mismatch of"),
    (_set(*FIRST, "vector", "d", to="0x100000000"), "d is outside its 32 bits"),
    (_set(*FIRST, "expected", to=HUGE), "d is outside its 32 bits"),
    (_set(*FIRST, "expected", to="red"), "must be a bit pattern"),
    (_set(*FIRST, "shrunk_expected", to=HUGE), "is no mismatch of"),
    (_set(*FIRST, "shrunk", "a", to=["0x1", "0x2"]), "is no mismatch of"),
    (_set(*FIRST, "recipe", to=f"{TILE.id}/tie.99/0/1@0,0"), "this package makes"),
    (_set(*FIRST, "recipe", to=f"{TILE.id}/tie.1/0/1@99,0"), "16 rows, 8 columns"),
    (_set(*FIRST, "retests", 0, "same", to=99), "has more wrong answers than were asked for"),
    (_set(*FIRST, "retests", 0, "asked", to=0), "has more wrong answers than were asked for"),
    (_set(*FIRST, "stable", to=False), "is False, but the retest was stable"),
    (_set(*FIRST, "slot", to=10**9), "slot is 1000000000"),
    (_set(*FIRST, "slot", to=-1), "slot is -1"),
    (_set(*FIRST, "tile", to={"place": [0]}), "must be a row and a column"),
    (_set(*FIRST, "tile", to={"place": [0, 0]}), "its tile has nothing, not a, b, c"),
    (_set(*FIRST, "tile", to={"place": [0, 0], "a": ["1"], "b": ["1"], "c": ["1"]}), "operand a must have shape"),
    (_set(*FIRST, "tile", to={"place": [0, 0], "a": ["zz"], "b": ["1"], "c": ["1"]}), "is no mismatch of"),
]


@pytest.mark.parametrize(("change", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_file_that_says_what_cannot_be_is_one_line(
    file: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(file.read_text())
    change(document)
    reseal(tmp_path / "m.json", document)
    assert main(["replay", str(tmp_path / "m.json")]) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert len(told.splitlines()) == 1
    assert len(told) < 700


@pytest.mark.parametrize(("content", "said"), [
    (lambda text: text[: len(text) // 2], "truncated, or not JSON"),
    (lambda text: text.replace('"nan": "bits"', '"nan": "any"'), "something was changed or damaged"),
    (lambda text: "[]", "must be a table"), (lambda text: "", "truncated"), (lambda text: "[" * 100_000, "not a JSON"),
    (lambda text: "\x00", "not JSON"),
])  # fmt: skip
def test_a_damaged_file_is_one_line(
    file: Path, tmp_path: Path, content: Callable[[str], str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.json").write_text(content(file.read_text()))
    assert main(["replay", str(tmp_path / "m.json")]) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert len(told.splitlines()) == 1


def test_what_is_not_here_ends_with_3_and_an_empty_file_with_4(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(file), "--device", "cuda:99"]) == 3
    assert main(["replay", str(tmp_path / "nowhere.json")]) == 2
    document = json.loads(file.read_text())
    document["mismatches"] = []
    reseal(tmp_path / "m.json", document)
    capsys.readouterr()
    assert main(["replay", str(tmp_path / "m.json")]) == 4
    assert "no mismatch is kept there" in capsys.readouterr().out


def test_the_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{TILE.id}: {MUTANT} against {GPU.name}"
    assert said[1].startswith("wrong again; it was 0x")
    assert any(line.startswith("wrong again, in its smallest form; ") for line in said)
    assert main(["replay", str(file), "-d", GPU.name]) == 0
    said = capsys.readouterr().out.splitlines()
    assert all(line.startswith("right now") for line in said[1:])
    assert main(["replay", str(file), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {each["outcome"] for each in document["rows"]} == {"wrong again"}


def test_a_file_reads_as_it_was_written(file: Path) -> None:
    (held,) = read_saved(file)
    summary = mmaprobe.validate(MUTANT, GPU.name, TILE.id, 4000, 1)
    assert held.mismatches == summary.examples
    assert (held.instruction, held.dut, held.ref, held.nan) == (TILE.id, MUTANT, GPU.name, "bits")
    assert held.version == mmaprobe.__version__


def test_what_an_outcome_is_called() -> None:
    before = Mismatch(Witness((1,), (1,), None, 5), 4, "r")
    now = replace(before, retests=(Retest(64, 64),))
    for known, found, outcome, code in (
        (before, now, "wrong again", 1), (None, now, "wrong again", 1),
        (before, replace(now, vector=replace(before.vector, d=6)), "wrong otherwise", 1),
        (before, replace(now, expected=3), "wrong otherwise", 1),
        (before, replace(now, stable=False, retests=(Retest(64, 0),)), "right now", 0),
        (before, replace(now, stable=False, retests=(Retest(64, 1),)), "unstable", 5),
    ):  # fmt: skip
        each = Replayed(known, found, "i", "dut", "ref")
        assert (each.outcome, each.exit_code) == (outcome, code)
    assert replayed_code([]) == 4


def test_the_witnesses_on_which_two_devices_differ() -> None:
    """Of those of a finding, the first two that the reference answers otherwise."""
    wrong = Changed(lambda made, batch, d: d ^ (batch.a[:, :, :1] == 2).astype(d.dtype))
    witnesses = tuple(Witness((a, 0), (0, 0), 0, int(a == 2)) for a in (1, 2, 3, 2, 2))
    finding = Finding("order", "exact", 1, "one", witnesses)
    found = list(differing_witnesses(finding.witnesses, Pair(wrong, MODEL, DOT), "the question order"))
    assert [mismatch.recipe for mismatch in found] == [f"witness {n} of the question order" for n in (1, 3)]
    assert all(mismatch.stable and (mismatch.vector.d, mismatch.expected) == (1, 0) for mismatch in found)


def test_a_codeword_of_nan_is_held_as_it_was_compared(tmp_path: Path) -> None:
    """Under nan=any two NaNs are equal when they are asked again, too."""

    def nan(made: Any, batch: Batch, d: Bits) -> Bits:
        return np.where(d == 0, d.dtype.type(0x7FC00000), d)

    wrong = Changed(nan)
    path = tmp_path / "m.json"
    summary = mmaprobe.validate(wrong, MODEL, DOT, 3000, 1, save=path, nan="any")
    assert summary.examples
    assert read_saved(path)[0].nan == "any"
    assert outcomes(mmaprobe.replay(path, wrong)) == {"wrong again"}
