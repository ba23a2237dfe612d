"""Hold a derived datapath against the shipped one, in meaning and on vectors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import chain, combinations
from typing import Any, Literal

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.dense_view import dense_form, simplest_sparse
from mmaprobe.derivation.deriving import Derivation
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Witness
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes, in_words
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.validation.shrink import shrink

VECTORS = 20_000
"""Vectors on which two datapaths are held against each other, at least."""
Standing = Literal["same", "equivalent", "changed", "new", "not derived"]


@dataclass(frozen=True)
class Comparison:
    """``same``: the same record.  ``equivalent``: other words, no vector tells them apart.  ``changed``: a
    vector does (``witness``: d is the device's answer).  ``new``: nothing is shipped for it.
    ``not derived``: there was nothing to compare.

    ``lines``: every difference in words; ``decisive``: those of the fewest fields that make the shipped datapath
    answer as the derived one."""

    outcome: Standing
    shipped: Datapath | None = None
    lines: tuple[str, ...] = ()
    decisive: tuple[str, ...] = ()
    witness: Witness | None = None
    searched: int = 0

    @property
    def changed(self) -> bool:
        return self.outcome == "changed"

    def form(self) -> dict[str, Any]:
        """As evidence keeps it."""
        found = {"outcome": self.outcome, "differences": list(self.lines), "vectors": self.searched}
        return found | ({"decisive": list(self.decisive)} if self.decisive else {})


def compare_with_shipped(architecture: str, instruction: Instruction, derivation: Derivation, seed: int) -> Comparison:
    """Compare what was derived with the parameter file of ``architecture``."""
    return compare(architecture, instruction, derivation.datapath, seed)


def compare(architecture: str, instruction: Instruction, derived: Datapath | None, seed: int) -> Comparison:
    """Compare a datapath (None: nothing was derived) with what the parameter file of ``architecture`` says."""
    try:
        shipped = datapath_for(architecture, instruction)
    except UsageError:
        return Comparison("new")
    if derived is None:
        return Comparison("not derived", shipped)
    if derived == shipped:
        return Comparison("same", shipped)
    lines = _differences(shipped, derived)
    proof = difference(instruction, shipped, derived, seed)
    if proof is None:
        return Comparison("equivalent", shipped, lines, searched=VECTORS)
    witness, other = proof
    return Comparison(
        "changed",
        shipped,
        lines,
        _decisive(instruction, shipped, derived, seed) or lines,
        replace(witness, note=f"the shipped datapath gives {other:#x}"),
        VECTORS,
    )


def _differences(old: Datapath, new: Datapath) -> tuple[str, ...]:
    return tuple(f"{in_words(path)}: {before} -> {after}" for path, before, after in datapath_changes(old, new))


def _decisive(instruction: Instruction, shipped: Datapath, derived: Datapath, seed: int) -> tuple[str, ...]:
    """The differences of the one field, else of the two, with which the shipped datapath answers as the derived one;
    none where more are needed.  What is only said in other words, such as a tree's, is not among them."""
    names = [each.name for each in fields(Datapath) if getattr(shipped, each.name) != getattr(derived, each.name)]
    for some in chain(combinations(names, 1), combinations(names, 2)):
        try:
            tried = replace(shipped, **{name: getattr(derived, name) for name in some})
        except UsageError:
            continue  # these fields make no datapath without the others
        if alike(instruction, tried, derived, seed):
            return _differences(shipped, tried)
    return ()


def difference(
    instruction: Instruction, old: Datapath, new: Datapath, seed: int, count: int = VECTORS
) -> tuple[Witness, int] | None:
    """A vector that two datapaths answer differently, with ``new``'s answer, and ``old``'s; None where none of
    ``count`` vectors of every family is one.

    Where it can be made simpler while they still differ, it is.
    """
    made = dense_form(instruction)
    first, second = (DatapathDevice(made, path) for path in (old, new))
    wrong = _apart(made, old, new, seed, count)
    if not wrong.size:
        return None
    small = shrink(
        made,
        wrong.slice(0, 1),
        lambda tried: first.run_vectors(made, tried) != second.run_vectors(made, tried),
    )
    answers = [int(each.run_vectors(made, small)[0]) for each in (first, second)]
    return Witness.of(simplest_sparse(instruction, small) if instruction.chunk else small, answers[1]), answers[0]


def alike(instruction: Instruction, x: Datapath, y: Datapath, seed: int) -> bool:
    """Whether two datapaths are one record, or no vector of ``difference`` tells them apart."""
    return x == y or not _apart(dense_form(instruction), x, y, seed).size


def _apart(made: Instruction, old: Datapath, new: Datapath, seed: int, count: int = VECTORS) -> Batch:
    """Those of at least ``count`` of every family that two datapaths answer differently; where there is none, of as
    many that are aimed at what is said differently."""
    pool = mixed_vectors(made, seed + 77, count)
    wrong = np.flatnonzero(np.not_equal(*evaluate_many([old, new], pool)))
    if not wrong.size and can_attack(made):
        pool = attack_vectors(made, old, [new], seed + 77, count)
        wrong = np.flatnonzero(np.not_equal(*evaluate_many([old, new], pool)))
    return take(pool, wrong)
