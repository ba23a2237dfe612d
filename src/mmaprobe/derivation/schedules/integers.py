"""From a product of integers that can be asked to its schedule: zero points, rescaling, what saturates where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmaprobe.derivation.schedules.biases import with_biases
from mmaprobe.derivation.schedules.certificate import FieldNeighbour
from mmaprobe.derivation.schedules.f32_sums import F32Search, Rescaled
from mmaprobe.derivation.schedules.holding import Held, hold
from mmaprobe.derivation.schedules.integer_hypotheses import beside_sums, most_of, saturating, sum_hypotheses
from mmaprobe.derivation.schedules.rescaling import (
    ROWS,
    ScaleSearch,
    dialled_reach,
    given,
    reached,
    steps_of,
)
from mmaprobe.derivation.schedules.zero_points import (
    flat_zero_points,
    read_f32_zero_points,
    read_zero_points,
    words_of,
)
from mmaprobe.errors import UsageError
from mmaprobe.formats import integer_range, whole_codes, whole_numbers
from mmaprobe.models.gemm import Gemm
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.integer_sums import NARROW, IntegerSums, Rescale, ends
from mmaprobe.parameters.schedule import Schedule, Scope
from mmaprobe.probing.gemm.calls import Asked, ProductCalls
from mmaprobe.probing.gemm.integer_values import (
    INTEGER_FAMILIES,
    Whole,
    Zeros,
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
        read = read_zero_points(self._calls, shape) if d.kind == "integer" else None
        if read is not None:
            zeros, added = read
            lost = uncounted(self._calls, shape, zeros)
            if lost:
                self._found.wrong, self._found.why = True, [lost]
                return
            if d.bits > BYTE or adds_units(self._calls, shape, zeros):
                self._conclude([_plain(d.name, zeros, None, words_of(added))])
                return
        rules, zeros, why = self._rescaled()
        if not rules:
            self._found.why.append(why)
            return
        self._conclude([_plain("s32", zeros, rule, bias) for rule, bias in rules])

    def _rescaled(self) -> tuple[list[Rescaled], Zeros, str]:
        """Every way that the sums may become D, with biases of integers, and the zero points."""
        (m, n, k), calls, none = self._calls.product.shape, self._calls, (0, np.zeros(1, np.int64))
        if calls.d.is_float:
            zeros = read_f32_zero_points(calls, (m, n, SHORT)) or read_f32_zero_points(calls, (m, n, k))
            if zeros is None:
                return [], none, "D is no sum times a scale: no zero points explain it"
            f32 = F32Search(calls, n, k, zeros)
            rules = f32.find()
            self._asked += f32.asked
            return rules, zeros, "no scale, and no bias, were found that make D of f32 of few sums"
        zeros = flat_zero_points(calls, (m, n, k))
        if zeros is None:
            return [], none, "no zero points were found: D does not tell numbers of A or B apart"
        search = ScaleSearch(calls, n, k, zeros)
        rule, why = search.find()
        made = with_biases(search, rule, calls.d.name)
        self._asked += [Asked(*each) for each in search.asked]
        return [] if made is None else [made], zeros, why or "no bias and no arithmetic make D of every sum"

    def _conclude(self, plains: Sequence[IntegerSums]) -> None:
        """The sums that give every answer, a certificate, and whether they hold at shapes that were not asked."""
        found, calls = self._found, self._calls
        sums = self._sums(plains)
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
        if not all(self._gives(sums, call) for call in self._asked):
            found.why.append("calls that told its neighbours apart refute it, too")
            return
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

    def _sums(self, plains: Sequence[IntegerSums]) -> IntegerSums | None:
        """The plainest sums that give every answer, of calls at which the living ones differ."""
        (a, b, _), (_, _, k) = self._formats, self._calls.product.shape
        k, narrow = min(k, LANES), max(int(name[1:]) for name in self._formats[:2]) <= NARROW
        first = [self._ask(*self._draw(family, k)) for family in INTEGER_FAMILIES for _ in range(DRAWS)]
        first.sort(key=lambda call: len(np.unique(call.d)), reverse=True)
        inside = all(stays_inside(self._calls, each, k) for each in plains)
        tried: Iterable[IntegerSums] = (each for plain in plains for each in sum_hypotheses(a, b, plain))
        if narrow and not inside:
            tried = [other for each in tried for other in (each, *saturating(each))]
        living = [each for each in tried if all(self._gives(each, call) for call in first)]
        if narrow and inside:
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
        d, zeros = self._calls.d, zeros_of(sums)
        if sums.rescale is None or other.rescale is None or d.is_float or not beside_rule(sums, other):
            return False
        reach = dialled_reach(self._calls, k, zeros)
        for one, two in zip(column_rules(sums), column_rules(other), strict=True):
            first, second = column_steps(*one, d.name, reach), column_steps(*two, d.name, reach)
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


def _plain(fmt: str, zeros: Zeros, rescale: Rescale | None, bias: tuple[str, ...]) -> IntegerSums:
    return IntegerSums(fmt, zero_a=(str(zeros[0]),), zero_b=words_of(zeros[1]), bias=bias, rescale=rescale)


def zeros_of(sums: IntegerSums) -> Zeros:
    """The zero points of sums as numbers."""
    return int(sums.zero_a[0]), np.array([int(each) for each in sums.zero_b])


def beside_rule(sums: IntegerSums, other: IntegerSums) -> bool:
    """Whether two sums are rescaled, and differ in nothing but a bias and how they are."""
    return sums.rescale is not None and replace(other, rescale=sums.rescale, bias=sums.bias) == sums


def column_rules(sums: IntegerSums) -> list[tuple[Rescale, int]]:
    """How each column is rescaled, and its bias of integers; one where all are alike."""
    rule = sums.rescale
    assert rule is not None
    words = (rule.scale, rule.bias, sums.bias)
    count = max(len(each) for each in words)
    columns = zip(*(each * count if len(each) == 1 else each for each in words), strict=True)
    return [(replace(rule, scale=(scale,), bias=(bias,)), int(whole)) for scale, bias, whole in columns]


def column_steps(rule: Rescale, bias: int, d: str, reach: tuple[int, int]) -> Whole:
    """As ``steps_of``, of sums without the bias."""
    return steps_of(rule, d, (reach[0] + bias, reach[1] + bias)) - bias


def stays_inside(calls: ProductCalls, sums: IntegerSums, k: int) -> bool:
    """Whether no sum of K products leaves its format, and none with its bias."""
    low, high = reached(calls, k, zeros_of(sums))
    biases = [int(each) for each in sums.bias]
    least, most = ends(sums.format)
    return least <= min(low, low + min(biases)) and max(high, high + max(biases)) <= most


def beyond(a: str, b: str, sums: IntegerSums) -> tuple[int, int, int]:
    """A number of A, one of B, and the K from which the sum of their products leaves its format, and some lanes more:
    as many as are random at the end, twice."""
    x, most, groups = ends(a)[1], ends(b)[1], sums.groups
    y = most if groups is None else min(most, ends(groups.format)[1] // (groups.lanes * (x + sums.offset_a)))
    zero_a, zero_b = zeros_of(sums)
    product = max(1, int(abs((x - zero_a) * (max(y, 1) - zero_b)).max()))
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
    low, high = reached(calls, most_k, zeros_of(sums))
    inside = all(stays_inside(calls, each, most_k) for each in (sums, other))  # what wraps is another function
    if calls.d.kind == "integer" and inside and beside_rule(sums, other):
        pairs = list(zip(column_rules(sums), column_rules(other), strict=True))
        if all((column_steps(*x, calls.d.name, (low, high)) == column_steps(*y, calls.d.name, (low, high))).all()
               and at_least(*x, calls, low) == at_least(*y, calls, low) for x, y in pairs):  # fmt: skip
            return f"the same D of every sum from {low:,} to {high:,}, all that K up to {most_k} reaches"
    return ""


def at_least(rule: Rescale, bias: int, calls: ProductCalls, low: int) -> int:
    """D of the smallest sum."""
    return int(given(rule, np.array([low + bias]), calls.d.name)[0])


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
