"""Read the data files that ship with the package: TOML with a schema number."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from mmaprobe.errors import UsageError


def shipped(package: str, *folders: str) -> dict[str, str]:
    """The texts of the TOML files in a folder of a package, by name and in the names' order."""
    folder = resources.files(package).joinpath(*folders)
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return {entry.name: entry.read_text("utf-8") for entry in files}


def parsed(file: str, text: str, schema: int) -> dict[str, Any]:
    """The tables of a text; UsageError naming the file where it is no TOML or of another schema."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    if data.get("schema") != schema:
        raise UsageError(f"{file}: schema is {data.get('schema')!r}; this version of mmaprobe reads {schema}")
    return data
