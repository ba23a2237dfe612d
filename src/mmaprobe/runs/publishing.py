"""What a bring-up hands on: the archive of its recording, and the parameter file of what it derived."""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.errors import UsageError
from mmaprobe.parameters.files import ParameterFile, to_text
from mmaprobe.runs.recording import write_archive
from mmaprobe.runs.run_state import RunState
from mmaprobe.survey.parameter_entries import updated
from mmaprobe.survey.survey_rows import SurveyRow, survey_of

FOLDER = "parameters"


def write_results(run: RunState) -> list[str]:
    """Write both into the evidence folder; what could not be, one line each."""
    notes = write_archive(run)
    rows = tuple(_sound(run))
    if not rows:
        return notes
    survey = survey_of(run.device, run.seed, rows, run=run.store.header.run)
    try:
        file, _ = updated(ParameterFile(run.architecture), survey)
    except UsageError as error:
        return [*notes, f"no parameter file is written: {error}"]
    if file.entries:
        run.store.attach(f"{FOLDER}/{run.architecture}.toml", to_text(file).encode())
    return notes


def _sound(run: RunState) -> Iterator[SurveyRow]:
    """The rows of instructions that nothing speaks against, the control states of each side by side."""
    every = dict.fromkeys(made for group in run.plan.groups for made in group) | dict.fromkeys(run.surveyor.rows)
    for made in every:
        row, part = run.surveyor.rows.get(made), run.parts.get(made.id)
        if row is not None and part is not None and not part.mismatch_count and not run.left_out(made):
            yield row
