"""An emulated instruction's datapath: its primitive's tree, applied as the lowering says, in one expression.

Operands are converted to the primitive's format, the primitive runs on parts
of K from ``zero``, each time on the result before, and a scalar addition adds
C at the end: d = add(t_n, c), t_i = tree(t_(i-1), the lanes of part i).  Where K
falls into several such chains they are added to C one by one.  Parts of
a sparse instruction are whole chunks; that a sort swaps the two stored elements
of a chunk does not show, since both are in one sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.catalog.sparsity import selected_lanes
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Operand,
    Product,
    Products,
    Zero,
    walk,
)

ADDITIONS = {"FADD": Encode("f32"), "HADD2": Encode("f16")}
"""What the scalar instructions that add C round to: to nearest even, nothing flushed (CUDA, IEEE compliance)."""


def compose(primitives: Mapping[str, Datapath], way: Lowering, made: Instruction) -> Datapath:
    """The datapath of an emulated instruction between its conversions of C and D, from its primitives' datapaths.

    The conversion of A and B is exact and shows in the products' labels alone.
    UsageError where the lowering is no such composition, or where one rule for
    labels cannot stand for the conversion of both operands.
    """
    last = primitives[way.applications[-1].primitive]
    add = ADDITIONS.get(way.add or "")
    ends = {last.d, last.d if way.convert_c else made.c, last.d if way.convert_d else made.d}
    _require(bool(add and {add.format} == ends), way, f"{way.add} does not add C to the result")
    for name in way.primitives:
        _composable(primitives[name], way, last)
    _require(way.applications[0].start == "zero", way, "C is not added at the end alone")
    sums: list[Node] = []
    for step in way.applications:
        taken = selected_lanes(made, step.lanes) if made.chunk else step.lanes
        node = sums.pop() if step.start == "previous" else Zero()
        for piece in primitives[step.primitive].steps:
            node = applied(primitives[step.primitive].tree, node, tuple(taken[lane] for lane in piece))
        sums.append(node)
    assert add is not None
    whole: Node = Accumulator()
    for node in sums:
        whole = Add(node, whole, add)
    product = Product(label=_label(last, way, made))
    return Datapath(made.a, made.b, last.d, last.d, made.selected, whole, product=product, special=last.special)


def _composable(datapath: Datapath, way: Lowering, last: Datapath) -> None:
    _require({way.convert} == {datapath.a, datapath.b}, way, f"operands become {way.convert}, not what it takes")
    plain = datapath.result is None and datapath.special.nan == "canonical" and datapath.product == Product()
    policies = {datapath.operand_a, datapath.operand_b, datapath.operand_c}
    alone = datapath.scale is None and datapath.random is None
    _require(plain and policies == {Operand()} and alone, way, "its own operand rules do not compose")
    _require((datapath.d, datapath.special) == (last.d, last.special), way, "its results are not those of the others")


def _require(holds: bool, way: Lowering, reason: str) -> None:
    if not holds:
        raise UsageError(f"{way.instruction}: {way.primitives[0]} cannot be composed: {reason}")


def applied(tree: Node, before: Node, lanes: tuple[int, ...]) -> Any:
    """The tree with ``before`` in C's place and these lanes in the place of its own."""
    if isinstance(tree, Accumulator):
        return before
    if isinstance(tree, (Fma, Products)):
        tree = replace(tree, lanes=tuple(lanes[lane] for lane in tree.lanes))
    if isinstance(tree, Fma):
        return replace(tree, acc=applied(tree.acc, before, lanes))
    if isinstance(tree, Add):
        return replace(tree, x=applied(tree.x, before, lanes), y=applied(tree.y, before, lanes))
    if isinstance(tree, Fused):
        terms = tuple(replace(term, of=applied(term.of, before, lanes)) for term in tree.terms)
        return replace(tree, terms=terms)
    if isinstance(tree, Exact):
        return replace(tree, terms=tuple(applied(term, before, lanes) for term in tree.terms))
    return tree


def _label(datapath: Datapath, way: Lowering, made: Instruction) -> Literal["encoded", "operands"]:
    """The labels that products of converted operands have, by those of the operands given.

    An operand format of the converted format's exponent range keeps its
    encoded exponent; one whose subnormals all become normal numbers is
    normalised.  Where the two meet, ``operands`` stands for both if it cannot
    show: a product with a subnormal of the first kind has a label so low that,
    were it the largest, no bit of any product would lie below the cut.
    """
    into = formats.get(way.convert or "")
    operands = [formats.get(made.a), formats.get(made.b)]
    fits = [f for f in operands if f.fraction_bits <= into.fraction_bits and f.max_exponent <= into.max_exponent]
    kept = [f for f in fits if f.min_exponent == into.min_exponent]
    normalised = [f for f in fits if f.min_exponent - f.fraction_bits >= into.min_exponent]
    _require(len(kept) + len(normalised) == 2, way, f"an operand is no exact part of {way.convert}")
    if not normalised:
        return "encoded"
    if kept:
        largest = kept[0].min_exponent + normalised[0].max_exponent
        lowest = sum(f.min_exponent - f.fraction_bits for f in operands)
        cut = _bits_kept(walk(datapath.tree))
        _require(cut is None or largest - cut <= lowest, way, "labels of the two operands differ")
    return "operands"


def _bits_kept(nodes: Iterable[Node]) -> int | None:
    """The fewest bits that an alignment of the tree keeps below the largest label; None where nothing is cut."""
    fused = [node for node in nodes if isinstance(node, Fused)]
    bits = [term.fraction_bits for node in fused for term in node.terms if term.fraction_bits is not None]
    return min(bits, default=None)
