"""From a product of integers that can be asked to its schedule: zero points, rescaling, what saturates where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmaprobe.derivation.schedules.certificate import FieldNeighbour
from mmaprobe.derivation.schedules.holding import Held, hold
from mmaprobe.derivation.schedules.integer_hypotheses import beside_sums, most_of, saturating, sum_hypotheses
from mmaprobe.derivation.schedules.rescaling import (
    ROWS,
    ScaleSearch,
    dialled_reach,
    f32_scales,
    given,
    reached,
    steps_of,
)
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format, integer_range, whole_codes, whole_numbers
from mmaprobe.models.gemm import Gemm
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.integer_sums import NARROW, IntegerSums, Rescale, ends
from mmaprobe.parameters.schedule import Schedule, Scope
from mmaprobe.probing.gemm.calls import Asked, ProductCalls
from mmaprobe.probing.gemm.integer_values import (
    INTEGER_FAMILIES,
    adds_units,
    check_integers,
    constant,
    dialled,
    integer_operands,
    uncounted,
)

SIDE = 24
"""Rows of a call by which sums are told apart."""
LANES = 97
"""Lanes of most of these calls."""
DRAWS = 3
"""Times that every family is asked."""
TRIED = 48
"""Operands of each family that are drawn to tell two sums apart before they are taken to be alike."""
LONG = 1 << 18
"""Largest K that is asked so that a sum leaves its format."""
TURN = 64
"""Lanes after the sum has left its format, of random numbers."""
PART = (slice(0, 3), slice(0, 6))
"""Rows and columns of D by which most sums are told apart first."""
SHORT = 4
"""K at which sums of f32 are small enough to be read off D."""
BYTE = 8
"""Bits of a D that may be the sum or rescaled."""
MOST_TOLD = 8
"""Sums that are told from the first in one search for operands."""
ANY = Scope("any")
Scoping = Callable[[Sequence[tuple[int, int, int]], int], Scope]
"""What makes a scope of the shapes that were asked and the number of those that were held."""


@dataclass
class IntegerFinding:
    """What was found of a product of integers, as an ``Identification`` says it."""

    wrong: bool = False
    schedule: Schedule | None = None
    neighbours: list[FieldNeighbour] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        """Whether nothing is open."""
        return self.schedule is not None and all(each.verdict != "open" for each in self.neighbours)


def identify_integers(calls: ProductCalls, scope: Scoping, rng: np.random.Generator) -> IntegerFinding:
    """Zero points first, then the rescaling, then what saturates."""
    found = IntegerFinding()
    leak, same = check_integers(calls, calls.product.shape, rng), constant(calls, calls.product.shape, rng)
    if leak or same:
        found.wrong = bool(leak) or calls.d.bits > BYTE  # a D of few bits may be clamped wherever it was asked
        found.why = [leak or same]
        return found
    _IntegerSearch(calls, found, rng, scope).run()
    return found


class _IntegerSearch:
    """One identification under way."""

    def __init__(self, calls: ProductCalls, found: IntegerFinding, rng: np.random.Generator, scope: Scoping) -> None:
        self._calls, self._found, self._rng, self._scope = calls, found, rng, scope
        self._asked = list[Asked]()
        self._formats = calls.a.name, calls.b.name, calls.d.name

    def run(self) -> None:
        """All stages; what stops one is said in ``why``."""
        shape, d = self._calls.product.shape, self._calls.d
        zeros = read_zero_points(self._calls, shape)
        if d.kind == "integer" and zeros is not None:
            lost = uncounted(self._calls, shape, zeros)
            if lost:
                self._found.wrong, self._found.why = True, [lost]
                return
            if d.bits > BYTE or adds_units(self._calls, shape, zeros):
                self._conclude(_plain(d.name, zeros, None))
                return
        rescale, zeros, why = self._rescale()
        if rescale is None:
            self._found.why.append(why)
            return
        self._conclude(_plain("s32", zeros, rescale))

    def _rescale(self) -> tuple[Rescale | None, tuple[int, int], str]:
        """How the sums become D, and the zero points."""
        (m, n, k), calls = self._calls.product.shape, self._calls
        if calls.d.is_float:
            zeros = read_f32_zero_points(calls, (m, n, SHORT)) or read_f32_zero_points(calls, (m, n, k))
            if zeros is None:
                return None, (0, 0), "D is no sum times a scale: no zero points explain it"
            return (*_second(f32_scales(calls, n, k, zeros), zeros),)
        zeros = flat_zero_points(calls, (m, n, k))
        if zeros is None:
            return None, (0, 0), "no zero points were found: D does not tell numbers of A or B apart"
        search = ScaleSearch(calls, n, k, zeros)
        rule, why = search.find()
        self._asked += [Asked(*each) for each in search.asked]
        return rule, zeros, why

    def _conclude(self, plain: IntegerSums) -> None:
        """The sums that give every answer, a certificate, and whether they hold at shapes that were not asked."""
        found, calls = self._found, self._calls
        sums = self._sums(plain)
        if sums is None:
            found.why.append("no way to add that was tried gives every answer")
            found.why += saturating_lanes(calls, calls.product.shape)
            return
        schedule = self._schedule(sums, Scope("unknown"))
        found.held = hold(calls, schedule, (1, 1, 1), self._rng)
        wrong = [each for each in found.held if each.differ]
        if wrong:
            found.why.append(f"it does not hold: {wrong[0]}")
            return
        shapes = [each.shape for each in found.held] + [calls.product.shape]
        shapes += [(*each.d.shape, each.a.shape[1]) for each in self._asked]
        scope = self._scope(shapes, len({each.shape for each in found.held}))
        if sums.columns() is not None:
            scope = replace(scope, least_n=calls.product.shape[1], most_n=calls.product.shape[1])
        found.neighbours = [
            self._verdict(sums, *each, scope.most_k) for each in beside_sums(sums) if self._fits(each[2])
        ]
        found.schedule = self._schedule(sums, scope)
        found.why += [f"{each.field} = {each.value} was not told apart" for each in found.neighbours
                      if each.verdict == "open"]  # fmt: skip

    def _fits(self, sums: IntegerSums) -> bool:
        """Whether the record takes them with these formats."""
        try:
            self._schedule(sums)
        except UsageError:
            return False
        return True

    def _schedule(self, sums: IntegerSums, scope: Scope = ANY) -> Schedule:
        a, b, d = self._formats
        return Schedule(a, b, d, scope, integers=sums)

    def _ask(self, a: Bits, b: Bits) -> Asked:
        call = Asked(a, b, self._calls.ask(a, b))
        self._asked.append(call)
        return call

    def _draw(self, family: str, k: int) -> tuple[Bits, Bits]:
        m, n, _ = self._calls.product.shape
        return integer_operands(self._calls, family, (min(m, SIDE), n, k), self._rng)

    def _gives(self, sums: IntegerSums, call: Asked) -> bool:
        """Whether sums give every element of a call; a few first."""
        return all((self._d(sums, call, part) == call.d[part]).all() for part in (PART, (slice(None), slice(None))))

    def _d(self, sums: IntegerSums, call: Asked, part: tuple[slice, slice]) -> Bits:
        d: Bits = Gemm(self._schedule(sums)).run(call.a[None], call.b[None], rows=part[0], columns=part[1])[0]
        return d

    def _sums(self, plain: IntegerSums) -> IntegerSums | None:
        """The plainest sums that give every answer, of calls at which the living ones differ."""
        (a, b, _), (_, _, k) = self._formats, self._calls.product.shape
        k, narrow = min(k, LANES), max(int(name[1:]) for name in self._formats[:2]) <= NARROW
        first = [self._ask(*self._draw(family, k)) for family in INTEGER_FAMILIES for _ in range(DRAWS)]
        first.sort(key=lambda call: len(np.unique(call.d)), reverse=True)
        tried: Iterable[IntegerSums] = sum_hypotheses(a, b, plain)
        if narrow and not stays_inside(self._calls, plain, k):
            tried = [other for each in tried for other in (each, *saturating(each))]
        living = [each for each in tried if all(self._gives(each, call) for call in first)]
        if narrow and stays_inside(self._calls, plain, k):
            living = [other for each in living for other in (each, *saturating(each))]
        living = self._reach_far(living)
        for _ in range(DRAWS):
            living = [each for each in living if all(self._gives(each, call) for call in self._asked[-DRAWS:])]
            if len(living) < 2 or not self._tell(living[0], living[1:]):
                break
        return living[0] if living else None

    def _tell(self, one: IntegerSums, others: Sequence[IntegerSums]) -> bool:
        """Ask what the first sums and another answer differently; whether anything was found."""
        k = max(min(self._calls.product.shape[2], LANES), 2 * max(each.block for each in (one, *others)))
        for number in range(TRIED):
            a, b = self._draw(INTEGER_FAMILIES[number % len(INTEGER_FAMILIES)], max(1, k - number % 4))
            call = Asked(a, b, a[:, :0])
            own = self._d(one, call, PART)
            if any((self._d(other, call, PART) != own).any() for other in others[:MOST_TOLD]):
                return self._asks(a, b)
        return False

    def _asks(self, a: Bits, b: Bits) -> bool:
        """Whether the product has the shape of a call, which is made."""
        try:
            self._ask(a, b)
        except UsageError:
            return False
        return True

    def _dial(self, sums: IntegerSums, other: IntegerSums, k: int) -> bool:
        """Ask a sum that another rescaling answers otherwise; whether there is one."""
        one, two, d = sums.rescale, other.rescale, self._calls.d
        zeros = int(sums.zero_a[0]), int(sums.zero_b[0])
        if one is None or two is None or d.is_float or replace(other, rescale=one) != sums:
            return False
        for x, y in zip(one.scale, two.scale, strict=True):
            reach = dialled_reach(self._calls, k, zeros)
            first, second = (
                steps_of(replace(rule, scale=(word,)), d.name, reach) for rule, word in ((one, x), (two, y))
            )
            differ = np.minimum(first, second)[first != second]
            if len(differ):
                a, b, good = dialled(self._calls, differ[:ROWS], (self._calls.product.shape[1], k), zeros)
                return bool(good.any()) and self._asks(a, b)
        return False

    def _reach_far(self, living: list[IntegerSums]) -> list[IntegerSums]:
        """Ask sums outside of their format, where so many lanes can be asked; one that wraps there does so always."""
        wraps = [each for each in living if each.overflow == "wrap"]
        if len(wraps) in (0, len(living)):
            return living
        x, y, k = beyond(*self._formats[:2], wraps[0])
        n = self._calls.product.shape[1] if wraps[0].columns() is not None else 2
        if k > LONG or wraps[0].rescale is not None:
            return living
        a, b = np.full((2, k), x), np.full((k, n), y)
        for each, fmt in ((a[:, -TURN:], self._calls.a), (b[-TURN:], self._calls.b)):
            each[:] = self._rng.integers(*integer_range(fmt), each.shape, endpoint=True)
        try:
            call = self._ask(whole_codes(self._calls.a, a), whole_codes(self._calls.b, b))
        except UsageError:
            return living  # the product has no such shape
        left = [each for each in wraps if self._gives(each, call)]
        return left or [each for each in living if each.overflow == "saturate" and self._gives(each, call)]

    def _verdict(self, sums: IntegerSums, path: str, value: str, other: IntegerSums, most_k: int) -> FieldNeighbour:
        """Whether an answer refutes a neighbour, one that is looked for where none does, or why it is equal."""
        number = self._refuting(other)
        if not number and (self._dial(sums, other, most_k) or self._tell(sums, [other])):
            number = self._refuting(other)
        if number:
            return FieldNeighbour(path, value, "refuted", f"call {number} of those of sums answers otherwise")
        why = equal_sums(self._calls, sums, other, most_k)
        return FieldNeighbour(path, value, "equal" if why else "open", why)

    def _refuting(self, other: IntegerSums) -> int:
        """The number of a call that other sums do not answer; 0: there is none."""
        for number, call in enumerate(self._asked):
            try:
                if not self._gives(other, call):
                    return number + 1
            except UsageError:
                return 0
        return 0


def _plain(fmt: str, zeros: tuple[int, int], rescale: Rescale | None) -> IntegerSums:
    return IntegerSums(fmt, zero_a=(str(zeros[0]),), zero_b=(str(zeros[1]),), rescale=rescale)


def _second(found: tuple[Rescale | None, str], zeros: tuple[int, int]) -> tuple[Rescale | None, tuple[int, int], str]:
    return found[0], zeros, found[1]


def stays_inside(calls: ProductCalls, sums: IntegerSums, k: int) -> bool:
    """Whether no sum of K products leaves its format."""
    low, high = reached(calls, k, (int(sums.zero_a[0]), int(sums.zero_b[0])))
    return ends(sums.format)[0] <= low and high <= ends(sums.format)[1]


def beyond(a: str, b: str, sums: IntegerSums) -> tuple[int, int, int]:
    """A number of A, one of B, and the K from which the sum of their products leaves its format, and some lanes more:
    as many as are random at the end, twice."""
    x, most, groups = ends(a)[1], ends(b)[1], sums.groups
    y = most if groups is None else min(most, ends(groups.format)[1] // (groups.lanes * (x + sums.offset_a)))
    product = max(1, abs((x - int(sums.zero_a[0])) * (max(y, 1) - int(sums.zero_b[0]))))
    return x, max(y, 1), ends(sums.format)[1] // product + 2 * TURN


def equal_sums(calls: ProductCalls, sums: IntegerSums, other: IntegerSums, most_k: int) -> str:
    """Why two sums that differ in a field give the same bits of every product up to this K; empty: not shown."""
    same = replace(other, overflow="wrap", every=0) == replace(sums, overflow="wrap", every=0)
    if same and stays_inside(calls, sums, most_k):
        return f"no sum of K up to {most_k} leaves {sums.format}"
    groups = [each.groups for each in (sums, other) if each.groups is not None]
    plain = [replace(each, groups=None, offset_a=0, offset_b=0, zeros="before") for each in (sums, other)
             if not each.every]  # fmt: skip
    fits = all(each.lanes * most_of(calls.a.name, calls.b.name, sums) <= ends(each.format)[1] for each in groups)
    if groups and len(plain) == 2 and plain[0] == plain[1] and fits:
        return "no group's sum leaves its format"
    low, high = reached(calls, most_k, (int(sums.zero_a[0]), int(sums.zero_b[0])))
    if sums.rescale and other.rescale and replace(other, rescale=sums.rescale) == sums and calls.d.name != "f32":
        pairs = [(replace(sums.rescale, scale=(x,)), replace(other.rescale, scale=(y,)))
                 for x, y in zip(sums.rescale.scale, other.rescale.scale, strict=True)]  # fmt: skip
        if all((steps_of(x, calls.d.name, (low, high)) == steps_of(y, calls.d.name, (low, high))).all()
               and at_least(x, calls, low) == at_least(y, calls, low) for x, y in pairs):  # fmt: skip
            return f"the same D of every sum from {low:,} to {high:,}, all that K up to {most_k} reaches"
    return ""


def at_least(rule: Rescale, calls: ProductCalls, low: int) -> int:
    """D of the smallest sum."""
    return int(given(rule, np.array([low]), calls.d.name)[0])


def read_zero_points(calls: ProductCalls, shape: tuple[int, int, int]) -> tuple[int, int] | None:
    """Those of A and B where D is the sum: by what a 1 on one lane of the other operand takes off zeros."""
    d = [
        int(whole_numbers(calls.d, each)[0, 0]) if (each == each[0, 0]).all() else None for each in _units(calls, shape)
    ]
    if None in d:
        return None
    none, in_a, in_b = (each for each in d if each is not None)
    found = [_in_range(none - each, fmt, calls.d.bits) for each, fmt in ((in_b, calls.a), (in_a, calls.b))]
    return None if None in found else (found[0] or 0, found[1] or 0)


def _in_range(value: int, fmt: Format, bits: int) -> int | None:
    """A number that is known up to 2^bits as one of a format."""
    low, high = integer_range(fmt)
    found = (value - low) % (1 << bits) + low
    return found if found <= high else None


def read_f32_zero_points(calls: ProductCalls, shape: tuple[int, int, int]) -> tuple[int, int] | None:
    """The same where D is the sum times a scale, which a 1 on one lane of both operands shows."""
    try:
        d = [each.view(np.float32).astype(np.float64)[0, 0] for each in _units(calls, shape, both=True)]
    except UsageError:
        return None
    none, in_a, in_b, both = d
    scale = both - in_a - in_b + none
    if not np.isfinite(scale) or scale <= 0:
        return None
    found = [round(float((none - each) / scale)) for each in (in_b, in_a)]
    inside = all(
        low <= each <= high for each, (low, high) in zip(found, map(integer_range, (calls.a, calls.b)), strict=True)
    )
    return (found[0], found[1]) if inside else None


def _units(calls: ProductCalls, shape: tuple[int, int, int], both: bool = False) -> list[Bits]:
    """D of zeros, of a 1 on the first lane of A, of one of B, and (``both``) of both."""
    m, n, k = shape
    found = []
    for x, y in ((0, 0), (1, 0), (0, 1), (1, 1))[: 4 if both else 3]:
        a, b = np.zeros((m, k), np.int64), np.zeros((k, n), np.int64)
        a[:, 0], b[0] = x, y
        found.append(calls.ask(whole_codes(calls.a, a), whole_codes(calls.b, b)))
    return found


def flat_zero_points(calls: ProductCalls, shape: tuple[int, int, int]) -> tuple[int, int] | None:
    """Those of A and B where D has few bits: the number, in all lanes, beside which the other operand does nothing."""
    (m, n, k), found = shape, list[int]()
    for left, own, other, length, width in ((True, calls.a, calls.b, m, n), (False, calls.b, calls.a, n, m)):
        low, high = integer_range(own)
        flat = []
        for start in range(low, high + 1, length):
            values = np.minimum(np.arange(start, start + length), high)
            x = whole_codes(own, np.broadcast_to(values[:, None], (length, k)))
            far = np.resize(integer_range(other), width)
            y = whole_codes(other, np.broadcast_to(far[None], (k, width)))
            d = calls.ask(x, y) if left else calls.ask(np.ascontiguousarray(y.T), np.ascontiguousarray(x.T)).T
            flat += values[(d == d[:, :1]).all(1)].tolist()
        some = sorted(set(flat))
        if not some or len(some) == high - low + 1:
            return None
        edge = some[-1] if some[0] == low else some[0] if some[-1] == high else 0 if 0 in some else some[0]
        found.append(some[0] if len(some) == 1 else edge)
    return found[0], found[1]


def saturating_lanes(calls: ProductCalls, shape: tuple[int, int, int]) -> list[str]:
    """Which lanes' products of the largest numbers, beside that of lane 0, are not added exactly; where D is a sum."""
    if calls.d.bits <= 2 * BYTE or calls.d.is_float:
        return []
    (_, n, k), high = shape, (integer_range(calls.a)[1], integer_range(calls.b)[1])
    lanes = np.arange(1, min(k, LANES))
    a = np.zeros((len(lanes), k), np.int64)
    a[:, 0] = high[0]
    a[np.arange(len(lanes)), lanes] = high[0]
    d = whole_numbers(calls.d, calls.ask(whole_codes(calls.a, a), whole_codes(calls.b, np.full((k, n), high[1]))))[:, 0]
    lost = lanes[d != 2 * high[0] * high[1]]
    if not len(lost):
        return []
    return [
        f"the largest products of lane 0 and of lane {', '.join(map(str, lost[:8].tolist()))} are not added exactly"
    ]
