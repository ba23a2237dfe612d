"""A datapath flattened into the native engine's program: rows of 64-bit integers with named columns.

It is unrolled over the steps: every product, sum and Encode is one row, its operands registers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError
from mmaprobe.models.bit_budget import BitBudget, addends, measured_budget
from mmaprobe.models.kernels import FLOAT_RULES, FUSED, INTERPRETER, KERNELS, LEAST_ZERO_EXPONENT, kernel
from mmaprobe.models.kernels_float import OperandOf, RuleValue
from mmaprobe.models.nodes import lanes_below
from mmaprobe.models.program_rows import (
    ABSENT,
    ADD,
    COLUMNS,
    CONVERT,
    FMA,
    LOAD_C,
    NEVER,
    NO_LABEL,
    PRODUCT,
    SETTLE,
    STORE,
    SUM,
    UNCUT,
    VERSION,
    ZERO,
    encode_row,
    operand_row,
    rounding_table,
    row,
    split_row,
)
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Operand,
    Product,
    Products,
    Special,
    Term,
    Zero,
    lanes_of,
    walk,
)
from mmaprobe.parameters.rewrite import explicit

Program = NDArray[np.int64]
Indices = NDArray[np.int64]

_CODE, _WIDTH = COLUMNS["header"].index("code"), COLUMNS["header"].index("width")
_GRIDS = 1 + COLUMNS["SUM"].index("anchored"), 1 + COLUMNS["SUM"].index("grid")
_ANY = Encode()
_LABELS = {"encoded": 0, "operands": 1, "normalised": 2}
_MULTIPLY = {"exact": 0, "and": 1, "xor": 2}
_NAN_RULES = {"canonical": 0, "global": 1, "local": 2, "cause": 3}
_WHERE = {"product": 1, "group": 2}


_RULES = attrgetter(
    "fraction_bits", "rounding", "zero_exponent", "cutoff", "label_offset", "sticky_bits", "shift_limit"
)


class Rules(NamedTuple):
    """How a term of a sum is cut."""

    fraction_bits: int | None = None
    rounding: str = Term.rounding
    zero_exponent: int | None = None
    cutoff: int | None = None
    label_offset: int = 0
    sticky_bits: int | None = None
    shift_limit: int | None = None


_WHOLE = Rules()


class Ruled(NamedTuple):
    """Words from each of these places on are ``said(by)``: one beside the code, in the code one a step."""

    at: Indices
    said: Callable[[Any], tuple[int, ...]]
    by: Encode | Rules


Source = tuple[int, int]
"""Where a datapath has an Encode or the rules of a term: the number of a node as ``walk`` yields them, and that of the
term, ``OWN`` for what the node itself is rounded to; or ``PRODUCTS``, ``LAST``, ``FORMAT``."""
OWN = -1
"""In place of a term: the node's own."""
PRODUCTS, LAST, FORMAT = (-1, OWN), (-2, OWN), (-3, OWN)
"""What products are rounded to; the last conversion; that to the format of d, which no field says."""
Saying = tuple[range, Callable[[Any], tuple[int, ...]], "Encode | Rules", Source]
"""Places, what says the words from each of them on, as ``Ruled``, and whose that is."""
OfLane = tuple[int, int, int]
"""A word of the code that is the lane which a step takes in some place, or its scale block: where it stands, that
place, and how many lanes a block has (1: the lane itself)."""


@dataclass(frozen=True)
class StepCode:
    """What a step added to the code, to the sums, to what is said inside and to the words of lanes; the register of its
    value, those that are free then, and how many there are."""

    code: slice
    sums: slice
    inside: slice
    of_lanes: slice
    result: int
    free: tuple[int, ...]
    registers: int
    shifts: list[int]
    """So many words further on the same code stands again,"""
    lanes: list[tuple[int, ...]]
    """in these lanes."""


