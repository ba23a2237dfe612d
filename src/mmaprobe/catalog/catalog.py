"""The rows of all data files together: the forms of an architecture, and the instruction of an id."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

from mmaprobe.catalog.architectures import Architectures
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.loader import DataFile
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.catalog.row import Picks, Row
from mmaprobe.catalog.search import ExactText, Pattern, RowSearch, short
from mmaprobe.errors import UsageError

MOST_REMEMBERED = 1 << 16
"""Ids whose instruction is remembered."""


@dataclass(frozen=True, eq=False)
class Form:
    """The instructions of an architecture that differ only in what their row's ranges bind.

    ``first`` is the first of them, ``way`` its lowering there, ``count`` how
    many there are (of those that a glob asked for).
    """

    first: Instruction
    way: Lowering
    count: int
    row: Row
    picks: Picks


@dataclass(frozen=True)
class CatalogEntry:
    """One instruction and what it becomes on each architecture that has it."""

    instruction: Instruction
    ways: Mapping[str, Lowering]


@dataclass(frozen=True, eq=False)
class Catalog:
    """The files, searched row by row; what an architecture lists is worked out once."""

    files: tuple[DataFile, ...]
    known: Architectures
    _forms: dict[str, tuple[Form, ...]] = field(default_factory=dict)
    _ways: dict[tuple[str, Instruction], Lowering] = field(default_factory=dict)

    @property
    def architectures(self) -> tuple[str, ...]:
        """Every architecture, in order."""
        return self.known.names

    def forms(self, architecture: str) -> tuple[Form, ...]:
        """Every form of an architecture, in the files' order; UsageError naming a row that contradicts another."""
        if architecture not in self._forms:
            self._forms[architecture] = tuple(self._listed(architecture))
            self._ways.update({(architecture, form.first): form.way for form in self._forms[architecture]})
        return self._forms[architecture]

    def listed_way(self, made: Instruction, architecture: str) -> Lowering | None:
        """The lowering of a form's first instruction where the architecture's forms are known already."""
        return self._ways.get((architecture, made))

    def matching(self, architecture: str, pattern: Pattern) -> Iterator[Form]:
        """The forms with an id that matches: ``first`` is the first such id, ``count`` how many there are."""
        for row, group in itertools.groupby(self.forms(architecture), key=lambda form: form.row):
            yield from self._matching(RowSearch(row, pattern), row, architecture, group)

    def _matching(self, search: RowSearch, row: Row, architecture: str, group: Iterable[Form]) -> Iterator[Form]:
        allowed = [row.allowed(axis, architecture) for axis in range(len(row.axes))]
        if not search.among(allowed)[0]:
            return
        for form in group:
            allowed[: row.listed] = [(number,) for number in form.picks[: row.listed]]
            count, picks = search.among(allowed)
            if count and picks == form.picks:
                yield Form(form.first, form.way, count, form.row, form.picks)
            elif count:
                made = form.row.instruction(picks)
                yield Form(made, form.row.ways(picks, made, architecture)[0], count, form.row, picks)

    def _listed(self, architecture: str) -> Iterator[Form]:
        seen: set[str] = set()
        for file in self.files:
            for number, row in enumerate(file.rows):
                for form in file.checked(number, partial(row_forms, row, architecture)):
                    if form.first.id in seen:
                        file.checked(number, partial(_twice, form.first.id, architecture))
                    seen.add(form.first.id)
                    yield form

    def homes(self, pattern: Pattern) -> list[str]:
        """The architectures of the rows in which a pattern matches something."""
        rows = [row for file in self.files for row in file.rows if RowSearch(row, pattern).among(row.everything)[0]]
        return [name for name in self.architectures if any(name in row.architectures for row in rows)]

    @cached_property
    def named(self) -> Callable[[str], tuple[CatalogEntry, ...]]:
        """By id the instruction that it names; several where architectures mean different ones by it."""
        return lru_cache(maxsize=MOST_REMEMBERED)(self._named)

    def _named(self, identifier: str) -> tuple[CatalogEntry, ...]:
        pattern = Pattern(ExactText(identifier), _NOTHING)
        found: dict[Instruction, dict[str, Lowering]] = {}
        for file, number, row in self._rows(lambda text: identifier.startswith(text)):
            count, picks = RowSearch(row, pattern).among(row.everything)
            if count > 1:
                file.checked(number, partial(_twice, identifier, "the row's axes"))
            elif count:
                made = row.instruction(picks)
                ways = found.setdefault(made, {})
                for way in row.ways(picks, made):
                    if way.architecture in ways:
                        file.checked(number, partial(_twice, identifier, way.architecture))
                    ways[way.architecture] = way
        return tuple(CatalogEntry(made, ways) for made, ways in found.items() if ways)

    def shortened(self, identifier: str) -> list[str]:
        """The ids with the same short form, the first of each row."""
        brief = short(identifier)
        pattern = Pattern(_NOTHING, ExactText(brief))
        rows = self._rows(lambda text: brief.startswith(short(text)))
        found = [(row, RowSearch(row, pattern).among(row.everything)) for _, _, row in rows]
        return list(dict.fromkeys(row.instruction(picks).id for row, (count, picks) in found if count))

    def _rows(self, begins: Callable[[str], bool]) -> Iterator[tuple[DataFile, int, Row]]:
        """The rows whose opcode's fixed beginning fits."""
        for file in self.files:
            for number, row in enumerate(file.rows):
                if begins(row.table["opcode"].partition("{")[0]):
                    yield file, number, row


_NOTHING = ExactText("\0")


def row_forms(row: Row, architecture: str, most: int | None = None) -> list[Form]:
    """The forms of one row on an architecture, UsageError where they are more than ``most``; UsageError, KeyError or
    ValueError where it contradicts itself."""
    if architecture not in row.architectures:
        return []
    chosen = list(itertools.islice(row.forms(architecture), None if most is None else most + 1))
    if most is not None and len(chosen) > most:
        raise UsageError(f"it has more than {most:,} forms on {architecture}")
    found: list[Form] = []
    for picks, count in chosen:
        made = row.instruction(picks)
        found += (Form(made, way, count, row, picks) for way in row.ways(picks, made, architecture))
    return found


def _twice(name: str, where: str) -> None:
    raise UsageError(f"{name} is there twice on {where}")
