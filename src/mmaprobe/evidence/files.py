"""Text on disk: written whole or not at all, read with errors that name the file and the key."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmaprobe.catalog.toml import check_levels
from mmaprobe.errors import CannotWriteError, UsageError

TEMPORARY = ".new"
LOCK = ".lock"
SEAL = "sha256"
ANOTHER = "choose another folder with --out"
"""What to do where a folder cannot be written."""


def write_bytes(path: Path, content: bytes, advice: str = ANOTHER, root: Path | None = None) -> None:
    """Put ``content`` at ``path``: into a new file of an unpredictable name beside it, flushed to disk, then renamed.

    A reader sees the old file or the new one, never a part.  No link is followed below ``root`` (by default the
    file's own folder): a link in the place of a folder is refused, one in the place of the file is replaced.  Raises
    CannotWriteError (path, reason, ``advice`` = the next command) and leaves no temporary file behind, on an
    interrupt too.
    """
    root = path.parent if root is None else root
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _folder(root, path.parent.relative_to(root).parts) as folder:
            _put(folder, path.name, content)
    except OSError as error:
        raise CannotWriteError(f"cannot write {path}: {error.strerror or error}; {advice}") from error


def check_place(path: Path, advice: str) -> None:
    """CannotWriteError where no file could be put at ``path``, as far as the folder that is there shows it; for what is
    written when the work is done."""
    there = next(folder for folder in path.absolute().parents if folder.exists())
    name = f".{secrets.token_hex(16)}{TEMPORARY}"
    try:
        with _folder(there, ()) as folder:
            if there == path.absolute().parent:
                _check_file(folder, path.name)
            _write_through(folder, name, b"")
            os.unlink(name, dir_fd=folder)
    except OSError as error:
        raise CannotWriteError(f"cannot write {path}: {error.strerror or error}; {advice}") from error


class FileIsThereError(UsageError):
    """A file that never changes is there already."""


def write_new(path: Path, content: bytes, advice: str) -> None:
    """``write_bytes`` of a file that never changes: FileIsThereError where there is one of the name, whoever was
    first."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _folder(path.parent, ()) as folder:
            _put(folder, path.name, content, new=True)
    except FileExistsError:
        raise FileIsThereError(
            f"{path} is there already, and such a file never changes; choose another --out"
        ) from None
    except OSError as error:
        raise CannotWriteError(f"cannot write {path}: {error.strerror or error}; {advice}") from error


@contextmanager
def _folder(root: Path, below: Iterable[str]) -> Iterator[int]:
    """A descriptor of a folder below ``root``, made where it is missing; OSError where a link is on the way."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in below:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
                raise OSError(errno.ELOOP, f"{name} is a link, which may lead anywhere")
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(name, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _put(folder: int, name: str, content: bytes, new: bool = False) -> None:
    temporary = f".{secrets.token_hex(16)}{TEMPORARY}"
    try:
        _write_through(folder, temporary, content)
        _check_file(folder, name)
        if new:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        else:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        with suppress(OSError):  # renamed already, or the folder is unreachable, which the caller is told
            os.unlink(temporary, dir_fd=folder)


def _check_file(folder: int, name: str) -> None:
    """OSError where there is something of the name that is no file, nor a link in its place."""
    with suppress(FileNotFoundError):
        mode = os.lstat(name, dir_fd=folder).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise OSError(errno.EINVAL, "there is something that is no file")


def _write_through(folder: int, name: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o666, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(*folders: Path) -> None:
    """Remove the temporary files that killed runs left in folders of which this process holds the lock."""
    for folder in folders:
        for path in folder.glob(f".{'[0-9a-f]' * 32}{TEMPORARY}"):
            path.unlink(missing_ok=True)


def new_folder(folder: Path) -> None:
    """Make a folder, and those above it, where it is not there; CannotWriteError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"cannot write {folder}: {error.strerror or error}") from error


