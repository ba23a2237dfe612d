"""Vectors as people type them: bit patterns and exact values, lanes separated by commas."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits, vector_shapes
from mmaprobe.showing import counted

_BITS = re.compile(r"0[xX][0-9a-fA-F]+")
_HEXFLOAT = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]+)\.?([0-9a-fA-F]*)[pP]([+-]?\d+)")


def parse_vector(instruction: Instruction, words: Sequence[str]) -> Batch:
    """One vector (a batch of one) from a word an operand, in the order a b c scale_a scale_b metadata random.

    A word holds the lanes from lane 0, separated by commas; ``x*n`` repeats
    one, and lanes that are not given are +0 (metadata: the lowest legal item).  Words may say their operands, as
    they are printed (``a=0x3c00,0x1 b=... c=0x0``), in any order.  Every item as a word of its own
    (all of a, all of b, c, ...) works too.  An item is a bit pattern
    (``0x3c00``) or a value that the format holds exactly (``1.5``,
    ``-0x1.8p+3``, ``inf``, ``-0``, ``nan``).
    """
    shapes = vector_shapes(instruction, 1)
    places = {name: math.prod(shape) for name, shape in shapes.items()}
    words = _in_order(instruction, words, places)
    if len(words) == sum(places.values()) != len(shapes):
        rest = iter(words)
        words = [",".join(islice(rest, count)) for count in places.values()]
    if len(words) != len(shapes):
        every = ", ".join(f"{count} of {name}" for name, count in places.items())
        raise UsageError(
            f"{instruction.id} takes {len(shapes)} words, {' '.join(shapes)} (lanes separated by commas), "
            f"or {counted(sum(places.values()), 'item')} ({every}); got {len(words)}"
        )
    taken = instruction.formats() | {"metadata": formats.get("u8")}
    blank = {"metadata": legal_items(instruction.chunk)[0]} if instruction.chunk else {}
    return Batch(
        **{
            name: _row(f"{instruction.id}: operand {name}", taken[name], word, shape, blank.get(name, 0))
            for (name, shape), word in zip(shapes.items(), words, strict=True)
        }
    )


def not_given(instruction: Instruction, words: Sequence[str]) -> list[str]:
    """Which lanes of a vector's words are not given, and so +0: ``a: lanes 2 to 15``."""
    places = {name: math.prod(shape) for name, shape in vector_shapes(instruction, 1).items()}
    words = _in_order(instruction, words, places)
    if len(words) != len(places):
        return []
    said = []
    for (name, room), word in zip(places.items(), words, strict=True):
        counts = [part.partition("*")[2] for part in word.split(",")]
        given = sum(int(count) if count.isdecimal() else 1 for count in counts)
        if given < room and name != "metadata":
            said.append(f"{name}: lane {given}" if given == room - 1 else f"{name}: lanes {given} to {room - 1}")
    return said


def _in_order(instruction: Instruction, words: Sequence[str], places: Mapping[str, int]) -> Sequence[str]:
    """The words in the operands' order, without the names that they may say; UsageError where names are wrong."""
    pairs = [word.partition("=") for word in words]
    if not any(equals for _, equals, _ in pairs):
        return words
    named: dict[str, str] = {}
    for name, equals, word in pairs:
        if not equals or name not in places or name in named:
            wrong = f"{name}= is no operand" if equals else f"{name!r} has no name"
            said = f"{name}= comes twice" if name in named else wrong
            raise UsageError(f"{instruction.id}: {said}; write {' '.join(f'{each}=...' for each in places)}")
        named[name] = word
    missing = [name for name in places if name not in named]
    if missing:
        of = "operand" if len(missing) == 1 else "operands"
        raise UsageError(f"{instruction.id}: {of} missing; add {' '.join(f'{each}=...' for each in missing)}")
    return [named[name] for name in places]


def _row(who: str, fmt: Format, word: str, shape: tuple[int, ...], blank: int) -> Bits:
    codes: list[int] = []
    for part in word.split(","):
        item, _, count = part.strip().partition("*")
        if count and not count.isdecimal():
            raise UsageError(f"{who}: cannot read {part!r}; write x*n with a whole n")
        codes += [parse_item(who, fmt, item)] * int(count or 1)
    room = shape[1] if len(shape) > 1 else 1
    if len(codes) > room:
        raise UsageError(f"{who}: {counted(len(codes), 'item')} for {counted(room, 'place')}")
    codes += [blank] * (room - len(codes))
    return np.array(codes, fmt.dtype).reshape(shape)


def parse_item(who: str, fmt: Format, item: str) -> int:
    """The code of one item; UsageError for one that the format does not hold."""
    if _BITS.fullmatch(item):
        code = int(item, 16)
        if code >= fmt.code_limit:
            raise UsageError(
                f"{who}: {item} is outside the {counted(fmt.code_limit.bit_length() - 1, 'bit')} of {fmt.name}"
            )
        return code
    bare = item.lstrip("+-").lower()
    sign = fmt.sign_mask if item.startswith("-") else 0
    special = {"inf": fmt.infinity_code, "nan": fmt.nan_code, "0": 0}
    if bare in special:
        found = special[bare]
        if found is None:
            raise UsageError(f"{who}: {fmt.name} has no {bare}")
        return found | sign
    return _finite(who, fmt, item)


def _finite(who: str, fmt: Format, item: str) -> int:
    try:
        value = _value(item)
    except ValueError:
        raise UsageError(f"{who}: cannot read {item!r}; write bits (0x3c00) or a value (1.5, -0x1.8p+3)") from None
    power = value.denominator.bit_length() - 1
    code = -1
    if value.denominator == 1 << power:
        negative, size = np.array([value < 0]), np.array([abs(value.numerator)], object)
        code = int(formats.encode(fmt, negative, size, np.array([-power]), "RNE", "largest")[0])
    if code < 0 or _exact(fmt, code) != value:
        raise UsageError(f"{who}: {fmt.name} does not hold {item} exactly; give its bits")
    return code


def _value(item: str) -> Fraction:
    hexadecimal = _HEXFLOAT.fullmatch(item)
    if hexadecimal is None:
        return Fraction(item)
    sign, whole, rest, exponent = hexadecimal.groups()
    size = Fraction(int(whole + rest, 16)) * Fraction(2) ** (int(exponent) - 4 * len(rest))
    return -size if sign == "-" else size


def _exact(fmt: Format, code: int) -> Fraction:
    parts = formats.decode(fmt, np.array([code], fmt.dtype))
    size = Fraction(int(parts.significand[0])) * Fraction(2) ** int(parts.exponent[0])
    return -size if parts.negative[0] else size
