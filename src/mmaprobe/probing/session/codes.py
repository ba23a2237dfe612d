"""Codes of all lanes, held as those that differ from the one that most lanes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, overload

import numpy as np

from mmaprobe.operands.batch import Bits


@dataclass(frozen=True, slots=True)
class Codes(Sequence[int]):
    """One code a lane, ``rest`` in all lanes but ``others``; two are equal where every lane is.

    A probe of K lanes asks up to K**2 vectors with two or three live lanes: what is held, compared and hashed of each
    is those.
    """

    size: int
    rest: int
    others: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, size: int, rest: int, others: Mapping[int, int]) -> Codes:
        """``rest``, and ``others`` by lane."""
        differing = {lane: code for lane, code in others.items() if code != rest}
        if 2 * len(differing) < size:
            return cls(size, rest, tuple(sorted(differing.items())))
        lanes = [rest] * size
        for lane, code in differing.items():
            lanes[lane] = code
        return cls.listed(lanes)

    @classmethod
    def listed(cls, codes: Iterable[int]) -> Codes:
        """These codes, lane by lane; the commonest is ``rest``, of several the smallest."""
        lanes = list(codes)
        counts = Counter(lanes)
        rest = min(counts, key=lambda code: (-counts[code], code), default=0)
        return cls(len(lanes), rest, tuple((lane, code) for lane, code in enumerate(lanes) if code != rest))

    def put(self, lane: int, code: int) -> Codes:
        """These codes with another one in a lane."""
        return Codes.of(self.size, self.rest, dict(self.others) | {lane: code})

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        lanes = [self.rest] * self.size
        for lane, code in self.others:
            lanes[lane] = code
        return iter(lanes)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        return tuple(self)[index]


def rows(codes: Sequence[Codes], dtype: Any) -> Bits:
    """All of them, of one size, as the rows of an array."""
    found = np.repeat(np.array([each.rest for each in codes], dtype)[:, None], len(codes[0]), axis=1)
    numbers = np.repeat(np.arange(len(codes)), [len(each.others) for each in codes])
    others = list(chain.from_iterable(each.others for each in codes))
    found[numbers, [lane for lane, _ in others]] = np.array([code for _, code in others], dtype)
    return found
