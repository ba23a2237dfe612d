"""What an instruction's modifiers make of its primitive's datapath, where they are no primitive of their own.

``neg_a`` and ``neg_b`` negate an operand (PTX ISA, wgmma and tcgen05), as do
AMD's ``neg``, ``neg_lo`` and ``neg_hi`` (``catalog.modifiers``), taken as its sign
bit flipped before it is read, zeros and NaNs too, of an absolute value cleared
first; ``scale_d = 0`` and ``enable_input_d = 0`` leave C out, which then reads as
+0; ``clamp`` limits an integer sum, after each of its steps, instead of wrapping
it, and a float result to [0, 1] or not: sources differ, and no datapath says it.
None of it is measured; clamp and the signs of RDNA's WMMA are published or
recorded where a parameter file says so (``covers``).
``lscale`` multiplies products by 2^-lscale, exactly (Arm, FPMR.LSCALE): A has the larger bias of the instruction's
format; published where a parameter file says so.
Transposition, operand placement and collectors do not enter one vector; what
AMD's modifiers move within a tile is in ``models.modifiers``.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import SIGN_KEYS, operand_signs
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Datapath, Operand

OWN = frozenset({"clamp", "lscale"})
"""Modifiers that change what the primitive computes, whatever else the instruction takes."""
COVERED = (*sorted(OWN), "neg_hi", "neg_lo")
"""Modifiers that a primitive's basis may be of."""
ABSENT_C = {"scale_d": "0", "enable_input_d": "0"}
UNKNOWN = {
    "scale_input_d": "how D times 2^-s is rounded and aligned is not published",
    "disable_output_lane": "which rows keep their D is no operand of a batch",
    "zero_column_mask": "which columns of B are zeroed is no operand of a batch",
}
"""Modifiers that no datapath follows, and why."""
OF_FLOATS = "manuals limit a float to [0, 1], the emulator of RDNA4 does not (the question float-clamp)"
"""Why no datapath follows ``clamp`` where the result is a float."""


def changes(made: Instruction, covered: Set[str] = frozenset()) -> bool:
    """Whether modifiers, but those that its basis covers, change what the primitive computes: then the model is
    predicted, whatever that basis."""
    given = made.modifier.keys() - covered
    signs = bool(SIGN_KEYS & given) and any(sign != "keep" for pair in operand_signs(made).values() for sign in pair)
    return signs or bool(OWN & given) or bool(UNKNOWN.keys() & given) or _without_c(made)


def _without_c(made: Instruction) -> bool:
    return any(made.modifier.get(name) == value for name, value in ABSENT_C.items())


def unknown(made: Instruction) -> dict[str, str]:
    """Modifiers that no datapath of the instruction follows, and why."""
    return UNKNOWN | ({"clamp": OF_FLOATS} if formats.get(made.d).is_float else {})


def modified(datapath: Datapath, made: Instruction) -> Datapath:
    """The datapath as the instruction's modifiers have it; UsageError for one whose effect is not known.

    An operand that is negated in every other lane alone is left to
    ``models.modifiers``, which changes the batch.
    """
    state = made.modifier
    for name, reason in unknown(made).items():
        if name in state:
            raise UsageError(f"no datapath is known for {made.id}: {reason}; run `mmaprobe derive` on the device")
    fields: dict[str, Any] = {}
    for name, (even, odd) in operand_signs(made).items():
        if even == odd != "keep":
            fields[f"operand_{name}"] = replace(getattr(datapath, f"operand_{name}"), sign=even)
    if "clamp" in state:
        root: Any = datapath.tree
        fields["tree"] = replace(root, to=replace(root.to, overflow="largest"))
    if "lscale" in state:
        fields["a"] = made.a
    if _without_c(made):
        fields |= {"c": None, "operand_c": Operand()}
    return replace(datapath, **fields) if fields else datapath