class _Builder:
    """One program in the making; ``shared``: equal rows lie in one place."""

    def __init__(self, datapath: Datapath, shared: bool = True) -> None:
        self.datapath = explicit(datapath)
        self.numbers = {id(node): i for i, node in enumerate(walk(self.datapath.tree))}
        self.shared = shared
        self.budget = measured_budget(self.datapath)
        self.words: list[int] = [0] * len(COLUMNS["header"])
        self.offsets: dict[tuple[int, ...], int] = {}
        self.free: list[int] = []
        self.registers = 0
        self.code: list[int] = []
        self.sums: list[int] = []
        self.summed: list[int] = []
        self.beside: list[Saying] = []
        self.inside: list[Saying] = []
        self.of_lanes: list[OfLane] = []
        self.known: dict[tuple[Any, ...], StepCode] = {}

    def place(self, values: Iterable[int]) -> int:
        """The offset of a row that lies beside the code."""
        key = tuple(values)
        if key not in self.offsets or not self.shared:
            self.offsets[key] = len(self.words)
            self.words += key
        return self.offsets[key]

    def encode(self, to: Encode | None, source: Source) -> int:
        if to is None:
            return ABSENT
        at = self.place(encode_row(to))
        self.beside.append((range(at, at + 1), encode_row, to, source))
        return at

    def rounded(self, node: Node) -> int:
        """The Encode of a node."""
        return self.encode(_to(node), (self.numbers[id(node)], OWN))

    def down(self, node: Node, ahead: int) -> bool:
        """Whether a zero sum that meets the Encode of a node is negative: a word of the code, so many ahead."""
        at, to = len(self.code) + ahead, _to(node)
        assert to is not None
        self.inside.append((range(at, at + 1), _is_down, to, (self.numbers[id(node)], OWN)))
        return to.rounding == "RD"

    def take(self) -> int:
        if self.free:
            return self.free.pop()
        self.registers += 1
        return self.registers - 1

    def drop(self, register: int, keep: int) -> None:
        if register != keep:
            self.free.append(register)

    def steps(self) -> None:
        """The code: the tree once a step, then the conversion and the store."""
        path = self.datapath
        acc = self.take()
        self.code += [ZERO if path.c is None else LOAD_C, acc]
        for numbers in path.products:
            result = self._step(numbers, acc)
            if result != acc:
                self.free.append(acc)
                acc = result
        last, source = path.result, LAST
        if last is None and path.d != path.root.format:
            last, source = Encode(path.d), FORMAT
        if last is not None:
            self.code += [CONVERT, acc, self.encode(last, source)]
        stored = self.rounded(path.tree) if last is None else self.encode(last, source)
        self.code += [STORE, acc, stored]

    def _step(self, lanes: tuple[int, ...], acc: int) -> int:
        """The tree of one step: that of an earlier one in other lanes, where it began with the same registers.

        A lane is, here and below, the number of a product, which is a lane's where each has one alone."""
        self.free.sort(reverse=True)
        key = acc, tuple(self.free), self.registers
        if key in self.known:
            return self._again(self.known[key], lanes)
        lists: tuple[list[Any], ...] = (self.code, self.sums, self.inside, self.of_lanes)
        begin = [len(each) for each in lists]
        result = self.node(self.datapath.tree, lanes, acc, self.datapath.tree)
        if self.datapath.special.nan == "cause":
            self._settle(lanes, result, acc)
        code, sums, inside, of_lanes = (slice(at, len(each)) for at, each in zip(begin, lists, strict=True))
        self.known[key] = StepCode(code, sums, inside, of_lanes, result, tuple(self.free), self.registers, [], [])
        return result

    def _settle(self, lanes: tuple[int, ...], result: int, acc: int) -> None:
        """The codes of a step's NaN results by their causes."""
        scratch = self.take()
        self.code += [SETTLE, result, acc, scratch, len(lanes)]
        for place in range(len(lanes)):
            self.code.append(self.lane(lanes, place, 0))
        self.drop(scratch, acc)

    def _again(self, step: StepCode, lanes: tuple[int, ...]) -> int:
        step.shifts.append(len(self.code) - step.code.start)
        step.lanes.append(lanes)
        self.code += self.code[step.code]
        self.free, self.registers = list(step.free), step.registers
        return step.result

    def _repeated(self) -> Iterator[tuple[StepCode, Indices]]:
        """The steps whose code stands more than once, and how many words further on."""
        for step in self.known.values():
            if step.shifts:
                yield step, np.array(step.shifts, np.int64)

    def lane(self, lanes: tuple[int, ...], place: int, ahead: int, size: int = 1) -> int:
        """The lane in a place of a step, or its scale block: a word of the code, so many ahead."""
        self.of_lanes.append((len(self.code) + ahead, place, size))
        return lanes[place] // size

    def product(self, lanes: tuple[int, ...], place: int) -> int:
        to = self.take()
        self.code += [PRODUCT, to, self.lane(lanes, place, 2)]
        return to

    def node(self, node: Node, lanes: tuple[int, ...], acc: int, outer: Node) -> int:
        """Code for a node, which meets the Encode of ``outer`` where it has none; the register that holds its value.
        ``acc`` outlives the tree."""
        if isinstance(node, Accumulator):
            return acc
        if isinstance(node, Zero):
            to = self.take()
            self.code += [ZERO, to]
            return to
        if isinstance(node, Fma):
            return self._fma(node, lanes, acc)
        if isinstance(node, Add):
            return self._add(node.x, node.y, node, lanes, acc)
        if isinstance(node, Products):
            if len(node.lanes) != 1:
                raise UsageError("several products stand where one value is asked for; they are terms of a sum")
            return self.product(lanes, node.lanes[0])
        parts = addends(node, self.datapath.product)
        if len(parts) == 2 and node.to:
            return self._add(*parts, node, lanes, acc)
        if len(parts) == 1:
            value = self.node(parts[0], lanes, acc, outer)
            if node.to:
                self.code += [CONVERT, value, self.rounded(node)]
            return value
        return self._sum(node, lanes, acc, outer)

    def _add(self, left: Node, right: Node, node: Node, lanes: tuple[int, ...], acc: int) -> int:
        x, y = self.node(left, lanes, acc, node), self.node(right, lanes, acc, node)
        result = self.take()
        self.code += [ADD, result, x, y, self.rounded(node), self.down(node, 5)]
        self.drop(x, acc)
        self.drop(y, acc)
        return result

    def _fma(self, node: Fma, lanes: tuple[int, ...], acc: int) -> int:
        x = self.node(node.acc, lanes, acc, node)
        encode = self.rounded(node)
        for lane in self.datapath.product.places(node.lanes):
            y, to = self.product(lanes, lane), self.take()
            self.code += [FMA, to, x, y, self.lane(lanes, lane, 4), encode, self.down(node, 6)]
            self.drop(x, acc)
            self.drop(y, acc)
            x = to
        return x

    def _sum(self, node: Fused | Exact, lanes: tuple[int, ...], acc: int, outer: Node) -> int:
        nearest = node if node.to else outer
        terms: list[tuple[list[int], Rules]] = []
        count = 0
        for term in node.terms:
            of = term.of if isinstance(term, Term) else term
            if isinstance(of, Products):
                registers = [self.product(lanes, place) for place in self.datapath.product.places(of.lanes)]
            else:
                registers = [self.node(of, lanes, acc, nearest)]
            terms.append((registers, _rules(term)))
            count += len(registers)
        group = self._group(node, lanes, 6) if isinstance(node, Exact) and node.scaled else ABSENT
        to = self.take()
        self.sums.append(len(self.code))
        self.summed.append(self.numbers[id(node)])
        self.code += [
            SUM, to, self.rounded(node), self.down(nearest, 3), *_grid(node, self.budget), group,
            acc if isinstance(node, Fused) and node.complement else ABSENT, *_carry(node), count,
        ]  # fmt: skip
        for i, (registers, rules) in enumerate(terms):
            self._terms(registers, rules, acc, (self.numbers[id(node)], i))
        return to

    def _terms(self, registers: list[int], rules: Rules, acc: int, source: Source) -> None:
        """Terms of a sum that are cut alike."""
        columns = _term_columns(rules)
        begin, each = len(self.code) + 1, 1 + len(columns)
        self.inside.append((range(begin, begin + each * len(registers), each), _term_columns, rules, source))
        for register in registers:
            self.code += (register, *columns)
            self.drop(register, acc)

    def _group(self, node: Exact, lanes: tuple[int, ...], ahead: int) -> int:
        """Number of the scale block that a scaled sum belongs to: a word of the code, so many ahead."""
        assert self.datapath.scale is not None
        return self.lane(lanes, next(lanes_below(node)), ahead, self.datapath.scale.size)

    def finish(self) -> Program:
        """Rows, code and header together."""
        header = self._operands() | self._rules() | self._kernel()
        self.steps()
        code = len(self.words)
        self.words += self.code
        header |= {
            "version": VERSION, "width": self.budget.width or 0, "registers": self.registers,
            "words": len(self.words), "code": code, "code_end": len(self.words),
        }  # fmt: skip
        self.words[: len(COLUMNS["header"])] = row("header", header)
        words = np.array(self.words, np.int64)
        for step, shifts in self._repeated():
            at, place, size = np.array(self.of_lanes[step.of_lanes], np.int64).reshape(-1, 3).T
            words[code + np.add.outer(shifts, at)] = np.array(step.lanes, np.int64)[:, place] // size
        return words

    def template(self) -> Template:
        """The program, and what says its words in every step."""
        words = self.finish()
        code = int(words[_CODE])
        sums, summed = [np.array(self.sums, np.int64)], [np.array(self.summed, np.int64)]
        inside = [_numbers(at) + code for at, *_ in self.inside]
        for step, shifts in self._repeated():
            sums.append(np.add.outer(shifts, sums[0][step.sums]).reshape(-1))
            summed.append(np.tile(summed[0][step.sums], len(shifts)))
            every = np.concatenate([[0], shifts])
            inside[step.inside] = [np.add.outer(at, every).reshape(-1) for at in inside[step.inside]]
        places = [*(_numbers(at) for at, *_ in self.beside), *inside]
        says = [*self.beside, *self.inside]
        ruled = [Ruled(at, said, by) for at, (_, said, by, _) in zip(places, says, strict=True)]
        words.flags.writeable = False
        return Template(
            words, code + np.concatenate(sums), np.concatenate(summed), ruled, [source for *_, source in says]
        )

    def _operands(self) -> dict[str, int]:
        path, scale = self.datapath, self.datapath.scale
        return {
            "k": path.k,
            "a": self.place(operand_row(path.a, path.operand_a)),
            "b": self.place(operand_row(path.b, path.operand_b)),
            "c": ABSENT if path.c is None else self.place(operand_row(path.c, path.operand_c)),
            "scale": self.place(operand_row(scale.format, Operand())) if scale else ABSENT,
            "scale_size": scale.size if scale else 0,
            "scale_where": _WHERE[scale.where] if scale else 0,
            "d": self.encode(Encode(path.d), FORMAT),
            "random": ABSENT if path.random is None else self.place(operand_row(path.random, Operand())),
        }

    def _rules(self) -> dict[str, int]:
        product, special = self.datapath.product, self.datapath.special
        b_first, fma_order = _orders(special.priority)
        names = _names(special)
        at = len(self.words)
        self.words += names
        return {
            "label": _LABELS[product.label],
            "overflow_exponent": NEVER if product.overflow_exponent is None else product.overflow_exponent,
            "multiply": _MULTIPLY[product.multiply],
            "product_encode": self.encode(product.to, PRODUCTS),
            "nan": _NAN_RULES[special.nan],
            "nan_code": special.code,
            "factor_code": special.factor_code,
            "quiet": special.quiet,
            "signalling_first": special.signalling_first,
            "product_order": b_first,
            "fma_order": fma_order,
            "priority": at,
            "priority_count": len(names),
            "missing_columns": product.missing_columns,
            "products": product.count,
            "split": ABSENT if product.split is None else self.place(split_row(product.split)),
        }

    def _placed(self, value: RuleValue) -> int:
        """What a column of rules says: a number, or where an operand's row, a list of lanes or a program lies."""
        if isinstance(value, int):
            return value
        if isinstance(value, Datapath):
            return self.place(_Builder(value).finish().tolist())
        return self.place(operand_row(*value) if isinstance(value, OperandOf) else value)

    def _kernel(self) -> dict[str, int]:
        """Who evaluates the program, and the row of rules that it asks for."""
        number, tree = kernel(self.datapath) if self.shared else INTERPRETER, self.datapath.tree
        if number in FLOAT_RULES:
            found = FLOAT_RULES[number](self.datapath) or {}
            placed = {name: self._placed(value) for name, value in found.items()}
            return {"kernel": number, "rules": self.place(row(KERNELS[number].lower(), placed))}
        if number != FUSED or not isinstance(tree, Fused) or tree.to is None:
            return {"kernel": number, "rules": ABSENT}
        fraction_bits, zero_exponent = tree.terms[0].fraction_bits, tree.terms[0].zero_exponent
        assert fraction_bits is not None
        rules = {
            "fraction_bits": fraction_bits,
            "zero_exponent": LEAST_ZERO_EXPONENT if zero_exponent is None else zero_exponent,
            "step": self.datapath.step_length,
            "encode": self.rounded(tree),
            "carry": self.place(operand_row(tree.to.format, Operand())),
        }
        return {"kernel": number, "rules": self.place(row("fused", rules))}


