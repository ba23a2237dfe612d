"""Which terms are added with which: the summation tree.

After FPRev (ATC'25), generalised to C and to nodes of many terms: +M on leaf
i, -M on leaf j, a unit u = M * 2**-T on every other leaf, for some rows of pairs
(``trees.mask_rows``), or one unit at a time (``unit_by_unit``).  The result counts the units that
were not swallowed by M, so it gives the size of the lowest node that holds both
(``tree``); what those nodes add first shows just below the last place kept (``trees.inner_groups``).
Where M and -M do not cancel (ones' complement), a unit has vanished that changes nothing.

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
from mmaprobe.probing.experiments.integer_limits import integer_order
from mmaprobe.probing.experiments.window import ENOUGH
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node
from mmaprobe.probing.trees.half_ulp_pairs import group_by_half_ulps
from mmaprobe.probing.trees.inner_groups import with_groups
from mmaprobe.probing.trees.mask_rows import read_branches
from mmaprobe.probing.trees.tree_json import describe, to_json
from mmaprobe.probing.trees.unit_by_unit import read_units


@dataclass(frozen=True)
class Measured:
    """A tree that fits what was asked; ``reason`` says what stays open about it, if anything does."""

    tree: Node | None
    reason: str = ""


async def tree_of(session: ProbeSession) -> Node | None:
    """The sums that swallow, None where they could not be read (or there is nothing to add)."""
    return (await _measured(session)).tree


async def shown_tree(session: ProbeSession) -> Measured:
    """The same with what its sums add first, which the mask experiment does not see."""
    found: Measured = await session.fact("what sums add first", _look_inside)
    return found


async def _measured(session: ProbeSession) -> Measured:
    found: Measured = await session.fact("summation tree", _measure)
    return found


async def _measure(session: ProbeSession) -> Measured:
    """A few rows in the widest window, then single units; half-ulp pairs where nothing vanished."""
    leaves = session.leaves
    if len(leaves) <= 2:
        return Measured(Node(leaves) if len(leaves) == 2 else None)
    tree = None if session.complement else await read_branches(session)
    tree = tree or await read_units(session)
    if tree is None:
        return Measured(None, "no tree swallows units as this device does")
    if session.complement:
        return Measured(None if all(node.lossless for node in tree.walk()) else tree, session.complement)
    if len(tree.walk()) > 1 or not tree.lossless:
        return Measured(tree)
    groups = await group_by_half_ulps(session)
    if groups is None or len(groups) == 1:
        return Measured(tree, "nothing vanished")
    node: Node | Leaf = "c"
    for group in groups:
        node = Node((node, *group), len(group) > 1)
    return Measured(node if isinstance(node, Node) else None, "steps found by half-ulp pairs")


async def _look_inside(session: ProbeSession) -> Measured:
    found = await _measured(session)
    if found.tree is None or found.reason:
        return found
    shown, doubt = await with_groups(session, found.tree)
    lossless = sum(node.lossless for node in shown.walk())
    if lossless and session.window < ENOUGH:
        return Measured(shown, f"nothing vanished in {lossless} of its sums")
    return Measured(shown, "whether what is added last is aligned with the products does not show" if doubt else "")


async def probe_summation_tree(session: ProbeSession) -> Finding:
    """The summation tree (see the module) with three witnesses of the mask experiment."""
    if not session.is_float:
        return await integer_order(session)
    found = await shown_tree(session)
    if found.tree is None and len(session.leaves) == 1:
        return session.finding("exact", 0, "one product, no sum")
    if found.tree is None:
        answer = {"kind": "unknown", "terms": list(session.leaves)}
        return session.finding("inconclusive", answer, found.reason)
    await _witness(session)
    answer = to_json(found.tree)
    text = describe(answer)
    if found.reason:
        text += f"; seen through a window of {session.window} bits: {found.reason}"
    return session.finding("bounded" if found.reason else "exact", answer, text)


async def _witness(session: ProbeSession) -> None:
    m, leaves, window = session.high, session.leaves, session.window
    if len(leaves) <= 2:
        return
    for i, j in dict.fromkeys(((leaves[0], leaves[1]), (leaves[0], leaves[-1]), (leaves[-2], leaves[-1]))):
        note = f"+2^{m} on {i}, -2^{m} on {j}, 2^{m - window} elsewhere"
        await session.witness({i: power(m), j: -power(m)}, note, power(m - window))


PROBE = Probe(
    order=50,
    asks="which terms are added with which",
    of_opposites=True,
    rivals="trees of FMAs, additions, fused and lossless sums",
    experiment=probe_summation_tree,
    sound=lambda answer: answer is not None,
)