class Lock:
    """That this process alone writes into a folder; held until ``release``, or until the process ends in any way."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._handle = -1
        if folder.exists() and not folder.is_dir():
            raise CannotWriteError(f"cannot write into {folder}: it is a file; choose a folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            while self._handle < 0:
                self._handle = self._taken()
        except OSError as error:
            raise CannotWriteError(f"cannot write {self._path}: {error.strerror or error}; {ANOTHER}") from error

    def _taken(self) -> int:
        """The lock's file, locked; -1 where its last holder took it away meanwhile.  UsageError naming who holds it."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink == 0:
                os.close(handle)
                return -1
            with suppress(OSError):  # a full disk: who holds it is only told to others
                os.ftruncate(handle, 0)
                os.write(handle, f"{os.getpid()}\n".encode())
        except BlockingIOError:
            said = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "another"
            os.close(handle)
            raise UsageError(
                f"{self._path.parent}: process {said} is writing there; wait for it, or {ANOTHER}"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        return handle

    def release(self) -> None:
        """Give it up; the file goes while it is still held, so that nobody waits for a file without a name."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def digest_of(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with ``SEAL``: the SHA-256 of ``json_text`` of all its other keys."""
    rest = {key: value for key, value in document.items() if key != SEAL}
    return rest | {SEAL: digest_of(json_text(rest).encode("utf-8", "surrogatepass"))}


def check_seal(document: FileValue, schema: int) -> bool:
    """Whether the document has a seal, which must be right; one of this ``schema`` or a later one must have one."""
    given = document.typed(dict)
    if SEAL not in given and document["schema"].whole < schema:
        return False
    if document[SEAL].text != sealed(given)[SEAL]:
        raise document[SEAL].wrong("is not that of the rest of the file: something was changed or damaged")
    return True


def json_text(value: Any) -> str:
    """Deterministic JSON: sorted keys, one space of indent, a final newline."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any, advice: str = ANOTHER, root: Path | None = None) -> None:
    """``json_text(value)`` at ``path``, by ``write_bytes``."""
    write_bytes(path, json_text(value).encode(), advice, root)


@dataclass(frozen=True)
class FileValue:
    """A value read from a file, with the key that leads to it; every access checks and names both."""

    file: Path
    key: str
    value: Any

    def wrong(self, reason: str) -> UsageError:
        """The error that this value is wrong for ``reason``."""
        return UsageError(f"{self.file}: {'key ' + self.key if self.key else 'the file'} {reason}")

    def __getitem__(self, name: str) -> FileValue:
        table = self.typed(dict)
        key = f"{self.key}.{name}" if self.key else name
        if name not in table:
            raise FileValue(self.file, key, None).wrong("is missing")
        return FileValue(self.file, key, table[name])

    def __iter__(self) -> Iterator[FileValue]:
        for index, value in enumerate(self.typed(list)):
            yield FileValue(self.file, f"{self.key}[{index}]", value)

    def typed(self, kind: type) -> Any:
        """The value, which must be of ``kind`` (a bool is not an int)."""
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            raise self.wrong(f"must be {_SPOKEN[kind]}, not {self.value!r:.60}")
        return self.value

    @property
    def text(self) -> str:
        return str(self.typed(str))

    @property
    def whole(self) -> int:
        return int(self.typed(int))

    @property
    def bits(self) -> int:
        """A bit pattern written ``"0x..."``."""
        try:
            return int(self.text, 16)
        except ValueError:
            raise self.wrong(f"must be a bit pattern like 0x3f80, not {self.text!r:.60}") from None

    def one_of(self, *choices: Any) -> Any:
        """The value, which must be among ``choices``."""
        if self.value not in choices:
            raise self.wrong(f"is {self.value!r:.60}; it must be one of {', '.join(map(str, choices))}")
        return self.value


_SPOKEN = {dict: "a table", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}


def read_json(path: Path) -> FileValue:
    """The JSON document at ``path``; UsageError naming the file (and line) where it is not one."""
    try:
        return parse_json(path, path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def parse_json(path: Path, content: bytes) -> FileValue:
    """The JSON document in ``content``, which came from ``path``; a key that occurs twice makes it none."""
    try:
        document = json.loads(content, object_pairs_hook=_table, parse_constant=_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: line {error.lineno}: {error.msg}; truncated, or not JSON") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a JSON text: {error!s:.80}") from error
    check_levels(document, str(path))
    return FileValue(path, "", document)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a key occurs twice")
    return table


def _finite(word: str) -> float:
    number = float(word)
    if math.isinf(number):
        raise ValueError(f"{word} is beyond every number of JSON")
    return number


def _constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")
