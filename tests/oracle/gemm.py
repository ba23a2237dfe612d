"""A matrix product by a schedule, one element at a time, on Fractions (``docs/gemm.md``).

The schedule is a dict of the TOML form.  Every rule is written down again, place by place: which kernel an element has,
which range and accumulator a k goes to; sums are the oracle's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from oracle.interpreter import evaluate, lanes_in
from oracle.numbers import encode_value, nan_code, spec

Table = Mapping[str, Any]


def lengths_in(text: str) -> list[int]:
    return lanes_in(text) if text else []


def starts(rule: Table, k: int) -> list[int]:
    """Where the ranges of K begin, and K."""
    cut, length, unit = rule.get("cut", "whole"), rule.get("length", k), rule.get("unit", 1)
    found = [0]
    if cut == "given":
        for each in lengths_in(rule["lengths"]):
            found.append(found[-1] + each)
        return found
    if cut == "ceil_split":
        length = max(1, (k + rule["parts"] - 1) // rule["parts"])
        while length % unit:
            length += 1
    if cut == "residue_first" and k % length:
        found.append(k % length)
    while found[-1] < k:
        left = k - found[-1]
        step = length
        of = {"halve_last": left, "halve_short": k}.get(cut, 0)
        if length < of < 2 * length:
            half, by = rule.get("half", "down"), -1 if rule.get("half") == "below" else 1
            step = of // 2 + (of % 2 if half == "up" else 0)
            while step % unit or not step:
                step += by if step > 0 else unit
        found.append(min(found[-1] + step, k))
    return found


def shared(rule: Table, at: tuple[int, int], sides: tuple[int, int], k: int) -> list[int]:
    """Where workers cut the K of one element's tile, unit of work by unit: the lengths."""
    tile, workers, high = lengths_in(rule["tile"]), rule["workers"], rule.get("group", 1)
    turned = rule.get("groups_of") == "columns"
    tiles = [(sides[axis] + tile[axis] - 1) // tile[axis] for axis in range(2)]
    along, across = tiles[::-1] if turned else tiles
    visits = [
        (i, j) for first in range(0, along, high) for j in range(across) for i in range(first, min(first + high, along))
    ]
    own = (at[0] // tile[0], at[1] // tile[1])
    visit, units = visits.index(own[::-1] if turned else own), (k + tile[2] - 1) // tile[2]
    every = units * len(visits)
    whose = [max(w for w in range(workers) if w * every // workers <= visit * units + unit) for unit in range(units)]
    found: list[int] = []
    for unit, worker in enumerate(whose):
        length = min(tile[2], k - unit * tile[2])
        if unit and whose[unit - 1] == worker:
            found[-1] += length
        else:
            found.append(length)
    return found


def is_in(rule: Table, place: int, length: int) -> bool:
    """Whether one place of an axis is chosen."""
    borders = starts(rule.get("blocks", {}), length)
    block = max(i for i, start in enumerate(borders) if start <= place)
    if rule.get("of_blocks") == "first" and block:
        return False
    at, left = place - borders[block], borders[block + 1] - borders[block]
    if left < rule.get("least", 0) or left > rule.get("most", left):
        return False
    lead, pieces = lengths_in(rule.get("lead", "")), lengths_in(rule.get("pieces", ""))
    if not lead + pieces:
        return True
    take, places = lengths_in(rule.get("take", "")), lengths_in(rule.get("places", ""))
    for number, size in enumerate(lead + pieces):
        used = False
        while size <= left and not (used and number < len(lead)):
            if at < size:
                return (not take or number in take) and (not places or at in places)
            at, left, used = at - size, left - size, True
    return False


def kernel_of(schedule: Table, i: int, j: int, m: int, n: int, k: int) -> Table | None:
    """The kernel of an element, what workers share of its K written out; None where no region has it, or two."""
    found = [
        region["kernel"]
        for region in schedule["regions"]
        if not region.get("rest") and is_in(region.get("rows", {}), i, m) and is_in(region.get("columns", {}), j, n)
    ] or [region["kernel"] for region in schedule["regions"] if region.get("rest")]
    if len(found) != 1:
        return None
    kernel = next(kernel for kernel in schedule["kernels"] if kernel["name"] == found[0])
    if kernel["ranges"].get("cut") != "stream_k":
        return kernel
    lengths = shared(kernel["ranges"], (i, j), (m, n), k)
    return {**kernel, "ranges": {"cut": "given", "lengths": ",".join(map(str, lengths))}}


def _special(fmt: str) -> Table:
    """Every NaN of a format is its quiet one, of IEEE's layout the exponent all ones and the first fraction bit."""
    f = spec(fmt)
    quiet = ((1 << f.exponent + 1) - 1) << f.fraction - 1
    return {"special": {"code": quiet if f.specials == "ieee" else nan_code(fmt)}}


def fma(a: tuple[str, int], b: tuple[str, int], c: int, to: str) -> int:
    tree = {"node": "fma", "acc": "c", "lanes": "0", "to": {"format": to}}
    path = {"a": a[0], "b": b[0], "c": to, "d": to, "k": 1, "tree": tree, **_special(to)}
    return evaluate(path, [a[1]], [b[1]], c)


def product(a: tuple[str, int], b: tuple[str, int], to: str) -> int:
    tree = {"node": "exact", "terms": ["0"], "to": {"format": to}}
    path = {"a": a[0], "b": b[0], "c": "none", "d": to, "k": 1, "tree": tree, **_special(to)}
    return evaluate(path, [a[1]], [b[1]], None)


def one(fmt: str) -> tuple[str, int]:
    return fmt, encode_value(fmt, Fraction(1), False, "RNE")


def add(x: int, y: int, fmt: str) -> int:
    return fma((fmt, x), one(fmt), y, fmt)


def convert(x: int, fmt: str, to: str) -> int:
    return x if fmt == to else product((fmt, x), one(fmt), to)


def neighbours(sums: list[int], fmt: str) -> int:
    while len(sums) > 1:
        rest = [sums[-1]] if len(sums) % 2 else []
        sums = [add(sums[i], sums[i + 1], fmt) for i in range(0, len(sums) - 1, 2)] + rest
    return sums[0]


class Element:
    """One element: its row of A, its column of B, its kernel, and the datapath of the kernel's primitive."""

    def __init__(self, schedule: Table, kernel: Table, a: Sequence[int], b: Sequence[int], primitive: Table) -> None:
        self.schedule, self.kernel, self.primitive = schedule, kernel, primitive
        self.a = [(schedule["a"], code) for code in a]
        self.b = [(schedule["b"], code) for code in b]
        self.by = kernel.get("step", {}).get("by", "fma")
        self.beyond = set[int]()  # products beyond whole blocks of their range
        self.scale: Callable[[int], int] | None = None  # of the promotion of products from this k on
        self.format: str = kernel["accumulators"]["format"]

    def value(self, c: int | None) -> int:
        """D where no epilogue says what becomes of the sum."""
        return convert(self.sum(c), self.kernel["join"]["format"], self.schedule["d"])

    def sum(self, c: int | None) -> int:
        """The sum in the format of partial sums; C is in it where it is the start, or no epilogue has it."""
        join = self.kernel["join"]
        to, start = join["format"], join.get("start", "zero")
        if self.schedule.get("epilogue") and start != "c":
            c = None
        addend = None if c is None else convert(c, self.schedule["c"], to)
        if not self.a:
            return 0 if addend is None else addend
        borders = starts(self.kernel["ranges"], len(self.a))
        partials = [self.range(range(borders[i], borders[i + 1])) for i in range(len(borders) - 1)]
        if join.get("order") == "pairwise":
            partials = [neighbours(partials, to)]
        if join.get("order") == "last_first":
            partials = [partials[-1], *partials[:-1]]
        sums = {"zero": [0], "first": [], "c": [] if addend is None else [addend]}[start] + partials
        if addend is not None and start != "c":
            sums.append(addend)
        total = sums[0]
        for each in sums[1:]:
            total = add(total, each, to)
        return total

    def range(self, lanes: range) -> int:
        rule, promotion = self.kernel["accumulators"], self.kernel.get("promotion")
        size = self.primitive["k"] if self.by == "primitive" else 1
        steps = [lanes[i : i + size] for i in range(0, len(lanes), size)]
        count, run, block = rule.get("count", 1), rule.get("run", 1), rule.get("block", 1)
        dealt: list[list[range]] = [[] for _ in range(count)]
        after: list[range] = []
        last = len(steps) // block * block - rule.get("late", 0)
        for number, step in enumerate(steps):
            whole = number < last
            left = dealt[0] if rule.get("rest", "first") == "first" else after
            if not whole:
                self.beyond.update(step)
            (dealt[number // run % count] if whole else left).append(step)
        if promotion:
            held = promotion["format"]
            sums = [self.promoted(own, promotion) for own in dealt]
        else:
            held = self.format
            sums = [self.chain(own) for own in dealt]
        while len(sums) > 1:
            if len(sums) == 2 and rule.get("rest") == "before":
                sums[0] = self.onto(sums[0], after)
            if rule.get("join") == "pairwise":
                odd = [sums[-1]] if len(sums) % 2 else []
                sums = [add(sums[i], sums[i + 1], held) for i in range(0, len(sums) - 1, 2)] + odd
            elif rule.get("join") == "halves":
                half = len(sums) // 2
                sums = [add(sums[i], sums[i + half], held) for i in range(half)]
            else:
                sums = [add(sums[0], sums[1], held), *sums[2:]]
        total = sums[0] if rule.get("rest") == "before" else self.onto(sums[0], after)
        if len(lanes) % self.kernel.get("step", {}).get("filled", 1):
            total = fma((self.schedule["a"], 0), (self.schedule["b"], 0), total, held)
        return convert(total, held, self.kernel["join"]["format"])

    def promoted(self, steps: list[range], promotion: Table) -> int:
        total = 0
        for start in range(0, len(steps), promotion["every"]):
            part = self.chain(steps[start : start + promotion["every"]])
            fmt = promotion["format"]
            if self.scale is None:
                total = add(total, convert(part, self.format, fmt), fmt)
            else:
                total = fma((fmt, convert(part, self.format, fmt)), (fmt, self.scale(steps[start][0])), total, fmt)
        return total

    def adds(self, k: int) -> str:
        other: str = self.kernel.get("step", {}).get("beyond", "alike")
        return other if k in self.beyond and other != "alike" else self.by

    def chain(self, steps: list[range]) -> int:
        return self.onto(0, steps, self.kernel["accumulators"].get("start", "zero") == "zero")

    def onto(self, total: int, steps: list[range], begun: bool = True) -> int:
        for step in steps:
            size = self.primitive["k"] if self.by == "primitive" else 1
            if self.by == "primitive" and (len(step) == size or self.kernel.get("tail", "zeros") == "zeros"):
                order = lengths_in(self.kernel["step"].get("order", "")) or list(range(size))
                x = [self.a[step[p]][1] if p < len(step) else 0 for p in order]
                y = [self.b[step[p]][1] if p < len(step) else 0 for p in order]
                total = evaluate(self.primitive, x, y, total)
                continue
            for k in step:
                if not begun:
                    total, begun = product(self.a[k], self.b[k], self.format), True
                elif self.adds(k) == "multiply_add":
                    total = add(product(self.a[k], self.b[k], self.format), total, self.format)
                else:
                    total = fma(self.a[k], self.b[k], total, self.format)
        return total


def scaled(operand: tuple[str, int], by: tuple[str, int], to: str) -> int:
    """An operand times its scale in the format of the product."""
    return product(operand, by, to)


def size(fmt: str, code: int) -> int:
    """The code of a value without its sign."""
    return code & ((1 << spec(fmt).exponent + spec(fmt).fraction) - 1)


def converted(x: int, fmt: str, to: str, overflow: str) -> int:
    """Rounded to another format; a number too large, an infinity too, to its largest where that is said."""
    f, of = spec(to), spec(fmt)
    if overflow == "largest" and f.specials == "ieee" and size(fmt, x) == ((1 << of.exponent) - 1) << of.fraction:
        return (((1 << f.exponent) - 1) << f.fraction) - 1 | (1 << f.exponent + f.fraction) * (size(fmt, x) != x)
    tree = {"node": "exact", "terms": ["0"], "to": {"format": to, "overflow": overflow}}
    path = {"a": fmt, "b": fmt, "c": "none", "d": to, "k": 1, "tree": tree, **_special(to)}
    return evaluate(path, [x], [one(fmt)[1]], None)


def extremum(x: int, y: int, fmt: str, largest: bool, nan: str) -> int:
    """The larger or the smaller of two, by their places on the line from -infinity to infinity."""
    f = spec(fmt)
    top, sign = ((1 << f.exponent) - 1) << f.fraction, 1 << f.exponent + f.fraction
    quiet = top | 1 << f.fraction - 1
    nans = [size(fmt, code) > top for code in (x, y)]
    if any(nans):
        return quiet if all(nans) or nan == "propagate" else (x, y)[nans[0]]
    place = {code: -size(fmt, code) - 1 if code & sign else size(fmt, code) for code in (x, y)}
    return (max if largest else min)((x, y), key=place.__getitem__)


Leaf = tuple[str, int] | None
EMPTY: Leaf = ("", 0)  # the sum of no products: left out as C is, and +0 in a maximum, a minimum and D


class Epilogue:
    """What becomes of one element's sum: (format, code) of every leaf, None where C is not there."""

    def __init__(self, schedule: Table, leaves: Mapping[str, tuple[str, int] | None]) -> None:
        self.nodes = {node["name"]: node for node in schedule.get("epilogue", [])}
        self.values = dict(leaves)

    def value(self, name: str) -> tuple[str, int] | None:
        if name not in self.values:
            node = self.nodes[name]
            self.values[name] = self.node(node, [self.operand(each, node["format"]) for each in node["of"].split()])
        return self.values[name]

    def operand(self, name: str, fmt: str) -> tuple[str, int] | None:
        if name.lstrip("-")[0].isdigit():
            number = Fraction(name)
            return fmt, encode_value(fmt, abs(number), name.startswith("-"), "RNE")
        return self.value(name)

    def d(self, fmt: str) -> Leaf:
        """The last value."""
        found = self.value("d")
        return (fmt, 0) if found == EMPTY else found

    def node(self, node: Table, given: list[Leaf]) -> Leaf:
        fmt, operation = node["format"], node["operation"]
        if operation in ("maximum", "minimum"):
            given = [(fmt, 0) if each == EMPTY else each for each in given]
        if EMPTY in given:
            left = [None if each == EMPTY else each for each in given]
            there = self.node(node, left)
            return EMPTY if there is None else there
        if operation == "convert":
            return given[0] and (fmt, converted(given[0][1], given[0][0], fmt, node.get("overflow", "ieee")))
        ready = [None if each is None else convert(each[1], each[0], fmt) for each in given]
        if operation == "fma":
            x, y, z = ready
            if x is None or y is None:
                return None if z is None else (fmt, z)
            return fmt, product((fmt, x), (fmt, y), fmt) if z is None else fma((fmt, x), (fmt, y), z, fmt)
        x, y = ready
        if x is None or y is None:
            left = y if x is None else x
            return None if left is None or operation == "multiply" else (fmt, left)
        if operation == "multiply":
            return fmt, product((fmt, x), (fmt, y), fmt)
        if operation == "add":
            return fmt, add(x, y, fmt)
        return fmt, extremum(x, y, fmt, operation == "maximum", node.get("nan", "propagate"))
