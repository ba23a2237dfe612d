"""Structural changes to a datapath, each under a name: ``mutate(datapath, "grouping", "halves, cut")`` makes one.

Fields change one value of a record; what changes here is the tree: which lane is
where, which products are summed together, where C enters, what is between steps, whether terms or
the whole sum is cut, and the kind of NaN rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, permutations, product
from typing import Any, NamedTuple

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief
from mmaprobe.parameters.datapath import (
    MOST_BITS,
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Special,
    Term,
    Zero,
    lanes_of,
    walk,
)
from mmaprobe.parameters.groupings import children_in_place, grouping, root_encode
from mmaprobe.parameters.rewrite import map_node

NamedDatapaths = Iterator[tuple[str, Datapath]]
MOST_STEPS = 16
"""A datapath of more steps is not written out as one tree."""


def moves(datapath: Datapath) -> Iterator[tuple[str, str, Datapath]]:
    """(field, value, changed datapath) of every structural change that makes sense."""
    for field, make in MOVES.items():
        for value, changed in make(datapath):
            if changed != datapath:
                yield field, value, changed


def moved(datapath: Datapath, field: str, value: str) -> Datapath:
    """The datapath with one of its structural changes; UsageError where it has no such."""
    found = dict(MOVES[field](datapath))
    if value not in found:
        raise UsageError(f"no {field} {brief(value)}; there is {', '.join(map(repr, found)) or 'none'}")
    return found[value]


# -- which lane is where in a step


def _arrangement(datapath: Datapath) -> NamedDatapaths:
    n = datapath.step_length
    if n > 1:
        lanes = range(n)
        yield from _relaned(datapath, "reversed", lanes[::-1])
        if n > 2:
            yield from _relaned(datapath, "even and odd", (*lanes[::2], *lanes[1::2]))
            yield from _relaned(datapath, "first two exchanged", (1, 0, *lanes[2:]))
            yield from _relaned(datapath, "first and last exchanged", (n - 1, *lanes[1:-1], 0))


def _relaned(datapath: Datapath, name: str, lanes: Any) -> NamedDatapaths:
    with suppress(UsageError):  # a scaled sum of lanes of two scale blocks
        yield name, replace(datapath, tree=_mapped(datapath.tree, Accumulator(), tuple(lanes)))


def _mapped(node: Node, start: Node, lanes: tuple[int, ...]) -> Node:
    """The node with ``start`` for c, and lane i of it being ``lanes[i]``."""
    if isinstance(node, Accumulator):
        return start
    if isinstance(node, Products):
        return Products(tuple(lanes[lane] for lane in node.lanes))
    if isinstance(node, Fma):
        return replace(node, acc=_mapped(node.acc, start, lanes), lanes=tuple(lanes[lane] for lane in node.lanes))
    if isinstance(node, Add):
        return replace(node, x=_mapped(node.x, start, lanes), y=_mapped(node.y, start, lanes))
    if isinstance(node, Fused):
        return replace(node, terms=tuple(replace(term, of=_mapped(term.of, start, lanes)) for term in node.terms))
    if isinstance(node, Exact):
        return replace(node, terms=tuple(_mapped(term, start, lanes) for term in node.terms))
    return node


# -- where C enters


def _accumulation(datapath: Datapath) -> NamedDatapaths:
    tree, to = datapath.tree, root_encode(datapath)
    if not any(isinstance(node, Accumulator) for node in walk(tree)):
        return
    rest = _without_c(tree)
    if rest is not None and datapath.c is not None:
        yield "after", replace(datapath, tree=_plus_c(rest, to, datapath))
        if 1 < len(datapath.steps) <= MOST_STEPS:
            last = _plus_c(_unrolled(datapath, Zero()), to, datapath)
            with suppress(UsageError):  # a tree that takes c twice
                yield "last, from zero", replace(datapath, tree=last, step=0, order=None)
    yield from ((name, replace(datapath, tree=made)) for name, made in _joined(tree, to))


def _without_c(tree: Node) -> Node | None:
    """The root without c among its operands; None where c is further down or alone."""
    if isinstance(tree, Fma) and isinstance(tree.acc, Accumulator):
        return replace(tree, acc=Zero())
    if isinstance(tree, Add):
        parts = [part for part in (tree.x, tree.y) if not isinstance(part, Accumulator)]
        return parts[0] if len(parts) == 1 else None
    if isinstance(tree, Fused):
        terms = tuple(term for term in tree.terms if not isinstance(term.of, Accumulator))
        return replace(tree, terms=terms) if 0 < len(terms) < len(tree.terms) else None
    if isinstance(tree, Exact):
        nodes = tuple(term for term in tree.terms if not isinstance(term, Accumulator))
        return replace(tree, terms=nodes) if 0 < len(nodes) < len(tree.terms) else None
    return None


def _plus_c(node: Node, to: Encode, datapath: Datapath) -> Node:
    if formats.get(datapath.d).is_float:
        return Add(node, Accumulator(), to)
    return Exact((node, Accumulator()), to)


def _unrolled(datapath: Datapath, start: Node) -> Node:
    """All steps as one tree."""
    for lanes in datapath.steps:
        start = _mapped(datapath.tree, start, lanes)
    return start


def _joined(tree: Node, to: Encode) -> Iterator[tuple[str, Node]]:
    """C in one sum with the products, or summed with what they are aligned to."""
    direct = isinstance(tree, (Fused, Exact)) and all(
        isinstance(p, (Products, Accumulator)) for p, _ in children_in_place(tree)
    )
    lanes = tuple(sorted(lane for node in walk(tree) for lane in lanes_of(node)))
    if isinstance(tree, (Fma, Add)) and len(lanes) > 1:
        yield "in one exact sum", Exact((Accumulator(), Products(lanes)), to)
    if isinstance(tree, Fused) and direct and len(lanes) > 1:
        own = tuple(term for term in tree.terms if isinstance(term.of, Products))
        c = tuple(term for term in tree.terms if isinstance(term.of, Accumulator))
        inner = replace(own[0], of=Fused(own), cutoff=None)
        yield "beside the sum of the products", replace(tree, terms=(inner, *c))
    if isinstance(tree, Fused) and not direct:
        parts = [term.of for term in tree.terms if not isinstance(term.of, Accumulator)]
        if len(parts) == 1 and isinstance(parts[0], Fused) and parts[0].to is None:
            c_too = replace(parts[0].terms[0], of=Accumulator(), cutoff=None)
            yield "among the products", Fused((*parts[0].terms, c_too), to)
    rest = _without_c(tree) if isinstance(tree, Add) else None
    if isinstance(rest, Add):
        yield "before the products", _into_first(rest)


def _into_first(node: Add) -> Node:
    """C added to the first product, before the others."""
    if isinstance(node.x, Add):
        return replace(node, x=_into_first(node.x))
    return replace(node, x=Add(Accumulator(), node.x, node.to))


# -- between steps, and products


def _between(datapath: Datapath) -> NamedDatapaths:
    to, d = root_encode(datapath), formats.get(datapath.d)
    if not d.is_float:
        return
    if datapath.result is not None:
        yield "none", replace(datapath, tree=_with_to(datapath.tree, datapath.result), result=None)
    last = datapath.result or replace(to, format=datapath.d, first=None)
    for fmt in floats():
        if fmt.name != to.format and (len(datapath.steps) > 1 or _holds(fmt, d)):
            tree = _with_to(datapath.tree, replace(to, format=fmt.name))
            yield fmt.name, replace(datapath, tree=tree, result=last)


def _with_to(tree: Any, to: Encode) -> Node:
    made: Node = replace(tree, to=to)
    return made


def _holds(wide: formats.Format, narrow: formats.Format) -> bool:
    return wide.fraction_bits >= narrow.fraction_bits and wide.max_exponent >= narrow.max_exponent


def floats() -> list[formats.Format]:
    """The catalog's signed floating-point formats."""
    return [fmt for fmt in map(formats.get, formats.FORMATS) if fmt.is_float and fmt.signed]


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
    """Sums that keep every bit (all with c, or all without) cut at the lowest bit that can matter, at a half, a quarter
    ... of that depth, and at every bit just below the result's last: the lowest that matters may be one of these."""
    if not formats.get(root_encode(datapath).format).is_float:
        return
    least = formats.get(root_encode(datapath).format).fraction_bits + 2
    most = least + DENSE if _few_sums(datapath.tree) else least
    for with_c in (False, True):
        deepest = max(_cut_where_uncut(datapath.tree, datapath, with_c, MOST_BITS)[1], default=0)
        halves = [deepest >> i for i in range(deepest.bit_length())]
        for bits in sorted(
            {bits for bits in (*halves, *range(least, min(deepest, most))) if bits >= least}, reverse=True
        ):
            tree = _cut_where_uncut(datapath.tree, datapath, with_c, bits)[0]
            yield f"what is uncut {'with' if with_c else 'without'} c at {bits} bits RZ", replace(datapath, tree=tree)


