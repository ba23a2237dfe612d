"""The range of a product before it is added: where it becomes infinite, whether small ones are added up.

Overflow: 2**t and -2**t on two leaves that meet first, t from the largest exponent of D to that
of a product: zero while both are finite.  Underflow: two halves and four quarters of D's
lowest number, which make that number where products are added before they are cut to
D's format, zero where each is cut alone.

Answer: ``{"overflow_exponent": t | "none" | "absent" | None, "small": "added" | "cut" | "absent" | None}``:
the lowest t of an infinite product; ``none`` where the largest one is finite, ``absent`` where no
product goes so far.  In a chain only the product next to the range comes back into it: where
that one is finite the answer is None.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.chosen_operands import beside, fused_lanes
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node


async def probe_product_range(session: ProbeSession) -> Finding:
    """Overflow and underflow of products (see the module)."""
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree of two leaves or more")
    large, small = await together(_overflow(session, tree), _small(session, tree))
    answer: dict[str, Any] = {"overflow_exponent": large, "small": small}
    words = {"none": "the largest is finite", "absent": "none exceeds the result's range", None: "hidden"}
    below = {"added": "added up", "cut": "cut off", "absent": "none is below it", None: "hidden"}
    text = f"large products: {words.get(large, f'infinite from 2^{large}')}; small ones: {below[small]}"
    return session.finding("bounded" if None in answer.values() else "exact", answer, text)


async def _overflow(session: ProbeSession, tree: Node) -> int | str | None:
    a, b, d = session.formats["a"], session.formats["b"], session.d
    top = a.max_exponent + b.max_exponent
    if top <= d.max_exponent:
        return "absent"
    lane = session.k - 1
    mates = [leaf for leaf in tree.parent_of(lane).children if isinstance(leaf, int) and leaf != lane]
    other: Leaf = mates[0] if mates else beside(tree, lane)
    if not mates:  # a chain: only the product next to the range can come back into it
        top = d.max_exponent + 1
        values = await session.sums([{lane: power(top), other: -power(top - 1)}])
        await session.witness({lane: power(top), other: -power(top - 1)}, f"2^{top} less 2^{top - 1}")
        return None if values == [power(top - 1)] else top
    near = range(d.max_exponent - 1, min(top, d.max_exponent + 4) + 1)
    finite = await _finite(session, lane, other, [*near, top])
    if finite[top]:
        return "none"
    if all(finite[t] for t in near):
        finite |= await _finite(session, lane, other, list(range(near[-1], top + 1)))
    lowest = min(t for t, is_finite in finite.items() if not is_finite)
    await session.witness({lane: power(lowest), other: -power(lowest)}, f"products of +-2^{lowest}")
    return lowest


async def _finite(session: ProbeSession, lane: Leaf, other: Leaf, exponents: list[int]) -> dict[int, bool]:
    values = await session.sums({lane: power(t), other: -power(t)} for t in exponents)
    return {t: value == 0 for t, value in zip(exponents, values, strict=True)}


async def _small(session: ProbeSession, tree: Node) -> str | None:
    d = session.d
    lowest = power(d.min_exponent - d.fraction_bits)
    if session.formats["a"].min_exponent + session.formats["b"].min_exponent > d.min_exponent - d.fraction_bits - 2:
        return "absent"
    lanes, _ = fused_lanes(tree)
    some: list[int] = lanes if len(lanes) > 1 else list(range(session.k))
    if len(some) < 2:
        return None
    count = 4 if len(some) > 3 else 2
    terms: list[dict[Leaf, Fraction]] = [
        dict.fromkeys(some[:2], lowest / 2),
        dict.fromkeys(some[:count], lowest / count),
    ]
    await session.witness(terms[0], "two products of half of D's lowest number")
    values = await session.sums(terms)
    if values == [lowest, lowest]:
        return "added"
    return "cut" if values == [0, 0] else None


PROBE = Probe(
    order=110,
    asks="where a product becomes infinite, whether small ones are added up",
    rivals="an exponent, none; added, cut",
    experiment=probe_product_range,
    applies=floats,
    otherwise=(None, "integers: products are exact"),
    sound=lambda answer: answer is None or answer["small"] in ("added", "cut", "absent", None),
)
