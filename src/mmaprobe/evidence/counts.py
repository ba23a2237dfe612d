"""Whether the counts of a part agree with one another: a part keeps no verdict, its counts are all there is.

What a device did wrong is no count: it is kept as ``error`` with its ``error_code``, and is never equal.
"""

from __future__ import annotations

from mmaprobe.evidence.cell_counts import cell_counts_from_json
from mmaprobe.evidence.files import FileValue
from mmaprobe.exit_codes import CANNOT_WRITE, DEVICE_FAILED, INCONCLUSIVE, INTERNAL, MISMATCH, NOT_HERE, USAGE

ERRORS = (MISMATCH, USAGE, NOT_HERE, INCONCLUSIVE, DEVICE_FAILED, CANNOT_WRITE, INTERNAL)
"""The exit codes that an error of an instruction can have."""


def check_counts(document: FileValue) -> None:
    """UsageError where the counts of a part's document do not add up: families, runs, totals, mismatches shown."""
    validation = document["validation"]
    said = validation.typed(dict)
    if "coverage" in said:
        cell_counts_from_json(validation["coverage"])
    runs = list(validation["runs"]) if "runs" in said else [validation] if "families" in said else []
    totals = {"vectors": document["vectors"], "mismatches": document["mismatch_count"]}
    for name, total in totals.items():
        summed = sum(_summed(run, name) for run in runs)
        for stated in (total, *([validation[name]] if name in said else [])):
            if stated.whole != summed:
                raise stated.wrong(f"is {stated.whole:,}, but the families of generators make {summed:,}")
    shown, counted = document["mismatches"], totals["mismatches"].whole
    if len(shown.typed(list)) > counted:
        raise shown.wrong(f"shows {len(shown.value)}, but {counted:,} were counted")
    if "error" in said and validation["error_code"].value not in ERRORS:
        raise validation["error_code"].wrong("is no exit code of an error")
    if document["status"].text == "finished" and (counted or "error" in said) and "runs" in said:
        raise document["status"].wrong("is 'finished', but the comparison ended with a mismatch or an error")


def _summed(run: FileValue, name: str) -> int:
    """The sum over the families of a run, which must be what the run says."""
    counts = [run["families"][family] for family in run["families"].typed(dict)]
    for count in counts:
        if not 0 <= count["mismatches"].whole <= count["vectors"].whole:
            raise count.wrong("has more mismatches than vectors, or fewer than none")
    summed = sum(count[name].whole for count in counts)
    if run[name].whole != summed:
        raise run[name].wrong(f"is {run[name].whole:,}, but its families of generators make {summed:,}")
    if run["vectors"].whole > run["planned"].whole:
        raise run["planned"].wrong("is less than was compared")
    return summed
