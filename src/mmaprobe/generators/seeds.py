"""The seed of what is checked again and again: the one that was asked for, that of the environment, or a new one."""

from __future__ import annotations

import os
import secrets

from mmaprobe.errors import UsageError

VARIABLE = "MMAPROBE_SEED"
DRAWN_BITS = 32
"""Of a seed that is drawn: short enough to type, and two runs in 4 billion share one."""


def fixed(seed: int | None) -> int | None:
    """The seed asked for, else that of ``MMAPROBE_SEED``; None where neither names one, UsageError for no seed."""
    text = str(os.environ.get(VARIABLE, "") if seed is None else seed)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 1 << 63):
        where = f"{VARIABLE}={text}" if seed is None else f"the seed {text}"
        raise UsageError(f"{where}: a seed is a whole number of 0 to 2**63 - 1")
    return int(text)


def seed_of(seed: int | None) -> int:
    """``fixed``, or a seed that is drawn: what a device learns of the vectors of one run says nothing of the next."""
    known = fixed(seed)
    return secrets.randbits(DRAWN_BITS) if known is None else known
