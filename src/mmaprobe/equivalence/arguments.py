"""Find an argument that a neighbour is the same function; the checker decides whether it holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from mmaprobe.equivalence.bounds import accumulator_span, trace
from mmaprobe.equivalence.checker import RULES, Argument, Fact, numbers, refute
from mmaprobe.equivalence.record_rules import IDENTITIES
from mmaprobe.equivalence.spans import DatapathSpans, Span
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.parameters.neighbours import Neighbour

WHOLE_TREE = ("sign hidden", "labels alike")
"""Rules that look at more than the place of the change."""


def argument(datapath: Datapath, neighbour: Neighbour) -> Argument | None:
    """The first argument that the checker accepts for a neighbour; None where no rule applies."""
    for candidate in _candidates(datapath, _field(datapath, neighbour)):
        if not refute(datapath, neighbour.datapath, candidate):
            return candidate
    return None


def _field(datapath: Datapath, neighbour: Neighbour) -> str:
    """The field of the neighbour; of a change of the structure the only one in which it differs, if there is one."""
    if "." in neighbour.field:
        return neighbour.field
    changed = [path for path, _, _ in islice(datapath_changes(datapath, neighbour.datapath), 2)]
    return changed[0] if len(changed) == 1 else neighbour.field


def _candidates(datapath: Datapath, field: str) -> Iterator[Argument]:
    place, _, name = field.rpartition(".")
    yield from (Argument(rule, place) for rule in IDENTITIES)
    rules = [rule for rule, (_, _, names) in RULES.items() if name in names]
    if rules:
        spans = _spans(datapath).spans
        near = _facts(spans, place)
        every = _every_fact(datapath)
        yield from (Argument(rule, place, near) for rule in rules if rule not in WHOLE_TREE)
        yield from (Argument(rule, place, every) for rule in rules if rule in WHOLE_TREE or name == "zero_exponent")


@lru_cache(maxsize=64)
def _spans(datapath: Datapath) -> DatapathSpans:
    return trace(datapath, accumulator_span(datapath))


@lru_cache(maxsize=4)
def _every_fact(datapath: Datapath) -> tuple[Fact, ...]:
    """Every span of a datapath; kept, since all its neighbours ask for them."""
    return tuple((path, numbers(span)) for path, span in _spans(datapath).spans.items())


def _facts(spans: dict[str, Span], place: str) -> tuple[Fact, ...]:
    """The spans of c, of what enters the place, and of the terms beside it."""
    head, _, tail = place.rpartition(".terms.")
    node = head if tail.isdecimal() else place
    wanted = [
        path
        for path in spans
        if path in ("c", place, f"{place}.to", "product.exact") or path.startswith(f"{node}.terms.")
    ]
    return tuple((path, numbers(spans[path])) for path in wanted)
