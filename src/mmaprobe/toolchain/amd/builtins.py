"""AMD's matrix instructions as clang's builtins: the name of each, and its arguments in order.

Clang refuses a call whose operands have other registers than the builtin's
(``csrc/hip/matrix.hpp``); its front end checks little else, and the
disassembly decides what became of a call.  Source: LLVM 22, BuiltinsAMDGPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from mmaprobe import formats
from mmaprobe.catalog.architectures import every
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import forms
from mmaprobe.catalog.modifiers import MATRIX_NAMES, SCALE_FORMATS
from mmaprobe.toolchain.amd.inline import UNPRINTED

FIRST = "gfx90a"
"""Builtins keep the names that shapes had on CDNA2, where they were there already."""
WIDEST = {"v_mfma": 8, "v_wmma": 16}
"""Registers of A and B that an f8f6f4 builtin takes whatever the format: those of its 8-bit ones."""


class Arguments:
    """The arguments of one call under way, and which bits of the instruction's modifiers they say."""

    def __init__(self, made: Instruction, fragments: dict[str, Fragment]) -> None:
        self.made, self.fragments = made, fragments
        self.texts: list[str] = []
        self._said: set[tuple[str, int]] = set()

    def operands(self, *names: str) -> None:
        """Operands of as many registers as their layouts have."""
        self.texts += [f"bits<{self.fragments[name].registers}>(of.{name})" for name in names]

    def widest(self, name: str) -> None:
        """A or B in as many registers as its widest format takes."""
        self.texts.append(f"bits<{WIDEST[self.made.opcode[:6]]}>(of.{name})")

    def numbers(self, *numbers: int) -> None:
        """Constants."""
        self.texts += map(str, numbers)

    def number(self, key: str, names: tuple[str, ...] = ()) -> int:
        """A modifier that is a number, a flag, or one of ``names``; 0 where it is not given."""
        text = self.made.modifier.get(key)
        self._said.add((key, 0))
        if text is None:
            return 0
        digits = re.search(r"\d+$", text)
        return names.index(text) if names else int(digits[0]) if digits else 1

    def bit(self, key: str, place: int) -> int:
        """One bit of a modifier that is a list of bits for A, B and C."""
        self._said.add((key, place))
        return int(self.made.modifier.get(key, "000")[place])

    def whole(self, place: int) -> int:
        """Whether a whole operand is negated: of 16-bit A and B both halves, which no argument tells apart."""
        low, high = (self.made.modifier.get(key, "000")[place] for key in ("neg_lo", "neg_hi"))
        if formats.get(self.made.a).bits > 16:
            return self.bit("neg_lo", place)
        return self.bit("neg_lo", place) & self.bit("neg_hi", place) if low == high else 0

    def complete(self) -> bool:
        """Whether the arguments say every modifier of the instruction."""
        for key, text in self.made.modifiers:
            listed = len(text) == 3 and set(text) <= {"0", "1"}
            places = [place for place in range(3) if text[place] == "1"] if listed else [0]
            if key not in UNPRINTED and any((key, place) not in self._said for place in places):
                return False
        return True


def call(made: Instruction, architecture: str, fragments: dict[str, Fragment]) -> str:
    """The call of an instruction's builtin; empty where no argument says one of its modifiers or operands."""
    if "metadata" in fragments and fragments["metadata"].registers > 1:
        return ""  # the builtin takes one register of indices, the instruction two
    given = Arguments(made, fragments)
    if _becomes_another(made, architecture):
        return ""
    name = (_dot if made.opcode.startswith("v_dot") else _generation(architecture))(given)
    return f"__builtin_amdgcn_{name}({', '.join(given.texts)})" if given.complete() else ""


def _becomes_another(made: Instruction, architecture: str) -> bool:
    """Whether clang makes of a V_DOT's builtin one that adds to what D holds, or has no other builtin for that one.

    On gfx9 and gfx10 of all but the unsigned ones (V_DOT2C and its like), on gfx11 of f16 (V_DOT2ACC).
    """
    if made.opcode.startswith("v_dot") and every().among(architecture, ["gfx9", "gfx10"]):
        return made.d != "u32"
    return made.opcode == "v_dot2_f32_f16"


def _generation(architecture: str) -> Callable[[Arguments], str]:
    named = {"cdna": _cdna, "gfx125": _gfx125, "rdna3": _gfx11, "rdna4": _gfx12}
    return next(found for group, found in named.items() if every().among(architecture, [group]))


@cache
def _first_names() -> dict[tuple[object, ...], str]:
    return {_shape(form.first): form.first.opcode for form in forms(FIRST, "v_mfma_*")}


def _shape(made: Instruction) -> tuple[object, ...]:
    return made.m, made.n, made.k, made.blocks, made.a, made.b, made.d


