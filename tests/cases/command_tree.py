"""Every command of the command line, whatever group it is in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word, each in inner.items():
        yield from commands(each, f"{name} {word}".strip())
