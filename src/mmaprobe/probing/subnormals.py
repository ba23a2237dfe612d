"""Where subnormal numbers are kept and where they become zero.

Answer: a dictionary over ``a``, ``b``, ``c`` (operands), ``product``, ``sum``
(a result inside the tree), ``result`` of

* ``keep``; ``zero`` (becomes +0); ``signed_zero``; ``flush`` (a zero whose sign does not show);
* ``absent``: the format has none, or none can occur there; ``mixed``: some kept, some not;
* None: not reachable by an experiment (the text says why),

and ``tininess``: ``before`` or ``after`` rounding where results are flushed,
``absent`` where they are kept, None where the rounding hides it.

Operands: the largest, the smallest and a middle subnormal against a large
normal.  Product: two normal operands below D's lowest normal, beside a normal
term.  Sum, result: 1.5 and -1 times the lowest normal.  Tininess: the lowest
normal less an eighth of its last place.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.formats import Format
from mmaprobe.probing.rounding import outside_leaf
from mmaprobe.probing.session import Session, Vector
from mmaprobe.probing.structure import Leaf, leaves_of
from mmaprobe.probing.terms import Value, power
from mmaprobe.probing.zeros import sign_shown

QUESTION = "subnormals"


def probe_subnormals(session: Session) -> Finding:
    """The subnormal policy of each place (see the module)."""
    if not session.is_float:
        return session.finding(QUESTION, "exact", {}, "integers have no subnormal numbers")
    answer: dict[str, Any] = {name: _operand(session, name) for name in ("a", "b")}
    answer["result"] = _result(session)
    answer["c"] = _c(session, answer["result"]) if session.instruction.c else "absent"
    if answer["result"] is None and answer["c"] == "keep":
        answer["result"] = "keep"
    answer["product"] = _product(session)
    answer["sum"] = _sum(session)
    answer["tininess"] = _tininess(session, answer["result"])
    open_ones = [name for name, value in answer.items() if value is None]
    text = ", ".join(f"{name} {value}" for name, value in answer.items() if value not in (None, "absent"))
    if open_ones:
        text += f"; out of reach in these formats: {', '.join(open_ones)}"
    return session.finding(QUESTION, "bounded" if open_ones else "exact", answer, text)


def _operand(session: Session, name: str) -> str | None:
    """Subnormals of operand a or b in lane 0 against the largest power of two that keeps the product in range."""
    fmt, other = session.formats[name], session.formats["b" if name == "a" else "a"]
    if not fmt.is_float or not fmt.subnormal or fmt.fraction_bits == 0:
        return "absent"
    top = min(other.max_exponent, session.d.max_exponent - fmt.min_exponent - 1)
    partner = session.operand("b" if name == "a" else "a", power(top))
    ones = (1 << fmt.fraction_bits) - 1
    codes = [fraction << fmt.padding for fraction in sorted({1, ones, 1 << (fmt.fraction_bits - 1)})]
    base = session.vector({})
    vectors = [_lane(base, name, code, partner) for code in codes]
    kept = []
    for code, vector, value in zip(codes, vectors, session.values(vectors), strict=True):
        exact = (code >> fmt.padding) * power(fmt.min_exponent - fmt.fraction_bits + top)
        kept.append(None if value != 0 and not _near(session.d, value, exact) else value != 0)
    session.note(vectors[-1], session.ask(vectors[-1:])[0], f"subnormal {name} against 2^{top}")
    if None in kept or len(set(kept)) > 1:
        return "mixed"
    if kept[0]:
        return "keep"
    return _sign_of_flush(session, name, codes[-1] | fmt.sign_mask, partner, fmt)


def _near(fmt: Format, value: Value, exact: Fraction) -> bool:
    """A kept value: exact to within the last place of the result."""
    return value is not None and abs(value - exact) <= abs(exact) / (1 << fmt.fraction_bits)


def _lane(base: Vector, name: str, code: int, partner: int) -> Vector:
    """``base`` with these operands in lane 0."""
    other = "b" if name == "a" else "a"
    return replace(base, **{name: (code, *getattr(base, name)[1:]), other: (partner, *getattr(base, other)[1:])})


def _sign_of_flush(session: Session, name: str, negative: int, partner: int, fmt: Format) -> str:
    """Whether a flushed negative subnormal still counts as a negative zero."""
    if not fmt.signed:
        return "zero"
    shown = sign_shown(session, lambda base: _lane(base, name, negative, partner))
    return {None: "flush", True: "signed_zero", False: "zero"}[shown]


def _result(session: Session) -> str | None:
    """1.5 * 2**emin on one leaf, -2**emin on another: half the lowest normal remains."""
    low = power(session.d.min_exponent)
    tree = session.tree
    if tree is None:
        pairs = [(leaf,) for leaf in session.leaves]
        return _flushed(session, [{pair[0]: sign * low / 2} for pair in pairs for sign in (1, -1)])
    x, y = (leaves_of(child)[0] for child in tree.children[:2])
    terms: list[dict[Leaf, Fraction]] = [{x: sign * low * 3 / 2, y: -sign * low} for sign in (1, -1)]
    return _flushed(session, terms)


def _flushed(session: Session, terms: list[dict[Leaf, Fraction]]) -> str | None:
    """Keep or flush, from vectors whose exact result is a subnormal (one positive, one negative)."""
    vectors = [v for t in terms if (v := session.try_vector(t)) is not None]
    if len(vectors) < len(terms):
        return None
    codes = session.ask(vectors)
    values = session.decode(codes)
    exact = [sum(t.values(), Fraction(0)) for t in terms]
    session.note(vectors[-1], codes[-1], f"exact result {exact[-1] / power(session.d.min_exponent)} * 2^emin")
    if values == exact:
        return "keep"
    if any(value != 0 for value in values):
        return "mixed"
    signs = [bool(code & session.d.sign_mask) for code in codes]
    return "signed_zero" if signs == [e < 0 for e in exact] else "zero" if not any(signs) else "mixed"


def _c(session: Session, result: str | None) -> str | None:
    """C subnormal: alone; and where the result is flushed too, beside a product that lifts it."""
    fmt = session.formats["c"]
    sub = power(fmt.min_exponent - 1)
    alone = session.vector({"c": sub})
    value = session.values([alone])[0]
    session.note(alone, session.ask([alone])[0], "C subnormal, every product zero")
    if value == sub:
        return "keep"
    lift: Leaf = 0
    raised = session.try_vector({"c": sub, lift: 2 * sub})
    if fmt.min_exponent - 1 >= session.d.min_exponent or result == "keep":
        kept = False
    elif raised is None:
        return None
    else:
        lifted = session.values([raised])[0]
        session.note(raised, session.ask([raised])[0], "C half the lowest normal, a product the lowest normal")
        kept = lifted == 3 * sub
    if kept:
        return "keep"
    negative = session.operand("c", -sub)
    shown = sign_shown(session, lambda base: replace(base, c=negative), "c")
    return {None: "flush", True: "signed_zero", False: "zero"}[shown]


def _product(session: Session) -> str | None:
    """A product of normal operands below D's lowest normal, beside a normal term that keeps the sum normal."""
    low = power(session.d.min_exponent)
    a, b = session.formats["a"], session.formats["b"]
    if a.min_exponent + b.min_exponent >= session.d.min_exponent:
        return "absent"
    if len(session.leaves) < 2:
        return None
    beside: Leaf = session.leaves[0]
    lane: Leaf = session.leaves[1]
    terms: list[dict[Leaf, Fraction]] = [{beside: low, lane: low / 2}, {beside: low, lane: low / 8}]
    vectors = [session.try_vector(t) for t in terms]
    ready = [v for v in vectors if v is not None]
    if len(ready) < 2:
        return None
    values = session.values(ready)
    session.note(ready[0], session.ask(ready[:1])[0], "a product of half D's lowest normal beside the lowest normal")
    if values == [low * 3 / 2, low * 9 / 8]:
        return "keep"
    return "flush" if values == [low, low] else "mixed"


