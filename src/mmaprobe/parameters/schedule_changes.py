"""What two schedules say otherwise, field by field."""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.parameters.schedule import Schedule
from mmaprobe.parameters.table import flatten, write_record


@dataclass(frozen=True)
class ScheduleChange:
    """A field by its path in the file, and what each of two schedules says; ``-``: nothing."""

    field: str
    p: str
    q: str


def schedule_changes(p: Schedule, q: Schedule) -> list[ScheduleChange]:
    """Every field but those of the scope, kernels first; they are called by their names."""
    first, second = _leaves(p), _leaves(q)
    return [
        ScheduleChange(path, first.get(path, "-"), second.get(path, "-"))
        for path in dict.fromkeys([*first, *second])
        if first.get(path) != second.get(path)
    ]


def _leaves(schedule: Schedule) -> dict[str, str]:
    table = write_record(schedule)
    del table["scope"]
    kernels = {f"kernel {each['name']}": each for each in table.pop("kernels", [])}
    return {path: str(value) for path, value in flatten({**kernels, **table})}
