"""What a page says of each instruction, taken from a run's evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as lookup
from mmaprobe.derivation.certificate import Coverage, one_in
from mmaprobe.errors import UsageError
from mmaprobe.evidence.cell_counts import CellCounts
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Finding
from mmaprobe.evidence.store import Header, Part, Store, part_name
from mmaprobe.exit_codes import EQUAL, INCONCLUSIVE, MISMATCH
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes, in_words
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.table import fields, flatten, from_table, to_table
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.report.datapath.naming import headline
from mmaprobe.report.datapath.phrases import describe
from mmaprobe.report.datapath.window import windows
from mmaprobe.report.page.certificate_rows import CertificateView, certificate_view
from mmaprobe.report.page.mismatch_view import MismatchView, mismatch_views
from mmaprobe.report.page.special_values import SpecialAnswer, special_answers
from mmaprobe.report.page.tree_drawing import draw_tree
from mmaprobe.report.page.window_drawing import draw_window
from mmaprobe.report.run_summary import InstructionRow, drawn_of, families_of, runs_of
from mmaprobe.report.tables.evidence import check_witness

DERIVED = "derived from this device's answers"
SHARED = "as that of another instruction, with which all its answers agree"
SHIPPED = "as mmaprobe's parameter file says; this run derived none"
STANDINGS = {
    "same": "the shipped parameter file says the same",
    "equivalent": "the shipped parameter file says the same in other words",
    "changed": "not what the shipped parameter file says",
    "new": "no parameter file ships for it",
}
"""How what was derived stood to what shipped when it was run."""

Rows = Sequence[tuple[InstructionRow, Sequence[Part]]]


@dataclass(frozen=True)
class Parameter:
    """One field of a datapath: in words, as a path, its value, and whether it is said (else it is as by default)."""

    words: str
    path: str
    value: str
    said: bool


@dataclass(frozen=True)
class DrawnDatapath:
    """A datapath in words, parameters and pictures; ``origin`` says on what it rests."""

    headline: str
    meaning: str
    origin: str
    phrases: Mapping[str, str]
    parameters: tuple[Parameter, ...]
    tree: str
    windows: tuple[str, ...]
    specials: tuple[SpecialAnswer, ...]


@dataclass(frozen=True)
class CoveredRule:
    """The cells of one rule: how many a vector reached, of how many, and the others by name."""

    rule: str
    hit: int
    reachable: int
    dead: tuple[str, ...]
    unreachable: str


@dataclass(frozen=True)
class PartView:
    """What was found of one instruction in one state; ``differs``: how its datapath differs from the card's.

    ``excluded``: a fault on 1 in so many vectors, or more, would have shown at 95 %; 0 where nothing is excluded.
    """

    instruction: str
    outcome: str
    vectors: int
    mismatches: int
    excluded: int
    reference: str
    differs: tuple[str, ...]
    families: tuple[tuple[str, int, int], ...]
    certificate: CertificateView | None
    beyond: str
    like: tuple[str, ...]
    compared: int
    findings: tuple[Finding, ...]
    witnesses: int


@dataclass(frozen=True)
class Card:
    """One row of a run's table in full; ``twin``: the number of an earlier card of the same datapath, which has the
    pictures, 0 for none."""

    number: int
    row: InstructionRow
    standing: str
    drawn: DrawnDatapath | None
    twin: int
    parts: tuple[PartView, ...]
    coverage: tuple[CoveredRule, ...]
    mismatches: tuple[MismatchView, ...]


def cards_of(store: Store, rows: Rows) -> list[Card]:
    """A card a row, in order; UsageError naming file and key where a part is not what evidence is."""
    found: list[Card] = []
    seen: dict[Datapath, int] = {}
    for number, (row, parts) in enumerate(rows, 1):
        made = _known(parts[0].instruction, store.header)
        path, origin = _datapath(store, parts[0], made)
        twin = seen.setdefault(path, number) if path is not None else number
        drawn = _drawn(path, origin, number, twin == number) if path is not None else None
        views = tuple(_part(store, part, path) for part in parts)
        wrong = [each for part in parts for each in _mismatches(store, part)]
        standing = STANDINGS.get(row.parameters, "")
        covered = tuple(_covered(row.coverage))
        found.append(Card(number, row, standing, drawn, twin * (twin != number), views, covered, tuple(wrong)))
    return found


def _known(name: str, header: Header) -> Instruction | None:
    try:
        return lookup(name, str(header.identity.get("architecture", "")) or None)
    except UsageError:
        return None


def _derived(store: Store, part: Part) -> Datapath | None:
    table = (part.datapath or {}).get("datapath")
    return from_table(table, f"{store.path / part_name(part.instruction)}: key datapath.datapath") if table else None


def _datapath(store: Store, part: Part, made: Instruction | None) -> tuple[Datapath | None, str]:
    """What was derived, else what ships."""
    path = _derived(store, part)
    if path is not None or made is None or part.datapath is not None:
        return path, SHARED if (part.datapath or {}).get("like") else DERIVED
    try:
        return datapath_for(str(store.header.identity.get("architecture", "")), made), SHIPPED
    except UsageError:
        return None, ""


def _drawn(path: Datapath, origin: str, number: int, first: bool) -> DrawnDatapath:
    said = {name for name, _ in flatten(to_table(path))}
    parameters = tuple(Parameter(in_words(name), name, str(value), name in said) for name, value in fields(path))
    drawn = [draw_window(window, f"w{number}-{i}") for i, window in enumerate(windows(path), 1)] if first else []
    tree = draw_tree(path, f"t{number}") if first else ""
    specials = tuple(special_answers(path)) if first else ()
    return DrawnDatapath(
        headline(path), meaning(path), origin, describe(path), parameters, tree, tuple(drawn), specials
    )


def _part(store: Store, part: Part, first: Datapath | None) -> PartView:
    path, made = _derived(store, part), _known(part.instruction, store.header)
    _check(part, made)
    form = FileValue(store.path / part_name(part.instruction), "datapath", part.datapath or {})
    given = form.typed(dict)
    view, beyond = None, ""
    if path is not None and given.get("certificate"):
        architecture = str(store.header.identity.get("architecture", ""))
        view = certificate_view(form["certificate"], made, architecture, first, path, part.witnesses)
        kept = form["certificate"].typed(dict).get("coverage", {})
        coverage = Coverage.of_form(kept if isinstance(kept, dict) else {})
        beyond = str(coverage) if coverage.fresh else ""
    return PartView(
        part.instruction, _outcome(part), part.vectors, part.mismatch_count,
        0 if part.mismatch_count else one_in(drawn_of(part)), _references(part),
        _differs(first, path), tuple(families_of(part)), view, beyond,
        tuple(map(str, form["like"].typed(list))) if given.get("like") else (),
        form["compared"].whole if "compared" in given else 0, part.findings, len(part.witnesses),
    )  # fmt: skip


def _check(part: Part, made: Instruction | None) -> None:
    """UsageError where a vector has not the lanes or the codes of its instruction."""
    if made is not None:
        for witness in (*part.witnesses, *(each.vector for each in part.mismatches)):
            check_witness(made, witness, part.instruction)


def _differs(first: Datapath | None, path: Datapath | None) -> tuple[str, ...]:
    if first is None or path is None or first == path:
        return ()
    return tuple(f"{in_words(name)}: {new}" for name, _, new in datapath_changes(first, path))


def _outcome(part: Part) -> str:
    words = {EQUAL: "equal", MISMATCH: "mismatch", INCONCLUSIVE: "inconclusive"}
    return words.get(part.exit_code, "failed")


def _references(part: Part) -> str:
    return " and ".join(dict.fromkeys(str(run["ref"]) for run in runs_of(part) if "ref" in run))


def _covered(counts: CellCounts) -> Iterator[CoveredRule]:
    dead: dict[str, list[str]] = {}
    for cell in counts.dead:
        rule = next(rule for rule in counts.cells if cell.startswith(f"{rule}: "))
        dead.setdefault(rule, []).append(cell.removeprefix(f"{rule}: "))
    for rule, cells in counts.cells.items():
        hit = sum(count > 0 for count in cells.values())
        yield CoveredRule(rule, hit, len(cells), tuple(dead.get(rule, ())), counts.unreachable.get(rule, ""))


def _mismatches(store: Store, part: Part) -> list[MismatchView]:
    """The mismatches of a part, explained by what was derived of it, or by what ships, where either expects them."""
    if not part.mismatches:
        return []
    made = _known(part.instruction, store.header)
    architecture = str(store.header.identity.get("architecture", ""))
    path, _ = _datapath(store, part, made)
    return mismatch_views(part.mismatches, made, architecture, path, part.instruction)
