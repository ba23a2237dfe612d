"""The gate: a run beside a baseline, red for every difference in meaning that nobody said is expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mmaprobe.baselines.devices import other_device
from mmaprobe.baselines.difference import RunDifference, compare_runs
from mmaprobe.baselines.facts import RunFacts, facts_of
from mmaprobe.baselines.instruction_changes import RunChange
from mmaprobe.catalog.lookup import short
from mmaprobe.devices.base import Device
from mmaprobe.errors import UsageError, near
from mmaprobe.evidence.files import Lock
from mmaprobe.evidence.gate_record import keep_record
from mmaprobe.evidence.store import MANIFEST, Header, Store, read_manifest
from mmaprobe.exit_codes import EQUAL, MISMATCH


@dataclass(frozen=True)
class Baseline:
    """A run that the next one is held against, read whole before that begins; ``accepted``: globs of instructions and
    names of questions whose changes are expected."""

    path: Path
    facts: RunFacts
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True)
class GateVerdict:
    """What a run came to beside its baseline: the changes that were ``accepted``, those that were not, and the
    acceptances (``stale``) of which nothing came."""

    baseline: Baseline
    difference: RunDifference
    accepted: tuple[RunChange, ...]
    refused: tuple[RunChange, ...]
    stale: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """1 for a change that was not accepted, and for an acceptance that nothing came of: a stale one would let
        through what comes later."""
        return MISMATCH if self.refused or self.stale else EQUAL

    @property
    def failure(self) -> str:
        """Why it is red, in a line; empty where it is not."""
        names = dict.fromkeys(each.name for each in self.refused)
        said = [f"changed, and not accepted: {', '.join(names)}"] if names else []
        return "; ".join([*said, *(f"accepted, but nothing changed: {pattern}" for pattern in self.stale)])

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it, and as evidence keeps it."""
        found = self.difference.to_json()
        changes = [each.to_json() | {"accepted": each in self.accepted} for each in self.difference.changes]
        return {
            "baseline": found["old"], "folder": str(self.baseline.path), "accept": list(self.baseline.accepted),
            "changes": changes, "stale": list(self.stale), "context": found["context"], "remarks": found["remarks"],
            "alike": found["alike"], "exit_code": self.exit_code,
        }  # fmt: skip


def gate_for(path: Path | None, device: Device, accept: Sequence[str], out: Path | None) -> Baseline | None:
    """The baseline at ``path``, if any is named, for a run of ``device`` that is written, or goes on, in ``out``.

    UsageError, so that no hour is spent before it is said, as of ``read_baseline``, where it is of another device or
    is the run itself, and where an acceptance names nothing of either.
    """
    store = read_baseline(path, accept)
    if store is None:
        return None
    found = other_device(store.header, Header(device.name, device.info(), "", 0))
    if found:
        raise UsageError(f"--baseline {path} is of another device: {found}; mmaprobe evidence diff compares these")
    if out is not None and (out / MANIFEST).exists() and read_manifest(out).header.run == store.header.run:
        raise UsageError(f"--baseline {path} is the run that goes on in {out}; it would be held against itself")
    facts = facts_of(store)
    _check_accepted(accept, facts, device)
    return Baseline(store.path, facts, tuple(accept))


def read_baseline(path: Path | None, accept: Sequence[str] = ()) -> Store | None:
    """The evidence of a baseline, None where none is named.

    UsageError where it is damaged, of a newer schema, without digests, empty, or neither finished nor ended by a budget
    after everything had its least; and for acceptances beside none.
    """
    if path is None:
        if accept:
            raise UsageError(f"--accept-change {accept[0]!r} is about a change from a baseline: --baseline RUN")
        return None
    store = Store.open(path)
    if not store.sealed:
        raise UsageError(f"--baseline {path} was written without digests: nothing shows that it is what was written")
    if not store.settled:
        raise UsageError(f"--baseline {path} is not finished: {_unfinished(store)}")
    if not store.parts:
        raise UsageError(f"--baseline {path} holds no instruction: nothing would be held against it")
    return store


def _unfinished(store: Store) -> str:
    """Why it is not, and what to do."""
    if store.header.is_campaign:
        return "it compared less than its plan demands; take one that did, or run the plan again with a larger --budget"
    return f"it ended early, or took some steps only; mmaprobe run --resume --out {store.path} ends it"


def _check_accepted(accept: Sequence[str], facts: RunFacts, device: Device) -> None:
    """UsageError for an acceptance that can match nothing, such as a word with a typo."""
    if not accept:
        return
    names = dict.fromkeys([*facts.instructions, *(made.id for made in device.instructions())])
    questions = {question for question, _ in facts.answers}
    for pattern in accept:
        found = pattern in questions or any(names_it(pattern, each) for each in names)
        if not found and "{" not in pattern:  # control states are not listed by a device
            known = near(pattern, [*map(short, names), *questions])
            raise UsageError(f"--accept-change {pattern!r} names nothing of the baseline or the device{known}")


def names_it(pattern: str, name: str) -> bool:
    """Whether an acceptance names an instruction (by id, short form or a glob of these) or a question."""
    return pattern in (name, short(name)) or fnmatchcase(name, pattern) or fnmatchcase(short(name), pattern)


def held_against(baseline: Baseline, run: Path) -> GateVerdict:
    """What a run that has ended came to beside its baseline; its evidence keeps it (``evidence.gate_record``)."""
    with Lock(run):
        store = Store.open(run)
        verdict = judged(baseline, compare_runs(baseline.facts, facts_of(store)))
        keep_record(store, verdict.to_json())
    return verdict


def judged(baseline: Baseline, difference: RunDifference) -> GateVerdict:
    """Each change held against what was accepted."""
    matched = {
        pattern: [each for each in difference.changes if _accepts(pattern, each)] for pattern in baseline.accepted
    }
    every = [each for found in matched.values() for each in found]
    return GateVerdict(
        baseline, difference,
        accepted=tuple(each for each in difference.changes if each in every),
        refused=tuple(each for each in difference.changes if each not in every),
        stale=tuple(pattern for pattern, found in matched.items() if not found),
    )  # fmt: skip


def _accepts(pattern: str, change: RunChange) -> bool:
    return names_it(pattern, change.name) or (bool(change.about) and names_it(pattern, change.about))
