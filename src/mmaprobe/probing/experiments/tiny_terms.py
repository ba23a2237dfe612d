"""What shows that a tiny term tipped a rounding by what it is worth (``tipping``)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from mmaprobe.probing.session.chosen_operands import with_operands
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf, Node, leaves_of


def heads(tree: Node) -> tuple[Leaf, list[Leaf]]:
    """The leaf that holds the anchor, and one of each other term."""
    heads = [leaves_of(child)[0] for child in tree.children]
    anchor: Leaf = "c" if "c" in heads else heads[0]
    return anchor, [head for head in heads if head != anchor]


async def adds_up(session: ProbeSession, tree: Node, half: Fraction, sign: int, t: int) -> bool | None:
    """Whether the tiny term counts as what it is, not as a place that it was rounded to: minus itself takes it
    away, and from twice as much leaves what tips as well.  None where there are too few leaves for it."""
    anchor, others = heads(tree)
    spare = 2 if half else 1
    if len(others) <= spare:
        return None
    m = session.low + t
    tiny = sign * power(m - t)
    base: dict[Leaf, Fraction] = {anchor: 3 * power(m - 1)}
    base |= {others[1]: half * power(m - session.d.fraction_bits)} if half else {}
    cases = [base] + [base | {others[0]: x * tiny, others[spare]: y * tiny} for x, y in ((1, 0), (1, -1), (2, -1))]
    vectors = [vector for case in cases if (vector := session.try_vector(case)) is not None]
    if len(vectors) < len(cases):
        return None
    plain, tipped, cancelled, less = await session.ask(vectors)
    return cancelled == plain and less == tipped


async def to_nearest(session: ProbeSession, tree: Node) -> bool:
    """Whether three quarters of a last place more, and less, change the result: then it is rounded to nearest."""
    anchor, others = heads(tree)
    m = session.low + session.d.fraction_bits + 2
    terms = [{anchor: 3 * power(m - 1)} | ({others[0]: n * power(m - session.d.fraction_bits - 2)} if n else {})
             for n in (0, 3, -3)]  # fmt: skip
    vectors = [session.try_vector(some) for some in terms]
    codes = await session.ask([vector for vector in vectors if vector is not None])
    return len(set(codes)) == len(codes) == len(terms)


async def comes_out(session: ProbeSession, full: Vector, leaf: Leaf, tiny: Fraction) -> bool:
    """Whether the operands of the tiny term, which block scales may have made subnormal, give it with zeros beside."""
    zero = session.vector({})
    if not isinstance(leaf, int):
        return True
    bare = with_operands(zero, leaf, full.a[leaf], full.b[leaf])
    alone = replace(bare, scale_a=full.scale_a, scale_b=full.scale_b)
    return await session.values([alone]) == [tiny]


async def product_holds(session: ProbeSession, anchor: Leaf, other: Leaf, half: Fraction, sign: int, t: int) -> bool:
    """Whether one product of half a place and the tiny term is not rounded before it is added."""
    m = session.low + t
    place, tiny = half * power(m - session.d.fraction_bits), sign * power(m - t)
    vector = session.try_vector({anchor: -place, other: place + tiny})
    return vector is not None and (await session.values([vector])) == [tiny]
