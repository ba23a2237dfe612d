"""One table of a parameter file for many primitives: its axes' choices fill its texts.

``axes`` is a list of axes, an axis a list of tables, a table what it binds; a
list of values in it stands for one table each.  Every choice of one table from
each axis makes a primitive.  In the table's texts ``{k}`` stands for what is
bound or for a value of the file's ``[common]``, ``{K}`` for the same in
capitals; a text that is one such word alone becomes the value itself.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mmaprobe.errors import UsageError, brief, near
from mmaprobe.parameters.table import Table

_WORD = re.compile(r"\{(\w+)\}")


def expand(table: Any, common: Mapping[str, Any]) -> list[Table]:
    """The tables, one a primitive, that a table stands for; one without ``axes`` stands for itself.

    UsageError where a text names what nothing binds, or an axis is no list of tables.
    """
    if not isinstance(table, dict) or "axes" not in table:
        return [table]
    _check_size(table, common)
    plain = {key: value for key, value in table.items() if key != "axes"}
    return [_filled(plain, _words(bound, common)) for bound in _choices(table["axes"])]


MOST_PRIMITIVES = 1 << 14
"""Primitives that a table may stand for."""
MOST_TEXT = 1 << 28
"""Characters of the texts of all of them."""


def _check_size(table: Table, common: Mapping[str, Any]) -> None:
    """UsageError where the axes stand for more primitives, or their texts for more characters, than any file has: told
    from the table alone, before one is made."""
    axes = _axes(table)
    count = math.prod(sum(math.prod(_length(value) for value in one.values()) for one in axis) for axis in axes)
    longest = max(len(str(value)) for value in (*_leaves(axes), *_leaves(common), ""))
    texts = [str(value) for key, value in table.items() if key != "axes" for value in _leaves(value)]
    size = sum(len(text) + text.count("{") * longest * (1 + longest // 4) for text in texts)
    if count > MOST_PRIMITIVES or count * size > MOST_TEXT:
        raise UsageError(f"axes: they stand for {brief(count)} primitives of {brief(size)} characters; write fewer")


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


def _leaves(value: Any) -> Iterator[Any]:
    """Every text and number in tables and lists."""
    if isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


def _axes(table: Table) -> list[list[Table]]:
    axes: Any = table["axes"]
    tables = isinstance(axes, list) and all(isinstance(axis, list) for axis in axes)
    if not tables or not all(isinstance(item, dict) for axis in axes for item in axis):
        raise UsageError(f"axes: expected a list of lists of tables, got {brief(axes)}")
    return list(axes)


def _choices(axes: Any) -> Iterator[Table]:
    for choice in itertools.product(*(list(_single(axis)) for axis in axes)):
        bound: Table = {}
        for table in choice:
            bound |= table
        yield bound


def _single(axis: list[Table]) -> Iterator[Table]:
    """The tables of an axis, one with lists of values as one for each combination of them."""
    for table in axis:
        values = [value if isinstance(value, list) else [value] for value in table.values()]
        yield from (dict(zip(table, some, strict=True)) for some in itertools.product(*values))


def _words(bound: Table, common: Mapping[str, Any]) -> Table:
    """What texts may name: everything bound (what is common in it spelt out), and the same in capitals."""
    loose = {f"{{{key}}}": value for key, value in common.items()}
    known = {key: _put(value, lambda word: loose.get(word, word)) for key, value in bound.items()}
    capitals = {key.upper(): value.upper() if isinstance(value, str) else value for key, value in known.items()}
    return {**common, **capitals, **known}


def _filled(value: Any, words: Table) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    return _put(value, lambda word: _bound(word[1:-1], words))


def _put(value: Any, given: Callable[[str], Any]) -> Any:
    """A text with what is given for each of its words; a word alone becomes the value itself."""
    if not isinstance(value, str):
        return value
    return given(value) if _WORD.fullmatch(value) else _WORD.sub(lambda found: str(given(found[0])), value)


def _bound(name: str, words: Table) -> Any:
    if name not in words:
        raise UsageError(f"nothing binds {{{name}}}{near(name, words)}")
    return words[name]
