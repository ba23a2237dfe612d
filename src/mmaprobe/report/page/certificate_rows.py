"""The certificate of a derivation, made again from its evidence: each rival of each parameter, and what speaks against
it.

Evidence keeps the counts of a certificate, what is open, and the vectors; which vector refutes which rival follows from
the vectors and the datapath.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.dense_view import kept
from mmaprobe.derivation.hypotheses.grammar import control_variants, control_words
from mmaprobe.equivalence.arguments import argument
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Witness
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import in_words
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood
from mmaprobe.parameters.table import fields
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted

CONTROL = "control state"
"""What the field of a rival is called that is the same datapath in another control state."""


@dataclass(frozen=True)
class RivalRow:
    """One rival: the field in words, its value, that of the rival, the verdict, and the vector with both answers or
    the argument that it is the same function."""

    field: str
    own: str
    rival: str
    verdict: str
    vector: str = ""
    device: str = ""
    rival_says: str = ""
    argument: str = ""


@dataclass(frozen=True)
class CertificateView:
    """What a page shows of a certificate: ``counts`` are those that evidence has, by verdict, ``rows`` what was made of
    it again; where they are not what was counted, ``missing`` says why."""

    counts: Mapping[str, int]
    rows: tuple[RivalRow, ...]
    missing: str = ""

    @property
    def by_vector(self) -> dict[tuple[str, str, str], list[RivalRow]]:
        """The rows by the vector that refutes them, the device's answer to it, and the argument where there is none."""
        found: dict[tuple[str, str, str], list[RivalRow]] = {}
        for row in self.rows:
            found.setdefault((row.vector, row.device, row.argument), []).append(row)
        return found


def certificate_view(form: FileValue, made: Instruction | None, architecture: str, start: Datapath | None,
                     found: Datapath, witnesses: Sequence[Witness]) -> CertificateView:  # fmt: skip
    """The certificate that a part's derivation has.

    ``start``: what was derived in the default control state, around which other states are searched.
    """
    unsettled = [form["open"][name].typed(list) for name in form["open"].typed(dict)]
    counts = {name: form[name].whole for name in ("refuted", "equivalent")} | {"open": sum(map(len, unsettled))}
    if made is None:
        return CertificateView(counts, (), "no catalog knows this instruction, so that its vectors cannot be read")
    total = sum(counts.values())
    rivals = _rivals(found, start, total)
    rows = _rows(found, rivals, made, architecture, witnesses)
    again = {verdict: sum(row.verdict == verdict for row in rows) for verdict in counts}
    wrong = "" if again == counts else f"its vectors make {_counted(again)}, the evidence says {_counted(counts)}"
    if len(rivals) != total:
        named = counted(len(rivals), "rival")
        wrong = f"this version of mmaprobe names {named}, the one that wrote the evidence named {total}"
    return CertificateView(counts, rows, wrong)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())


def _rivals(found: Datapath, start: Datapath | None, count: int) -> list[Neighbour]:
    """The neighbours, or where so many were judged as there are control states what else the state could be."""
    near = neighbourhood(found)
    if len(near) == count or start is None:
        return near
    others = [path for path in dict.fromkeys(control_variants(start)) if path != found]
    return [Neighbour(CONTROL, control_words(path), path) for path in others] if len(others) == count else near


def _rows(found: Datapath, rivals: Sequence[Neighbour], made: Instruction, architecture: str,
          witnesses: Sequence[Witness]) -> tuple[RivalRow, ...]:  # fmt: skip
    own = {path: str(value) for path, value in fields(found)} | {CONTROL: control_words(found)}
    table: Any = np.zeros((len(rivals), 0), np.uint8)
    if witnesses:
        table = evaluate_many([each.datapath for each in rivals], kept(architecture, made, as_vectors(made, witnesses)))
    digits = -(-formats.get(made.d).bits // 4)
    rows = []
    for rival, answers in zip(rivals, table.tolist(), strict=True):
        words = in_words(rival.field), own.get(rival.field, ""), rival.value
        at = next((n for n, answer in enumerate(answers) if answer != witnesses[n].d), None)
        if at is not None:
            shown = f"{witnesses[at].d:#0{digits + 2}x}", f"{answers[at]:#0{digits + 2}x}"
            rows.append(RivalRow(*words, "refuted", vector_text(witnesses[at]), *shown))
            continue
        why = argument(found, rival) if rival.field != CONTROL else None
        rows.append(RivalRow(*words, "open" if why is None else "equivalent", argument=why.text if why else ""))
    return tuple(sorted(rows, key=lambda row: row.field))
