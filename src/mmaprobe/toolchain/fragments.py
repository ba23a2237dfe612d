"""An operand's layout as a C++ struct that the kernel templates take: ``csrc/gpu/fragments.hpp`` says what is in it."""

from __future__ import annotations

from math import prod

from mmaprobe.catalog.formula import Formula
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.formats import Format
from mmaprobe.toolchain.source import template

MOVE, REGISTERS, BATCH = "gpu/fragments.hpp", "gpu/registers.hpp", "gpu/batch.hpp"
"""What moves an operand's elements, all operands of a group of lanes in its registers, the kernel's loop over items."""
STRUCTS = {
    "a": "A", "b": "B", "c": "C", "d": "D", "scale_a": "ScaleA", "scale_b": "ScaleB", "metadata": "Metadata",
}  # fmt: skip
"""The struct of each operand."""
CODES = {8: "unsigned char", 16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"}
WORDS = {32: "Word32", 64: "Word64"}
METADATA_BITS = 8
"""Bits of the code that holds an item of metadata."""

_PLACE = "static MMAPROBE_DEVICE {type} {name}(int lane, int slot) {{ (void)lane; (void)slot; return {value}; }}"


def code_type(fmt: Format | None) -> str:
    """The C type of an array's items: of a format, or of sparse metadata."""
    return CODES[METADATA_BITS if fmt is None else fmt.dtype.itemsize * 8]


def flat(fragment: Fragment) -> str:
    """The index of a place's element in the operand's array without its axes, as C."""
    chosen = {name: values[0] for name, values in fragment.choices}
    strides = {name: prod(size for _, size in fragment.axes[i + 1 :]) for i, (name, _) in enumerate(fragment.axes)}
    bound = {name: formula.bind(chosen).c for name, formula in fragment.at}
    terms = [f"({at})" + (f" * {strides[name]}" if strides[name] > 1 else "") for name, at in bound.items()]
    return " + ".join(term for term in terms if term != "(0)") or "0"


def struct(fragment: Fragment, code: str, items: int = 1) -> str:
    """The struct of a fragment; ``items`` of the batch lie in it side by side."""
    chosen = {name: values[0] for name, values in fragment.choices}
    held = (fragment.active or Formula("1")).bind(chosen).c
    shift = fragment.shift.bind(chosen)()
    return "\n".join(
        [
            f"// {fragment.name}: {fragment.source}",
            f"struct {STRUCTS[fragment.operand]} {{",
            f"  using Code = {code};",
            f"  using Word = {WORDS[fragment.register_bits]};",
            f"  static constexpr int slots = {fragment.slots}, bits = {fragment.bits}, width = {fragment.width},",
            f"      shift = {shift}, registers = {fragment.registers}, register_bits = {fragment.register_bits},",
            f"      elements = {fragment.elements // items}, items = {items};",
            "  " + _PLACE.format(type="bool", name="held", value=held),
            "  " + _PLACE.format(type="int", name="at", value=flat(fragment)),
            "};",
        ]
    )


def absent(operand: str) -> str:
    """The struct of an operand that an instruction lacks."""
    return f"using {STRUCTS[operand]} = Absent;"


def structs(instruction: Instruction, fragments: dict[str, Fragment], items: int = 1) -> str:
    """One struct for each operand, those that the instruction lacks too."""
    formats = instruction.formats()
    made = [
        struct(fragments[name], code_type(formats.get(name)), items) if name in fragments else absent(name)
        for name in STRUCTS
    ]
    return "\n\n".join(made)


def movement(instruction: Instruction, fragments: dict[str, Fragment], items: int = 1) -> str:
    """What moves the operands of a group of lanes from memory into its registers, and D back."""
    return "\n\n".join(
        [
            template(MOVE),
            structs(instruction, fragments, items),
            f"constexpr Word64 ITEMS = {items};",
            template(REGISTERS),
        ]
    )
