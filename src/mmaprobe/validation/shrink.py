"""Make a mismatching vector as simple as it can be while the two devices still differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction

Answer = Callable[[Batch], Bits]
ROUNDS = 200


def shrink(instruction: Instruction, vector: Batch, dut: Answer, ref: Answer, rounds: int = ROUNDS) -> Batch:
    """The simplest neighbour chain's end on which ``dut`` and ``ref`` differ still.

    Each round tries every one-operand simplification of the vector in one batch
    and keeps the simplest that still differs; simplicity is the sum over the
    operands of the number of set bits, a zero being simplest and 1 next.
    """
    current = vector
    for _ in range(rounds):
        candidates = sorted(_simpler(instruction, current), key=lambda found: found[0])
        if not candidates:
            break
        batch = concatenate([candidate for _, candidate in candidates])
        differ = np.flatnonzero(dut(batch) != ref(batch))
        if not differ.size:
            break
        current = candidates[differ[0]][1]
    return current


def concatenate(batches: list[Batch]) -> Batch:
    """One batch of all the vectors."""
    return Batch(**{name: np.concatenate([getattr(b, name) for b in batches]) for name, _ in batches[0].items()})


def _weight(fmt: formats.Format, code: int) -> int:
    if code == 0:
        return 0
    if not fmt.is_float:
        return 1 + code.bit_count()
    fraction = code & ((1 << (fmt.fraction_bits + fmt.padding)) - 1)
    field = (code >> (fmt.fraction_bits + fmt.padding)) & ((1 << fmt.exponent_bits) - 1)
    return 2 + bool(code & fmt.sign_mask) + 4 * fraction.bit_count() + abs(field - fmt.bias)


def _simpler(instruction: Instruction, vector: Batch) -> Iterator[tuple[int, Batch]]:
    """(change of complexity, vector) of every simplification of one code."""
    for name, value in vector.items():
        fmt = instruction.formats().get(name)
        if fmt is None:
            continue
        flat = value.reshape(-1)
        for position in np.flatnonzero(flat).tolist():
            code = int(flat[position])
            for simple in _simpler_codes(fmt, code):
                gain = _weight(fmt, simple) - _weight(fmt, code)
                if gain < 0:
                    changed = flat.copy()
                    changed[position] = simple
                    yield gain, Batch(**{**dict(vector.items()), name: changed.reshape(value.shape)})


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
