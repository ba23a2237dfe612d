"""A datapath flattened into the native engine's program: rows of 64-bit integers with named columns.

It is unrolled over the steps: every product, sum and Encode is one row, its operands registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError
from mmaprobe.models.bit_budget import addends, measured_budget
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
    Products,
    Special,
    Term,
    Zero,
)
from mmaprobe.parameters.rewrite import explicit

Program = NDArray[np.int64]
Indices = NDArray[np.int64]

_CODE = COLUMNS["header"].index("code")
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


Saying = tuple[range, Callable[[Any], tuple[int, ...]], "Encode | Rules"]
"""Places, and what says the words from each of them on, as ``Ruled``."""
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
        self.shared = shared
        self.budget = measured_budget(self.datapath)
        self.words: list[int] = [0] * len(COLUMNS["header"])
        self.offsets: dict[tuple[int, ...], int] = {}
        self.free: list[int] = []
        self.registers = 0
        self.code: list[int] = []
        self.sums: list[int] = []
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

    def encode(self, to: Encode | None) -> int:
        if to is None:
            return ABSENT
        at = self.place(encode_row(to))
        self.beside.append((range(at, at + 1), encode_row, to))
        return at

    def down(self, to: Encode, ahead: int) -> bool:
        """Whether a zero sum that meets this Encode is negative: a word of the code, so many ahead."""
        at = len(self.code) + ahead
        self.inside.append((range(at, at + 1), _is_down, to))
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
        root: Encode = path.tree.to  # type: ignore[union-attr, assignment]
        acc = self.take()
        self.code += [ZERO if path.c is None else LOAD_C, acc]
        for numbers in path.products:
            result = self._step(numbers, acc, root)
            if result != acc:
                self.free.append(acc)
                acc = result
        last = path.result or (Encode(path.d) if path.d != root.format else None)
        if last is not None:
            self.code += [CONVERT, acc, self.encode(last)]
        self.code += [STORE, acc, self.encode(last or root)]

    def _step(self, lanes: tuple[int, ...], acc: int, root: Encode) -> int:
        """The tree of one step: that of an earlier one in other lanes, where it began with the same registers.

        A lane is, here and below, the number of a product, which is a lane's where each has one alone."""
        self.free.sort(reverse=True)
        key = acc, tuple(self.free), self.registers
        if key in self.known:
            return self._again(self.known[key], lanes)
        lists: tuple[list[Any], ...] = (self.code, self.sums, self.inside, self.of_lanes)
        begin = [len(each) for each in lists]
        result = self.node(self.datapath.tree, lanes, acc, root)
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

    def node(self, node: Node, lanes: tuple[int, ...], acc: int, outer: Encode) -> int:
        """Code for a node; the register that holds its value. ``acc`` outlives the tree."""
        if isinstance(node, Accumulator):
            return acc
        if isinstance(node, Zero):
            to = self.take()
            self.code += [ZERO, to]
            return to
        if isinstance(node, Fma):
            return self._fma(node, lanes, acc)
        if isinstance(node, Add):
            return self._add(node.x, node.y, node.to, lanes, acc)
        if isinstance(node, Products):
            if len(node.lanes) != 1:
                raise UsageError("several products stand where one value is asked for; they are terms of a sum")
            return self.product(lanes, node.lanes[0])
        parts = addends(node, self.datapath.product)
        if len(parts) == 2 and node.to:
            return self._add(*parts, node.to, lanes, acc)
        if len(parts) == 1:
            value = self.node(parts[0], lanes, acc, outer)
            if node.to:
                self.code += [CONVERT, value, self.encode(node.to)]
            return value
        return self._sum(node, lanes, acc, outer)

    def _add(self, left: Node, right: Node, to: Encode, lanes: tuple[int, ...], acc: int) -> int:
        x, y = self.node(left, lanes, acc, to), self.node(right, lanes, acc, to)
        result = self.take()
        self.code += [ADD, result, x, y, self.encode(to), self.down(to, 5)]
        self.drop(x, acc)
        self.drop(y, acc)
        return result

    def _fma(self, node: Fma, lanes: tuple[int, ...], acc: int) -> int:
        x = self.node(node.acc, lanes, acc, node.to)
        encode = self.encode(node.to)
        for lane in self.datapath.product.places(node.lanes):
            y, to = self.product(lanes, lane), self.take()
            self.code += [FMA, to, x, y, self.lane(lanes, lane, 4), encode, self.down(node.to, 6)]
            self.drop(x, acc)
            self.drop(y, acc)
            x = to
        return x

    def _sum(self, node: Fused | Exact, lanes: tuple[int, ...], acc: int, outer: Encode) -> int:
        nearest = node.to or outer
        terms: list[tuple[list[int], Rules]] = []
        finest = count = 0
        for term in node.terms:
            of = term.of if isinstance(term, Term) else term
            if isinstance(of, Products):
                registers = [self.product(lanes, place) for place in self.datapath.product.places(of.lanes)]
            else:
                registers = [self.node(of, lanes, acc, nearest)]
            rules = _WHOLE if of is term else Rules(*_RULES(term))
            finest = max(finest, UNCUT if rules.fraction_bits is None else rules.fraction_bits)
            terms.append((registers, rules))
            count += len(registers)
        anchor = self.budget.anchors.get(id(node))
        group = self._group(node, lanes, 6) if isinstance(node, Exact) and node.scaled else ABSENT
        to = self.take()
        grid = finest if anchor is None else anchor
        self.sums.append(len(self.code))
        self.code += [
            SUM, to, self.encode(node.to), self.down(nearest, 3), anchor is not None, grid, group,
            acc if isinstance(node, Fused) and node.complement else ABSENT, *_carry(node), count,
        ]  # fmt: skip
        for registers, rules in terms:
            self._terms(registers, rules, acc)
        return to

    def _terms(self, registers: list[int], rules: Rules, acc: int) -> None:
        """Terms of a sum that are cut alike."""
        columns = _term_columns(rules)
        begin, each = len(self.code) + 1, 1 + len(columns)
        self.inside.append((range(begin, begin + each * len(registers), each), _term_columns, rules))
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

    def plain(self) -> Plain:
        """The program, and what says its words in every step."""
        words = self.finish()
        code = int(words[_CODE])
        sums = [np.array(self.sums, np.int64)]
        inside = [np.array(at, np.int64) + code for at, _, _ in self.inside]
        for step, shifts in self._repeated():
            sums.append(np.add.outer(shifts, sums[0][step.sums]).reshape(-1))
            every = np.concatenate([[0], shifts])
            inside[step.inside] = [np.add.outer(at, every).reshape(-1) for at in inside[step.inside]]
        places = [*(np.array(at, np.int64) for at, _, _ in self.beside), *inside]
        says = [(said, by) for _, said, by in (*self.beside, *self.inside)]
        return Plain(
            words, code + np.concatenate(sums), [Ruled(at, *each) for at, each in zip(places, says, strict=True)]
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
            "d": self.encode(Encode(path.d)),
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
            "product_encode": self.encode(product.to),
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
        """What a column of rules says: a number, or where an operand's row or a list of lanes lies."""
        if isinstance(value, int):
            return value
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
            "encode": self.encode(tree.to),
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


class Plain(NamedTuple):
    """A program, where its sums begin, and its words that an Encode or the rules of a term say."""

    words: Program
    sums: NDArray[np.int64]
    ruled: list[Ruled]


def plain_program(datapath: Datapath) -> Plain | None:
    """The interpreter's program, every row in a place of its own: datapaths of one shape differ in words, not in
    places.  None where the budget refuses the datapath."""
    builder = _Builder(datapath, shared=False)
    if builder.budget.reason is not None:
        return None
    return builder.plain()


@lru_cache(maxsize=16384)
def program(datapath: Datapath) -> Program | None:
    """The engine's program for a datapath; None where its budget refuses it."""
    builder = _Builder(datapath)
    if builder.budget.reason is not None:
        return None
    words = builder.finish()
    words.flags.writeable = False
    return words
