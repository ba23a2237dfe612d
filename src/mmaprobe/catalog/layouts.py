"""Where the operands of an instruction lie: the fragments of ``data/layouts``, found by instruction.

A fragment record applies where each of its predicates holds: an instruction's
opcode, shape, formats and the operand's width against a value, a list of
values or a glob, its architecture against names and groups of ``catalog.architectures``.
One record may apply to an operand; where it is open several, each by the name
of its claim (``catalog.layout_claims``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from math import prod
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.architectures import every
from mmaprobe.catalog.formula import Formula
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_claims import claim_of, claimed
from mmaprobe.catalog.supplements import KEPT, Supplement, added
from mmaprobe.catalog.toml import parsed, shipped
from mmaprobe.errors import UsageError, brief, near

SCHEMA = 1
"""What a data file of layouts says its schema is."""
_RECORD = {
    "name", "operands", "applies", "cases", "let", "lanes", "slots", "container", "shift", "space", "choices", "active",
    "at", "extra", "replication", "status", "source", "note", "reason", "bits", "register_bits",
    "chosen_by", "claim",
}  # fmt: skip
_KINDS: Mapping[str, type] = {
    "name": str, "operands": list, "applies": dict, "let": dict, "at": dict, "choices": dict, "extra": dict,
    "chosen_by": dict, "when": dict,
}  # fmt: skip
_NEEDED = {
    "fragment": {"name", "applies", "lanes", "at"}, "absent": {"applies", "status", "reason"}, "container": {"applies"},
}  # fmt: skip
_CASE = _RECORD - {"operands", "applies", "cases", "extra"} | {"when"}
_TABLES = {"schema", "let", "cases", "container", "fragment", "absent", "map", "transfer", "address", "descriptor"}
ADDED_TABLES = ("let", "cases", "container", "fragment", "absent")
"""The tables that say where operands lie, which rows from outside may bring with them."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """One data file of layouts as it was read; ``added``: from outside of the package."""

    file: str
    data: Mapping[str, Any]
    added: bool = False

    def records(self, table: str) -> Iterator[dict[str, Any]]:
        """Its records of one kind, one for each combination of a record's cases."""
        for record in self.data.get(table, ()):
            where = f"{self.file}, {record.get('name', table)}"
            _known(record, _RECORD, where)
            for choice in itertools.product(*self._axes(record.get("cases", []))):
                merged = {
                    "where": where,
                    "added": self.added,
                    **record,
                    "let": {**self.data.get("let", {}), **record.get("let", {})},
                }
                for case in choice:
                    _known(case, _CASE, where)
                    _merge(merged, case)
                yield merged

    def _axes(self, cases: Any) -> list[list[dict[str, Any]]]:
        named = self.data.get("cases", {})
        if isinstance(cases, str):
            return [named[cases]]
        if all(isinstance(case, dict) for case in cases):
            return [cases] if cases else []
        return [named[axis] if isinstance(axis, str) else axis for axis in cases]


def _known(table: Mapping[str, Any], names: set[str], where: str) -> None:
    for key, value in table.items():
        if key not in names:
            raise UsageError(f"{where}: unknown key {key!r}{near(key, names)}")
        if not isinstance(value, _KINDS.get(key, object)):
            raise UsageError(f"{where}: {key} is {brief(value)}, which is no {_CALLED[_KINDS[key]]}")


_CALLED: Mapping[type, str] = {str: "text", list: "list", dict: "table"}


def _merge(record: dict[str, Any], case: Mapping[str, Any]) -> None:
    """A case's keys over the record's; tables are joined, conditions must all hold."""
    for key, value in case.items():
        if key == "when":
            record["conditions"] = (*record.get("conditions", ()), value)
        elif key == "active" and key in record:
            record[key] = f"({record[key]}) & ({value})"
        elif isinstance(value, dict):
            record[key] = {**record.get(key, {}), **value}
        else:
            record[key] = value


def sheets() -> tuple[Sheet, ...]:
    """The data files of layouts that ship with the package, by name, and then what was added."""
    return _sheets(added())


