"""The certificate: for every neighbour of a datapath, why it is wrong, or that nothing was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mmaprobe.equivalence.checker import Argument
from mmaprobe.evidence.records import Witness
from mmaprobe.operands.batch import Batch, Bits, take

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


@dataclass(frozen=True)
class NeighbourVerdict:
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


@dataclass(frozen=True)
class Certificate:
    """All verdicts; ``open_fields`` are what a report must not state as a number, after a search in ``pools``."""

    entries: tuple[NeighbourVerdict, ...]
    pools: tuple[SearchedVectors, ...] = ()

    @property
    def refuted(self) -> int:
        return sum(entry.verdict == "refuted" for entry in self.entries)

    @property
    def equivalent(self) -> int:
        return sum(entry.verdict == "equivalent" for entry in self.entries)

    @classmethod
    def of(cls, grounds: Mapping[Key, Grounds], searched: int, pools: Iterable[SearchedVectors] = ()) -> Certificate:
        """The verdict on each neighbour from what was found about it, among ``searched`` vectors."""
        return cls(tuple(_verdict(*key, found, searched) for key, found in grounds.items()), tuple(pools))

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
            "searched": [pool.form() for pool in self.pools] if self.open_fields else [],
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
            found[field, value] = Witness.of(take(vectors, [at]), int(answers[at]), f"{field} is not {value}")
    return found
