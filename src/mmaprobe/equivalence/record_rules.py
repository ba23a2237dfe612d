"""Rules of the record alone: changes that are the same function whatever the values are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from mmaprobe import formats
from mmaprobe.equivalence.bounds import accumulator_span, highest, trace
from mmaprobe.equivalence.complements import stays_normal, tiny_c_unseen
from mmaprobe.equivalence.conversions import labels_read, odd_first, products_fit, rounded_alike
from mmaprobe.equivalence.nan_exhaustion import nan_rules_agree
from mmaprobe.equivalence.repeated_cuts import cut_again, cut_between, zero_cut_again
from mmaprobe.equivalence.spans import Span
from mmaprobe.equivalence.sum_order import one_operation, same_sum
from mmaprobe.equivalence.vain_cuts import vain_zeros
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
    Products,
    Term,
    Zero,
    walk,
)
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.rewrite import encodes
from mmaprobe.parameters.table import flatten, spelt_out_table


def part_at(datapath: Datapath, path: str) -> object:
    """The part of a datapath that a dotted path names; None where there is none."""
    part: object = datapath
    for key in path.split("."):
        if isinstance(part, tuple) and key.isdecimal():
            part = part[int(key)] if int(key) < len(part) else None
        else:
            part = getattr(part, key, None)
    return part


@lru_cache(maxsize=8)
def changed_fields(old: Datapath, new: Datapath) -> frozenset[str]:
    """The fields in which two datapaths differ, every rule of an aligned sum at its terms.  Kept, since every rule asks
    for them."""
    before, after = _flat(old), _flat(new)
    return frozenset(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


@lru_cache(maxsize=512)
def _flat(datapath: Datapath) -> dict[str, object]:
    return dict(flatten(spelt_out_table(datapath)))


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
    return _only(old, new, "product.label") and not labels_read(old.tree)


def _same_overflow(old: Datapath, new: Datapath, place: str) -> bool:
    return _only(old, new, f"{place}.overflow") and _overflow_rules(old) == _overflow_rules(new)


def _priority_unread(old: Datapath, new: Datapath, place: str) -> bool:
    same = _product_order(old) == _product_order(new)
    return _only(old, new, "special.priority") and old.special.nan == "local" and same and not _has(old, Fma)


def _small_products(old: Datapath, new: Datapath, place: str) -> bool:
    """One sum of C and what is made of products: with the most that alignment, by the largest exponent that any term
    shows, and first cut add, all of it is less than half a last place of the largest value, so that C stays below the
    largest, and nothing without C comes near."""
    tree = old.tree
    if not _only(old, new, "tree.to.overflow") or old.result or old.c is None or not isinstance(tree, (Fused, Exact)):
        return False
    parts = [term.of if isinstance(term, Term) else term for term in tree.terms]
    inside = [part for part in parts if not isinstance(part, Accumulator)]
    if len(inside) + 1 != len(parts) or any(_has_accumulator(part) for part in inside) or tree.to is None:
        return False
    c, d, limit = formats.get(old.c), formats.get(tree.to.format), old.product.overflow_exponent
    kept = _c_is_whole(tree, c.fraction_bits)
    spans = trace(old, accumulator_span(old)).spans
    finite = limit is None or spans["product.exact"].top <= limit
    if (
        not (d.infinity and finite and kept)
        or tree.to.rounding in ("RU", "RD", "RA")
        or c.max_exponent > d.max_exponent
    ):
        return False
    if tree.to.rounding not in ("RZ", "RO") and max(c.fraction_bits, 1) > d.fraction_bits:
        return False
    of = ".of" if isinstance(tree, Fused) else ""
    every = [spans[f"tree.terms.{i}{of}"] for i in range(len(parts))]
    if isinstance(tree, Fused) and highest(tree, every) > max(c.max_exponent, d.max_exponent) + _offset_of_c(tree):
        return False
    count = sum(len(part.lanes) if isinstance(part, Products) else 1 for part in inside)
    top = max(span.top for span, part in zip(every, parts, strict=True) if not isinstance(part, Accumulator))
    added = count * Fraction(2) ** top + _added(tree, every, count)
    cut = Fraction(2) ** (d.max_exponent + 2 - tree.to.first[0]) if tree.to.first else 0
    return added + cut < Fraction(2) ** (d.max_exponent - max(c.fraction_bits, d.fraction_bits) - 1)


def _offset_of_c(tree: Fused) -> int:
    """The places by which C shows another exponent than its own."""
    return max(term.label_offset for term in tree.terms if isinstance(term.of, Accumulator))


def _c_is_whole(tree: Fused | Exact, bits: int) -> bool:
    """Whether C, where the label that it shows is the largest, is not cut or only toward zero."""
    if isinstance(tree, Exact):
        return not tree.scaled
    rules = [
        (term.fraction_bits, term.rounding, term.label_offset)
        for term in tree.terms
        if isinstance(term.of, Accumulator)
    ]
    return all(n is None or n - offset >= bits or rounding == "RZ" for n, rounding, offset in rules)


def _added(tree: Fused | Exact, parts: Sequence[Span], count: int) -> Fraction:
    """What the alignment can add, at most, to the sizes of so many terms beside C: a unit where it cuts them; where
    they are negated by ones' complement, a unit of the sum's last place to each and to C."""
    if isinstance(tree, Exact):
        return Fraction(0)
    label, added = highest(tree, parts), Fraction(0)
    rules = [(term.fraction_bits, term.rounding) for term in tree.terms if not isinstance(term.of, Accumulator)]
    for bits in sorted(bits for bits, rounding in rules if bits is not None and rounding != "RZ")[:1]:
        added += count * Fraction(2) ** (label - bits)
    if tree.is_complemented:
        assert tree.last_place is not None
        added += (count + 1) * Fraction(2) ** (label - tree.last_place)
    return added


def _small_sum(old: Datapath, new: Datapath, place: str) -> bool:
    """Add at the root: what is added to C is too small to carry the largest C over the top, rounded to nearest, inward
    or to odd (which the largest is); rounded outward it does, and there the IEEE rule gives the infinity."""
    tree = old.tree
    if not _only(old, new, "tree.to.overflow") or not isinstance(tree, Add) or tree.to.first is not None:
        return False
    rules = {old.root.overflow, new.root.overflow}
    parts = [part for part in (tree.x, tree.y) if not isinstance(part, Accumulator)]
    d = formats.get(tree.to.format)
    if (
        len(parts) != 1
        or not d.infinity
        or old.c != tree.to.format
        or old.result is not None
        or (tree.to.rounding in ("RU", "RD", "RA") and "largest" in rules)
    ):
        return False
    if _has_accumulator(parts[0]):
        return False
    beside = "tree.x" if tree.y == Accumulator() else "tree.y"
    return trace(old, accumulator_span(old)).spans[beside].top < d.max_exponent - d.fraction_bits


def _has_accumulator(node: Node) -> bool:
    return any(isinstance(part, Accumulator) for part in walk(node))


def _code_unread(old: Datapath, new: Datapath, place: str) -> bool:
    """By cause: where a and b have no infinities and nothing inside a step overflows, no operation is invalid; a NaN of
    a or b has a code of its own, and that of C stays."""
    if not _only(old, new, "special.code") or old.special.nan != "cause" or old.scale is not None:
        return False
    exact = (old.product.to, old.product.split, old.product.overflow_exponent) == (None, None, None)
    inside = [node for node in walk(old.tree) if node is not old.tree and getattr(node, "to", None) is not None]
    finite = not any(formats.get(name).infinity for name in (old.a, old.b))
    return finite and exact and not inside and all(formats.get(to.format).infinity for to in encodes(old))


def _modular(old: Datapath, new: Datapath, place: str) -> bool:
    return _same_but_steps(old, new) and _wraps(old) and _wraps(new)


def _grows(old: Datapath, new: Datapath, place: str) -> bool:
    return _same_but_steps(old, new) and _only_grows(old) and _only_grows(new)


def _same_chain(old: Datapath, new: Datapath, place: str) -> bool:
    by_cause = old.special.nan == "cause"  # which a step says
    return not by_cause and _same_but_steps(old, new) and _chain(old) is not None and _chain(old) == _chain(new)


def _same_but_steps(old: Datapath, new: Datapath) -> bool:
    """All but the tree and its steps alike, lane for lane."""
    fields = (
        "a", "b", "c", "d", "k", "operand_a", "operand_b", "operand_c", "product", "scale", "result", "special",
        "random",
    )  # fmt: skip
    return old != new and all(getattr(old, name) == getattr(new, name) for name in fields)


def _has(datapath: Datapath, kind: type[Node]) -> bool:
    return any(isinstance(node, kind) for node in walk(datapath.tree))


def _product_order(datapath: Datapath) -> tuple[str, ...]:
    return tuple(name for name in datapath.special.priority if name != "acc")


def _wraps(datapath: Datapath) -> bool:
    return _adds_integers(datapath) and all(to.overflow == "wrap" for to in encodes(datapath))


def _only_grows(datapath: Datapath) -> bool:
    """Products of integers without sign, added to C of the result's format, which is limited: no sum without C is."""
    unsigned = not any(formats.get(name).signed for name in (datapath.a, datapath.b))
    limited = all(to.overflow == "largest" and to.format == datapath.c for to in encodes(datapath))
    with_c = all(_has_accumulator(node) for node in walk(datapath.tree) if getattr(node, "to", None) is not None)
    return unsigned and limited and with_c and _adds_integers(datapath)