@lru_cache(maxsize=KEPT)
def _sheets(more: tuple[Supplement, ...]) -> tuple[Sheet, ...]:
    texts = shipped("mmaprobe.catalog", "data", "layouts").items()
    return (*(parse_layouts(file, text) for file, text in texts), *filter(None, map(sheet_of, more)))


def sheet_of(supplement: Supplement) -> Sheet | None:
    """The layouts of a supplement; None where it has none."""
    data = {name: table for name, table in supplement.data.items() if name in ADDED_TABLES}
    return Sheet(supplement.origin, data, added=True) if data else None


def check_sheet(sheet: Sheet) -> None:
    """UsageError naming the file and the record where a key of a layout is unknown or missing."""
    named = set(facts(Instruction("any", "any", "any", 1, 1, 1, "f16", "f16", None, "f16"), "", "a"))
    for table, needed in _NEEDED.items():
        try:
            for record in sheet.records(table):
                for key in sorted(needed - record.keys()):
                    raise UsageError(f"{record['where']}: key {key!r} is missing")
                for predicates in (record["applies"], *record.get("conditions", ())):
                    _known(predicates, named, record["where"])
        except KeyError as error:
            raise UsageError(f"{sheet.file}, {table}: nothing is called {error}") from None
        except (TypeError, AttributeError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"{sheet.file}: {table} is not as docs/layouts.md says") from None


def parse_layouts(file: str, text: str) -> Sheet:
    """A data file of layouts; UsageError naming it where it is none."""
    data = parsed(file, text, SCHEMA)
    _known(data, _TABLES, file)
    return Sheet(file, data)


def records(table: str) -> tuple[dict[str, Any], ...]:
    """Every record of one kind in the data files."""
    return _records(sheets(), table)


@lru_cache(maxsize=KEPT * len(_TABLES))
def _records(found: tuple[Sheet, ...], table: str) -> tuple[dict[str, Any], ...]:
    return tuple(record for sheet in found for record in sheet.records(table))


def operands(instruction: Instruction) -> tuple[str, ...]:
    """The operands that an instruction has, D last."""
    return (*instruction.shapes(1), "d")


def width(name: str) -> int:
    """Bits of one element as an operand holds it: tf32 has 32, ue4m3 8."""
    made = formats.get(name)
    return made.bits + made.padding + made.ignored_high


_AXES = {
    "a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n"), "d": ("m", "n"), "metadata": ("m", "chunk"),
    "scale_a": ("m", "scale_block"), "scale_b": ("scale_block", "n"),
}  # fmt: skip


def facts(instruction: Instruction, architecture: str, operand: str) -> dict[str, Any]:
    """What predicates and formulas may name about one operand of an instruction."""
    named = {role: made.name for role, made in instruction.formats().items()}
    if operand not in operands(instruction):
        raise UsageError(f"{instruction.id} has no operand {operand!r}; it has {', '.join(operands(instruction))}")
    m, n, k = instruction.m, instruction.n, instruction.k
    mn = n if operand in ("b", "scale_b") else m
    stored_k = instruction.selected
    return {
        "opcode": instruction.opcode, "architecture": architecture, "operand": operand,
        "format": named.get(operand, ""), "bits": width(named[operand]) if operand in named else 4,
        "a_format": named["a"], "a_bits": width(named["a"]),
        "place": (instruction.modifier.get("a", "smem") if operand == "a" else "smem"),
        "m": m, "n": n, "k": k, "km": k * m, "mn": mn, "M": m, "N": n, "K": k, "MN": mn,
        "blocks": instruction.blocks, "stored_k": stored_k, "depth": stored_k if operand == "a" else k,
        "chunks": k // instruction.chunk if instruction.chunk else 0,
        "scales": k // instruction.scale_size if instruction.scale_size else 0,
        "wave": int(instruction.modifier.get("wave", 32)),
        "key_given": int(instruction.modifier.get("index_key", 0)),
    }  # fmt: skip


