"""What a run came to beside its baseline, as its evidence keeps it: which changes, which of them were expected."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.evidence.files import FileValue, check_seal, json_text, read_json, sealed
from mmaprobe.evidence.records_json import Json
from mmaprobe.evidence.store import Store
from mmaprobe.exit_codes import EQUAL, MISMATCH

RECORD = "baseline.json"
"""The file's name in the evidence of the run."""
SCHEMA = 1
"""What the record says its schema is."""
KIND = "mmaprobe baseline"


def keep_record(store: Store, found: Json) -> None:
    """Put what a run came to beside its baseline into its evidence; CannotWriteError where that cannot be."""
    document = {"schema": SCHEMA, "kind": KIND, "run": store.header.run, **found}
    store.attach(RECORD, json_text(sealed(document)).encode())


def read_record(path: Path) -> FileValue:
    """A record that ``keep_record`` wrote; UsageError where it is none, was changed, or is of a newer schema."""
    document = read_json(path)
    document["kind"].one_of(KIND)
    if document["schema"].whole > SCHEMA:
        raise document["schema"].wrong(f"is {document['schema'].value}; this package reads up to {SCHEMA}")
    check_seal(document, SCHEMA)
    return document


def recorded_code(path: Path) -> int:
    """The exit code of a record: 0 where every change was expected and came, else 1; UsageError as ``read_record``."""
    document = read_record(path)
    expected = all(each["accepted"].typed(bool) for each in document["changes"])
    return EQUAL if expected and not document["stale"].typed(list) else MISMATCH
