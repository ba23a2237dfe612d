"""What is known of an architecture's primitives, and how two architectures differ, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.lookup import instructions
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.classes import classes_of
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import Change, diff, in_words
from mmaprobe.parameters.files import Entry
from mmaprobe.parameters.lookup import edited, file_named, load, parameters_of
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.report.vectors import vector_text
from mmaprobe.survey.file_comparison import ComparedDatapaths, compared

EDITED = "edited: these are not the parameters that ship with mmaprobe"
VECTOR = "  vector"
BESIDE = ("", "basis", "follows")
"""Fields of a change that no datapath has."""
NAMED = 3
"""Names written out where primitives of one opcode stand together, and witnesses of an entry."""


def parameter_rows(name: str) -> list[dict[str, Any]]:
    """Every primitive that an architecture's shipped parameters know, or a parameter file: its basis, meaning and
    source, what its notes say, its witnesses; and whether what should ship was edited."""
    own = file_named(name)
    file = own or load(name)
    changed = own is None and edited(file)
    return [
        {
            "primitive": name,
            "edited": changed,
            "basis": entry.basis,
            "meaning": meaning(entry.datapath),
            "source": entry.source + (f" (evidence {entry.evidence})" if entry.evidence else ""),
            "notes": {in_words(field): text for field, text in entry.notes},
            "classes": {in_words(field): text for field, text in classes_of(entry.datapath).items()},
            "witnesses": list(_witnesses(entry)),
        }
        for name, entry in sorted(file.entries.items())
    ]


def parameter_lines(name: str) -> list[str]:
    """The same as text: primitives of which the same is said stand together."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    rows = parameter_rows(name)
    for row in rows:
        groups[tuple(_said(row))].append(row["primitive"])
    head = [EDITED, ""] if any(row["edited"] for row in rows) else []
    return [*head, *[line for said, names in groups.items() for line in (folded(names), *said, "")][:-1]]


def _said(row: dict[str, Any]) -> Iterator[str]:
    yield f"  {row['meaning']}"
    yield f"  {row['basis']}: {row['source']}"
    yield from (f"  {field}: {text}" for field, text in row["notes"].items())
    yield from (f"  {field}: {text}: the same function" for field, text in row["classes"].items())
    yield from (f"  witness: {text}" for text in row["witnesses"][:NAMED])
    if len(row["witnesses"]) > NAMED:
        yield f"  and {len(row['witnesses']) - NAMED} more witnesses"


def _witnesses(entry: Entry) -> Iterator[str]:
    for witness in entry.witnesses:
        yield _vector(entry.datapath, witness) + (f" ({witness.note})" if witness.note else "")


def _vector(path: Datapath, witness: Witness) -> str:
    scale = path.scale.format if path.scale else None
    named = {"a": path.a, "b": path.b, "c": path.c, "scale_a": scale, "scale_b": scale}
    named |= {"random": path.random, "d": path.d}
    parts = []
    for name, fmt in named.items():
        codes = getattr(witness, name)
        if fmt is not None and codes not in (None, ()):
            words = codes if isinstance(codes, tuple) else (codes,)
            parts.append(f"{'-> ' if name == 'd' else ''}{name} {_words(words, formats.get(fmt).container_bits // 4)}")
    return ", ".join(parts[:-1]) + f" {parts[-1]}"


def _words(codes: Sequence[int], digits: int) -> str:
    """Codes in hexadecimal; three and more zeros at the end are counted."""
    live = len(codes) - next((i for i, code in enumerate(reversed(codes)) if code), len(codes))
    zeros = len(codes) - live
    shown, rest = (codes[:live], [f"and {zeros} zeros"]) if live and zeros > 2 else (codes, [])
    return " ".join([*(f"{code:0{digits}x}" for code in shown), *rest])


def folded(names: Sequence[str]) -> str:
    """Names of primitives, those of one opcode cut to the first few and a count."""
    heads: dict[str, list[str]] = defaultdict(list)
    for name in names:
        heads[name.partition(".")[0].partition("[")[0]].append(name)
    return "; ".join(_few(head, some) for head, some in heads.items())


