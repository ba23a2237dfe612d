"""Trees that are the same function because sums without a rounding inside have no order.

A datapath is written in one way (``canonical``): lanes of one sum ascending, exact
sums inside an exact sum dissolved, an addition or a link of a chain as the
exact sum of two that it is.  Where NaN payloads travel through the nodes the order written matters, and is kept.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

from mmaprobe import formats
from mmaprobe.equivalence.bounds import accumulator_span, highest, never_cuts, trace
from mmaprobe.equivalence.conversions import fits
from mmaprobe.equivalence.headroom import formats_of, granularity
from mmaprobe.equivalence.shown_labels import own_labels
from mmaprobe.equivalence.spans import DatapathSpans, Span
from mmaprobe.equivalence.vain_cuts import uncut_groups, uncut_pair, without_vain_zeros
from mmaprobe.equivalence.zero_signs import complements
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Term,
    Zero,
    lanes_of,
    walk,
)
from mmaprobe.parameters.rewrite import map_node

LONGEST = 64
"""Lanes of a chain that is looked at as a sum without order; longer ones stay as they are."""


def same_sum(old: Datapath, new: Datapath) -> bool:
    """Whether two datapaths differ in their trees and orders alone, and are one when written canonically."""
    if old == new or _roundings(old) != _roundings(new):
        return False
    return _but_sums(old) == _but_sums(new) and canonical(old) == canonical(new)


@lru_cache(maxsize=8)
def _roundings(datapath: Datapath) -> frozenset[Encode]:
    """What the sums of a tree are rounded to as floats: writing it canonically leaves this as it is."""
    every = (getattr(node, "to", None) for node in walk(datapath.tree))
    return frozenset(to for to in every if to is not None and formats.get(to.format).is_float)


def _but_sums(datapath: Datapath) -> Datapath:
    plain = Exact((Products(tuple(range(datapath.k))),), getattr(datapath.tree, "to", None))
    return replace(datapath, tree=plain, step=0, order=None)


@lru_cache(maxsize=256)
def canonical(datapath: Datapath) -> Datapath:
    """The datapath in the one way of writing; the same function.

    A sum that was written anew may show that another one loses nothing: what comes out is not changed by a second turn.
    """
    if datapath.product.split is not None:  # lanes of several terms
        return datapath
    found = _rewritten(datapath)
    if found == datapath:
        found = without_vain_zeros(datapath)
    return found if found == datapath else canonical(found)


def _rewritten(datapath: Datapath) -> Datapath:
    ordered = datapath.special.nan == "local" and formats.get(datapath.d).is_float
    ranks = _ranks(datapath.steps[0])
    datapath = replace(datapath, tree=map_node(datapath.tree, partial(uncut_pair, datapath)))
    datapath = with_own_labels(uncut_groups(datapath))
    tree = _plain(_relaned(_lossless(datapath), ranks), ordered)
    if len(datapath.steps) == 1:
        return replace(datapath, tree=tree, step=0, order=None)
    steps = [[lane for _, lane in sorted(zip(ranks, lanes, strict=True))] for lanes in datapath.steps]
    for bag in () if ordered else _bags(tree):
        for lanes in steps:
            for place, lane in zip(bag, sorted(lanes[place] for place in bag), strict=True):
                lanes[place] = lane
    order = tuple(lane for lanes in steps for lane in lanes)
    return replace(datapath, tree=tree, order=None if order == tuple(range(datapath.k)) else order)


def with_own_labels(datapath: Datapath) -> Datapath:
    """The datapath whose terms show their own labels, where other labels tell nothing."""

    def at(node: Node) -> Node:
        terms = node.terms if isinstance(node, Fused) else ()
        return own_labels(node, tuple(_fineness(datapath, term.of) for term in terms))

    return replace(datapath, tree=map_node(datapath.tree, at))


def _fineness(datapath: Datapath, node: Node) -> int | None:
    """How far below its label the last bit of a node lies at most; None where nothing is known."""
    held = [formats.get(name) for name in formats_of(datapath, node)]
    if held and all(fmt.is_float for fmt in held):
        return max(fmt.fraction_bits for fmt in held)
    return granularity(node)


def _ranks(lanes: tuple[int, ...]) -> tuple[int, ...]:
    """The place of each lane among these, the lowest being 0."""
    places = {lane: place for place, lane in enumerate(sorted(lanes))}
    return tuple(places[lane] for lane in lanes)


def _bags(tree: Node) -> list[tuple[int, ...]]:
    """The lanes of a step that are in one sum together, so that their order means nothing."""
    return [node.lanes for node in walk(tree) if isinstance(node, Products)]


def _plain(node: Node, ordered: bool) -> Node:
    """Children first; ``ordered``: the order of the terms matters."""
    if isinstance(node, Products):
        return node if ordered else Products(tuple(sorted(node.lanes)))
    if isinstance(node, Add):
        return _sum(Exact((_plain(node.x, ordered), _plain(node.y, ordered)), node.to), ordered)
    if isinstance(node, Fma):
        return _chain(node, _plain(node.acc, ordered), ordered)
    if isinstance(node, Exact):
        return _alone(_sum(replace(node, terms=tuple(_plain(term, ordered) for term in node.terms)), ordered))
    if isinstance(node, Fused):
        terms = tuple(replace(term, of=_plain(term.of, ordered)) for term in _but_zeros(node))
        return replace(node, terms=terms if ordered else tuple(sorted(_gathered(terms), key=repr)))
    return node


def _but_zeros(node: Fused) -> tuple[Term, ...]:
    """The terms without zeros that show no exponent, where no zero sum is negative anyhow."""
    if node.to is None or node.to.zero != "positive" or node.is_complemented:
        return node.terms
    return tuple(t for t in node.terms if not isinstance(t.of, Zero) or t.zero_exponent is not None) or node.terms


def _chain(node: Fma, acc: Node, ordered: bool) -> Node:
    if ordered or len(node.lanes) > LONGEST:
        return replace(node, acc=acc)
    for lane in node.lanes:
        acc = _sum(Exact((acc, Products((lane,))), node.to), ordered)
    return acc


def _sum(node: Exact, ordered: bool) -> Node:
    """Exact sums inside dissolved, lanes in one bag, terms in one order; where that matters, lane by lane."""
    if ordered:
        return replace(node, terms=tuple(part for term in node.terms for part in _singles(term)))
    terms: list[Node] = []
    for term in node.terms:
        inside = isinstance(term, Exact) and term.to is None and not term.scaled
        terms += term.terms if inside and isinstance(term, Exact) else (term,)
    lanes = tuple(sorted(lane for term in terms for lane in lanes_of(term) if isinstance(term, Products)))
    others = sorted((term for term in terms if not isinstance(term, Products)), key=repr)
    return replace(node, terms=(*([Products(lanes)] if lanes else []), *others))


def _alone(node: Node) -> Node:
    """What a handed-on sum of a single value is: that value, label and sign of a zero included."""
    if not isinstance(node, Exact) or len(node.terms) > 1 or node.to is not None or node.scaled:
        return node
    one = node.terms[0]
    return node if isinstance(one, Products) and len(one.lanes) > 1 else one


def _singles(node: Node) -> tuple[Node, ...]:
    return tuple(Products((lane,)) for lane in node.lanes) if isinstance(node, Products) else (node,)


def _gathered(terms: tuple[Term, ...]) -> list[Term]:
    """Terms of products with the same rules as one."""
    bags: dict[Term, list[int]] = {}
    others = []
    for term in terms:
        if isinstance(term.of, Products):
            bags.setdefault(replace(term, of=Zero()), []).extend(term.of.lanes)
        else:
            others.append(term)
    return [replace(rules, of=Products(tuple(sorted(lanes)))) for rules, lanes in bags.items()] + others


def _relaned(node: Node, lanes: tuple[int, ...]) -> Node:
    """Lane i of the node becomes ``lanes[i]``."""
    if isinstance(node, Products):
        return Products(tuple(lanes[lane] for lane in node.lanes))
    if isinstance(node, Fma):
        return replace(node, acc=_relaned(node.acc, lanes), lanes=tuple(lanes[lane] for lane in node.lanes))
    if isinstance(node, Add):
        return replace(node, x=_relaned(node.x, lanes), y=_relaned(node.y, lanes))
    if isinstance(node, Fused):
        return replace(node, terms=tuple(replace(term, of=_relaned(term.of, lanes)) for term in node.terms))
    if isinstance(node, Exact):
        return replace(node, terms=tuple(_relaned(term, lanes) for term in node.terms))
    return node


def _lossless(datapath: Datapath) -> Node:
    """The tree without the formats inside that no sum leaves, and without alignments that cut nothing."""
    if not any(isinstance(node, Fused) or (isinstance(node, Exact) and node.to) for node in walk(datapath.tree)):
        return datapath.tree
    found = trace(datapath, accumulator_span(datapath))
    tree = _open(datapath.tree, "tree", found)
    return (
        _unrounded(tree, "tree", trace(replace(datapath, tree=tree), found.spans["c"]))
        if _plain_zeros(datapath)
        else tree
    )


def _plain_zeros(datapath: Datapath) -> bool:
    """Whether a sum of floats may be dissolved in another one: its zeros have the signs that the other gives, and NaNs
    do not tell one sum from two."""
    every = [to for node in walk(datapath.tree) if (to := getattr(node, "to", None)) is not None]
    down = {to.rounding == "RD" for to in every}
    drawn = datapath.most_random_bits or datapath.product.overflow_exponent is not None
    return len(down) == 1 and datapath.special.nan != "local" and not drawn and not complements(datapath)


def _unrounded(node: Node, path: str, found: DatapathSpans, free: bool = False) -> Node:
    """Without the roundings of exact sums inside that change nothing; ``free``: no alignment sees the label."""
    if isinstance(node, Add):
        x, y = (_unrounded(part, f"{path}.{key}", found, True) for key, part in (("x", node.x), ("y", node.y)))
        fit = free and fits(found.spans[f"{path}.to"], node.to)
        return Exact((x, y)) if fit else replace(node, x=x, y=y)
    if not isinstance(node, Exact) or node.scaled:
        return node
    inside = free or node.to is not None
    terms = tuple(_unrounded(term, f"{path}.terms.{i}", found, inside) for i, term in enumerate(node.terms))
    fit = free and node.to is not None and fits(found.spans[f"{path}.to"], node.to)
    return replace(node, terms=terms, to=None if fit else node.to)


def _open(node: Node, path: str, found: DatapathSpans, above: int | None = None) -> Node:
    """``above``: the exponent that the sum above shows for a zero here."""
    if isinstance(node, Fused):
        parts = [found.spans[f"{path}.terms.{i}.of"] for i in range(len(node.terms))]
        shown = [term.zero_exponent for term in node.terms]
        same = [None if term.label_offset else term.zero_exponent for term in node.terms]
        inside = [_open(t.of, f"{path}.terms.{i}.of", found, same[i]) for i, t in enumerate(node.terms)]
        low = min(part.label_low for part in parts)
        own = not any(term.label_offset for term in node.terms)
        unlabelled = node.to is not None or (
            own and all(zero is None or (zero == above and zero <= low) for zero in shown)
        )
        if never_cuts(node, parts) and unlabelled:
            return Exact(tuple(inside), node.to)
        terms = tuple(replace(term, of=of) for term, of in zip(node.terms, inside, strict=True))
        if node.is_complemented:
            return replace(node, terms=terms)
        top = highest(node, parts)
        return replace(node, terms=tuple(t for term in terms for t in _dissolved(term, found.spans["product"], top)))
    if not isinstance(node, Exact):
        return node
    node = replace(node, terms=tuple(_open(term, f"{path}.terms.{i}", found) for i, term in enumerate(node.terms)))
    if path == "tree" or node.to is None or formats.get(node.to.format).is_float or node.scaled:
        return node
    fmt, span = formats.get(node.to.format), found.spans[f"{path}.to"]
    return replace(node, to=None) if fmt.signed and span.top < fmt.bits else node


def _dissolved(term: Term, product: Span, top: int) -> list[Term]:
    """A term that is an exact group of products as these products, where none of them can be cut here.

    The group's label is the largest of theirs, so the alignment is to the same exponent; a zero among them shows none
    in the group and, here, one that is not above the labels of the others.
    """
    bits, zero, group = term.fraction_bits, term.zero_exponent, term.of
    if not isinstance(group, Exact) or group.to is not None or group.scaled or term.cutoff is not None:
        return [term]
    whole = bits is None or top - bits <= product.lowest
    hidden = zero is None or zero <= product.label_low + term.label_offset
    if not whole or not hidden or not all(isinstance(part, Products) for part in group.terms):
        return [term]
    return [replace(term, of=part) for part in group.terms]


def one_operation(old: Datapath, new: Datapath) -> bool:
    """One fma of one lane: its own choice among a, b and acc is the first NaN of a0, b0 and c."""
    tree, rules = old.tree, {old.special.nan, new.special.nan}
    single = old.k == 1 and isinstance(tree, Fma) and isinstance(tree.acc, Accumulator) and old.c is not None
    if not single or rules != {"local", "global"} or replace(old, special=new.special) != new:
        return False
    same = all(
        getattr(old.special, name) == getattr(new.special, name) for name in ("code", "quiet", "signalling_first")
    )
    return same and _operands(old) == _operands(new)


def _operands(datapath: Datapath) -> tuple[str, ...]:
    names = {"a0": "a", "b0": "b", "c": "acc"}
    return tuple(names.get(name, name) for name in datapath.special.priority)
