"""Find ids in a row without writing them all out: a pattern walks the row's segments, an axis binds where it is met.

A glob is a small automaton: its states are the places in it that the text so
far may have led to.  The number of ids below a place depends on the states
and on what the axes still offer, so each such place is walked once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property

from mmaprobe.catalog.row import Picks, Row, Segment

States = frozenset[int]
_TOKEN = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)


def short(identifier: str) -> str:
    """The short form of an id: without ``.sync``, ``.aligned`` and ``.row.col``."""
    return identifier.replace(".sync", "").replace(".aligned", "").replace(".row.col", "")


@dataclass(frozen=True, eq=False)
class Glob:
    """A text with ``*``, ``?`` and ``[...]``, as an automaton over what is read of an id."""

    text: str
    _memo: dict[tuple[States, str], States] = field(default_factory=dict)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tuple(_TOKEN.findall(self.text))

    @cached_property
    def start(self) -> States:
        return self._close({0})

    def read(self, states: States, text: str) -> States:
        """Where the states lead with ``text`` read."""
        key = states, text
        if key not in self._memo:
            now = states
            for character in text:
                now = self._close({nxt for state in now for nxt in self._next(state, character)})
            self._memo[key] = now
        return self._memo[key]

    def accepts(self, states: States) -> bool:
        """Whether the whole glob has been read."""
        return len(self.tokens) in states

    def _next(self, state: int, character: str) -> tuple[int, ...]:
        if state == len(self.tokens):
            return ()
        token = self.tokens[state]
        if token == "*":
            return (state,)
        same = token in ("?", character) if len(token) == 1 else re.fullmatch(translate(token), character)
        return (state + 1,) if same else ()

    def _close(self, states: set[int]) -> States:
        """The states and those that a star which stands for nothing leads to."""
        found: set[int] = set()
        for state in states:
            found.add(state)
            while state < len(self.tokens) and self.tokens[state] == "*":
                state += 1
                found.add(state)
        return frozenset(found)


class Exact(Glob):
    """A text that stands for itself."""

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tuple(self.text)

    def _next(self, state: int, character: str) -> tuple[int, ...]:
        return (state + 1,) if state < len(self.text) and self.text[state] == character else ()

    def _close(self, states: set[int]) -> States:
        return frozenset(states)


@dataclass(frozen=True, eq=False)
class Pattern:
    """What an id must match, as it is or in its short form."""

    full: Glob
    brief: Glob

    @property
    def start(self) -> tuple[States, States]:
        return self.full.start, self.brief.start

    def read(self, states: tuple[States, States], text: str) -> tuple[States, States]:
        """Where the states of both forms lead; both empty where nothing can match any more."""
        return self.full.read(states[0], text), self.brief.read(states[1], short(text))

    def accepts(self, states: tuple[States, States]) -> bool:
        """Whether the id as it is or its short form matches."""
        return self.full.accepts(states[0]) or self.brief.accepts(states[1])


def glob(text: str) -> Pattern:
    """The ids that match a glob, themselves or in their short form."""
    return Pattern(Glob(text), Glob(text))


def exact(identifier: str) -> Pattern:
    """The id itself, and those with the same short form."""
    return Pattern(Exact(identifier), Exact(short(identifier)))


@dataclass(frozen=True)
class Found:
    """How many ids match, and the choices that make the first of them."""

    count: int
    first: Mapping[int, int]


_NONE = Found(0, {})


def search(row: Row, pattern: Pattern, allowed: Sequence[Picks]) -> tuple[int, Picks]:
    """How many ids of the row match with these choices of each axis, and the first one's choices."""
    walk = _Walk(row, pattern)
    unseen = {axis: options for axis, options in enumerate(allowed) if axis not in walk.last}
    found = walk.visit(0, pattern.start, tuple(allowed), False)
    count = found.count
    for options in unseen.values():
        count *= len(options)
    if not count:
        return 0, ()
    first = {**{axis: options[0] for axis, options in unseen.items()}, **found.first}
    return count, tuple(first[axis] for axis in range(len(allowed)))


class _Walk:
    """One search: the row's segments, and what is known below each place."""

    def __init__(self, row: Row, pattern: Pattern) -> None:
        self.segments, self.pattern = row.segments, pattern
        self.last = {
            part.axis: place for place, part in enumerate(row.segments) if isinstance(part, Segment) and part.axis >= 0
        }
        self.known: dict[object, Found] = {}

    def visit(self, place: int, states: tuple[States, States], rest: tuple[Picks, ...], braced: bool) -> Found:
        """The matching ids whose first ``place`` segments have led to ``states``; ``rest`` is what the axes offer."""
        if not (states[0] or states[1]):
            return _NONE
        if place == len(self.segments):
            ended = self.pattern.read(states, "}") if braced else states
            return Found(1, {}) if self.pattern.accepts(ended) else _NONE
        key = place, states, rest, braced
        if key not in self.known:
            part = self.segments[place]
            if isinstance(part, str):
                self.known[key] = self.visit(place + 1, self.pattern.read(states, part), rest, braced)
            else:
                self.known[key] = self._branch(part, place, states, rest, braced)
        return self.known[key]

    def _branch(
        self, part: Segment, place: int, states: tuple[States, States], rest: tuple[Picks, ...], braced: bool
    ) -> Found:
        options: dict[str, list[int]] = {}
        for number in rest[part.axis] if part.axis >= 0 else (0,):
            options.setdefault(part.texts[number], []).append(number)
        count, first = 0, {}
        closes = self.last.get(part.axis) == place
        for text, numbers in options.items():
            written, inside = written_as(part, text, braced)
            left = list(rest)
            if part.axis >= 0:
                left[part.axis] = () if closes else tuple(numbers)
            below = self.visit(place + 1, self.pattern.read(states, written), tuple(left), inside)
            if below.count and not count:
                first = {**below.first, part.axis: numbers[0]} if closes else dict(below.first)
            count += below.count * (len(numbers) if closes else 1)
        return Found(count, first)


def written_as(part: Segment, text: str, braced: bool) -> tuple[str, bool]:
    """What a segment adds to an id, and whether the braces are open behind it."""
    if part.key is None:
        return text, braced
    if text == part.default:
        return "", braced
    return f"{',' if braced else '{'}{part.key}{'=' if text else ''}{text}", True
