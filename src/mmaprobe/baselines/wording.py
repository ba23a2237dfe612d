"""Differences between runs, and what a gate makes of them, in lines for a person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from mmaprobe.baselines.difference import RunDifference
from mmaprobe.baselines.gate import GateVerdict
from mmaprobe.baselines.instruction_changes import RunChange
from mmaprobe.report.datapath.known import folded
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted


def difference_lines(found: RunDifference) -> Iterator[str]:
    """Both runs, what surrounds them, every change, and how many instructions are the same."""
    yield f"old: {found.old.name}"
    yield f"new: {found.new.name}"
    if found.other_device:
        yield f"of two devices: {found.other_device}"
    if found.old.header.run == found.new.header.run:
        yield "both are the same run"
    yield from (f"  {line}" for line in found.context)
    yield from change_lines(found.changes)
    yield from _remarks(found)
    yield _total(found)


def verdict_lines(found: GateVerdict) -> Iterator[str]:
    """The baseline, the changes that are accepted and those that are not, and acceptances that are stale."""
    yield f"baseline: {found.difference.old.name} ({found.baseline.path})"
    yield from (f"  {line}" for line in found.difference.context)
    yield from change_lines(found.accepted, "accepted: ")
    yield from change_lines(found.refused)
    yield from _remarks(found.difference)
    for pattern in found.stale:
        yield f"--accept-change {pattern}: nothing of that name changed; leave it out"
    yield _total(found.difference)
    if found.refused:
        yield "a change that is expected: --accept-change NAME"


def change_lines(changes: Iterable[RunChange], lead: str = "") -> Iterator[str]:
    """The changes, those of which the same is said together; the vector is the first one's."""
    groups: dict[tuple[str, tuple[str, ...]], list[RunChange]] = defaultdict(list)
    for each in changes:
        groups[each.kind, each.lines].append(each)
    for (kind, lines), alike in groups.items():
        yield f"{lead}{_who(alike)}: {kind}"
        yield from (f"  {line}" for line in lines)
        first = alike[0]
        if first.vector is not None:
            yield f"  {vector_text(first.vector)} gives {first.other:#x} in old and {first.vector.d:#x} in new"


def _who(changes: list[RunChange]) -> str:
    if changes[0].kind != "answer":
        return folded([each.name for each in changes])
    about = folded([each.about for each in changes if each.about])
    return f"{changes[0].name}{f' ({about})' if about else ''}"


def _remarks(found: RunDifference) -> Iterator[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, said in found.remarks:
        groups[said].append(name)
    yield from (f"{folded(names)}: {said}" for said, names in groups.items())


def _total(found: RunDifference) -> str:
    return f"{differences(len(found.changes))}; of {counted(found.alike, 'instruction')} both say the same"


def differences(count: int) -> str:
    """So many differences in meaning, or none."""
    return f"{counted(count, 'difference')} in meaning" if count else "no difference in meaning"
