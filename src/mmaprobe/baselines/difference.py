"""What changed between two runs, in meaning.

Each instruction that both tell of is compared (``instruction_changes``); one that a single run tells of is a change,
and so is another answer to an open question.  Counts, seeds and how a run was made are said, and are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mmaprobe.baselines.devices import other_device, other_reference, surroundings
from mmaprobe.baselines.facts import AnswerFacts, InstructionFacts, RunFacts
from mmaprobe.baselines.instruction_changes import RunChange, changes_of
from mmaprobe.exit_codes import EQUAL, MISMATCH
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.showing import counted

UNTOLD = "held against another reference, so it may compute something else"
"""What is said of an instruction of two campaigns that came out alike against two references."""


@dataclass(frozen=True)
class RunDifference:
    """How ``new`` differs from ``old``.

    ``other_device``: how the two devices differ, if they do.  ``context``: how the runs were made otherwise.
    ``remarks``: by instruction, what is said otherwise and means the same, or does by all that is known, or was held
    against another reference.  ``alike``: of how many instructions both say the same."""

    old: RunFacts
    new: RunFacts
    other_device: str
    changes: tuple[RunChange, ...]
    context: tuple[str, ...]
    remarks: tuple[tuple[str, str], ...]
    alike: int

    @property
    def exit_code(self) -> int:
        """1 where anything changed in meaning."""
        return MISMATCH if self.changes else EQUAL

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "old": self.old.header.run, "new": self.new.header.run, "other_device": self.other_device,
            "changes": [each.to_json() for each in self.changes], "context": list(self.context),
            "remarks": [{"name": name, "text": text} for name, text in self.remarks], "alike": self.alike,
            "exit_code": self.exit_code,
        }  # fmt: skip


def compare_runs(old: RunFacts, new: RunFacts) -> RunDifference:
    """The difference in meaning from ``old`` to ``new``."""
    changes: list[RunChange] = []
    remarks: list[tuple[str, str]] = []
    elsewhere = other_reference(old.header, new.header)
    for name in sorted({*old.instructions, *new.instructions}):
        before, after = old.instructions.get(name), new.instructions.get(name)
        if before is None or after is None:
            changes.append(_single(name, before, after))
            continue
        found, said = changes_of(name, before, after)
        changes += found
        remarks += said
        if elsewhere and not found:
            remarks.append((name, f"{after.outcome}, as before, but {UNTOLD}: {elsewhere}"))
    changed = {each.name for each in changes}
    untold = {*old.instructions, *new.instructions} if elsewhere else set()
    changes += _answers(old, new)
    both = old.instructions.keys() & new.instructions.keys()
    return RunDifference(
        old, new, other_device(old.header, new.header), tuple(changes),
        (*surroundings(old.header, new.header), *_counts(old, new)), tuple(remarks), len(both - changed - untold),
    )  # fmt: skip


def _single(name: str, before: InstructionFacts | None, after: InstructionFacts | None) -> RunChange:
    """An instruction that one of the runs alone tells of."""
    facts = before or after
    assert facts is not None
    said = meaning(facts.datapath) if facts.datapath is not None else "no datapath was derived"
    lines = (f"{facts.outcome}, {counted(facts.part.vectors, 'vector')}: {said}",)
    return RunChange(name, "vanished" if before is not None else "appeared", lines)


def _answers(old: RunFacts, new: RunFacts) -> Iterator[RunChange]:
    """Answers to open questions that are others; one that is not there any more, or was not before, is one."""
    for key in sorted({*old.answers, *new.answers}):
        before, after = old.answers.get(key), new.answers.get(key)
        if before is None or after is None or before.meaning != after.meaning:
            yield RunChange(key[0], "answer", (_said(after), f"was {_said(before)}"), about=key[1])


def _said(answer: AnswerFacts | None) -> str:
    return "not asked" if answer is None else str(answer)


def _counts(old: RunFacts, new: RunFacts) -> Iterator[str]:
    """Totals that differ."""
    for word, key in (("vectors", "vectors"), ("mismatches", "mismatch_count")):
        before, after = (sum(getattr(each.part, key) for each in run.instructions.values()) for run in (old, new))
        if before != after:
            yield f"{word}: {before:,} -> {after:,}"