def _adds_integers(datapath: Datapath) -> bool:
    """Exact integer sums of products, the accumulator, once, and zeros alone."""
    exact = all(isinstance(node, (Exact, Products, Accumulator, Zero)) for node in walk(datapath.tree))
    once = sum(isinstance(node, Accumulator) for node in walk(datapath.tree)) == 1
    return exact and once and not any(formats.get(to.format).is_float for to in encodes(datapath))


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
    return list(map(_overflow_rule, encodes(datapath)))


def _overflow_rule(to: Encode) -> str:
    fmt = formats.get(to.format)
    if fmt.is_float and fmt.infinity_code is None and fmt.nan_code is None:
        return "largest"
    if to.overflow != "ieee":
        return to.overflow
    return {"RZ": "largest", "RO": "largest", "RU": "ieee", "RD": "ieee"}.get(to.rounding, "infinity")


Identity = Callable[[Datapath, Datapath, str], bool]
IDENTITIES: dict[str, tuple[Identity, str]] = {
    "commutes": (_commutes, "addition commutes, and which NaN comes out does not depend on the order of the operands"),
    "label unread": (_label_unread, "nothing aligns products, so nothing reads their label"),
    "same overflow": (_same_overflow, "under these roundings the IEEE rule gives the same result beyond the largest "
                      "finite value"),
    "priority unread": (_priority_unread, "there is no fma, so the place of the accumulator is never read"),
    "small products": (_small_products, "products are too small to carry the largest C over the largest finite value"),
    "small sum": (_small_sum, "the sum of products is too small to carry the largest C over the largest finite value"),
    "code unread": (_code_unread, "no operand of a product is infinite, so no operation is invalid, and a NaN of an "
                    "operand has another code"),
    "modular": (_modular, "sums that wrap do not depend on their grouping"),
    "grows": (_grows, "no product is negative, so a sum limited in steps is the sum limited once"),
    "vain zeros": (lambda old, new, place: vain_zeros(old, new), "a zero's exponent is below one shown beside it, cuts "
                   "nothing off, or what is left rounds to zero"),
    "same sum": (lambda old, new, place: same_sum(old, new), "terms of one sum have no order, a sum inside that loses "
                 "nothing is no group, and an exponent shown elsewhere that cuts nothing is the term's own"),
    "one operation": (lambda old, new, place: one_operation(old, new), "one lane is one operation, whose choice among "
                      "its NaNs is the choice among all operands"),
    "products fit": (lambda old, new, place: products_fit(old, new), "every product is a value of the format"),
    "cut again": (cut_again, "where the alignment cuts this term, the sum is cut again, downward and no lower"),
    "zero cut again": (zero_cut_again, "with C zero the sum is cut again, downward and no lower than by the exponent "
                       "of C's zero"),
    "cut between": (lambda old, new, place: cut_between(old, new), "the next step cuts off what the wider format "
                    "keeps of a step's result"),
    "every kind of operand": (lambda old, new, place: nan_rules_agree(old, new), "the NaN rules agree on every choice "
                              "of zero, finite, infinite and NaN operands; each was evaluated"),
    "stays normal": (lambda old, new, place: stays_normal(old, new), "no sum is tiny: C beside zeros stays normal, and "
                     "what products make has no bit so low"),
    "tiny C unseen": (lambda old, new, place: tiny_c_unseen(old, new), "a subnormal C becomes zero in any case: "
                      "flushed alone, cut beside a product"),
    "odd first": (lambda old, new, place: odd_first(old, new), "a rounding to odd with two more bits loses nothing "
                  "that the conversion after it sees"),
    "rounded alike": (lambda old, new, place: rounded_alike(old, new), "the format between loses nothing that the last "
                      "conversion sees"),
    "same chain": (_same_chain, "a chain of fused multiply-adds is the same chain however it is cut into steps"),
}  # fmt: skip
"""By name: the check and the sentence."""
