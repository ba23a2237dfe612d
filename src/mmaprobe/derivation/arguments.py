"""Arguments: why a neighbour of a datapath is the same function, by the rules of the record and the formats' ranges."""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe import formats
from mmaprobe.derivation.rewrite import encodes
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Exact,
    Fma,
    Fused,
    Node,
    Operand,
    Products,
    walk,
)
from mmaprobe.parameters.neighbours import Neighbour


def argument(datapath: Datapath, neighbour: Neighbour) -> str:
    """Why a neighbour is the same function as the datapath, by the rules of the record alone; empty if unknown."""
    path, _, name = neighbour.field.rpartition(".")
    other = neighbour.datapath
    if name == "swap" and datapath.special.nan != "local":
        return "addition commutes, and which NaN comes out does not depend on the order of the operands"
    if name == "label" and not any(isinstance(node, Fused) for node in walk(datapath.tree)):
        return "no node aligns terms, so nothing reads a product's label"
    if name == "overflow" and _overflow_rules(datapath) == _overflow_rules(other):
        return "under these roundings the IEEE rule gives the same result beyond the largest finite value"
    if name == "tininess" and _sums_on_grid(datapath, path):
        return "the operands are multiples of the result's lowest place, so a tiny sum needs no rounding"
    if name == "underflow" and _sums_on_grid(datapath, path) and not _flushes(datapath, path):
        return "the operands are multiples of the result's lowest place, so no sum underflows to zero"
    if name == "priority" and _product_order(datapath) == _product_order(other) and not _has(datapath, Fma):
        return "there is no fma, so the place of the accumulator is never read"
    if name == "zero_exponent" and _zeros_cut_nothing(datapath, other):
        return "no term reaches below the place at which a zero's exponent would cut it"
    if name == "overflow" and _never_overflows(datapath):
        return "products are too small to carry the largest C over the largest finite value"
    if name == "underflow" and _never_underflows(datapath, path):
        return "every term is a multiple of the result's lowest place, so no sum underflows to zero"
    if path == "product.to" and name in ("rounding", "tininess") and _products_fit(datapath):
        return "normal products fit the format without rounding, tiny ones are flushed in any case"
    if name == "step" and _wraps(datapath) and _wraps(other):
        return "sums that wrap do not depend on their grouping"
    if name == "step" and _only_grows(datapath) and _only_grows(other):
        return "no product is negative, so a sum limited in steps is the sum limited once"
    if name == "step" and (chain := _chain(datapath)) is not None and chain == _chain(other):
        return "a chain of fused multiply-adds is the same chain however it is cut into steps"
    return ""


def _has(datapath: Datapath, kind: type[Node]) -> bool:
    return any(isinstance(node, kind) for node in walk(datapath.tree))


def _product_order(datapath: Datapath) -> tuple[str, ...]:
    return tuple(name for name in datapath.special.priority if name != "acc")


def _wraps(datapath: Datapath) -> bool:
    return _adds_integers(datapath) and all(to.overflow == "wrap" for to in encodes(datapath))


def _only_grows(datapath: Datapath) -> bool:
    """Products of integers without sign, added to C of the result's format, which is limited."""
    unsigned = not any(formats.get(name).signed for name in (datapath.a, datapath.b))
    limited = all(to.overflow == "largest" and to.format == datapath.c for to in encodes(datapath))
    return unsigned and limited and _adds_integers(datapath)


def _adds_integers(datapath: Datapath) -> bool:
    """Exact integer sums of products and the accumulator alone."""
    exact = all(isinstance(node, (Exact, Products, Accumulator)) for node in walk(datapath.tree))
    return (
        exact and _has(datapath, Accumulator) and not any(formats.get(to.format).is_float for to in encodes(datapath))
    )


def _chain(datapath: Datapath) -> tuple[object, ...] | None:
    """The lanes of one FMA chain from c through all steps, with its rounding; None for any other tree."""
    tree = datapath.tree
    if not isinstance(tree, Fma) or not isinstance(tree.acc, Accumulator) or datapath.c != tree.to.format:
        return None
    if datapath.result is not None or datapath.operand_c != Operand():
        return None
    return tree.to, *(step[lane] for step in datapath.steps for lane in tree.lanes)


def _products_fit(datapath: Datapath) -> bool:
    """Products have no more bits than the format they are rounded to, which flushes; overflow ignores the rounding."""
    to = datapath.product.to
    a, b = formats.get(datapath.a), formats.get(datapath.b)
    if to is None or to.first is not None or datapath.scale is not None or not a.is_float:
        return False
    width = a.fraction_bits + b.fraction_bits + 2
    return width <= formats.get(to.format).fraction_bits and to.subnormals != "keep" and to.overflow != "ieee"


def _sums_on_grid(datapath: Datapath, path: str) -> bool:
    """Whether the Encode at ``path`` is that of an Add of two values of its own format."""
    holder = _at(datapath, path.removesuffix(".to"))
    if not isinstance(holder, Add):
        return False
    return all(_format_of(datapath, part) == holder.to.format for part in (holder.x, holder.y))


