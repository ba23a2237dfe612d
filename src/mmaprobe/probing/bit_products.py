"""How bits are multiplied: AND or XOR; and whether their sum counts each lane once.

For each pair of bits, all lanes hold it, then lane 0 alone; C is zero and then one.

Answer: ``{"product": "and" | "xor" | "absent", "weights": "one" | None}``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.lanes import with_operands
from mmaprobe.probing.session import Session

TABLES: dict[tuple[int, ...], str] = {(0, 0, 0, 1): "and", (0, 1, 1, 0): "xor"}


async def probe_bit_products(session: Session) -> Finding:
    """The product of bits (see the module)."""
    if session.formats["a"].kind != "bits":
        return session.finding("exact", {"product": "absent", "weights": None}, "operands are numbers, not bits")
    zero = session.vector({})
    bits = [(x, y) for x in (0, 1) for y in (0, 1)]
    full = [replace(zero, a=(x,) * session.k, b=(y,) * session.k) for x, y in bits]
    lanes = range(session.k)
    single = [with_operands(zero, lane, x, y) for x, y in bits for lane in lanes]
    codes = await session.ask(full + single)
    table = tuple(code // session.k for code in codes[:4])
    answer: dict[str, Any] = {"product": TABLES.get(table), "weights": None}
    for vector, code, (x, y) in zip(full, codes, bits, strict=False):
        session.note(vector, code, f"every lane {x} and {y}")
    each = [table[number] for number in range(4) for _ in lanes]
    if answer["product"] is None or codes[:4] != [entry * session.k for entry in table] or codes[4:] != each:
        return session.finding("contradictory", answer, f"products of 00 01 10 11 sum to {codes[:4]}")
    answer["weights"] = "one"
    return session.finding("exact", answer, f"{answer['product']}, every lane counted once")
