"""The summary of a run: one row an instruction, from which every report is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mmaprobe.derivation.certificate import one_in
from mmaprobe.evidence.cell_counts import NO_CELLS, CellCounts
from mmaprobe.evidence.silicon import notice
from mmaprobe.evidence.store import Part
from mmaprobe.exit_codes import (
    CANNOT_WRITE,
    DEVICE_FAILED,
    EQUAL,
    INCONCLUSIVE,
    INTERNAL,
    MISMATCH,
    demand_codes,
    run_code,
)
from mmaprobe.generators.tiles import dependences
from mmaprobe.showing import counted
from mmaprobe.survey.smoke import drawn_vectors

RowOutcome = Literal["equal", "mismatch", "changed", "failed", "inconclusive", "unwritten", "internal"]

EXIT_CODES: dict[RowOutcome, int] = {
    "equal": EQUAL,
    "mismatch": MISMATCH,
    "changed": MISMATCH,
    "inconclusive": INCONCLUSIVE,
    "failed": DEVICE_FAILED,
    "unwritten": CANNOT_WRITE,
    "internal": INTERNAL,
}
"""What each outcome of an instruction makes the command return; ``changed``: a vector tells the derived datapath from
the shipped one."""
AGAIN = "; again: "
"""In a detail, what stands before the command that asks its mismatch again."""
NEW = "new"
"""How an instruction stands to the shipped parameters where they say nothing of it."""

MEANING = (
    "Equal means: every vector compared gave the same bits on the device and in {reference}. "
    "It is evidence for those vectors, not a proof for all."
)
DERIVED = "the model derived from it"
"""What a run compares its device with."""
MEANING_OF_PRODUCT = (
    "Equal means: every element compared had the same bits in the product and by the schedule. "
    "It is evidence for those elements, not a proof for all."
)


@dataclass(frozen=True)
class InstructionRow:
    """What a run found out about one instruction.

    ``phrases`` are those of ``report.datapath.phrases.describe`` (empty where nothing
    was derived); ``parameters`` says how the derived datapath compares with the
    shipped one, ``changes`` in which fields it differs; ``detail`` is the reason or the first mismatch in a line, for a
    person, ``shown`` that mismatch as lines in which the bits that differ are marked; ``coverage`` the cells that its
    vectors reached, ``drawn`` how many of them generators drew, and ``tiled`` how many are results of whole tiles.
    """

    instruction: str
    outcome: RowOutcome
    phrases: Mapping[str, str] = field(default_factory=dict)
    vectors: int = 0
    mismatches: int = 0
    seconds: float = 0.0
    parameters: str = ""
    detail: str = ""
    changes: tuple[str, ...] = ()
    coverage: CellCounts = NO_CELLS
    shown: tuple[str, ...] = ()
    drawn: int = 0
    tiled: int = 0

    @property
    def excluded(self) -> int:
        """A fault on 1 in so many drawn vectors, or more, is excluded at 95 %; 0 where nothing is."""
        return 0 if self.mismatches else one_in(self.drawn)


def families_of(part: Part) -> Iterator[tuple[str, int, int]]:
    """Each family of generators of a part of evidence, with its vectors and mismatches."""
    counts: dict[str, list[int]] = {}
    for run in runs_of(part):
        for name, count in run["families"].items():
            total = counts.setdefault(str(name), [0, 0])
            total[0] += count["vectors"]
            total[1] += count["mismatches"]
    yield from ((name, *total) for name, total in sorted(counts.items()))  # type: ignore[misc]


def runs_of(part: Part) -> list[Mapping[str, Any]]:
    """The comparisons that a part tells of."""
    return list(part.validation.get("runs", [part.validation] if "families" in part.validation else []))


def tiled_of(part: Part) -> int:
    """Vectors of a part that are results of whole tiles with a rule of their own."""
    return sum(count["tiles"]["vectors"] for run in runs_of(part) for count in run["families"].values()
               if "tiles" in count)  # fmt: skip


def drawn_of(part: Part) -> int:
    """Vectors of a part that generators drew."""
    return drawn_vectors((name, vectors) for name, vectors, _ in families_of(part))


@dataclass(frozen=True)
class StepRow:
    """A step of a run: how far it is, its seconds, what it found in a line, and its own verdict's exit code."""

    name: str
    status: str
    seconds: float
    text: str
    exit_code: int | None = None


def verdicts_of(steps: Iterable[StepRow]) -> set[int]:
    """The exit codes of the steps that came to a verdict of their own."""
    return {step.exit_code for step in steps if step.exit_code is not None}


PRODUCT = "product"
"""The step of a device that multiplies whole matrices, which has no instruction's row."""


