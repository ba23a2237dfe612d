"""Where sums and results become zero: the parts of the subnormals question that are not operands."""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.probing.experiments.anchor_places import outside_leaf
from mmaprobe.probing.questions.result_rounding import roundings_that_fit
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.session import Session
from mmaprobe.probing.tree import Leaf, leaves_of


async def result_policy(session: Session) -> str | None:
    """1.5 * 2**emin on one leaf, -2**emin on another: half the lowest normal remains."""
    low = power(session.d.min_exponent)
    tree = await tree_of(session)
    if tree is None:
        pairs = [(leaf,) for leaf in session.leaves]
        return await _flushed(session, [{pair[0]: sign * low / 2} for pair in pairs for sign in (1, -1)])
    x, y = (leaves_of(child)[0] for child in tree.children[:2])
    terms: list[dict[Leaf, Fraction]] = [{x: sign * low * 3 / 2, y: -sign * low} for sign in (1, -1)]
    return await _flushed(session, terms)


async def _flushed(session: Session, terms: list[dict[Leaf, Fraction]]) -> str | None:
    """Keep or flush, from vectors whose exact result is a subnormal (one positive, one negative)."""
    vectors = [v for t in terms if (v := session.try_vector(t)) is not None]
    if len(vectors) < len(terms):
        return None
    codes = await session.ask(vectors)
    values = session.decode(codes)
    exact = [sum(t.values(), Fraction(0)) for t in terms]
    session.note(vectors[-1], codes[-1], f"exact result {exact[-1] / power(session.d.min_exponent)} * 2^emin")
    if values == exact:
        return "keep"
    if any(value != 0 for value in values):
        return "mixed"
    signs = [bool(code & session.d.sign_mask) for code in codes]
    return "signed_zero" if signs == [e < 0 for e in exact] else "zero" if not any(signs) else "mixed"


async def product_policy(session: Session) -> str | None:
    """Each product below D's lowest normal, beside that normal on the leaf it meets first.

    A lane that starts a chain at zero is a partial sum at once (two lanes that
    meet first of all hide which of them it is): such lanes do not count as long as others keep.
    """
    low, tree = power(session.d.min_exponent), await tree_of(session)
    if session.formats["a"].min_exponent + session.formats["b"].min_exponent >= session.d.min_exponent:
        return "absent"
    if tree is None:
        return None
    lanes = range(session.k)
    beside = [next(leaves_of(c)[0] for c in tree.parent_of(lane).children if c != lane) for lane in lanes]
    small = [Fraction(1, 2), Fraction(1, 8)]
    vectors = [session.vector({beside[lane]: low, lane: low * x}) for lane in lanes for x in small]
    values = await session.values(vectors)
    pairs = list(zip(values[::2], values[1::2], strict=True))
    if any(pair not in ((low * 3 / 2, low * 9 / 8), (low, low)) for pair in pairs):
        return "mixed"
    kept = {lane: first != low for lane, (first, _) in zip(lanes, pairs, strict=True)}
    session.note(vectors[0], (await session.ask(vectors[:1]))[0], "half D's lowest normal in lane 0, that beside it")
    starts = {k for k in kept if all(isinstance(child, int) for child in tree.parent_of(k).children)}
    inside = {kept[k] for k in kept if k not in starts} or set(kept.values())
    return "mixed" if len(inside) > 1 else "keep" if True in inside else "flush"


async def sum_policy(session: Session) -> str | None:
    """A subnormal partial sum in every node below the last one, lifted by the term that joins next."""
    tree = await tree_of(session)
    inner = [] if tree is None else tree.walk()[1:]
    if tree is None or not inner:
        return "absent"
    low = power(session.d.min_exponent)
    terms: list[dict[Leaf, Fraction]] = []
    for node in inner:
        outside = outside_leaf(tree, node)
        x, y = (leaves_of(child)[0] for child in node.children[:2])
        if outside is not None:
            terms.append({x: low * 3 / 2, y: -low, outside: low})
    vectors = [v for t in terms if (v := session.try_vector(t)) is not None]
    if len(vectors) < len(terms):
        return None
    values = await session.values(vectors)
    session.note(
        vectors[0], (await session.ask(vectors[:1]))[0], "a partial sum of half D's lowest normal, then that normal"
    )
    if all(value == low * 3 / 2 for value in values):
        return "keep"
    return "flush" if all(value == low for value in values) else "mixed"


async def tininess(session: Session, result: str | None) -> str | None:
    """+-(2**emin less an eighth of the place below it): tiny before rounding, not after it (to nearest)."""
    if result == "keep":
        return "absent"
    tree = await tree_of(session)
    if tree is None or result is None:
        return None
    low, bits = power(session.d.min_exponent), session.d.fraction_bits
    x, y = (leaves_of(child)[0] for child in tree.children[:2])
    orders = ((x, y), (y, x))
    terms: list[dict[Leaf, Fraction]] = [
        {p: sign * low, q: -sign * low * power(-bits - 3)} for sign in (1, -1) for p, q in orders
    ]
    vectors = [v for t in terms if (v := session.try_vector(t)) is not None]
    values = await session.values(vectors)
    if vectors:
        session.note(vectors[0], (await session.ask(vectors[:1]))[0], "just below the lowest normal")
    if any(value is not None and abs(value) == low for value in values):
        return "after"
    rounds_up = any(name.startswith("RN") or name in ("RA", "RU", "RD") for name in await roundings_that_fit(session))
    return "before" if values and rounds_up and all(value == 0 for value in values) else None
