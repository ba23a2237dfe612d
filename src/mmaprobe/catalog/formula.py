"""Integer formulas of operand layouts: one text, evaluated on arrays or written as C.

A formula knows names, integers, ``+ - * // % & | ^ << >>`` and ``==`` (0 or 1).
It is Python's spelling and Python's precedence.  Every value that occurs is at
least 0, so that ``//`` and ``%`` mean the same in Python and in C.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mmaprobe.errors import UsageError


def _equal(x: Any, y: Any) -> Any:
    return np.multiply(np.equal(x, y), 1)


_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("/", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
_KEEPS_LEFT = {ast.Add: 0, ast.Sub: 0, ast.BitOr: 0, ast.BitXor: 0, ast.LShift: 0, ast.RShift: 0,
               ast.Mult: 1, ast.FloorDiv: 1}  # fmt: skip
"""x OP this = x."""


@dataclass(frozen=True)
class Formula:
    """One integer formula; UsageError where its text is anything else."""

    text: str

    def __post_init__(self) -> None:
        _parse(self.text)

    @property
    def names(self) -> frozenset[str]:
        """The names that are not bound yet."""
        return frozenset(node.id for node in ast.walk(_parse(self.text)) if isinstance(node, ast.Name))

    def bind(self, values: Mapping[str, int | Formula]) -> Formula:
        """The formula with these names replaced, constants folded."""
        known = {name: ast.Constant(v) if isinstance(v, int) else _parse(v.text) for name, v in values.items()}
        return Formula(ast.unparse(_replace(_parse(self.text), known)))

    def replace(self, part: Formula, by: str) -> Formula:
        """The formula with a name for every occurrence of a part of it."""
        return Formula(ast.unparse(_rename(_parse(self.text), ast.dump(_parse(part.text)), ast.Name(by))))

    def __call__(self, **values: Any) -> Any:
        """Its value, on integers or integer arrays of one shape; UsageError where a name has none."""
        missing = sorted(self.names - set(values))
        if missing:
            raise UsageError(f"formula {self.text!r} needs {', '.join(missing)}")
        return _value(_parse(self.text), values)

    @property
    def c(self) -> str:
        """The formula as a C expression in parentheses where it needs them."""
        return _c(_parse(self.text))


@cache
def _parse(text: str) -> ast.expr:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"formula {text!r}: {error.msg}") from None
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            _check(left, text)
            _check(right, text)
        case ast.Compare(left, [ast.Eq()], [right]):
            _check(left, text)
            _check(right, text)
        case ast.Constant(int(value)) if not isinstance(value, bool):
            pass
        case ast.Name():
            pass
        case _:
            raise UsageError(
                f"formula {text!r}: {ast.unparse(node)!r} is not a name, an integer or one of + - * // % & | ^ << >> =="
            )


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.BinOp(left, op, right):
            return _BINARY[type(op)][1](_value(left, values), _value(right, values))
        case ast.Compare(left, _, [right]):
            return _equal(_value(left, values), _value(right, values))
        case ast.Name(name):
            return values[name]
        case ast.Constant(value):
            return value
    raise AssertionError(node)


def _replace(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    match node:
        case ast.Name(name):
            return known.get(name, node)
        case ast.BinOp(left, op, right):
            return _fold(ast.BinOp(_replace(left, known), op, _replace(right, known)))
        case ast.Compare(left, ops, [right]):
            return _fold(ast.Compare(_replace(left, known), ops, [_replace(right, known)]))
    return node


def _rename(node: ast.expr, part: str, by: ast.Name) -> ast.expr:
    if ast.dump(node) == part:
        return by
    match node:
        case ast.BinOp(left, op, right):
            return ast.BinOp(_rename(left, part, by), op, _rename(right, part, by))
        case ast.Compare(left, ops, [right]):
            return ast.Compare(_rename(left, part, by), ops, [_rename(right, part, by)])
    return node


def _fold(node: ast.BinOp | ast.Compare) -> ast.expr:
    """An integer where both sides are one; ``x`` for ``x + 0``, ``x * 1`` and the like; 0 for ``x * 0``, ``x % 1``."""
    left, right = node.left, node.right if isinstance(node, ast.BinOp) else node.comparators[0]
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return ast.Constant(int(_value(node, {})))
    if isinstance(node, ast.Compare):
        return node
    kind = type(node.op)
    if isinstance(right, ast.Constant):
        if right.value == _KEEPS_LEFT.get(kind, -1):
            return left
        if (kind, right.value) in {(ast.Mult, 0), (ast.Mod, 1), (ast.BitAnd, 0)}:
            return ast.Constant(0)
    if isinstance(left, ast.Constant):
        if left.value == 0:
            return right if kind in (ast.Add, ast.BitOr, ast.BitXor) else ast.Constant(0) if kind != ast.Sub else node
        if left.value == 1 and kind is ast.Mult:
            return right
    return node


_SUM, _PRODUCT = (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv, ast.Mod)


def _c(node: ast.expr) -> str:
    match node:
        case ast.BinOp(left, op, right):
            plain_left = isinstance(op, _SUM) and _is(left, *_SUM, *_PRODUCT)
            plain_right = isinstance(op, _SUM) and _is(right, *_PRODUCT)
            first = _c(left) if plain_left else _inner(left)
            return f"{first} {_BINARY[type(op)][0]} {_c(right) if plain_right else _inner(right)}"
        case ast.Compare(left, _, [right]):
            return f"{_inner(left)} == {_inner(right)}"
    return ast.unparse(node)


def _is(node: ast.expr, *kinds: type[ast.operator]) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, kinds)


def _inner(node: ast.expr) -> str:
    return f"({_c(node)})" if isinstance(node, (ast.BinOp, ast.Compare)) else _c(node)
