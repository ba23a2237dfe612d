"""The certificate: for every neighbour of a datapath, why it is wrong, or that nothing was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import expm1, log1p
from typing import Any, Literal

from mmaprobe.equivalence.checker import Argument
from mmaprobe.errors import UsageError, brief
from mmaprobe.evidence.records import Witness
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.table import Table
from mmaprobe.showing import Row, Showing, counted

Verdict = Literal["refuted", "equivalent", "open"]
Key = tuple[str, str]
"""A field and the value that it does not have."""
Grounds = Witness | Argument | None
"""What speaks against a neighbour, or why it is the same function; None where nothing was found."""


@dataclass(frozen=True)
class SearchedVectors:
    """Vectors that neighbours were held against: the generators that made them, their seed, how many."""

    generators: tuple[str, ...]
    seed: int
    vectors: int

    def form(self) -> dict[str, object]:
        """As evidence keeps it."""
        return {"generators": list(self.generators), "seed": self.seed, "vectors": self.vectors}


@dataclass(frozen=True, repr=False)
class NeighbourVerdict(Showing):
    """The verdict on one neighbour.

    ``refuted``: ``witness`` is a vector on which the device contradicts it.
    ``equivalent``: ``argument`` is one that the checker accepts.  ``open``: no
    vector among ``searched`` told it apart.
    """

    field: str
    value: str
    verdict: Verdict
    witness: Witness | None = None
    argument: Argument | None = None
    searched: int = 0

    def in_a_line(self) -> str:
        """The neighbour and what became of it."""
        return f"{self.field} = {self.value}: {self.verdict}"

    def as_row(self) -> Row:
        """The neighbour, the verdict, and what speaks for it."""
        grounds = self.argument.text if self.argument else self.witness.in_a_line() if self.witness else None
        return {"field": self.field, "value": self.value, "verdict": self.verdict, "grounds": grounds}


RULE_OF_THREE = 3
"""N vectors without a fault exclude, at 95 %, one that shows on 3 in N or more of such vectors: 0.95 = 1 - e**-3."""


BEYOND = "beyond the certificate"
"""What a note about the coverage is called."""
OTHERWISE = "written otherwise"
"""What a datapath is called that agrees with everything asked, is no neighbour, and is not shown to be the same
function."""


@dataclass(frozen=True)
class Coverage:
    """What else the device was held to, and got right: ``fresh`` vectors that the search never saw; ``pairs`` in which
    every pair ``of`` codes (and scales) or significands met in every lane (none: too many); ``answers`` in all, each
    that was asked twice counted twice."""

    fresh: int = 0
    of: str = ""
    pairs: int = 0
    answers: int = 0

    @property
    def excluded(self) -> int:
        """A fault on 1 in so many of the fresh vectors, or more, is excluded at 95 %."""
        return one_in(self.fresh)

    def seen(self, rate: float) -> float:
        """How likely it was to see a device that answers wrongly, by chance, at this rate."""
        return -expm1(self.answers * log1p(-rate))

    def __str__(self) -> str:
        """What was right beyond the certificate, and which faults so many vectors cannot exclude."""
        if self.of:
            right = f"every pair of {self.of} right in every lane ({counted(self.pairs, 'vector')}); of other faults"
        else:
            right = "of faults such as one pair of significands in one lane"
        seen = ", ".join(f"once in {many:,} with {self.seen(1 / many):.0%}" for many in (100_000, 1_000_000))
        return (
            f"{right}, {self.fresh:,} vectors exclude (at 95 %) those that 1 in {self.excluded:,} of them or more "
            f"would show; how likely answers that are wrong by chance would have been seen: {seen}"
        )

    @classmethod
    def of_form(cls, form: Mapping[str, Any]) -> Coverage:
        """What evidence keeps; nothing where it keeps none.  UsageError where it is no such thing."""
        found = cls(form.get("fresh", 0), form.get("pairs_of", ""), form.get("pairs", 0), form.get("answers", 0))
        numbers = (found.fresh, found.pairs, found.answers)
        if not isinstance(found.of, str) or any(type(each) is not int or each < 0 for each in numbers):
            raise UsageError(f"the coverage of a certificate is {brief(dict(form))}; it must be counts of vectors")
        return found

    def form(self) -> dict[str, object]:
        """As evidence keeps it."""
        pairs = {"pairs_of": self.of, "pairs": self.pairs} if self.of else {}
        return {"fresh": self.fresh, **pairs, "answers": self.answers, "excluded_one_in": self.excluded}


def one_in(vectors: int) -> int:
    """A fault on 1 in so many of such vectors, or more, is excluded at 95 % by this many without one."""
    return vectors // RULE_OF_THREE


@dataclass(frozen=True, repr=False)
class Certificate(Showing):
    """All verdicts; ``open_fields`` are what a report must not state as a number, after a search in ``pools``;
    ``otherwise`` are datapaths (``OTHERWISE``), each as what it has otherwise, and as a table."""

    entries: tuple[NeighbourVerdict, ...]
    pools: tuple[SearchedVectors, ...] = ()
    coverage: Coverage = Coverage()
    otherwise: tuple[tuple[str, Table], ...] = ()

    def in_a_line(self) -> str:
        """How many neighbours had which verdict."""
        return f"certificate: {self.counted()}"

    def counted(self) -> str:
        """The verdicts, counted."""
        left = len(self.entries) - self.refuted - self.equivalent
        return f"{counted(self.refuted, 'neighbour')} refuted, {self.equivalent} the same function, {left} open"

    def as_row(self) -> Row:
        """The counts."""
        left = len(self.entries) - self.refuted - self.equivalent
        return {"refuted": self.refuted, "equivalent": self.equivalent, "open": left}

    def as_rows(self) -> list[Row]:
        """A row for each neighbour."""
        return [entry.as_row() for entry in self.entries]

    @property
    def refuted(self) -> int:
        return sum(entry.verdict == "refuted" for entry in self.entries)

    @property
    def equivalent(self) -> int:
        return sum(entry.verdict == "equivalent" for entry in self.entries)

    @classmethod
    def of(
        cls, grounds: Mapping[Key, Grounds], searched: Mapping[Key, int], pools: Iterable[SearchedVectors] = ()
    ) -> Certificate:
        """The verdict on each neighbour from what was found about it, among so many vectors ``searched``."""
        return cls(tuple(_verdict(*key, found, searched[key]) for key, found in grounds.items()), tuple(pools))

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Every vector that refutes a neighbour, once."""
        return tuple(dict.fromkeys(replace(entry.witness, note="") for entry in self.entries if entry.witness))

    def form(self) -> dict[str, object]:
        """As evidence keeps it: the counts, what is open and where it was searched."""
        return {
            "refuted": self.refuted,
            "equivalent": self.equivalent,
            "open": {name: list(values) for name, values in self.open_fields.items()},
            "otherwise": [table for _, table in self.otherwise],
            "searched": [pool.form() for pool in self.pools] if self.open_fields else [],
            "coverage": self.coverage.form(),
        }

    @property
    def open_fields(self) -> dict[str, tuple[str, ...]]:
        """Values that no vector told apart from the datapath's own, by field."""
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.verdict == "open":
                found.setdefault(entry.field, []).append(entry.value)
        return {name: tuple(values) for name, values in found.items()}


def _verdict(field: str, value: str, found: Grounds, searched: int) -> NeighbourVerdict:
    if isinstance(found, Witness):
        return NeighbourVerdict(field, value, "refuted", found, searched=searched)
    return NeighbourVerdict(field, value, "open" if found is None else "equivalent", argument=found, searched=searched)


def witnesses_against(keys: Iterable[Key], table: Bits, answers: Bits, vectors: Batch) -> dict[Key, Witness]:
    """Against each neighbour whose row of ``table`` has a wrong answer the first vector that shows it."""
    found = {}
    for (field, value), wrong in zip(keys, table != answers, strict=True):
        if wrong.any():
            at = int(wrong.argmax())
            found[field, value] = Witness.of(take(vectors, [at]), int(answers[at]), against(field, value))
    return found


def against(field: str, value: str) -> str:
    """What a witness against a neighbour shows."""
    return f"{field} is not {value}"
