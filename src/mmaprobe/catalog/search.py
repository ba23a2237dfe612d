"""Find ids in a row without writing them all out: a pattern walks the row's segments, an axis binds where it is met.

A glob is a small automaton: its states are the places in it that the text so
far may have led to.  The number of ids below a place depends on the states
and on what the axes will still write, so each such place is walked once.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
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


class ExactText(Glob):
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
    return Pattern(ExactText(identifier), ExactText(short(identifier)))


@dataclass(frozen=True)
class Matches:
    """How many ids match, and of each axis the place, among the choices offered, of the first one's choice."""

    count: int
    first: Mapping[int, int]


_NONE = Matches(0, {})
Offers = tuple[Picks, ...]
Ahead = tuple[tuple[str, ...], ...]


class RowSearch:
    """A pattern on a row: what is known below each place is kept for the next question."""

    def __init__(self, row: Row, pattern: Pattern) -> None:
        self.row, self.segments, self.pattern = row, row.segments, pattern
        self.branches = not isinstance(pattern.full, ExactText)  # else at most one way goes on: nothing is asked twice
        self.places = {axis: _places(row.segments, axis) for axis in range(len(row.axes))}
        self.known: dict[object, Matches] = {}
        self.aheads: dict[object, Ahead] = {}

    def among(self, allowed: Sequence[Picks]) -> tuple[int, Picks]:
        """How many ids with these choices of each axis match, and the first one's choices."""
        offers = tuple(allowed)
        ahead = tuple(self._ahead(axis, 0, options) for axis, options in enumerate(offers))
        found = self._visit(0, self.pattern.start, offers, ahead, False)
        unseen = math.prod(len(options) for axis, options in enumerate(offers) if not self.places[axis])
        if not found.count * unseen:
            return 0, ()
        return found.count * unseen, tuple(options[found.first.get(axis, 0)] for axis, options in enumerate(offers))

    def _visit(
        self, place: int, states: tuple[States, States], offers: Offers, ahead: tuple[Ahead, ...], braced: bool
    ) -> Matches:
        """The matching ids whose first ``place`` segments have led to ``states``."""
        if not (states[0] or states[1]):
            return _NONE
        if place == len(self.segments):
            ended = self.pattern.read(states, "}") if braced else states
            return Matches(1, {}) if self.pattern.accepts(ended) else _NONE
        part = self.segments[place]
        if isinstance(part, str):
            return self._visit(place + 1, self.pattern.read(states, part), offers, ahead, braced)
        if not self.branches:
            return self._branch(part, place, states, offers, ahead, braced)
        key = place, states, ahead, braced
        if key not in self.known:
            self.known[key] = self._branch(part, place, states, offers, ahead, braced)
        return self.known[key]

    def _branch(
        self, part: Segment, place: int, states: tuple[States, States], offers: Offers, ahead: tuple[Ahead, ...],
        braced: bool,
    ) -> Matches:  # fmt: skip
        offered = offers[part.axis] if part.axis >= 0 else (0,)
        groups = self.row.grouped(place, offered)
        last = part.axis >= 0 and self.places[part.axis][-1] == place
        count, first = 0, {}
        for text, offsets in groups.items():
            written, inside = written_as(part, text, braced)
            after = self.pattern.read(states, written)
            if not (after[0] or after[1]):
                continue
            left, below_ahead = list(offers), list(ahead)
            if part.axis >= 0:
                left[part.axis] = tuple(offered[offset] for offset in offsets)
                below_ahead[part.axis] = self._ahead(part.axis, place + 1, left[part.axis])
            below = self._visit(place + 1, after, tuple(left), tuple(below_ahead), inside)
            if below.count and not count:
                first = {**below.first, part.axis: offsets[below.first.get(part.axis, 0)]}
            count += below.count * (len(offsets) if last else 1)
        return Matches(count, first)

    def _ahead(self, axis: int, place: int, options: Picks) -> Ahead:
        """What each choice on offer will still write: places with the same ahead have the same below."""
        if not self.branches:
            return ()
        passed = bisect_left(self.places[axis], place)
        key = axis, passed, options
        if key not in self.aheads:
            parts = [self.segments[later] for later in self.places[axis][passed:]]
            texts = [part.texts for part in parts if isinstance(part, Segment)]
            self.aheads[key] = tuple(tuple(text[number] for text in texts) for number in options) if texts else ()
        return self.aheads[key]


def _places(segments: Sequence[str | Segment], axis: int) -> list[int]:
    return [place for place, part in enumerate(segments) if isinstance(part, Segment) and part.axis == axis]


def written_as(part: Segment, text: str, braced: bool) -> tuple[str, bool]:
    """What a segment adds to an id, and whether the braces are open behind it."""
    if part.key is None:
        return text, braced
    if text == part.default:
        return "", braced
    return f"{',' if braced else '{'}{part.key}{'=' if text else ''}{text}", True
