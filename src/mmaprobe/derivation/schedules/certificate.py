"""For each field of a kernel, why its neighbouring values are wrong: an answer that refutes it, or why it is equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.orders import order_of
from mmaprobe.derivation.schedules.search import OrderRead, sampled
from mmaprobe.derivation.schedules.values import Formats, computed
from mmaprobe.errors import UsageError
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.groupings import root_encode
from mmaprobe.parameters.schedule import GemmKernel
from mmaprobe.probing.gemm.elements import EqualRows

PLACES = ("ranges", "join", "accumulators", "step")
"""Parts of a kernel whose fields have neighbours; a promotion is one where there is one."""
EVERY = 96
"""Largest K of those at all of which two orders are compared."""
EQUAL = {
    ("join", "start"): "no partial sum is -0, for it is added to +0, or accumulators start from +0 and no sum vanishes",
    ("accumulators", "start"): "the sum of the ranges starts from +0",
    ("accumulators", "join"): "there are less than three accumulators",
    ("accumulators", "run"): "there is one accumulator",
    ("accumulators", "block"): "there is one accumulator",
    ("accumulators", "rest"): "there is one accumulator",
    ("join", "order"): "there is one range",
    ("join", "format"): "there is one range, which is added to nothing before D rounds it",
    ("step", "by"): "every product of an element of A and one of B is exact",
    ("step", "beyond"): "every product of an element of A and one of B is exact",
    ("step", "filled"): "no sum is -0, for every accumulator starts from +0 and no sum vanishes, or +0 is added to it",
    ("ranges", "unit"): "no K is cut into halves",
}
"""Why a field may be without effect, where its kernel is such."""


@dataclass(frozen=True)
class FieldNeighbour:
    """A neighbouring value of a field, and ``refuted`` (with the answer), ``equal`` (with the reason) or ``open``."""

    field: str
    value: str
    verdict: str
    why: str


def certify(
    kernel: GemmKernel,
    readings: Sequence[OrderRead],
    asked: Sequence[EqualRows],
    mask: NDArray[np.bool_],
    formats: Formats,
) -> list[tuple[FieldNeighbour, GemmKernel]]:
    """The verdict on every neighbour of a kernel, and the neighbour."""
    found = []
    for place, name, value, other in neighbours(kernel, formats.sums):
        why = _by_sizes(other, readings) or _by_values(other, asked, mask, formats)
        reason = "" if why else without_effect(kernel, place, name, formats) or alike_order(kernel, other, readings)
        verdict = "refuted" if why else "equal" if reason else "open"
        found.append((FieldNeighbour(f"{place}.{name}", str(value), verdict, why or reason), other))
    return found


def answered(
    kernel: GemmKernel,
    readings: Sequence[OrderRead],
    asked: Sequence[EqualRows],
    mask: NDArray[np.bool_],
    formats: Formats,
) -> bool:
    """Whether a kernel gives every size and every value that was answered."""
    return not (_by_sizes(kernel, readings) or _by_values(kernel, asked, mask, formats))


def neighbours(kernel: GemmKernel, sums: Sequence[str] = ()) -> Iterator[tuple[str, str, Any, GemmKernel]]:
    """Every kernel with one field moved to a neighbouring value: part, field, value, kernel; ``sums`` are the formats
    that partial sums may have."""
    places = [*PLACES, *(["promotion"] if kernel.promotion is not None else [])]
    for place in places:
        record = getattr(kernel, place)
        for each in fields(record):
            for value in sums if each.name == "format" else _moved(record, each.name):
                try:
                    changed = replace(kernel, **{place: replace(record, **{each.name: value})})
                except UsageError:
                    continue
                if changed != kernel:
                    yield place, each.name, value, changed


def _moved(record: Any, name: str) -> list[Any]:
    value = getattr(record, name)
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return sorted({value - 1, value + 1, value // 2, value * 2} - {value, 0})
    if name in ("architecture", "primitive"):
        return []
    return [each for each in choices(record.__class__, name) if each not in (value, "c", "primitive")]


def _by_sizes(other: GemmKernel, readings: Sequence[OrderRead]) -> str:
    for reading in readings:
        pairs = reading.pairs
        told = order_of(other, reading.k).sizes(pairs.p, pairs.q)
        wrong = np.flatnonzero(told != pairs.size)
        if len(wrong):
            at = wrong[0]
            return (
                f"at K = {reading.k} lanes {pairs.p[at]} and {pairs.q[at]} meet in a sum of {pairs.size[at]}, "
                f"not of {told[at]}"
            )
    return ""


def _by_values(other: GemmKernel, asked: Sequence[EqualRows], mask: NDArray[np.bool_], formats: Formats) -> str:
    i, j = np.unravel_index(np.argmax(mask), mask.shape)
    for number, (each, value) in enumerate(zip(asked, computed(other, formats, asked), strict=True)):
        if value != (wanted := int(each.d[i, j])):
            return f"call {number + 1} of equal rows is {wanted:#x}, not {value:#x}"
    return ""


def alike_order(kernel: GemmKernel, other: GemmKernel, readings: Sequence[OrderRead]) -> str:
    """Why another order is none: it is the same at every K that was looked at."""
    if _beside_order(kernel) != _beside_order(other):
        return ""
    asked = sorted({reading.k for reading in readings})
    for k in [*range(2, EVERY + 1), *asked]:
        p, q = np.triu_indices(k, 1) if k <= EVERY else sampled(k, np.random.default_rng(k))
        if (order_of(kernel, k).sizes(p, q) != order_of(other, k).sizes(p, q)).any():
            return ""
    return f"the same order at every K up to {EVERY}, and at K = {', '.join(map(str, asked))}"


def _beside_order(kernel: GemmKernel) -> tuple[object, ...]:
    """What a kernel has besides its order."""
    own, join = kernel.accumulators, kernel.join
    return kernel.step, own.start, own.format, join.start, join.format, kernel.promotion and kernel.promotion.format


def without_effect(kernel: GemmKernel, place: str, name: str, formats: Formats) -> str:
    """Why a field has no effect in this kernel."""
    own = kernel.accumulators
    positive = own.start == "zero" and _never_minus_zero(kernel, formats)
    holds = {
        ("join", "start"): positive,
        ("accumulators", "start"): kernel.join.start == "zero",
        ("accumulators", "join"): own.count < 3,
        ("accumulators", "run"): own.count == 1,
        ("accumulators", "block"): own.count == 1,
        ("accumulators", "rest"): own.count == 1,
        ("join", "order"): kernel.ranges.cut == "whole",
        ("join", "format"): kernel.ranges.cut == "whole" and kernel.join.start == "first",
        ("step", "by"): formats.exact(own.format),
        ("step", "beyond"): formats.exact(own.format),
        ("step", "filled"): positive or kernel.join.start == "zero",
        ("ranges", "unit"): kernel.ranges.cut not in ("halve_last", "halve_short", "ceil_split"),
    }
    return EQUAL[place, name] if holds.get((place, name)) else ""


def _never_minus_zero(kernel: GemmKernel, formats: Formats) -> bool:
    """Whether no accumulator that starts from +0 leaves a partial sum of -0.

    A rounded addition to +0 is never -0; an fma is, of a negative product that vanishes.  One that is added to the
    first of several accumulators meets the +0 of the others.  Of exact products no sum vanishes that is not 0.  What is
    promoted is added to +0, and so is what is joined where no range is so long that the last accumulator has a step.
    """
    step, own, promotion = kernel.step, kernel.accumulators, kernel.promotion
    if promotion is not None and not promotion.scales:
        return True
    longest = kernel.ranges.length if kernel.ranges.cut in ("uniform", "residue_first") else None
    if own.block == 1 and longest is not None and not own.steps(own.count - 1, longest):
        return True
    if step.by == "primitive" and root_encode(step.datapath()).rounding == "RD":
        return False  # of which a sum of opposite numbers is -0
    rounded = step.by == "multiply_add" and (step.beyond == "alike" or (own.rest == "first" and own.count > 1))
    return rounded or formats.exact(own.format)
