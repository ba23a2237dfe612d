"""The steps of a run as evidence keeps them: what each is for, its slices of time, and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mmaprobe.evidence import records_json
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records_json import Json

StepStatus = Literal["finished", "partial", "not begun"]


@dataclass(frozen=True)
class Slice:
    """One turn of a step: seconds taken, the device's reading before and after (where it has any), and notes."""

    seconds: float
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """As the manifest holds it."""
        return {
            "seconds": round(self.seconds, 3),
            "before": records_json.json_value(dict(self.before), "reading"),
            "after": records_json.json_value(dict(self.after), "reading"),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class StepRecord:
    """One step: ``text`` says in a line how far it is, ``result`` is what it found, in a file of its own."""

    name: str
    purpose: str
    status: StepStatus = "not begun"
    text: str = ""
    slices: tuple[Slice, ...] = ()
    result: Json = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Seconds of all slices."""
        return sum(each.seconds for each in self.slices)

    def to_json(self) -> Json:
        """As the manifest holds it, without the result."""
        return {
            "purpose": self.purpose,
            "status": self.status,
            "text": self.text,
            "slices": [each.to_json() for each in self.slices],
        }


def step_from_json(name: str, entry: FileValue, result: Json) -> StepRecord:
    """The step that a manifest's entry and the step's own file tell of."""
    return StepRecord(
        name,
        entry["purpose"].text,
        entry["status"].one_of("finished", "partial", "not begun"),
        entry["text"].text,
        tuple(_slice(each) for each in entry["slices"]),
        result,
    )


def _slice(entry: FileValue) -> Slice:
    seconds = entry["seconds"].value
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise entry["seconds"].wrong(f"must be a number, not {seconds!r:.60}")
    notes = tuple(note.text for note in entry["notes"])
    return Slice(float(seconds), entry["before"].typed(dict), entry["after"].typed(dict), notes)