@lru_cache(maxsize=4096)
def _term_columns(rules: Rules) -> tuple[int, ...]:
    """The columns of a term after its register."""
    return (
        UNCUT if rules.fraction_bits is None else rules.fraction_bits,
        rounding_table(rules.rounding),
        NO_LABEL if rules.zero_exponent is None else rules.zero_exponent,
        NEVER if rules.cutoff is None else rules.cutoff,
        rules.label_offset,
        UNCUT if rules.sticky_bits is None else rules.sticky_bits,
        NEVER if rules.shift_limit is None else rules.shift_limit,
    )


def _to(node: Node) -> Encode | None:
    """What a node is rounded to, if it is."""
    return None if isinstance(node, (Accumulator, Zero, Products)) else node.to


def _rules(term: Term | Node) -> Rules:
    """How a term of a sum is cut; one of an exact sum is not."""
    return Rules(*_RULES(term)) if isinstance(term, Term) else _WHOLE


def _grid(node: Node, budget: BitBudget) -> tuple[int, int]:
    """Whether the grid of a sum is anchored, and where, or else the most fraction bits of its terms."""
    assert isinstance(node, (Fused, Exact))
    anchor = budget.anchors.get(id(node))
    if anchor is not None:
        return 1, anchor
    kept = [UNCUT if bits is None else bits for bits in (_rules(term).fraction_bits for term in node.terms)]
    return 0, max(0, *kept)


