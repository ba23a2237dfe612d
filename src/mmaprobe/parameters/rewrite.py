"""Make variants of a datapath: the same change at every Encode, operand or node."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from typing import Any

from mmaprobe import formats
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
    Products,
    Term,
    Zero,
    walk,
)
from mmaprobe.parameters.described import choices, descriptions

EncodeChange = Callable[[Encode], Encode]
ENDS = tuple(name for name, each in descriptions(Encode).items() if each.ends)
"""The rules of an Encode about the ends of the range: overflow, flushing, zeros."""


def map_node(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with ``change`` applied to every node, children first; what it leaves as it is stays the same record."""
    if isinstance(node, Fused):
        terms = tuple([_of(term, map_node(term.of, change)) for term in node.terms])
        if any(new is not term for new, term in zip(terms, node.terms, strict=True)):
            node = replace(node, terms=terms)
    elif isinstance(node, Add):
        x, y = map_node(node.x, change), map_node(node.y, change)
        if x is not node.x or y is not node.y:
            node = replace(node, x=x, y=y)
    elif isinstance(node, Fma):
        acc = map_node(node.acc, change)
        if acc is not node.acc:
            node = replace(node, acc=acc)
    elif isinstance(node, Exact):
        some = tuple([map_node(term, change) for term in node.terms])
        if any(new is not term for new, term in zip(some, node.terms, strict=True)):
            node = replace(node, terms=some)
    return change(node)


def _of(term: Term, node: Node) -> Term:
    if node is term.of:
        return term
    return replace(term, of=node)


def with_encode(node: Node, change: EncodeChange) -> Node:
    """The node with its own Encode changed; unchanged where it has none."""
    if isinstance(node, (Fma, Add, Fused, Exact)) and node.to is not None:
        return replace(node, to=change(node.to))
    return node


def map_encodes(datapath: Datapath, change: EncodeChange) -> Datapath:
    """The datapath with ``change`` applied to every Encode, of products and of the result too."""

    def at(node: Node) -> Node:
        return with_encode(node, change)

    product = datapath.product
    if product.to is not None:
        product = replace(product, to=change(product.to))
    result = None if datapath.result is None else change(datapath.result)
    return replace(datapath, tree=map_node(datapath.tree, at), product=product, result=result)


def map_fused(datapath: Datapath, change: Callable[[Fused], Fused]) -> Datapath:
    """The datapath with ``change`` applied to every fused node."""

    def at(node: Node) -> Node:
        return change(node) if isinstance(node, Fused) else node

    return replace(datapath, tree=map_node(datapath.tree, at))


def map_terms(datapath: Datapath, change: Callable[[Term], Term]) -> Datapath:
    """The datapath with ``change`` applied to every term of every fused node."""
    return map_fused(datapath, lambda node: replace(node, terms=tuple(map(change, node.terms))))


def encodes(datapath: Datapath) -> list[Encode]:
    """Every Encode of the datapath: of products, of the result, of the tree's nodes, the root's last."""
    nodes = [getattr(node, "to", None) for node in walk(datapath.tree)]
    return [to for to in (datapath.product.to, datapath.result, *reversed(nodes)) if to is not None]


@lru_cache(maxsize=256)
def explicit(datapath: Datapath) -> Datapath:
    """The same datapath in which one value is never a lane of several products: it is their exact sum."""
    if datapath.product.together == 1:
        return datapath
    return replace(datapath, tree=map_node(datapath.tree, _one_value))


def _one_value(node: Node) -> Node:
    """A node whose operands are single values as such."""
    if isinstance(node, Fma) and isinstance(node.acc, Products):
        return replace(node, acc=Exact((node.acc,)))
    if isinstance(node, Add):
        x, y = (Exact((of,)) if isinstance(of, Products) else of for of in (node.x, node.y))
        return replace(node, x=x, y=y)
    return node


def simpler(datapath: Datapath) -> list[Datapath]:
    """Datapaths that say less: no last conversion, a first cut as the rounding itself, a rule of the results or
    products as it is where nothing is said, no sum of what is rounded already, an addition for a chain of two rounded
    products, a zero without a sign for a flushed operand, terms of which every bit is looked at and that are shifted as
    far as need be, two terms that show their own labels, one value of a field for all terms of all aligned sums (each
    value that some term has)."""
    found = _with_other_ends(rounded_once(datapath))
    for name in ("first", *ENDS):
        rule: dict[str, Any] = {name: descriptions(Encode)[name].plain}
        found.append(map_encodes(datapath, lambda to, r=rule: replace(to, **r)))  # type: ignore[misc]
        if datapath.product.to is not None:
            found.append(replace(datapath, product=replace(datapath.product, to=replace(datapath.product.to, **rule))))
        found.append(replace(datapath, tree=with_encode(datapath.tree, lambda to, r=rule: replace(to, **r))))  # type: ignore[misc]
        if datapath.result is not None:
            found.append(replace(datapath, result=replace(datapath.result, **rule)))
    found.append(replace(datapath, tree=map_node(datapath.tree, _exactly)))
    found.append(replace(datapath, tree=map_node(datapath.tree, _rounded_before)))
    found.append(replace(datapath, tree=map_node(datapath.tree, shown_plainly)))
    if datapath.product.to is not None:
        found.append(replace(datapath, tree=map_node(datapath.tree, _added)))
    found.append(replace(datapath, product=replace(datapath.product, label="encoded")))
    found.append(replace(datapath, product=replace(datapath.product, overflow_exponent=None)))
    for name in ("operand_a", "operand_b", "operand_c"):
        operand = getattr(datapath, name)
        if operand.subnormals == "signed_zero":
            found.append(replace(datapath, **{name: replace(operand, subnormals="zero")}))
    for name in ("sticky_bits", "shift_limit"):
        found.append(map_terms(datapath, lambda term, n=name: replace(term, **{n: None})))  # type: ignore[misc]
    return [path for path in dict.fromkeys(found + _terms_alike(datapath)) if path != datapath]


