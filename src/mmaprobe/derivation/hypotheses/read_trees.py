"""The summation tree that a probe reads, as sums of sums."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from mmaprobe.derivation.session import State
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.bench import Bench
from mmaprobe.probing.suite import probe_on

C = "c"
"""C in the answer; in a step, the sum so far."""


@dataclass(frozen=True)
class Sum:
    """Terms added to one another: lanes, C and other sums; ``aligned`` where two are known to be so, too; ``lossless``
    where none was seen cut."""

    terms: tuple[Part, ...]
    aligned: bool = False
    lossless: bool = False

    @property
    def pair(self) -> bool:
        """Whether a rounded addition or an FMA can be what adds."""
        return len(self.terms) == 2 and not self.aligned


Part = int | str | Sum


def read(state: State) -> Finding:
    """The summation tree: what the probe found before, or asks now."""
    name, session = "summation_tree", state.session
    finding = state.findings.get(name)
    if finding is None:
        bench = Bench(session.device, state.instruction, state.seed, twice=False)
        finding = probe_on(bench, (name,))[name]
        session.charge(finding.tiles, finding.launches, bench.vectors)
        state.findings[name] = finding
    session.say(f"the summation tree, {finding.status}: {finding.text}")
    return finding


def parsed(answer: Any) -> Part | None:
    """The answer as sums of sums; None where it leaves lanes in no order."""
    if not isinstance(answer, dict):
        return answer  # type: ignore[no-any-return]
    if answer["kind"] == "fma":
        found = parsed(answer["acc"])
        for lane in answer["lanes"]:
            found = None if found is None else Sum((found, lane))
        return found
    if answer["kind"] not in ("add", "fused"):
        return None
    terms = [parsed(term) for term in answer["terms"]]
    known = tuple(term for term in terms if term is not None)
    if len(known) < len(terms):
        return None
    return Sum(known, answer["kind"] == "fused", answer.get("lossless", False))


def lanes_of(part: Part) -> tuple[int, ...]:
    """The lanes of a part in the order in which it names them."""
    if isinstance(part, Sum):
        return tuple(lane for term in part.terms for lane in lanes_of(term))
    return (part,) if isinstance(part, int) else ()


def holds_c(part: Part) -> bool:
    """Whether C is in the part."""
    return any(map(holds_c, part.terms)) if isinstance(part, Sum) else part == C


def steps_of(tree: Sum) -> list[Sum]:
    """The sums from the first to the last, the one before each as C, which comes first; the tree where it has no C."""
    found: list[Sum] = []
    node: Part = tree
    while isinstance(node, Sum) and holds_c(node):
        before = next(filter(holds_c, node.terms))
        rest = _in_order(ordered(term) for term in node.terms if term is not before)
        found.append(Sum((C, *rest), node.aligned or len(node.terms) > 2, node.lossless))
        node = before
    return found[::-1] or [ordered(tree)]


def ordered(part: Part) -> Any:
    """The same with the terms of every sum sorted."""
    return replace(part, terms=_in_order(map(ordered, part.terms))) if isinstance(part, Sum) else part


def _in_order(terms: Iterable[Part]) -> tuple[Part, ...]:
    """Sums before lanes, by their shape, then by their lanes."""
    return tuple(sorted(terms, key=lambda term: (not isinstance(term, Sum), repr(erased(term)), lanes_of(term))))


def erased(part: Part) -> Hashable:
    """The part without its lanes."""
    if isinstance(part, Sum):
        return part.pair, tuple(sorted(map(erased, part.terms), key=repr))
    return part if part == C else "lane"
