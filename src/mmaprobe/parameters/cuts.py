"""Where sums are cut otherwise: as a whole or term by term, at other bits, with what keeps every bit cut at last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, permutations, product
from typing import NamedTuple

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import (
    MOST_BITS,
    Accumulator,
    Add,
    Datapath,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Term,
    Zero,
    walk,
)
from mmaprobe.parameters.groupings import root_encode
from mmaprobe.parameters.rewrite import map_node, map_terms

NamedDatapaths = Iterator[tuple[str, Datapath]]


def cuts(datapath: Datapath) -> NamedDatapaths:
    """Every other way to cut its sums, by name."""
    yield from chain(_sum_cut(datapath), _uncut(datapath), _further(datapath), _same_grid(datapath), _alone(datapath))


def _sum_cut(datapath: Datapath) -> NamedDatapaths:
    """The whole sum cut where a term of it was, that term one bit lower; or a term where the whole sum was."""
    tree, to = datapath.tree, root_encode(datapath)
    if not (isinstance(tree, Fused) and formats.get(to.format).is_float):
        return
    if to.first is not None:
        bits, rounding = to.first
        for deep in dict.fromkeys(term.fraction_bits for term in tree.terms):
            if deep is not None and deep > bits:
                yield f"{deep} bits at {bits} {rounding}", _cut_at(tree, datapath, (deep, None), (bits, rounding), None)
        return
    for deep, mode in dict.fromkeys((term.fraction_bits, term.rounding) for term in tree.terms):
        if deep is not None and deep > formats.get(to.format).fraction_bits:
            first = (deep, mode)
            yield f"the whole at {deep} {mode}", _cut_at(tree, datapath, first, (deep + 1, mode), first)


DENSE = 12
"""Bits beyond the result's that a sum which keeps every bit is tried without, one by one."""


def _uncut(datapath: Datapath) -> NamedDatapaths:
    """Sums that keep every bit (all with c, or all without) cut at the lowest bit that can matter, which few vectors
    show, and some bits above it; at a half, a quarter ... of that depth; and at every bit just below the result's last:
    the lowest that matters may be one of these."""
    if not formats.get(root_encode(datapath).format).is_float:
        return
    least = formats.get(root_encode(datapath).format).fraction_bits + 2
    few = _few_sums(datapath.tree)
    most = least + DENSE if few else least
    for with_c in (False, True):
        deepest = max(_cut_where_uncut(datapath.tree, datapath, with_c, MOST_BITS)[1], default=0)
        deep = [*(deepest >> i for i in range(deepest.bit_length())), *(deepest - by for by in FURTHER if few)]
        for bits in sorted(
            {bits for bits in (*deep, *range(least, min(deepest, most))) if bits >= least}, reverse=True
        ):
            tree = _cut_where_uncut(datapath.tree, datapath, with_c, bits)[0]
            yield f"what is uncut {'with' if with_c else 'without'} c at {bits} bits RZ", replace(datapath, tree=tree)


def _few_sums(tree: Node) -> bool:
    """Whether a tree adds so seldom that another cut of all its sums costs little."""
    return sum(len(node.lanes) if isinstance(node, Fma) else isinstance(node, Add) for node in walk(tree)) <= DENSE


FURTHER = (2, 4, 8)
"""Bits by which a deep cut is tried higher and lower: what refutes one bit need not refute more, where each is seldom
seen."""


def _further(datapath: Datapath) -> NamedDatapaths:
    """Terms that are cut below what the result shows, so that only what cancels or ties shows it, cut some bits
    higher or lower."""
    to = formats.get(root_encode(datapath).format)
    if not to.is_float:
        return
    sums = [node for node in walk(datapath.tree) if isinstance(node, Fused)]
    cuts = dict.fromkeys(term.fraction_bits for node in sums for term in node.terms)
    for deep, by in product(filter(None, cuts), (*(-bits for bits in FURTHER), *FURTHER)):
        if to.fraction_bits + 2 < (bits := deep + by) <= MOST_BITS:
            yield f"what is cut at {deep} bits at {bits}", replace(datapath, tree=_recut(datapath.tree, deep, bits))


def _alone(datapath: Datapath) -> NamedDatapaths:
    """One kind of term (c, products, sums) cut a bit higher or lower in all sums, where all terms of these are cut at
    the same bit and there are several kinds."""
    sums = [node for node in walk(datapath.tree) if isinstance(node, Fused)]
    cuts = {term.fraction_bits for node in sums for term in node.terms}
    kinds = dict.fromkeys(filter(None, (_kind(term.of) for node in sums for term in node.terms)))
    if len(cuts) != 1 or None in cuts or len(kinds) < 2:
        return
    (bits,) = cuts
    assert bits is not None
    for kind, other in product(kinds, (bits - 1, bits + 1)):
        if other >= 0:
            yield f"{kind} alone at {other} bits", map_terms(datapath, partial(_cut_of, kind, other))


