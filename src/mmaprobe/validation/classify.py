"""How two answers to one vector differ, in words."""

from __future__ import annotations

import numpy as np

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.showing import counted


def kinds(fmt: Format, answer: int, expected: int) -> tuple[str, ...]:
    """The words for two codes of a format that differ; none where they are one.

    Of floats one of: ``NaN code`` (two NaNs), ``special: NaN for a number`` (or an infinity, or another sign of it),
    ``sign of zero``, ``ignored bits`` (one value), ``N ulps`` (codes from one value to the other, both zeros being
    one).  Of integers ``difference -3`` (answer minus expected).  Beside it ``one bit (bit 13)``, counted from the
    lowest, where the codes differ in no other.
    """
    if answer == expected:
        return ()
    changed = answer ^ expected
    bit = (f"one bit (bit {changed.bit_length() - 1})",) if changed.bit_count() == 1 else ()
    return (_floats(fmt, answer, expected) if fmt.is_float else _integers(fmt, answer, expected), *bit)


def _floats(fmt: Format, answer: int, expected: int) -> str:
    said = _special(fmt, answer), _special(fmt, expected)
    if said == ("NaN", "NaN"):
        return "NaN code"
    if any(said):
        given, wanted = (word or "a number" for word in said)
        return "special: the other infinity" if given == wanted else f"special: {given} for {wanted}"
    steps = [_step(fmt, code) for code in (answer, expected)]
    if steps[0] == steps[1]:
        zeros = fmt.signed and not steps[0] and (answer ^ expected) & fmt.sign_mask
        return "sign of zero" if zeros else "ignored bits"
    ulps = abs(steps[0] - steps[1])
    return counted(ulps, "ulp")


def _special(fmt: Format, code: int) -> str:
    kind = formats.decode(fmt, np.array([code], fmt.dtype)).kind[0]
    return {formats.NAN: "NaN", formats.INFINITE: "infinity"}.get(int(kind), "")


def _step(fmt: Format, code: int) -> int:
    """Where a finite code stands among all of its format, from zero; of a format without zero, from below all."""
    held = code >> fmt.padding & ((1 << fmt.bits) - 1)
    size = held & ((1 << (fmt.bits - fmt.signed)) - 1)
    return -size if fmt.signed and held >> (fmt.bits - 1) else size


def _integers(fmt: Format, answer: int, expected: int) -> str:
    found = formats.decode(fmt, np.array([answer, expected], fmt.dtype))
    values = [int(size) * (-1) ** int(minus) for size, minus in zip(found.significand, found.negative, strict=True)]
    if values[0] == values[1]:
        return "sign of zero" if fmt.kind == "magnitude" and not values[0] else "ignored bits"
    return f"difference {values[0] - values[1]:+,}"
