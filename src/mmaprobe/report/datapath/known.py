"""What is known of an architecture's primitives, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from mmaprobe import formats
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.classes import classes_of
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import in_words
from mmaprobe.parameters.files import Entry
from mmaprobe.parameters.lookup import edited, file_named, load
from mmaprobe.report.datapath.meaning import meaning

EDITED = "edited: these are not the parameters that ship with mmaprobe"
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
