"""Structural changes to a datapath, each under a name: ``mutate(datapath, "grouping", "halves, cut")`` makes one.

Fields change one value of a record; what changes here is the tree: which lane is
where, which products are summed together, where C enters, what is between steps, whether terms or
the whole sum is cut, and the kind of NaN rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief
from mmaprobe.parameters.cuts import NamedDatapaths, cuts
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
    Special,
    Zero,
    lanes_of,
    walk,
)
from mmaprobe.parameters.groupings import children_in_place, grouping, root_encode

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
            yield "among the products", replace(tree, terms=(*parts[0].terms, c_too), to=to)
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
    "cut": cuts,
    "products": _rounded_products,
    "nan_rule": _nan_rule,
}
"""By field: every change of that kind, by name."""
