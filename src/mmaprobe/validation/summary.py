"""What a validation found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mmaprobe.evidence.cell_counts import NO_CELLS, CellCounts, cell_counts_from_json, summed
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Mismatch
from mmaprobe.generators.enumerations import ENUMERATED
from mmaprobe.generators.families import TILE_VERSIONS, VERSIONS
from mmaprobe.showing import Row, Showing, counted

RULES = VERSIONS | ENUMERATED
"""The version of the rule by which each family or enumeration makes its vectors; what is recorded has none."""
MOST_PLACES = 64
"""Mismatches whose multiprocessor is kept."""


@dataclass(frozen=True)
class FamilyCount:
    """Vectors compared and mismatches seen of one generator family; how many whole tiles by the family's own rule for
    them there were (``generators.tiles``), and how many of the vectors are their outputs."""

    vectors: int = 0
    mismatches: int = 0
    tiles: int = 0
    outputs: int = 0

    def __add__(self, other: FamilyCount) -> FamilyCount:
        tiles, outputs = self.tiles + other.tiles, self.outputs + other.outputs
        return FamilyCount(self.vectors + other.vectors, self.mismatches + other.mismatches, tiles, outputs)


@dataclass(frozen=True)
class Batches:
    """How often the device under test was asked: batches, how many of them for the second time, vectors of the
    largest."""

    asked: int = 0
    again: int = 0
    largest: int = 0

    def __add__(self, other: Batches) -> Batches:
        return Batches(self.asked + other.asked, self.again + other.again, max(self.largest, other.largest))

    def __str__(self) -> str:
        return f"{self.asked:,} batches of up to {counted(self.largest, 'vector')}, {self.again:,} of them asked twice"


@dataclass(frozen=True)
class Screening:
    """Of a fused campaign: multiprocessors that the GPU has, those that compared anything, and mismatches by number.

    ``first``: recipes of the first mismatches, each with the multiprocessor, its code and the expected one; ``called``:
    what the vendor calls a multiprocessor.
    """

    present: int
    covered: int
    wrong: dict[str, int]
    first: tuple[tuple[str, int, int, int], ...] = ()
    called: str = "multiprocessor"

    def __str__(self) -> str:
        wrong = ", ".join(f"{count:,} by number {number}" for number, count in self.wrong.items())
        return f"{self.covered} of {self.present} {self.called}s compared vectors; wrong: {wrong or 'none'}"

    def form(self) -> dict[str, Any]:
        """As evidence keeps it."""
        names = ("recipe", "multiprocessor", "d", "expected")
        first = [dict(zip(names, (recipe, number, hex(d), hex(e)), strict=True)) for recipe, number, d, e in self.first]
        counts = {"called": self.called, "present": self.present, "covered": self.covered}
        return {**counts, "wrong": self.wrong, "first": first}


@dataclass(frozen=True, repr=False)
class Summary(Showing):
    """The outcome of one validation; counts are in vectors.

    ``examples`` holds a few mismatches, retested and shrunk; ``planned`` is what
    was asked for, ``vectors`` what was compared.  ``nan`` names the comparison
    of NaN results: ``bits`` or ``any``.  ``interrupted``: it ended early, by
    Ctrl-C or, where ``stopped``, because its caller asked for that (a budget).
    ``notes``: what a reader should know of how it was compared, a line each.
    ``coverage``: the cells of a sample of the vectors.
    """

    instruction: str
    dut: str
    ref: str
    seed: int
    planned: int
    vectors: int
    mismatches: int
    families: tuple[tuple[str, FamilyCount], ...]
    examples: tuple[Mismatch, ...]
    seconds: float
    nan: str = "bits"
    interrupted: bool = False
    stopped: bool = False
    screening: Screening | None = None
    notes: tuple[str, ...] = ()
    batches: Batches = Batches()
    coverage: CellCounts = NO_CELLS

    def in_a_line(self) -> str:
        """The devices, and how many vectors differ."""
        counts = f"{counted(self.mismatches, 'mismatch')} in {counted(self.vectors, 'vector')}, seed {self.seed}"
        return f"validation of {self.instruction}: {self.dut} against {self.ref}: {self.verdict}, {counts}"

    def as_row(self) -> Row:
        """The counts."""
        names = ("instruction", "dut", "ref", "verdict", "vectors", "mismatches", "seed", "seconds")
        return {name: getattr(self, name) for name in names}

    def as_rows(self) -> list[Row]:
        """The counts of each family of generators."""
        return [
            {"generator": name, "vectors": count.vectors, "mismatches": count.mismatches}
            for name, count in self.families
        ]

    def __bool__(self) -> bool:
        """True only where something was compared, nothing differs and the device gave no two answers."""
        return bool(self.vectors) and not self.mismatches and not self.unstable

    @property
    def unstable(self) -> bool:
        """True where the device gave another answer to the same vector on a retest."""
        return any(not example.stable for example in self.examples)

    @property
    def exit_code(self) -> int:
        """0 equal, 1 mismatch, 4 nothing compared, 5 unstable answers, 130 interrupted."""
        if self.unstable:
            return 5
        if self.mismatches:
            return 1
        if self.interrupted and not self.stopped:
            return 130
        return 0 if self.vectors else 4

    @property
    def verdict(self) -> str:
        """In a word, or a few."""
        nothing = "stopped before the first vector" if self.stopped else "nothing compared"
        words = {0: "equal", 1: "mismatch", 4: nothing, 5: "unstable", 130: "interrupted"}
        return words[self.exit_code]

    def form(self) -> dict[str, Any]:
        """As evidence keeps it; the mismatches themselves are kept beside it."""
        return {
            "dut": self.dut,
            "ref": self.ref,
            "seed": self.seed,
            "planned": self.planned,
            "vectors": self.vectors,
            "mismatches": self.mismatches,
            "families": {name: _family(name, count) for name, count in self.families},
            "nan": self.nan,
            "interrupted": self.interrupted,
            "batches": asdict(self.batches),
            **({"multiprocessors": self.screening.form()} if self.screening else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
            **({"coverage": self.coverage.form()} if self.coverage.sampled else {}),
        }


def _family(name: str, count: FamilyCount) -> dict[str, Any]:
    """Counts of a family, with the version of its rule: a recipe needs both.  Recorded vectors have none.

    Results of a tile depend on each other, so that ``tiles`` says how many there were where they have a rule, and so a
    version, of their own, and how many of the vectors are their outputs.
    """
    version = {"version": RULES[name]} if name in RULES else {}
    tiles = {"version": TILE_VERSIONS.get(name), "count": count.tiles, "vectors": count.outputs}
    counts = {"vectors": count.vectors, "mismatches": count.mismatches}
    return {**counts, **version, **({"tiles": tiles} if count.tiles else {})}


def summary_from_json(
    instruction: str, field: FileValue, examples: tuple[Mismatch, ...] = (), stopped: bool = False
) -> Summary:
    """The summary whose ``form`` a file holds, without its seconds; UsageError naming the key where it does not add
    up."""
    given = field.typed(dict)
    families = tuple((name, _count(name, field["families"][name])) for name in field["families"].typed(dict))
    found = Summary(
        instruction=instruction,
        dut=field["dut"].text,
        ref=field["ref"].text,
        seed=field["seed"].whole,
        planned=field["planned"].whole,
        vectors=field["vectors"].whole,
        mismatches=field["mismatches"].whole,
        families=tuple(sorted(families)),
        examples=examples,
        seconds=0.0,
        nan=field["nan"].one_of("bits", "any"),
        interrupted=field["interrupted"].typed(bool),
        stopped=stopped,
        screening=_screening(field["multiprocessors"]) if "multiprocessors" in given else None,
        notes=tuple(each.text for each in field["notes"]) if "notes" in given else (),
        batches=Batches(**{name: field["batches"][name].whole for name in ("asked", "again", "largest")}),
        coverage=cell_counts_from_json(field["coverage"]) if "coverage" in given else NO_CELLS,
    )
    for name in ("vectors", "mismatches"):
        summed = sum(getattr(count, name) for _, count in found.families)
        if getattr(found, name) != summed:
            raise field[name].wrong(f"is {getattr(found, name):,}, but its families of generators make {summed:,}")
    if found.vectors > found.planned:
        raise field["planned"].wrong("is less than was compared")
    if len(examples) > found.mismatches:
        raise field["mismatches"].wrong(f"is {found.mismatches:,}, but {len(examples)} are shown")
    return found


def _count(name: str, field: FileValue) -> FamilyCount:
    _check_rule(field, RULES.get(name))
    tiles = field["tiles"] if "tiles" in field.typed(dict) else None
    if tiles is not None:
        _check_rule(tiles, TILE_VERSIONS.get(name))
    own = (tiles["count"].whole, tiles["vectors"].whole) if tiles else (0, 0)
    count = FamilyCount(field["vectors"].whole, field["mismatches"].whole, *own)
    if not 0 <= count.mismatches <= count.vectors:
        raise field.wrong("has more mismatches than vectors, or fewer than none")
    if not 0 <= count.tiles <= count.outputs <= count.vectors:
        raise field.wrong("has more vectors in tiles than vectors, or fewer than tiles")
    return count


def _check_rule(field: FileValue, known: int | None) -> None:
    """UsageError where vectors are of another version of a family's rule than this package makes: counts go on with
    those of this one, and recipes name it."""
    said = field["version"].whole if "version" in field.typed(dict) else None
    if said != known:
        told, ours = ("no version" if each is None else f"version {each}" for each in (said, known))
        raise field.wrong(f"is of {told} of its rule, and this package's is {ours}: take the package that compared it")


def _screening(field: FileValue) -> Screening:
    first = tuple(
        (e["recipe"].text, e["multiprocessor"].whole, e["d"].bits, e["expected"].bits) for e in field["first"]
    )
    wrong = {name: field["wrong"][name].whole for name in field["wrong"].typed(dict)}
    return Screening(field["present"].whole, field["covered"].whole, wrong, first, field["called"].text)


def joined(summaries: Sequence[Summary], most: int) -> Summary:
    """The summaries of one instruction, by the same devices, as one; of their examples the first ``most``."""
    families: dict[str, FamilyCount] = {}
    for name, count in (each for summary in summaries for each in summary.families):
        families[name] = families.get(name, FamilyCount()) + count
    return replace(
        summaries[-1],
        planned=sum(summary.planned for summary in summaries),
        vectors=sum(summary.vectors for summary in summaries),
        mismatches=sum(summary.mismatches for summary in summaries),
        families=tuple(sorted(families.items())),
        examples=tuple(example for summary in summaries for example in summary.examples)[:most],
        seconds=sum(summary.seconds for summary in summaries),
        interrupted=any(summary.interrupted for summary in summaries),
        stopped=any(summary.stopped for summary in summaries),
        screening=_screenings([summary.screening for summary in summaries if summary.screening]),
        notes=tuple(dict.fromkeys(note for summary in summaries for note in summary.notes)),
        batches=sum((summary.batches for summary in summaries), Batches()),
        coverage=summed(summary.coverage for summary in summaries),
    )


def _screenings(found: Sequence[Screening]) -> Screening | None:
    """Screenings of the same units as one."""
    if not found:
        return None
    wrong: Counter[str] = Counter()
    for each in found:
        wrong.update(each.wrong)
    first = tuple(place for each in found for place in each.first)[:MOST_PLACES]
    return replace(found[0], covered=max(each.covered for each in found), wrong=dict(wrong), first=first)