def _flushes(datapath: Datapath, path: str) -> bool:
    """Whether the Encode at ``path`` flushes, which makes zeros of nonzero sums."""
    return getattr(_at(datapath, path), "subnormals", "keep") != "keep"


def _format_of(datapath: Datapath, node: Node) -> str | None:
    if isinstance(node, Accumulator):
        return datapath.c
    if isinstance(node, Products):
        return datapath.product.to.format if datapath.product.to else None
    to = getattr(node, "to", None)
    return None if to is None else to.format


def _at(datapath: Datapath, path: str) -> object:
    """The part of a datapath that a dotted path names."""
    part: object = datapath
    for key in path.split("."):
        part = part[int(key)] if isinstance(part, tuple) and key.isdecimal() else getattr(part, key, None)
    return part


def _overflow_rules(datapath: Datapath) -> list[str]:
    """What each Encode makes of a result beyond the largest finite value."""
    return [
        {"RZ": "largest", "RO": "largest", "RU": "ieee", "RD": "ieee"}.get(to.rounding, "infinity")
        if to.overflow == "ieee"
        else to.overflow
        for to in encodes(datapath)
    ]


@dataclass(frozen=True)
class _Range:
    """How small the terms of a datapath's sums can be: lowest bit, and lowest label where it is not zero."""

    product_bit: int
    product_label: int
    other_bit: int  # of C and of what the accumulator holds between steps
    other_label: int


def _range(datapath: Datapath) -> _Range | None:
    """The range by the formats alone; None where scales, rounded products or first cuts move it."""
    every = encodes(datapath)
    if datapath.scale is not None or datapath.product.to is not None or any(to.first is not None for to in every):
        return None
    a, b = formats.get(datapath.a), formats.get(datapath.b)
    label = a.min_exponent + b.min_exponent
    others = [formats.get(name) for name in (*([datapath.c] if datapath.c else []), *(to.format for to in every))]
    return _Range(
        product_bit=label - a.fraction_bits - b.fraction_bits,
        product_label=label if datapath.product.label == "encoded" else label - a.fraction_bits - b.fraction_bits,
        other_bit=min(fmt.min_exponent - fmt.fraction_bits for fmt in others),
        other_label=min(fmt.min_exponent for fmt in others),
    )


def _plain_fused(datapath: Datapath) -> list[Fused] | None:
    """The fused nodes, where each adds products and encoded values by the node's own rules; else None."""
    nodes = [node for node in walk(datapath.tree) if isinstance(node, Fused)]
    terms = [term for node in nodes for term in node.terms]
    own = any(t.zero_exponent is not None or t.fraction_bits is not None or t.cutoff is not None for t in terms)
    inner = any(isinstance(t.of, (Fused, Exact)) and t.of.to is None for t in terms)
    return None if own or inner else nodes


def _zeros_cut_nothing(datapath: Datapath, other: Datapath) -> bool:
    """Where a zero shows the largest exponent, the cut below it lies under the lowest bit of every other term."""
    reach = _range(datapath)
    nodes = [_plain_fused(path) for path in (datapath, other)]
    if reach is None or None in nodes:
        return False
    for node in (node for found in nodes if found for node in found):
        if node.zero_exponent is None or node.fraction_bits is None:
            continue
        cut = node.zero_exponent - node.fraction_bits
        beside = node.zero_exponent <= reach.other_label or cut <= reach.other_bit
        if cut > reach.product_bit or not beside:
            return False
    return True


def _never_overflows(datapath: Datapath) -> bool:
    """One sum a step, of C and products that, all at their largest, cannot carry C over the largest result."""
    tree = datapath.tree
    if not isinstance(tree, (Fused, Exact)) or tree.to is None or datapath.result or datapath.c is None:
        return False
    if _range(datapath) is None or datapath.product.overflow_exponent is not None:
        return False
    if any(not isinstance(node, (Accumulator, Products)) for node in walk(tree) if node is not tree):
        return False
    a, b, c, d = (formats.get(name) for name in (datapath.a, datapath.b, datapath.c, tree.to.format))
    if (isinstance(tree, Fused) and tree.rounding != "RZ") or tree.to.rounding in ("RU", "RD", "RA"):
        return False
    if c.max_exponent > d.max_exponent or (tree.to.rounding not in ("RZ", "RO") and c.fraction_bits > d.fraction_bits):
        return False
    top = a.max_exponent + b.max_exponent + 2 + datapath.step_length.bit_length()
    return top < d.max_exponent - max(c.fraction_bits, d.fraction_bits) - 1


def _never_underflows(datapath: Datapath, path: str) -> bool:
    """Every sum is a multiple of the lowest place of the Encode at ``path``, which does not flush."""
    reach, holder = _range(datapath), _at(datapath, path.removesuffix(".to"))
    to = getattr(holder, "to", None)
    if reach is None or to is None or _flushes(datapath, path):
        return False
    fmt = formats.get(to.format)
    lowest = min(reach.product_bit, reach.other_bit)
    if isinstance(holder, Fused) and holder.fraction_bits is not None and _plain_fused(datapath) is not None:
        lowest = max(lowest, min(reach.product_label, reach.other_label) - holder.fraction_bits)
    return lowest >= fmt.min_exponent - fmt.fraction_bits
