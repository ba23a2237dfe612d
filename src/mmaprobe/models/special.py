"""NaN results: which operand's payload survives, as a code of the result format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.formats import NAN, Bits, Format, decode
from mmaprobe.parameters.datapath import Special

Bools = NDArray[np.bool_]


class Nans(NamedTuple):
    """Which values are NaN; where the rule carries codes along, also the code (of d) of each."""

    flag: Bools
    code: NDArray[np.uint64] | None = None
    signalling: Bools | None = None

    def map(self, function: Callable[[NDArray[Any]], Any]) -> Nans:
        """The same function (an indexing, a reshape) applied to every array."""
        if self.code is None or self.signalling is None:
            return Nans(function(self.flag))
        return Nans(function(self.flag), function(self.code), function(self.signalling))


def side_by_side(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns as one array, each column contiguous: reductions over the columns then run along the vectors."""
    return np.concatenate([part.T for part in parts]).T


def join(parts: Sequence[Nans]) -> Nans:
    """Several blocks of columns as one."""
    flag = side_by_side([part.flag for part in parts])
    codes = [part.code for part in parts if part.code is not None]
    loud = [part.signalling for part in parts if part.signalling is not None]
    return Nans(flag, side_by_side(codes), side_by_side(loud)) if codes else Nans(flag)


def signalling(fmt: Format, bits: Bits) -> Bools:
    """Whether a NaN of this format is a signalling one (only IEEE formats tell them apart)."""
    if not fmt.quiet_bit:
        return np.zeros(bits.shape, bool)
    return np.asarray((bits & bits.dtype.type(fmt.quiet_bit)) == 0)


def convert(fmt: Format, bits: Bits, to: Format) -> NDArray[np.uint64]:
    """NaN codes of ``fmt`` as NaN codes of ``to``: sign kept, payload left-aligned.

    A payload of which nothing is left becomes the quiet bit; a format with a
    single NaN a sign takes that one.
    """
    parts = decode(fmt, bits)
    sign = np.where(parts.negative, np.uint64(to.sign_mask), np.uint64(0))
    if to.nan != "ieee":
        return sign | np.uint64(to.nan_code or 0)
    mask = (1 << fmt.fraction_bits) - 1
    fraction = (parts.significand & mask).astype(np.uint64)
    gain = to.fraction_bits - fmt.fraction_bits
    fraction = fraction << np.uint64(gain) if gain >= 0 else fraction >> np.uint64(-gain)
    payload = fraction << np.uint64(to.padding)
    payload = np.where(payload == 0, np.uint64(to.quiet_bit), payload)
    assert to.infinity_code is not None
    return sign | np.uint64(to.infinity_code) | payload


@dataclass(frozen=True)
class NanRule:
    """The ``special`` of a datapath at work; ``result`` is the format d, of which all codes are."""

    special: Special
    result: Format

    @property
    def local(self) -> bool:
        return self.special.nan == "local"

    @property
    def by_cause(self) -> bool:
        return self.special.nan == "cause"

    @property
    def order(self) -> tuple[str, ...]:
        """The operands ``a``, ``b``, ``acc`` of an fma in the order in which their NaNs win."""
        named = tuple(name for name in self.special.priority if name in ("a", "b", "acc"))
        return named + tuple(name for name in ("a", "b", "acc") if name not in named)

    def read(self, fmt: Format, bits: Bits, flag: Bools) -> Nans:
        """The NaNs among operands as they come in."""
        if not self.local:
            return Nans(flag)
        return Nans(flag, convert(fmt, bits, self.result), flag & signalling(fmt, bits))

    def choose(self, operands: Nans, flag: Bools) -> Nans:
        """The NaN of an operation whose operands are the last axis, in order of precedence.

        ``flag`` says where the result is NaN; where no operand is one the
        operation is invalid and gives the rule's code.
        """
        if not self.local:
            return Nans(flag)
        assert operands.code is not None
        assert operands.signalling is not None
        pick = operands.flag
        if self.special.signalling_first:
            loud = pick & operands.signalling
            pick = np.where(loud.any(-1, keepdims=True), loud, pick)
        index = pick.argmax(-1)[..., None]
        code = np.take_along_axis(operands.code, index, -1)[..., 0]
        loud = np.take_along_axis(operands.signalling, index, -1)[..., 0]
        if self.special.quiet:
            code, loud = code | np.uint64(self.result.quiet_bit), np.zeros_like(loud)
        some = pick.any(-1)
        return Nans(flag, np.where(some, code, np.uint64(self.special.code)), flag & some & loud)

    def start_codes(self, fmt: Format | None, bits: Bits | None, count: int) -> NDArray[np.uint64]:
        """Under the rule by cause, the codes of the NaNs among operand c; those of other values mean nothing."""
        if not self.by_cause or fmt is None or bits is None or not fmt.is_float:
            return np.full(count, self.special.code, np.uint64)
        return convert(fmt, bits, self.result)

    def settled_codes(
        self, before: Nans, codes: NDArray[np.uint64], factors: Bools, invalid: Bools
    ) -> NDArray[np.uint64]:
        """Under the rule by cause, the codes of a step's NaN results.

        ``before`` and ``codes`` are the accumulator's; ``factors``: one of the step's a and b is a NaN; ``invalid``:
        one of its products is, or they are infinities of both signs.
        """
        kept = codes | np.uint64(self.result.quiet_bit if self.special.quiet else 0)
        code = np.where(before.flag & ~invalid, kept, np.uint64(self.special.code))
        return np.where(factors, np.uint64(self.special.factor_code), code)

    def result_codes(self, nans: Nans, operand: dict[str, tuple[Format, Bits]]) -> NDArray[np.uint64]:
        """The code of d for every NaN result; ``operand`` gives the bits named in ``priority``."""
        code = np.full(nans.flag.shape, self.special.code, np.uint64)
        if nans.code is not None:
            return nans.code
        if self.special.nan == "global":
            rows = np.flatnonzero(nans.flag)
            code[rows] = self._first_of(rows, operand)
        return code

    def _first_of(self, rows: NDArray[np.intp], operand: dict[str, tuple[Format, Bits]]) -> NDArray[np.uint64]:
        code = np.full(rows.shape, self.special.code, np.uint64)
        quiet = np.uint64(self.result.quiet_bit if self.special.quiet else 0)
        open_rows = np.ones(rows.shape, bool)
        for loud_only in (True, False) if self.special.signalling_first else (False,):
            for name in self.special.priority:
                fmt, bits = operand[name]
                value = bits[rows]
                hit = open_rows & (decode(fmt, value).kind == NAN)
                hit &= signalling(fmt, value) if loud_only else True
                code[hit] = convert(fmt, value[hit], self.result) | quiet
                open_rows &= ~hit
        return code
