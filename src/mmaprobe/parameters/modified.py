"""What an instruction's modifiers make of its primitive's datapath, where they are no primitive of their own.

``neg_a`` and ``neg_b`` negate an operand (PTX ISA, wgmma and tcgen05), as do
AMD's ``neg``, ``neg_lo`` and ``neg_hi`` (``catalog.modifiers``), taken as its sign
bit flipped before it is read, zeros and NaNs too; ``scale_d = 0`` and
``enable_input_d = 0`` leave C out, which then reads as +0; ``clamp`` limits an
integer sum, after each of its steps, instead of wrapping it.  None of it is
measured; clamp is recorded where a parameter file says so (``covers``).
``lscale`` multiplies products by 2^-lscale, exactly (Arm, FPMR.LSCALE): A has the larger bias of the instruction's
format; published where a parameter file says so.
Transposition, operand placement and collectors do not enter one vector; what
AMD's modifiers move within a tile is in ``models.modifiers``.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import operand_signs
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Datapath, Operand

COVERED = ("clamp", "lscale")
"""Modifiers that a primitive's basis may be of."""
ABSENT_C = {"scale_d": "0", "enable_input_d": "0"}
UNKNOWN = {
    "scale_input_d": "how D times 2^-s is rounded and aligned is not published",
    "disable_output_lane": "which rows keep their D is no operand of a batch",
    "zero_column_mask": "which columns of B are zeroed is no operand of a batch",
}
"""Modifiers that no datapath follows, and why."""


def changes(made: Instruction, covered: Container[str] = ()) -> bool:
    """Whether modifiers, but those that its basis covers, change what the primitive computes: then the model is
    predicted, whatever that basis."""
    signs = any(sign != "keep" for pair in operand_signs(made).values() for sign in pair)
    own = any(name in made.modifier and name not in covered for name in COVERED)
    return signs or own or bool(UNKNOWN.keys() & made.modifier.keys()) or _without_c(made)


def _without_c(made: Instruction) -> bool:
    return any(made.modifier.get(name) == value for name, value in ABSENT_C.items())


def modified(datapath: Datapath, made: Instruction) -> Datapath:
    """The datapath as the instruction's modifiers have it; UsageError for one whose effect is not known.

    An operand that is negated in every other lane alone is left to
    ``models.modifiers``, which changes the batch.
    """
    state = made.modifier
    for name, reason in UNKNOWN.items():
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