def _carry(node: Fused | Exact) -> tuple[int, int]:
    """The bits of a sum's magnitude above 2**E, where E is the largest exponent, and whether it saturates."""
    if not isinstance(node, Fused) or node.carry_bits is None or node.last_place is None:
        return ABSENT, 0
    return 1 + node.carry_bits, int(node.carry == "saturate")


def _is_down(to: Encode) -> tuple[int, ...]:
    return (int(to.rounding == "RD"),)


@lru_cache(maxsize=256)
def _orders(priority: tuple[str, ...]) -> tuple[int, int]:
    """Whether b's NaN precedes a's in a product; a, b, acc of an fma as base-4 digits 1, 2, 3, the first lowest."""
    named = [name for name in priority if name in ("a", "b", "acc")]
    order = named + [name for name in ("a", "b", "acc") if name not in named]
    digits = sum(("a", "b", "acc").index(name) + 1 << 2 * i for i, name in enumerate(order))
    return int(order.index("b") < order.index("a")), digits


def _names(special: Special) -> list[int]:
    """The priority list of the global rule: 3 * lane + (0 for a, 1 for b), 2 for c."""
    if special.nan != "global":
        return []
    return [2 if name == "c" else 3 * int(name[1:]) + "ab".index(name[0]) for name in special.priority]


