"""Instructions on a terminal: the forms of an architecture with their basis, and how many there are of what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from mmaprobe.catalog import lookup, wording
from mmaprobe.catalog.catalog import Form
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lowering import KINDS
from mmaprobe.catalog.modifiers import unmodified
from mmaprobe.catalog.names import device_of
from mmaprobe.catalog.states import default_state
from mmaprobe.devices.base import Device, open_device
from mmaprobe.errors import NotHereError, UsageError, near
from mmaprobe.parameters.files import BASES
from mmaprobe.parameters.lookup import basis_for, datapath_for
from mmaprobe.showing import of_which

FormRow = dict[str, Any]
NO_MODEL = "none"
SELECTED = {**{basis: (basis,) for basis in BASES}, "modelled": BASES, NO_MODEL: (NO_MODEL,)}
"""What ``--basis`` selects."""

COLUMNS = ("instruction", "formats", "lowering", "kind", "datapath", "ids")
MEANINGS = ("instruction", "formats", "shape", "on", "read_as")
COUNTS = ("forms", "ids", *KINDS, *BASES, NO_MODEL)


@dataclass(frozen=True)
class FormFilter:
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

    def takes(self, row: FormRow) -> bool:
        """Whether a row of ``form_rows`` is asked for."""
        return (
            self._of_family(row["family"])
            and (self.format is None or self.format in _formats(row))
            and (self.kind is None or self.kind == row["kind"])
            and (self.basis is None or row["basis"] in SELECTED[self.basis])
        )

    def _of_family(self, name: str) -> bool:
        return self.family in (None, name, name.partition(".")[0]) or fnmatchcase(name, self.family or "")

    def refuse_absent(self, rows: Sequence[FormRow], where: str) -> None:
        """UsageError for a family or a format that none of these rows has, with near ones."""
        families = dict.fromkeys(name for row in rows for name in (row["family"], row["family"].partition(".")[0]))
        if not any(map(self._of_family, families)):
            listed = near(str(self.family), families) or f"; it has {', '.join(families)}"
            raise UsageError(f"no family {self.family!r} in {where}{listed}")
        known = dict.fromkeys(name for row in rows for name in _formats(row))
        if self.format is not None and self.format not in known:
            raise UsageError(f"no instruction of {where} has operands of {self.format!r}{near(self.format, known)}")


def _formats(row: FormRow) -> list[str]:
    return [row[name] for name in ("a", "b", "c", "d", "scale", "random") if row[name]]


def meaning_rows(name: str, architecture: str | None = None) -> list[dict[str, str]]:
    """The instructions that somebody else's name may mean, on an architecture or on any, and as what it was read.

    UsageError with the near ids where it means none.
    """
    found = lookup.meanings(name, architecture)
    if not found:
        made = lookup.instruction(name, architecture)
        return [_meaning_row(made, lookup.homes(made), "an id")]
    return [_meaning_row(each.instruction, each.architectures, each.what) for each in found]


def _meaning_row(made: Instruction, where: Sequence[str], what: str) -> dict[str, str]:
    formats = f"{made.a} {made.b} {made.c or '-'} -> {made.d}"
    return {"instruction": made.id, "formats": formats, "shape": f"{made.m}x{made.n}x{made.k}",
            "on": ", ".join(where), "read_as": what}  # fmt: skip


def form_rows(architecture: str, chosen: FormFilter) -> list[FormRow]:
    """The forms of an architecture that are asked for: what they are, what they lower to, what is known of them.

    UsageError where the glob names nothing there, or no form of it is of the family or has the format.
    """
    glob = chosen.glob
    found = lookup.forms(architecture, glob) if lookup.is_glob(glob) else _named(architecture, glob)
    if not found:
        lookup.match(architecture, glob)
    rows = [_row(form, architecture) for form in found]
    chosen.refuse_absent(rows, architecture if glob == "*" else f"{architecture} that {glob} names")
    return [row for row in rows if chosen.takes(row)]


def _named(architecture: str, identifier: str) -> tuple[Form, ...]:
    (made,) = lookup.match(architecture, identifier)
    base = default_state(made)
    found = lookup.forms(architecture, base.id)
    return found or tuple(form for form in lookup.forms(architecture) if form.first.opcode == base.opcode)[:1]


def _row(form: Form, architecture: str) -> FormRow:
    made = form.first
    basis = _basis(form, architecture)
    return {
        "instruction": wording.text(form), "first": made.id, "family": made.family, "shape": wording.shape(form),
        "m": made.m, "n": made.n, "k": made.k, "a": made.a, "b": made.b, "c": made.c, "d": made.d, "scale": made.scale,
        "random": made.random,
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


def add_here(rows: Sequence[FormRow], architecture: str) -> bool:
    """Whether the rows are of this machine's CPU; if so each says whether it runs here."""
    try:
        cpu: Device = open_device("cpu")
    except NotHereError:
        return False
    if cpu.info()["architecture"].partition("+")[0] not in map(lookup.architecture_base, lookup.parts(architecture)):
        return False
    for row in rows:
        support = cpu.supports(lookup.instruction(row["first"], architecture))
        row["here"] = "yes" if support else f"no: {support.reason}"
    return True


