"""What a matrix product does beside its sums, as a part of its schedule: operands scaled before, results after.

An epilogue is a tree: its leaves are the sum, C, numbers and *inputs* (alpha, a bias, scales, a residual), its nodes
roundings of one operation each, its root is D.  It is written as a list of nodes with names (``docs/gemm.md``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.parameters import checks
from mmaprobe.parameters.described import says

LONGEST = 1 << 30
"""Rows or columns that one item of an input stands for at most."""
MOST_NODES = 64
"""Nodes of an epilogue, and inputs, at most."""
OPERANDS = {"multiply": 2, "add": 2, "fma": 3, "maximum": 2, "minimum": 2, "convert": 1}
"""How many operands an operation takes."""
TABLES = ("gelu", "silu", "sigmoid", "tanh", "exp")
"""Functions that a device computes by an approximation of its own."""
SUM, C = "sum", "c"
"""Names of the sum of products and of the matrix C."""
_NAME = re.compile("[a-z][a-z0-9_]{0,31}")
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
_RESERVED = ("rows", "columns", "layout", "out", "a", "b", SUM, C)


def check_name(what: str, name: object) -> None:
    """UsageError where this is no name for a value."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(
            f"{what} is {brief(name)}; it must be small letters, digits and _, and none of {', '.join(_RESERVED)}"
        )


def check_float(what: str, name: object, narrow: bool = False) -> None:
    """A float format that a sum can be rounded to; ``narrow``: any float with a sign."""
    fmt: formats.Format = checks.number_format(what, name) if narrow else checks.result_format(what, name)
    if not fmt.is_float or not fmt.signed:
        raise UsageError(f"{what} is {fmt.name}; it must be a float with a sign")


