"""What a whole plan found: its shards put together, and the evidence of that.

Shards go together where they are all of one plan, seed, package, reference and kind of device, each once and none
missing.  What comes out does not depend on how many shards there were, nor on which machine ran which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmaprobe.campaigns.shard import SPENT, Comparing, Exhausted, PartResult, PlanWork, ShardResult, Unit
from mmaprobe.campaigns.shard_file import SUFFIX, exhausted_json, read_shard
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.states import CONTROL_VALUES
from mmaprobe.errors import UsageError
from mmaprobe.evidence.store import MANIFEST, Header, Part, Store, read_manifest
from mmaprobe.exit_codes import INCONCLUSIVE, run_code
from mmaprobe.showing import Row, Showing, counted_states, mismatches_in, of_which
from mmaprobe.validation.summary import FamilyCount, Summary, joined

EXAMPLES = 4
"""Mismatches that are kept of an instruction."""
ALIKE = ("plan", "seed", "version", "parts", "count", "exhausts")
"""What all shards of a campaign share, besides their devices and references."""
ADVICE = "its shards are kept; make room and give the command again, validate with --resume"
"""What to do where evidence cannot be written."""
NAMED = 6
"""Shards or instructions that a message names."""


@dataclass(frozen=True, repr=False)
class CampaignRow(Showing):
    """What was compared of one instruction in one control state, and what went wrong with it."""

    instruction: str
    summary: Summary | None = None
    error: str = ""
    code: int = 0
    unfinished: bool = False

    def in_a_line(self) -> str:
        """The instruction and its counts."""
        said = self.error or f"{mismatches_in(self.mismatches, self.vectors)}"
        return f"{self.instruction}: {said}"

    def as_row(self) -> Row:
        """The counts, and what went wrong."""
        counts = {"vectors": self.vectors, "mismatches": self.mismatches, "exit_code": self.exit_code}
        return {"instruction": self.instruction, **counts, "error": self.error}

    @property
    def vectors(self) -> int:
        return self.summary.vectors if self.summary is not None else 0

    @property
    def mismatches(self) -> int:
        return self.summary.mismatches if self.summary is not None else 0

    def counted(self, family: str) -> int:
        """Vectors of one family or enumeration."""
        return next((count.vectors for name, count in self.families if name == family), 0)

    @property
    def families(self) -> Sequence[tuple[str, FamilyCount]]:
        return self.summary.families if self.summary is not None else ()

    @property
    def exit_code(self) -> int:
        """Of its own: what was compared not at all, for whatever reason, is inconclusive."""
        if self.error:
            return self.code
        return self.summary.exit_code if self.summary is not None and self.vectors else INCONCLUSIVE


@dataclass(frozen=True, repr=False)
class Campaign(Showing):
    """A plan's result.  ``left``: parts that the budget did not reach, of ``count``.  ``exhausts``: of an exhaustive
    plan what there is to count through of each instruction."""

    plan: Mapping[str, Any]
    seed: int
    version: str
    device: Unit
    reference: Unit
    rows: tuple[CampaignRow, ...]
    absent: tuple[tuple[str, str], ...]
    count: int
    left: int
    parts: str
    canaries: int
    begun: str
    seconds: float
    ended: str = ""
    exhausts: Mapping[str, Exhausted] = field(default_factory=dict)

    def in_a_line(self) -> str:
        """The devices and the counts."""
        counts = f"{mismatches_in(self.mismatches, self.vectors)} of {counted_states(len(self.rows))}"
        return f"campaign of {self.device.name} against {self.reference.name}: {counts}, exit code {self.exit_code}"

    def as_row(self) -> Row:
        """The devices and the counts."""
        counts = {"vectors": self.vectors, "mismatches": self.mismatches, "exit_code": self.exit_code}
        return {"device": self.device.name, "reference": self.reference.name, "seed": self.seed, **counts}

    def as_rows(self) -> list[Row]:
        """A row for each instruction and control state."""
        return [row.as_row() for row in self.rows]

    @property
    def vectors(self) -> int:
        return sum(row.vectors for row in self.rows)

    @property
    def mismatches(self) -> int:
        return sum(row.mismatches for row in self.rows)

    @property
    def compared(self) -> int:
        """Instructions of which every control state that the plan wants had its least vectors."""
        below = {_base(row.instruction) for row in self.rows if self.is_below(row)}
        return len({_base(row.instruction) for row in self.rows} - below)

    @property
    def few(self) -> bool:
        """Whether fewer instructions were compared than the plan wants."""
        return self.compared < int(self.plan["least_instructions"])

    @property
    def finished(self) -> bool:
        """Whether what the plan demands at least was compared; shards that a budget ended are not gone on with."""
        return not self.below and not self.few

    @property
    def below(self) -> tuple[str, ...]:
        """What had fewer vectors than the plan's least when the budget was spent."""
        return tuple(row.instruction for row in self.rows if self.is_below(row) and not row.error)

    def is_below(self, row: CampaignRow) -> bool:
        """Whether a row has less than the plan demands: one that failed has, and one that was not counted through.

        Else a part that is left may hold what is missing, and without one there is no more (of a recording).
        """
        if row.instruction in self.exhausts:
            return bool(row.error) or not self.exhausts[row.instruction].is_all(row.counted)
        return bool(row.error) or not row.vectors or (row.unfinished and row.vectors < self.plan["least_vectors"])

    @property
    def exit_code(self) -> int:
        """The first of 70, 5, 1, 4, 3, 0: 4 also below what the plan demands at least."""
        codes = {row.exit_code for row in self.rows}
        least = set() if self.finished else {INCONCLUSIVE}
        return run_code(codes | least, self.vectors, 0, bool(self.absent))

    @property
    def header(self) -> Header:
        """As its evidence begins: the id of the run is made of it."""
        settings = {"plan": dict(self.plan), "reference": self.reference.name, "parts": self.parts}
        return Header(
            device=self.device.name,
            identity=self.device.identity,
            version=self.version,
            seed=self.seed,
            settings=settings | {"reference_identity": dict(self.reference.identity)},
            execution={"begun": self.begun},
        )


