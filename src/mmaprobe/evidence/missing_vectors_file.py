"""A file of vectors that a recording lacks: the answers that are possible, and room for those of a unit elsewhere.

JSON: ``{"kind", "schema", "unit", "architecture", "questions": [{"instruction",
"formats": {operand: format}, "open": [field, ...], "vectors": [{"a": "3c00 0000 ..",
"b": .., "c": .., "d": null, "rivals": {"4b800000": ["what that would mean"]}}]}]}``.
Codes are hexadecimal, one a lane.  Whoever has the unit puts each answer in the
place of ``null``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as lookup
from mmaprobe.errors import UsageError
from mmaprobe.evidence import files
from mmaprobe.evidence.corpus import Corpus, Set
from mmaprobe.operands.batch import PER_RESULT, Batch, Bits

SCHEMA = 1
"""What a file of missing vectors says its schema is."""
KIND = "mmaprobe questions"
OPERANDS = tuple(each.name for each in fields(Batch))


@dataclass(frozen=True)
class MissingVectors:
    """Those of one instruction; ``open``: the fields that they settle; ``rivals``: of each vector what its possible
    answers would mean; ``answers`` are d (n,), None where there are not all."""

    instruction: Instruction
    vectors: Batch
    open: tuple[str, ...] = ()
    rivals: tuple[Mapping[int, tuple[str, ...]], ...] = ()
    answers: Bits | None = None


def write_missing_vectors(path: Path, unit: str, architecture: str, missing: Sequence[MissingVectors]) -> None:
    """Write the vectors; the same ones give the same bytes."""
    form = {
        "schema": SCHEMA,
        "kind": KIND,
        "unit": unit,
        "architecture": architecture,
        "questions": [_form(each) for each in missing],
    }
    files.write_json(path, form, "choose another file with --ask")


def _form(missing: MissingVectors) -> dict[str, Any]:
    made = missing.instruction
    named = {role: fmt.name for role, fmt in made.formats().items()}
    items = dict(missing.vectors.items())
    rows = []
    for index in range(missing.vectors.size):
        row: dict[str, Any] = {name: _codes(named.get(name), value[index]) for name, value in items.items()}
        answer = None if missing.answers is None else _codes(made.d, missing.answers[index])
        rivals = {_codes(made.d, np.uint64(code)): list(names) for code, names in missing.rivals[index].items()}
        rows.append(row | {"d": answer, "rivals": rivals})
    return {"instruction": made.id, "formats": named, "open": list(missing.open), "vectors": rows}


def _codes(fmt: str | None, value: Any) -> str:
    digits = formats.get(fmt or "u8").container_bits // 4
    return " ".join(f"{int(code):0{digits}x}" for code in np.ravel(value))


def read_missing_vectors(path: Path) -> tuple[str, str, list[MissingVectors]]:
    """The unit, its architecture and the vectors of a file, by instruction; UsageError naming the wrong key."""
    document = files.read_json(path)
    document["kind"].one_of(KIND)
    if document["schema"].whole > SCHEMA:
        raise document["schema"].wrong(f"is newer than {SCHEMA}: pip install --upgrade mmaprobe")
    architecture = document["architecture"].text
    return document["unit"].text, architecture, [_read(each, architecture) for each in document["questions"]]


def as_corpus(path: Path, unit: str, architecture: str, missing: Sequence[MissingVectors]) -> Corpus:
    """The answers that a file of missing vectors holds; UsageError where one is missing."""
    sets: list[Set] = []
    arrays: dict[str, Bits] = {}
    for each in missing:
        made = each.instruction
        if each.answers is None:
            raise UsageError(f"{path}: not every vector of {made.id} has its d; fill them in, or give --device")
        key = f"{unit}/{made.id}"
        sets.append(
            Set(
                key, unit, architecture, "answers to questions", made.a, made.b, made.c or "none", made.d, made.k,
                each.vectors.size, made.id, made.scale or "", made.scale_size, made.chunk, made.random or "",
            )
        )  # fmt: skip
        arrays |= {f"{key}/{name}": value for name, value in [*each.vectors.items(), ("d", each.answers)]}
    return Corpus(sets, arrays)


def _read(record: files.FileValue, architecture: str) -> MissingVectors:
    made = lookup(record["instruction"].text, architecture)
    rows = list(record["vectors"])
    if not rows:
        raise record["vectors"].wrong("is empty")
    named = made.formats()
    operands: dict[str, Bits] = {}
    for name in OPERANDS:
        if name in rows[0].typed(dict):
            dtype = named[name].dtype if name in named else np.dtype(np.uint8)
            value = np.array([_lanes(row[name]) for row in rows], dtype)
            operands[name] = value[:, 0] if name in PER_RESULT else value
    given = [row["d"].value is not None for row in rows]
    answers = np.array([_lanes(row["d"])[0] for row in rows], named["d"].dtype) if all(given) else None
    return MissingVectors(made, Batch(**operands), answers=answers)


def _lanes(field: files.FileValue) -> list[int]:
    try:
        return [int(word, 16) for word in field.text.split()]
    except ValueError:
        raise field.wrong(f"must be hexadecimal codes, not {field.text!r:.60}") from None
