"""What a bring-up hands on: the archive of its recording, and the parameter file of what it derived."""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.errors import UsageError
from mmaprobe.parameters.files import ParameterFile, to_text
from mmaprobe.runs.recording import write_archive
from mmaprobe.runs.room import Room
from mmaprobe.survey.parameter_entries import updated
from mmaprobe.survey.rows import Row, survey_of

FOLDER = "parameters"


def write_results(room: Room) -> list[str]:
    """Write both into the evidence folder; what could not be, one line each."""
    notes = write_archive(room)
    rows = tuple(_sound(room))
    if not rows:
        return notes
    survey = survey_of(room.device, room.seed, rows, run=room.store.header.run)
    try:
        file, _ = updated(ParameterFile(room.architecture), survey)
    except UsageError as error:
        return [*notes, f"no parameter file is written: {error}"]
    if file.entries:
        room.store.attach(f"{FOLDER}/{room.architecture}.toml", to_text(file).encode())
    return notes


def _sound(room: Room) -> Iterator[Row]:
    """The rows of instructions that nothing speaks against, the control states of each side by side."""
    every = dict.fromkeys(made for group in room.plan.groups for made in group) | dict.fromkeys(room.surveyor.rows)
    for made in every:
        row, part = room.surveyor.rows.get(made), room.parts.get(made.id)
        if row is not None and part is not None and not part.mismatch_count and not room.left_out(made):
            yield row
