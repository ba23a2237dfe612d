"""Vectors aimed at pairs: a datapath and the neighbours of it that nothing has told apart yet.

Every number that one of them holds (fraction bits, zero exponents, cut-offs, the
ends of its formats) is a *place*.  Each vector has an anchor, mostly at such a
place, and a few terms at such distances below it that the last kept bit, a tie, a
flush or an overflow of one of the datapaths decides; the other lanes are zeros of
either sign, equal to one of these terms, or tiny.  The search's own pools are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors import rival_crowds as many
from mmaprobe.derivation.vectors import rival_shapes as few
from mmaprobe.derivation.vectors.rival_terms import Ints, Terms, places_of
from mmaprobe.generators.random_bits import with_random_bits
from mmaprobe.operands.batch import Batch, join
from mmaprobe.parameters.datapath import Datapath

MORE = {"tails": 3, "alone": 2, "raised": 3}
"""So many times as many vectors of a shape as of the others: of cuts of which little shows these tell most."""
DEEP = 40
"""Bits: where no number reaches deeper, there are no vectors of the largest terms beside the smallest."""
PAIR = 2
"""Lanes of those forms for which there are vectors of one product alone: of more lanes two products show the same."""
Shape = Callable[[Terms, "list[Ints]"], None]
SHAPES: dict[str, Shape] = {
    "ladder": few.ladder, "cancel": few.cancel, "graze": few.graze, "zero": few.zero, "top": few.top, "low": few.low,
    "order": many.order, "carry": few.carry, "labels": few.labels, "flush": few.flush, "crowd": many.crowd,
    "heap": many.heap, "brim": many.brim, "dust": many.dust, "span": many.span, "pairs": few.pairs,
    "flushes": many.flushes, "blocks": many.blocks, "ties": few.ties, "tails": few.tails, "depths": few.depths,
    "later": few.later, "alone": few.alone, "conjugates": few.conjugates, "remainders": few.remainders,
    "raised": many.raised, "sums": many.sums, "beside": few.beside, "specials": many.order,
}  # fmt: skip
"""By name; special operands come on top of the last."""


def can_attack(instruction: Instruction) -> bool:
    """Whether there are such vectors for an instruction: floats, dense."""
    return all(f.is_float for name, f in instruction.formats().items() if name != "random") and not instruction.chunk


def attack_vectors(
    instruction: Instruction, datapath: Datapath, rivals: Sequence[Datapath], seed: int, count: int
) -> Batch:
    """About ``count`` vectors (floats only) that may tell ``rivals`` from ``datapath``, of each shape as many, and of
    some more (``MORE``)."""
    rng = np.random.default_rng([seed, 0xA77AC])
    places = places_of([datapath, *rivals])
    narrowed = len(datapath.steps) > 1 and any(path.result is not None for path in (datapath, *rivals))
    sums = instruction.c is not None and instruction.scale is None
    raised = instruction.c is None and len(datapath.steps) > 1
    said = {"sums": sums, "depths": max(places.reach) > DEEP, "later": narrowed, "span": instruction.scale is not None}
    said |= {"raised": raised, "beside": sums and instruction.k == PAIR}
    shapes = [shape for shape in SHAPES if said.get(shape, True)]
    each = {shape: MORE.get(shape, 1) * -(-count // len(shapes)) for shape in shapes}
    each |= {"sums": Terms.spare(instruction) * each["sums"]} if sums else {}
    made = [_made(Terms(instruction, places, rng, number, datapath.steps), shape) for shape, number in each.items()]
    return with_random_bits(instruction, join(made), seed)


def _made(terms: Terms, shape: str) -> Batch:
    places = terms.four()
    SHAPES[shape](terms, places)
    batch = terms.encoded()
    if shape == "specials":
        return terms.specials_into(batch, places)
    if shape in ("heap", "remainders"):
        return terms.remainders_into(batch, *places[2:])
    if shape == "conjugates":
        return terms.conjugates_into(batch, *places[:2])
    if shape == "sums":
        return terms.sums_into(batch)
    if shape == "beside":
        return terms.halves_into(batch)
    return terms.ties_into(batch, places[0]) if shape == "ties" else batch