def _cut_of(kind: str, bits: int, term: Term) -> Term:
    return replace(term, fraction_bits=bits) if _kind(term.of) == kind else term


def _kind(node: Node) -> str:
    """What a term of a sum is, in a word; nothing of a zero, of which nothing is cut."""
    if isinstance(node, Zero):
        return ""
    return {Accumulator: "c", Products: "products"}.get(type(node), "sums")


SHIFTS = (-1, 1, 4, 12)
"""Places by which bits and the exponent of a zero are moved together."""


def _same_grid(datapath: Datapath) -> NamedDatapaths:
    """More fraction bits of every term, and a zero that shows an exponent as much larger: where the others are zeros a
    tiny term is cut at the same place."""
    terms = [term for node in walk(datapath.tree) if isinstance(node, Fused) for term in node.terms]
    if not terms or any(term.fraction_bits is None or term.zero_exponent is None for term in terms):
        return
    for by in SHIFTS:
        with suppress(UsageError):  # fewer bits than none
            yield f"all at {by:+} bits, zeros at {by:+}", map_terms(datapath, lambda term, by=by: _shifted(term, by))  # type: ignore[misc]


def _shifted(term: Term, by: int) -> Term:
    assert term.fraction_bits is not None
    assert term.zero_exponent is not None
    return replace(term, fraction_bits=term.fraction_bits + by, zero_exponent=term.zero_exponent + by)


def _recut(tree: Node, old: int, new: int) -> Node:
    """The tree with terms of so many fraction bits cut at others."""

    def cut(node: Node) -> Node:
        if not isinstance(node, Fused):
            return node
        made = (replace(term, fraction_bits=new) if term.fraction_bits == old else term for term in node.terms)
        return replace(node, terms=tuple(made))

    return map_node(tree, cut)


def _cut_where_uncut(tree: Node, datapath: Datapath, with_c: bool, most: int) -> tuple[Node, list[int]]:
    """The tree with every sum of this kind that keeps whatever can matter cut, and at how many bits each, ``most`` or
    the last that can matter; additions and chains become sums."""
    deep: list[int] = []

    def cut(node: Node) -> Node:
        if any(isinstance(each, Accumulator) for each in walk(node)) != with_c:
            return node
        if isinstance(node, Fma):
            return _links(node, sum_of)
        if isinstance(node, Add):
            return sum_of(Fused((Term(node.x), Term(node.y)), node.to))
        if isinstance(node, Exact) and not node.scaled:
            return sum_of(Fused(tuple(map(Term, node.terms)), node.to)) if _count(node.terms) > 1 else node
        if isinstance(node, Fused) and _count(term.of for term in node.terms) > 1:
            return sum_of(node)
        return node

    def sum_of(node: Fused) -> Node:
        last = max(_depth(node, datapath), 0)
        kept = [term.fraction_bits is None or term.fraction_bits > last for term in node.terms]
        if not any(kept):
            return node
        deep.append(min(last, most))
        cut = (replace(term, fraction_bits=deep[-1], rounding="RZ") for term in node.terms)
        terms = tuple(new if whole else old for new, old, whole in zip(cut, node.terms, kept, strict=True))
        return replace(node, terms=terms)

    return map_node(tree, cut), deep


def _links(chain: Fma, sum_of: Callable[[Fused], Node]) -> Node:
    """A chain as one sum of two terms after the other; what begins with zero begins with its first product."""
    alone = isinstance(chain.acc, Zero)
    total: Node = Fma(chain.acc, chain.lanes[:1], chain.to) if alone else chain.acc
    for lane in chain.lanes[alone:]:
        total = sum_of(Fused((Term(total), Term(Products((lane,)))), chain.to))
    return total


def _count(nodes: Iterable[Node]) -> int:
    """How many terms these are."""
    return sum(len(node.lanes) if isinstance(node, Products) else 1 for node in nodes)


