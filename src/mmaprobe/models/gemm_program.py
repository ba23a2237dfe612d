"""A schedule's kernel for one K as operations on blocks of D: what ``csrc/cpu/kernels/gemm.hpp`` runs.

Blocks lie on a stack; sums of many are added as soon as they are there, so that the stack stays low.  Steps of f32 and
f64 are the processor's own, all others programs of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.models import engine
from mmaprobe.models.kernels import INTERPRETER, kernel
from mmaprobe.models.program import program
from mmaprobe.native_module import agree
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.chaining import follows_another, repeated
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Node,
    Overflow,
    Product,
    Products,
    Special,
)
from mmaprobe.parameters.epilogue import SUM, C, Compute, is_number
from mmaprobe.parameters.schedule import LONGEST, Dealt, GemmKernel, Schedule

OPERATIONS = (
    "CONSTANT", "LOAD", "CHAIN", "STEPS", "ADD", "MULTIPLY", "FMA", "FMA_ONTO", "MAXIMUM", "MINIMUM", "CONVERT",
    "AMAX", "DROP",
)  # fmt: skip
COLUMNS = (
    "operation", "program", "bytes", "code", "number", "propagates", "fresh", "product", "rounded", "first", "run",
    "stride", "skip", "count", "end", "size", "order",
)  # fmt: skip
EXTREMA = ("maximum", "minimum")
ABSENT = -1
"""Stands for no program, and for no order."""
LINKS = 64
"""Products that one program chains: as many as every kernel of the engine takes."""
TOGETHER = 256
"""Lanes of a primitive's steps that one program takes at most: as many as the engine's kernels of fused sums do."""
Writes = Callable[[], None]
"""What writes the operations that leave one value more on the stack."""
NUMBERS = {"f32": 4, "f64": 8}
"""Formats that the processor adds in, and their bytes."""

agree("gemm_layout", {"operations": list(OPERATIONS), "operation": list(COLUMNS)})


@dataclass
class GemmProgram:
    """Operations in order, the engine's programs that they name, and the order of a step's lanes.

    ``chained`` is the format of chains by the processor, where there are any.
    """

    rows: list[tuple[int, ...]] = field(default_factory=list)
    programs: list[NDArray[np.int64]] = field(default_factory=list)
    order: tuple[int, ...] = ()
    chained: str | None = None
    _numbers: dict[Datapath, int] = field(default_factory=dict)

    def write(self, operation: str, fmt: str, **columns: int) -> None:
        """One operation whose result is of this format."""
        unsaid = {"program": ABSENT, "order": ABSENT, "run": 1, "stride": 1, "size": 1}
        said = unsaid | columns | {"operation": OPERATIONS.index(operation), "bytes": _bytes(fmt)}
        self.rows.append(tuple(said.get(column, 0) for column in COLUMNS))

    def number(self, path: Datapath) -> int:
        """The number of a datapath's program."""
        if path not in self._numbers:
            words = program(path)
            if words is None:
                raise UsageError(f"gemm: a sum of {path.a} and {path.b} in {path.d}: {engine.refusal(path)}")
            self._numbers[path] = len(self.programs)
            self.programs.append(words)
        return self._numbers[path]

    def combine(self, operation: str, fmt: str, propagates: bool = True) -> None:
        """The topmost two (of an fma three) become one."""
        path = None if fmt in NUMBERS else _PROGRAMS[operation](fmt)
        code = 0 if path is None else formats.get(fmt).one
        number = ABSENT if path is None else self.number(path)
        self.write(operation, fmt, program=number, code=code, propagates=int(propagates))

    def add(self, fmt: str) -> None:
        """The topmost two become their sum."""
        self.combine("ADD", fmt)

    def convert(self, fmt: str, to: str, overflow: Overflow = "ieee") -> None:
        """The topmost, of one format, becomes one of another."""
        if fmt == to:
            return
        own = fmt in NUMBERS and to in NUMBERS and overflow == "ieee"
        code = 0 if own else formats.get(fmt).one
        path = rounded_product(fmt, fmt, to, overflow)
        self.write("CONVERT", to, program=ABSENT if own else self.number(path), code=code)

    def saturate(self, fmt: str, to: str) -> None:
        """The topmost, of one format, becomes one of another; an infinity, too, the largest number of that."""
        made = formats.get(to)
        if made.infinity_code is None:
            self.convert(fmt, to, "largest")
            return
        wide = "f64" if "f64" in (fmt, to) else "f32"
        self.convert(fmt, wide)
        most = float(np.ldexp(1 + made.max_fraction / (1 << made.fraction_bits), made.max_exponent))
        for operation, bound in (("MINIMUM", most), ("MAXIMUM", -most)):
            self.write("CONSTANT", wide, code=_code(bound, wide))
            self.combine(operation, wide)
        self.convert(wide, to, "largest")

    def zero(self, fmt: str) -> None:
        """One value more: +0."""
        self.write("CONSTANT", fmt)


