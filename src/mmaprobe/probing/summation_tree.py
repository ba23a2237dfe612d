"""Which terms are added with which: the summation tree.

After FPRev (ATC'25), generalised to C and to nodes of many terms: +M on leaf
i, -M on leaf j, a unit u = M * 2**-T on every other leaf, for all pairs.  The
result counts the units that were not swallowed by M, so it gives the size of
the lowest node that holds both (``structure``).

The answer is nested:

* an integer k: the exact product of lane k; ``"c"``: operand C;
* ``{"kind": "add", "terms": [x, y]}``: one rounded addition; of two products
  where both are integers (the same as an FMA chain that starts at zero with
  either of them, as long as the product fits the accumulator);
* ``{"kind": "fma", "acc": x, "lanes": [k, l, ...]}``: a chain
  acc = round(acc + p_k), then l, ... (a rounded product is the question
  ``intermediate_rounding``);
* ``{"kind": "fused", "terms": [...]}``: three or more terms added before one
  rounding; ``"lossless": true`` where no term within the window was cut;
* ``{"kind": "unknown", "terms": [...]}``: these leaves, in no order that was found;
* ``{"kind": "exact", "terms": [...]}``: an integer sum, where no order can be seen.

Terms are listed sub-sums first, then c, then lanes ascending: the order of the
two operands of an addition does not show in values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.integer_limits import end
from mmaprobe.probing.pairs import group_by_half_ulps
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Loss, Node, build, to_json
from mmaprobe.probing.terms import UnrepresentableError, power

QUESTION = "summation_tree"


@dataclass(frozen=True)
class Measured:
    """The tree that fits every pair, the window T it was seen in, and whether anything was swallowed."""

    tree: Node | None
    window: int
    bounded: bool
    reason: str = ""


def measure(session: Session) -> Measured:
    """Run all pairs in the widest window; where roundings leave traces of the units, in one that can hold both."""
    leaves = session.leaves
    if len(leaves) <= 2:
        return Measured(Node(leaves) if len(leaves) == 2 else None, session.window, False)
    window, strict = session.window, True
    counts = _mask(session, list(combinations(leaves, 2)), window, strict)
    if counts is None and (trace := _first_trace(session)) is not None:
        window, strict = min(session.window, trace + len(leaves).bit_length() + 1), False
        counts = _mask(session, list(combinations(leaves, 2)), window, strict)
    tree = None if counts is None else build(leaves, {pair: len(leaves) - n for pair, n in counts.items()})
    if isinstance(tree, Node):
        return _settle(session, tree, window)
    narrow = session.window < session.d.fraction_bits + 4 + len(leaves).bit_length()
    return Measured(None, window, narrow, f"no tree swallows units as this device does (window {window} bits)")


def _first_trace(session: Session) -> int | None:
    """The narrowest window in which a swallowed unit leaves a last place behind (directed roundings, to odd)."""
    leaves = session.leaves
    pairs = [(leaves[0], leaf) for leaf in leaves[1:]] + [(leaf, leaves[-1]) for leaf in leaves[1:-1]]
    windows = range(len(leaves).bit_length() + 1, session.window + 1)
    return next((window for window in windows if _mask(session, pairs, window, True) is None), None)


def _settle(session: Session, tree: Node, window: int) -> Measured:
    """A sum in which nothing vanished: half-ulp pairs tell whether it is one step or several."""
    if len(tree.walk()) > 1 or not tree.lossless:
        return Measured(tree, window, False)
    groups = group_by_half_ulps(session)
    if groups is None or len(groups) == 1:
        return Measured(tree, window, True, "nothing vanished within the window")
    node: Node | Leaf = "c"
    for group in groups:
        node = Node((node, *group), len(group) > 1)
    return Measured(node if isinstance(node, Node) else None, window, True, "steps found by half-ulp pairs")


def _mask(session: Session, pairs: list[tuple[Leaf, Leaf]], window: int, strict: bool) -> Loss | None:
    """Surviving units of pairs of leaves; None where an answer is no count of units.

    Not ``strict``: a trace that M left behind, a multiple of far more than all units, is taken off.
    """
    m, leaves = session.high, session.leaves
    unit = power(m - window)
    answers = session.sums(({i: power(m), j: -power(m)} for i, j in pairs), unit)
    counts: Loss = {}
    for (i, j), answer in zip(pairs, answers, strict=True):
        count = None if answer is None else answer / unit
        if count is not None and not strict and count.denominator == 1:
            count %= 1 << len(leaves).bit_length()
        if count is None or count.denominator != 1 or not 0 <= count <= len(leaves) - 2:
            return None
        counts[i, j] = counts[j, i] = count.numerator
    return counts


def probe_summation_tree(session: Session) -> Finding:
    """The summation tree (see the module) with three witnesses of the mask experiment."""
    if not session.is_float:
        return _integer(session)
    found = measure(session)
    if found.tree is None and len(session.leaves) == 1:
        return session.finding(QUESTION, "exact", 0, "one product, no sum")
    if found.tree is None:
        answer = {"kind": "unknown", "terms": list(session.leaves)}
        return session.finding(QUESTION, "inconclusive" if found.bounded else "contradictory", answer, found.reason)
    _witness(session, found.window)
    text = describe(to_json(found.tree))
    if found.bounded:
        text += f"; seen through a window of {found.window} bits: {found.reason}"
    return session.finding(QUESTION, "bounded" if found.bounded else "exact", to_json(found.tree), text)


def _witness(session: Session, window: int) -> None:
    m, leaves = session.high, session.leaves
    if len(leaves) <= 2:
        return
    for i, j in dict.fromkeys(((leaves[0], leaves[1]), (leaves[0], leaves[-1]), (leaves[-2], leaves[-1]))):
        note = f"+2^{m} on {i}, -2^{m} on {j}, 2^{m - window} elsewhere"
        session.witness({i: power(m), j: -power(m)}, note, power(m - window))


def _integer(session: Session) -> Finding:
    """Integers: exact sums have no order, unless saturation happens on the way."""
    answer = {"kind": "exact", "terms": list(session.leaves)}
    if {end(session, 1), end(session, -1)} <= {"wrap", None}:
        return session.finding(QUESTION, "exact", answer, "one integer sum modulo 2^n: no order can be seen")
    try:
        stepwise = _saturates_on_the_way(session)
    except UnrepresentableError as why:
        return session.finding(QUESTION, "bounded", answer, f"an exact integer sum; limits out of reach: {why}")
    if stepwise:
        unknown = {"kind": "unknown", "terms": list(session.leaves)}
        return session.finding(QUESTION, "inconclusive", unknown, "limited on the way: not one exact sum")
    return session.finding(QUESTION, "exact", answer, "one exact integer sum: no order can be seen")


def _saturates_on_the_way(session: Session) -> bool:
    """C at its limit, +x on lane i, -x on lane j: an exact sum returns to C for every pair of lanes."""
    if not session.instruction.c or session.instruction.k < 2:
        return False
    top = Fraction(session.d.largest)
    pairs = [(i, j) for i in range(session.instruction.k) for j in range(session.instruction.k) if i != j]
    answers = session.sums({"c": top, i: 64, j: -64} for i, j in pairs)
    session.witness({"c": top, pairs[0][0]: 64, pairs[0][1]: -64}, "the limit, +64, -64")
    return any(answer != top for answer in answers)


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
