"""Which terms are added with which: the summation tree.

After FPRev (ATC'25), generalised to C and to nodes of many terms: +M on leaf
i, -M on leaf j, a unit u = M * 2**-T on every other leaf, for some rows of pairs
(``branches``) or all of them.  The result counts the units that were not swallowed by M, so it gives the size of
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

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.all_pairs import first_trace, read_pairs
from mmaprobe.probing.branches import read_branches
from mmaprobe.probing.integer_limits import probe_integer_order
from mmaprobe.probing.pairs import group_by_half_ulps
from mmaprobe.probing.rounds import together
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Node
from mmaprobe.probing.terms import power
from mmaprobe.probing.writing import describe, same_shape, to_json


@dataclass(frozen=True)
class Measured:
    """The tree that fits every pair asked, the window T it was seen in, and whether anything was swallowed."""

    tree: Node | None
    window: int
    bounded: bool
    reason: str = ""


async def measured(session: Session) -> Measured:
    """What the experiments say of the tree, found out once for all questions."""
    found: Measured = await session.fact("summation tree", _measure)
    return found


async def tree_of(session: Session) -> Node | None:
    """The summation tree, None where it could not be read (or there is nothing to add)."""
    return (await measured(session)).tree


async def _measure(session: Session) -> Measured:
    """A few rows, then all pairs, in the widest window; where roundings leave traces of the units, in two windows."""
    leaves = session.leaves
    if len(leaves) <= 2:
        return Measured(Node(leaves) if len(leaves) == 2 else None, session.window, False)
    tree = await read_branches(session) or await read_pairs(session, session.window, True)
    if tree is not None:
        return await _settle(session, tree, session.window)
    trace, carry = await first_trace(session), len(leaves).bit_length()
    if trace is not None:
        near = min(session.window, trace + carry + 1)
        far = min(session.window, max(near, trace + session.d.fraction_bits - carry - 3))
        windows = tuple(dict.fromkeys((near, far)))
        trees = await together(*(read_pairs(session, window, False) for window in windows))
        if trees[0] is not None and trees[-1] is not None and same_shape(trees[0], trees[-1]):
            return await _settle(session, trees[-1], far)
    return Measured(None, session.window, True, "no tree swallows units as this device does")


async def _settle(session: Session, tree: Node, window: int) -> Measured:
    """A sum in which nothing vanished: half-ulp pairs tell whether it is one step or several."""
    if len(tree.walk()) > 1 or not tree.lossless:
        return Measured(tree, window, False)
    groups = await group_by_half_ulps(session)
    if groups is None or len(groups) == 1:
        return Measured(tree, window, True, "nothing vanished within the window")
    node: Node | Leaf = "c"
    for group in groups:
        node = Node((node, *group), len(group) > 1)
    return Measured(node if isinstance(node, Node) else None, window, True, "steps found by half-ulp pairs")


async def probe_summation_tree(session: Session) -> Finding:
    """The summation tree (see the module) with three witnesses of the mask experiment."""
    if not session.is_float:
        return await probe_integer_order(session)
    found = await measured(session)
    if found.tree is None and len(session.leaves) == 1:
        return session.finding("exact", 0, "one product, no sum")
    if found.tree is None:
        answer = {"kind": "unknown", "terms": list(session.leaves)}
        return session.finding("inconclusive", answer, found.reason)
    await _witness(session, found.window)
    text = describe(to_json(found.tree))
    if found.bounded:
        text += f"; seen through a window of {found.window} bits: {found.reason}"
    return session.finding("bounded" if found.bounded else "exact", to_json(found.tree), text)


async def _witness(session: Session, window: int) -> None:
    m, leaves = session.high, session.leaves
    if len(leaves) <= 2:
        return
    for i, j in dict.fromkeys(((leaves[0], leaves[1]), (leaves[0], leaves[-1]), (leaves[-2], leaves[-1]))):
        note = f"+2^{m} on {i}, -2^{m} on {j}, 2^{m - window} elsewhere"
        await session.witness({i: power(m), j: -power(m)}, note, power(m - window))
