"""How bits are multiplied: AND or XOR; and whether their sum counts each lane once.

All lanes hold one pair of bits, each pair in turn; then, in each lane alone, a pair
whose product is 1 stands among pairs whose product is 0.

Answer: ``{"product": "and" | "xor" | "absent", "weights": "one" | None}``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.chosen_operands import with_operands
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession

TABLES: dict[tuple[int, ...], str] = {(0, 0, 0, 1): "and", (0, 1, 1, 0): "xor"}


async def probe_bit_products(session: ProbeSession) -> Finding:
    """The product of bits (see the module)."""
    zero = session.vector({})
    bits = [(x, y) for x in (0, 1) for y in (0, 1)]
    full = [replace(zero, a=Codes(session.k, x), b=Codes(session.k, y)) for x, y in bits]
    codes = await session.ask(full)
    table = tuple(code // session.k for code in codes[:4])
    answer: dict[str, Any] = {"product": TABLES.get(table), "weights": None}
    for vector, code, (x, y) in zip(full, codes, bits, strict=False):
        session.note(vector, code, f"every lane {x} and {y}")
    if answer["product"] is None or codes != [entry * session.k for entry in table]:
        return session.finding("contradictory", answer, f"products of 00 01 10 11 sum to {codes}")
    x, y = bits[table.index(1)]
    alone = await session.ask([with_operands(zero, lane, x, y) for lane in range(session.k)])
    if set(alone) != {1}:
        return session.finding("contradictory", answer, f"single lanes count {sorted(set(alone))}")
    answer["weights"] = "one"
    return session.finding("exact", answer, f"{answer['product']}, every lane counted once")


PROBE = Probe(
    order=250,
    asks="how bits are multiplied",
    rivals="AND, XOR",
    experiment=probe_bit_products,
    applies=lambda made: made.formats()["a"].kind == "bits",
    otherwise=({"product": "absent", "weights": None}, "operands are numbers, not bits"),
    sound=lambda answer: answer["product"] in ("and", "xor", "absent"),
)
