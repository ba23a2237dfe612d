"""Every shipped datapath once, and its family.

A datapath is listed under the first architecture, instruction and control state of the
catalog that computes it, with every architecture that does.  Its family is what is left
when operand formats, K and steps are forgotten; ``representatives`` are the first of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, instructions, lowering
from mmaprobe.catalog.states import default_state, modes
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Accumulator, Add, Datapath, Exact, Fma, Fused, Node, Products, Term, walk
from mmaprobe.parameters.lookup import datapath_for

SEED = 11


@dataclass
class Shipped:
    """One distinct datapath: who computes it, and of which kind the form is."""

    architecture: str
    instruction: Instruction
    datapath: Datapath
    kind: str
    also: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"{self.architecture}-{self.instruction.id}"


@cache
def files() -> tuple[str, ...]:
    """Every architecture; a CPU's by the vendors whose parameters differ, where they do."""
    data = resources.files("mmaprobe.parameters") / "data"
    variants = sorted(path.name.removesuffix(".toml") for path in data.iterdir() if "+" in path.name)
    whole = {name.partition("+")[0] for name in variants}
    return (*(name for name in architectures() if name not in whole), *variants)


@cache
def distinct() -> tuple[Shipped, ...]:
    """Every distinct datapath of every form and control state, sparse ones apart from dense ones."""
    found: dict[Any, Shipped] = {}
    for architecture in files():
        for state in (state for base in instructions(architecture) for state in modes(base)):
            try:
                datapath = datapath_for(architecture, state)
                kind = kind_of(architecture, state)
            except UsageError:
                continue
            first = found.setdefault((datapath, state.chunk), Shipped(architecture, state, datapath, kind))
            first.also.add(architecture)
    return tuple(found.values())


def kind_of(architecture: str, form: Instruction) -> str:
    """What is special about a form: the first of these that applies."""
    way = lowering(form, architecture)
    if form.chunk:
        return "sparse"
    if way.kind == "emulated":
        return "emulated"
    if way.convert_c or way.convert_d:
        return "converted"
    if form.scale is not None:
        return "scaled"
    if default_state(form) != form:
        return "state"
    return "dense" if formats.get(form.a).is_float else "integer"


def family(shipped: Shipped) -> Any:
    """Kind, shape of the tree with its numbers, result, NaN rule and flushes; not operand formats, K and steps."""
    path = shipped.datapath
    to = path.tree.to  # type: ignore[union-attr]
    scale = path.scale.where if path.scale else None
    flushes = (path.operand_a.subnormals, path.operand_c.subnormals, to.subnormals)
    return (shipped.kind, shape(path.tree), path.d, path.special.nan, flushes, scale, path.product.to is not None)


def shape(node: Node) -> Any:
    """A tree without its lanes: alike operands and chains count once."""
    if isinstance(node, Products):
        return "products"
    if isinstance(node, Accumulator):
        return "c"
    if isinstance(node, (Fma, Add)):
        inner = [node.acc] if isinstance(node, Fma) else [node.x, node.y]
        shapes = tuple(dict.fromkeys(shape(part) for part in inner))
        own = type(node).__name__
        return shapes[0] if len(shapes) == 1 and shapes[0][0] == own else (own, *shapes)
    if isinstance(node, (Fused, Exact)):
        terms = [term.of if isinstance(term, Term) else term for term in node.terms]
        return (type(node).__name__, getattr(node, "fraction_bits", None), *dict.fromkeys(map(shape, terms)))
    return "zero"


def is_written_one_way(path: Datapath) -> bool:
    """Whether what is found is written as it ships: sums that show another exponent of c, in a narrow result, of groups
    that are cut once more above them, have other spellings that are the same function."""
    sums = [node for node in walk(path.tree) if isinstance(node, Fused)]
    shown = any(term.label_offset for node in sums for term in node.terms)
    return not shown or formats.get(path.d).fraction_bits >= formats.get("f32").fraction_bits


def representatives() -> tuple[Shipped, ...]:
    """The first distinct datapath of every family."""
    found: dict[Any, Shipped] = {}
    for shipped in distinct():
        found.setdefault(family(shipped), shipped)
    return tuple(found.values())
