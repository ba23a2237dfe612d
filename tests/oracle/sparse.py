"""The lanes that sparse metadata selects, read bit by bit from the ISA's tables."""

from __future__ import annotations

from collections.abc import Sequence


def selected(b: Sequence[int], metadata: Sequence[int], chunk: int) -> list[int]:
    """The elements of b that meet those of A, in the order in which A is stored."""
    out: list[int] = []
    for number, item in enumerate(metadata):
        lanes = list(b[number * chunk : (number + 1) * chunk])
        if chunk == 2:  # two halves of 16 bits: 01 00 is the first lane, 11 10 the second
            out += {0b0100: lanes[:1], 0b1110: lanes[1:]}[item]
            continue
        groups = [lanes[i : i + chunk // 4] for i in range(0, chunk, chunk // 4)]
        for place in (item % 4, item // 4):
            out += groups[place]
    return out


def scattered(a: Sequence[int], metadata: Sequence[int], chunk: int) -> list[int]:
    """A with a zero in every lane that it does not store: what a dense instruction would take."""
    full = [0] * (2 * len(a))
    for lane, code in zip(selected(range(2 * len(a)), metadata, chunk), a, strict=True):
        full[lane] = code
    return full
