"""Whether a product is exact before it is added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mmaprobe.formats import ROUNDINGS
from mmaprobe.probing.experiments.rounding import round_to
from mmaprobe.probing.session.exact_values import Value, code_of, power
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import Session
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf, Node, leaves_of


@dataclass(frozen=True)
class Products:
    """``kind``: exact, rounded, fits (no product is wider than the result) or None (not readable)."""

    kind: str | None
    rounding: tuple[str, ...] = ()
    lanes: tuple[int, ...] = ()

    def answer(self) -> dict[str, Any]:
        return {"product": self.kind, "product_rounding": list(self.rounding), "rounded_lanes": list(self.lanes)}

    def text(self) -> str:
        if self.kind == "fits":
            return "fit the result's format"
        if self.kind != "rounded":
            return self.kind or "not readable"
        return f"rounded {' or '.join(self.rounding)} in lanes {', '.join(map(str, self.lanes))}"


async def read_products(session: Session, tree: Node) -> Products:
    """Every lane's wide products, beside the negative of their upper part on the leaf that they meet first."""
    f = min(session.formats["a"].fraction_bits, session.formats["b"].fraction_bits)
    spare = 2 * f - session.d.fraction_bits
    if spare < 2 or session.formats["a"] != session.formats["b"]:
        return Products("fits" if spare < 0 else None)
    quantum = power(-session.d.fraction_bits)
    lanes = [_lane(session, tree, lane, f, spare) for lane in range(session.k)]
    if not all(lanes):
        return Products(None)
    rounded: list[int] = []
    names, odd = set(ROUNDINGS), False
    answers = await together(*(session.values([vector for vector, _, _ in asked]) for asked in lanes))
    for lane, (asked, came) in enumerate(zip(lanes, answers, strict=True)):
        if all(answer == product - upper for answer, (_, product, upper) in zip(came, asked, strict=True)):
            continue
        fits = {r for r in names if _explains(r, came, asked, quantum)}
        odd = odd or not fits
        names, rounded = fits or names, [*rounded, lane]
        shown = asked[0][0]
        session.note(shown, (await session.ask([shown]))[0], f"a wide product in lane {lane} against its upper part")
    if not rounded:
        first = lanes[0][0][0]
        session.note(first, (await session.ask([first]))[0], "a wide product against its upper part: the rest remains")
        return Products("exact")
    return Products(None if odd else "rounded", tuple(r for r in ROUNDINGS if r in names), tuple(rounded))


def _explains(
    rounding: str, answers: list[Value], asked: list[tuple[Vector, Fraction, Fraction]], quantum: Fraction
) -> bool:
    return all(
        answer == round_to(product, quantum, rounding) - upper
        for answer, (_, product, upper) in zip(answers, asked, strict=True)
    )


def _lane(session: Session, tree: Node, lane: int, f: int, spare: int) -> list[tuple[Vector, Fraction, Fraction]]:
    """Products +-(1 + i)(1 + j) whose lower part is a quarter, a half, three quarters of D's last place."""
    beside: Leaf = next(leaves_of(child)[0] for child in tree.parent_of(lane).children if child != lane)
    a, b = session.formats["a"], session.formats["b"]
    out = []
    for shift in (0, 1):  # an odd, then an even last place of the upper part
        for quarters in (1, 2, 3):
            left, right = power(shift - f), quarters * power(spare - 2 - shift - f)
            for sign in (1, -1):
                product, upper = sign * (1 + left) * (1 + right), sign * (1 + left + right)
                codes = code_of(a, sign * (1 + left)), code_of(b, 1 + right)
                base = session.try_vector({beside: -upper})
                if base is None or codes[0] is None or codes[1] is None:
                    continue
                x, y = list(base.a), list(base.b)
                x[lane], y[lane] = codes[0], codes[1]
                out.append((replace(base, a=tuple(x), b=tuple(y)), product, upper))
    return out
