"""Ladders: the same experiment with a smaller and smaller term, many steps in one round."""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.probing.session import Session, Terms
from mmaprobe.probing.terms import Value

STEPS = 40
"""Steps asked in the first round; each further one doubles them."""


async def climb(
    session: Session, first: int, last: int, terms: Callable[[int], Terms], good: Callable[[int, Value], bool]
) -> int:
    """The largest t such that the answers at first .. t are good; first - 1 where none is.

    The ladder ends where the formats cannot express a step.
    """
    steps = STEPS
    while first <= last:
        heights = range(first, min(first + steps - 1, last) + 1)
        vectors = [session.try_vector(terms(t)) for t in heights]
        ready = [v for v in vectors[: vectors.index(None) if None in vectors else None] if v is not None]
        for t, value in zip(heights, await session.values(ready), strict=False):
            if not good(t, value):
                return t - 1
        first += len(ready)
        if len(ready) < len(heights):
            break
        steps *= 2
    return first - 1
