"""Trees as answers: the JSON form of the summation tree question, and one line for a person."""

from __future__ import annotations

from typing import Any

from mmaprobe.probing.tree import Leaf, Node


def to_json(part: Node | Leaf) -> Any:
    """The answer of the summation tree question; ``summation_tree`` defines the form."""
    if not isinstance(part, Node):
        return part
    if part.fused:
        form: dict[str, Any] = {"kind": "fused", "terms": [to_json(child) for child in _ordered(part)]}
        return form | {"lossless": True} if part.lossless else form
    left, right = _ordered(part)
    if isinstance(right, Node) or (not isinstance(left, Node) and left != "c"):
        return {"kind": "add", "terms": [to_json(left), to_json(right)]}
    if right == "c":
        return {"kind": "add", "terms": [to_json(left), "c"]}
    acc = to_json(left)
    if isinstance(acc, dict) and acc["kind"] == "fma":
        return {"kind": "fma", "acc": acc["acc"], "lanes": [*acc["lanes"], right]}
    return {"kind": "fma", "acc": acc, "lanes": [right]}


def _ordered(node: Node) -> list[Node | Leaf]:
    """Children as they are written: sub-sums by their first leaf, then c, then lanes; c first beside lanes only."""

    def key(child: Node | Leaf) -> tuple[int, int]:
        if isinstance(child, Node):
            return 0, min((leaf for leaf in child.leaves if isinstance(leaf, int)), default=-1)
        return (1, 0) if child == "c" else (2, int(child))

    return sorted(node.children, key=key)


def describe(tree: Any) -> str:
    """One line for a person: ``round(round(c + p1) + p0)`` as ``fma(c; 1, 0)``."""
    if not isinstance(tree, dict):
        return "c" if tree == "c" else f"p{tree}"
    if tree["kind"] == "fma":
        return f"fma({describe(tree['acc'])}; {', '.join(f'p{k}' for k in tree['lanes'])})"
    if tree["kind"] == "add":
        return " + ".join(_bracket(term) for term in tree["terms"])
    terms = [describe(term) for term in tree["terms"]]
    return f"{tree['kind']}({', '.join(_shorten(terms))})"


def _bracket(term: Any) -> str:
    inner = describe(term)
    return f"({inner})" if isinstance(term, dict) and term["kind"] == "add" else inner


def _shorten(terms: list[str]) -> list[str]:
    return terms if len(terms) <= 9 else [*terms[:4], f"... {len(terms) - 6} more ...", *terms[-2:]]
