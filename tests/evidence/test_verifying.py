"""``mmaprobe evidence verify``: what was written is whole, what was altered is 2, the verdict is that of the counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from cases.sealing import replaced, reseal
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.devices.function import open_function
from mmaprobe.devices.replay import record
from mmaprobe.evidence import files
from mmaprobe.evidence.corpus import write_corpus
from mmaprobe.evidence.gate_record import RECORD, keep_record
from mmaprobe.evidence.records import Mismatch, Witness
from mmaprobe.evidence.store import Header, Part, Store
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.table import to_table
from mmaprobe.probing import QUESTIONS, probe
from mmaprobe.report.tables.evidence import OTHER_STATES, UNNAMED, verify
from mmaprobe.showing import counted
from mmaprobe.toolchain.pack import write_pack

COMMITTED = sorted((Path(__file__).parents[2] / "validation" / "evidence").glob("x86-64+*"))
MODEL = "model:x86-64+intel"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "e"
    assert mmaprobe.run(MODEL, out=out, instruction="x86.pmadd*", vectors=2000, seed=3).exit_code == 0
    return out


@pytest.fixture
def folder(tmp_path: Path, made: Path) -> Path:
    return shutil.copytree(made, tmp_path / "e")


def test_what_a_run_wrote_is_whole_and_its_verdict_is_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", "verify", str(folder)]) == 0
    assert "evidence: equal; finished, 2 instructions, 0 mismatches in 4,000 vectors" in capsys.readouterr().out
    assert main(["evidence", "verify", "--json", str(folder)]) == 0
    (told,) = json.loads(capsys.readouterr().out)["rows"]
    assert {each["file"]: each["sha256"] for each in told["files"]} == {
        path.relative_to(folder).as_posix(): files.digest_of(path.read_bytes()) for path in folder.rglob("*.json")
    }


@pytest.mark.parametrize("committed", COMMITTED, ids=lambda path: path.name)
def test_committed_evidence_is_whole(committed: Path) -> None:
    told = verify(committed)
    assert (told.exit_code, [each for each in told.files if each.wrong]) == (0, [])


def test_every_altered_file_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (folder / "instructions").iterdir():
        path.write_text(path.read_text().replace('"finished"', '"partial"'))
    assert main(["evidence", "verify", str(folder)]) == 2
    assert len([each for each in verify(folder).files if each.wrong]) == 2
    assert "not what was written" in capsys.readouterr().out


PMADDWD = "instructions/x86.pmaddwd.json"


@pytest.mark.parametrize("bend", ["a count", "a digit", "a line", "swapped", "half", "missing"])
def test_the_verdict_names_the_bent_files_and_what_to_do(
    folder: Path, bend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below a table of hundreds of rows nobody looks for the one that matters."""
    path, other = folder / PMADDWD, folder / "instructions" / "x86.pmaddubsw.json"
    text, names = path.read_text(), [PMADDWD]
    if bend == "a count":
        path.write_text(text.replace('"vectors": 2000', '"vectors": 3000'))
    elif bend == "a digit":
        path.write_text(text.replace('"0x', '"0x1', 1))
    elif bend == "a line":
        path.write_text("\n".join(text.split("\n")[:5] + text.split("\n")[6:]))
    elif bend == "swapped":
        path.write_text(other.read_text())
        other.write_text(text)
        names.insert(0, "instructions/x86.pmaddubsw.json")
    elif bend == "half":
        path.write_text(text[: len(text) // 2])
    else:
        path.unlink()
    assert main(["evidence", "verify", str(folder)]) == 2
    *_, verdict, todo = capsys.readouterr().out.splitlines()
    count = f"{len(names)} of 3 files: {', '.join(names)}"
    assert verdict == f"{folder}: evidence: not what was written: {count}"
    assert todo.startswith(f"The other files: finished, {counted(2 - len(names), 'instruction')}, ")
    assert todo.endswith("or run anew with --out ANOTHER_FOLDER")


def test_evidence_without_its_manifest_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text()[:99])
    assert main(["evidence", "verify", str(folder)]) == 2
    told = capsys.readouterr().out.splitlines()
    assert told[-2] == f"{folder}: evidence: not what was written: 1 file: manifest.json"
    manifest.unlink()
    assert main(["evidence", "verify", str(folder)]) == 2
    assert "has instructions but no manifest.json" in capsys.readouterr().err


def test_a_verdict_is_a_word_and_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store.create(tmp_path / "e", Header("d", {}, "1", 1))
    store.finish()
    assert main(["evidence", "verify", str(tmp_path / "e")]) == 4
    assert "evidence: inconclusive, unfinished or unsealed; finished, 0 instructions" in capsys.readouterr().out


@pytest.mark.parametrize("codes", [{"a": ["0x1"]}, {"d": "0x100000000"}, {"c": "0x0"}])
def test_witnesses_have_the_shape_of_their_instruction(folder: Path, codes: dict[str, Any]) -> None:
    path = folder / "instructions" / "x86.pmaddwd.json"
    part = json.loads(path.read_text())
    part["witnesses"][0] |= codes
    replaced(path, part)
    (role,) = codes
    count = {"a": 2, "d": 1, "c": 0}[role]
    said = f"a witness of x86.pmaddwd has no {counted(count, 'code')} of {role} in its format"
    assert [each.wrong for each in verify(folder).files if each.wrong] == [said]


def test_the_verdict_of_every_end(tmp_path: Path) -> None:
    """Unfinished or empty: 4; mismatches 1; a failure 5; without digests 4; a strange file is said."""
    counted: dict[str, Any] = {"planned": 9, "vectors": 9, "mismatches": 2,
                               "families": {"uniform": {"vectors": 9, "mismatches": 2}}}  # fmt: skip
    parts = {
        4: Part("x86.pmaddwd", "partial"),
        1: Part("x86.pmaddwd", "finished", validation=counted, vectors=9, mismatch_count=2),
        5: Part("x86.pmaddwd", "partial", validation={"error": "it burns", "error_code": 5}),
    }
    for code, part in parts.items():
        store = Store.create(tmp_path / str(code), Header("d", {}, "1", code))
        store.save(part)
        store.finish()
        assert verify(store.path).exit_code == code
    (tmp_path / "1" / "instructions" / "y.json").write_text("{}")
    assert [each.says for each in verify(tmp_path / "1").files if each.file.endswith("y.json")] == [UNNAMED]
    assert main(["evidence", "verify", *(str(tmp_path / str(code)) for code in parts)]) == 5
    (tmp_path / "empty").mkdir()
    assert main(["evidence", "verify", str(tmp_path / "empty")]) == 2


def test_a_folder_of_runs_is_a_line_a_run(tmp_path: Path, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b/c", "d", "e"):
        shutil.copytree(made, tmp_path / name)
    assert main(["evidence", "verify", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [str(tmp_path / name) for name in ("a", "b/c", "d", "e")]
    assert all("evidence: equal; finished" in line for line in lines)
    path = tmp_path / "b" / "c" / PMADDWD
    path.write_text(path.read_text()[:50])
    (tmp_path / "d" / "manifest.json").unlink()
    assert main(["evidence", "verify", str(tmp_path)]) == 2
    lines = [line for line in capsys.readouterr().out.splitlines() if "not what was written" in line]
    assert [line.partition(":")[0] for line in lines] == [str(tmp_path / "b" / "c"), str(tmp_path / "d")]


def answers(folder: Path, change: Any) -> Any:
    """What is verified of PMADDWD's part, changed by who computes its digests anew."""
    path = folder / PMADDWD
    document = json.loads(path.read_text())
    change(document)
    replaced(path, document)
    return next(each for each in verify(folder).files if each.file == PMADDWD)


def test_the_derived_datapath_is_asked_every_witness_again(folder: Path) -> None:
    def change(document: Any) -> None:
        document["witnesses"][0]["d"] = "0x1234"

    told = answers(folder, change)
    assert "x86.pmaddwd: what was derived answers 0x" in told.wrong
    assert told.wrong.endswith("its witness says 0x1234")
    assert verify(folder).exit_code == 2


def test_an_answer_to_a_probe_that_is_not_what_was_derived_is_a_mismatch(folder: Path) -> None:
    """Not that it was altered: the device may have answered otherwise before the derivation asked it."""

    def change(document: Any) -> None:
        first = next(finding for finding in document["findings"] if finding["witnesses"])
        first["witnesses"][0]["d"] = "0x1234"

    assert answers(folder, change).says.endswith("; 1 of 2 answers to probes are not what was derived")
    assert verify(folder).exit_code == 1


def test_answers_in_other_control_states_are_those_of_other_parts(tmp_path: Path) -> None:
    assert OTHER_STATES in QUESTIONS
    made = instruction("x86.vfmadd.f32", "x86-64")
    found = probe(open_device(MODEL), made, [OTHER_STATES, "signed_zero"])
    assert all(finding.witnesses for finding in found.values())
    form = {"datapath": to_table(datapath_for("x86-64+intel", made))}
    store = Store.create(tmp_path / "e", Header("d", {"architecture": "x86-64+intel"}, "1", 1))
    store.save(Part(made.id, "partial", findings=tuple(found.values()), datapath=form))
    assert [each.wrong or each.says for each in verify(store.path).files][1].endswith(" witnesses")


@pytest.mark.parametrize(("d", "expected", "wrong", "says"), [
    (2, 2, "x86.pmaddwd: a mismatch gives 0x2 on both sides", ""),
    (1, 2, "", "1 witness"),  # 1*1 + 1*1, as the model says
    (2, 1, "", "; 1 mismatch whose expected answer neither datapath gives, derived or shipped"),
])  # fmt: skip
def test_a_mismatch_is_asked_again(tmp_path: Path, d: int, expected: int, wrong: str, says: str) -> None:
    vector = Witness((1, 1), (1, 1), None, d)
    counted: dict[str, Any] = {"planned": 9, "vectors": 9, "mismatches": 1,
                               "families": {"uniform": {"vectors": 9, "mismatches": 1}}}  # fmt: skip
    part = Part("x86.pmaddwd", "partial", validation=counted, vectors=9, mismatch_count=1,
                mismatches=(Mismatch(vector, expected, "r"),))  # fmt: skip
    store = Store.create(tmp_path / "e", Header("d", {"architecture": "x86-64"}, "1", 1))
    store.save(part)
    (told,) = (each for each in verify(store.path).files if each.file == PMADDWD)
    assert told.wrong == wrong
    assert told.says.endswith(says)


@pytest.mark.parametrize(("changes", "stale", "code"), [
    ([], [], 0), ([True, True], [], 0), ([True, False], [], 1), ([True], ["x"], 1),
])  # fmt: skip
def test_what_a_run_came_to_beside_its_baseline_is_how_it_ended(
    folder: Path, changes: list[bool], stale: list[str], code: int
) -> None:
    keep_record(Store.open(folder), {"changes": [{"accepted": each} for each in changes], "stale": stale})
    assert verify(folder).exit_code == code
    path = folder / RECORD
    path.write_text(path.read_text().replace("true", "false") + " ")
    assert verify(folder).exit_code == 2


def test_corpora_recordings_and_packs_are_verified(tmp_path: Path) -> None:
    dot = open_function("numpy:dot?k=4")
    ones = np.ones((3, 4), np.float32).view(np.uint32)
    write_corpus(tmp_path / "c", record(dot, [(dot.instruction, Batch(ones, ones))], "a licence"), "a test")
    assert (verify(tmp_path / "c").exit_code, verify(tmp_path / "c").text) == (0, "1 set, 3 vectors")
    (tmp_path / "c" / "LICENSE").write_text("another licence")
    assert verify(tmp_path / "c").exit_code == 2
    write_pack(tmp_path / "p", "sm_90a", "a toolchain", [])
    assert verify(tmp_path / "p").exit_code == 0
    listed = json.loads((tmp_path / "p" / "pack.json").read_text())
    (tmp_path / "p" / "pack.json").write_text(json.dumps(listed | {"architecture": "sm_80"}))
    assert verify(tmp_path / "p").exit_code == 2
    reseal(tmp_path / "p" / "pack.json", listed)
    assert verify(tmp_path / "p").exit_code == 0
    (tmp_path / "r.tar.gz").write_text("no archive")
    assert verify(tmp_path / "r.tar.gz").exit_code == 2


def test_a_bring_up_is_verified_with_all_that_it_hands_on(tmp_path: Path) -> None:
    given = {"instruction": "mma.m16n8k8.f32.f16.f16.f32", "vectors": 500, "seed": 3, "steps": ["layouts", "recording"]}
    mmaprobe.bring_up(open_device("model:sm_90a"), out=tmp_path / "e", **given)
    told = verify(tmp_path / "e")
    assert not [each for each in told.files if each.wrong or each.says == UNNAMED]
    assert {"summary.json", "recording.tar.gz", "steps/layouts.json"} <= {each.file for each in told.files}
    (tmp_path / "e" / "summary.json").write_text("{}")
    assert [each.file for each in verify(tmp_path / "e").files if each.wrong] == ["summary.json"]
    assert verify(tmp_path / "e" / "recording.tar.gz").exit_code == 0


def test_saved_mismatches_are_held_against_their_seal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A digit that was changed in what is sent to somebody else would be another answer of the device."""
    kept = tmp_path / "m.json"
    words = ["validate", "model:sm_90a", "model:sm_80", "mma.m16n8k16.f32.f16.f16.f32", "-n", "200", "--seed", "1"]
    assert main([*words, "--save", str(kept)]) == 1
    assert main(["evidence", "verify", str(kept)]) == 0
    assert "mismatches: whole; as it was written" in capsys.readouterr().out
    kept.write_text(kept.read_text("utf-8").replace('"same": 64', '"same": 63', 1), "utf-8")
    assert main(["evidence", "verify", str(kept)]) == 2
    assert "sha256" in capsys.readouterr().out