@dataclass(frozen=True)
class RunSummary:
    """A whole run; ``not_here`` pairs each instruction that this device lacks with the reason, which may be none.

    ``ended``: why it ended early, ``failure`` that reason's exit code, where it is one.  ``check``: what is missing
    without a reason, or new, is a failure.  ``least``: so many instructions must be compared.  ``unreached``:
    instructions and control states that had less than the run's minimum of vectors when the budget was spent.
    ``reference``: what was compared with.
    """

    device: str
    identity: Mapping[str, str]
    run: str
    version: str
    seed: int
    rows: tuple[InstructionRow, ...]
    not_here: tuple[tuple[str, str], ...] = ()
    evidence: str = ""
    seconds: float = 0.0
    check: bool = False
    steps: tuple[StepRow, ...] = ()
    ended: str = ""
    failure: int = 0
    least: int = 0
    unreached: int = 0
    reference: str = DERIVED

    @property
    def of_product(self) -> bool:
        """Whether it is about a whole matrix product, and no instruction."""
        return not self.rows and any(step.name == PRODUCT for step in self.steps)

    @property
    def meaning(self) -> str:
        """What *equal* says of it, and what it does not say."""
        return MEANING_OF_PRODUCT if self.of_product else MEANING.format(reference=self.reference)

    @property
    def vectors(self) -> int:
        """Vectors compared in all."""
        return sum(row.vectors for row in self.rows)

    @property
    def mismatches(self) -> int:
        """Vectors that differed in all."""
        return sum(row.mismatches for row in self.rows)

    @property
    def excluded(self) -> int:
        """A fault on 1 in so many drawn vectors, or more, is excluded of every instruction without a mismatch."""
        return min((row.excluded for row in self.rows if not row.mismatches), default=0)

    @property
    def bounds(self) -> tuple[str, ...]:
        """What the counts exclude, in plain lines: the rate of faults where nothing differed, and how much results of
        tiles depend on each other."""
        drawn, tiled = sum(row.drawn for row in self.rows), sum(row.tiled for row in self.rows)
        lines = []
        if drawn and not self.mismatches:
            alone = f"; for each instruction alone, above 1 in {self.excluded:,}" if self.excluded else ""
            lines.append(f"0 of {drawn:,}: a fault rate above 3/{drawn:,} of such vectors is excluded at 95 %{alone}")
        if tiled:
            most = max(dependences().values())
            lines.append(
                f"{tiled:,} of the vectors are results of whole tiles, which depend on each other: in the median "
                f"over faults, mismatches lie there up to {most:.1f} times as unevenly as among separate vectors"
            )
        return tuple(lines)

    @property
    def compared(self) -> int:
        """Instructions of which vectors were compared."""
        return sum(bool(row.vectors) for row in self.rows)

    @property
    def coverage(self) -> dict[str, CellCounts]:
        """The cells that vectors of each instruction reached."""
        return {row.instruction: row.coverage for row in self.rows}

    @property
    def missing(self) -> tuple[str, ...]:
        """Instructions that are not here and of which nobody says why."""
        return tuple(name for name, reason in self.not_here if not reason)

    @property
    def new(self) -> tuple[str, ...]:
        """Instructions of which nothing is shipped."""
        return tuple(row.instruction for row in self.rows if row.parameters == NEW)

    @property
    def notice(self) -> str:
        """What has to be said of a device that is not silicon; empty for silicon and models."""
        return notice(self.device, self.identity)

    @property
    def remarks(self) -> tuple[str, ...]:
        """In plain lines what makes the run end otherwise than its vectors alone would."""
        lines = [
            f"{row.instruction} is not what is shipped: {'; '.join(row.changes)}" for row in self.rows if row.changes
        ]
        lines += [f"new, nothing is shipped for it: {name}" for name in self.new]
        lines += [f"missing, and nobody says why: {name}" for name in self.missing]
        lines += [f"{counted(self.compared, 'instruction')} compared, fewer than --least {self.least}"] * (
            self.compared < self.least
        )
        return tuple(lines)

    @property
    def exit_code(self) -> int:
        """The first of 70, 5, 1, 6, 4, 3, 0 among the rows' and the demands'; 4 where nothing was compared, 3 where
        nothing is here."""
        codes = {EXIT_CODES[row.outcome] for row in self.rows} | demand_codes(
            changed=bool(self.new or self.missing), check=self.check, least=self.least, compared=self.compared,
            unreached=self.unreached,
        )  # fmt: skip
        held = verdicts_of(self.steps)
        return run_code(codes | held, self.vectors + len(held), self.failure, bool(self.not_here))
