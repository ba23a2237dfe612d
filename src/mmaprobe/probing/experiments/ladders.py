"""Ladders: the same experiment with a smaller and smaller term, many steps in one round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmaprobe.probing.session.exact_values import Value
from mmaprobe.probing.session.rounds import Asking
from mmaprobe.probing.session.session import ProbeSession, Terms

STRIDE = 8
"""Steps of a ladder of which the first is asked at once, then those around the first bad one."""

Judge = Callable[[list[int]], Asking[list[bool]]]
"""Asks some steps; says of each whether it is good."""


async def count_good(steps: Sequence[int], judge: Judge) -> int:
    """How many steps, from the first on, are good, in two rounds; after a bad one all are taken to be bad."""
    coarse = list(range(0, len(steps), STRIDE))
    coarse += [len(steps) - 1] if steps and coarse[-1] != len(steps) - 1 else []
    good = await judge([steps[n] for n in coarse])
    bad = good.index(False) if False in good else None
    if bad is None:
        return len(steps)
    if bad == 0:
        return 0
    between = list(range(coarse[bad - 1] + 1, coarse[bad]))
    good = await judge([steps[n] for n in between])
    return coarse[bad - 1] + 1 + (good.index(False) if False in good else len(good))


async def climb(
    session: ProbeSession, first: int, last: int, terms: Callable[[int], Terms], good: Callable[[int, Value], bool]
) -> int:
    """The largest t such that the answers at first .. t are good; first - 1 where none is.

    The ladder ends where the formats cannot express a step.
    """
    heights = range(first, last + 1)
    vectors = [session.try_vector(terms(t)) for t in heights]
    ready = {t: v for t, v in zip(heights, vectors[: vectors.index(None) if None in vectors else None], strict=False)
             if v is not None}  # fmt: skip

    async def judge(some: list[int]) -> list[bool]:
        values = await session.values([ready[t] for t in some])
        return [good(t, value) for t, value in zip(some, values, strict=True)]

    return first - 1 + await count_good(list(ready), judge)
