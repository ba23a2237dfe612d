"""Whether sums of two terms align them before they add.

C = M + u and a product of -M: a rounded addition gives u, an alignment that keeps fewer bits has cut it.
As far as C's own bits reach that tells; further down a tiny term that counts for what it is in both signs
(``tipping``) does, of the last sum.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.anchor_places import AnchorPlace
from mmaprobe.probing.experiments.ladders import climb
from mmaprobe.probing.experiments.rounding import fraction_bits
from mmaprobe.probing.experiments.tiny_terms import heads
from mmaprobe.probing.experiments.tipping import tips
from mmaprobe.probing.session.chosen_operands import beside
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node
from mmaprobe.showing import counted


async def bits_of_c(session: ProbeSession, tree: Node) -> tuple[int, bool] | None:
    """(bits of C below the largest term, whether a lower one was lost); None where C does not meet one term alone."""
    if not session.instruction.c or len(tree.parent_of("c").children) > 2:
        return None
    other: Leaf = beside(tree, "c")
    m, widest = session.high, session.formats["c"].fraction_bits
    last = min(widest, session.window_of("c"))
    if session.try_vector({"c": power(m) + power(m - last), other: -power(m)}) is None:
        return None
    bits = await climb(
        session, 1, last,
        lambda t: {"c": power(m) + power(m - t), other: -power(m)}, lambda t, value: value == power(m - t),
    )  # fmt: skip
    return bits, bits < last


async def bits_shown(session: ProbeSession, tree: Node) -> int | None:
    """Bits of a term that come out beside a larger one that stays; None where no such term can be built."""
    anchor, others = heads(tree)
    return await fraction_bits(session, AnchorPlace((anchor,), others[0], None), session.d.fraction_bits)


async def nothing_aligned(session: ProbeSession, tree: Node, none: dict[str, Any]) -> Finding:
    """What a question about alignments answers of a tree without a fused sum."""
    found = await bits_of_c(session, tree)
    if found is not None and found[1]:
        return session.finding(
            "bounded", none, f"only sums of two terms: C is cut {counted(found[0], 'bit')} below the other"
        )
    tipped = await tips(session, tree)
    if tipped is None or not tipped.bounded:
        return session.finding("bounded", none, "only sums of two terms: whether they align them does not show")
    return session.finding("exact", none, "no fused sum: nothing is aligned")
