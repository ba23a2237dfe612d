"""Products of an A of f32 that is quantised by its own ends: the product of integers within, then how A becomes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from mmaprobe.derivation.schedules.certificate import FieldNeighbour
from mmaprobe.derivation.schedules.holding import hold
from mmaprobe.derivation.schedules.integers import IntegerFinding, Scoping, identify_integers
from mmaprobe.devices.products import MatrixProduct
from mmaprobe.formats import get, whole_numbers
from mmaprobe.models.gemm import Gemm
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.integer_sums import ends
from mmaprobe.parameters.quantised import FORMATS, Quantised
from mmaprobe.parameters.schedule import Schedule, Scope
from mmaprobe.probing.gemm.calls import Asked, ProductCalls
from mmaprobe.probing.gemm.integer_values import INTEGER_FAMILIES, integer_operands

PINNED = 100
"""The zero point of a pinned A above the smallest number of its format."""
DRAWS = 4
"""Times that every family of an A of f32 is asked."""
SIDE = 16
"""Rows of these calls at most."""
LANES = 61
"""Lanes of these calls at most."""
FIELDS = ("of", "by", "rounding")
"""Fields of a way to quantise whose other values are refuted."""


@dataclass(frozen=True)
class PinnedProduct:
    """A product of an A of f32 as one of integers: two rows more, or lanes beside zeros of B, pin the ends of A, whose
    scale is then 1."""

    within: MatrixProduct
    rule: Quantised

    def __getattr__(self, name: str) -> object:
        if name in ("name", "b", "d", "shape", "version", "threads", "environment"):
            return getattr(self.within, name)
        raise AttributeError(name)

    @property
    def a(self) -> str:
        """Format that A becomes."""
        return self.rule.format

    @property
    def zero(self) -> int:
        """The zero point of every A."""
        return ends(self.rule.format)[0] + PINNED

    def multiply(self, a: Bits, b: Bits) -> Bits:
        """D (M, N) of A (M, K), codes of integers, and B (K, N)."""
        given, (least, most) = whole_numbers(get(self.a), a), ends(self.a)
        if self.rule.of == "matrix":
            given = np.vstack([given, np.full((1, a.shape[1]), least), np.full((1, a.shape[1]), most)])
        else:
            given = np.hstack([given, np.full((len(a), 1), least), np.full((len(a), 1), most)])
            b = np.vstack([b, np.zeros((2, b.shape[1]), b.dtype)])
        x = np.ascontiguousarray((given - self.zero).astype(np.float32).view(np.uint32))
        return np.ascontiguousarray(self.within.multiply(x, b)[: len(a)])


def identify_quantised(calls: ProductCalls, scope: Scoping, rng: np.random.Generator) -> IntegerFinding:
    """The first format and ends by which an exact product of integers is within that gives every answer."""
    first: IntegerFinding | None = None
    for fmt, of in product(FORMATS, choices(Quantised, "of")):
        pinned = PinnedProduct(calls.product, Quantised(fmt, of))
        inner = ProductCalls(pinned, calls.budget - calls.count)  # type: ignore[arg-type]
        found = identify_integers(inner, scope, rng)
        calls.count += inner.count
        first = first or found
        if found.schedule is None or found.schedule.integers is None:
            continue
        if found.schedule.integers.zero_a != (str(pinned.zero),):
            continue
        return _quantised(calls, found, pinned.rule, rng)
    assert first is not None
    first.why.append("no product of integers is within whose A is quantised by its ends")
    return first


def _quantised(calls: ProductCalls, found: IntegerFinding, rule: Quantised, rng: np.random.Generator) -> IntegerFinding:
    """What was found of integers, with the way to quantise that gives every answer of A of f32."""
    inner, (m, n, k) = found.schedule, calls.product.shape
    assert inner is not None
    found.schedule, asked = None, list[Asked]()
    for family in INTEGER_FAMILIES * DRAWS:
        a, b = integer_operands(calls, family, (min(m, SIDE), n, min(k, LANES)), rng)
        asked.append(Asked(a, b, calls.ask(a, b)))
    ways = product(choices(Quantised, "by"), choices(Quantised, "rounding"))
    tried = [replace(rule, by=by, rounding=rounding) for by, rounding in ways]
    living = [each for each in tried if not _refuting(_made(inner, each), asked)]
    if not living:
        found.why.append("no way to quantise A that was tried gives every answer")
        return found
    made = _made(inner, living[0])
    found.held = hold(calls, made, (1, 1, 1), rng)
    wrong = [each for each in found.held if each.differ]
    if wrong:
        found.why.append(f"it does not hold: {wrong[0]}")
        return found
    found.neighbours = [each for each in found.neighbours if each.field != "zero_a"]
    for name in FIELDS:
        for value in choices(Quantised, name):
            if value == getattr(living[0], name):
                continue
            number = _refuting(_made(inner, replace(living[0], **{name: value})), asked)
            verdict = FieldNeighbour(f"quantised.{name}", value, "open", "")
            if number:
                why = f"call {number} of those of A of f32 answers otherwise"
                verdict = replace(verdict, verdict="refuted", why=why)
            else:
                found.why.append(f"quantised.{name} = {value} was not told apart")
            found.neighbours.append(verdict)
    found.schedule = replace(made, scope=inner.scope)
    return found


def _made(inner: Schedule, rule: Quantised) -> Schedule:
    """The schedule of the product whose A is quantised, of that of integers."""
    assert inner.integers is not None
    sums = replace(inner.integers, zero_a=("0",), quantised=rule)
    return replace(
        inner, a="f32", integers=sums, scope=Scope("any", least_n=inner.scope.least_n, most_n=inner.scope.most_n)
    )


def _refuting(made: Schedule, asked: list[Asked]) -> int:
    """The number of a call that a schedule does not answer; 0: there is none."""
    made = replace(made, scope=Scope("any"))
    for number, call in enumerate(asked):
        if (Gemm(made).run(call.a[None], call.b[None])[0] != call.d).any():
            return number + 1
    return 0
