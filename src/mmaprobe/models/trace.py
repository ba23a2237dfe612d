"""What happened while one vector was evaluated, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mmaprobe.parameters.datapath import Node


@dataclass(frozen=True, eq=False)
class Event:
    """One thing that was computed.

    ``what`` is operands, fma, add, exact, fused, encode or result; ``node`` the
    node that did it (None for operands and the result).  ``values`` holds the
    numbers by name, one row each:

    * operands: lanes (of the vector), a, b, scales (every block's), accumulator,
      products (one column a lane of the step)
    * fma: lane (of the vector), terms (product, accumulator), sum
    * add, exact: terms (one column each), sum
    * fused: terms, labels and aligned (after the cut), each a list by term;
      maximum (label), sum
    * encode: exact, rounded, bits, tiny (flushed), to
    * result: bits, value, nan
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
