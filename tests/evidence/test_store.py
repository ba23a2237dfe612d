"""The evidence folder: round trips, resuming, and what a full disk, an interrupt or a stranger leaves."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases.sealing import replaced, reseal
from mmaprobe.errors import CannotWriteError, UsageError
from mmaprobe.evidence import files, records_json
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Finding, Mismatch, Retest, Witness
from mmaprobe.evidence.store import Header, Part, Store, execution

WITNESS = Witness((0x3F80, 0), (1, 0xFFFF), 0x7FC00001, 0xFFC00000, (127,), (128,), (0x4, 0x9), "a quiet NaN")
BARE = Witness((1,), (2,), None, 2)
FINDING = Finding("nan", "bounded", {"first": ["a0", "c"], "code": 4290772992, "bits": 2.5}, "x", (WITNESS, BARE), 3, 2)
MISMATCH = Mismatch(WITNESS, 5, "x86.dpps/uniform.1/7/12", False, BARE, 0)
EXAMINED = replace(
    MISMATCH, retests=(Retest(64, 3, 1), Retest(64, 0, 0, "core 3")), kinds=("1 ulp",), seen="core 1",
    reference_says="sum 0", device_as="rounding RZ, not RNE", slot=5, format="f32",
)  # fmt: skip
HEADER = Header("cpu", {"model": "some CPU"}, "0.1.0", 7, {"gcc": "12"}, {"vectors": 100})
PART = Part(
    "x86.vfmadd.f32{daz,rounding=rz}", "finished", (FINDING,), {"k": 1, "tree": {"node": "fma"}}, {"outcome": "same"},
    {"families": {"uniform": {"vectors": 60, "mismatches": 0}, "ties": {"vectors": 40, "mismatches": 1}},
     "planned": 100, "vectors": 100, "mismatches": 1}, 100, 1, (MISMATCH,), (WITNESS,),
)  # fmt: skip


def through_text(value: Any) -> FileValue:
    return FileValue(Path("x.json"), "", json.loads(files.json_text(value)))


@pytest.mark.parametrize("witness", [WITNESS, BARE])
def test_records_survive_a_round_trip(witness: Witness) -> None:
    assert records_json.witness_from_json(through_text(records_json.witness_to_json(witness))) == witness
    mismatch = Mismatch(witness, 1, "r")
    assert records_json.mismatch_from_json(through_text(records_json.mismatch_to_json(mismatch))) == mismatch


def test_findings_and_mismatches_survive_a_round_trip() -> None:
    assert records_json.finding_from_json(through_text(records_json.finding_to_json(FINDING))) == FINDING
    for mismatch in (MISMATCH, EXAMINED):
        assert records_json.mismatch_from_json(through_text(records_json.mismatch_to_json(mismatch))) == mismatch


def test_a_mismatch_of_an_older_version_has_nothing_of_what_it_did_not_know() -> None:
    kept = records_json.mismatch_to_json(MISMATCH)
    assert set(kept) == {"vector", "expected", "recipe", "stable", "shrunk", "shrunk_expected"}
    assert set(records_json.mismatch_to_json(EXAMINED)) - set(kept) == {
        "retests", "kinds", "seen", "reference_says", "device_as", "slot", "format",
    }  # fmt: skip


@pytest.mark.parametrize(("retest", "stable", "said"), [
    ({"asked": 4, "same": 3, "other": 2}, False, "has more wrong answers than were asked for"),
    ({"asked": 4, "same": -1, "other": 2}, False, "or fewer than none"),
    ({"asked": 4, "same": 4, "other": 0}, False, "is False, but the retest was stable"),
    ({"asked": 4, "same": 0, "other": 0}, True, "is True, but the retest was gone"),
])  # fmt: skip
def test_a_retest_must_add_up(retest: dict[str, int], stable: bool, said: str) -> None:
    kept = records_json.mismatch_to_json(MISMATCH) | {"retests": [retest], "stable": stable}
    with pytest.raises(UsageError, match=said):
        records_json.mismatch_from_json(through_text(kept))


def test_answers_become_plain_json_or_are_refused() -> None:
    assert records_json.json_value({"a": (np.int64(1), [np.True_])}) == {"a": [1, [True]]}
    for bad in (float("nan"), object(), {1: 2}):
        with pytest.raises(UsageError, match="value: a"):
            records_json.json_value(bad)
    with pytest.raises(UsageError, match=r"the answer to tree\.x: a set"):
        records_json.finding_to_json(Finding("tree", "exact", {"x": {1}}, ""))


def test_a_saved_run_opens_equal_and_is_deterministic_text(tmp_path: Path) -> None:
    for name in ("one", "two"):
        store = Store.create(tmp_path / name, HEADER)
        store.save(PART)
        store.save(Part("x86.dpps", "partial"))
        store.finish()
    again = Store.open(tmp_path / "one")
    assert (again.header, again.parts, again.finished) == (HEADER, store.parts, True)
    written = {p.relative_to(tmp_path / "one"): p.read_bytes() for p in (tmp_path / "one").rglob("*.json")}
    assert len(written) == 3
    assert all((tmp_path / "two" / name).read_bytes() == content for name, content in written.items())
    manifest = json.loads(written[Path("manifest.json")])
    assert manifest["counts"] == {"parts": 2, "vectors": 100, "mismatches": 1}
    assert all((tmp_path / "one" / part["file"]).is_file() for part in manifest["parts"].values())


def test_a_run_resumes_and_a_later_part_replaces_an_earlier_one(tmp_path: Path) -> None:
    Store.create(tmp_path, HEADER).save(Part(PART.instruction, "partial"))
    store = Store.open(tmp_path)
    assert not store.is_finished(PART.instruction)
    assert not store.is_finished("x86.dpps")
    store.save(PART)
    assert Store.open(tmp_path).parts == {PART.instruction: PART}
    assert Store.open(tmp_path).is_finished(PART.instruction)


def test_a_second_run_does_not_overwrite_the_first(tmp_path: Path) -> None:
    Store.create(tmp_path, HEADER)
    with pytest.raises(UsageError, match="--resume"):
        Store.create(tmp_path, HEADER)


def test_the_run_id_names_device_version_seed_settings_and_execution() -> None:
    same = Header("cpu", {"model": "some CPU"}, "0.1.0", 7, {"gcc": "12"}, {"vectors": 100})
    other = Header("cpu", {"model": "some CPU"}, "0.1.0", 8, {"gcc": "12"}, {"vectors": 100})
    assert len({HEADER.run, same.run}) == 1
    assert other.run != HEADER.run
    again = [replace(HEADER, execution=execution(), run="") for _ in range(2)]
    assert len({HEADER.run, *(each.run for each in again)}) == 3


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Path]:
    """An evidence folder with one part: (folder, the part's file)."""
    return tmp_path, Store.create(tmp_path, HEADER).save(PART)


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        ("kind", "something else", "kind"),
        ("schema", 99, "schema is 99; this package reads up to 2"),
        ("run", "0" * 12, "run"),
        ("instruction", "x86.dpps", "instruction"),
        ("status", "half", "status"),
        ("vectors", True, "vectors must be a whole number"),
        ("datapath", 5, "datapath must be a table"),
        ("witnesses", [{"d": "zz", "note": ""}], r"witnesses\[0\].d must be a bit pattern"),
        ("findings", [{"question": "q"}], r"findings\[0\].status is missing"),
    ],
)
def test_a_foreign_part_is_refused_by_file_and_key(saved: tuple[Path, Path], key: str, value: Any, names: str) -> None:
    folder, part = saved
    replaced(part, json.loads(part.read_text()) | {key: value})
    with pytest.raises(UsageError, match=names) as caught:
        Store.open(folder)
    assert str(part) in str(caught.value)