def _bytes(fmt: str) -> int:
    return formats.get(fmt).container_bits // 8


def gemm_program(
    schedule: Schedule, made: GemmKernel, datapath: Datapath | None, k: int, there: Sequence[str] = ()
) -> GemmProgram:
    """The operations that make D of an area of one kernel, of K products; ``datapath`` is its primitive's.

    ``there``: the inputs that the call has, as ``LOAD`` numbers them, C among them by its name.
    """
    out = GemmProgram()
    held = {each.name: each.format for each in schedule.inputs} | ({C: schedule.c} if schedule.c else {})
    formats_of = {name: held[name] for name in there}
    tree = _Tree(schedule, _Kernel(schedule, made, datapath, formats_of, out), k, formats_of, out)
    last = schedule.epilogue[-1].name if schedule.epilogue else SUM
    if tree.is_empty(last):
        out.zero(schedule.d)
    elif not tree.is_there(last):
        raise UsageError("gemm: without C nothing of the epilogue is left to be D")
    else:
        tree.value(last, schedule.d)
    tree.sizes_beside_d()
    return out


@dataclass(frozen=True)
class _Tree:
    """Writes the epilogue: the operands of a node, then the node.

    What is not there (C, where the call has none; the sum of products, where K is 0 and it is not C) is left out: a
    product with it is not there either, a sum with it is the other term.  What lacks the sum of products is +0 in a
    maximum or minimum, and as D.
    """

    schedule: Schedule
    kernel: _Kernel
    k: int
    there: dict[str, str]
    out: GemmProgram

    def is_there(self, name: str) -> bool:
        """Whether anything is left of a value."""
        node = self._named(name)
        if node is None:
            of_c = self.kernel.made.join.start == "c" and C in self.there
            begins = self.k > 0 or of_c or not self.schedule.epilogue
            return name in self.there or (name == SUM and begins) or is_number(name)
        found = [self.is_there(each) for each in node.of]
        if node.operation == "fma":
            return (found[0] and found[1]) or found[2]
        if node.operation in EXTREMA:
            found += [self.is_empty(each) for each in node.of]
        return all(found) if node.operation in ("multiply", "convert") else any(found)

    def is_empty(self, name: str) -> bool:
        """Whether a value is not there for want of the sum of products."""
        node = self._named(name)
        lacks = name == SUM if node is None else any(map(self.is_empty, node.of))
        return lacks and not self.is_there(name)

    def _named(self, name: str) -> Compute | None:
        return next((node for node in self.schedule.epilogue if node.name == name), None)

    def value(self, name: str, to: str) -> None:
        """One value more on the stack, in this format."""
        node = self._named(name)
        if is_number(name):
            self.out.write("CONSTANT", to, code=_code(float(name), to))
            return
        if node is not None:
            self._node(node)
        elif name == SUM:
            self.kernel.sum(self.k)
        elif name == C:
            _load_scaled_c(self.schedule, self.there[C], list(self.there), self.out)
        else:
            self.out.write("LOAD", self.there[name], number=list(self.there).index(name))
        fmt = node.format if node else self.there.get(name, self.kernel.made.join.format)
        if name in self.schedule.amax:
            self.out.write("AMAX", fmt, number=self.schedule.amax.index(name), code=formats.get(fmt).sign_mask - 1)
        self.out.convert(fmt, to)

    def sizes_beside_d(self) -> None:
        """The sizes of values that are there and that D is not made of, since what they would be multiplied by is
        not."""
        written = {row[COLUMNS.index("number")] for row in self.out.rows if row[0] == OPERATIONS.index("AMAX")}
        for number, name in enumerate(self.schedule.amax):
            if number not in written and self.is_there(name) and not self.is_empty(name):
                self.value(name, self._format(name))
                self.out.write("DROP", self._format(name))

    def _node(self, node: Compute) -> None:
        left = [name for name in node.of if self.is_there(name)]
        if node.operation in EXTREMA:
            left = [name for name in node.of if self.is_there(name) or self.is_empty(name)]
        if node.operation == "fma" and not (self.is_there(node.of[0]) and self.is_there(node.of[1])):
            left = [node.of[2]]
        if node.operation == "convert":
            fmt = self._format(left[0])
            self.value(left[0], fmt)
            if node.overflow == "largest":
                self.out.saturate(fmt, node.format)
            else:
                self.out.convert(fmt, node.format)
            return
        for name in left:
            if self.is_empty(name):
                self.out.zero(node.format)
            else:
                self.value(name, node.format)
        if len(left) > 1:
            operation = "MULTIPLY" if node.operation == "fma" and len(left) == 2 else node.operation.upper()
            self.out.combine(operation, node.format, node.nan == "propagate")

    def _format(self, name: str) -> str:
        """The format that a value has of its own."""
        node = self._named(name)
        return node.format if node else self.there.get(name, self.kernel.made.join.format)


