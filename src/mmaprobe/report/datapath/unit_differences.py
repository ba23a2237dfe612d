"""What tells two architectures' units apart, in a kernel engineer's words: pair by pair, each thing with a vector."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction, short
from mmaprobe.derivation.dense_view import simplest_sparse
from mmaprobe.exit_codes import EQUAL, INCONCLUSIVE, MISMATCH
from mmaprobe.models.hexfloat import code_value
from mmaprobe.operands.batch import Witness
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.diff import in_words
from mmaprobe.report.datapath.meaning import ROUNDINGS, meaning
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted
from mmaprobe.survey.family_kills import FamilyKills, family_kills
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
    "nan": (
        "which NaN comes out",
        {"canonical": "always one code", "global": "that of the first NaN operand",
         "local": "each operation hands on that of an operand", "cause": "a code that says what caused it"}, "{}",
    ),
    "priority": ("which NaN operand goes first", {"": "none does"}, "{}"),
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


def difference_lines(found: PairedUnits, names: tuple[str, str], families: bool = False) -> list[str]:
    """Every pair: what differs and the vector that shows it, with ``families`` also which families of vectors do; pairs
    of which the same is said stand together."""
    lines = [line for pairs in alike(found.pairs, names) for line in (*_group(pairs, names, families), "")]
    for name, other, alone in zip(names, reversed(names), found.alone, strict=True):
        if alone:
            lines += [f"{name} alone, {other} has no such formats with this K: {'; '.join(map(work, alone))}", ""]
    return [*lines, counts_line(found)]


def counts_line(found: PairedUnits) -> str:
    """How many pairs there are, and of how many both are the same function."""
    same = sum(pair.same for pair in found.pairs)
    open_ = sum(pair.found.verdict == "undecided" for pair in found.pairs)
    primitives = any(pair.name for pair in found.pairs)
    of = "of primitives with one name" if primitives else "of instructions with the same formats and K"
    pairs = f"{counted(len(found.pairs), 'pair')} {of}"
    undecided = f", {open_} undecided" if open_ else ""
    return f"{pairs}: {same} the same function, {len(found.pairs) - same - open_} not{undecided}"


def alike(pairs: Sequence[UnitPair], names: tuple[str, str]) -> list[list[UnitPair]]:
    """The pairs, those together of which the same is said whatever vector shows it.

    The vectors of the first of them are shown: it is one that can be explained where one can.
    """
    groups: dict[tuple[str, ...], list[UnitPair]] = defaultdict(list)
    for pair in pairs:
        groups[tuple(_without_vectors(pair, names))].append(pair)
    return [sorted(group, key=lambda pair: not any(pair.asked)) for group in groups.values()]


def work(of: UnitPair | OneSided) -> str:
    """What instructions multiply and add: ``f16 x f16 + f32 -> f32, K = 16``; K counts what is multiplied.  Of a
    primitive its name."""
    if of.name:
        return of.name
    made = of.work
    scale = f", {made.scale} scales of {made.scale_size} lanes" if made.scale else ""
    more = ", saturating" * of.saturates + ", of a sparse A" * of.sparse
    return f"{made.a} x {made.b}{f' + {made.c}' if made.c else ''} -> {made.d}, K = {made.k}{scale}{more}"


def _group(pairs: Sequence[UnitPair], names: tuple[str, str], families: bool) -> Iterator[str]:
    """What many pairs have in common is said before they are named, where it is a line; else below the last one."""
    told = list(told_lines(pairs[0], names))
    brief = len(pairs) > 1 and len(told) == 1
    if len(pairs) > 1:
        yield f"{len(pairs)} pairs, {told[0].strip() if brief else 'what differs in each stands below the last one'}:"
    for pair in pairs:
        yield work(pair)
        yield from _instructions(pair, names)
    if not brief:
        yield from told
    if families and pairs[0].found.vector is not None:
        yield from (f"  {line}" for line in families_lines(list(family_kills(*pairs[0].datapaths))))


def _instructions(pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    """The instructions of either side; of one primitive in both once."""
    if pair.name and pair.names[0] == pair.names[1]:
        if pair.names[0]:
            yield f"  in {first_of(pair.names[0])}"
    else:
        yield from (f"  {name}: {first_of(ids)}" for name, ids in zip(names, pair.names, strict=True))


def families_lines(kills: Sequence[FamilyKills]) -> Iterator[str]:
    """Which families of vectors show a difference, the best first, and which show none."""
    showing = sorted((each for each in kills if each.differing), key=lambda each: -each.differing)
    said = ", ".join(f"{each.family} {each.differing:,}" for each in showing)
    yield f"answered differently, of {kills[0].vectors:,} vectors of each family: {said or 'none'}"
    silent = [each.family for each in kills if not each.differing]
    if silent and showing:
        yield f"no vector of {', '.join(silent)} shows it"


def first_of(ids: Sequence[str]) -> str:
    """The short names of some instructions; beyond the first few they are counted."""
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"{', '.join(map(short, ids[:NAMED]))}{more}"


def told_lines(pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    """What is said of one pair below its names."""
    if standing(pair):
        yield f"  {standing(pair)}"
    for told in pair.told:
        if told.vector is not None:
            yield from _said(told, pair, names)
            yield from _shown(told, pair, names)
    silent = [line.strip() for told in pair.told if told.vector is None for line in _said(told, pair, names)]
    if silent:
        yield "  also otherwise, without a vector that shows it alone:"
        yield from (f"    {line}" for line in silent)
    whole = together(pair)
    if whole is not None:
        yield from _shown(whole, pair, names)


def standing(pair: UnitPair) -> str:
    """What is said of a pair that no vector tells apart, the proof where there is one; nothing of another one."""
    if pair.found.verdict == "written otherwise":
        arguments = dict.fromkeys(step.argument.text for step in pair.found.proof)
        return f"the same function, proved: {'; '.join(arguments)}"
    return SAME.get(pair.found.verdict, "")


def together(pair: UnitPair) -> ToldDifference | None:
    """What shows everything at once, where no vector shows any one thing alone."""
    if pair.found.vector is None or any(told.vector is not None for told in pair.told):
        return None
    return ToldDifference("", None, None, pair.found.vector, pair.found.other)


def _without_vectors(pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    yield pair.found.verdict
    yield from dict.fromkeys(step.argument.text for step in pair.found.proof)
    for told in pair.told:
        yield from (str(told.vector is None), *_said(told, pair, names))


def _said(told: ToldDifference, pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    """One thing that the two have otherwise: in one line, a sum in a line for each."""
    what, *values = worded(told, pair)
    if told.field == "tree":
        yield f"  {what}:"
        yield from (f"    {name}: {value}" for name, value in zip(names, values, strict=True))
    else:
        yield f"  {what}: {values[0]} in {names[0]}, {values[1]} in {names[1]}"


def worded(told: ToldDifference, pair: UnitPair) -> tuple[str, str, str]:
    """What one difference is about, and how either side has it."""
    if told.field == "tree":
        first, second = (meaning(path).partition("; ")[0] for path in pair.datapaths)
        return "how the terms are added", first, second
    return _what(told.field), _value(told.field, told.before), _value(told.field, told.after)


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
        return str(value) or "none"
    _, said, otherwise = WORDS[last]
    return said.get(str(value), otherwise.format(value))


def _shown(told: ToldDifference, pair: UnitPair, names: tuple[str, str]) -> Iterator[str]:
    """The vector, both results, and the command that follows one of the units through it."""
    assert told.vector is not None
    fmt = formats.get(pair.work.d)
    answers = [f"{name} gives {code:#x} ({code_value(fmt, code)})"
               for name, code in zip(names, (told.other, told.vector.d), strict=True)]  # fmt: skip
    yield f"    {vector_text(told.vector)}"
    yield f"    {', '.join(answers)}"
    yield from (f"    why: {command}" for command in explaining(told.vector, pair, names)[:1])


def explaining(vector: Witness, pair: UnitPair, names: tuple[str, str]) -> list[str]:
    """The commands that follow the units through a vector, of each side that has an instruction for it."""
    return [
        f"mmaprobe explain {shlex.join([name, short(asked), *_operands(vector, pair, asked, name).split()])}"
        for name, asked in zip(names, pair.asked, strict=True)
        if asked
    ]


def _operands(vector: Witness, pair: UnitPair, asked: str, architecture: str) -> str:
    """A vector as the instruction takes it: a sparse one with the simplest metadata that keep these lanes."""
    if not pair.sparse:
        return vector_text(vector)
    made = instruction(asked, architecture)
    return vector_text(Witness.of(simplest_sparse(made, as_vectors(pair.work, [vector])), vector.d))


def difference_json(found: PairedUnits, names: tuple[str, str], families: bool = False) -> dict[str, Any]:
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
            | ({"families": _families_json(pair)} if families else {})
            for pair in found.pairs
        ],
        "alone": dict(zip(names, ([work(each) for each in alone] for alone in found.alone), strict=True)),
    }  # fmt: skip


def _families_json(pair: UnitPair) -> dict[str, dict[str, int]]:
    """Of each family how many of how many vectors both answer differently; none where no vector tells them apart."""
    kills = family_kills(*pair.datapaths) if pair.found.vector is not None else ()
    return {each.family: {"differing": each.differing, "vectors": each.vectors} for each in kills}


def _difference_json(told: ToldDifference, pair: UnitPair, names: tuple[str, str]) -> dict[str, Any]:
    vector = None if told.vector is None else {k: v for k, v in asdict(told.vector).items() if k not in ("d", "note")}
    results = None if told.vector is None else dict(zip(names, (told.other, told.vector.d), strict=True))
    values = dict(zip(names, (told.before, told.after), strict=True))
    words = [line.strip() for line in _said(told, pair, names)]
    return {"field": told.field, "words": words, "values": values, "vector": vector, "results": results}
