"""What derivations do to a parameter file: checked, or written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmaprobe.survey.survey_rows import Survey


def check_target(write: Path, architecture: str) -> None:
    """UsageError where a file cannot take what is derived on an architecture: said before hours of work, not after."""
    from mmaprobe.catalog.lookup import parts
    from mmaprobe.parameters.files import ParameterFile
    from mmaprobe.parameters.lookup import read_file
    from mmaprobe.survey.parameter_entries import refuse_other

    refuse_other(read_file(write) if write.exists() else ParameterFile(architecture), architecture, str(write))
    parts(architecture)


def changes_of(found: Survey, write: Path | None, check: bool) -> list[str]:
    """What a parameter file would say anew, in sentences: ``write``'s, else the shipped one; written unless checked."""
    from mmaprobe.evidence.files import write_bytes
    from mmaprobe.parameters.files import ParameterFile, to_text
    from mmaprobe.parameters.lookup import read_file
    from mmaprobe.report.datapath import changes
    from mmaprobe.survey.parameter_entries import updated

    if write is None:
        return changes.shipped_lines(found) if check else []
    before = read_file(write) if write.exists() else ParameterFile(found.architecture)
    after, runs = updated(before, found)
    if not check and after.entries and after != before:
        write_bytes(write, to_text(after).encode(), "choose another file with --write")
    return changes.change_lines(before, after, runs, found.seed)
