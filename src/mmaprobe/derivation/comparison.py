"""Hold a derived datapath against the shipped one, in meaning and on vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.loop import Derivation
from mmaprobe.derivation.pool import mixed_vectors, take
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Witness
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes, in_words
from mmaprobe.parameters.lookup import datapath_for

VECTORS = 20_000
Outcome = Literal["same", "equivalent", "changed", "unknown", "not derived"]


@dataclass(frozen=True)
class Comparison:
    """``same``: the same record.  ``equivalent``: other words, no vector tells them apart.  ``changed``: a
    vector does (``witness``: d is the device's answer).  ``unknown``: nothing is shipped for it.
    ``not derived``: there was nothing to compare."""

    outcome: Outcome
    shipped: Datapath | None = None
    lines: tuple[str, ...] = ()
    witness: Witness | None = None
    searched: int = 0

    @property
    def changed(self) -> bool:
        return self.outcome == "changed"

    def form(self) -> dict[str, Any]:
        """As evidence keeps it."""
        return {"outcome": self.outcome, "differences": list(self.lines), "vectors": self.searched}


def compare_with_shipped(architecture: str, instruction: Instruction, derivation: Derivation, seed: int) -> Comparison:
    """Compare what was derived with the parameter file of ``architecture``."""
    try:
        shipped = datapath_for(architecture, instruction)
    except UsageError:
        return Comparison("unknown")
    derived = derivation.datapath
    if derived is None:
        return Comparison("not derived", shipped)
    if derived == shipped:
        return Comparison("same", shipped)
    lines = tuple(f"{in_words(path)}: {old} -> {new}" for path, old, new in datapath_changes(shipped, derived))
    pool = mixed_vectors(instruction, seed + 77, VECTORS)
    old, new = evaluate_many([shipped, derived], pool)
    wrong = np.flatnonzero(old != new)
    if not wrong.size:
        return Comparison("equivalent", shipped, lines, searched=pool.size)
    proof = Witness.of(take(pool, wrong[:1]), int(new[wrong[0]]), f"the shipped datapath gives {int(old[wrong[0]]):#x}")
    return Comparison("changed", shipped, lines, proof, pool.size)
