"""Read data files, those that ship with the package and others: TOML with a schema number."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from mmaprobe.errors import UsageError, brief


def shipped(package: str, *folders: str) -> dict[str, str]:
    """The texts of the TOML files in a folder of a package, by name and in the names' order."""
    folder = resources.files(package).joinpath(*folders)
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return {entry.name: entry.read_text("utf-8") for entry in files}


def text_of(path: Path) -> str:
    """The text of a file; UsageError naming it where it cannot be read, or is none."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file") from None


MOST_LEVELS = 256
"""Levels of tables and lists within each other: a datapath of the deepest legal tree (``MOST_DEPTH``) has fewer."""


def read_toml(text: str, name: str) -> dict[str, Any]:
    """The tables of a text; UsageError with the name that errors call it for no TOML and for what no file holds:
    numbers of thousands of digits, tables within tables without end."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{name}: lists or tables lie deeper in each other than {MOST_LEVELS} levels") from None
    except ValueError as error:  # TOMLDecodeError, and a number that int() refuses to read
        raise UsageError(f"{name}: {error}") from None
    check_levels(data, name)
    return data


def check_levels(data: object, name: str) -> None:
    """UsageError where tables and lists lie deeper in each other than any file of ours has them."""
    level = [data]
    for _ in range(MOST_LEVELS):
        level = [item for holder in level for item in _items(holder) if isinstance(item, (dict, list, tuple))]
        if not level:
            return
    raise UsageError(f"{name}: lists or tables lie deeper in each other than {MOST_LEVELS} levels")


def _items(holder: object) -> Iterable[object]:
    return holder.values() if isinstance(holder, dict) else holder if isinstance(holder, (list, tuple)) else ()


def parsed(file: str, text: str, schema: int) -> dict[str, Any]:
    """The tables of a text; UsageError naming the file where it is no TOML or of another schema."""
    data = read_toml(text, file)
    if data.get("schema") != schema:
        raise UsageError(f"{file}: schema is {brief(data.get('schema'))}; this version of mmaprobe reads {schema}")
    return data


def counted(file: str, text: str, schema: int, key: str) -> dict[str, Any]:
    """``parsed`` of a file whose last table, ``[end]``, counts the rows of ``key``: a truncated one lacks it, and is a
    UsageError."""
    data = parsed(file, text, schema)
    rows = len(data.get(key, []))
    if data.get("end") != {"rows": rows}:
        raise UsageError(f"{file}: truncated: it holds {rows} rows and its [end] says {data.get('end')}")
    return data
