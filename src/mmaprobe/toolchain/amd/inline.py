"""AMD's matrix instructions as inline assembly: for modifiers that no argument of a builtin says.

The compiler knows nothing of what stands inside: idle instructions behind it
cover whatever the results of a matrix instruction, or of gfx9's V_DOT, must be
waited for.  Source: AMD RDNA3 and RDNA4 ISA, WMMA (one, before a matrix
instruction that reads D); LLVM 22, GCNHazardRecognizer (gfx1250: at most nine;
V_DOT on gfx90a and later CDNA: three).
"""

from __future__ import annotations

import re

from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_claims import KEY

IDLE = 16
"""v_nop behind the instruction."""
UNPRINTED = frozenset({"wave", "tied", KEY})
"""Modifiers of an id that the assembler does not write: the wave's size, whether D starts as C, a claimed layout."""

ORDER = ("op_sel", "index_key", "matrix_a_reuse", "matrix_b_reuse", "neg_lo", "neg_hi", "clamp")
"""The order in which the assembler takes modifiers."""


_ACCUMULATES = re.compile(r"v_dot\dc_")


def in_place(made: Instruction) -> bool:
    """Whether D's registers are those of C: of sparse forms, of ``tied`` ones, and of V_DOT2C and its like."""
    return bool(made.chunk) or "tied" in made.modifier or names_no_c(made)


def names_no_c(made: Instruction) -> bool:
    """Whether the assembler writes D alone, which holds C."""
    return bool(made.chunk) or bool(_ACCUMULATES.match(made.opcode))


def printed(made: Instruction) -> str:
    """The modifiers as the assembler writes them: ``index_key:1 neg_lo:[1,0,0] clamp``."""
    written = sorted(
        (pair for pair in made.modifiers if pair[0] not in UNPRINTED), key=lambda pair: ORDER.index(pair[0])
    )
    return " ".join(_printed(key, text) for key, text in written)


def _printed(key: str, text: str) -> str:
    if len(text) == 3 and set(text) <= {"0", "1"}:
        return f"{key}:[{','.join(text)}]"
    return f"{key}:{text}" if text else key


def statement(made: Instruction, fragments: dict[str, Fragment]) -> str:
    """C++ that multiplies the registers ``of``: D of its own, or what held C (``in_place``)."""

    def vector(name: str) -> str:
        return f"Vector<{fragments[name].registers}>"

    tied = in_place(made)
    inputs = ["a", "b"] if tied else ["a", "b", "c"]
    inputs += [name for name in ("metadata", "scale_a", "scale_b") if name in fragments]
    places = [f"%{number}" for number in range(1 + len(inputs))]
    if tied and not names_no_c(made):
        places.insert(3, "%0")
    start = f" = bits<{fragments['c'].registers}>(of.c)" if tied else ""
    given = ", ".join(f'"v"({vector(name)}(bits<{fragments[name].registers}>(of.{name})))' for name in inputs)
    idle = r"\n\tv_nop" * IDLE
    return (
        f"  {vector('d')} d{start};\n"
        f'  asm volatile("{made.opcode} {", ".join(places)} {printed(made)}{idle}"\n'
        f'               : "{"+v" if tied else "=&v"}"(d) : {given});\n'
        "  keep(of.d, d);"
    )
