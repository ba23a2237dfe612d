"""Vectors written as values: ``-2^13 -0.5 *@-0`` is two lanes, and -0 in all others."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch
from mmaprobe.probing.published.suites import value
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.exact_values import code_of
from mmaprobe.probing.session.vectors import Vector, pack
from mmaprobe.runs.open_questions.claims import WrittenVector


def directed(instruction: Instruction, forms: Sequence[WrittenVector]) -> Batch | None:
    """The vectors that the formats of a dense instruction can say, as a batch; None where there is none.

    Lanes not given are +0; block scales are 1.
    """
    made = [vector for form in forms if (vector := _vector(instruction, form)) is not None]
    return pack(instruction, made) if made else None


def _vector(instruction: Instruction, form: WrittenVector) -> Vector | None:
    found = instruction.formats()
    a, b = (_lanes(found[name], text, instruction.k) for name, text in (("a", form.a), ("b", form.b)))
    c = _code(found["c"], form.c) if instruction.c else None
    if a is None or b is None or (c is None and instruction.c):
        return None
    return Vector(a, b, c)


def _lanes(fmt: Format, text: str, k: int) -> Codes | None:
    codes: list[int] = []
    rest = 0
    for item in text.split():
        times, _, word = item.rpartition("@")
        code = _code(fmt, word)
        if code is None:
            return None
        if times == "*":
            rest = code
        else:
            codes += [code] * int(times or 1)
    return Codes.listed((*codes, *(rest,) * (k - len(codes)))) if len(codes) <= k else None


def _code(fmt: Format, word: str) -> int | None:
    """The code of a value, ``-0``, ``inf``, ``-inf``, ``nan``, ``-nan``, or of ``0x...``; None where it has none."""
    if word.startswith("0x"):
        code = int(word, 16)
        if code >= fmt.code_limit:
            raise UsageError(f"{word} is no code of {fmt.name}")
        return code
    minus, size = word.startswith("-"), word.removeprefix("-")
    sign = fmt.sign_mask if minus else 0
    if size in ("inf", "nan"):
        special = fmt.infinity_code if size == "inf" else fmt.nan_code
        return None if special is None else special | sign
    if word == "-0":
        return sign if fmt.is_float and fmt.has_sign_bit else None
    return code_of(fmt, Fraction(value(word)))
