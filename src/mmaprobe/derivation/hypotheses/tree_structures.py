"""Structures over a summation tree that is known: which terms are added with which was read, how they are was not.

The tree is the answer of the probe ``summation_tree``.  The sums on the way from C to its root are the steps where
they all add alike; every kind of sum that can add so many terms is one structure, its lanes where the tree has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from mmaprobe.derivation.hypotheses.read_trees import C, Part, Sum, erased, lanes_of, ordered, parsed, steps_of
from mmaprobe.derivation.hypotheses.structures import Structure, scaled_structures
from mmaprobe.parameters.datapath import Accumulator, Add, Encode, Exact, Fma, Fused, Node, Products, Zero

SEVERAL = ("fused", "exact")
"""How several terms are added."""
CHAINS = ("fma", "rounded products", "added", "fused")
TREES = ("rounded products", "added", "fma", "fused")
"""How two are, the likeliest first: where lanes are added to sums, and where only sums are."""
INSIDE = ("handed on", "handed on exact", "rounded from zero", "rounded")
"""What becomes of a sum inside a sum of several terms."""


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
                nodes, lanes = [Fused.alike((Zero(), Products(lanes[:1])), None, to=to)], lanes[1:]
        nodes += [Products(lanes)] if lanes else []
        return Exact(tuple(nodes), own) if kind == "exact" else Fused.alike(nodes, None, to=own)

    def _inside(self, part: Part, to: Encode) -> Node:
        if not isinstance(part, Sum) or self.inside.startswith("rounded") or (part.pair and self.two != "fused"):
            return self.tree(part, to)
        if self.inside == "handed on exact":
            return Exact((Products(lanes_of(part)),), None)
        return self._at_once(part, "fused", None, to)


def structures_of(answer: Any, k: int, scale_size: int = 0) -> Iterator[Structure]:
    """Every structure whose tree is this answer's; none where the answer leaves lanes in no order.

    Sums of scale blocks of ``scale_size`` lanes inside aligned sums lose nothing, so they are not in the tree.
    """
    tree = parsed(answer)
    if not isinstance(tree, Sum) or sorted(lanes_of(tree)) != list(range(k)):
        return
    steps = steps_of(tree)
    if len(set(map(erased, steps))) > 1:
        steps = [ordered(tree)]  # they do not add alike: the whole is one
    order = tuple(lane for step in steps for lane in lanes_of(step))
    pattern = _placed(steps[0], {lane: place for place, lane in enumerate(order)})
    assert isinstance(pattern, Sum)
    scaled = list(_scaled(pattern, k, scale_size)) if scale_size and order == tuple(range(k)) else []
    yield from scaled[:1]  # whole blocks, then single products, then parts of blocks: the likeliest first
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
    yield from scaled[1:]


def _scaled(pattern: Sum, k: int, size: int) -> Iterator[Structure]:
    """Sums of scale blocks over the lanes of a pattern; one block and c are two terms, aligned or not."""
    step, rest = len(lanes_of(pattern)), [term for term in pattern.terms if term != C]
    apart = len(rest) == 1 and isinstance(rest[0], Sum)
    if apart or all(isinstance(term, int) for term in rest):
        for each in scaled_structures(k, C in pattern.terms, size):
            if each.step == step and (each.apart == apart or apart):
                yield replace(each, name=f"{each.name}, read", placed=True)


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
    of_sums = [sum(isinstance(term, Sum) for term in each.terms) for each in pairs]
    chained = any(count == 1 and C not in each.terms for count, each in zip(of_sums, pairs, strict=True))
    two = (TREES if 2 in of_sums and not chained else CHAINS) if pairs else ("",)
    for first, second in product(several, two):
        at_once = [each for each in sums if not each.pair or second == "fused"]
        within = [term for each in at_once for term in each.terms if isinstance(term, Sum)]
        exact = first != "exact" and all(isinstance(term, int) for each in within for term in each.terms)
        inside = [kind for kind in INSIDE if exact or kind != "handed on exact"] if within else [""]
        yield from (Kinds(first, second, third) for third in inside)
