"""Text on disk: written whole or not at all, read with errors that name the file and the key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmaprobe.errors import CannotWriteError, UsageError


def write_bytes(path: Path, content: bytes, advice: str = "choose another folder with --out") -> None:
    """Put ``content`` at ``path``: into a temporary name beside it, flushed to disk, then renamed.

    A reader sees the old file or the new one, never a part.  Raises
    CannotWriteError (path, reason, ``advice`` = the next command) and leaves
    no temporary file behind, on an interrupt too.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_through(temporary, content)
        os.replace(temporary, path)
    except OSError as error:
        raise CannotWriteError(f"cannot write {path}: {error.strerror or error}; {advice}") from error
    finally:
        _discard(temporary)


def _write_through(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # the folder itself is unreachable, which the caller is already reporting


def json_text(value: Any) -> str:
    """Deterministic JSON: sorted keys, one space of indent, a final newline."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any, advice: str = "choose another folder with --out") -> None:
    """``json_text(value)`` at ``path``, by ``write_bytes``."""
    write_bytes(path, json_text(value).encode(), advice)


@dataclass(frozen=True)
class Field:
    """A value read from a file, with the key that leads to it; every access checks and names both."""

    file: Path
    key: str
    value: Any

    def wrong(self, reason: str) -> UsageError:
        """The error that this value is wrong for ``reason``."""
        return UsageError(f"{self.file}: {'key ' + self.key if self.key else 'the file'} {reason}")

    def __getitem__(self, name: str) -> Field:
        table = self.typed(dict)
        key = f"{self.key}.{name}" if self.key else name
        if name not in table:
            raise Field(self.file, key, None).wrong("is missing")
        return Field(self.file, key, table[name])

    def __iter__(self) -> Iterator[Field]:
        for index, value in enumerate(self.typed(list)):
            yield Field(self.file, f"{self.key}[{index}]", value)

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


def read_json(path: Path) -> Field:
    """The JSON document at ``path``; UsageError naming the file (and line) where it is not one."""
    try:
        return Field(path, "", json.loads(path.read_bytes()))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: line {error.lineno}: {error.msg}; truncated, or not JSON") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not a JSON text") from error
