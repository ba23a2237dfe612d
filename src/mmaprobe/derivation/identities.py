"""Rules of the record alone: changes that are the same function whatever the values are."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from mmaprobe import formats
from mmaprobe.derivation.bounds import operand_span, product_span
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
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import flatten, to_table


def part_at(datapath: Datapath, path: str) -> object:
    """The part of a datapath that a dotted path names; None where there is none."""
    part: object = datapath
    for key in path.split("."):
        part = part[int(key)] if isinstance(part, tuple) and key.isdecimal() else getattr(part, key, None)
    return part


def changed_fields(old: Datapath, new: Datapath) -> set[str]:
    """The fields in which two datapaths differ."""
    before, after = _flat(old), _flat(new)
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


@lru_cache(maxsize=512)
def _flat(datapath: Datapath) -> dict[str, object]:
    return dict(flatten(to_table(datapath, full=True)))


def _only(old: Datapath, new: Datapath, *fields: str) -> bool:
    """Whether the two differ in these fields alone."""
    keys = changed_fields(old, new)
    return bool(keys) and keys <= set(fields)


def _commutes(old: Datapath, new: Datapath, place: str) -> bool:
    return (
        old.special.nan != "local"
        and isinstance(part_at(old, place), Add)
        and mutate(old, f"{place}.swap", "true") == new
    )


def _label_unread(old: Datapath, new: Datapath, place: str) -> bool:
    return _only(old, new, "product.label") and not _has(old, Fused)


def _same_overflow(old: Datapath, new: Datapath, place: str) -> bool:
    return _only(old, new, f"{place}.overflow") and _overflow_rules(old) == _overflow_rules(new)


def _priority_unread(old: Datapath, new: Datapath, place: str) -> bool:
    same = _product_order(old) == _product_order(new)
    return _only(old, new, "special.priority") and old.special.nan == "local" and same and not _has(old, Fma)


def _unread(old: Datapath, new: Datapath, place: str) -> bool:
    """A rule of a fused node that every term overrides."""
    node = part_at(old, place)
    if not isinstance(node, Fused):
        return False
    read = {name for name in ("fraction_bits", "rounding", "zero_exponent")
            if any(getattr(term, name) is None for term in node.terms)}  # fmt: skip
    cut = any(term.fraction_bits is not None for term in node.terms) or node.fraction_bits is not None
    names = {"fraction_bits", "rounding", "zero_exponent"} - read | ({"rounding"} if not cut else set())
    return _only(old, new, *(f"{place}.{name}" for name in names))


def _small_products(old: Datapath, new: Datapath, place: str) -> bool:
    """One sum of C and products, cut or rounded toward zero, or of so small products that C keeps its last place."""
    tree = old.tree
    if (
        not _only(old, new, "tree.to.overflow")
        or old.result
        or old.c is None
        or old.product.overflow_exponent is not None
    ):
        return False
    if not isinstance(tree, (Fused, Exact)) or tree.to is None or (isinstance(tree, Fused) and tree.rounding != "RZ"):
        return False
    if any(not isinstance(node, (Accumulator, Products)) for node in walk(tree) if node is not tree):
        return False
    c, d = formats.get(old.c), formats.get(tree.to.format)
    if not d.infinity:
        return False
    if tree.to.rounding in ("RU", "RD", "RA") or tree.to.first is not None or c.max_exponent > d.max_exponent:
        return False
    if tree.to.rounding not in ("RZ", "RO") and c.fraction_bits > d.fraction_bits:
        return False
    top = product_span(old).top + old.step_length.bit_length()
    return top < d.max_exponent - max(c.fraction_bits, d.fraction_bits) - 1


def _small_sum(old: Datapath, new: Datapath, place: str) -> bool:
    """Add at the root: what is added to C is too small to carry the largest C, rounded to nearest, over the top."""
    tree = old.tree
    if not _only(old, new, "tree.to.overflow") or not isinstance(tree, Add) or tree.to.first is not None:
        return False
    parts = [part for part in (tree.x, tree.y) if not isinstance(part, Accumulator)]
    d = formats.get(tree.to.format)
    if (
        len(parts) != 1
        or not d.infinity
        or old.c != tree.to.format
        or old.result is not None
        or not tree.to.rounding.startswith("RN")
    ):
        return False
    if _has_accumulator(parts[0]) or any(isinstance(node, (Fused, Fma)) for node in walk(parts[0])):
        return False
    span = operand_span(old.a).top + operand_span(old.b).top + old.step_length.bit_length() + 1
    return old.scale is None and span + old.step_length < d.max_exponent - d.fraction_bits - 1


def _has_accumulator(node: Node) -> bool:
    return any(isinstance(part, Accumulator) for part in walk(node))


def _modular(old: Datapath, new: Datapath, place: str) -> bool:
    return _same_but_steps(old, new) and _wraps(old) and _wraps(new)


def _grows(old: Datapath, new: Datapath, place: str) -> bool:
    return _same_but_steps(old, new) and _only_grows(old) and _only_grows(new)


def _same_chain(old: Datapath, new: Datapath, place: str) -> bool:
    return _same_but_steps(old, new) and _chain(old) is not None and _chain(old) == _chain(new)


def _same_but_steps(old: Datapath, new: Datapath) -> bool:
    """All but the tree and its steps alike, lane for lane."""
    fields = ("a", "b", "c", "d", "k", "operand_a", "operand_b", "operand_c", "product", "scale", "result", "special")
    return old != new and all(getattr(old, name) == getattr(new, name) for name in fields)


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


def _overflow_rules(datapath: Datapath) -> list[str]:
    """What each Encode makes of a result beyond the largest finite value."""
    return [
        {"RZ": "largest", "RO": "largest", "RU": "ieee", "RD": "ieee"}.get(to.rounding, "infinity")
        if to.overflow == "ieee"
        else to.overflow
        for to in encodes(datapath)
    ]


Identity = Callable[[Datapath, Datapath, str], bool]
IDENTITIES: dict[str, tuple[Identity, str]] = {
    "commutes": (_commutes, "addition commutes, and which NaN comes out does not depend on the order of the operands"),
    "label unread": (_label_unread, "no node aligns terms, so nothing reads a product's label"),
    "same overflow": (_same_overflow, "under these roundings the IEEE rule gives the same result beyond the largest "
                      "finite value"),
    "priority unread": (_priority_unread, "there is no fma, so the place of the accumulator is never read"),
    "unread": (_unread, "every term has a rule of its own, so that of the node is never read"),
    "small products": (_small_products, "products are too small to carry the largest C over the largest finite value"),
    "small sum": (_small_sum, "the sum of products is too small to carry the largest C over the largest finite value"),
    "modular": (_modular, "sums that wrap do not depend on their grouping"),
    "grows": (_grows, "no product is negative, so a sum limited in steps is the sum limited once"),
    "same chain": (_same_chain, "a chain of fused multiply-adds is the same chain however it is cut into steps"),
}  # fmt: skip
"""By name: the check and the sentence."""
