"""What tells two architectures' units apart, in a kernel engineer's words: pair by pair, each thing with a vector."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.lookup import short
from mmaprobe.exit_codes import EQUAL, INCONCLUSIVE, MISMATCH
from mmaprobe.models.hexfloat import code_value
from mmaprobe.parameters.diff import in_words
from mmaprobe.report.datapath.meaning import ROUNDINGS, meaning
from mmaprobe.report.vectors import vector_text
from mmaprobe.survey.unit_pairs import OneSided, PairedUnits, ToldDifference, UnitPair

WORDS: dict[str, tuple[str, dict[str, str], str]] = {
    "fraction_bits": ("bits kept below the largest exponent", {"none": "all"}, "{}"),
    "zero_exponent": ("a zero in the alignment", {"none": "takes no part"}, "counts as 2^{}"),
    "overflow_exponent": ("a product becomes an infinity", {"none": "never"}, "from 2^{} on"),
    "label": (
        "the exponent by which a product is aligned",
        {"operands": "that of its operands, normalised", "encoded": "the sum of the operands' exponent fields",
         "normalised": "that of its own leading bit"}, "{}",
    ),
    "step": ("lanes that are added at a time", {"0": "all"}, "{}"),
    "code": ("the code of a NaN", {}, "{}"),
    "overflow": (
        "a result beyond the range",
        {"largest": "the largest number", "infinity": "an infinity", "ieee": "as it is rounded"}, "{}",
    ),
    "zero": ("the sign of a zero sum", {"positive": "+0 always", "ieee": "as in IEEE 754"}, "{}"),
}  # fmt: skip
"""Fields of which a person is told in other words than those of the record: what, its values, other values."""
NAMED = 3
"""Instructions of one side that are named; others are counted."""
SAME = {
    "same": "the same datapath: every bit is the same",
    "undecided": "no vector was found that tells the two apart, and no proof that none does",
}


def exit_code(found: PairedUnits) -> int:
    """1 where a pair differs or may, 0 where all are the same, 4 where nothing that one computes has its pair."""
    if not found.pairs and any(found.alone):
        return INCONCLUSIVE
    return EQUAL if all(pair.same for pair in found.pairs) else MISMATCH


def difference_lines(found: PairedUnits, names: tuple[str, str]) -> list[str]:
    """Every pair: what differs and the vector that shows it; pairs of which the same is said stand together."""
    groups: dict[tuple[str, ...], list[UnitPair]] = defaultdict(list)
    for pair in found.pairs:
        groups[tuple(_without_vectors(pair, names))].append(pair)
    lines = [line for pairs in groups.values() for line in (*_group(pairs, names), "")]
    for name, other, alone in zip(names, reversed(names), found.alone, strict=True):
        if alone:
            lines += [f"{name} alone, {other} has no such formats with this K: {'; '.join(map(work, alone))}", ""]
    same = sum(pair.same for pair in found.pairs)
    pairs = f"{len(found.pairs)} pair{'s' * (len(found.pairs) != 1)} of instructions with the same formats and K"
    return [*lines, f"{pairs}: {same} the same function, {len(found.pairs) - same} not"]


def work(of: UnitPair | OneSided) -> str:
    """What instructions multiply and add: ``f16 x f16 + f32 -> f32, K = 16``; K counts what is multiplied."""
    made = of.work
    scale = f", {made.scale} scales of {made.scale_size} lanes" if made.scale else ""
    more = ", saturating" * of.saturates + ", of a sparse A" * of.sparse
    return f"{made.a} x {made.b}{f' + {made.c}' if made.c else ''} -> {made.d}, K = {made.k}{scale}{more}"


def _group(pairs: Sequence[UnitPair], names: tuple[str, str]) -> Iterator[str]:
    """What many pairs have in common is said before they are named, where it is a line; else below the last one."""
    told = list(_told(pairs[0], names))
    brief = len(pairs) > 1 and len(told) == 1
    if len(pairs) > 1:
        yield f"{len(pairs)} pairs, {told[0].strip() if brief else 'what differs in each stands below the last one'}:"
    for pair in pairs:
        yield work(pair)
        for name, ids in zip(names, pair.names, strict=True):
            more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
            yield f"  {name}: {', '.join(map(short, ids[:NAMED]))}{more}"
    if not brief:
        yield from told


def _told(pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    if pair.found.verdict == "written otherwise":
        arguments = dict.fromkeys(step.argument.text for step in pair.found.proof)
        yield f"  the same function, proved: {'; '.join(arguments)}"
    if pair.found.verdict in SAME:
        yield f"  {SAME[pair.found.verdict]}"
    for told in pair.told:
        if told.vector is not None:
            yield from _said(told, pair, names)
            yield from _shown(told, pair, names)
    silent = [line.strip() for told in pair.told if told.vector is None for line in _said(told, pair, names)]
    if silent:
        yield "  also otherwise, without a vector that shows it alone:"
        yield from (f"    {line}" for line in silent)
    if pair.told and all(told.vector is None for told in pair.told) and pair.found.vector is not None:
        yield from _shown(ToldDifference("", None, None, pair.found.vector, pair.found.other), pair, names)


def _without_vectors(pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    yield pair.found.verdict
    yield from dict.fromkeys(step.argument.text for step in pair.found.proof)
    for told in pair.told:
        yield from (str(told.vector is None), *_said(told, pair, names))


def _said(told: ToldDifference, pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    """One thing that the two have otherwise: in one line, a sum in a line for each."""
    if told.field == "tree":
        yield "  how the terms are added:"
        for name, path in zip(names, pair.datapaths, strict=True):
            yield f"    {name}: {meaning(path).partition('; ')[0]}"
    else:
        before, after = (_value(told.field, value) for value in (told.before, told.after))
        yield f"  {_what(told.field)}: {before} in {names[0]}, {after} in {names[1]}"


def _what(field: str) -> str:
    """What a field is about; of a term of a sum, or within it, with the place."""
    words = in_words(field)
    head, _, last = field.rpartition(".")
    if last not in WORDS:
        return words
    place = in_words(head).partition("term ")[2]
    return WORDS[last][0] + (f", of term {place}" if place else "")


def _value(field: str, value: Any) -> str:
    last = field.rpartition(".")[2]
    if last == "rounding":
        return ROUNDINGS.get(value, str(value))
    if last not in WORDS:
        return str(value)
    _, said, otherwise = WORDS[last]
    return said.get(str(value), otherwise.format(value))


def _shown(told: ToldDifference, pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    """The vector, both results, and the command that follows one of the units through it."""
    assert told.vector is not None
    fmt, text = formats.get(pair.work.d), vector_text(told.vector)
    answers = [f"{name} gives {code:#x} ({code_value(fmt, code)})"
               for name, code in zip(names, (told.other, told.vector.d), strict=True)]  # fmt: skip
    yield f"    {text}"
    yield f"    {', '.join(answers)}"
    if not pair.sparse:
        yield f"    why: mmaprobe explain {shlex.join([names[0], short(pair.names[0][0]), *text.split()])}"


def difference_json(found: PairedUnits, names: tuple[str, str]) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "architectures": list(names),
        "pairs": [
            {
                "work": work(pair), "sparse": pair.sparse, "verdict": pair.found.verdict,
                "instructions": dict(zip(names, map(list, pair.names), strict=True)),
                "proof": [step.argument.text for step in pair.found.proof],
                "differences": [_difference_json(told, pair, names) for told in pair.told],
            }
            for pair in found.pairs
        ],
        "alone": dict(zip(names, ([work(each) for each in alone] for alone in found.alone), strict=True)),
    }  # fmt: skip


def _difference_json(told: ToldDifference, pair: UnitPair, names: tuple[str, str]) -> dict[str, Any]:
    vector = None if told.vector is None else {k: v for k, v in asdict(told.vector).items() if k not in ("d", "note")}
    results = None if told.vector is None else dict(zip(names, (told.other, told.vector.d), strict=True))
    values = dict(zip(names, (told.before, told.after), strict=True))
    words = [line.strip() for line in _said(told, pair, names)]
    return {"field": told.field, "words": words, "values": values, "vector": vector, "results": results}
