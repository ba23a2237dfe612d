"""What happened while one vector was evaluated, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mmaprobe.models.numbers import Numbers
from mmaprobe.parameters.datapath import Node


@dataclass(frozen=True, eq=False)
class Event:
    """One thing that was computed.

    ``what`` is operands, products, fma, add, exact, fused, encode or result;
    ``node`` the node that did it (None for operands, products and the
    result).  ``values`` holds the numbers by name, one row each:

    * operands: a, b, c (numbers), a_bits, b_bits, c_bits, lanes
    * products: products (one column a lane of the step)
    * fma, add, exact: terms, sum
    * fused: terms, aligned (the same terms after the cut), maximum, quanta, sum
    * encode: exact, rounded, bits, tiny, to
    * result: bits, nan
    """

    what: str
    step: int
    node: Node | None
    values: dict[str, Any]


@dataclass
class Trace:
    """Collects the events of an evaluation; ``step`` counts the steps."""

    events: list[Event] = field(default_factory=list)
    step: int = 0

    def record(self, what: str, node: Node | None = None, **values: Any) -> None:
        """Note one event of the current step."""
        self.events.append(Event(what, self.step, node, values))

    def of(self, what: str) -> list[Event]:
        """The events of one kind."""
        return [event for event in self.events if event.what == what]


def row(numbers: Numbers, column: int = 0) -> Numbers:
    """One value of the traced vector: row 0, this column, as arrays without axes."""
    index = (0, column) if numbers.negative.ndim == 2 else (0,)
    return numbers.at(index)