def _few_sums(tree: Node) -> bool:
    """Whether a tree adds so seldom that another cut of all its sums costs little."""
    return sum(len(node.lanes) if isinstance(node, Fma) else isinstance(node, Add) for node in walk(tree)) <= DENSE


FURTHER = (2, 4, 8)
"""Bits by which a deep cut is tried higher: what refutes one bit need not refute more, where each is seldom seen."""


def _higher(datapath: Datapath) -> NamedDatapaths:
    """Terms that are cut below what the result shows, so that only what cancels shows it, cut some bits higher."""
    to = formats.get(root_encode(datapath).format)
    if not to.is_float:
        return
    sums = [node for node in walk(datapath.tree) if isinstance(node, Fused)]
    cuts = dict.fromkeys(term.fraction_bits for node in sums for term in node.terms)
    for deep, less in product(filter(None, cuts), FURTHER):
        if (bits := deep - less) > to.fraction_bits + 2:
            yield f"what is cut at {deep} bits at {bits}", replace(datapath, tree=_recut(datapath.tree, deep, bits))


def _recut(tree: Node, old: int, new: int) -> Node:
    """The tree with terms of so many fraction bits cut at others."""

    def cut(node: Node) -> Node:
        if not isinstance(node, Fused):
            return node
        made = (replace(term, fraction_bits=new) if term.fraction_bits == old else term for term in node.terms)
        return replace(node, terms=tuple(made))

    return map_node(tree, cut)


