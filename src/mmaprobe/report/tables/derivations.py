"""A survey as a table for a person and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from rich.console import Console

from mmaprobe.evidence.silicon import notice
from mmaprobe.parameters.table import to_table
from mmaprobe.report.tables.listing import table
from mmaprobe.showing import counted
from mmaprobe.survey.survey_rows import Survey, SurveyOutcome, SurveyRow

UNSETTLED: tuple[SurveyOutcome, ...] = ("inconclusive", "refused", "failed")


def print_survey(console: Console, survey: Survey) -> None:
    """Every datapath derived and how many instructions compute it, what is not settled and why, the cost."""
    alike: dict[str, int] = {}
    for row in survey.of("equal"):
        for name in row.like:
            alike[name] = alike.get(name, 0) + 1
    rows = [
        {"derived": row.instruction.id, "status": row.derivation.status if row.derivation else "-",
         "equal to it": alike.get(row.instruction.id, 0), "tiles": row.tiles, "launches": row.launches,
         "seconds": f"{row.seconds:.2f}"}
        for row in survey.of("derived")
    ]  # fmt: skip
    if rows:
        console.print(table(rows, ("derived", "status", "equal to it", "tiles", "launches", "seconds")))
    for row in (row for outcome in UNSETTLED for row in survey.of(outcome)):
        console.print(f"{row.outcome}: {row.instruction.id}: {row.reason}")
    if survey.absent:
        name, reason = survey.absent[0]
        console.print(f"{len(survey.absent)} more do not run here, such as {name}: {reason}")
    console.print("\n".join(summary_lines(survey)))


def summary_lines(survey: Survey) -> list[str]:
    """How many of which outcome; tiles, launches and seconds of the derivations, median and most."""
    derived, equal = survey.of("derived"), survey.of("equal")
    counts = [f"{len(derived)} derived", f"{len(equal)} equal to one of them"]
    counts += [f"{len(survey.of(name))} {name}" for name in UNSETTLED if survey.of(name)]
    lines = [said] if (said := notice(survey.device, survey.identity)) else []
    lines += [
        f"{survey.device}: {counted(len(survey.rows), 'instruction')}: {', '.join(counts)}; {survey.seconds:.1f} s"
    ]
    if derived:
        cost = _cost(derived)
        said = ", ".join(f"{name} {each['median']:,g} ({each['most']:,g})" for name, each in cost.items())
        lines.append(f"a derivation, median (most): {said}")
    if equal:
        least = min(row.excluded for row in equal)
        lines.append(
            f"an equal one: {median(row.compared for row in equal):,g} vectors compared, "
            f"{median(row.launches for row in equal):g} launches; a fault on 1 in {least:,} of such vectors, or more, "
            "is excluded (95 %)"
        )
    return lines


def _cost(rows: Sequence[SurveyRow]) -> dict[str, dict[str, float]]:
    values: dict[str, list[float]] = {
        "tiles": [row.tiles for row in rows],
        "launches": [row.launches for row in rows],
        "seconds": [round(row.seconds, 2) for row in rows],
    }
    return {name: {"median": round(median(each), 2), "most": max(each)} for name, each in values.items()}


def survey_json(survey: Survey) -> dict[str, Any]:
    """Every row with its datapath and what it cost, and the totals."""
    derived = survey.of("derived")
    return {
        "kind": "mmaprobe survey",
        "device": survey.device,
        "identity": dict(survey.identity),
        "seed": survey.seed,
        "seconds": round(survey.seconds, 3),
        "counts": {name: len(survey.of(name)) for name in ("derived", "equal", *UNSETTLED)},
        "cost": _cost(derived) if derived else {},
        "instructions": [_row(row) for row in survey.rows],
        "not_here": [{"instruction": name, "reason": reason} for name, reason in survey.absent],
    }


def _row(row: SurveyRow) -> dict[str, Any]:
    form: dict[str, Any] = {
        "instruction": row.instruction.id, "outcome": row.outcome, "like": list(row.like), "compared": row.compared,
        **({"excluded_one_in": row.excluded} if row.outcome == "equal" else {}),
        "tiles": row.tiles, "launches": row.launches, "seconds": round(row.seconds, 3), "reason": row.reason,
    }  # fmt: skip
    if row.derivation is not None:
        form["derivation"] = row.derivation.form()
    elif row.datapath is not None:
        form["datapath"] = to_table(row.datapath)
    return form


def survey_code(survey: Survey) -> int:
    """5 where the device failed, 4 where something is not settled, else 0."""
    return 5 if survey.of("failed") else 4 if survey.of("inconclusive") or survey.of("refused") else 0