def _base(instruction: str) -> str:
    """An instruction's id in its default control state."""
    opcode, _, modifiers = instruction.rstrip("}").partition("{")
    kept = [each for each in modifiers.split(",") if each.partition("=")[0] not in CONTROL_VALUES]
    return f"{opcode}{{{','.join(kept)}}}"


def put_together(shards: Sequence[tuple[str, ShardResult]]) -> Campaign:
    """The campaign of all shards, each with what errors call it; UsageError where they do not go together."""
    if not shards:
        raise UsageError(
            "no shard to merge; a shard is what mmaprobe validate --plan NAME --shard 0/16 --out FOLDER writes"
        )
    _check_alike(shards)
    _check_whole(shards)
    every = [result for _, result in shards]
    done = sorted((part for result in every for part in result.done), key=lambda part: part.number)
    left = [pair for result in every for pair in result.left]
    _check_parts(shards[0][0], [part.number for part in done], [number for number, _ in left], every)
    first = every[0]
    return Campaign(
        plan=first.plan,
        seed=first.seed,
        version=first.version,
        device=_together([result.device for result in every]),
        reference=_together([result.reference for result in every]),
        rows=tuple(rows_of(done, {name for _, name in left})),
        absent=first.absent,
        count=first.count,
        left=len(left),
        parts=first.parts,
        canaries=sum(count > 0 for result in every for count in result.canaries.values()),
        begun=min(result.begun for result in every),
        seconds=sum(result.seconds for result in every),
        ended=SPENT if any(result.ended for result in every) else "",
        exhausts=first.exhausts,
    )


def _check_alike(shards: Sequence[tuple[str, ShardResult]]) -> None:
    where, first = shards[0]
    for name, other in shards[1:]:
        for what in ALIKE:
            ours, theirs = getattr(first, what), getattr(other, what)
            if ours != theirs:
                raise UsageError(f"{name} is of another {what} than {where}: {_differ(ours, theirs)}")
        if first.shard.of != other.shard.of:
            raise UsageError(f"{name} is one of {other.shard.of} shards, {where} one of {first.shard.of}")
        for role in ("device", "reference"):
            mine, its = getattr(first, role), getattr(other, role)
            if mine.kind != its.kind:
                raise UsageError(f"{name} is of {role} {its.name} ({its.architecture}, {its.kind[2]}), {where} of "
                                 f"{mine.name} ({mine.architecture}, {mine.kind[2]})")  # fmt: skip
        if first.absent != other.absent:
            raise UsageError(f"{name} lacks other instructions than {where}: the devices are not alike")
    for role in ("device", "reference"):
        parameters = {getattr(result, role).identity.get("parameters", "") for _, result in shards}
        if len(parameters) > 1:
            raise UsageError(f"the {role}s of the shards are models of different parameters; run them with one package")


def _differ(ours: Any, theirs: Any) -> str:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        keys = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
        return "; ".join(f"{key} is {theirs.get(key, 'none')!r:.60}, not {ours.get(key, 'none')!r:.60}" for key in keys)
    return f"{theirs!r:.60}, not {ours!r:.60}"