def count(rows: Iterable[FormRow]) -> FormRow:
    """How many forms and ids there are, by kind and by basis."""
    found = list(rows)
    kinds, bases = Counter(row["kind"] for row in found), Counter(row["basis"] for row in found)
    numbers = {"forms": len(found), "ids": sum(row["ids"] for row in found)}
    return numbers | {kind: kinds[kind] for kind in KINDS} | {basis: bases[basis] for basis in (*BASES, NO_MODEL)}


def family_counts(rows: Iterable[FormRow]) -> list[FormRow]:
    """The same for each family (without the types that its name may end in), and in all."""
    groups: dict[str, list[FormRow]] = defaultdict(list)
    for row in rows:
        groups[row["family"].rpartition(".")[0] or row["family"]].append(row)
    parts = [{"family": name} | count(found) for name, found in groups.items()]
    every = {"family": "all"} | count(row for found in groups.values() for row in found)
    return [*parts, every] if len(parts) > 1 else parts


def architecture_counts(chosen: FormFilter) -> list[FormRow]:
    """The same for each architecture that has anything of what is asked for, and in all.

    UsageError where the glob names nothing, or nothing that it names is of the family or has the format.
    """
    parts: list[FormRow] = []
    every: Counter[str] = Counter()
    glob = chosen.glob
    if not lookup.is_glob(glob):
        glob = unmodified(default_state(lookup.instruction(glob)))
    asked = {name: [_row(form, name) for form in lookup.forms(name, glob)] for name in lookup.architectures()}
    if not any(asked.values()):
        raise UsageError(f"no instruction of any architecture matches {glob!r}; see `mmaprobe instructions`")
    chosen.refuse_absent([row for rows in asked.values() for row in rows], "the catalog" if glob == "*" else glob)
    for name, forms in asked.items():
        rows = [row for row in forms if chosen.takes(row)]
        if rows:
            numbers = count(rows)
            parts.append({"architecture": name} | numbers)
            every.update(numbers)
    return [*parts, {"architecture": "all", **{name: every[name] for name in COUNTS}}]


def unknown_lines(rows: Iterable[Mapping[str, Any]], architecture: str) -> list[str]:
    """In one line how many forms nothing is known of, and what finds it out; [] where there are none."""
    found = list(rows)
    unknown = sum(row["basis"] == NO_MODEL for row in found)
    if not unknown:
        return []
    device = device_of(lookup.parts(architecture)[0])
    return [
        f"{of_which(unknown, len(found), 'form', 'have')} no datapath, neither published nor measured; "
        f"where that hardware is: mmaprobe run --device {device}"
    ]


def option_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What ids may say beside what is listed, the families together of which the same is said."""
    groups: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for row in rows:
        if row["options"]:
            groups[tuple(row["options"])][row["family"]] = None
    return [f"{', '.join(families)} may say {' '.join(said)}" for said, families in groups.items()]
