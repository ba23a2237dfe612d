"""Turn the evidence of a run into a parameter file: each derived datapath, measured, with its witnesses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, lowering
from mmaprobe.catalog.states import default_state
from mmaprobe.derivation.dense_view import dense_form
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.equivalence.classes import number_classes
from mmaprobe.errors import UsageError
from mmaprobe.evidence.store import Part, Store
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import CONTROLS, Entry, ParameterFile
from mmaprobe.parameters.lookup import in_control_state
from mmaprobe.parameters.table import from_table

VECTORS = 4000


def parameter_file(store: Store) -> ParameterFile:
    """The parameters of the architecture that a run was on, basis ``measured``.

    Every instruction's parts must be finished, derived and without mismatch;
    its control states must all follow from the default one by the control state
    rule, and instructions that share a primitive must share the datapath.
    Raises UsageError naming the part that stands in the way.
    """
    architecture = store.header.identity.get("architecture", "")
    groups: dict[str, list[Part]] = {}
    for part in store.parts.values():
        groups.setdefault(default_state(instruction(part.instruction, architecture)).id, []).append(part)
    entries: dict[str, Entry] = {}
    for name, parts in groups.items():
        entry = _entry(store, architecture, instruction(name, architecture), parts)
        before = entries.setdefault(entry.primitive, entry)
        if before.datapath != entry.datapath and not _alike(
            instruction(name, architecture), before.datapath, entry.datapath
        ):
            raise UsageError(f"{store.path}: {name} and another instruction of {entry.primitive} differ in datapath")
    source = f"run {store.header.run} on {store.header.identity.get('model_name', store.header.device)}"
    return ParameterFile(architecture, dict(sorted(entries.items())), source=source)


def _entry(store: Store, architecture: str, base: Instruction, parts: Sequence[Part]) -> Entry:
    way = lowering(base, architecture)
    if way.kind == "emulated":
        raise UsageError(f"{store.path}: {base.id} is emulated on {architecture}; it has no primitive to publish")
    states = {part.instruction: _datapath(store, part) for part in parts}
    if base.id not in states:
        raise UsageError(f"{store.path}: {base.id} was not run in its default control state")
    datapath = states[base.id]
    default = next(part for part in parts if part.instruction == base.id)
    vectors = sum(part.vectors for part in parts)
    return Entry(
        primitive=way.primitives[0],
        datapath=datapath,
        basis="measured",
        source=f"derived from the device alone; {vectors:,} vectors agree in {len(parts)} control states",
        evidence=store.header.run,
        follows=followed(base, states, str(store.path)),
        notes=tuple(_notes(default)),
        witnesses=default.witnesses,
        origin=architecture,
    )


def _datapath(store: Store, part: Part) -> Datapath:
    form = part.datapath or {}
    if part.status != "finished" or part.mismatch_count or not form.get("datapath"):
        why = f"{part.mismatch_count} mismatches" if part.mismatch_count else form.get("reason") or "not finished"
        raise UsageError(f"{store.path}: {part.instruction} is not settled ({why}); nothing is written")
    return from_table(form["datapath"], f"{store.path}: {part.instruction}")


def _notes(part: Part) -> Iterable[tuple[str, str]]:
    """The classes of values that no vector told apart, and those that an argument shows to be the same function."""
    form = part.datapath or {}
    for field, values in form.get("certificate", {}).get("open", {}).items():
        yield field, f"could also be {', '.join(values)}: no vector tells"
    if form.get("datapath"):
        classes = number_classes(from_table(form["datapath"], part.instruction))
        yield from ((field, f"{text}: the same function") for field, text in classes.items())


def followed(base: Instruction, states: Mapping[str, Datapath], where: str) -> tuple[str, ...]:
    """The controls by which the datapath of every state (by id) follows from the default one's; UsageError if none."""
    if len(states) == 1:
        return ()
    for size in range(len(CONTROLS) + 1):
        for controls in combinations(CONTROLS, size):
            if all(_explains(base, states, name, controls) for name in states):
                return controls
    raise UsageError(f"{where}: the control states of {base.id} do not follow from its default state")


def _explains(base: Instruction, states: Mapping[str, Datapath], name: str, controls: tuple[str, ...]) -> bool:
    expected = in_control_state(states[base.id], instruction(name).modifier, controls)
    return expected == states[name] or _alike(base, expected, states[name])


def _alike(base: Instruction, x: Datapath, y: Datapath) -> bool:
    """Whether no vector of a mixed pool tells two datapaths apart."""
    first, second = evaluate_many([x, y], mixed_vectors(dense_form(base), 1, VECTORS))
    return bool((first == second).all())
