"""The hypotheses that a recording is held against, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import islice, product

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance, SpentError
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.structures import (
    Structure,
    fused_structures,
    grouped_structures,
    orders,
    rounded_structures,
    scaled_structures,
)
from mmaprobe.derivation.search import fields
from mmaprobe.derivation.search.descent import Group, around, descent, race
from mmaprobe.derivation.search.loss import Graded
from mmaprobe.derivation.survivors import Living, several
from mmaprobe.errors import UsageError
from mmaprobe.models.combinations import Axis, Combinations
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Encode, Special
from mmaprobe.parameters.rewrite import zero_exponent_of

ALIGNMENTS = ("RZ", "RD", "RU", "RNE", "RNA")
RESULTS = ("RZ", "RNE", "RD", "RU")
MOST_SHAPES = 6
"""Sums in sums, the closest ones, that are taken downhill; tuned on the recordings of tests/derivation."""
TURNS = 24
"""Groups of fields that each of them is taken downhill by, at most; tuned on the same."""
UNITS = 600_000_000
"""Units of work (``budget``) of these ways down: about twelve seconds of a core."""
SOME = 32
"""So many, at most, of the datapaths that agree and differ in one group of fields stand for all of them."""


def plain_hypotheses(
    instruction: Instruction, results: Iterable[tuple[str, str]], code: int, moved: bool
) -> Iterator[Living]:
    """Structure by structure: every precision and rounding, the policies at the ends of the range as they come.

    ``results``: formats of the sums, each with that of a last conversion (""
    for none).  ``moved``: with the lanes taken in every way, else only as they come.
    """
    for name, last in results:
        modes = RESULTS[:2] if last else tuple(dict.fromkeys(("RNE", "RZ", *formats.ROUNDINGS)))
        for structure in rounded_structures(instruction.k, instruction.c is not None):
            base = _base(instruction, structure, Encode(name), last, code)
            yield from _moved(base, _roundings(structure, modes, last), _ways(instruction, structure, moved))
        for structure in _fused(instruction):
            yield from _moved(*_aligned(instruction, structure, name, last, code), _ways(instruction, structure, moved))


def _fused(instruction: Instruction) -> Iterator[Structure]:
    k, has_c = instruction.k, instruction.c is not None
    yield from fused_structures(k, has_c)
    if instruction.scale_size:
        yield from scaled_structures(k, has_c, instruction.scale_size)


def _aligned(
    instruction: Instruction, structure: Structure, name: str, last: str, code: int
) -> tuple[Datapath, list[Axis]]:
    """The structure and its changes: every width, alignment and rounding."""
    to = Encode(name, "RZ", "infinity", zero="positive", underflow="positive")
    base = field_choices.cut(_base(instruction, structure, to, last, code), 8, "RZ")
    widths = field_choices.fraction_bits(field_choices.may_be_uncut(base))
    return base, [
        widths,
        field_choices.alignment(ALIGNMENTS),
        *_roundings(structure, RESULTS[:2] if last else RESULTS, last),
    ]


def _base(instruction: Instruction, structure: Structure, to: Encode, last: str, code: int) -> Datapath:
    result = replace(to, format=last) if last else None
    return replace(grammar.build(instruction, structure, to, result), special=Special("canonical", code))


def _roundings(structure: Structure, modes: tuple[str, ...], last: str) -> list[Axis]:
    """Of all results alike; of inner sums, of the whole and of a last conversion each where they are apart."""
    parts = ["inner", "root"] if structure.apart else ["sums"] if last else []
    if not parts:
        return [field_choices.rounding(modes)]
    return [roles.encode_axis(part, rounding=modes) for part in (*parts, *(["result"] if last else []))]


def _moved(base: Datapath, changes: Sequence[Axis], ways: list[tuple[int, ...] | None]) -> Iterator[Living]:
    """All combinations of changes, with the lanes taken in each way."""
    try:
        every = Combinations(base, changes)
    except UsageError:  # the engine cannot hold it
        made = [reduce(lambda path, edit: edit(path), each, base) for each in product(*changes)]
        yield from (several([replace(path, order=order) for path in made], Allowance(None)) for order in ways)
        return
    for order in ways:
        yield Living.of([every if order is None else every.moved(replace(base, order=order))], Allowance(None))


def _ways(instruction: Instruction, structure: Structure, moved: bool) -> list[tuple[int, ...] | None]:
    """Ways to take the lanes; scale blocks stay whole where their sums are scaled."""
    if not moved or structure.scaled:
        return [None]
    return orders(instruction.k, structure.piece or structure.step, structure.fused)


def nested_hypotheses(instruction: Instruction, name: str, code: int, vectors: Batch, answers: Bits) -> list[Datapath]:
    """Sums in sums that agree with plain vectors, every part with a precision and roundings of its own.

    Too many to try all: the closest ones are taken downhill, and with each that gets every answer right come those that
    do and differ from it in a group of fields, some of each group.
    """
    scored: list[tuple[float, int, Datapath]] = []
    free = Allowance(None)
    seen = replace(Graded.of(instruction, [(vectors, answers)], free), counted=True)
    for number, structure in enumerate(grouped_structures(instruction.k, instruction.c is not None)):
        with suppress(UsageError):  # the engine cannot hold it
            every = Combinations(*_aligned(instruction, structure, name, "", code))
            nearest = seen.least(Living.of([every], free))
            if nearest is not None:
                scored.append((nearest[1], number, nearest[0]))
    starts = [path for *_, path in sorted(scored, key=lambda each: each[:2])[:MOST_SHAPES]]
    found: list[Datapath] = []
    with suppress(SpentError):
        seen, ways = replace(seen, allowance=Allowance(UNITS)), _ways_down
        for _, (path, loss) in race([islice(descent(start, seen, ways), TURNS) for start in starts], seen.allowance):
            if loss:
                continue
            near = Living.of(list(around(path, ways)), free).agreeing(vectors, answers)
            some = ((space, indices[:: len(indices) // SOME + 1]) for space, indices in near.parts)
            found += [path, *replace(near, parts=tuple(some))]
    return list(dict.fromkeys(found))


def _ways_down(path: Datapath) -> Iterator[Group]:
    """Precisions and roundings, what is there and then what can be added."""
    yield from fields.simple(path)
    yield from fields.odd(path, ())


def zero_variants(datapath: Datapath, like: Iterable[Datapath] = ()) -> Iterator[Datapath]:
    """Every exponent that zeros can show, and none; ``like``: those that these datapaths have."""
    exponents = [zero_exponent_of(path) for path in like] or field_choices.zero_exponents(datapath)
    if not grammar.has_fused(datapath):
        yield datapath
        return
    yield from (change(datapath) for change in field_choices.zero_exponent(exponents))


def end_variants(datapath: Datapath) -> Iterator[Datapath]:
    """Policies at the ends of the range: subnormal operands and results, signs of zeros, overflow."""
    names = ("a", "b", "c") if datapath.c is not None else ("a", "b")
    rules = [
        field_choices.flush(),
        field_choices.zero_sign(),
        field_choices.underflow_sign(),
        field_choices.overflow(),
        *map(field_choices.operand, names),
    ]
    for changes in product(*rules):
        yield reduce(lambda path, change: change(path), changes, datapath)
