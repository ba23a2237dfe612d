"""Sums of products of integers, as a part of a schedule: what wraps, what saturates and where, and what becomes of it.

Integers that wrap have no order: every order gives the same bits, so a schedule of them names none.  What can be seen
is said: lanes whose sum saturates in a narrower format first, sums that saturate on the way, zero points, and how a
sum is rescaled (``docs/gemm.md``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.parameters import checks
from mmaprobe.parameters.described import says
from mmaprobe.parameters.epilogue import Input
from mmaprobe.parameters.quantised import Quantised

MOST_LANES = 64
"""Lanes of a group, and groups that lie in each other, at most."""
MOST_EVERY = 1 << 30
"""Lanes between two saturations at most."""
MOST_OFFSET = 1 << 15
"""Size of an offset at most."""
MOST_SHIFT = 31
"""Places that a fixed-point product is shifted at most."""
MOST_F32 = float(np.finfo(np.float32).max)
"""The largest number of f32."""
NARROW = 16
"""Bits of A and B at most where something saturates: sums of so many of their products fit into 64 bits."""
NO_BIAS = ("0x0p+0",)
"""What is added in f32 where nothing is."""
_WHOLE = re.compile("-?[0-9]{1,10}")
_NUMBER = re.compile(r"-?0x[01](\.[0-9a-f]{1,13})?p[+-]?[0-9]{1,3}")


def check_integer(what: str, name: object) -> formats.Format:
    """The format of an integer in two's complement, or without a sign."""
    found = checks.number_format(what, name)
    if found.kind != "integer":
        raise UsageError(f"{what} is {found.name}; it must be an integer, such as s8 or s32")
    return found