def _exactly(node: Node) -> Node:
    """An aligned sum of which nothing is ever cut as an exact one."""
    if not isinstance(node, Fused) or any(replace(term, of=node, rounding="RZ") != Term(node) for term in node.terms):
        return node
    return Exact(tuple(term.of for term in node.terms), node.to)


def shown_plainly(node: Node) -> Node:
    """A sum of two terms as one whose terms show their own labels: it cuts and drops alike where one term's label is
    the larger by far.

    A term of label e beside one that shows E + s, the larger, is cut at E + s - n, which are n - s bits below E, and
    dropped by a cutoff u where E - e > u - s; the other is dropped at its own cutoff plus s.  No offset is added to the
    exponent of a zero.
    """
    if not isinstance(node, Fused) or len(node.terms) != 2 or node.complement or node.carry_bits is not None:
        return node
    terms = []
    for term, other in (node.terms, node.terms[::-1]):
        bits = None if term.fraction_bits is None else term.fraction_bits - other.label_offset
        cutoff = None if term.cutoff is None else term.cutoff + term.label_offset - other.label_offset
        zero = None if term.zero_exponent is None else term.zero_exponent - term.label_offset
        if (term.sticky_bits, term.shift_limit) != (None, None) or min(bits or 0, cutoff or 0) < 0:
            return node
        terms.append(replace(term, label_offset=0, fraction_bits=bits, cutoff=cutoff, zero_exponent=zero))
    return replace(node, terms=tuple(terms))


def _rounded_before(node: Node) -> Node:
    """What a sum of one term takes, where that is rounded."""
    if not (isinstance(node, (Fused, Exact)) and node.to is not None and len(node.terms) == 1):
        return node
    of = node.terms[0].of if isinstance(node, Fused) else node.terms[0]
    return of if getattr(of, "to", None) is not None else node


def aligned(path: Datapath) -> Datapath:
    """The datapath whose exact sums are aligned ones."""

    def at(node: Node) -> Node:
        if not isinstance(node, Exact) or node.scaled:
            return node
        return Fused.alike(node.terms, None, to=node.to)

    return replace(path, tree=map_node(path.tree, at))


def rounded_once(datapath: Datapath) -> list[Datapath]:
    """Without a last conversion, one after a sum rounded to odd as well, or without first cuts."""
    once = [path for change in (_cut_once, _cut_to_a_format) if (path := map_encodes(datapath, change)) != datapath]
    root: Encode = datapath.tree.to  # type: ignore[union-attr, assignment]
    if datapath.result is None and len(datapath.steps) == 1 and root.format != datapath.d and root.rounding == "RO":
        whole = with_encode(datapath.tree, lambda to: replace(to, format=datapath.d, rounding="RNE"))
        once.append(replace(datapath, tree=whole))
    if datapath.result is not None:
        last = datapath.result
        once.append(replace(datapath, tree=with_encode(datapath.tree, lambda _: last), result=None))
        if datapath.root.format == last.format:
            once.append(replace(datapath, result=None))
    return once


def _with_other_ends(once: list[Datapath]) -> list[Datapath]:
    """Each as it is and with one rule or two of the ends of the range changed, since two roundings show those of
    both."""
    single: list[dict[str, Any]] = [{name: value} for name in ENDS for value in choices(Encode, name)]
    rules = [{}, *single, *(one | other for one, other in combinations(single, 2) if one.keys() != other.keys())]
    found: list[Datapath] = []
    for path, rule in product(once, rules):
        with suppress(UsageError):  # what integers alone do
            found.append(map_encodes(path, lambda to, r=rule: replace(to, **r)))  # type: ignore[misc]
    return found


def _cut_once(to: Encode) -> Encode:
    """A result that its first cut alone rounds."""
    return to if to.first is None else replace(to, first=None, rounding=to.first[1])


def _cut_to_a_format(to: Encode) -> Encode:
    """The same as a result of a format with so few fraction bits, where there is one of the same range."""
    if to.first is None:
        return to
    of = formats.get(to.format)
    for fmt in formats.FORMATS.values():
        alike = (fmt.container_bits, fmt.exponent_bits) == (of.container_bits, of.exponent_bits)
        if alike and fmt.is_float and fmt.padding > of.padding and fmt.fraction_bits == to.first[0]:
            return replace(to, format=fmt.name, first=None, rounding=to.first[1])
    return to


