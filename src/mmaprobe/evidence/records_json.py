"""Witness, Finding and Mismatch as JSON values and back; bit patterns are hex texts."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, get_args

import numpy as np

from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Finding, FindingStatus, Mismatch, Retest, Witness
from mmaprobe.operands.batch import PER_RESULT

Json = dict[str, Any]
_LISTS = ("a", "b", "scale_a", "scale_b", "metadata")
_COUNTS = ("asked", "same", "other")
_SAID = ("seen", "reference_says", "device_as", "format")


def json_value(value: Any, where: str = "value") -> Any:
    """``value`` as JSON holds it: tuples become lists, NumPy scalars Python ones.

    Raises UsageError naming ``where`` for anything that JSON cannot hold.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: json_value(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item, f"{where}[{index}]") for index, item in enumerate(value)]
    raise UsageError(f"{where}: a {type(value).__name__} does not go into evidence: {value!r:.60}")


def _hex(values: Sequence[int]) -> list[str]:
    return [f"{value:#x}" for value in values]


def witness_to_json(witness: Witness) -> Json:
    """A witness with its bit patterns as hex; absent operands are left out."""
    lists = {name: _hex(getattr(witness, name)) for name in _LISTS if getattr(witness, name)}
    single = {name: getattr(witness, name) for name in PER_RESULT}
    scalars = {name: f"{code:#x}" for name, code in single.items() if code is not None}
    return {**lists, **scalars, "d": f"{witness.d:#x}", "note": witness.note}


def witness_from_json(field: FileValue) -> Witness:
    """The witness that ``witness_to_json`` wrote."""
    given = field.typed(dict)
    codes: Json = {"a": (), "b": (), "c": None}
    codes |= {name: tuple(item.bits for item in field[name]) for name in _LISTS if name in given}
    codes |= {name: field[name].bits for name in PER_RESULT if name in given}
    return Witness(**codes, d=field["d"].bits, note=field["note"].text)


def finding_to_json(finding: Finding) -> Json:
    """A finding; UsageError where its answer is not JSON-able."""
    return {
        "question": finding.question,
        "status": finding.status,
        "answer": json_value(finding.answer, f"the answer to {finding.question}"),
        "text": finding.text,
        "witnesses": [witness_to_json(witness) for witness in finding.witnesses],
        "tiles": int(finding.tiles),
        "launches": int(finding.launches),
    }


def finding_from_json(field: FileValue) -> Finding:
    """The finding that ``finding_to_json`` wrote; tuples in its answer have become lists."""
    return Finding(
        question=field["question"].text,
        status=field["status"].one_of(*get_args(FindingStatus)),
        answer=field["answer"].value,
        text=field["text"].text,
        witnesses=tuple(witness_from_json(item) for item in field["witnesses"]),
        tiles=field["tiles"].whole,
        launches=field["launches"].whole,
    )


def mismatch_to_json(mismatch: Mismatch) -> Json:
    """A mismatch; what it lacks is left out."""
    out: Json = {
        "vector": witness_to_json(mismatch.vector),
        "expected": f"{mismatch.expected:#x}",
        "recipe": mismatch.recipe,
        "stable": mismatch.stable,
    }
    if mismatch.shrunk is not None:
        out["shrunk"] = witness_to_json(mismatch.shrunk)
    if mismatch.shrunk_expected is not None:
        out["shrunk_expected"] = f"{mismatch.shrunk_expected:#x}"
    if mismatch.retests:
        out["retests"] = [_retest_to_json(retest) for retest in mismatch.retests]
    if mismatch.kinds:
        out["kinds"] = list(mismatch.kinds)
    if mismatch.slot:
        out["slot"] = mismatch.slot
    return out | {name: said for name in _SAID if (said := getattr(mismatch, name))}


def mismatch_from_json(field: FileValue) -> Mismatch:
    """The mismatch that ``mismatch_to_json`` wrote, here or in an older version."""
    given = field.typed(dict)
    found = Mismatch(
        vector=witness_from_json(field["vector"]),
        expected=field["expected"].bits,
        recipe=field["recipe"].text,
        stable=field["stable"].typed(bool),
        shrunk=witness_from_json(field["shrunk"]) if "shrunk" in given else None,
        shrunk_expected=field["shrunk_expected"].bits if "shrunk_expected" in given else None,
        retests=tuple(map(_retest_from_json, field["retests"])) if "retests" in given else (),
        kinds=tuple(kind.text for kind in field["kinds"]) if "kinds" in given else (),
        slot=field["slot"].whole if "slot" in given else 0,
        **{name: field[name].text for name in _SAID if name in given},
    )
    if found.retests and found.stable != (found.retests[0].outcome == "stable"):
        raise field["stable"].wrong(f"is {found.stable}, but the retest was {found.retests[0].outcome}")
    return found


def _retest_to_json(retest: Retest) -> Json:
    counts = {name: getattr(retest, name) for name in _COUNTS}
    return counts | ({"where": retest.where} if retest.where else {})


def _retest_from_json(field: FileValue) -> Retest:
    counts = {name: field[name].whole for name in _COUNTS}
    if min(counts.values()) < 0 or not 0 < counts["asked"] >= counts["same"] + counts["other"]:
        raise field.wrong("has more wrong answers than were asked for, or fewer than none")
    return Retest(**counts, where=field["where"].text if "where" in field.typed(dict) else "")