@dataclass(frozen=True)
class Input:
    """What a call hands over beside A, B and C, by its name.

    ``shape``: one number (``scalar``), one for each ``row`` of D or each ``column``, a ``matrix`` like D, or one like
    ``a`` or ``b``.  One item stands for so many ``rows`` and ``columns`` of it, the last one for what is left.
    """

    name: str = field(metadata=says("name of the input"))
    format: str = field(metadata=says("format of its items"))
    shape: Literal["scalar", "row", "column", "matrix", "a", "b"] = field(
        default="scalar", metadata=says("what it has an item for")
    )
    rows: int = field(default=1, metadata=says("rows that an item stands for"))
    columns: int = field(default=1, metadata=says("columns that an item stands for"))

    def __post_init__(self) -> None:
        checks.words("", self)
        check_name("name of an input", self.name)
        checks.number_format("format", self.format)
        for axis, without in (("rows", ("scalar", "column")), ("columns", ("scalar", "row"))):
            checks.whole(axis, getattr(self, axis), 1, LONGEST)
            if self.shape in without and getattr(self, axis) != 1:
                raise UsageError(f"{axis} is {getattr(self, axis)}; {self.name} has none of its own")

    def lengths(self, m: int, n: int, k: int) -> tuple[int, ...]:
        """The shape of its array where D is M x N."""
        down, across = {"a": (m, k), "b": (k, n)}.get(self.shape, (m, n))
        items = -(-down // self.rows), -(-across // self.columns)
        return {"scalar": (), "row": items[:1], "column": items[1:]}.get(self.shape, items)


OF_C = ("scalar", "row", "column", "matrix")
"""Shapes of inputs that C may be multiplied by."""


@dataclass(frozen=True)
class Scaling:
    """An operand is multiplied by an input before the product, and rounded to its format.

    The input is a scalar, or has one item for each row of A or column of B (of C: any of both), or lies like the
    operand.  A or B come to the call in the format ``stored``, where that is said: weights of few bits.
    """

    operand: Literal["a", "b", "c"] = field(metadata=says("operand that is scaled"))
    by: str = field(metadata=says("input that it is multiplied by"))
    stored: str | None = field(default=None, metadata=says("format that the operand comes in"))

    def __post_init__(self) -> None:
        checks.words("", self)
        if self.stored is not None:
            checks.number_format("stored", self.stored)
            if self.operand == "c":
                raise UsageError(f"stored is {brief(self.stored)}; C comes in its own format")

    def check(self, inputs: dict[str, Input]) -> None:
        """UsageError where the input is none that lies along the operand."""
        if self.by not in inputs:
            raise UsageError(f"scaling: no input {brief(self.by)}{near(self.by, inputs)}")
        fits = {"a": ("scalar", "row", "a"), "b": ("scalar", "column", "b")}.get(self.operand, OF_C)
        if inputs[self.by].shape not in fits:
            raise UsageError(f"scaling: {self.by} is one a {inputs[self.by].shape}; {self.operand} takes {brief(fits)}")


@dataclass(frozen=True)
class Compute:
    """A value of the epilogue: an ``operation`` ``of`` others, which are first rounded to its ``format``.

    ``multiply`` and ``add`` are rounded once, and so is ``fma``, x y + z.  ``maximum`` and ``minimum`` are of f32 or
    f64, +0 above -0; of a NaN and a number they are the NaN (``propagate``) or the ``number``.  ``convert`` rounds
    alone: beyond the largest number to what IEEE says, or (``largest``, of an infinity as well) to that.
    """

    name: str = field(metadata=says("name of the value"))
    operation: Literal["multiply", "add", "fma", "maximum", "minimum", "convert"] = field(
        metadata=says("what is computed")
    )
    of: tuple[str, ...] = field(metadata=says("of which values"))
    format: str = field(metadata=says("format of the value"))
    overflow: Literal["ieee", "largest"] = field(default="ieee", metadata=says("what a number too large becomes"))
    nan: Literal["propagate", "number"] = field(default="propagate", metadata=says("what wins against a number"))

    def __post_init__(self) -> None:
        if self.operation in TABLES:
            raise UsageError(
                f"operation is {self.operation}; it needs the device's own function as a measured table of all f32 "
                "inputs, and there is none: the result is not claimed"
            )
        checks.words("", self)
        check_name("name of a value", self.name)
        check_float("format", self.format)
        extremum = self.operation in ("maximum", "minimum")
        if extremum and self.format not in ("f32", "f64"):
            raise UsageError(f"format is {self.format}; {self.operation} is of f32 or f64")
        if not isinstance(self.of, tuple) or len(self.of) != OPERANDS[self.operation]:
            raise UsageError(f"of is {brief(self.of)}; {self.operation} takes {OPERANDS[self.operation]}")
        if self.overflow != "ieee" and self.operation != "convert":
            raise UsageError(f"overflow is {self.overflow}; only convert has one")
        if self.nan != "propagate" and not extremum:
            raise UsageError(f"nan is {self.nan}; only maximum and minimum have one")
        for each in self.of:
            if is_number(each) and not extremum:
                raise UsageError(f"of has the number {each}; only maximum and minimum take numbers")


def is_number(name: str) -> bool:
    """Whether an operand is a number that is written out."""
    return _NUMBER.fullmatch(name) is not None


def check_epilogue(nodes: tuple[Compute, ...], inputs: Iterable[Input], c: bool, amax: tuple[str, ...]) -> None:
    """UsageError where the nodes are no tree whose leaves are there, the last its root."""
    known = {each.name for each in inputs if each.shape not in ("a", "b")} | ({C} if c else set())
    ready, used = {SUM}, list[str]()
    for node in nodes:
        for name in node.of:
            if name in known or is_number(name):
                continue
            if name not in ready:
                raise UsageError(
                    f"epilogue: {node.name} is of {brief(name)}, which is no value before it{near(name, known | ready)}"
                )
            used.append(name)
        if node.name in known | ready:
            raise UsageError(f"epilogue: {brief(node.name)} is there twice")
        ready.add(node.name)
    open_ones = [name for name in [SUM, *(node.name for node in nodes[:-1])] if used.count(name) != 1]
    if nodes and open_ones:
        raise UsageError(f"epilogue: {open_ones[0]} is used {used.count(open_ones[0])} times; it must be used once")
    for name in amax:
        if name not in ready:
            raise UsageError(f"amax: no value {brief(name)}{near(name, ready)}")