@pytest.mark.parametrize("keep", [0, 1, 100, -2])
def test_a_truncated_part_or_manifest_is_refused_by_file(saved: tuple[Path, Path], keep: int) -> None:
    folder, part = saved
    for path, says in ((part, "altered, damaged"), (folder / "manifest.json", "truncated, or not JSON")):
        whole = path.read_bytes()
        path.write_bytes(whole[:keep])
        with pytest.raises(UsageError, match=says) as caught:
            Store.open(folder)
        assert str(path) in str(caught.value)
        path.write_bytes(b"\xff\xfe" + bytes(100))
        with pytest.raises(UsageError, match="not"):
            Store.open(folder)
        path.write_bytes(whole)
    part.unlink()
    with pytest.raises(UsageError, match="No such file"):
        Store.open(folder)


BENT = {
    "its status": lambda part: part | {"status": "partial"},
    "no mismatches": lambda part: part | {"mismatch_count": 0},
    "none shown": lambda part: part | {"mismatches": []},
    "no families": lambda part: part | {"validation": {}},
    "its seal": lambda part: part | {"sha256": "0" * 64},
    "an error": lambda part: part | {"validation": part["validation"] | {"error_code": 0}},
    "a witness": lambda part: part | {"witnesses": []},
}  # fmt: skip


