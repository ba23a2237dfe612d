"""What a datapath record says of the probes' questions, written from ``docs/datapath.md`` alone.

``contradiction(path, finding)`` names what a finding says against the datapath, None where it
says nothing against it.  A bounded finding may say less, never another thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mmaprobe import formats
from mmaprobe.evidence.records import Finding
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
    Zero,
    walk,
)

Leaf = int | str
Shape = Leaf | frozenset[Any]


@dataclass(frozen=True)
class Child:
    """A term of a sum: the bits it keeps below the largest one (None: all), how it is cut, what its zero shows."""

    of: Sum | Leaf
    bits: int | None = None
    rounding: str | None = None
    zero: int | None = None


@dataclass(frozen=True)
class Sum:
    """Terms added at once; ``aligned`` where they are aligned first, ``to`` where the sum is rounded."""

    children: tuple[Child, ...]
    aligned: bool
    to: Encode | None

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaf for child in self.children for leaf in leaves_of(child.of))

    def walk(self) -> Iterator[Sum]:
        yield self
        for child in self.children:
            if isinstance(child.of, Sum):
                yield from child.of.walk()


def leaves_of(part: Sum | Leaf) -> tuple[Leaf, ...]:
    return part.leaves if isinstance(part, Sum) else (part,)


def sums(path: Datapath) -> Sum | Leaf:
    """The whole tree of a datapath, step after step, over the lanes of the instruction and ``"c"``."""
    acc: Sum | Leaf | None = "c" if path.c else None
    for lanes in path.steps:
        acc = _sum(path.tree, lanes, acc)
    assert acc is not None
    return acc


def _sum(node: Node, lanes: tuple[int, ...], acc: Sum | Leaf | None) -> Sum | Leaf | None:
    if isinstance(node, Accumulator):
        return acc
    if isinstance(node, Products):
        return lanes[node.lanes[0]]
    if isinstance(node, Fma):
        out = _sum(node.acc, lanes, acc)
        for lane in node.lanes:
            out = _joined([Child(lanes[lane])] if out is None else [Child(out), Child(lanes[lane])], False, node.to)
        return out
    if isinstance(node, Add):
        parts = [_sum(part, lanes, acc) for part in (node.x, node.y)]
        return _joined([Child(part) for part in parts if part is not None], False, node.to)
    if isinstance(node, Fused):
        rules = list(_terms(node, lanes, acc))
        return _joined(rules, True, node.to)
    if isinstance(node, Exact):
        return _joined(list(_terms(Fused.alike(node.terms, None), lanes, acc)), False, node.to)
    return None


def _terms(node: Fused, lanes: tuple[int, ...], acc: Sum | Leaf | None) -> Iterator[Child]:
    for term in node.terms:
        rule = Child("c", term.fraction_bits, term.rounding, term.zero_exponent)
        if isinstance(term.of, Products):
            yield from (replace(rule, of=lanes[lane]) for lane in term.of.lanes)
        elif (part := _sum(term.of, lanes, acc)) is not None:
            yield replace(rule, of=part)


def _joined(children: list[Child], aligned: bool, to: Encode | None) -> Sum | Leaf | None:
    return Sum(tuple(children), aligned, to) if children else None


def shape(part: Sum | Leaf) -> Shape:
    """What is added with what; a sum of one term is that term."""
    if not isinstance(part, Sum):
        return part
    inner = [shape(child.of) for child in part.children]
    return inner[0] if len(inner) == 1 else frozenset(inner)


def claimed(form: Any) -> Shape:
    """The shape that the summation tree question answers."""
    if not isinstance(form, dict):
        return form  # type: ignore[no-any-return]
    if form["kind"] == "fma":
        out = claimed(form["acc"])
        for lane in form["lanes"]:
            out = frozenset([out, lane])
        return out
    return frozenset(map(claimed, form["terms"]))


def contradiction(path: Datapath, finding: Finding) -> str | None:
    """What an exact finding about the numbers of a float datapath says against it."""
    if finding.status != "exact" or not formats.get(path.d).is_float or finding.answer is None:
        return None
    check = CHECKS.get(finding.question)
    wrong = check(path, finding.answer) if check else None
    return f"{finding.question}: {finding.text}; {wrong}" if wrong else None


def rules_of(path: Datapath, leaf: Leaf) -> list[tuple[Child, Sum]]:
    """The rules under which a leaf, and the sums that hold it, enter sums, the leaf's own first."""
    tree = sums(path)
    holding = [node for node in tree.walk() if leaf in node.leaves] if isinstance(tree, Sum) else []
    return [(next(child for child in node.children if leaf in leaves_of(child.of)), node) for node in reversed(holding)]


def widths(to: Encode | None) -> set[int]:
    """Fraction bits that an encoding keeps."""
    if to is None:
        return set()
    return {formats.get(to.format).fraction_bits} | ({to.first[0]} if to.first else set())


def _precision(path: Datapath, answer: Any) -> str | None:
    if path.scale is not None and path.scale.where == "group":
        return None  # counted from the products, not from the scales' exponents (see the probe)
    lanes = {int(lane): bits for lane, bits in answer["lanes"].items()}
    if answer["products"] is not None:
        lanes = dict.fromkeys(range(path.k), answer["products"])
    told: dict[Leaf, Any] = {**lanes, **({"c": answer["c"]} if answer["c"] is not None else {})}
    for leaf, bits in told.items():
        same = range(path.k) if leaf != "c" and answer["products"] is not None else (leaf,)  # one number for all lanes
        allowed = widths(path.result) | (widths(path.product.to) if leaf != "c" else set())
        for rule, node in (pair for other in same for pair in rules_of(path, other)):
            allowed |= widths(node.to) | ({rule.bits} if rule.bits is not None else set())
        if bits not in allowed:
            return f"{leaf} keeps one of {sorted(allowed)}"
    return None


