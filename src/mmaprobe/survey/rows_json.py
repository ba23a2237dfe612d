"""Rows of a survey as JSON and back, so that a survey goes on where it ended and its parameters can be written."""

from __future__ import annotations

from typing import Any, get_args

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.certificate import Certificate, Coverage, NeighbourVerdict, Verdict
from mmaprobe.derivation.deriving import Derivation, DerivationStatus
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records_json import witness_from_json, witness_to_json
from mmaprobe.parameters.table import Table, from_table, to_table
from mmaprobe.survey.survey_rows import SurveyOutcome, SurveyRow

Json = dict[str, Any]


def row_to_json(row: SurveyRow) -> Json:
    """A row: outcome, datapath, cost, and of its derivation the verdicts with their witnesses."""
    return {
        "outcome": row.outcome,
        "datapath": to_table(row.datapath) if row.datapath else None,
        "derivation": _derivation_to_json(row.derivation) if row.derivation else None,
        "like": list(row.like),
        "compared": row.compared,
        "tiles": row.tiles,
        "launches": row.launches,
        "reason": row.reason,
    }


def row_from_json(made: Instruction, entry: FileValue) -> SurveyRow:
    """The row of an instruction as ``row_to_json`` wrote it, without what its derivation tried and threw away."""
    table, derivation = entry["datapath"].value, entry["derivation"]
    datapath = from_table(table, f"{entry.file}: {made.id}") if table else None
    return SurveyRow(
        made,
        entry["outcome"].one_of(*get_args(SurveyOutcome)),
        datapath,
        _derivation(made, datapath, derivation) if derivation.value else None,
        tuple(name.text for name in entry["like"]),
        entry["compared"].whole,
        entry["tiles"].whole,
        entry["launches"].whole,
        reason=entry["reason"].text,
    )


def _derivation_to_json(found: Derivation) -> Json:
    entries = [
        {"field": each.field, "value": each.value, "verdict": each.verdict, "searched": each.searched}
        | ({"witness": witness_to_json(each.witness)} if each.witness else {})
        for each in found.certificate.entries
    ]
    return {
        "status": found.status,
        "reason": found.reason,
        "certificate": entries,
        "otherwise": [{"said": said, "datapath": table} for said, table in found.certificate.otherwise],
        "coverage": found.certificate.coverage.form(),
        "witnesses": [witness_to_json(each) for each in found.witnesses],
        "fresh": found.fresh,
        "vectors": found.vectors,
    }


def _derivation(made: Instruction, datapath: Any, entry: FileValue) -> Derivation:
    verdicts = tuple(
        NeighbourVerdict(
            each["field"].text,
            each["value"].text,
            each["verdict"].one_of(*get_args(Verdict)),
            witness_from_json(each["witness"]) if "witness" in each.typed(dict) else None,
            searched=each["searched"].whole,
        )
        for each in entry["certificate"]
    )
    witnesses = tuple(witness_from_json(each) for each in entry["witnesses"])
    return Derivation(
        instruction=made.id, status=entry["status"].one_of(*get_args(DerivationStatus)), datapath=datapath,
        certificate=Certificate(verdicts, coverage=_coverage(entry), otherwise=_otherwise(entry)), findings={},
        witnesses=witnesses, tiles=0, launches=0, vectors=entry["vectors"].whole, fresh=entry["fresh"].whole,
        seconds=0.0, reason=entry["reason"].text,
    )  # fmt: skip


def _otherwise(entry: FileValue) -> tuple[tuple[str, Table], ...]:
    """What agreed as well; nothing in evidence from before it was kept."""
    found = entry["otherwise"] if "otherwise" in entry.typed(dict) else ()
    return tuple((each["said"].text, each["datapath"].typed(dict)) for each in found)


def _coverage(entry: FileValue) -> Coverage:
    """What the device was held to beyond the certificate; nothing in evidence from before it was kept."""
    return Coverage.of_form(entry["coverage"].typed(dict)) if "coverage" in entry.typed(dict) else Coverage()