def _load_scaled_c(schedule: Schedule, fmt: str, there: list[str], out: GemmProgram) -> None:
    """One value more: C, times the input that it is scaled by."""
    out.write("LOAD", fmt, number=there.index(C))
    for scaling in schedule.scalings:
        if scaling.operand == "c":
            out.write("LOAD", fmt, number=there.index(scaling.by))
            out.combine("MULTIPLY", fmt)


def _code(value: float, fmt: str) -> int:
    """The code of a number in f32 or f64, as a signed word."""
    return int(np.float32(value).view(np.int32) if fmt == "f32" else np.float64(value).view(np.int64))


def _chained(out: GemmProgram, values: Iterable[Writes], fmt: str, begun: bool = False) -> None:
    """Each value added to the sum of those before it."""
    for write in values:
        write()
        if begun:
            out.add(fmt)
        begun = True


def _pairwise(out: GemmProgram, values: Iterable[Writes], fmt: str) -> None:
    """Values added two by two until one is left; one without a neighbour stays as it is."""
    count = 0
    for write in values:
        write()
        count += 1
        left = count
        while left % 2 == 0:
            out.add(fmt)
            left //= 2
    for _ in range(count.bit_count() - 1):
        out.add(fmt)


@dataclass(frozen=True)
class _Kernel:
    """Writes the sum of a kernel; it, every partial sum and accumulator is one value more on the stack."""

    schedule: Schedule
    made: GemmKernel
    datapath: Datapath | None
    there: dict[str, str]
    out: GemmProgram

    def sum(self, k: int) -> None:
        """The sum of K products in the format of partial sums, with C where no epilogue says what becomes of it."""
        out, to, start = self.out, self.made.join.format, self.made.join.start
        there, own = list(self.there), start == "c" or not self.schedule.epilogue
        c = there.index(C) if C in there and own else ABSENT
        if c != ABSENT and (start == "c" or not k):
            self._load_c(to)
        elif start == "zero" or not k:
            out.zero(to)
        begun = start == "zero" or (start == "c" and c != ABSENT)
        parts = (partial(self._range, lanes) for lanes in self.made.join.chained(self.made.ranges.of(k)))
        if self.made.join.order == "pairwise":
            _pairwise(out, parts, to)
            if begun and k:
                out.add(to)
        else:
            _chained(out, parts, to, begun)
        if c != ABSENT and start != "c" and k:
            self._load_c(to)
            out.add(to)

    def _load_c(self, to: str) -> None:
        fmt = self.schedule.c
        assert fmt is not None
        _load_scaled_c(self.schedule, fmt, list(self.there), self.out)
        self.out.convert(fmt, to)

    def _range(self, lanes: range) -> None:
        """The partial sum of a range, in the format of partial sums."""
        rule, promotion = self.made.accumulators, self.made.promotion
        held = promotion.format if promotion else rule.format
        steps = -(-len(lanes) // (self.datapath.k if self.datapath else 1))
        first, second = rule.terms()
        self._joined(first, steps, lanes, held)
        if rule.rest == "before":
            self._add_steps(rule.after(steps), lanes, False)
        if second:
            self._joined(second, steps, lanes, held)
            self.out.add(held)
        if rule.rest == "after":
            self._add_steps(rule.after(steps), lanes, False)
        if len(lanes) % self.made.step.filled:
            self.out.zero(held)
            self.out.add(held)
        self.out.convert(held, self.made.join.format)

    def _joined(self, numbers: Sequence[int], steps: int, lanes: range, held: str) -> None:
        """The sum of these accumulators of a range."""
        rule = self.made.accumulators
        values = (partial(self._accumulator, rule.steps(number, steps), lanes) for number in numbers)
        (_chained if rule.join == "chain" else _pairwise)(self.out, values, held)

    def _accumulator(self, steps: tuple[Dealt, ...], lanes: range) -> None:
        """What an accumulator holds after its steps; of a promoted one the second."""
        promotion, held = self.made.promotion, self.made.accumulators.format
        if promotion is None:
            self._chain(steps, lanes)
            return
        self.out.zero(promotion.format)
        for part in _every(steps, promotion.every):
            self._chain(part, lanes)
            self.out.convert(held, promotion.format)
            if not promotion.scales:
                self.out.add(promotion.format)
                continue
            for number, name in enumerate(promotion.scales):
                self._scale(name, part, lanes, promotion.format)
                if number:
                    self.out.combine("MULTIPLY", promotion.format)
            self.out.combine("FMA_ONTO", promotion.format)

    def _scale(self, name: str, steps: tuple[Dealt, ...], lanes: range, to: str) -> None:
        """What an input has for the elements, and for the group of K that the products of these steps lie in."""
        given = next(each for each in self.schedule.inputs if each.name == name)
        size = self.datapath.k if self.datapath else 1
        first = lanes.start + steps[0].of(0) * size
        last = min(lanes.start + (steps[-1].last() + 1) * size, lanes.stop) - 1
        group = {"a": given.columns, "b": given.rows}.get(given.shape, LONGEST)
        if first // group != last // group:
            raise UsageError(
                f"kernel {self.made.name}: products {first} to {last} are promoted at once, and {name} has a scale for "
                f"every {group} of K; they must lie in one group"
            )
        place = {"a": "skip", "b": "first"}.get(given.shape)
        further = {place: first // group} if place else {}
        self.out.write("LOAD", given.format, number=list(self.there).index(name), **further)
        self.out.convert(given.format, to)

    def _chain(self, steps: tuple[Dealt, ...], lanes: range) -> None:
        """An accumulator after these steps from its start."""
        to = self.made.accumulators.format
        product = self.made.accumulators.start == "product"
        fresh = bool(steps) and self.datapath is None and (product or _is_own(self.schedule, to))
        if not fresh:
            self.out.zero(to)
        for part in steps:
            self._add_steps(part, lanes, fresh, product)
            fresh = False

    def _add_steps(self, part: Dealt, lanes: range, fresh: bool, product: bool = False) -> None:
        """Steps onto the topmost value, or (``fresh``) in place of one."""
        if not part.count:
            return
        if self.datapath is None:
            self._products(part, lanes, fresh, product)
        else:
            self._steps(self.datapath, part, lanes)

    def _products(self, part: Dealt, lanes: range, fresh: bool, product: bool = False) -> None:
        """Products one by one, the first one (``product``) in place of an accumulator."""
        schedule, own, step = self.schedule, self.made.accumulators, self.made.step
        beyond = step.beyond != "alike" and part.first >= own.whole(len(lanes))
        to, rounded = own.format, (step.beyond if beyond else step.by) == "multiply_add"
        if _is_own(schedule, to):
            self.out.chained = to
            flags = {"fresh": int(fresh), "product": int(product), "rounded": int(rounded)}
            self.out.write("CHAIN", to, **flags, **_columns(part, lanes, 1))
            return
        if fresh:
            first, part = part.cut(1)
            number = self.out.number(rounded_product(schedule.a, schedule.b, to))
            self.out.write("STEPS", to, program=number, fresh=1, **_columns(first, lanes, 1))
        for some in _pieces(part, LINKS):
            path = (rounded_links if rounded else links)(schedule.a, schedule.b, to, some.count)
            self.out.write("STEPS", to, program=self.out.number(path), **_columns(some, lanes, 1))

    def _steps(self, path: Datapath, part: Dealt, lanes: range) -> None:
        """Steps of a primitive; of the last one of a range the products left one by one, where the kernel has it so."""
        size, left = path.k, None
        if self.made.tail == "scalar" and (part.last() + 1) * size > len(lanes):
            left = part.last() * size
            part = part.cut(part.count - 1)[0]
        self.out.order = self.made.step.order
        order = 0 if self.out.order else ABSENT
        for some in _pieces(part, together(path)):
            number = self.out.number(repeated(path, some.count) if some.count > 1 else path)
            columns = _columns(some, lanes, size)
            self.out.write("STEPS", path.d, program=number, size=size, order=order, **columns)
        if left is not None:
            self._products(Dealt(left, 1, 1, 0, len(lanes) - left), lanes, False)


def _columns(part: Dealt, lanes: range, size: int) -> dict[str, int]:
    """Where the products of steps of this size lie."""
    return {
        "first": lanes.start + part.first * size, "run": part.run * size, "stride": part.stride * size,
        "skip": part.skip * size, "count": part.count * size, "end": lanes.stop,
    }  # fmt: skip


def _pieces(part: Dealt, most: int) -> Iterator[Dealt]:
    while part.count:
        some, part = part.cut(min(part.count, most))
        yield some


def _every(steps: tuple[Dealt, ...], count: int) -> Iterator[tuple[Dealt, ...]]:
    """Steps, so many at a time."""
    held, room = list[Dealt](), count
    for part in steps:
        while part.count:
            some, part = part.cut(min(part.count, room))
            held.append(some)
            room -= some.count
            if not room:
                yield tuple(held)
                held, room = [], count
    if held:
        yield tuple(held)


@lru_cache(maxsize=256)
def together(path: Datapath) -> int:
    """How many steps of a primitive the engine takes at once as fast as one."""
    most = TOGETHER // path.k
    if most < 2 or not follows_another(path) or path.special.nan not in ("canonical", "local"):
        return 1
    number = kernel(path)
    return most if number != INTERPRETER and kernel(repeated(path, most)) == number else 1


def _is_own(schedule: Schedule, to: str) -> bool:
    """Whether products of the operands are added in this format by the processor: it holds every number of theirs."""
    return to in NUMBERS and _holds(to, schedule.a) and _holds(to, schedule.b)


def _holds(to: str, name: str) -> bool:
    if name in NUMBERS:
        return NUMBERS[name] <= NUMBERS[to]
    fmt, wide = formats.get(name), formats.get(to)
    least, wide_least = (each.min_exponent - each.fraction_bits for each in (fmt, wide))
    narrow = fmt.container_bits <= 16 and fmt.fraction_bits <= wide.fraction_bits
    return narrow and wide_least <= least and fmt.max_exponent <= wide.max_exponent


@lru_cache(maxsize=64)
def values_of(name: str, to: str) -> Bits | None:
    """The value of every code of a format in f32 or f64; None for those two, whose codes are values."""
    if name in NUMBERS:
        return None
    fmt = formats.get(name)
    codes = np.arange(1 << fmt.container_bits, dtype=np.uint32).astype(fmt.dtype)
    one = np.full((codes.size, 1), fmt.one, fmt.dtype)
    return engine.evaluate(rounded_product(name, name, to), Batch(a=codes.reshape(-1, 1), b=one))


def _nan(fmt: str) -> Special:
    """Every NaN is the quiet one of the format; a format without has no use for it."""
    code = formats.get(fmt).nan_code
    return Special() if code is None else Special(code=code)


@lru_cache(maxsize=256)
def links(a: str, b: str, to: str, count: int) -> Datapath:
    """So many fused multiply-adds in order."""
    return Datapath(a, b, to, to, count, Fma(Accumulator(), tuple(range(count)), Encode(to)), special=_nan(to))


@lru_cache(maxsize=256)
def rounded_links(a: str, b: str, to: str, count: int) -> Datapath:
    """So many rounded products in order, each added with a rounding."""
    tree: Node = Add(Accumulator(), Products((0,)), Encode(to))
    return Datapath(a, b, to, to, count, tree, step=1, product=Product(to=Encode(to)), special=_nan(to))


@lru_cache(maxsize=256)
def rounded_product(a: str, b: str, to: str, overflow: Overflow = "ieee") -> Datapath:
    """One product, rounded."""
    tree = Exact((Products((0,)),), Encode(to, overflow=overflow))
    return Datapath(a, b, None, to, 1, tree, special=_nan(to))


_PROGRAMS: dict[str, Callable[[str], Datapath]] = {
    "ADD": lambda fmt: links(fmt, fmt, fmt, 1),
    "FMA": lambda fmt: links(fmt, fmt, fmt, 1),
    "FMA_ONTO": lambda fmt: links(fmt, fmt, fmt, 1),
    "MULTIPLY": lambda fmt: rounded_product(fmt, fmt, fmt),
}
