"""Primitives applied one after the other along K, each on the result before it, as one datapath.

Conversions of C before the first and of D after the last are part of it:
an exact widening of C at the leaf ``c``, a rounding of D as the last conversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.errors import UsageError
from mmaprobe.parameters.composition import applied
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Operand, Special

WIDENINGS = {"HADD2.F32": ("f16", "f32")}
"""What converts C before the first primitive: from a format to one that holds all its values."""

NARROWINGS = {
    name: (Encode("f16"), Special(code=0x7FFF)) for name in ("F2F.F16.F32", "F2FP.PACK_AB", "F2FP.F16.F32.PACK_AB")
}
"""What converts D after the last primitive: to nearest even, subnormals kept, one NaN (PTX ISA, cvt)."""


def chain(primitives: Mapping[str, Datapath], way: Lowering) -> Datapath:
    """The datapath of a lowering without conversions: its primitives' steps, one after the other.

    The first primitive may take C in a format of its own; else all are one.
    UsageError where the steps of the parts do not follow one another as the
    steps of one datapath do (a last conversion, another C format in between,
    NaN priorities by lane).
    """
    first = primitives[way.applications[0].primitive]
    for step in way.applications:
        lanes = primitives[step.primitive].k
        if len(step.lanes) != lanes:
            raise UsageError(f"{way.instruction}: {step.primitive} has {lanes} lanes, not {len(step.lanes)}")
    if len(way.applications) == 1 and way.applications[0].lanes == tuple(range(first.k)):
        return first
    for later in {primitives[step.primitive] for step in way.applications[1:]} or {first}:
        if not follows_another(later) or replace(later, c=first.c, operand_c=first.operand_c) != first:
            raise UsageError(f"{way.instruction}: results of {way.primitives[0]} cannot be chained into its next use")
    order = tuple(step.lanes[lane] for step in way.applications for piece in first.steps for lane in piece)
    ascending = order == tuple(range(len(order)))
    return replace(first, k=len(order), step=first.step_length, order=None if ascending else order)


def follows_another(path: Datapath) -> bool:
    """Whether a datapath on the result of one like it is one of more steps.

    It has no last conversion, takes C as it is, and chooses no NaN by its lane.
    """
    by_lane = path.special.priority and path.special.nan != "local"
    return not (path.result or path.c != path.d or path.operand_c != Operand() or by_lane)


def repeated(path: Datapath, count: int) -> Datapath:
    """A datapath ``count`` times in a row, each on the result before it and on lanes of its own, as one; it must
    ``follows_another``."""
    lanes = tuple(start + lane for start in range(0, count * path.k, path.k) for step in path.steps for lane in step)
    ascending = lanes == tuple(range(len(lanes)))
    return replace(path, k=len(lanes), step=path.step_length, order=None if ascending else lanes)


def converted(whole: Datapath, way: Lowering, made: Instruction) -> Datapath:
    """A chain with the lowering's conversions of C and D around it; UsageError for one that is not known."""
    if way.convert_c:
        if WIDENINGS.get(way.convert_c) != (made.c, whole.c):
            raise UsageError(f"{made.id}: {way.convert_c} does not make {whole.c} of its C")
        wide = Exact((Accumulator(),), Encode(whole.c or whole.d))
        tree = applied(whole.tree, wide, tuple(range(whole.step_length)))
        whole = replace(whole, c=made.c, tree=tree)
    if way.convert_d:
        to, special = NARROWINGS.get(way.convert_d, (None, None))
        if to is None or to.format != made.d or special is None or not formats.get(whole.d).is_float:
            raise UsageError(f"{made.id}: {way.convert_d} does not make {made.d} of its result")
        if whole.result is not None or whole.special.nan != "canonical":
            raise UsageError(f"{made.id}: the result of {way.primitives[-1]} cannot be converted")
        whole = replace(whole, d=made.d, result=to, special=special)
    return whole
