"""Exact numbers as people read them: hexadecimal floats of any width."""

from __future__ import annotations

import numpy as np

from mmaprobe import formats
from mmaprobe.models.numbers import Numbers


def hexfloat(negative: bool, significand: int, exponent: int) -> str:
    """``(-1)**negative * significand * 2**exponent`` in p-notation, every bit shown: ``-0x1.8p+3``."""
    sign = "-" if negative else ""
    if significand == 0:
        return sign + "0"
    length = significand.bit_length()
    rest = significand - (1 << (length - 1))
    digits = -(-(length - 1) // 4)
    fraction = f"{rest << (4 * digits - length + 1):0{digits}x}".rstrip("0") if digits else ""
    return f"{sign}0x1{'.' if fraction else ''}{fraction}p{exponent + length - 1:+d}"


def shown(x: Numbers, index: tuple[int, ...] = (0,), decimal: bool = False) -> str:
    """One of the numbers: a hexadecimal float (a ``decimal`` integer where they are integers), ``inf`` or ``nan``."""
    negative = bool(x.negative[index])
    if x.nan.flag[index]:
        return "nan"
    if x.infinite[index]:
        return "-inf" if negative else "inf"
    significand, exponent = int(x.significand[index]), int(x.exponent[index])
    return f"{'-' * negative}{significand << exponent}" if decimal else hexfloat(negative, significand, exponent)


def difference(x: Numbers, y: Numbers, index: tuple[int, ...] = (0,)) -> str:
    """x - y exactly; ``""`` where they are equal or one is not finite."""
    if any(n.nan.flag[index] or n.infinite[index] for n in (x, y)):
        return ""
    low = min(int(x.exponent[index]), int(y.exponent[index]))
    size = [
        (-1) ** bool(n.negative[index]) * (int(n.significand[index]) << (int(n.exponent[index]) - low)) for n in (x, y)
    ]
    gap = size[0] - size[1]
    return hexfloat(gap < 0, abs(gap), low) if gap else ""


def code_value(fmt: formats.Format, code: int) -> str:
    """The exact value of one code of a format."""
    x = formats.decode(fmt, np.array([code], fmt.dtype))
    negative = bool(x.negative[0])
    if x.kind[0] == formats.NAN:
        return "nan"
    if x.kind[0] == formats.INFINITE:
        return "-inf" if negative else "inf"
    if not fmt.is_float:
        return str(-int(x.significand[0]) if negative else int(x.significand[0]))
    return hexfloat(negative, int(x.significand[0]), int(x.exponent[0]))
