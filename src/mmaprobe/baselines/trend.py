"""Night by night: what was compared, what differed, and what changed since the night before, asked of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mmaprobe.baselines.gate import names_it
from mmaprobe.baselines.tables import RunTables
from mmaprobe.derivation.certificate import one_in
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.survey.smoke import NOT_DRAWN

COLUMNS = (
    "begun", "run", "unit", "driver", "finished", "instructions", "vectors", "mismatches", "rate", "excluded_one_in",
    "vectors_per_second", "changes",
)  # fmt: skip
OF_AN_INSTRUCTION = ("begun", "run", "unit", "instruction", "outcome", "vectors", "mismatches", "function", "changed")
NIGHTS = """
WITH nights AS (SELECT *, lag(run) OVER (PARTITION BY unit ORDER BY begun, run) AS before FROM runs),
both_of AS (
    SELECT nights.run AS night, instruction, function, outcome FROM nights JOIN instructions USING (run)
    WHERE before IS NOT NULL
    UNION ALL
    SELECT nights.run, instruction, function, outcome FROM nights JOIN instructions ON instructions.run = before),
changed AS (
    SELECT night, instruction FROM both_of GROUP BY night, instruction
    HAVING count(*) < 2 OR count(DISTINCT coalesce(function, '')) > 1 OR count(DISTINCT outcome) > 1)
"""
"""Of each unit's runs in order of time: the one before, and the instructions whose function or outcome is another
there, or that one of the two lacks."""
TREND = (
    NIGHTS
    + """
SELECT nights.*, drawn, CASE WHEN before IS NOT NULL THEN coalesce(counted, 0) END AS changes
FROM nights LEFT JOIN (SELECT night, count(*) AS counted FROM changed GROUP BY night) ON night = run
LEFT JOIN (SELECT run, CAST(sum(vectors) AS BIGINT) AS drawn FROM families
           WHERE family NOT IN (SELECT unnest($not_drawn)) GROUP BY run) AS bound ON bound.run = nights.run
ORDER BY unit, begun, nights.run
"""
)
OF_ONE = (
    NIGHTS
    + """
SELECT nights.begun, nights.run, unit, instructions.instruction, outcome, instructions.vectors,
       instructions.mismatches, function, changed.night IS NOT NULL AS changed
FROM nights JOIN instructions USING (run)
LEFT JOIN changed ON changed.night = nights.run AND changed.instruction = instructions.instruction
ORDER BY unit, instructions.instruction, begun, run
"""
)


def trend(found: RunTables) -> list[dict[str, Any]]:
    """A row a night, of each unit in order of time.

    ``rate``: mismatches a vector; where there is none ``excluded_one_in``: a fault on one in so many vectors of the
    generators that made them, or more, is excluded at 95 %; None where no generator did.  ``vectors_per_second`` of a
    run by steps, whose seconds are known.  ``changes``: instructions of which the night before said otherwise; None
    for the first night.
    """
    return [_night(row) for row in _asked(found, TREND, {"not_drawn": NOT_DRAWN})]


def trend_of(found: RunTables, pattern: str) -> list[dict[str, Any]]:
    """A row a night and instruction that an id, its short form or a glob names; UsageError where it names none."""
    rows = [row for row in _asked(found, OF_ONE) if names_it(pattern, row["instruction"])]
    if not rows:
        raise UsageError(f"--instruction {pattern!r} names no instruction of these runs")
    return rows


def _asked(found: RunTables, query: str, given: Mapping[str, object] | None = None) -> Sequence[dict[str, Any]]:
    try:
        import duckdb
    except ImportError:
        raise NotHereError("trends need pyarrow and duckdb; type: pip install 'mmaprobe[cluster]'") from None
    with duckdb.connect() as connection:
        for name, table in found.tables.items():
            connection.register(name, table)
        answer = connection.execute(query, given)
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _night(row: dict[str, Any]) -> dict[str, Any]:
    vectors, mismatches, seconds = row["vectors"], row["mismatches"], row["seconds"]
    more = {
        "rate": _short(mismatches / vectors) if vectors else None,
        "excluded_one_in": None if mismatches else one_in(row["drawn"] or 0) or None,
        "vectors_per_second": _short(vectors / seconds) if seconds else None,
    }
    return {name: (row | more)[name] for name in COLUMNS}


def _short(number: float) -> float:
    return float(f"{number:.3g}")