def _depth(node: Fused, datapath: Datapath) -> int:
    """How many bits below the largest term a bit may lie and still matter: behind what is left where two terms cancel,
    or beside a result in range.  Rounded to nearest it matters there if it decides a tie, which the largest term makes
    with its own bits, or with those of a third one."""
    terms = [each for part in _parts(node) for each in list(_ranges(part, datapath)) * _alike(part)]
    if _of_one_block(node, datapath):  # whose scales move all of it anywhere
        assert datapath.scale is not None
        of = _range([datapath.a, datapath.b], 0, [])
        return of.top - of.low + 2 * formats.get(datapath.scale.format).fraction_bits - 1
    if node.to is None:
        return max((x.top - y.low for x, y in permutations(terms, 2)), default=0) - 1
    to, deep = formats.get(node.to.format), [1]
    bits, mode = to.fraction_bits, node.to.rounding
    if node.to.first is not None and node.to.first[1].startswith("RN"):
        bits, mode = node.to.first
    for x, y in permutations(range(len(terms)), 2):
        thirds = [each.top for i, each in enumerate(terms) if i not in (x, y)]
        largest = min(terms[x].top, to.max_exponent + bool(thirds))
        low = terms[y].low if thirds else terms[y].least
        if mode.startswith("RN") and terms[x].width <= bits + 1:
            largest = min(largest, max(thirds, default=low) + bits + 1)
        deep.append(largest - low)
        left = max(low, to.min_exponent - to.fraction_bits - 1)
        deep += [min(terms[x].top, third) - left for third in thirds]
    return max(deep) - 1


def _of_one_block(node: Exact | Fused, datapath: Datapath) -> bool:
    """Whether all terms of a sum are products of one scale block, in every step."""
    parts = [part for part in _parts(node) if not isinstance(part, Zero)]
    lanes = [lane for part in parts if isinstance(part, Products) for lane in part.lanes]
    if datapath.scale is None or datapath.product.to or not all(isinstance(part, Products) for part in parts):
        return False
    return all(len({step[lane] // datapath.scale.size for lane in lanes}) == 1 for step in datapath.steps)


def _parts(node: Exact | Fused) -> tuple[Node, ...]:
    return node.terms if isinstance(node, Exact) else tuple(term.of for term in node.terms)


def _alike(node: Node) -> int:
    """How many terms of a node may meet, as far as it matters: two that cancel or make a tie, and one more."""
    return min(3, len(node.lanes)) if isinstance(node, Products) else 1


class _Range(NamedTuple):
    """Of values the lowest bit, the largest exponent, how many bits one has, and the least exponent but for zero."""

    low: int
    top: int
    width: int
    least: int


def _ranges(node: Node, datapath: Datapath) -> Iterator[_Range]:
    """Of what a sum adds: of products, of c and of what earlier steps leave, of results, of what is handed on."""
    if isinstance(node, Products):
        scales = [datapath.scale.format] * 2 if datapath.scale is not None else []
        of = [datapath.product.to.format] if datapath.product.to else [datapath.a, datapath.b, *scales]
        carries = len(of) - 1 if datapath.product.label == "normalised" else 0
        read = [datapath.product.to] if datapath.product.to else [datapath.operand_a, datapath.operand_b]
        yield _range(of, carries, [each.subnormals != "keep" for each in read])
    elif isinstance(node, Accumulator):
        to, more = root_encode(datapath), len(datapath.steps) > 1
        of_c = _range([datapath.c or datapath.d], 0, [datapath.operand_c.subnormals != "keep"])
        yield from dict.fromkeys([of_c, *([_range([to.format], 0, [to.subnormals != "keep"])] if more else [])])
    elif isinstance(node, (Exact, Fused)) and node.to is None:
        every = [each for part in _parts(node) for each in _ranges(part, datapath)]
        if not every:  # zeros alone
            return
        low, top = min(each.low for each in every), max(each.top for each in every)
        yield _Range(low, top, top - low + 1, low)
    elif not isinstance(node, Zero) and node.to is not None:
        yield _range([node.to.format], 0, [node.to.subnormals != "keep"])


def _range(names: list[str], carries: int, flushed: Sequence[bool]) -> _Range:
    """Of products of values of these formats, whose exponent may be so much more than theirs; ``flushed``: which of the
    formats' subnormals are zeros."""
    of = [formats.get(name) for name in names]
    low, top = sum(f.min_exponent - f.fraction_bits for f in of), sum(f.max_exponent for f in of) + carries
    least = low + sum(f.fraction_bits for f, zero in zip(of, flushed, strict=False) if zero)
    return _Range(low, top, sum(f.fraction_bits + 1 for f in of), least)


def _cut_at(
    tree: Fused, datapath: Datapath, old: tuple[int, str | None], new: tuple[int, str], first: tuple[int, str] | None
) -> Datapath:
    """Terms cut as ``old`` says (None: by any rounding) cut as ``new`` says, and this first cut of the whole sum."""
    terms = (
        replace(term, fraction_bits=new[0], rounding=new[1])
        if term.fraction_bits == old[0] and old[1] in (None, term.rounding)
        else term
        for term in tree.terms
    )
    assert tree.to is not None
    return replace(datapath, tree=replace(tree, terms=tuple(terms), to=replace(tree.to, first=first)))
