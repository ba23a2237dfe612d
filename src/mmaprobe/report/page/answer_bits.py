"""The answers to one vector bit by bit, those bits that differ marked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from mmaprobe import formats
from mmaprobe.models.hexfloat import code_value
from mmaprobe.report.mismatches import bit_fields

FIELDS = ("sign", "exponent", "fraction")
"""The fields of a float's bits, in this order."""


@dataclass(frozen=True)
class BitGroup:
    """Some bits of a code that belong together, each as its digit and whether the other answer has another one."""

    name: str
    bits: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class AnswerSide:
    """One answer: who gave it, its code, its value, its bits in groups (none where its format is not known)."""

    who: str
    code: str
    value: str = ""
    groups: tuple[BitGroup, ...] = ()


@dataclass(frozen=True)
class BothAnswers:
    """A vector with both answers; ``differ`` names the bits that do."""

    vector: str
    kinds: tuple[str, ...]
    sides: tuple[AnswerSide, AnswerSide]
    differ: str


def marked(fmt: formats.Format, first: tuple[str, int], second: tuple[str, int]) -> tuple[AnswerSide, AnswerSide]:
    """Who answered, and each code, as two sides of the same bits."""
    different = first[1] ^ second[1]
    return _side(*first, fmt, different), _side(*second, fmt, different)


def places(different: int) -> str:
    """``bits 23, 5 to 3``: the places of ones, the highest first, those beside each other together."""
    ones = [bit for bit in reversed(range(different.bit_length())) if different >> bit & 1]
    runs = [[bit for _, bit in run] for _, run in groupby(enumerate(ones), key=lambda each: sum(each))]
    words = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"bit{'s' * (len(ones) > 1)} {', '.join(words)}"


def _side(who: str, code: int, fmt: formats.Format, different: int) -> AnswerSide:
    length = fmt.code_limit.bit_length() - 1
    groups, place = [], length
    for number, digits in enumerate(bit_fields(fmt, code).split()):
        bits = []
        for digit in digits:
            place -= 1
            bits.append((digit, bool(different >> place & 1)))
        names = FIELDS if fmt.signed else FIELDS[1:]
        plain = fmt.is_float and not fmt.ignored_high and number < len(names)
        groups.append(BitGroup(names[number] if plain else "bits", tuple(bits)))
    return AnswerSide(who, f"{code:#0{-(-length // 4) + 2}x}", code_value(fmt, code), tuple(groups))
