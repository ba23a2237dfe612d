"""Structures without their lanes: what vectors of equal lanes can tell apart, and the lanes after."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.discriminate import telling
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses import roles
from mmaprobe.derivation.hypotheses.structures import Structure, orders
from mmaprobe.derivation.vectors.plain import uniform_vectors
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Add, Datapath, Encode, Exact, Fma, Fused, Node, Products, walk
from mmaprobe.parameters.rewrite import map_fused

TOLD = 24
"""Pairs of unlike lanes that tell the places of lanes apart, at most; tuned by ``tests/recovery``."""
TRIED = 128
"""Pairs among which those are chosen; tuned by ``tests/recovery``."""


@dataclass(frozen=True)
class Shape:
    """Structures that add up equal lanes alike."""

    members: tuple[Structure, ...]

    @property
    def name(self) -> str:
        return self.members[0].name


def shapes(structures: Iterable[Structure]) -> list[Shape]:
    """The structures by what they do to equal lanes, in the order given."""
    found: dict[Hashable, list[Structure]] = {}
    to = Encode()
    for each in structures:
        found.setdefault((each.step, each.rounded, _erased(each.build(to))), []).append(each)
    return [Shape(tuple(members)) for members in found.values()]


def _erased(node: Node) -> Hashable:
    """The tree with numbers of lanes in place of the lanes, the operands of an addition in any order."""
    if isinstance(node, Products):
        return "products", len(node.lanes)
    if isinstance(node, Fma):
        return "fma", _erased(node.acc), len(node.lanes)
    if isinstance(node, Add):
        return "add", tuple(sorted((_erased(node.x), _erased(node.y)), key=repr))
    if isinstance(node, Fused):
        return "fused", node.to is None, tuple(sorted((_erased(term.of) for term in node.terms), key=repr))
    if isinstance(node, Exact):
        return "exact", node.to is None, node.scaled, tuple(sorted(map(_erased, node.terms), key=repr))
    return type(node).__name__


def ordered(instruction: Instruction, shape: Shape, path: Datapath) -> Iterator[Datapath]:
    """The numbers of a datapath in every member of its shape, with the lanes taken in every usual order."""
    for structure in shape.members:
        moved = alike(instruction, structure, path)
        if moved is None:
            continue
        step = structure.piece or structure.step
        fixed = structure.scaled or structure.placed
        for order in [structure.order] if fixed else orders(instruction.k, step, structure.fused):
            yield replace(moved, order=order)


def alike(instruction: Instruction, structure: Structure, path: Datapath) -> Datapath | None:
    """Another structure with the rules of each kind of term, of aligned sums, of the inner sums and of the root of a
    datapath; None where the datapath has no such term."""
    root, inner = roles.encode_of(path, "root"), roles.encode_of(path, "inner")
    assert root is not None
    sums = {node.to is None: node for node in walk(path.tree) if isinstance(node, Fused)}
    rules = {(roles.term_role(t), n.to is None): t for n in walk(path.tree) if isinstance(n, Fused) for t in n.terms}
    built = grammar.build(instruction, structure, root)
    wanted = {(roles.term_role(t), n.to is None) for n in walk(built.tree) if isinstance(n, Fused) for t in n.terms}
    for role, handed in wanted - set(rules):
        other = rules.get((role, not handed)) or rules.get(("products", handed)) or rules.get(("products", not handed))
        if other is None:
            return None
        rules[role, handed] = other

    def at(node: Fused) -> Fused:
        known = [(term, rules[roles.term_role(term), node.to is None]) for term in node.terms]
        like = sums.get(node.to is None) or sums[node.to is not None]
        return replace(like, terms=tuple(replace(rule, of=term.of) for term, rule in known), to=node.to)

    built = map_fused(built, at)
    if inner is not None:
        built = roles.encodes("inner", lambda _: inner)(built)
    return replace(path, tree=built.tree, step=built.step, order=structure.order, scale=built.scale)


class Places:
    """Which place of a sum each lane of the device takes, told by one lane unlike all the others."""

    def __init__(self, instruction: Instruction, path: Datapath, seed: int, allowance: Allowance) -> None:
        """Vectors in which one lane is unlike the others, chosen to tell its place in ``path`` (lanes as they come)."""
        self.instruction = instruction
        k = instruction.k
        pool = uniform_vectors(instruction, seed, 2 * TRIED)
        pairs = [(take(pool, [i]), take(pool, [i + TRIED])) for i in range(TRIED)]
        asked = join([_marked(many, one, k) for many, one in pairs])
        answers = allowance.evaluate([replace(path, order=None)], asked)[0]
        self.table: Bits = answers.reshape(TRIED, k).T
        self.chosen = telling(self.table, TOLD)
        self.vectors: Batch | None = (
            join([_marked(pairs[i][0], pairs[i][1], k) for i in self.chosen]) if self.chosen.size else None
        )

    def order(self, answers: Bits) -> tuple[int, ...] | None:
        """The lanes in the order of their places, from the device's answers; None where some lane fits nowhere."""
        k = self.instruction.k
        places: dict[tuple[int, ...], list[int]] = {}
        for place, row in enumerate(self.table[:, self.chosen].tolist()):
            places.setdefault(tuple(row), []).append(place)
        found: dict[int, int] = {}
        for lane, row in enumerate(answers.reshape(len(self.chosen), k).T.tolist()):
            free = places.get(tuple(row), [])
            if not free:
                return None
            found[free.pop(0)] = lane
        return tuple(found[place] for place in range(k))


def _marked(many: Batch, one: Batch, k: int) -> Batch:
    """K vectors of equal lanes, in each another lane like ``one``'s."""
    operands = {name: np.repeat(value, k, axis=0) for name, value in many.items()}
    lanes = np.arange(k)
    for name in ("a", "b"):
        operands[name][lanes, lanes] = getattr(one, name)[0, 0]
    return Batch(**operands)


def normal(instruction: Instruction, answers: Bits) -> NDArray[np.bool_]:
    """Which answers are normal numbers."""
    found: NDArray[np.bool_] = formats.decode(formats.get(instruction.d), answers).kind == formats.NORMAL
    return found
