"""The writer of parameter files: each derived primitive with its basis, and each field with its witnesses.

What was derived is read from a survey or from the evidence of a run; how it becomes entries is one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.outside import of
from mmaprobe.catalog.states import default_state
from mmaprobe.derivation.certificate import BEYOND, OTHERWISE, Certificate, Coverage
from mmaprobe.derivation.deriving import Derivation
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.equivalence.classes import number_classes
from mmaprobe.errors import UsageError
from mmaprobe.evidence import silicon
from mmaprobe.evidence.files import json_text
from mmaprobe.evidence.store import Part, Store
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import BASES, CONTROLS, Basis, Entry, ParameterFile
from mmaprobe.parameters.lookup import in_control_state
from mmaprobe.parameters.table import from_table
from mmaprobe.showing import counted
from mmaprobe.survey.comparison import alike
from mmaprobe.survey.survey_rows import Survey, SurveyRow


@dataclass(frozen=True)
class Derived:
    """An instruction in its default control state, the datapath of each of its states (by id), and the entry of its
    primitive, which lacks only what it ``follows``."""

    base: Instruction
    states: Mapping[str, Datapath]
    entry: Entry


def updated(before: ParameterFile, survey: Survey) -> tuple[ParameterFile, dict[str, Instruction]]:
    """The file with what a survey derived, entries by name; and an instruction that runs each primitive in it.

    An entry that says the same function already, on a basis as good, stays as
    it is.  UsageError where two instructions of one primitive were derived and
    differ, or where control states do not follow from the default one.
    """
    refuse_other(before, survey.architecture)
    found, runs = _entries(_surveyed(survey), survey.seed)
    kept = dict(before.entries)
    for name, entry in found.items():
        if name not in kept or not _stays(runs[name], kept[name], entry, survey.seed):
            kept[name] = entry
    catalog = tuple(of(survey.architecture))
    return replace(before, architecture=survey.architecture, entries=dict(sorted(kept.items())), catalog=catalog), runs


def refuse_other(file: ParameterFile, architecture: str, name: str = "the file") -> None:
    """UsageError where a file has entries of another architecture than the device's."""
    if file.entries and file.architecture != architecture:
        raise UsageError(f"{name} is of {file.architecture}, the device of {architecture}")


def parameter_file(store: Store) -> ParameterFile:
    """The parameters of the architecture that a run was on, on the basis that its device is (``basis_of``).

    An emulated instruction has no primitive of its own and is passed over, and so is what was only held against what
    another one's primitive was derived to be (another size, placement or modifier of a form).  UsageError as in
    ``updated``, where nothing else was run, and naming the part that stands in the way where one is not finished, has
    mismatches, or has a primitive that was derived of none.
    """
    architecture = store.header.identity.get("architecture", "")
    held = {name for name, part in store.parts.items() if _is_held(part)}
    found, _ = _entries(_recorded(store, architecture, held), store.header.seed)
    for name in sorted(held):
        primitive = bare_primitive(architecture, default_state(instruction(name, architecture)))
        if primitive is not None and primitive not in found:
            raise UsageError(f"{store.path}: {name} is not settled (nothing derived {primitive}); nothing is written")
    if not found:
        raise UsageError(f"{store.path}: nothing that was run is a primitive of {architecture} as it is")
    header = store.header
    remark = silicon.remark(header.device, header.identity)
    source = f"run {header.run} on {header.identity.get('model_name', header.device)}{f', {remark}' if remark else ''}"
    return ParameterFile(architecture, dict(sorted(found.items())), source=source, catalog=tuple(of(architecture)))


def _entries(every: Iterable[Derived], seed: int) -> tuple[dict[str, Entry], dict[str, Instruction]]:
    """The entry of each primitive, and the first instruction that runs it."""
    found: dict[str, Entry] = {}
    runs: dict[str, Instruction] = {}
    for each in every:
        entry = replace(each.entry, follows=_followed(each, seed))
        name, base = entry.primitive, each.base
        if not alike(base, found.setdefault(name, entry).datapath, entry.datapath, seed):
            raise UsageError(f"{base.id} and {runs[name].id} both run {name}, but not the same datapath was derived")
        runs.setdefault(name, base)
    return found, runs


def _followed(found: Derived, seed: int) -> tuple[str, ...]:
    """The controls by which the datapath of every state follows from the default one's; UsageError if none."""
    if len(found.states) == 1:
        return ()
    for size in range(len(CONTROLS) + 1):
        for controls in combinations(CONTROLS, size):
            expected = (
                in_control_state(found.entry.datapath, instruction(name).modifier, controls) for name in found.states
            )
            if all(alike(found.base, *pair, seed) for pair in zip(expected, found.states.values(), strict=True)):
                return controls
    raise UsageError(f"the control states of {found.base.id} do not follow from its default state")


def _stays(base: Instruction, old: Entry, new: Entry, seed: int) -> bool:
    as_good = BASES.index(old.basis) <= BASES.index(new.basis)
    return as_good and set(old.follows) == set(new.follows) and alike(base, old.datapath, new.datapath, seed)


# --- what a survey derived


def _surveyed(survey: Survey) -> Iterator[Derived]:
    for base, rows in groupby(survey.rows, key=lambda row: default_state(row.instruction)):
        name = bare_primitive(survey.architecture, base)
        states = {row.instruction.id: row for row in rows if row.datapath is not None}
        if name is not None and base.id in states:
            paths = {key: row.datapath for key, row in states.items() if row.datapath is not None}
            yield Derived(base, paths, _entry(survey, name, states[base.id]))


