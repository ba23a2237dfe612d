"""Structures over a summation tree that is known: which terms are added with which was read, how they are was not.

The tree is the answer of the probe ``summation_tree``.  The sums on the way from C to its root are the steps where
they all add alike; every kind of sum that can add so many terms is one structure, its lanes where the tree has them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from mmaprobe.derivation.state import State
from mmaprobe.derivation.structures import Structure, scaled_structures
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.datapath import Accumulator, Add, Encode, Exact, Fma, Fused, Node, Products, Term, Zero
from mmaprobe.probing.bench import Bench
from mmaprobe.probing.suite import probe_on

C = "c"
"""C in the answer; in a step, the sum so far."""


@dataclass(frozen=True)
class Sum:
    """Terms added to one another: lanes, C and other sums; ``aligned`` where two are known to be so, too."""

    terms: tuple[Part, ...]
    aligned: bool = False

    @property
    def pair(self) -> bool:
        """Whether a rounded addition or an FMA can be what adds."""
        return len(self.terms) == 2 and not self.aligned


Part = int | str | Sum
SEVERAL = ("fused", "exact")
CHAINS = ("fma", "rounded products", "added", "fused")
TREES = ("rounded products", "added", "fma", "fused")
INSIDE = ("handed on", "handed on exact", "rounded from zero", "rounded")


@dataclass(frozen=True)
class Kinds:
    """How sums add: of several terms, of two, and those inside a sum of several."""

    several: str
    two: str
    inside: str

    @property
    def aligned(self) -> bool:
        """Whether some sum is an aligned one."""
        return "fused" in (self.several, self.two) or self.inside == "handed on"

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.several, self.two, self.inside)))

    def tree(self, part: Part, to: Encode) -> Node:
        """A part that is rounded, a product, or the sum so far."""
        if not isinstance(part, Sum):
            return Products((part,)) if isinstance(part, int) else Accumulator()
        if part.pair and self.two != "fused":
            return self._pair(part, to)
        return self._at_once(part, self.two if part.pair else self.several, to, to)

    def _pair(self, part: Sum, to: Encode) -> Node:
        x, y = part.terms
        if self.two != "fma" or not (isinstance(x, int) or isinstance(y, int)):
            return Add(self.tree(x, to), self.tree(y, to), to)
        other, lane = (x, y) if isinstance(y, int) else (y, x)
        assert isinstance(lane, int)
        before = Fma(Zero(), (other,), to) if isinstance(other, int) else self.tree(other, to)
        return Fma(before.acc, (*before.lanes, lane), to) if isinstance(before, Fma) else Fma(before, (lane,), to)

    def _at_once(self, part: Sum, kind: str, own: Encode | None, to: Encode) -> Node:
        """Terms summed at once; ``own``: how their sum is rounded (None: handed on), ``to``: how those inside are."""
        lanes = tuple(sorted(term for term in part.terms if isinstance(term, int)))
        nodes = [self._inside(term, to) for term in part.terms if not isinstance(term, int)]
        if self.inside == "rounded from zero" and len(lanes) == len(part.terms):
            nodes = [Zero()]
            if part.pair:  # the first step of a chain is its first lane alone
                nodes, lanes = [Fused((Term(Zero()), Term(Products(lanes[:1]))), None, "RZ", None, to)], lanes[1:]
        nodes += [Products(lanes)] if lanes else []
        return Exact(tuple(nodes), own) if kind == "exact" else Fused(tuple(map(Term, nodes)), None, "RZ", None, own)

    def _inside(self, part: Part, to: Encode) -> Node:
        if not isinstance(part, Sum) or self.inside.startswith("rounded") or (part.pair and self.two != "fused"):
            return self.tree(part, to)
        if self.inside == "handed on exact":
            return Exact((Products(lanes_of(part)),), None)
        return self._at_once(part, "fused", None, to)


def read(state: State) -> Finding:
    """The summation tree: what the probe found before, or asks now."""
    name, observations = "summation_tree", state.observations
    finding = state.findings.get(name)
    if finding is None:
        bench = Bench(observations.device, state.instruction, state.seed, twice=False)
        finding = probe_on(bench, (name,))[name]
        observations.run += bench.vectors
        observations.tiles += finding.tiles
        observations.launches += finding.launches
    state.say(f"the summation tree, {finding.status}: {finding.text}")
    return finding


def structures_of(answer: Any, k: int, scale_size: int = 0) -> Iterator[Structure]:
    """Every structure whose tree is this answer's; none where the answer leaves lanes in no order.

    Sums of scale blocks of ``scale_size`` lanes inside aligned sums lose nothing, so they are not in the tree.
    """
    tree = parsed(answer)
    if not isinstance(tree, Sum) or sorted(lanes_of(tree)) != list(range(k)):
        return
    steps = _steps(tree)
    order = tuple(lane for step in steps for lane in lanes_of(step))
    pattern = _placed(steps[0], {lane: place for place, lane in enumerate(order)})
    assert isinstance(pattern, Sum)
    if scale_size and order == tuple(range(k)):
        yield from _scaled(pattern, k, scale_size)
    for kinds in _kinds(pattern):
        yield Structure(
            f"{kinds.name} over {k // len(steps)}, read",
            k // len(steps),
            partial(kinds.tree, pattern),
            None if order == tuple(range(k)) else order,
            rounded=kinds.two == "rounded products",
            fused=kinds.aligned,
            apart=pattern.pair and C in pattern.terms and kinds.two != "fused",
            placed=True,
        )


def _scaled(pattern: Sum, k: int, size: int) -> Iterator[Structure]:
    step, rest = len(lanes_of(pattern)), [term for term in pattern.terms if term != C]
    apart = len(rest) == 1 and isinstance(rest[0], Sum)
    if apart or all(isinstance(term, int) for term in rest):
        for each in scaled_structures(k, C in pattern.terms, size):
            if (each.step, each.apart) == (step, apart):
                yield replace(each, name=f"{each.name}, read", placed=True)


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
    return Sum(known, answer["kind"] == "fused") if len(known) == len(terms) else None


def lanes_of(part: Part) -> tuple[int, ...]:
    """The lanes of a part in the order in which it names them."""
    if isinstance(part, Sum):
        return tuple(lane for term in part.terms for lane in lanes_of(term))
    return (part,) if isinstance(part, int) else ()


def _holds_c(part: Part) -> bool:
    return any(map(_holds_c, part.terms)) if isinstance(part, Sum) else part == C


def _steps(tree: Sum) -> list[Sum]:
    """The sums from the first to the last, the one before each as C; the whole where they do not add alike."""
    found: list[Sum] = []
    node: Part = tree
    while isinstance(node, Sum):
        before = next(filter(_holds_c, node.terms), None)
        if before is None:
            break
        rest = _sorted(_ordered(term) for term in node.terms if term is not before)
        found.append(Sum((C, *rest), node.aligned or len(node.terms) > 2))
        node = before
    alike = len({_erased(step) for step in found}) == 1
    return found[::-1] if alike else [_ordered(tree)]


def _ordered(part: Part) -> Any:
    """The same with the terms of every sum sorted."""
    return Sum(_sorted(map(_ordered, part.terms)), part.aligned) if isinstance(part, Sum) else part


def _sorted(terms: Iterable[Part]) -> tuple[Part, ...]:
    """Sums before lanes, by their shape, then by their lanes."""
    return tuple(sorted(terms, key=lambda term: (not isinstance(term, Sum), repr(_erased(term)), lanes_of(term))))


def _erased(part: Part) -> Hashable:
    """The part without its lanes."""
    if isinstance(part, Sum):
        return part.pair, tuple(sorted(map(_erased, part.terms), key=repr))
    return part if part == C else "lane"


def _placed(part: Part, places: dict[int, int]) -> Part:
    if isinstance(part, Sum):
        return Sum(tuple(_placed(term, places) for term in part.terms), part.aligned)
    return places[part] if isinstance(part, int) else part


def _every(part: Part) -> Iterator[Sum]:
    if isinstance(part, Sum):
        yield part
        for term in part.terms:
            yield from _every(term)


def _kinds(pattern: Sum) -> Iterator[Kinds]:
    """The ways to add that the sums of a pattern leave open."""
    sums = list(_every(pattern))
    several = SEVERAL if any(not each.pair for each in sums) else ("",)
    pairs = [each for each in sums if each.pair]
    both = {tuple(sorted(type(term).__name__ for term in each.terms)) for each in pairs}
    trees = ("Sum", "Sum") in both and ("Sum", "int") not in both
    two = (TREES if trees else CHAINS) if pairs else ("",)
    for first, second in product(several, two):
        at_once = [each for each in sums if not each.pair or second == "fused"]
        within = [term for each in at_once for term in each.terms if isinstance(term, Sum)]
        exact = first != "exact" and all(isinstance(term, int) for each in within for term in each.terms)
        inside = [kind for kind in INSIDE if exact or kind != "handed on exact"] if within else [""]
        yield from (Kinds(first, second, third) for third in inside)
