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
from mmaprobe.probing.experiments.zero_sign import sign_shown
from mmaprobe.probing.questions.flushing import product_policy, result_policy, sum_policy, tininess
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.chosen_operands import beside
from mmaprobe.probing.session.exact_values import Value, power
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import Session
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf


async def probe_subnormals(session: Session) -> Finding:
    """The subnormal policy of each place (see the module)."""
    if not session.is_float:
        return session.finding("exact", {}, "integers have no subnormal numbers")
    a, b, result, product, inside = await together(
        _operand(session, "a"), _operand(session, "b"), result_policy(session),
        product_policy(session), sum_policy(session),
    )  # fmt: skip
    c = await _c(session, result) if session.instruction.c else "absent"
    result = "keep" if result is None and c == "keep" else result
    answer: dict[str, Any] = {"a": a, "b": b, "result": result, "c": c, "product": product, "sum": inside}
    answer["tininess"] = await tininess(session, result)
    open_ones = [name for name, value in answer.items() if value is None]
    text = ", ".join(f"{name} {value}" for name, value in answer.items() if value not in (None, "absent"))
    if open_ones:
        text += f"; out of reach in these formats: {', '.join(open_ones)}"
    return session.finding("bounded" if open_ones else "exact", answer, text)


async def _operand(session: Session, name: str) -> str | None:
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
    return replace(base, a=(pair["a"], *base.a[1:]), b=(pair["b"], *base.b[1:]))


async def _sign_of_flush(session: Session, name: str, negative: int, partner: int, fmt: Format) -> str:
    """Whether a flushed negative subnormal still counts as a negative zero."""
    if not fmt.signed:
        return "zero"
    shown = await sign_shown(session, lambda base: _lane(base, name, negative, partner))
    return {None: "flush", True: "signed_zero", False: "zero"}[shown]


async def _c(session: Session, result: str | None) -> str | None:
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


async def _lifted(session: Session, sub: Fraction) -> Value:
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