def _entry(survey: Survey, name: str, row: SurveyRow) -> Entry:
    assert row.datapath is not None
    search = _search(survey, row)
    basis = basis_of(survey.device, survey.identity)
    certificate = search.certificate if search else Certificate(())
    return Entry(
        primitive=name,
        datapath=row.datapath,
        basis=basis,
        source=_source(survey, row, search),
        evidence=_evidence(survey) if basis == "measured" else "",
        notes=tuple(_notes(certificate)),
        witnesses=certificate.witnesses,
        origin=survey.architecture,
    )


def basis_of(device: str, identity: Mapping[str, str]) -> Basis:
    """What answers rest on: silicon, asked here or recorded; or something else, whose answers are no measurement."""
    if silicon.kind_of(device, identity) != "silicon":
        return "predicted"
    return "recorded" if "recorded" in identity else "measured"


def _search(survey: Survey, row: SurveyRow) -> Derivation | None:
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


def _source(survey: Survey, row: SurveyRow, search: Derivation | None) -> str:
    remark = silicon.remark(survey.device, survey.identity)
    whence = f"from the answers of {survey.device}{f' ({remark})' if remark else ''} alone, seed {survey.seed}"
    if row.derivation is None:
        return f"{counted(row.compared, 'vector')} {whence}, agree with what {' and '.join(row.like)} computes"
    assert search is not None
    open_ = sum(map(len, search.certificate.open_fields.values()))
    fresh = counted(search.fresh, "fresh vector")
    return (
        f"derived {whence}: {search.status}; {counted(search.certificate.refuted, 'neighbour')} refuted, "
        f"{search.certificate.equivalent} the same function, {open_} open; {fresh} agree"
    )


def _notes(certificate: Certificate) -> Iterable[tuple[str, str]]:
    """By field: which values are refuted and by which witness, which mean the same, which are open."""
    numbers = {proof: number for number, proof in enumerate(certificate.witnesses, 1)}
    for field in dict.fromkeys(entry.field for entry in certificate.entries):
        mine = [entry for entry in certificate.entries if entry.field == field]
        refuted = [f"{e.value} (witness {numbers[replace(e.witness, note='')]})" for e in mine if e.witness]
        same = [e.value for e in mine if e.verdict == "equivalent"]
        open_ = [e.value for e in mine if e.verdict == "open"]
        said = [f"not {', '.join(refuted)}"] if refuted else []
        said += [f"the same function with {', '.join(same)}"] if same else []
        said += [f"could also be {', '.join(open_)}: no vector tells"] if open_ else []
        yield field, "; ".join(said)
    if certificate.otherwise:
        yield OTHERWISE, f"could also have {', or '.join(said for said, _ in certificate.otherwise)}: no vector tells"
    if certificate.coverage.fresh:
        yield BEYOND, str(certificate.coverage)


# --- what a run derived, from its evidence


def _is_held(part: Part) -> bool:
    """Whether a part's vectors were held against what another instruction was derived to compute, and all agreed."""
    references = {run["ref"] for run in part.validation.get("runs", ())}
    return part.datapath is None and part.status == "finished" and references == {DatapathDevice.name}


def _recorded(store: Store, architecture: str, held: Collection[str]) -> Iterator[Derived]:
    groups: dict[str, list[Part]] = {}
    for name, part in store.parts.items():
        if name not in held:
            groups.setdefault(default_state(instruction(name, architecture)).id, []).append(part)
    for name, parts in groups.items():
        base = instruction(name, architecture)
        primitive = bare_primitive(architecture, base)
        if primitive is None:
            continue
        states = {part.instruction: _datapath(store, part) for part in parts}
        if name not in states:
            raise UsageError(f"{store.path}: {name} was not run in its default control state")
        yield Derived(base, states, _part_entry(store, architecture, primitive, states[name], parts, store.parts[name]))


def _part_entry(
    store: Store, architecture: str, primitive: str, datapath: Datapath, parts: Sequence[Part], default: Part
) -> Entry:
    vectors, states = sum(part.vectors for part in parts), counted(len(parts), "control state")
    basis = basis_of(store.header.device, store.header.identity)
    return Entry(
        primitive=primitive,
        datapath=datapath,
        basis=basis,
        source=f"derived from the device alone; {counted(vectors, 'vector')} agree in {states}",
        evidence=store.header.run if basis == "measured" else "",
        notes=tuple(_part_notes(default, datapath)),
        witnesses=default.witnesses,
        origin=architecture,
    )


def _datapath(store: Store, part: Part) -> Datapath:
    form = part.datapath or {}
    if part.status != "finished" or part.mismatch_count or not form.get("datapath"):
        why = f"{counted(part.mismatch_count, 'mismatch')}" if part.mismatch_count else form.get("reason")
        why = why or ("nothing derived" if part.status == "finished" else "not finished")
        raise UsageError(f"{store.path}: {part.instruction} is not settled ({why}); nothing is written")
    return from_table(form["datapath"], f"{store.path}: {part.instruction}")


def _part_notes(part: Part, datapath: Datapath) -> Iterator[tuple[str, str]]:
    """The classes of values that no vector told apart, and those that an argument shows to be the same function."""
    certificate = (part.datapath or {}).get("certificate", {})
    for field, values in certificate.get("open", {}).items():
        yield field, f"could also be {', '.join(values)}: no vector tells"
    coverage = Coverage.of_form(certificate.get("coverage", {}))
    if coverage.fresh:
        yield BEYOND, str(coverage)
    yield from ((field, f"{text}: the same function") for field, text in number_classes(datapath).items())
