"""Every way to bend a text of ours by one hand: each scalar, key, list and line changed once."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

Path_ = tuple[Any, ...]


def bent_json(text: str) -> Iterator[tuple[str, str]]:
    """(what was done, the text afterwards) for every single change of a JSON document's values and keys, and of its
    text."""
    document = json.loads(text)
    for path, value in _values(document):
        for name, other in _others(value):
            yield f"{name} at {'.'.join(map(str, path))}", _with(document, path, other)
        yield f"gone at {'.'.join(map(str, path))}", _without(document, path)
    yield from bent_text(text)


def bent_text(text: str) -> Iterator[tuple[str, str]]:
    """The same for any text: a line gone, twice, or exchanged with the next one; the end cut off."""
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        head, tail = "".join(lines[:at]), "".join(lines[at + 1 :])
        yield f"line {at} gone", head + tail
        yield f"line {at} twice", head + line + line + tail
        if at + 1 < len(lines):
            yield f"line {at} after the next", head + lines[at + 1] + line + "".join(lines[at + 2 :])
        for place, letter in enumerate(line):
            if letter.isdigit():
                yield (
                    f"digit {place} of line {at}",
                    head + line[:place] + str((int(letter) + 1) % 10) + line[place + 1 :] + tail,
                )
                break
    for share in (0, 1, 2, 3):
        yield f"cut to {share} quarters", text[: len(text) * share // 4]


def _values(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if path:
        yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from _values(item, (*path, key))


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values in the place of one."""
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, (int, float)):
        yield "one more", value + 1
        if value:
            yield "zero", type(value)(0)
    elif isinstance(value, str):
        yield "another text", value + "0"
        if value:
            yield "no text", ""
            yield "another case", value.swapcase()
    elif isinstance(value, list) and value:
        yield "emptied", []
        yield "an item twice", [*value, value[-1]]
        if value != value[::-1]:
            yield "backwards", value[::-1]
    elif isinstance(value, dict) and value:
        yield "emptied", {}
        yield "a key more", {**value, "more": 0}
        yield "a key renamed", {("x" + key if key == next(iter(value)) else key): item for key, item in value.items()}
    if value is not None:
        yield "null", None


def _with(document: Any, path: Path_, other: Any) -> str:
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = other
    return json.dumps(changed, indent=1, sort_keys=True, ensure_ascii=False)


def _without(document: Any, path: Path_) -> str:
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return json.dumps(changed, indent=1, sort_keys=True, ensure_ascii=False)
