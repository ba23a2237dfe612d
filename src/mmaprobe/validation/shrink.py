"""Make a mismatching vector as simple as it can be while the two devices still differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch, join

Differ = Callable[[Batch], NDArray[np.bool_]]
ROUNDS = 200
"""Steps in which a vector is made simpler at most: each makes it strictly simpler, so few are ever taken."""


def shrink(instruction: Instruction, vector: Batch, differ: Differ, rounds: int = ROUNDS) -> Batch:
    """The end of a chain of simplifications, on which two devices still ``differ``.

    Each round tries every simplification of one operand, and of runs of lanes to
    zero, in one batch and keeps the simplest that still differs; simplicity is the
    sum over the operands of ``_weight``, a zero being simplest and 1 next.
    """
    current = vector
    for _ in range(rounds):
        candidates = sorted(_simpler(instruction, current), key=lambda found: found[0])
        if not candidates:
            break
        batch = join([candidate for _, candidate in candidates])
        left = np.flatnonzero(differ(batch))
        if not left.size:
            break
        current = candidates[left[0]][1]
    return current


def _weight(fmt: formats.Format, code: int) -> int:
    if code == 0:
        return 0
    if not fmt.is_float:
        return 1 + code.bit_count()
    fraction = code & ((1 << (fmt.fraction_bits + fmt.padding)) - 1)
    field = (code >> (fmt.fraction_bits + fmt.padding)) & ((1 << fmt.exponent_bits) - 1)
    return 2 + bool(code & fmt.sign_mask) + 4 * fraction.bit_count() + abs(field - fmt.bias)


def _simpler(instruction: Instruction, vector: Batch) -> Iterator[tuple[int, Batch]]:
    """(change of complexity, vector) of every simplification of one code, and of runs of lanes that become zero."""
    yield from _fewer_lanes(instruction, vector)
    for name, value in vector.items():
        fmt = instruction.formats().get(name)
        if fmt is None:
            continue
        flat = value.reshape(-1)
        for position in np.flatnonzero(flat).tolist():
            code = int(flat[position])
            for simple in _simpler_codes(fmt, code) | (_fewer_bits(code) if name == "random" else set()):
                gain = _weight(fmt, simple) - _weight(fmt, code)
                if gain < 0:
                    changed = flat.copy()
                    changed[position] = simple
                    yield gain, Batch(**{**dict(vector.items()), name: changed.reshape(value.shape)})


def _fewer_bits(code: int) -> set[int]:
    """Random bits without one of them, or one alone."""
    ones = [1 << i for i in range(code.bit_length()) if code >> i & 1]
    return {code ^ one for one in ones} | set(ones)


def _fewer_lanes(instruction: Instruction, vector: Batch) -> Iterator[tuple[int, Batch]]:
    """Aligned runs of 2, 4, ... lanes of a and b that become zero."""
    lanes = {name: getattr(vector, name) for name in ("a", "b")}
    length = min(value.shape[1] for value in lanes.values())
    weights = {
        name: np.array([_weight(instruction.formats()[name], int(code)) for code in value[0]])
        for name, value in lanes.items()
    }
    size = length
    while size > 1:
        for start in range(0, length, size):
            run = slice(start, start + size)
            gain = -sum(int(weight[run].sum()) for weight in weights.values())
            if gain < 0:
                zeroed = {name: value.copy() for name, value in lanes.items()}
                for value in zeroed.values():
                    value[:, run] = 0
                yield gain, replace(vector, **zeroed)
        size = (size + 1) // 2


def _simpler_codes(fmt: formats.Format, code: int) -> set[int]:
    """Codes to try in place of ``code``: zero, one, fewer fraction bits, an exponent nearer to the bias."""
    if code == 0:
        return set()
    out = {0, code & ~fmt.sign_mask}
    if not fmt.is_float:
        return (out | {1, code & (code - 1)}) - {code}
    shift = fmt.fraction_bits + fmt.padding
    fraction, rest = code & ((1 << shift) - 1), code >> shift << shift
    sign, field = code & fmt.sign_mask, (code >> shift) & ((1 << fmt.exponent_bits) - 1)
    out |= {fmt.one, sign | fmt.one, rest, rest | (fraction & (fraction - 1))}
    if fraction:
        out.add(rest | 1 << (fraction.bit_length() - 1))
    if 0 < field < (1 << fmt.exponent_bits) - 1:
        for near in ((field + fmt.bias) // 2, field + (1 if field < fmt.bias else -1)):
            out.add(sign | near << shift | fraction)
    return out - {code}
