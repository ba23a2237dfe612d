"""Half-ulp pairs: which lanes are added before C is rounded, without any large anchor.

c = 2**(h+p) with p result bits, so 2**h is half of C's last place.  ``+h`` on
lanes i and j moves C by one place where the two meet before C is rounded (for
RZ, RD and RNE alike) and leaves it where they do not.  ``+h`` on i, ``-h`` on
j: half a place below C if i's step comes first (the +h is lost, the -h is not:
below a power of two the spacing is half); else C.  Works in formats with a
window of a few bits.
"""

from __future__ import annotations

from itertools import combinations

from mmaprobe.probing.session import Session
from mmaprobe.probing.terms import UnrepresentableError, power


def group_by_half_ulps(session: Session) -> list[tuple[int, ...]] | None:
    """Steps of lanes in the order in which they reach C; None where the experiment cannot be built."""
    if not session.instruction.c or session.instruction.k < 2:
        return None
    bits = session.d.fraction_bits + 1
    h = min(session.high, session.formats["c"].max_exponent - bits - 1, session.d.max_exponent - bits - 2)
    c, half = power(h + bits), power(h)
    pairs = list(combinations(range(session.instruction.k), 2))
    try:
        plus = session.sums({"c": c, i: half, j: half} for i, j in pairs)
        minus = session.sums({"c": c, i: sign * half, j: -sign * half} for i, j in pairs for sign in (1, -1))
    except UnrepresentableError:
        return None
    together = {pair for pair, answer in zip(pairs, plus, strict=True) if answer == c + 2 * half}
    if any(answer not in (c, c + 2 * half) for answer in plus):
        return None
    groups: list[list[int]] = []
    for lane in range(session.instruction.k):
        home = next((g for g in groups if (g[0], lane) in together), None)
        if home is None:
            groups.append([lane])
        else:
            home.append(lane)
    if together != {pair for g in groups for pair in combinations(g, 2)}:
        return None
    first = {}
    for position, (i, j) in enumerate(pairs):
        first[i, j], first[j, i] = minus[2 * position] != c, minus[2 * position + 1] != c
    return [
        tuple(g) for g in sorted(groups, key=lambda g: sum(first[other[0], g[0]] for other in groups if other != g))
    ]
