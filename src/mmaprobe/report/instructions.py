"""Instructions on a terminal: the forms of an architecture with their basis, and how many there are of what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from mmaprobe.catalog import lookup, wording
from mmaprobe.catalog.catalog import Form
from mmaprobe.catalog.lowering import KINDS
from mmaprobe.devices.base import Device, open_device
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.parameters.files import BASES
from mmaprobe.parameters.lookup import basis_for, datapath_for

Row = dict[str, Any]
NO_MODEL = "none"
SELECTED = {**{basis: (basis,) for basis in BASES}, "modelled": BASES, NO_MODEL: (NO_MODEL,)}
"""What ``--basis`` selects."""

COLUMNS = ("instruction", "formats", "lowering", "kind", "datapath", "ids")
COUNTS = ("forms", "ids", *KINDS, *BASES, NO_MODEL)


@dataclass(frozen=True)
class Selection:
    """Which forms to list: a glob on ids, a family, an operand's or the result's format, kinds, a basis."""

    glob: str = "*"
    family: str | None = None
    format: str | None = None
    kind: str | None = None
    basis: str | None = None

    def __post_init__(self) -> None:
        for name, value, known in (("kind", self.kind, KINDS), ("basis", self.basis, tuple(SELECTED))):
            if value is not None and value not in known:
                raise UsageError(f"--{name} {value!r}; it is one of {', '.join(known)}")

    def takes(self, row: Row) -> bool:
        """Whether a row of ``form_rows`` is asked for."""
        family, stem = row["family"], row["family"].partition(".")[0]
        return (
            (self.family is None or self.family in (family, stem) or fnmatchcase(family, self.family))
            and (self.format is None or self.format in (row[name] for name in ("a", "b", "c", "d", "scale")))
            and (self.kind is None or self.kind == row["kind"])
            and (self.basis is None or row["basis"] in SELECTED[self.basis])
        )


def form_rows(architecture: str, chosen: Selection) -> list[Row]:
    """The forms of an architecture that are asked for: what they are, what they lower to, what is known of them.

    UsageError where the glob names nothing there.
    """
    glob = chosen.glob
    found = lookup.forms(architecture, glob) if _is_glob(glob) else _named(architecture, glob)
    if not found:
        lookup.match(architecture, glob)
    rows = [_row(form, architecture) for form in found]
    return [row for row in rows if chosen.takes(row)]


def _is_glob(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _named(architecture: str, identifier: str) -> tuple[Form, ...]:
    (made,) = lookup.match(architecture, identifier)
    base = lookup.default_state(made)
    found = lookup.forms(architecture, base.id)
    return found or tuple(form for form in lookup.forms(architecture) if form.first.opcode == base.opcode)[:1]


def _row(form: Form, architecture: str) -> Row:
    made = form.first
    basis = _basis(form, architecture)
    return {
        "instruction": wording.text(form), "first": made.id, "family": made.family, "shape": wording.shape(form),
        "m": made.m, "n": made.n, "k": made.k, "a": made.a, "b": made.b, "c": made.c, "d": made.d, "scale": made.scale,
        "formats": f"{made.a} {made.b} {made.c or '-'} -> {made.d}", "options": list(wording.options(form)),
        "lowering": " + ".join(form.way.primitives) or form.way.note, "kind": form.way.kind, "basis": basis,
        "datapath": f"composed of {basis}" if form.way.kind == "emulated" and basis != NO_MODEL else basis,
        "toolchain": form.way.toolchain, "ids": form.count,
    }  # fmt: skip


def _basis(form: Form, architecture: str) -> str:
    """On what the datapath of a form's first instruction rests; ``none`` where none is known."""
    try:
        datapath_for(architecture, form.first)
        return str(basis_for(architecture, form.first))
    except UsageError:
        return NO_MODEL


def add_here(rows: Sequence[Row], architecture: str) -> bool:
    """Whether the rows are of this machine's CPU; if so each says whether it runs here."""
    try:
        cpu: Device = open_device("cpu")
    except NotHereError:
        return False
    if lookup.architecture_base(architecture) != cpu.info()["architecture"].partition("+")[0]:
        return False
    for row in rows:
        support = cpu.supports(lookup.instruction(row["first"], architecture))
        row["here"] = "yes" if support else f"no: {support.reason}"
    return True


def count(rows: Iterable[Row]) -> Row:
    """How many forms and ids there are, by kind and by basis."""
    found = list(rows)
    kinds, bases = Counter(row["kind"] for row in found), Counter(row["basis"] for row in found)
    numbers = {"forms": len(found), "ids": sum(row["ids"] for row in found)}
    return numbers | {kind: kinds[kind] for kind in KINDS} | {basis: bases[basis] for basis in (*BASES, NO_MODEL)}


def family_counts(rows: Iterable[Row]) -> list[Row]:
    """The same for each family (without the types that its name may end in), and in all."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["family"].rpartition(".")[0] or row["family"]].append(row)
    parts = [{"family": name} | count(found) for name, found in groups.items()]
    every = {"family": "all"} | count(row for found in groups.values() for row in found)
    return [*parts, every] if len(parts) > 1 else parts


def architecture_counts(chosen: Selection) -> list[Row]:
    """The same for each architecture that has anything of what is asked for, and in all."""
    parts: list[Row] = []
    every: Counter[str] = Counter()
    for name in lookup.architectures():
        rows = [row for form in lookup.forms(name, chosen.glob) if chosen.takes(row := _row(form, name))]
        if rows:
            numbers = count(rows)
            parts.append({"architecture": name} | numbers)
            every.update(numbers)
    return [*parts, {"architecture": "all", **{name: every[name] for name in COUNTS}}]


def option_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What ids may say beside what is listed, the families together of which the same is said."""
    groups: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for row in rows:
        if row["options"]:
            groups[tuple(row["options"])][row["family"]] = None
    return [f"{', '.join(families)} may say {' '.join(said)}" for said, families in groups.items()]
