"""How sums of integers become a D of f32: scales, and biases of integers or of f32."""

from __future__ import annotations

import numpy as np

from mmaprobe.derivation.schedules.rescaling import KINDS, dialled_reach, least_of, plainest
from mmaprobe.derivation.schedules.zero_points import shortest, words_of
from mmaprobe.models.gemm_integers import scaled
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.integer_sums import Rescale, scale_number, scale_word
from mmaprobe.probing.gemm.calls import Asked, ProductCalls
from mmaprobe.probing.gemm.integer_values import Whole, Zeros, dialled

NEAR = 24
"""Sums on either side of the one at which D may be 0 that are asked."""
SIZES = 24
"""Powers of two of sums that are asked."""

Rescaled = tuple[Rescale, tuple[str, ...]]
"""A rule, and the biases of integers that are added before it."""


class F32Search:
    """Scales and biases of the columns of one product; ``asked`` are its calls."""

    def __init__(self, calls: ProductCalls, n: int, k: int, zeros: Zeros) -> None:
        self._calls, self._shape, self._zeros = calls, (n, k), zeros
        self._low, self._high = dialled_reach(calls, k, zeros)
        self.asked = list[Asked]()

    def find(self) -> list[Rescaled]:
        """Every rule that may be: of no bias, of one of integers, of one of f32 after the product."""
        sizes = np.r_[0, 1, -1, [sign * 3 << i >> 1 for sign in (1, -1) for i in range(SIZES)]]
        sums, told = self._told(sizes[(self._low <= sizes) & (sizes <= self._high)])
        if not len(sums) or 0 not in sums or not np.isfinite(told).all():
            return []
        return [each for make in (self._of_integers, self._of_f32) if (each := make(sums, told)) is not None]

    def _told(self, sums: Whole) -> tuple[Whole, Bits]:
        """The sums that are reached, and D of them, of every column."""
        a, b, good = dialled(self._calls, sums, self._shape, self._zeros)
        d = self._calls.ask(a, b)
        self.asked.append(Asked(a, b, d))
        return sums[good], d[good].view(np.float32)

    def _of_integers(self, sums: Whole, told: Bits) -> Rescaled | None:
        """The sum at which D is 0 is the bias, below 0; one more gives the scale."""
        top = int(np.argmax(abs(sums)))
        wide = told.astype(np.float64)
        slope = (wide[top] - wide[sums == 0][0]) / sums[top]
        if not (slope > 0).all():
            return None
        guess = -np.rint(wide[sums == 0][0] / slope).astype(np.int64)
        around = np.unique(guess[:, None] + np.arange(-NEAR, NEAR + 1))
        near, d = self._told(around)
        biases, scales = np.zeros(len(guess), np.int64), np.zeros(len(guess), np.float32)
        for column in range(len(guess)):
            zero = near[d[:, column] == 0]
            after = near == (zero[0] + 1 if len(zero) == 1 else self._high + 1)
            if not after.any():
                return None
            biases[column], scales[column] = -zero[0], d[after, column][0]
        if not (np.isfinite(scales) & (scales > 0)).all():
            return None
        return Rescale(tuple(scale_word(float(each)) for each in shortest(scales))), words_of(biases)

    def _of_f32(self, sums: Whole, told: Bits) -> Rescaled | None:
        """D of 0 is the bias; the scales are those that give every answer."""
        biases, spans = told[sums == 0][0], list[tuple[int, int]]()
        if not biases.any():
            return None
        like = Rescale(("0x1p+0",), bias=tuple(scale_word(float(each)) for each in shortest(biases)))
        for column, bias in enumerate(biases):
            own = told[:, column]

            def over(rule: Rescale, bias: np.float32 = bias, own: Bits = own) -> Whole:
                scale = np.float32(scale_number(rule.scale[0]) or 0)
                found = scaled(rule, sums, scale, bias)  # type: ignore[arg-type]
                above: Whole = np.sign(sums) * ((found > own).astype(np.int64) - (found < own))
                return above

            low = least_of(KINDS[0], lambda rule: bool((over(rule) >= 0).all()), like)
            high = least_of(KINDS[0], lambda rule: bool((over(rule) > 0).any()), like) - 1
            if low > high:
                return None
            spans.append((low, high))
        common = max(low for low, _ in spans), min(high for _, high in spans)
        chosen = [common] if common[0] <= common[1] else spans
        words = tuple(KINDS[0].at(plainest(*each), like).scale[0] for each in chosen)
        return Rescale(words, bias=like.bias), ("0",)
