"""Derive what all of a device's instructions compute: each distinct datapath once, the others are shown equal to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.derivation.budget import ALLOWANCE
from mmaprobe.derivation.dense_view import asked, dense_form, kept, sorts
from mmaprobe.derivation.deriving import derive
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import Device, run_vectors, vectors_per_tile
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.generators import families_for
from mmaprobe.models.model import run_vectors as computed
from mmaprobe.operands.batch import Batch, join
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import Entry, ParameterFile
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.survey.equality import Equality
from mmaprobe.survey.survey_rows import Survey, SurveyRow, outcome_of, survey_of

FIRST = 1000
"""Vectors of every family that come first: what computes another datapath mostly shows it there."""


class SurveyListener(Protocol):
    """Who is told how long work goes: what is to come (None: nobody knows how many vectors), what it is at with the
    seconds left of its budget (None where there is none), and what is done."""

    def begin(self, instructions: int, vectors: int | None) -> None: ...
    def at(self, text: str, left: float | None) -> None: ...
    def derived(self, instruction: str) -> None: ...


def survey(
    device: Device,
    groups: Sequence[Sequence[Instruction]],
    absent: Sequence[tuple[str, str]] = (),
    *,
    seed: int = 0,
    fresh: int | None = None,
    allowance: int = ALLOWANCE,
    listener: SurveyListener | None = None,
) -> Survey:
    """Derive or recognise every instruction of ``groups`` (each the control states of one, the default first).

    Instructions that run one primitive as it is come first.  An instruction is
    held against what its lowering makes of the primitives already derived, then
    against every datapath of its formats and lanes already derived, the first
    found first: ``FIRST`` vectors and the witnesses, and the first that agrees
    then with directed vectors and as many fresh ones as a derivation takes.
    Where none agrees it is derived itself, with so many ``fresh`` vectors and within the ``allowance``.
    """
    begin = time.monotonic()
    work = Surveyor(device, seed, fresh=fresh, allowance=allowance)
    if listener is not None:
        listener.begin(sum(map(len, groups)), None)
        work.say, work.settled = (lambda text: listener.at(text, None)), (lambda made: listener.derived(made.id))
    for group in work.ordered(groups):
        work.group(group)
    asked = [state for group in groups for state in group]
    extra = [made for made in work.rows if made not in set(asked)]
    rows = tuple(work.rows[made] for made in (*extra, *asked))
    return survey_of(device, seed, rows, absent, time.monotonic() - begin)


@dataclass
class Surveyor:
    """A survey under way: it takes groups one after another, and rows that are known from before (``keep``).

    An instruction that it ``leaves_out`` is never run; errors that it ``gives_up_on`` end the survey, not a row.  What
    it is at it will ``say``, and which instruction is ``settled`` or given up.
    """

    device: Device
    seed: int
    say: Callable[[str], None] = lambda text: None
    settled: Callable[[Instruction], None] = lambda made: None
    leaves_out: Callable[[Instruction], bool] = lambda made: False
    gives_up_on: tuple[type[Exception], ...] = ()
    fresh: int | None = None
    allowance: int = ALLOWANCE
    rows: dict[Instruction, SurveyRow] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    undecided: dict[object, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.architecture = self.device.info().get("architecture", "")
        self.equality = Equality(self.architecture, self.seed, self.fresh)

    def _bare(self, instruction: Instruction) -> str | None:
        return bare_primitive(self.architecture, instruction)

    def ordered(self, groups: Sequence[Sequence[Instruction]]) -> list[Sequence[Instruction]]:
        """Those that run one primitive as it is first: what they compute is inside the others."""
        return sorted(groups, key=lambda group: self._bare(group[0]) is None)

    def group(self, states: Sequence[Instruction]) -> None:
        """One instruction in its control states; the others begin with what the default one computes."""
        start = None
        for state in states:
            if state not in self.rows and not self.leaves_out(state):
                self._needed(state)
                self.keep(self._row(state, start))
            start = start or (self.rows[state].datapath if state in self.rows else None)

    def _needed(self, instruction: Instruction) -> None:
        """Derive the primitives inside an instruction first, from instructions that run each as it is."""
        if self._bare(instruction) is not None:
            return
        try:
            inside = lowering(instruction, self.architecture).primitives
        except UsageError:
            return
        missing = [name for name in inside if name not in self.entries]
        for made in self.device.instructions() if missing else ():
            name = self._bare(made)
            wanted = name in missing and name not in self.entries and made not in self.rows
            if wanted and self.device.supports(made) and not self.leaves_out(made):
                self.keep(self._row(made, None))

    def keep(self, row: SurveyRow) -> None:
        """Take a row in: what is known of its instruction."""
        self.rows[row.instruction] = row
        name = self._bare(row.instruction)
        if row.datapath is not None and name is not None and name not in self.entries:
            self.entries[name] = Entry(name, row.datapath, "predicted", "derived in this survey")
            self.sources[name] = row.like or (row.instruction.id,)
        if row.outcome == "inconclusive":
            self.undecided.setdefault(self._compiled(row.instruction), row.instruction.id)
        self.settled(row.instruction)

    def _row(self, instruction: Instruction, start: Datapath | None) -> SurveyRow:
        begin = time.monotonic()
        row = SurveyRow(instruction, "inconclusive")
        try:
            row = self.recognised(instruction)
            twin = self.undecided.get(self._compiled(instruction))
            if row.outcome != "equal" and twin is not None:
                row = replace(row, reason=f"compiles to what {twin} does, which is inconclusive")
            elif row.outcome != "equal":
                row = self._derived(row, start)
        except self.gives_up_on:
            raise
        except UsageError as error:
            row = replace(row, outcome="refused", reason=str(error))
        except DeviceError as error:
            row = replace(row, outcome="failed", reason=str(error))
        return replace(row, seconds=time.monotonic() - begin)

    def _derived(self, row: SurveyRow, start: Datapath | None) -> SurveyRow:
        made = row.instruction
        self.say(f"{made.id}: deriving")
        found = derive(
            self.device, made, seed=self.seed, start=start, fresh=self.fresh, allowance=self.allowance,
            say=lambda stage: self.say(f"{made.id}: {stage}"),
        )  # fmt: skip
        return replace(
            row,
            outcome=outcome_of(found),
            datapath=found.datapath,
            derivation=found,
            tiles=row.tiles + found.tiles,
            launches=row.launches + found.launches,
            reason=found.reason,
        )

    def _compiled(self, instruction: Instruction) -> object:
        """The same for instructions that the compiler treats alike; the instruction itself where that is unknown."""
        try:
            way = lowering(instruction, self.architecture)
        except UsageError:
            return instruction
        made = (instruction.a, instruction.b, instruction.c, instruction.d, instruction.k, instruction.modifiers)
        return made, way.kind, way.applications, way.unplaced, way.convert, way.convert_c, way.convert_d, way.add

    def recognised(self, instruction: Instruction) -> SurveyRow:
        """The row of an instruction that computes something already derived; else what asking has cost."""
        known = list(self._candidates(instruction))
        if not known:
            return SurveyRow(instruction, "inconclusive")
        self.say(f"{instruction.id}: comparing with what is derived")
        vectors = self._vectors(instruction, [datapath for datapath, _ in known])
        answers = run_vectors(self.device, instruction, vectors)
        sorted_first = sorts(self.architecture, instruction)
        row = _asked(SurveyRow(instruction, "inconclusive"), vectors)
        for datapath, like in known:
            if not np.array_equal(computed(instruction, datapath, vectors, sorted_first), answers):
                continue
            more, expected = self.equality.held(instruction, datapath, sorted_first)
            row = _asked(row, more)
            if np.array_equal(run_vectors(self.device, instruction, more), expected):
                return replace(row, outcome="equal", datapath=datapath, like=like, compared=vectors.size + more.size)
        return row

    def _candidates(self, instruction: Instruction) -> Iterator[tuple[Datapath, tuple[str, ...]]]:
        """What the instruction could compute, each with where it was derived."""
        seen: set[Datapath] = set()
        foreseen = self.foreseen(instruction)
        if foreseen is not None:
            seen.add(foreseen[0])
            yield foreseen
        for row in self.rows.values():
            path = row.datapath
            if row.outcome == "derived" and path is not None and path not in seen and _fits(instruction, path):
                seen.add(path)
                yield path, (row.instruction.id,)

    def foreseen(self, instruction: Instruction) -> tuple[Datapath, tuple[str, ...]] | None:
        """What the lowering makes of the primitives derived so far, and from which instructions these were."""
        try:
            names = lowering(instruction, self.architecture).primitives
            if not self.entries.keys() >= set(names):
                return None
            found = datapath_for(self.architecture, instruction, ParameterFile(self.architecture, self.entries))
        except UsageError:
            return None
        return found, tuple(dict.fromkeys(like for name in names for like in self.sources[name]))

    def _vectors(self, instruction: Instruction, datapaths: Sequence[Datapath]) -> Batch:
        """Vectors of every family, and the witnesses of the datapaths' own derivations where they fit."""
        proofs = [
            kept(self.architecture, row.instruction, as_vectors(row.instruction, row.derivation.witnesses))
            for row in self.rows.values()
            if row.derivation is not None and row.derivation.witnesses and row.datapath in datapaths
            if _fits(instruction, row.derivation.datapath)
        ]
        found = hard_vectors(instruction, families_for(instruction), self.seed + 1, FIRST)
        return join([found, *(asked(self.architecture, instruction, each) for each in proofs)])


def _asked(row: SurveyRow, vectors: Batch) -> SurveyRow:
    """The row with what it costs to ask these."""
    tiles = -(-vectors.size // vectors_per_tile(row.instruction))
    return replace(row, tiles=row.tiles + tiles, launches=row.launches + 1)


def _fits(instruction: Instruction, datapath: Datapath | None) -> bool:
    """Whether a datapath takes the instruction's operands: formats, lanes, scales, random bits."""
    if datapath is None:
        return False
    scale = (datapath.scale.format, datapath.scale.size) if datapath.scale else (None, 0)
    made = dense_form(instruction)
    own = (made.a, made.b, made.c, made.d, made.k, made.scale, made.scale_size, made.random)
    return own == (datapath.a, datapath.b, datapath.c, datapath.d, datapath.k, *scale, datapath.random)