def _cdna(given: Arguments) -> str:
    """MFMA: a, b, c, cbsz, abid, blgp; f8f6f4: a, b, c, formats, byte and scale twice; SMFMAC: a, b, c, index, ..."""
    made = given.made
    if "f8f6f4" in made.opcode:
        given.widest("a")
        given.widest("b")
        given.operands("c")
        given.numbers(given.number("cbsz"), given.number("blgp"))
        for place, name in enumerate(("scale_a", "scale_b")):
            given.numbers(given.bit("op_sel", place) + 2 * given.bit("op_sel_hi", place))
            if made.scale:
                given.operands(name)
            else:
                given.numbers(0)
        return made.opcode.removeprefix("v_").replace("mfma_f32", "mfma_scale_f32")
    given.operands("a", "b", "c")
    if made.chunk:
        given.operands("metadata")
        given.numbers(given.number("cbsz"), given.number("abid"))
        return made.opcode.removeprefix("v_")
    negated = sum(given.bit("neg", place) << place for place in range(3)) if made.a == "f64" else 0
    given.numbers(given.number("cbsz"), given.number("abid"), given.number("blgp") or negated)
    return _first_names().get(_shape(made), made.opcode).removeprefix("v_")


def _signed(given: Arguments, *operands: str) -> None:
    """Operands of integers, each behind its sign."""
    for name in operands:
        given.numbers(given.bit("neg_lo", "ab".index(name)))
        given.operands(name)


def _factors(given: Arguments) -> None:
    """A, B and C; integer A and B each behind its sign."""
    if given.made.d == "s32":
        _signed(given, "a", "b")
        given.operands("c")
    else:
        given.operands("a", "b", "c")


def _dot(given: Arguments) -> str:
    """V_DOT: a, b, c[, clamp]; of integers that may be signed signs before A and B, clamp last."""
    made = given.made
    _factors(given)
    if made.d in ("s32", "u32"):
        given.numbers(given.number("clamp"))
        return f"{'sudot' if made.d == 's32' else 'udot'}{made.k}"
    if made.k == 2 and made.d == "f32":
        given.numbers(given.number("clamp"))
    return made.opcode.removeprefix("v_").replace("dot2", "fdot2")


def _wave(given: Arguments) -> int:
    return given.fragments["d"].lanes


def _gfx11(given: Arguments) -> str:
    """WMMA: a, b, c[, op_sel]; of integers signs before A and B, clamp behind C."""
    made = given.made
    _factors(given)
    if made.d == "s32":
        given.numbers(given.number("clamp"))
    elif made.d != "f32":
        given.numbers(given.bit("op_sel", 2))
    tied = "_tied" if "tied" in made.modifier else ""
    return f"{made.opcode.removeprefix('v_')}{tied}_w{_wave(given)}"


def _gfx12(given: Arguments) -> str:
    """WMMA and SWMMAC: a, b, c[, index]; of integers signs before A and B, clamp last."""
    made = given.made
    _factors(given)
    if made.chunk:
        given.texts.append(_index(given))
    if made.d == "s32":
        given.numbers(given.number("clamp"))
    suffix = "" if made.chunk else "_gfx12"
    return f"{made.opcode.removeprefix('v_')}_w{_wave(given)}{suffix}"


def _index(given: Arguments) -> str:
    """The set of indices that ``index_key`` picks, at the low end: clang makes the modifier of the shift."""
    sets = dict(given.fragments["metadata"].choices)["index_key"]
    return f"Word32(opaque(of.metadata[0]) >> {32 // len(sets) * given.number('index_key')})"


def _gfx125(given: Arguments) -> str:
    """WMMA: what changes A, A, the same of B and C[, scales], reuse of both. SWMMAC: its index after C."""
    made = given.made
    if made.d == "s32":
        _signed(given, "a", "b")
        given.operands("c")
    else:
        for place, name in enumerate("ab"):
            if "f8f6f4" in made.opcode:
                given.numbers(given.number(f"matrix_{name}_fmt", MATRIX_NAMES))
                given.widest(name)
                continue
            if made.a in ("f32", "f16", "bf16"):
                given.numbers(given.whole(place))
            given.operands(name)
        if not made.chunk:
            given.numbers(given.bit("neg_lo", 2) + 2 * given.bit("neg_hi", 2))
        given.operands("c")
    if made.chunk:
        given.operands("metadata")
    if made.scale:
        for name in "ab":
            given.numbers(given.number(f"matrix_{name}_scale"))
            given.numbers(given.number(f"matrix_{name}_scale_fmt", tuple(SCALE_FORMATS)))
            given.operands(f"scale_{name}")
    if "reuse" in made.takes:
        given.numbers(given.number("matrix_a_reuse"), given.number("matrix_b_reuse"))
    if made.d == "s32":
        given.numbers(given.number("clamp"))
    return made.opcode.removeprefix("v_")
