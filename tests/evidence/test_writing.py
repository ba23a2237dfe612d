"""The one writer of files: links lead nowhere, names cannot be guessed, and of two processes one writes a folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mmaprobe.errors import CannotWriteError, UsageError
from mmaprobe.evidence import files
from mmaprobe.evidence.files import Lock, write_bytes

SOURCE = Path(__file__).parents[2] / "src" / "mmaprobe"
WRITES = re.compile(
    r"(?<!files)\.write_(text|bytes)\(|\bopen\([^)\n]*[\"'][wax]b?[\"']|savefig\(|np\.savez?(_compressed)?\(|ZipFile\([^)]*[\"']w"
)
PRIVATE = {
    *(f"toolchain/nvidia/{name}.py" for name in ("nvdisasm", "nvcc")),
    *(f"toolchain/amd/{name}.py" for name in ("clang", "hiprtc", "hiprtc_child", "zig", "code_object")),
}
"""What these write lies in folders of tempfile, which nobody else can enter."""


def test_a_link_in_the_place_of_a_file_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "out").mkdir()
    for name in ("manifest.json", ".manifest.json.new"):
        (tmp_path / "out" / name).symlink_to(tmp_path / "kept")
    write_bytes(tmp_path / "out" / "manifest.json", b"new")
    assert (tmp_path / "kept").read_text() == "kept"
    assert (tmp_path / "out" / "manifest.json").read_text() == "new"
    assert not (tmp_path / "out" / "manifest.json").is_symlink()


def test_a_linked_folder_inside_is_refused_and_a_linked_root_is_not(tmp_path: Path) -> None:
    for name in ("outside", "real"):
        (tmp_path / name).mkdir()
    (tmp_path / "real" / "instructions").symlink_to(tmp_path / "outside")
    with pytest.raises(CannotWriteError, match=r"instructions.* is a link"):
        write_bytes(tmp_path / "real" / "instructions" / "x.json", b"", root=tmp_path / "real")
    assert not list((tmp_path / "outside").iterdir())
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    write_bytes(tmp_path / "linked" / "steps" / "x.json", b"x", root=tmp_path / "linked")
    assert (tmp_path / "real" / "steps" / "x.json").read_bytes() == b"x"


def test_temporary_names_are_new_each_time_and_never_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = os.open

    def spied(path: str, flags: int, *more: int, **named: int) -> int:
        if flags & os.O_CREAT:
            assert flags & os.O_EXCL
            assert flags & os.O_NOFOLLOW
            opened.append(path)
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", spied)
    for _ in range(3):
        write_bytes(tmp_path / "x", b"x")
    assert len(set(opened)) == 3
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: "0" * 32)
    (tmp_path / f".{'0' * 32}.new").symlink_to(tmp_path / "target")
    with pytest.raises(CannotWriteError, match="File exists"):
        write_bytes(tmp_path / "x", b"y")
    assert (tmp_path / "x").read_bytes() == b"x"
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x").mkdir() if kind == "folder" else os.mkfifo(tmp_path / "x")
    with pytest.raises(CannotWriteError, match=r"cannot write .*/x: there is something that is no file"):
        write_bytes(tmp_path / "x", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_a_killed_run_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    for name in (f".{'ab' * 16}.new", ".mine.new", "x.new"):
        (tmp_path / name).write_text("")
    files.sweep(tmp_path, tmp_path / "nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.new", "x.new"]


HOLDS = (
    "import sys; from pathlib import Path; from mmaprobe.evidence.files import Lock; lock = Lock(Path(sys.argv[1])); "
)


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS + "print('held', flush=True); sys.stdin.read()", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match=rf"process {other.pid} is writing there.*--out") as caught:
            Lock(tmp_path)
        assert caught.value.exit_code == 2
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert (tmp_path / ".lock").exists()  # stale, and no hindrance
    with Lock(tmp_path), pytest.raises(UsageError, match=f"process {os.getpid()} "):
        Lock(tmp_path)
    assert not (tmp_path / ".lock").exists()


def test_a_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to(tmp_path / "target")
    with pytest.raises(CannotWriteError, match=r"cannot write .*\.lock"):
        Lock(tmp_path)
    assert not (tmp_path / "target").exists()


def test_every_writer_of_the_package_is_this_one() -> None:
    """Lines with ``held`` write into memory."""
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(WRITES.search(line) and "held" not in line for line in path.read_text("utf-8").splitlines())
    }
    assert found == PRIVATE