def ends(name: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer format."""
    return formats.integer_range(formats.get(name))


def whole_number(word: str) -> int | None:
    """A whole number that is written out; None of a name."""
    return int(word) if _WHOLE.fullmatch(word) else None


def scale_number(word: str) -> float | None:
    """A number of f32 as it is written, ``0x1.8p-8``; None of a name."""
    return float.fromhex(word) if _NUMBER.fullmatch(word) else None


def scale_word(value: float) -> str:
    """How a number of f32 is written."""
    return re.sub(r"\.?0*p", "p", float(np.float32(value)).hex())


@dataclass(frozen=True)
class LaneGroups:
    """Lanes whose products are added first, exactly, and then fitted into a narrower ``format``.

    Group g has the lanes g mod ``stride`` + floor(g / ``stride``) ``lanes`` ``stride`` + l ``stride`` for l from 0 to
    ``lanes`` - 1; lanes beyond K are zeros.  ``saturate``: a sum outside of the format becomes its nearest number
    (x86's VPMADDUBSW: two lanes, s16); ``wrap``: it is taken modulo 2^bits.
    """

    lanes: int = field(metadata=says("lanes of a group"))
    stride: int = field(default=1, metadata=says("lanes between two of a group"))
    format: str = field(default="s16", metadata=says("format of a group's sum"))
    overflow: Literal["saturate", "wrap"] = field(
        default="saturate", metadata=says("what a group's sum outside of its format becomes")
    )

    def __post_init__(self) -> None:
        checks.words("", self)
        checks.whole("lanes", self.lanes, 1, MOST_LANES)
        checks.whole("stride", self.stride, 1, MOST_LANES)
        if check_integer("format", self.format).bits > NARROW:
            raise UsageError(f"format is {self.format}; a group's sum has {NARROW} bits at most")
        if self.lanes == 1 and self.stride != 1:
            raise UsageError(f"stride is {self.stride}; a group of one lane has none")


@dataclass(frozen=True)
class Rescale:
    """How a sum becomes D of a few bits, or of f32.

    ``f32``: the sum, rounded to f32 (to nearest even), times the scale, rounded likewise.  D of f32 is that.  Else it
    is rounded to a whole number: to ``even``, ties ``away`` from zero or ``up``, or ``down`` or to ``zero``; the zero
    point is added ``after`` that, or ``before``, in f32.  ``fixed``: (sum times scale + 2^30) / 2^31, rounded down,
    then divided by 2^``shift``, ties ``away`` from zero (gemmlowp's way) or ``up``; the scale is a whole number.  At
    last D is clamped to ``lowest`` and ``highest``, or the ends of its format.

    ``scale``: an input's name, or numbers, of f32 in hexadecimal (0x1.8p-8): one, or one for each column.  ``bias``,
    likewise, is added to the sum in f32 ``before`` it is multiplied, or ``after``.  ``zero``: an input's name, or a
    whole number.
    """

    scale: tuple[str, ...] = field(metadata=says("what the sum is multiplied by"))
    by: Literal["f32", "fixed"] = field(default="f32", metadata=says("arithmetic of the multiplication"))
    shift: int = field(default=0, metadata=says("places that a fixed-point product is shifted right"))
    rounding: Literal["even", "away", "up", "down", "zero"] = field(
        default="even", metadata=says("how it is rounded to a whole number")
    )
    zero: str = field(default="0", metadata=says("zero point of D"))
    zero_added: Literal["after", "before"] = field(
        default="after", metadata=says("whether the zero point is added after or before the rounding")
    )
    lowest: int | None = field(default=None, metadata=says("smallest D"))
    highest: int | None = field(default=None, metadata=says("largest D"))
    bias: tuple[str, ...] = field(default=NO_BIAS, metadata=says("what is added to the sum in f32"))
    bias_added: Literal["before", "after"] = field(
        default="after", metadata=says("whether that is added before or after the multiplication")
    )

    def __post_init__(self) -> None:
        checks.words("", self)
        checks.whole("shift", self.shift, 0, MOST_SHIFT)
        if self.by == "fixed" and (self.rounding not in ("away", "up") or self.zero_added != "after"):
            raise UsageError("by is fixed; its rounding is away or up, and its zero point is added after it")
        if self.by == "f32" and self.shift:
            raise UsageError(f"shift is {self.shift}; only by = fixed has one")
        if self.bias == NO_BIAS and self.bias_added != "after":
            raise UsageError(f"bias_added is {self.bias_added}; there is no bias")
        if self.by == "fixed" and self.bias != NO_BIAS:
            raise UsageError("by is fixed; its bias is one of integers, and not one of f32")
        self._check_numbers("scale", self.scale, (0, (1 << 31) - 1) if self.by == "fixed" else (0.0, MOST_F32))
        self._check_numbers("bias", self.bias, (-math.inf, MOST_F32))

    def _check_numbers(self, what: str, words: object, span: tuple[float, float]) -> None:
        """UsageError where numbers are not above the first of a span, and up to the second one, in their format."""
        if not isinstance(words, tuple) or not words:
            raise UsageError(f"{what} is {brief(words)}; it must be an input's name, or numbers")
        whole = isinstance(span[0], int)
        numbers = [(whole_number if whole else scale_number)(word) for word in words]
        if len(numbers) > 1 and None in numbers:
            raise UsageError(f"{what} has {brief(words[numbers.index(None)])}; of several each is a number")
        for word, number in zip(words, numbers, strict=True):
            if number is None and (whole_number(word) is not None or scale_number(word) is not None):
                takes = "whole numbers" if whole else "numbers of f32 in hexadecimal, such as 0x1.8p-8"
                raise UsageError(f"{what} has {word}; by = {self.by} takes {takes}")
            fits = number is None or (
                span[0] < number <= span[1]
                and abs(number) <= MOST_F32
                and (whole or float(np.float32(number)) == number)
            )
            if not fits:
                takes = "a whole number from 1 to 2147483647" if whole else "a number of f32"
                raise UsageError(
                    f"{what} has {word}; it must be {takes}" + (" above 0" if span[0] == 0 and not whole else "")
                )

    def check(self, d: str, inputs: Mapping[str, Input]) -> None:
        """UsageError where it does not make a D of this format, or names an input that is none."""
        check_words("rescale.scale", self.scale, inputs, ("scalar", "column"), "s32" if self.by == "fixed" else "f32")
        check_words("rescale.bias", self.bias, inputs, ("scalar", "row", "column"), "f32")
        check_words("rescale.zero", (self.zero,), inputs, ("scalar",), d)
        if d == "f32":
            said = [name for name in ("rounding", "zero", "zero_added", "lowest", "highest") if self.says(name)]
            if said or self.by == "fixed":
                raise UsageError(f"rescale.{(said or ['by'])[0]}: D is f32; it is the sum times the scale, and a bias")
            return
        low, high = ends(d)
        for name, value in (("lowest", self.lowest), ("highest", self.highest), ("zero", whole_number(self.zero))):
            if value is not None:
                checks.whole(f"rescale.{name}", value, low, high)
        if self.lowest is not None and self.highest is not None and self.lowest > self.highest:
            raise UsageError(f"rescale.lowest is {self.lowest}, above highest, {self.highest}")

    def says(self, name: str) -> bool:
        """Whether a field is not as it is where nothing is said."""
        return bool(getattr(self, name) != Rescale.__dataclass_fields__[name].default)


@dataclass(frozen=True)
class IntegerSums:
    """The sum of an element's products of integers: A's and B's less their zero points, in a ``format`` that they
    ``wrap`` or ``saturate`` in.

    A sum that saturates does so at the end, or, with ``every``, after each so many lanes, in the order of K.  Products
    of ``groups`` are fitted into a narrower format first.  Both make an order visible, and with it what enters:
    ``offset_a`` and ``offset_b`` are added to A and B before, so that their products are others (s8 made u8 by 128),
    and what that adds is taken off the sum; zero points are taken off A and B ``before`` the products, or ``after``,
    off the sum.  ``zero_a`` and ``zero_b`` are an input's name, or whole numbers: one, or of B one for each column.
    An A of f32 is ``quantised`` first, and has the zero point and the scale that this finds.
    ``bias``, likewise, and C, where the schedule has one, are added last, before the sum wraps or saturates at the end
    and is rescaled.
    """

    format: str = field(metadata=says("format of the sum"))
    overflow: Literal["wrap", "saturate"] = field(
        default="wrap", metadata=says("what a sum outside of its format becomes")
    )
    every: int = field(default=0, metadata=says("lanes after which the sum saturates"))
    groups: LaneGroups | None = field(default=None, metadata=says("lanes that are added first"))
    offset_a: int = field(default=0, metadata=says("what is added to A before the products"))
    offset_b: int = field(default=0, metadata=says("what is added to B before the products"))
    zero_a: tuple[str, ...] = field(default=("0",), metadata=says("zero point of A"))
    zero_b: tuple[str, ...] = field(default=("0",), metadata=says("zero point of B"))
    zeros: Literal["before", "after"] = field(
        default="before", metadata=says("whether zero points are taken off operands or off the sum")
    )
    bias: tuple[str, ...] = field(default=("0",), metadata=says("what is added to the sum"))
    rescale: Rescale | None = field(default=None, metadata=says("how the sum becomes D"))
    quantised: Quantised | None = field(default=None, metadata=says("how an A of f32 becomes integers"))

    def __post_init__(self) -> None:
        checks.words("", self)
        check_integer("format", self.format)
        checks.whole("every", self.every, 0, MOST_EVERY)
        for name in ("offset_a", "offset_b"):
            checks.whole(name, getattr(self, name), -MOST_OFFSET, MOST_OFFSET)
        if self.every and self.overflow == "wrap":
            raise UsageError(f"every is {self.every}; a sum that wraps has the same bits whenever it does")
        if self.every % self.block:
            raise UsageError(f"every is {self.every}; it must be a multiple of the lanes of whole groups, {self.block}")
        if self.quantised is not None and self.zero_a != ("0",):
            raise UsageError(
                f"zero_a is {' '.join(self.zero_a)}; an A that is quantised has the zero point of its ends"
            )
        if self.zeros == "after" and self.zero_a == self.zero_b == ("0",) and self.quantised is None:
            raise UsageError("zeros is after; there are no zero points")
        if not self.ordered:
            for name, plain in (("offset_a", 0), ("offset_b", 0), ("zeros", "before")):
                if getattr(self, name) != plain:
                    raise UsageError(
                        f"{name} is {getattr(self, name)}; it shows where groups, or a sum on its way, saturate, and "
                        "here none does"
                    )

    @property
    def block(self) -> int:
        """Lanes of as many groups as lie in each other."""
        return 1 if self.groups is None else self.groups.lanes * self.groups.stride

    @property
    def ordered(self) -> bool:
        """Whether it shows which lanes are added together, or before others."""
        return self.groups is not None or self.every > 0

    def check(self, a: str, b: str, d: str, inputs: Mapping[str, Input]) -> None:
        """UsageError where formats do not fit it, or an input that it names is none."""
        if self.quantised is not None:
            if (a, d) != ("f32", "f32") or self.rescale is None or self.rescale.by != "f32":
                raise UsageError(f"quantised: a is {a}, d is {d}; both must be f32, and rescale be there and by = f32")
            a = self.quantised.format
        for name, each in (("a", a), ("b", b)):
            bits = check_integer(name, each).bits
            if bits > NARROW and (self.ordered or self.overflow == "saturate"):
                raise UsageError(f"{name} is {each}; where something saturates A and B have {NARROW} bits at most")
        either = ("scalar", "row", "column")
        sides = (("zero_a", either[:2], a), ("zero_b", either[::2], b), ("bias", either, self.format))
        for name, shapes, fmt in sides:
            words: tuple[str, ...] = getattr(self, name)
            check_words(f"integers.{name}", words, inputs, shapes, fmt)
            for word, number in zip(words, map(whole_number, words), strict=True):
                if number is None and scale_number(word) is not None:
                    raise UsageError(f"integers.{name} has {word}; it must be a whole number")
                checks.whole(f"integers.{name}", number or 0, *ends(fmt))
            if name == "zero_a" and len(words) > 1:
                raise UsageError("integers.zero_a: of several rows an input has zero points; it must be one number")
        if self.rescale is not None:
            self.rescale.check(d, inputs)
            if d != "f32":
                check_integer("d", d)
        elif d != self.format:
            raise UsageError(f"d is {d}, the sum is {self.format}; without rescale D is the sum")
        several = {count: name for count, name in self._lengths().items() if count > 1}
        if len(several) > 1:
            said = " and ".join(f"integers.{name} {count}" for count, name in several.items())
            raise UsageError(f"{said}: numbers for columns must be as many, or one")

    def names(self) -> set[str]:
        """The inputs that are named."""
        words = {*self.zero_a, *self.zero_b, *self.bias}
        if self.rescale is not None:
            words |= {*self.rescale.scale, *self.rescale.bias, self.rescale.zero}
        return {word for word in words if whole_number(word) is None and scale_number(word) is None}

    def columns(self) -> int | None:
        """N, where numbers are written for each column; None where it may be any."""
        said = self._lengths()
        return max(said) if max(said) > 1 else None

    def _lengths(self) -> dict[int, str]:
        """How many numbers fields of columns have, and a field that has so many."""
        fields = {"zero_b": self.zero_b, "bias": self.bias}
        if self.rescale is not None:
            fields |= {"rescale.scale": self.rescale.scale, "rescale.bias": self.rescale.bias}
        return {len(words): name for name, words in fields.items()}


def check_words(what: str, words: object, inputs: Mapping[str, Input], shapes: tuple[str, ...], fmt: str) -> None:
    """UsageError where a word is neither a number nor an input of one of these shapes, in this format."""
    if not isinstance(words, tuple) or not words:
        raise UsageError(f"{what} is {brief(words)}; it must be an input's name, or numbers")
    for word in words:
        if whole_number(word) is not None or scale_number(word) is not None:
            continue
        if word not in inputs:
            raise UsageError(f"{what}: {brief(word)} is no number and no input{near(word, inputs)}")
        given = inputs[word]
        if given.shape not in shapes or (given.rows, given.columns) != (1, 1) or given.format != fmt:
            raise UsageError(
                f"{what}: {word} is {given.format}, one a {given.shape}; it must be {fmt}, one a {' or '.join(shapes)}"
            )
        if len(words) > 1:
            raise UsageError(f"{what}: {word} is an input beside numbers; it stands alone")
