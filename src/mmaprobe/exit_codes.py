"""Exit codes: what each says, and which one a command with several outcomes returns."""

from __future__ import annotations

from collections.abc import Collection, Iterable

EQUAL = 0
"""Every vector compared gave the same bits; of a command that compares nothing: it did what it was told."""
MISMATCH = 1
"""A vector differed, or ``--check`` found a change."""
USAGE = 2
"""The command, or a file that it reads, is wrong."""
NOT_HERE = 3
"""A device, driver or toolchain is not on this machine."""
INCONCLUSIVE = 4
"""Nothing was compared, or nothing can be said."""
DEVICE_FAILED = 5
"""The device failed or lied."""
CANNOT_WRITE = 6
"""Output could not be written."""
INTERNAL = 70
"""An error of mmaprobe itself (EX_SOFTWARE of BSD's sysexits.h)."""
INTERRUPTED = 130
"""Ended by a signal, as a shell says it of SIGINT: 128 + 2."""

PRECEDENCE = (INTERNAL, DEVICE_FAILED, MISMATCH, CANNOT_WRITE, INCONCLUSIVE, NOT_HERE, EQUAL)
"""Of several outcomes the first of these wins."""


def worst(codes: Collection[int]) -> int:
    """Of several outcomes the first of ``PRECEDENCE``; what is none of them (an interrupt) comes before all."""
    others = [code for code in codes if code not in PRECEDENCE]
    return max(others) if others else next((code for code in PRECEDENCE if code in codes), INCONCLUSIVE)


def run_code(codes: Iterable[int], vectors: int, failure: int, absent: bool) -> int:
    """The exit code of a run: the first of its instructions' and demands' and of what ended it.

    4 where nothing was compared; 3 where there was nothing to compare, everything being ``absent``.
    """
    found = {*codes} | ({failure} if failure else set())
    if not found:
        return NOT_HERE if absent else INCONCLUSIVE
    return worst(found if vectors or failure else {*found, INCONCLUSIVE})


def demand_codes(*, changed: bool, check: bool, least: int, compared: int, unreached: int) -> set[int]:
    """Exit codes of what was demanded of a run in vain: with ``check`` nothing ``changed`` (new, or missing without a
    reason), ``least`` instructions ``compared``, none ``unreached`` when the budget was spent."""
    return ({MISMATCH} if check and changed else set()) | ({INCONCLUSIVE} if compared < least or unreached else set())


IDENTIFIED = {"exact": EQUAL, "bounded": INCONCLUSIVE, "wrong": DEVICE_FAILED}
"""Exit codes of an identification of a schedule, by how it ends."""