@pytest.mark.parametrize("bent", BENT)
def test_a_part_that_was_altered_is_refused(saved: tuple[Path, Path], bent: str) -> None:
    folder, part = saved
    part.write_text(files.json_text(BENT[bent](json.loads(part.read_text()))))
    with pytest.raises(UsageError, match=r"is not the file that manifest\.json names: altered") as caught:
        Store.open(folder)
    assert str(part) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"mismatch_count": 0}, "mismatch_count is 0, but the families of generators make 1"),
        ({"vectors": 10**9}, r"vectors is 1,000,000,000, but the families of generators make 100"),
        ({"validation": {}}, "vectors is 100, but the families of generators make 0"),
        ({"mismatches": [{}, {}]}, "mismatches"),
        ({"status": "partial"}, "status is 'finished', but .* says 'partial'"),
    ],
)
def test_counts_that_do_not_add_up_are_refused(saved: tuple[Path, Path], change: dict[str, Any], names: str) -> None:
    """Even where somebody computed the digests anew."""
    folder, part = saved
    replaced(part, json.loads(part.read_text()) | change)
    with pytest.raises(UsageError, match=names):
        Store.open(folder)


@pytest.mark.parametrize("which", ["vectors", "mismatches", "planned"])
def test_counts_of_a_run_that_do_not_add_up_are_refused(saved: tuple[Path, Path], which: str) -> None:
    folder, part = saved
    document = json.loads(part.read_text())
    document["validation"][which] = 0
    replaced(part, document)
    with pytest.raises(UsageError, match=rf"validation\.{which} is"):
        Store.open(folder)


def test_a_verdict_is_what_the_counts_make() -> None:
    """``exit_code`` says nothing, whoever writes it."""
    stable = replace(MISMATCH, stable=True)
    codes = {
        0: Part("x", "finished", vectors=10),
        1: Part("x", "finished", vectors=10, mismatch_count=3, mismatches=(stable,)),
        4: Part("x", "finished"),
        5: Part("x", "finished", vectors=10, mismatch_count=3, mismatches=(MISMATCH,)),
    }
    for lie in ({}, {"exit_code": 0}):
        assert {code: replace(part, validation=lie).exit_code for code, part in codes.items()} == {n: n for n in codes}
    underived: dict[str, Any] = {"datapath": {"datapath": None, "again": None}, "vectors": 10}
    assert Part("x", "finished", **underived).exit_code == 4
    assert Part("x", "finished", vectors=10, datapath={"again": {}}).exit_code == 5
    for code, expected in ((3, 3), (0, 5), (None, 5)):
        assert Part("x", "partial", vectors=10, validation={"error": "x", "error_code": code}).exit_code == expected


@pytest.mark.parametrize("key", ["seed", "version", "device", "run", "status", "counts", "parts", "files", "schema"])
def test_a_manifest_that_was_altered_is_refused(saved: tuple[Path, Path], key: str) -> None:
    folder, _ = saved
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    changed = {"schema": 1}.get(key, {} if isinstance(manifest[key], dict) else type(manifest[key])(1))
    path.write_text(files.json_text(manifest | {key: changed}))
    with pytest.raises(UsageError, match=r"manifest\.json: key"):
        Store.open(folder)


def test_a_manifest_without_its_seal_or_with_another_run_is_refused(saved: tuple[Path, Path]) -> None:
    folder, _ = saved
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in manifest.items() if key != "sha256"}))
    with pytest.raises(UsageError, match="sha256 is missing"):
        Store.open(folder)
    for change in ({"run": "0" * 12}, {"seed": 8}, {"execution": {"nonce": "1"}}):
        reseal(path, manifest | change)
        with pytest.raises(UsageError, match=r"key run is not \w{12}, the id"):
            Store.open(folder)


def test_a_part_of_another_run_is_refused(tmp_path: Path) -> None:
    """Of the same settings, with the same counts."""
    parts = [Store.create(tmp_path / name, replace(HEADER, execution=execution(), run="")).save(PART) for name in "ab"]
    parts[0].write_bytes(parts[1].read_bytes())
    with pytest.raises(UsageError, match="of another run"):
        Store.open(tmp_path / "a")
    replaced(parts[0], json.loads(parts[1].read_text()))
    with pytest.raises(UsageError, match=r"key run is .* but the manifest's run is"):
        Store.open(tmp_path / "a")


def test_a_key_that_occurs_twice_is_refused(saved: tuple[Path, Path]) -> None:
    folder, _ = saved
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 7', '"seed": 7, "seed": 7'))
    with pytest.raises(UsageError, match="a key occurs twice"):
        Store.open(folder)


