"""Where subnormal numbers are kept and where they become zero.

Answer: a dictionary over ``a``, ``b``, ``c`` (operands), ``product``, ``sum``
(a result inside the tree), ``result`` of

* ``keep``; ``zero`` (becomes +0); ``signed_zero``; ``flush`` (a zero whose sign does not show);
* ``absent``: the format has none, or none can occur there; ``mixed``: some kept, some not;
* None: not reachable by an experiment (the text says why),

and ``tininess``: ``before`` or ``after`` rounding where results are flushed,
``absent`` where they are kept, None where the rounding hides it.

Operands: the largest, the smallest and a middle subnormal against a large
normal; where sums align their terms, which cuts subnormals short, only those
near the top.  Product: two normal operands below D's lowest normal, beside a
normal term.  Sum, result: 1.5 and -1 times the lowest normal.  Tininess: the
lowest normal less an eighth of its last place.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.formats import Format
from mmaprobe.probing.experiments.anchor_places import outside_leaf
from mmaprobe.probing.experiments.zero_sign import sign_shown
from mmaprobe.probing.questions.result_rounding import roundings_that_fit
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.chosen_operands import beside, with_operands
from mmaprobe.probing.session.exact_values import Value, power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf, leaves_of


async def probe_subnormals(session: ProbeSession) -> Finding:
    """The subnormal policy of each place (see the module)."""
    a, b, result, product, inside = await together(
        _operand(session, "a"), _operand(session, "b"), _result_policy(session),
        _product_policy(session), _sum_policy(session),
    )  # fmt: skip
    c = await _c(session, result) if session.instruction.c else "absent"
    result = "keep" if result is None and c == "keep" else result
    answer: dict[str, Any] = {"a": a, "b": b, "result": result, "c": c, "product": product, "sum": inside}
    answer["tininess"] = await _tininess(session, result)
    open_ones = [name for name, value in answer.items() if value is None]
    text = ", ".join(f"{name} {value}" for name, value in answer.items() if value not in (None, "absent"))
    if open_ones:
        text += f"; out of reach in these formats: {', '.join(open_ones)}"
    return session.finding("bounded" if open_ones else "exact", answer, text)


async def _operand(session: ProbeSession, name: str) -> str | None:
    """Subnormals of operand a or b in lane 0 against the largest power of two that keeps the product in range."""
    fmt, other = session.formats[name], session.formats["b" if name == "a" else "a"]
    if not fmt.is_float or not fmt.subnormal or fmt.fraction_bits == 0:
        return "absent"
    top = min(other.max_exponent, session.d.max_exponent - fmt.min_exponent - 1)
    partner = session.operand("b" if name == "a" else "a", power(top))
    ones = (1 << fmt.fraction_bits) - 1
    half = 1 << (fmt.fraction_bits - 1)
    tree = await tree_of(session)
    aligned = tree is not None and any(node.fused for node in tree.walk())
    codes = [fraction << fmt.padding for fraction in ([half, half | half >> 1] if aligned else sorted({1, ones, half}))]
    base = session.vector({})
    vectors = [_lane(base, name, code, partner) for code in codes]
    kept = []
    for code, value in zip(codes, await session.values(vectors), strict=True):
        exact = (code >> fmt.padding) * power(fmt.min_exponent - fmt.fraction_bits + top)
        kept.append(None if value != 0 and not _near(session.d, value, exact) else value != 0)
    session.note(vectors[-1], (await session.ask(vectors[-1:]))[0], f"subnormal {name} against 2^{top}")
    if None in kept or len(set(kept)) > 1:
        return "mixed"
    if kept[0]:
        return "keep"
    return await _sign_of_flush(session, name, codes[-1] | fmt.sign_mask, partner, fmt)


def _near(fmt: Format, value: Value, exact: Fraction) -> bool:
    """A kept value: exact to within the last place of the result."""
    return value is not None and abs(value - exact) <= abs(exact) / (1 << fmt.fraction_bits)


def _lane(base: Vector, name: str, code: int, partner: int) -> Vector:
    """``base`` with these operands in lane 0."""
    other = "b" if name == "a" else "a"
    pair = {name: code, other: partner}
    return with_operands(base, 0, pair["a"], pair["b"])


async def _sign_of_flush(session: ProbeSession, name: str, negative: int, partner: int, fmt: Format) -> str:
    """Whether a flushed negative subnormal still counts as a negative zero."""
    if not fmt.signed:
        return "zero"
    shown = await sign_shown(session, lambda base: _lane(base, name, negative, partner))
    return {None: "flush", True: "signed_zero", False: "zero"}[shown]


async def _c(session: ProbeSession, result: str | None) -> str | None:
    """C subnormal: alone; and where the result is flushed too, beside a product that lifts it."""
    fmt = session.formats["c"]
    sub = power(fmt.min_exponent - 1)
    alone = session.vector({"c": sub})
    value = (await session.values([alone]))[0]
    session.note(alone, (await session.ask([alone]))[0], "C subnormal, every product zero")
    if value == sub:
        return "keep"
    if sub < power(session.d.min_exponent - session.d.fraction_bits):
        return None  # below the result's last place
    lifted = await _lifted(session, sub)
    if lifted is None and fmt.min_exponent - 1 < session.d.min_exponent and result != "keep":
        return None
    if lifted == 3 * sub:
        return "keep"
    if lifted not in (None, 2 * sub):
        return None
    negative = session.operand("c", -sub)
    shown = await sign_shown(session, lambda base: replace(base, c=negative), "c")
    return {None: "flush", True: "signed_zero", False: "zero"}[shown]


async def _lifted(session: ProbeSession, sub: Fraction) -> Value:
    """C's subnormal beside twice as much on the lane that it meets first; None where no product is as much."""
    tree = await tree_of(session)
    lift: Leaf = 0 if tree is None else beside(tree, "c")
    vectors = [session.try_vector(terms) for terms in ({lift: 2 * sub}, {"c": sub, lift: 2 * sub})]
    ready = [vector for vector in vectors if vector is not None]
    if len(ready) < len(vectors):
        return None
    alone, lifted = await session.values(ready)
    session.note(ready[1], session.bench.answers[ready[1]], "C half the lowest normal, a product the lowest normal")
    return lifted if alone == 2 * sub else None


async def _result_policy(session: ProbeSession) -> str | None:
    """1.5 * 2**emin on one leaf, -2**emin on another: half the lowest normal remains."""
    low = power(session.d.min_exponent)
    tree = await tree_of(session)
    if tree is None:
        pairs = [(leaf,) for leaf in session.leaves]
        return await _flushed(session, [{pair[0]: sign * low / 2} for pair in pairs for sign in (1, -1)])
    x, y = (leaves_of(child)[0] for child in tree.children[:2])
    terms: list[dict[Leaf, Fraction]] = [{x: sign * low * 3 / 2, y: -sign * low} for sign in (1, -1)]
    return await _flushed(session, terms)


async def _flushed(session: ProbeSession, terms: list[dict[Leaf, Fraction]]) -> str | None:
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


async def _product_policy(session: ProbeSession) -> str | None:
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


async def _sum_policy(session: ProbeSession) -> str | None:
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


async def _tininess(session: ProbeSession, result: str | None) -> str | None:
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


PROBE = Probe(
    order=190,
    asks="where subnormals become zero: operands, products, sums, the result",
    rivals="keep, zero, signed zero",
    experiment=probe_subnormals,
    applies=floats,
    otherwise=({}, "integers have no subnormal numbers"),
    sound=lambda answer: "mixed" not in answer.values(),
)