def _cut_where_uncut(tree: Node, datapath: Datapath, with_c: bool, most: int) -> tuple[Node, list[int]]:
    """The tree with every sum of this kind cut, and at how many bits each, ``most`` or the last that can matter;
    additions and chains become sums."""
    deep: list[int] = []

    def cut(node: Node) -> Node:
        if any(isinstance(each, Accumulator) for each in walk(node)) != with_c:
            return node
        if isinstance(node, Fma):
            return _links(node, sum_of)
        if isinstance(node, Add):
            return sum_of((Term(node.x), Term(node.y)), node.to)
        if isinstance(node, Exact) and not node.scaled:
            return sum_of(tuple(map(Term, node.terms)), node.to) if _count(node.terms) > 1 else node
        if isinstance(node, Fused) and _count(term.of for term in node.terms) > 1:
            return sum_of(node.terms, node.to)
        return node

    def sum_of(terms: tuple[Term, ...], to: Encode | None) -> Node:
        if all(term.fraction_bits is not None for term in terms):
            return Fused(terms, to)
        deep.append(min(max(_depth(Fused(terms, to), datapath), 0), most))
        made = (replace(t, fraction_bits=deep[-1], rounding="RZ") if t.fraction_bits is None else t for t in terms)
        return Fused(tuple(made), to)

    return map_node(tree, cut), deep


def _links(chain: Fma, sum_of: Callable[[tuple[Term, ...], Encode], Node]) -> Node:
    """A chain as one sum of two terms after the other; what begins with zero begins with its first product."""
    alone = isinstance(chain.acc, Zero)
    total: Node = Fma(chain.acc, chain.lanes[:1], chain.to) if alone else chain.acc
    for lane in chain.lanes[alone:]:
        total = sum_of((Term(total), Term(Products((lane,)))), chain.to)
    return total


def _count(nodes: Iterable[Node]) -> int:
    """How many terms these are."""
    return sum(len(node.lanes) if isinstance(node, Products) else 1 for node in nodes)


def _depth(node: Fused, datapath: Datapath) -> int:
    """How many bits below the largest term a bit may lie and still matter: behind what is left where two terms cancel,
    or beside a result in range.  Rounded to nearest it matters there if it decides a tie, which the largest term makes
    with its own bits, or with those of a third one."""
    terms = [each for part in _parts(node) for each in list(_ranges(part, datapath)) * _alike(part)]
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


def _rounded_products(datapath: Datapath) -> NamedDatapaths:
    """Products rounded to a format of the catalog as the result is."""
    own, to = datapath.product.to, root_encode(datapath)
    if not formats.get(datapath.d).is_float:
        return
    for fmt in floats():
        encode = replace(own or Encode(rounding=to.rounding), format=fmt.name)
        yield fmt.name, replace(datapath, product=replace(datapath.product, to=encode))


# -- NaN rules


def _nan_rule(datapath: Datapath) -> NamedDatapaths:
    d = formats.get(datapath.d)
    if not d.is_float or d.nan_code is None:
        return
    own = datapath.special
    lanes = range(datapath.k)
    c = ["c"] if datapath.c else []
    rules: dict[str, Special] = {"canonical": Special("canonical", own.code)}
    for name, some in (("ascending", lanes), ("descending", lanes[::-1])):
        names = [f"{role}{lane}" for lane in some for role in "ab"]
        rules[f"the first NaN, {name}, then c"] = _payload(own, "global", (*names, *c))
        if c:
            rules[f"the first NaN, c before {name}"] = _payload(own, "global", (*c, *names))
    for order in (("a", "b", "acc"), ("b", "a", "acc"), ("acc", "a", "b")):
        rules[f"each node its own, {' '.join(order)}"] = local = _payload(own, "local", order)
        if own.nan == "global":  # what is first in all may be first in its node alone
            other = "quiet ones as well" if own.signalling_first else "signalling ones first"
            flipped = replace(local, signalling_first=not own.signalling_first)
            rules[f"each node its own, {' '.join(order)}, {other}"] = flipped
    for name, rule in rules.items():
        if (rule.nan, rule.priority) != (own.nan, own.priority):
            yield name, replace(datapath, special=rule)


def _payload(own: Special, kind: Any, priority: tuple[str, ...]) -> Special:
    return replace(own, nan=kind, priority=priority)


MOVES: dict[str, Callable[[Datapath], NamedDatapaths]] = {
    "arrangement": _arrangement,
    "grouping": grouping,
    "accumulation": _accumulation,
    "between": _between,
    "cut": lambda datapath: chain(_sum_cut(datapath), _uncut(datapath), _higher(datapath)),
    "products": _rounded_products,
    "nan_rule": _nan_rule,
}
"""By field: every change of that kind, by name."""