@pytest.mark.parametrize("at", range(1, 5))
def test_a_kill_between_any_two_files_leaves_a_folder_that_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Of a part that is written again the old one is there or the new one, whole, and nothing else is taken for it."""
    store = Store.create(tmp_path, HEADER)
    old, new = Part(PART.instruction, "partial"), PART
    store.save(old)
    monkeypatch.setattr(os, "replace", Raises(os.replace, at, SystemError("killed")))
    for part in (new, Part("x86.dpps", "partial")):
        with pytest.raises(SystemError) if at < 4 or part is not new else nullcontext():
            store.save(part)
        if at < 4:
            break
    monkeypatch.undo()
    again = Store.open(tmp_path)
    assert again.parts == {PART.instruction: old if at < 3 else new}
    again.save(new)
    again.finish()
    assert "next" not in json.loads((tmp_path / "manifest.json").read_text())
    assert Store.open(tmp_path).parts == {PART.instruction: new}


def test_what_is_attached_is_named_and_refused_where_altered(tmp_path: Path) -> None:
    store = Store.create(tmp_path, HEADER)
    for content in (b"one", b"two"):
        store.attach("parameters/x.toml", content)
        Store.open(tmp_path)
    (tmp_path / "parameters" / "x.toml").write_bytes(b"one")
    with pytest.raises(UsageError, match=r"x\.toml is not the file"):
        Store.open(tmp_path)
    (tmp_path / "parameters" / "x.toml").unlink()
    with pytest.raises(UsageError, match=r"x\.toml: No such file"):
        Store.open(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    reseal(tmp_path / "manifest.json", manifest | {"files": {"../x": "0"}})
    with pytest.raises(UsageError, match="not in the folder"):
        Store.open(tmp_path)


def test_schema_1_is_read_as_what_has_no_digests(saved: tuple[Path, Path]) -> None:
    folder, part = saved
    for path in (part, folder / "manifest.json"):
        document = json.loads(path.read_text())
        old = {key: value for key, value in document.items() if key not in ("sha256", "files")} | {"schema": 1}
        path.write_text(json.dumps(old))
    store = Store.open(folder)
    assert (store.sealed, store.parts) == (False, {PART.instruction: PART})


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Raises:
    """A stand-in for a system call that raises on its ``nth`` call and works otherwise."""

    def __init__(self, call: Any, nth: int, error: BaseException) -> None:
        self.call, self.left, self.error = call, nth, error

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.call(*arguments, **named)


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("name", ["open", "write", "fsync", "replace"])
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_a_full_disk_or_an_interrupt_keeps_what_was_saved(
    saved: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, name: str, nth: int, error: BaseException
) -> None:
    folder, _ = saved
    store = Store.open(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, name, Raises(getattr(os, name), nth, error))
        with pytest.raises(CannotWriteError if error is FULL else KeyboardInterrupt) as caught:
            store.save(Part("x86.dpps", "finished"))
    if isinstance(caught.value, CannotWriteError):
        assert str(folder) in str(caught.value)
        assert "mmaprobe run --resume" in str(caught.value)
        assert caught.value.exit_code == 6
    assert not [path for path in files_of(folder) if path.suffix != ".json"]
    assert Store.open(folder).parts == {PART.instruction: PART}
    Store.open(folder).save(Part("x86.dpps", "finished"))
    assert set(Store.open(folder).parts) == {PART.instruction, "x86.dpps"}


@contextmanager
def tiny_files() -> Iterator[None]:
    """The kernel itself refuses to grow a file beyond 1000 bytes, that of the tests' own output included."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_that_the_kernel_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(CannotWriteError, match="File too large"), tiny_files():
        files.write_bytes(tmp_path / "x", bytes(5000))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_names_path_and_next_command(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWriteError, match=r"manifest\.json.*mmaprobe run --resume --out"):
        Store.create(tmp_path / "file" / "evidence", HEADER)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into read-only folders")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CannotWriteError, match="Permission denied"):
        Store.create(tmp_path / "evidence", HEADER)


def test_a_read_only_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(errno.EROFS, "Read-only file system")
    monkeypatch.setattr(os, "open", Raises(os.open, 1, error))
    with pytest.raises(CannotWriteError, match="Read-only file system"):
        Store.create(tmp_path / "evidence", HEADER)


def test_a_part_that_is_gone_says_the_command_that_looks_further(saved: tuple[Path, Path]) -> None:
    folder, part = saved
    part.unlink()
    with pytest.raises(UsageError, match=r"No such file or directory; mmaprobe evidence verify .* says what else"):
        Store.open(folder)


def test_a_file_of_a_run_in_place_of_its_folder_is_named(saved: tuple[Path, Path]) -> None:
    folder, _ = saved
    with pytest.raises(UsageError, match=r"manifest\.json is a file; name the folder"):
        Store.open(folder / "manifest.json")
    with pytest.raises(CannotWriteError, match=r"manifest\.json: it is a file; choose a folder"):
        files.Lock(folder / "manifest.json")


def test_a_number_that_no_float_holds_is_refused(saved: tuple[Path, Path]) -> None:
    folder, _ = saved
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"seed": ', '"seed": 1e400, "was": ', 1))
    with pytest.raises(UsageError, match="1e400 is beyond every number of JSON"):
        Store.open(folder)