def _numbers(some: range) -> Indices:
    return np.arange(some.start, some.stop, some.step, dtype=np.int64)


class Plain(NamedTuple):
    """A program, where its sums begin, and its words that an Encode or the rules of a term say."""

    words: Program
    sums: NDArray[np.int64]
    ruled: list[Ruled]


class Template(NamedTuple):
    """The program of one of the datapaths that are written alike but for their Encodes and the rules of their terms:
    ``Plain``, the nodes that its sums are, and whose what is ``ruled`` is."""

    words: Program
    sums: Indices
    summed: Indices
    ruled: list[Ruled]
    sources: list[Source]

    def filled(self, path: Datapath, nodes: Sequence[Node], budget: BitBudget) -> Plain:
        """The program of another one of them."""
        words = self.words.copy()
        words[_WIDTH] = budget.width or 0
        ruled = [
            each if by is each.by or by == each.by else _put(words, each, by)
            for each, source in zip(self.ruled, self.sources, strict=True)
            for by in (_said(source, path, nodes) or each.by,)
        ]
        if len(self.sums):
            grids = {i: _grid(nodes[i], budget) for i in dict.fromkeys(self.summed.tolist())}
            words[np.add.outer(self.sums, _GRIDS)] = [grids[i] for i in self.summed.tolist()]
        return Plain(words, self.sums, ruled)


