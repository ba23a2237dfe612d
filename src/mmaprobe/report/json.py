"""The summary of a run as JSON, for machines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mmaprobe.evidence.files import write_json
from mmaprobe.report.coverage import coverage_json, coverage_lines
from mmaprobe.report.run_summary import RunSummary, StepRow

SCHEMA = 1
"""What a run's summary says its schema is."""


def to_json(summary: RunSummary) -> dict[str, Any]:
    """The summary's fields, totals and exit code; times are in seconds, rounded to milliseconds."""
    rows = [
        {**asdict(row), "phrases": dict(row.phrases), "seconds": round(row.seconds, 3),
         "coverage": coverage_json(row.coverage), "excluded_one_in": row.excluded}
        for row in summary.rows
    ]  # fmt: skip
    return {
        "schema": SCHEMA,
        "kind": "mmaprobe summary",
        "device": summary.device,
        "identity": dict(summary.identity),
        "run": summary.run,
        "version": summary.version,
        "seed": summary.seed,
        "seconds": round(summary.seconds, 3),
        "evidence": summary.evidence,
        "instructions": rows,
        "not_here": [{"instruction": name, "reason": reason} for name, reason in summary.not_here],
        "vectors": summary.vectors,
        "mismatches": summary.mismatches,
        "excluded_one_in": summary.excluded,
        "bounds": list(summary.bounds),
        "coverage": list(coverage_lines(summary.coverage)),
        "ended": summary.ended,
        "notice": summary.notice,
        "remarks": list(summary.remarks),
        "exit_code": summary.exit_code,
    } | ({"steps": [_step(step) for step in summary.steps]} if summary.steps else {})


def _step(step: StepRow) -> dict[str, object]:
    """A step's row; only one that came to a verdict of its own has an exit code."""
    return {name: value for name, value in asdict(step).items() if value is not None}


def write(summary: RunSummary, path: str | Path) -> None:
    """``to_json`` at ``path``; CannotWriteError where it cannot be written."""
    write_json(Path(path), to_json(summary), "choose another file with --json")
