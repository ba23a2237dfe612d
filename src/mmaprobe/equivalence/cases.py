"""What a rule of the checker looks at."""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.equivalence import record_rules
from mmaprobe.equivalence.spans import Span
from mmaprobe.parameters.datapath import Datapath


@dataclass(frozen=True)
class Case:
    """What a rule looks at: both datapaths, the place of the change, and spans that were verified."""

    old: Datapath
    new: Datapath
    place: str
    spans: dict[str, Span]

    def both(self) -> tuple[object, object]:
        """What is at ``place`` in each."""
        return record_rules.part_at(self.old, self.place), record_rules.part_at(self.new, self.place)