def _sum(session: Session) -> str | None:
    """A subnormal partial sum in every node below the last one, lifted by the term that joins next."""
    tree = session.tree
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
    values = session.values(vectors)
    session.note(vectors[0], session.ask(vectors[:1])[0], "a partial sum of half D's lowest normal, then that normal")
    if all(value == low * 3 / 2 for value in values):
        return "keep"
    return "flush" if all(value == low for value in values) else "mixed"


def _tininess(session: Session, result: str | None) -> str | None:
    """+-(2**emin less an eighth of the place below it): tiny before rounding, not after it (to nearest)."""
    if result == "keep":
        return "absent"
    tree = session.tree
    if tree is None or result is None:
        return None
    low, bits = power(session.d.min_exponent), session.d.fraction_bits
    x, y = (leaves_of(child)[0] for child in tree.children[:2])
    orders = ((x, y), (y, x))
    terms: list[dict[Leaf, Fraction]] = [
        {p: sign * low, q: -sign * low * power(-bits - 3)} for sign in (1, -1) for p, q in orders
    ]
    vectors = [v for t in terms if (v := session.try_vector(t)) is not None]
    values = session.values(vectors)
    if vectors:
        session.note(vectors[0], session.ask(vectors[:1])[0], "just below the lowest normal")
    if any(value is not None and abs(value) == low for value in values):
        return "after"
    rounds_up = any(name.startswith("RN") or name in ("RA", "RU", "RD") for name in session.rounding)
    return "before" if values and rounds_up and all(value == 0 for value in values) else None
