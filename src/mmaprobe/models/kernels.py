"""Datapaths that the engine runs with a kernel of their own instead of the interpreter."""

from __future__ import annotations

from mmaprobe import formats
from mmaprobe.parameters.datapath import Datapath, Exact, Operand, Product

INTERPRETER, INTEGER_WRAPS, INTEGER_SATURATES = range(3)


def kernel(datapath: Datapath) -> int:
    """The engine's kernel for a datapath: an exact sum of plain integers that wraps or saturates, or the interpreter.

    Plain: whole containers, nothing masked or flushed, all products and C (s32) in one sum.
    """
    tree, product = datapath.tree, datapath.product
    named = [formats.get(name) for name in (datapath.a, datapath.b, datapath.d)]
    plain = all(fmt.kind == "integer" and fmt.bits == fmt.container_bits for fmt in named) and named[2].signed
    if not plain or datapath.c not in (None, "s32") or datapath.scale or datapath.result or product != Product():
        return INTERPRETER
    if any(op != Operand() for op in (datapath.operand_a, datapath.operand_b, datapath.operand_c)):
        return INTERPRETER
    if not isinstance(tree, Exact) or tree.scaled or tree.to is None or tree.to.format != datapath.d or tree.to.first:
        return INTERPRETER
    kinds = sorted(type(term).__name__ for term in tree.terms)
    if kinds != (["Products"] if datapath.c is None else ["Accumulator", "Products"]):
        return INTERPRETER
    if tree.to.overflow == "wrap":
        return INTEGER_WRAPS if len(datapath.steps) == 1 or datapath.c is not None else INTERPRETER
    return INTEGER_SATURATES if len(datapath.steps) == 1 else INTERPRETER