def _few(head: str, names: Sequence[str]) -> str:
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more {head}"


@dataclass(frozen=True)
class FileDifference:
    """What is said of two parameter files; ``differs``: in a function, in the control state that one follows, or in
    which primitives they know.  What a function rests on is said, and is no difference of it."""

    lines: tuple[str, ...]
    differs: bool


def parameter_diff(first: str, second: str) -> FileDifference:
    """How the parameters of two architectures or files differ in meaning; primitives of which the same is said stand
    together."""
    old, new = parameters_of(first), parameters_of(second)
    names = [name if name.endswith(".toml") else file.architecture for name, file in ((first, old), (second, new))]
    lines, differs = [], False
    for name, file, other in ((names[0], old, new), (names[1], new, old)):
        single = [each for each in file.entries if each not in other.entries]
        inside = [each for each in single if each not in _run_alone(file.architecture)] if single else []
        differs |= len(inside) < len(single)
        lines += _only(f"only {name}", [each for each in single if each not in inside])
        lines += _only(f"only {name}, and inside of other instructions alone", inside)
    found = dict(compared(old, new))
    changes: dict[str, list[Change]] = defaultdict(list)
    for change in diff(old, new):
        same = change.field not in BESIDE and found[change.primitive].verdict == "written otherwise"
        if change.field and not same:
            changes[change.primitive].append(change)
    differing = [name for name, some in changes.items() if any(each.field != "basis" for each in some)]
    differs = differs or bool(differing)
    lines += _grouped({name: _differences_said(changes[name], found[name], names) for name in differing})
    rewritten = [name for name, each in found.items() if each.verdict == "written otherwise"]
    lines += _grouped({name: [f"  the same function in other words: {_argued(found[name])}"] for name in rewritten})
    bases = [name for name in changes if name not in differing]
    lines += _grouped({name: [_change_said(each) for each in changes[name]] for name in bases})
    if not (lines and found):
        return FileDifference(tuple(lines), differs)
    words = f", {len(rewritten)} of them in other words" if rewritten else ""
    alike = len(found) - len(differing)
    are = "1 primitive is" if alike == 1 else f"{alike} primitives are"
    said = "" if differs else "no difference in meaning: "
    return FileDifference((*lines, f"{said}{are} the same in both{words}"), differs)


def _run_alone(architecture: str) -> set[str | None]:
    """The primitives that an instruction of an architecture runs as they are, so that a device can be asked."""
    return {bare_primitive(architecture, made) for made in instructions(architecture)}


def _grouped(said: dict[str, list[str]]) -> list[str]:
    """Primitives of which the same is said in one line, what is said below; a vector is the first one's."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, lines in said.items():
        groups[tuple(line for line in lines if not line.startswith(VECTOR))].append(name)
    return [
        line
        for lines, names in groups.items()
        for line in (folded(names), *lines, *(each for each in said[names[0]] if each.startswith(VECTOR)))
    ]


def _differences_said(changes: Sequence[Change], found: ComparedDatapaths, names: Sequence[str]) -> list[str]:
    lines = [_change_said(change) for change in changes]
    if found.vector is not None:
        text = f"{VECTOR} {vector_text(found.vector)}"
        lines.append(f"{text} is {found.other:#x} in {names[0]} and {found.vector.d:#x} in {names[1]}")
    if found.verdict == "undecided":
        lines.append("  no vector was found that tells the two apart, and no argument that they are the same function")
    return lines


def _change_said(change: Change) -> str:
    return f"  {in_words(change.field)}: {change.old} -> {change.new}"


def _argued(found: ComparedDatapaths) -> str:
    return "; ".join(dict.fromkeys(step.argument.text for step in found.proof))


def _only(said: str, names: Sequence[str]) -> list[str]:
    return [f"{said}: {folded(names)}"] if names else []
