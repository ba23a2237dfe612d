"""Inline assembly: the operands of a matrix instruction as PTX registers, and the moves from and to words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

REGISTERS = {"f32": ("f", "float", "__uint_as_float", "__float_as_uint"),
             "f64": ("d", "double", "__longlong_as_double", "__double_as_longlong")}  # fmt: skip
"""Constraint, C type and moves of results and operands that PTX wants typed; the rest are words."""


@dataclass
class Assembly:
    """One asm statement under way: outputs first, then inputs, numbered as they come."""

    _outputs: list[str] = field(default_factory=list)
    _inputs: list[str] = field(default_factory=list)
    _before: list[str] = field(default_factory=list)
    _after: list[str] = field(default_factory=list)

    def _next(self) -> int:
        return len(self._outputs) + len(self._inputs)

    def results(self, name: str, count: int, fmt: str, *, updated: bool = False) -> str:
        """``{%0, %1}``: registers that are written to ``of.name``; ``updated``: read first, too."""
        assert not self._inputs, "results come before operands"
        names = []
        letter, kind, to_float, to_word = REGISTERS.get(fmt, ("r", "", "", ""))
        for number in range(count):
            names.append(f"%{self._next()}")
            sign = "+" if updated else "="
            if not kind:
                self._outputs.append(f'"{sign}{letter}"(of.{name}[{number}])')
                continue
            start = f" = {to_float}(of.{name}[{number}])" if updated else ""
            self._before.append(f"{kind} {name}{number}{start};")
            self._outputs.append(f'"{sign}{letter}"({name}{number})')
            self._after.append(f"of.{name}[{number}] = {to_word}({name}{number});")
        return f"{{{', '.join(names)}}}"

    def operands(self, name: str, count: int, fmt: str = "") -> str:
        """``{%4, %5}``: registers that hold ``of.name``."""
        letter, kind, to_float, _ = REGISTERS.get(fmt, ("r", "", "", ""))
        values = [f"of.{name}[{number}]" for number in range(count)]
        names = [self.value(letter, f"{to_float}({value})" if kind else value) for value in values]
        return f"{{{', '.join(names)}}}"

    def value(self, letter: str, expression: str) -> str:
        """One input by its constraint: ``%7``."""
        self._inputs.append(f'"{letter}"({expression})')
        return f"%{self._next() - 1}"

    def statement(self, lines: Iterable[str], memory: bool = False) -> str:
        """The statement with what moves words before and after it."""
        text = "\n".join(f'    "{line}\\n"' for line in lines)
        outputs, inputs = ",\n      ".join(self._outputs), ",\n      ".join(self._inputs)
        clobbers = '\n    : "memory"' if memory else ""
        body = [*self._before, f"asm volatile(\n{text}\n    : {outputs}\n    : {inputs}{clobbers});", *self._after]
        return "\n".join(f"  {line}" for line in body)
