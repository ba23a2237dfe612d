"""The page of two units' differences: each with its vector, both answers bit by bit, and both datapaths drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import mmaprobe
from mmaprobe import formats
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.report.datapath.unit_differences import (
    alike,
    counts_line,
    explaining,
    first_of,
    standing,
    together,
    worded,
    work,
)
from mmaprobe.report.datapath.window import windows
from mmaprobe.report.page.answer_bits import BothAnswers, marked, places
from mmaprobe.report.page.filling import filled
from mmaprobe.report.page.tree_drawing import draw_tree
from mmaprobe.report.page.window_drawing import draw_window
from mmaprobe.report.vectors import vector_text
from mmaprobe.survey.family_kills import FamilyKills, family_kills
from mmaprobe.survey.unit_pairs import PairedUnits, ToldDifference, UnitPair
from mmaprobe.validation.classify import kinds

ALL_TOGETHER = "All of this together"
"""What a vector is headed by that shows no single difference alone."""


@dataclass(frozen=True)
class DifferenceView:
    """One thing that two datapaths have otherwise, how either has it, and the vector that shows it where there is one,
    with the commands that follow the units through it."""

    what: str
    values: tuple[str, str] | None
    both: BothAnswers | None = None
    explained: tuple[str, ...] = ()


@dataclass(frozen=True)
class DrawnSide:
    """One side's datapath in a sentence and in pictures."""

    name: str
    meaning: str
    tree: str
    windows: tuple[str, ...]


@dataclass(frozen=True)
class PairRow:
    """A pair in a line: what it computes, each side's instructions, and the bases of their datapaths.  Of a primitive
    ``within`` has the instructions that both sides make of it, and ``sides`` none."""

    work: str
    sides: tuple[str, str]
    bases: tuple[str, str]
    within: str = ""


@dataclass(frozen=True)
class DifferenceCard:
    """Pairs of which the same is said: what differs, with a vector each; ``silent``: what no vector shows alone;
    ``apart``: the instruction that tells the first pair from those of other cards that compute the same."""

    number: int
    rows: tuple[PairRow, ...]
    standing: str
    shown: tuple[DifferenceView, ...]
    silent: tuple[DifferenceView, ...]
    drawn: tuple[DrawnSide, ...]
    families: tuple[FamilyKills, ...]
    apart: str = ""


@dataclass(frozen=True)
class DifferencesPage:
    """Everything that the page shows; ``names``: what the two are called, ``alone``: what one of them computes alone,
    ``command`` makes the page again, ``remarks`` stand on top."""

    names: tuple[str, str]
    total: str
    differs: bool
    cards: tuple[DifferenceCard, ...]
    same: tuple[tuple[PairRow, str], ...]
    alone: tuple[tuple[str, tuple[str, ...]], ...]
    command: str
    remarks: tuple[str, ...] = ()
    version: str = mmaprobe.__version__

    @property
    def pairs(self) -> int:
        """How many pairs are not shown to be the same function."""
        return sum(len(card.rows) for card in self.cards)

    @property
    def shown(self) -> int:
        """How many differences are shown with a vector."""
        return sum(view.both is not None for card in self.cards for view in card.shown)


def page_of(found: PairedUnits, names: tuple[str, str], command: str, remarks: tuple[str, ...] = ()) -> DifferencesPage:
    """The page of what two units have otherwise; a file's name stands for its path."""
    called = _called(names)
    apart = [pairs for pairs in alike(found.pairs, names) if not pairs[0].same]
    same = tuple((_row(pair), standing(pair)) for pair in found.pairs if pair.same)
    alone = tuple((name, tuple(map(work, some))) for name, some in zip(called, found.alone, strict=True) if some)
    cards = _told_apart([_card(number, pairs, names, called) for number, pairs in enumerate(apart, 1)])
    return DifferencesPage(called, counts_line(found), bool(apart), cards, same, alone, command, remarks)


def render(page: DifferencesPage) -> str:
    """The page's text; NotHereError without jinja2."""
    return filled("differences.html", page=page, names=page.names)


def _called(names: tuple[str, str]) -> tuple[str, str]:
    first, second = (Path(name).name if name.endswith(".toml") else name for name in names)
    return names if first == second else (first, second)


def _row(pair: UnitPair) -> PairRow:
    shared = bool(pair.name) and pair.names[0] == pair.names[1]
    first, second = (first_of(ids) for ids in pair.names)
    bases = (", ".join(pair.bases[0]), ", ".join(pair.bases[1]))
    return PairRow(work(pair), ("", "") if shared else (first, second), bases, first if shared else "")


def _card(number: int, pairs: Sequence[UnitPair], names: tuple[str, str], called: tuple[str, str]) -> DifferenceCard:
    """The first pair stands for the others, of which the same is said."""
    pair = pairs[0]
    views = [_view(told, pair, names, called) for told in pair.told]
    whole = together(pair)
    shown = [*[view for view in views if view.both], *([_view(whole, pair, names, called)] if whole else [])]
    drawn = [
        _drawn(f"d{number}{side}", name, path) for side, name, path in zip("ab", called, pair.datapaths, strict=True)
    ]
    kills = family_kills(*pair.datapaths) if pair.found.vector is not None else ()
    return DifferenceCard(
        number, tuple(map(_row, pairs)), standing(pair), tuple(shown), tuple(view for view in views if not view.both),
        tuple(drawn), tuple(kills),
    )  # fmt: skip


def _told_apart(cards: Sequence[DifferenceCard]) -> tuple[DifferenceCard, ...]:
    """The cards; where several begin with the same work, each with the first instruction that only its pair has."""
    seen: dict[str, list[PairRow]] = defaultdict(list)
    for card in cards:
        seen[card.rows[0].work].append(card.rows[0])
    return tuple(replace(card, apart=_own_name(card.rows[0], seen[card.rows[0].work])) for card in cards)


def _own_name(row: PairRow, alike_rows: Sequence[PairRow]) -> str:
    """The first instruction of the side that these rows have otherwise; none of a row that stands alone."""
    sides = [side for number, side in enumerate(row.sides) if len({each.sides[number] for each in alike_rows}) > 1]
    return sides[0].partition(",")[0].partition(" and ")[0] if sides else ""


def _view(told: ToldDifference, pair: UnitPair, names: tuple[str, str], called: tuple[str, str]) -> DifferenceView:
    what, values = (ALL_TOGETHER, None) if not told.field else _words(told, pair)
    if told.vector is None:
        return DifferenceView(what, values)
    both = _both(told.vector, told.other, pair, called)
    return DifferenceView(what, values, both, tuple(explaining(told.vector, pair, names)))


def _words(told: ToldDifference, pair: UnitPair) -> tuple[str, tuple[str, str]]:
    what, first, second = worded(told, pair)
    return what[:1].upper() + what[1:], (first, second)


def _both(vector: Witness, other: int, pair: UnitPair, called: tuple[str, str]) -> BothAnswers:
    fmt = formats.get(pair.work.d)
    sides = marked(fmt, (called[0], other), (called[1], vector.d))
    how = kinds(fmt, vector.d, other)[:1]  # where they differ in one bit, its place is said
    return BothAnswers(vector_text(vector), how, sides, places(vector.d ^ other))


def _drawn(mark: str, name: str, path: Datapath) -> DrawnSide:
    bits = tuple(_windows(mark, path))
    return DrawnSide(name, meaning(path), draw_tree(path, f"{mark}-tree"), bits)


def _windows(mark: str, path: Datapath) -> Iterator[str]:
    for number, window in enumerate(windows(path), 1):
        yield draw_window(window, f"{mark}-w{number}")