def _holds(predicates: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    return all(
        _fits(key, wanted if isinstance(wanted, list) else [wanted], known[key]) for key, wanted in predicates.items()
    )


def _fits(key: str, options: list[Any], got: Any) -> bool:
    if key == "architecture":
        return every().among(got, options)
    return any(fnmatchcase(got, o) if isinstance(got, str) and isinstance(o, str) else got == o for o in options)


def _applying(table: str, known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of a table that apply; of those from outside none where any of ours says where the operand lies."""
    found = _holding(table, known)
    if any(record["added"] for record in found):
        ours = (record for kind in ("fragment", "absent") for record in _holding(kind, known) if not record["added"])
        if any(ours):
            return [record for record in found if not record["added"]]
    return found


def _holding(table: str, known: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        record
        for record in records(table)
        if known["operand"] in record.get("operands", [known["operand"]])
        and all(_holds(part, known) for part in (record["applies"], *record.get("conditions", ())))
    ]


def candidates(instruction: Instruction, architecture: str, operand: str) -> tuple[Fragment, ...]:
    """Every fragment that one operand may have, the open ones too, of which the instruction may name one claim."""
    known = facts(instruction, architecture, operand)
    found = (_checked(record, known, instruction) for record in _applying("fragment", known))
    named = claim_of(instruction)
    return tuple(each for each in found if not (named and each.claim) or each.claim in named)


def _checked(record: dict[str, Any], known: dict[str, Any], instruction: Instruction) -> Fragment:
    """The fragment of a record; UsageError naming the record where it lacks or mistakes something."""
    try:
        return _fragment(record, known, instruction)
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise UsageError(f"{record['where']}: {instruction.id}: {reason}") from None


def refuse_absent(instruction: Instruction, known: Mapping[str, Any]) -> None:
    """UsageError where the data say that an operand's layout is open or opaque."""
    for record in _applying("absent", known):
        operand = known["operand"]
        raise UsageError(f"{instruction.id}: the layout of {operand} is {record['status']}: {record['reason']}")


def open_reason(instruction: Instruction, architecture: str) -> str:
    """Why an instruction cannot be run yet: the first operand whose layout no source tells; empty if none."""
    for operand in operands(instruction):
        known = facts(instruction, architecture, operand)
        every = (*_applying("absent", known), *_applying("fragment", known))
        opened = [record for record in every if record.get("status") == "open"]
        if opened and not {record.get("claim") for record in opened} & set(claim_of(instruction)):
            return f"the layout of {operand} is open: {opened[0].get('reason') or opened[0]['note']}"
    return ""


def claims(instruction: Instruction, architecture: str) -> tuple[Instruction, ...]:
    """An instruction whose layout is open by each claim of a source; () where none is open, or one without a claim."""
    if claim_of(instruction):
        return ()
    sets: dict[tuple[str, ...], None] = {}
    for operand in operands(instruction):
        known = facts(instruction, architecture, operand)
        if _applying("absent", known):
            return ()
        if opened := [one["claim"] for one in _applying("fragment", known) if one.get("status") == "open"]:
            sets[tuple(opened)] = None
    return tuple(claimed(instruction, ".".join(names)) for names in itertools.product(*sets) if names)


def layout(instruction: Instruction, architecture: str, operand: str) -> Fragment:
    """The fragment of one operand (``a b c d metadata scale_a scale_b``) of an instruction.

    Raises UsageError where it is open or opaque (one line that says why), and
    where the operand lies in shared memory (``catalog.shared_memory`` has those).
    """
    known = facts(instruction, architecture, operand)
    refuse_absent(instruction, known)
    found = candidates(instruction, architecture, operand)
    if found and found[0].status == "open" and found[0].claim not in claim_of(instruction):
        names = ", ".join(one.claim for one in found)
        raise UsageError(f"{instruction.id}: the layout of {operand} is open: {found[0].note}; claims: {names}")
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{instruction.id}: {operand} has the layouts {', '.join(f.name for f in found)} at once")
    if operand in ("a", "b") and instruction.opcode.startswith(("wgmma.", "tcgen05.")):
        raise UsageError(f"{instruction.id}: {operand} lies in shared memory; ask catalog.shared_memory.matrix for it")
    raise UsageError(f"{instruction.id}: no layout of {operand} is known on {architecture}")


def _fragment(record: Mapping[str, Any], known: Mapping[str, Any], instruction: Instruction) -> Fragment:
    operand = known["operand"]
    containers = (each for each in records("container") if each["added"] == record["added"])
    container = next((each for each in containers if _holds(each["applies"], known)), {})
    numbers = {name: value for name, value in known.items() if isinstance(value, int)}
    numbers["bits"] = record.get("container", container.get("bits", known["bits"]))
    numbers["register_bits"] = container.get("register_bits", 32)
    numbers["E"] = numbers["register_bits"] // numbers["bits"]
    bind = Binder(record["let"], numbers)
    at = {_axis(name, operand): bind.formula(text) for name, text in record["at"].items()}
    extra = record.get("extra", {})
    at |= {name: bind.formula(text) for name, (_, text) in extra.items()}
    sizes = {"m": known["M"], "n": known["N"], "k": known["depth"], "mfma_block": known["blocks"],
             "chunk": known["chunks"], "scale_block": known["scales"],
             **{name: size for name, (size, _) in extra.items()}}  # fmt: skip
    lead = (*extra, *(["mfma_block"] if known["blocks"] > 1 else []))
    axes = tuple((name, sizes[name]) for name in (*lead, *_AXES[operand]))
    lanes, replication = bind.number(record["lanes"]), bind.number(record.get("replication", 1))
    slots = record.get("slots", prod(size for _, size in axes) * replication // lanes)
    return Fragment(
        record["name"], operand, record.get("space", "registers"), lanes, bind.number(slots), numbers["bits"],
        known["bits"], axes, tuple((name, at[name]) for name, _ in axes),
        shift=bind.formula(record.get("shift", container.get("shift", 0))),
        active=bind.formula(record["active"]) if "active" in record else None,
        choices=_choices(record, bind, instruction, operand),
        register_bits=numbers["register_bits"], replication=replication, status=record.get("status", "checked"),
        source=record.get("source", ""), note=record.get("note", ""), claim=record.get("claim", ""),
    )  # fmt: skip


def _axis(name: str, operand: str) -> str:
    return name if name != "mn" else "n" if operand in ("b", "scale_b") else "m"


def _choices(
    record: Mapping[str, Any], bind: Binder, instruction: Instruction, operand: str
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The values of each choice, the one that the instruction's modifiers name first.

    ``chosen_by`` lists the modifiers of a choice, bit 0 first; without it a
    choice goes by the modifier of its own name.
    """
    out = []
    for name, allowed in record.get("choices", {}).items():
        values = tuple(allowed) if isinstance(allowed, list) else tuple(range(bind.number(allowed)))
        keys = [key.format(side=operand[-1]) for key in record.get("chosen_by", {}).get(name, [name])]
        given = [instruction.modifier.get(key, "") for key in keys]
        chosen = sum(_setting(text, operand) << bit for bit, text in enumerate(given)) if any(given) else values[0]
        if chosen not in values:
            raise UsageError(f"{instruction.id}: {name} is one of {', '.join(map(str, values))}; {chosen} came")
        out.append((name, tuple(sorted(values, key=lambda value: value != chosen))))
    return tuple(out)


_PLACE = {"a": 0, "scale_a": 0, "b": 1, "scale_b": 1}


def _setting(text: str, operand: str) -> int:
    """A modifier's number: of a bit list for A, B and C (``010``) the operand's, else the digits at its end."""
    if len(text) == 3 and set(text) <= {"0", "1"}:
        return int(text[_PLACE.get(operand, 2)])
    found = re.search(r"\d+$", text)
    return int(found[0]) if found else 0


@dataclass(frozen=True)
class Binder:
    """Texts of formulas with a sheet's own names and an instruction's numbers bound."""

    let: Mapping[str, str]
    numbers: Mapping[str, int]

    def formula(self, text: Any) -> Formula:
        """The formula with every name that ``let`` or the numbers know replaced, to the end."""
        made = Formula(str(text)).bind(self.numbers)
        while names := made.names & set(self.let):
            made = made.bind({name: Formula(self.let[name]).bind(self.numbers) for name in names})
        return made

    def number(self, text: Any) -> int:
        """A formula without names left, as an integer."""
        return int(self.formula(text)())