def _added(node: Node) -> Node:
    """A chain from zero over two rounded products as their sum."""
    if not (isinstance(node, Fma) and isinstance(node.acc, Zero) and len(node.lanes) == 2):
        return node
    return Add(Products(node.lanes[:1]), Products(node.lanes[1:]), node.to)


def _terms_alike(datapath: Datapath) -> list[Datapath]:
    terms = [term for node in walk(datapath.tree) if isinstance(node, Fused) for term in node.terms]
    found: list[Datapath] = []
    for name in ("zero_exponent", "rounding", "fraction_bits"):
        values = dict.fromkeys(getattr(term, name) for term in terms)
        if len(values) > 1:
            rules: list[dict[str, Any]] = [
                {name: value} for value in values if value is not None or name == "zero_exponent"
            ]
            found += [map_terms(datapath, lambda term, r=rule: replace(term, **r)) for rule in rules]  # type: ignore[misc]
    return found


def zero_exponent_of(datapath: Datapath) -> int | None:
    """The exponent that all terms of the first aligned sum show for a zero; None where they differ or there is none."""
    terms = next((node.terms for node in walk(datapath.tree) if isinstance(node, Fused)), ())
    shown = {term.zero_exponent for term in terms}
    return shown.pop() if len(shown) == 1 else None


def spellings(datapath: Datapath) -> list[Datapath]:
    """Datapaths that differ little from this one: C converted to the format of the sums before it is added, chains
    that start with their first product instead of zero, other labels of subnormals, a wider format in between, a format
    of as many bits as a first cut keeps in its place, between the steps or in each of them."""
    found = [datapath]
    to = encodes(replace(datapath, result=None))[-1]
    if datapath.c not in (None, to.format):
        found += [replace(path, tree=map_node(path.tree, lambda node: _converted(node, to))) for path in found]
    found += [replace(path, tree=map_node(path.tree, _from_product)) for path in found]
    if any(isinstance(node, Fused) for node in walk(datapath.tree)):
        found += [replace(path, product=replace(path.product, label="operands")) for path in found]
    if datapath.result is not None:
        found += [_between(datapath, name) for name in wider_formats(to.format)]
    elif to.first is not None:
        ways = [(path, name) for path in found for name in formats_of(to.first[0])]
        found += [_in_format(path, name) for path, name in ways]
        found += [narrowed(path, name, to.first[1]) for path, name in ways if len(path.steps) > 1]
    return [path for path in dict.fromkeys(found) if path != datapath]


def wider_formats(name: str) -> list[str]:
    """Formats that hold every value of a format, with more fraction bits; the narrowest first."""
    of, found = formats.get(name), []
    for fmt in formats.FORMATS.values():
        more = (fmt.fraction_bits - of.fraction_bits, fmt.exponent_bits - of.exponent_bits)
        if fmt.is_float and fmt.nan == "ieee" and fmt.padding == 0 and min(more) >= 0 and more[0]:
            found.append(fmt)
    return [fmt.name for fmt in sorted(found, key=lambda fmt: fmt.fraction_bits)]


def formats_of(bits: int) -> list[str]:
    """Formats with infinities and exactly so many fraction bits, none of them padding."""
    every = formats.FORMATS.values()
    return [fmt.name for fmt in every if fmt.nan == "ieee" and fmt.padding == 0 and fmt.fraction_bits == bits]


def _in_format(datapath: Datapath, name: str) -> Datapath:
    """The datapath whose sums are rounded to a format where they are cut first, and then converted to their own."""

    def change(to: Encode) -> Encode:
        return to if to.first is None else replace(to, format=name, rounding=to.first[1], first=None)

    result = replace(datapath.root, format=datapath.d, first=None)
    return replace(datapath, tree=map_node(datapath.tree, lambda node: with_encode(node, change)), result=result)


def narrowed(datapath: Datapath, name: str, rounding: str | None = None) -> Datapath:
    """The datapath whose steps round to a format first (as they do, or by this rounding), then to their own."""

    def change(to: Encode) -> Encode:
        return replace(to, format=name, first=None, rounding=rounding or to.rounding)

    return replace(datapath, tree=Exact((with_encode(datapath.tree, change),), replace(datapath.root, first=None)))


def _between(datapath: Datapath, name: str) -> Datapath:
    """The datapath with its sums rounded to another format."""
    tree = map_node(datapath.tree, lambda node: with_encode(node, lambda to: replace(to, format=name)))
    return replace(datapath, tree=tree)


def _converted(node: Node, to: Encode) -> Node:
    return Exact((node,), to) if isinstance(node, Accumulator) else node


def _from_product(node: Node) -> Node:
    if not (isinstance(node, Fma) and isinstance(node.acc, Zero) and len(node.lanes) > 1):
        return node
    return replace(node, acc=Exact((Products(node.lanes[:1]),), node.to), lanes=node.lanes[1:])
