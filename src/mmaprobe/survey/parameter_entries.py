"""Parameter file entries from a survey: each derived primitive with its basis, and each field with its witnesses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.states import default_state
from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.deriving import Derivation
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import json_text
from mmaprobe.evidence.records import Witness
from mmaprobe.parameters.files import BASES, Basis, Entry, ParameterFile
from mmaprobe.survey.comparison import telling
from mmaprobe.survey.publish import followed
from mmaprobe.survey.rows import Row, Survey


def updated(before: ParameterFile, survey: Survey) -> tuple[ParameterFile, dict[str, Instruction]]:
    """The file with what a survey derived, entries by name; and an instruction that runs each primitive in it.

    An entry that says the same function already, on a basis as good, stays as
    it is.  UsageError where two instructions of one primitive were derived and
    differ, or where control states do not follow from the default one.
    """
    if before.entries and before.architecture != survey.architecture:
        raise UsageError(f"the file is of {before.architecture}, the device of {survey.architecture}")
    found: dict[str, Entry] = {}
    runs: dict[str, Instruction] = {}
    for base, rows in groupby(survey.rows, key=lambda row: default_state(row.instruction)):
        name = bare_primitive(survey.architecture, base)
        states = {row.instruction.id: row for row in rows if row.datapath is not None}
        if name is None or base.id not in states:
            continue
        entry = _entry(survey, name, base, states)
        other = found.setdefault(name, entry)
        if not _alike(base, other, entry, survey.seed):
            raise UsageError(f"{base.id} and {runs[name].id} both run {name}, but not the same datapath was derived")
        runs.setdefault(name, base)
    kept = dict(before.entries)
    for name, entry in found.items():
        if name not in kept or not _stays(runs[name], kept[name], entry, survey.seed):
            kept[name] = entry
    return replace(before, architecture=survey.architecture, entries=dict(sorted(kept.items()))), runs


def _stays(base: Instruction, old: Entry, new: Entry, seed: int) -> bool:
    as_good = BASES.index(old.basis) <= BASES.index(new.basis)
    return as_good and set(old.follows) == set(new.follows) and _alike(base, old, new, seed)


def _alike(base: Instruction, x: Entry, y: Entry, seed: int) -> bool:
    return x.datapath == y.datapath or telling(base, x.datapath, y.datapath, seed) is None


def _entry(survey: Survey, name: str, base: Instruction, states: Mapping[str, Row]) -> Entry:
    row = states[base.id]
    assert row.datapath is not None
    search = _search(survey, row)
    basis = basis_of(survey.identity)
    certificate = search.certificate if search else Certificate(())
    proofs = tuple(dict.fromkeys(replace(entry.witness, note="") for entry in certificate.entries if entry.witness))
    return Entry(
        primitive=name,
        datapath=row.datapath,
        basis=basis,
        source=_source(survey, row, search),
        evidence=_evidence(survey) if basis == "measured" else "",
        follows=followed(base, {key: state.datapath for key, state in states.items() if state.datapath}, name),
        notes=tuple(_notes(certificate, proofs)),
        witnesses=proofs,
        origin=survey.architecture,
    )


def basis_of(identity: Mapping[str, str]) -> Basis:
    """What answers rest on: a recording, a model's parameters (which are no measurement), or the device itself."""
    if "recorded" in identity:
        return "recorded"
    return "predicted" if "parameters" in identity else "measured"


def _search(survey: Survey, row: Row) -> Derivation | None:
    """The derivation behind a row: its own, or that of the instruction it equals."""
    if row.derivation is not None:
        return row.derivation
    found = [other.derivation for other in survey.rows if (other.instruction.id,) == row.like]
    return found[0] if found else None


def _evidence(survey: Survey) -> str:
    """The run's id; of a survey by itself one that is the same for the same device and seed."""
    if survey.run:
        return survey.run
    said = {"device": survey.device, "identity": dict(survey.identity), "seed": survey.seed}
    return hashlib.sha256(json_text(said).encode()).hexdigest()[:12]


def _source(survey: Survey, row: Row, search: Derivation | None) -> str:
    whence = f"from the answers of {survey.device} alone, seed {survey.seed}"
    if row.derivation is None:
        return f"{row.compared:,} vectors {whence}, agree with what {' and '.join(row.like)} computes"
    assert search is not None
    open_ = sum(map(len, search.certificate.open_fields.values()))
    return (
        f"derived {whence}: {search.status}; {search.certificate.refuted} neighbours refuted, "
        f"{search.certificate.equivalent} the same function, {open_} open; {search.fresh:,} fresh vectors agree"
    )


def _notes(certificate: Certificate, proofs: tuple[Witness, ...]) -> Iterable[tuple[str, str]]:
    """By field: which values are refuted and by which witness, which mean the same, which are open."""
    numbers = {proof: number for number, proof in enumerate(proofs, 1)}
    for field in dict.fromkeys(entry.field for entry in certificate.entries):
        mine = [entry for entry in certificate.entries if entry.field == field]
        refuted = [f"{e.value} (witness {numbers[replace(e.witness, note='')]})" for e in mine if e.witness]
        same = [e.value for e in mine if e.verdict == "equivalent"]
        open_ = [e.value for e in mine if e.verdict == "open"]
        said = [f"not {', '.join(refuted)}"] if refuted else []
        said += [f"the same function with {', '.join(same)}"] if same else []
        said += [f"could also be {', '.join(open_)}: no vector tells"] if open_ else []
        yield field, "; ".join(said)