def _put(words: Program, ruled: Ruled, by: Encode | Rules) -> Ruled:
    """The words that another Encode, or other rules, say."""
    said, at = ruled.said(by), ruled.at
    if len(at) == 1:
        words[at[0] : at[0] + len(said)] = said
    else:
        words[np.add.outer(at, np.arange(len(said)))] = said
    return Ruled(at, ruled.said, by)


def _said(source: Source, path: Datapath, nodes: Sequence[Node]) -> Encode | Rules | None:
    """What a datapath has there; None where no field says it."""
    number, term = source
    if number >= 0:
        return _to(nodes[number]) if term == OWN else _rules(nodes[number].terms[term])  # type: ignore[union-attr]
    return {PRODUCTS: path.product.to, LAST: path.result, FORMAT: None}[source]


@dataclass(frozen=True)
class _Shape:
    """What datapaths share whose programs differ in what Encodes and terms say alone; one of them."""

    said: tuple[Any, ...]
    path: Datapath = field(compare=False)

    @classmethod
    def of(cls, path: Datapath, nodes: Sequence[Node]) -> _Shape:
        product = replace(path.product, to=_ANY if path.product.to else None)
        whole = (
            path.a, path.b, path.c, path.d, path.k, path.step, path.order, path.scale, path.special, path.random,
            product,
        )  # fmt: skip
        operands = path.operand_a, path.operand_b, path.operand_c
        last = path.result is None, path.d == path.root.format
        return cls((whole, operands, last, *(_shape(node, path.product) for node in nodes)), path)


def _shape(node: Node, product: Product) -> Hashable:
    """What decides the code of a node, beside its Encode and the rules of its terms."""
    if isinstance(node, (Fused, Exact)):
        own = (*_carry(node), node.complement) if isinstance(node, Fused) else node.scaled
        alone = len(addends(node, product)) if len(node.terms) <= 2 else 0
        return type(node), len(node.terms), node.to is None, own, alone
    return type(node), lanes_of(node)


@lru_cache(maxsize=512)
def _template(shape: _Shape) -> Template:
    return _Builder(shape.path, shared=False).template()


def plain_program(datapath: Datapath) -> Plain | None:
    """The interpreter's program, every row in a place of its own: datapaths of one shape differ in words, not in
    places.  None where the budget refuses the datapath."""
    path = explicit(datapath)
    budget = measured_budget(path)
    if budget.reason is not None:
        return None
    nodes = tuple(walk(path.tree))
    return _template(_Shape.of(path, nodes)).filled(path, nodes, budget)


@lru_cache(maxsize=16384)
def program(datapath: Datapath) -> Program | None:
    """The engine's program for a datapath; None where its budget refuses it."""
    builder = _Builder(datapath)
    if builder.budget.reason is not None:
        return None
    words = builder.finish()
    words.flags.writeable = False
    return words
