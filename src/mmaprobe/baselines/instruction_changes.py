"""What changed about one instruction between two runs: what it computes, how it came out, where its operands lie.

Two derived datapaths are held against each other as functions: other words for the same one are no change, and what
differs is shown by the smallest vector found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mmaprobe.baselines.facts import InstructionFacts
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.evidence.records import Finding, Witness
from mmaprobe.evidence.records_json import witness_to_json
from mmaprobe.operands.batch import take
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes, in_words
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import of_which
from mmaprobe.survey.comparison import VECTORS
from mmaprobe.survey.file_comparison import ComparedDatapaths, compare_datapaths
from mmaprobe.validation.shrink import shrink

ChangeKind = Literal["appeared", "vanished", "datapath", "outcome", "layout", "lowering", "answer"]


@dataclass(frozen=True)
class RunChange:
    """One difference in meaning: ``name`` is an instruction's id, or of an ``answer`` the question's, ``about`` which
    instruction it is about.  ``vector``: d is the answer by the datapath of the new run, ``other`` by that of the old.
    """

    name: str
    kind: ChangeKind
    lines: tuple[str, ...]
    about: str = ""
    vector: Witness | None = None
    other: int = 0

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it, and as evidence keeps it."""
        said = {"name": self.name, "kind": self.kind, "about": self.about, "lines": list(self.lines)}
        shown = {"vector": witness_to_json(self.vector), "old": f"{self.other:#x}"} if self.vector else {}
        return said | shown


def changes_of(
    name: str, old: InstructionFacts, new: InstructionFacts
) -> tuple[list[RunChange], list[tuple[str, str]]]:
    """The changes of an instruction that both runs tell of, and what is only said otherwise, by its name."""
    found: list[RunChange] = []
    remarks: list[tuple[str, str]] = []
    if old.datapath is not None and new.datapath is not None:
        verdict = told_apart(old, new)
        if verdict.verdict == "another function":
            lines = tuple(_fields(old.datapath, new.datapath)) or ("the operands",)
            found.append(RunChange(name, "datapath", lines, vector=verdict.vector, other=verdict.other))
        elif verdict.verdict != "same":
            remarks.append((name, _otherwise(verdict)))
    elif old.datapath is not None or new.datapath is not None:
        lines = (f"derived: {_derived(new)}", f"was: {_derived(old)}")
        found.append(RunChange(name, "datapath", lines))
    if old.outcome != new.outcome or (old.part.vectors and not new.part.vectors):
        found.append(RunChange(name, "outcome", tuple(_outcomes(old, new))))
    found += _layouts(name, old.layout, new.layout)
    if old.lowered and new.lowered and old.lowered != new.lowered:
        lines = (f"made of {', '.join(new.lowered)}", f"was made of {', '.join(old.lowered)}")
        found.append(RunChange(name, "lowering", lines))
    return found, remarks


def told_apart(old: InstructionFacts, new: InstructionFacts) -> ComparedDatapaths:
    """Whether two derived datapaths are one function: asked on the witnesses of both runs, then as
    ``compare_datapaths`` does."""
    assert old.datapath is not None
    assert new.datapath is not None
    if old.datapath == new.datapath:
        return ComparedDatapaths("same")
    seen = (*old.witnesses, *new.witnesses)
    proof = _on_witnesses(new.made, old.datapath, new.datapath, seen) if new.made and seen else None
    if proof is not None:
        return ComparedDatapaths("another function", (), *proof)
    return compare_datapaths(old.datapath, new.datapath)


def _on_witnesses(
    made: Instruction, old: Datapath, new: Datapath, witnesses: Sequence[Witness]
) -> tuple[Witness, int] | None:
    """The simplest vector found from the first witness that two datapaths answer differently, with both answers."""
    first, second = (DatapathDevice(made, path) for path in (old, new))
    vectors = as_vectors(made, witnesses)
    wrong = np.flatnonzero(first.run_vectors(made, vectors) != second.run_vectors(made, vectors))
    if not wrong.size:
        return None
    small = shrink(made, take(vectors, wrong[:1]),
                   lambda tried: first.run_vectors(made, tried) != second.run_vectors(made, tried))  # fmt: skip
    before, after = (int(each.run_vectors(made, small)[0]) for each in (first, second))
    return Witness.of(small, after), before


def _fields(old: Datapath, new: Datapath) -> Iterator[str]:
    for path, before, after in datapath_changes(old, new):
        yield f"{in_words(path)}: {before} -> {after}"


def _otherwise(verdict: ComparedDatapaths) -> str:
    if verdict.verdict == "undecided":
        return f"said otherwise; none of {VECTORS:,} vectors of every family tells, and no argument says it is the same"
    arguments = dict.fromkeys(step.argument.text for step in verdict.proof)
    return f"the same function in other words: {'; '.join(arguments)}"


def _derived(facts: InstructionFacts) -> str:
    if facts.datapath is not None:
        return meaning(facts.datapath)
    return f"nothing, {facts.reason or 'for no reason that was kept'}" if facts.asked else "nothing, it was not asked"


def _outcomes(old: InstructionFacts, new: InstructionFacts) -> Iterator[str]:
    for said, facts in (("", new), ("was ", old)):
        part = facts.part
        why = f": {facts.reason}" if facts.reason else ""
        counted = of_which(part.mismatch_count, part.vectors, "vector", "differ")
        yield f"{said}{facts.outcome}, {counted if part.vectors else 'nothing was compared'}{why}"
        for example in facts.mismatches[:1]:
            vector, expected = example.vector, example.expected
            if example.shrunk is not None and example.shrunk_expected is not None:
                vector, expected = example.shrunk, example.shrunk_expected
            yield f"  {vector_text(vector)} gives {vector.d:#x}, expected {expected:#x} ({example.recipe})"


def _layouts(name: str, old: Finding | None, new: Finding | None) -> Iterator[RunChange]:
    """Where operands go: a change where the answer is another one, or is no longer there."""
    if old is not None and (new is None or _placed(old) != _placed(new)):
        now = "its layout was not asked" if new is None else f"{new.status}: {new.text}"
        yield RunChange(name, "layout", (now, f"was {old.status}: {old.text}"))


def _placed(finding: Finding) -> object:
    """What a finding says of the layout: the claim that is right where it was open, else the answer."""
    answer = finding.answer
    return finding.status, answer.get("claim", answer) if isinstance(answer, dict) else answer
