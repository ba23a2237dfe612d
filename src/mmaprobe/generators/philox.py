"""Philox4x32: a counter and a key to four random words, without state.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
3", SC 2011 (Random123); known answers of that library are in the tests.
Of 7 rounds and more it passes every test of BigCrush; 10 are usual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDS = 10
"""Rounds of Philox 4x32-10 (Salmon et al., SC 2011)."""
FEWER_ROUNDS = 7
"""Rounds of Philox 4x32-7, the fewest that pass BigCrush (the same paper)."""
_MULTIPLIER = (0xD2511F53, 0xCD9E8D57)
"""The multipliers of Philox 4x32 (the same paper)."""
_WEYL = (0x9E3779B9, 0xBB67AE85)
"""What is added to the two words of the key each round (the same paper)."""
_MASK = np.uint64(0xFFFFFFFF)
ALL = (1 << 64) - 1
"""The bits of an index, and of a seed."""
_HALF = np.uint64(32)

Words = NDArray[np.uint64]


def philox(
    counter: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike], key: tuple[int, int], rounds: int = ROUNDS
) -> tuple[Words, ...]:
    """Four words of 32 bits (in uint64 arrays) for every counter, broadcast together.

    One round is ``(c0, c1, c2, c3) -> (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))``
    with the key words growing by the Weyl constants between rounds.
    """
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(word, dtype=np.uint64) for word in counter))
    k0, k1 = key
    for _ in range(rounds):
        left: Any = c0 * np.uint64(_MULTIPLIER[0])
        right: Any = c2 * np.uint64(_MULTIPLIER[1])
        c0, c1, c2, c3 = (
            (right >> _HALF) ^ c1 ^ np.uint64(k0), right & _MASK, (left >> _HALF) ^ c3 ^ np.uint64(k1), left & _MASK,
        )  # fmt: skip
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


# What a block of random words is for: the upper half of counter word 2 (the lower half numbers the blocks).
VECTOR, LANE, WIDE, OVERLAY, IDLE, METADATA, SCALE, SHARED, RANDOM, TILE, ROW, COLUMN, ELEMENT = range(13)


def draw(
    seed: int, stream: int, index: NDArray[np.uint64], purpose: int, number: ArrayLike, rounds: int = ROUNDS
) -> tuple[Words, ...]:
    """Block ``number`` of the words of vector ``index``: counter (index low, index high, purpose|number, stream)."""
    word = (np.uint64(purpose) << np.uint64(16)) | np.asarray(number, dtype=np.uint64)
    return philox((index & _MASK, index >> _HALF, word, stream), (seed & 0xFFFFFFFF, seed >> 32), rounds)