def _cuts(path: Datapath, answer: Any) -> str | None:
    lanes = {int(lane): names for lane, names in answer["lanes"].items()}
    if answer["products"] is not None:
        lanes = dict.fromkeys(range(path.k), answer["products"])
    told: dict[Leaf, Any] = {**lanes, **({"c": answer["c"]} if answer["c"] is not None else {})}
    for leaf, names in told.items():
        rules = rules_of(path, leaf)
        allowed = {rule.rounding for rule, node in rules if node.aligned}
        allowed |= {to.rounding for _, node in rules if (to := node.to)}
        if not allowed & set(names):
            return f"{leaf} is cut by one of {sorted(map(str, allowed))}"
    return None


def _result(path: Datapath, answer: Any) -> str | None:
    encodings = [to for to in (path.tree.to, path.result) if to is not None]  # type: ignore[union-attr]
    bits = set().union(*map(widths, encodings))
    names = {to.rounding for to in encodings} | {to.first[1] for to in encodings if to.first}
    if answer["fraction_bits"] not in bits:
        return f"the result keeps one of {sorted(bits)}"
    return None if names & set(answer["rounding"]) else f"the result is rounded by {sorted(names)}"


def _zeros(path: Datapath, answer: Any) -> str | None:
    allowed = {rule.zero for leaf in (*range(path.k), "c") for rule, node in rules_of(path, leaf) if node.aligned}
    if answer["exponent"] not in allowed | {None}:
        return f"a zero shows one of {allowed}"
    return None if answer["c"] in allowed | {None} else f"a zero C shows one of {allowed}"


def _label(path: Datapath, answer: Any) -> str | None:
    if path.product.to is not None:
        return None  # a rounded product is a number of its own
    return None if answer["label"] in (None, path.product.label) else f"the label is {path.product.label}"


def _tree(path: Datapath, answer: Any) -> str | None:
    return None if claimed(answer) == shape(sums(path)) else "another tree"


def _c_position(path: Datapath, answer: Any) -> str | None:
    tree = sums(path)
    if path.c is None or not isinstance(tree, Sum):
        return None if path.c or answer["enters"] == "absent" else "there is no C"
    inner_first = [node for node in reversed(list(tree.walk())) if len(node.leaves) > 1]
    joining = next(node for node in inner_first if "c" in map(_whole, node.children))
    with_c = sorted(leaf for leaf in map(_whole, joining.children) if isinstance(leaf, int))
    before = sorted(set(joining.leaves) - {"c"} - set(with_c), key=int)
    if (answer["with"], answer["before"]) == (with_c, before):
        return None
    return f"C joins lanes {with_c} and the finished sum of {before}"


def _whole(child: Child) -> Leaf | None:
    """The leaf that a term is, None for a sum of several."""
    leaves = leaves_of(child.of)
    return leaves[0] if len(leaves) == 1 else None


def _subnormals(path: Datapath, answer: Any) -> str | None:
    operands = {"a": path.operand_a, "b": path.operand_b, "c": path.operand_c}
    for name, operand in operands.items():
        seen, flushed = answer.get(name), ("flush", "zero", "signed_zero")
        if seen == "keep" and operand.subnormals != "keep":
            return f"{name} is {operand.subnormals}"
        if seen in flushed and operand.subnormals == "keep":
            return f"{name} is kept"
        if seen in flushed[1:] and operand.subnormals != seen:
            return f"{name} is {operand.subnormals}"
    return None


def _nan(path: Datapath, answer: Any) -> str | None:
    rule, quiet = "canonical" if path.special.nan == "canonical" else "propagate", formats.get(path.d).quiet_bit
    codes = {path.special.code, None}
    if path.special.nan == "local" and path.special.quiet:
        codes.add(path.special.code | quiet)  # a product that is invalid is quiet when it leaves its node
    if answer["rule"] == rule and answer["code"] in codes:
        return None
    return f"NaNs are {rule}, {path.special.code:#x}"


def _zero_sign(path: Datapath, answer: Any) -> str | None:
    """Never -0 where some rounding, of a product too, a start from +0 or a flush to +0 makes it so."""
    nodes = list(walk(path.tree))
    encodings = [to for to in (*(getattr(node, "to", None) for node in nodes), path.result) if to is not None]
    signs = {to.zero for to in encodings}
    flushed = {path.operand_a.subnormals, path.operand_b.subnormals, path.operand_c.subnormals}
    starts = path.c is None or any(isinstance(node, Zero) for node in nodes)
    products = path.product.to is not None and path.product.to.zero == "positive"
    plain = signs == {"ieee"} and "zero" not in flushed and not starts and not products
    if answer["zero"] == "positive" and plain:
        return "every rounding gives the IEEE sign"
    return "no rounding gives -0" if answer["zero"] == "ieee" and signs == {"positive"} else None


def _scales(path: Datapath, answer: Any) -> str | None:
    return None if path.scale and answer["where"] in (path.scale.where, None) else "not where the scales act"


CHECKS: dict[str, Callable[[Datapath, Any], str | None]] = {
    "accumulator_precision": _precision,
    "alignment_rounding": _cuts,
    "result_rounding": _result,
    "zero_exponent": _zeros,
    "product_label": _label,
    "c_position": _c_position,
    "subnormals": _subnormals,
    "nan_and_infinity": _nan,
    "signed_zero": _zero_sign,
    "block_scales": _scales,
    "summation_tree": _tree,
}