def _check_whole(shards: Sequence[tuple[str, ShardResult]]) -> None:
    """Every shard once."""
    seen: dict[int, str] = {}
    of = shards[0][1].shard.of
    for name, result in shards:
        if result.shard.number in seen:
            raise UsageError(f"shard {result.shard} is there twice: {seen[result.shard.number]} and {name}")
        seen[result.shard.number] = name
    missing = [number for number in range(of) if number not in seen]
    if missing:
        some = ", ".join(f"{number}/{of}" for number in missing[:NAMED]) + (", ..." if len(missing) > NAMED else "")
        again = f"mmaprobe validate ... --shard {missing[0]}/{of}"
        raise UsageError(f"{of_which(len(missing), of, 'shard', 'are')} missing: {some}; run each: {again}")


def _check_parts(where: str, done: list[int], left: list[int], every: Sequence[ShardResult]) -> None:
    """Every part that was compared once, and every other one left, or of an instruction that failed before."""
    for numbers in (done, [*done, *left]):
        if len(set(numbers)) < len(numbers):
            raise UsageError(f"{where}: a part of the plan was compared twice")
    failed = any(part.error for result in every for part in result.done)
    if not failed and len(done) + len(left) != every[0].count:
        raise UsageError(
            f"{where}: of {every[0].count} parts {len(done)} were compared and {len(left)} left: some are nowhere"
        )


def _together(units: Iterable[Unit]) -> Unit:
    """Several devices as one: what they say alike, and of what differs every value once."""
    found = list(units)
    said: dict[str, set[str]] = defaultdict(set)
    for unit in found:
        for key, value in unit.identity.items():
            said[key].add(value)
    names = sorted({unit.name for unit in found})
    return Unit(", ".join(names), {key: "; ".join(sorted(values)) for key, values in sorted(said.items())})


def rows_of(done: Sequence[PartResult], unfinished: set[str]) -> Iterable[CampaignRow]:
    """One an instruction, in the order of the plan."""
    groups: dict[str, list[PartResult]] = {}
    for part in done:
        groups.setdefault(part.instruction, []).append(part)
    for name, parts in groups.items():
        summaries = [part.summary for part in parts if part.summary is not None]
        wrong = next((part for part in parts if part.error), None)
        open_ = name in unfinished or any(summary.stopped for summary in summaries)
        summary = joined(summaries, EXAMPLES) if summaries else None
        yield CampaignRow(name, summary, wrong.error if wrong else "", wrong.code if wrong else 0, open_)
    for name in sorted(unfinished - groups.keys()):
        yield CampaignRow(name, unfinished=True)


def compare_one(work: PlanWork, instruction: Instruction, minutes: float = 0) -> CampaignRow:
    """The plan's result for one of its instructions alone, in at most so many minutes (0: in any time)."""
    comparing = Comparing(work, minutes)
    comparing.compare([part for part in work.parts if part.instruction == instruction])
    return next(iter(rows_of(comparing.done, {name for _, name in comparing.left})))


def read_shards(places: Sequence[Path]) -> list[tuple[str, ShardResult]]:
    """The shards in files and folders; UsageError where a folder holds none, or a file is none."""
    found: list[tuple[str, ShardResult]] = []
    for place in places:
        paths = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else [place]
        if not paths:
            raise UsageError(f"{place} holds no shard (*{SUFFIX})")
        found += [(str(path), read_shard(path)) for path in paths]
    return found


def write_campaign(campaign: Campaign, folder: Path) -> Store:
    """Put a campaign into an evidence folder, a new one or that of the same; UsageError where there is other evidence,
    CannotWriteError."""
    header = campaign.header
    again = (folder / MANIFEST).exists() and read_manifest(folder).header.run == header.run
    if not again and (folder / MANIFEST).exists():
        raise UsageError(f"{folder} holds evidence of another run; choose another --out")
    begun = Store if again else Store.create  # a killed one wrote a part of the same
    store = begun(folder, header, advice=ADVICE)
    for row in campaign.rows:
        store.save(_evidence(row, campaign.is_below(row), campaign.exhausts.get(row.instruction)))
    if campaign.finished:
        store.finish()
    return store


def _evidence(row: CampaignRow, below: bool, exhausts: Exhausted | None) -> Part:
    said: dict[str, Any] = {"runs": [], "vectors": row.vectors, "mismatches": row.mismatches}
    if row.summary is not None:
        form = row.summary.form()
        said |= {"coverage": form.pop("coverage")} if "coverage" in form else {}
        said["runs"] = [form]
    if exhausts is not None:
        said["exhausts"] = exhausted_json(exhausts)
    if row.error:
        said |= {"error": row.error, "error_code": row.code}
    return Part(
        instruction=row.instruction,
        status="partial" if below or row.mismatches else "finished",
        validation=said,
        vectors=row.vectors,
        mismatch_count=row.mismatches,
        mismatches=row.summary.examples if row.summary is not None else (),
    )
