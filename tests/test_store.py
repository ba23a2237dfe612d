"""The evidence folder: round trips, resuming, and what a full disk, an interrupt or a stranger leaves."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.errors import CannotWriteError, UsageError
from mmaprobe.evidence import documents, files
from mmaprobe.evidence.files import Field
from mmaprobe.evidence.records import Finding, Mismatch, Witness
from mmaprobe.evidence.store import Header, Part, Store

WITNESS = Witness((0x3F80, 0), (1, 0xFFFF), 0x7FC00001, 0xFFC00000, (127,), (128,), (0x4, 0x9), "a quiet NaN")
BARE = Witness((1,), (2,), None, 2)
FINDING = Finding("nan", "bounded", {"first": ["a0", "c"], "code": 4290772992, "bits": 2.5}, "x", (WITNESS, BARE), 3, 2)
MISMATCH = Mismatch(WITNESS, 5, "x86.dpps/uniform.1/7/12", False, BARE, 0)
HEADER = Header("cpu", {"model": "some CPU"}, "0.1.0", 7, {"gcc": "12"}, {"vectors": 100})
PART = Part(
    "x86.vfmadd.f32{daz,rounding=rz}", "finished", (FINDING,), {"k": 1, "tree": {"node": "fma"}}, ["same"],
    {"families": {"uniform": 60, "ties": 40}}, 100, 1, (MISMATCH,), (WITNESS,),
)  # fmt: skip


def through_text(value: Any) -> Field:
    return Field(Path("x.json"), "", json.loads(files.json_text(value)))


@pytest.mark.parametrize("witness", [WITNESS, BARE])
def test_records_survive_a_round_trip(witness: Witness) -> None:
    assert documents.witness_from_json(through_text(documents.witness_to_json(witness))) == witness
    mismatch = Mismatch(witness, 1, "r")
    assert documents.mismatch_from_json(through_text(documents.mismatch_to_json(mismatch))) == mismatch


def test_findings_and_mismatches_survive_a_round_trip() -> None:
    assert documents.finding_from_json(through_text(documents.finding_to_json(FINDING))) == FINDING
    assert documents.mismatch_from_json(through_text(documents.mismatch_to_json(MISMATCH))) == MISMATCH


def test_answers_become_plain_json_or_are_refused() -> None:
    assert documents.plain({"a": (np.int64(1), [np.True_])}) == {"a": [1, [True]]}
    for bad in (float("nan"), object(), {1: 2}):
        with pytest.raises(UsageError, match="value: a"):
            documents.plain(bad)
    with pytest.raises(UsageError, match=r"the answer to tree\.x: a set"):
        documents.finding_to_json(Finding("tree", "exact", {"x": {1}}, ""))


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
    Store.create(tmp_path, HEADER).save(Part(PART.instruction, "partial", vectors=4))
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


def test_the_run_id_names_device_version_seed_and_settings() -> None:
    same = Header("cpu", {"model": "some CPU"}, "0.1.0", 7, {"gcc": "12"}, {"vectors": 100})
    other = Header("cpu", {"model": "some CPU"}, "0.1.0", 8, {"gcc": "12"}, {"vectors": 100})
    assert len({HEADER.run, same.run}) == 1
    assert other.run != HEADER.run


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Path]:
    """An evidence folder with one part: (folder, the part's file)."""
    return tmp_path, Store.create(tmp_path, HEADER).save(PART)


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        ("kind", "something else", "kind"),
        ("schema", 99, "schema is 99; this package reads up to 1"),
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
    part.write_text(json.dumps(json.loads(part.read_text()) | {key: value}))
    with pytest.raises(UsageError, match=names) as caught:
        Store.open(folder)
    assert str(part) in str(caught.value)


@pytest.mark.parametrize("keep", [0, 1, 100, -2])
def test_a_truncated_part_or_manifest_is_refused_by_file(saved: tuple[Path, Path], keep: int) -> None:
    folder, part = saved
    for path in (part, folder / "manifest.json"):
        whole = path.read_bytes()
        path.write_bytes(whole[:keep])
        with pytest.raises(UsageError, match="truncated, or not JSON") as caught:
            Store.open(folder)
        assert str(path) in str(caught.value)
        path.write_bytes(whole)
    part.write_bytes(b"\xff\xfe" + bytes(100))
    with pytest.raises(UsageError, match="not"):
        Store.open(folder)
    part.unlink()
    with pytest.raises(UsageError, match="No such file"):
        Store.open(folder)


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
