"""Modifiers resolved by rule: which values an instruction takes, and the operand formats that they choose.

A row of the catalog names the roles that its modifiers play (``takes``).  A
role gives the legal values of its keys, the default first; the default is left
out of the id.  Values are written as the assembler prints them, its bit lists
``[1,1,0]`` (for A, B and C) without brackets and commas: ``neg_lo=110``.

Source: AMD ISA reference guides (CDNA1 to CDNA4, RDNA3, RDNA4) and LLVM 22,
AMDGPU operand syntax; Arm Architecture Reference Manual, FPMR.  ``catalog/data/amd_*.toml`` and ``cpu.toml`` say what
takes what.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.errors import UsageError, near

MOST_LISTED = 16
"""Values of a modifier that an error lists; more are numbers from the first to the last."""
Choices = tuple[str, ...]
Chosen = Mapping[str, str]

MATRIX_FORMATS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
"""The formats that f8f6f4 numbers 0 to 4."""
MATRIX_NAMES = tuple(f"MATRIX_FMT_{name}" for name in ("FP8", "BF8", "FP6", "BF6", "FP4"))
SCALE_FORMATS = {
    "MATRIX_SCALE_FMT_E8": "ue8m0", "MATRIX_SCALE_FMT_E5M3": "ue5m3", "MATRIX_SCALE_FMT_E4M3": "ue4m3",
}  # fmt: skip
SCALE_ROWS = ("MATRIX_SCALE_ROW0", "MATRIX_SCALE_ROW1")
SIGN_KEYS = frozenset({"neg", "neg_a", "neg_b", "neg_c", "neg_hi", "neg_lo"})
"""Modifiers that change the sign of an operand, where ``operand_signs`` says so."""


def _numbers(count: int) -> Choices:
    return tuple(map(str, range(count)))


def _bits(*places: int) -> Choices:
    """Three bits for A, B and C, those of ``places`` free."""
    free = [("0", "1") if place in places else ("0",) for place in range(3)]
    return tuple(map("".join, itertools.product(*free)))


def _broadcast(made: Instruction, chosen: Chosen) -> dict[str, Choices]:
    """2^cbsz neighbouring blocks of D use one block of A, number abid among them."""
    sizes = _numbers(made.blocks.bit_length())
    size = chosen.get("cbsz", "0")
    return {"cbsz": sizes, "abid": _numbers(1 << sizes.index(size) if size in sizes else 1)}


def _permute_blocks(made: Instruction, chosen: Chosen) -> dict[str, Choices]:
    return {"blgp": _numbers(8 if made.blocks > 1 else 1)}


def index_sets(made: Instruction) -> int:
    """How many sets of a sparse A's indices a 32-bit register holds: 4 bits for each two values kept in a lane."""
    kept = made.k // 2 * made.m // 64
    return max(32 // (4 * kept // 2), 1)


_ROLES: dict[str, Callable[[Instruction, Chosen], dict[str, Choices]]] = {
    "broadcast": _broadcast,
    "permute": lambda made, chosen: {"blgp": _numbers(8)},
    "permute_blocks": _permute_blocks,
    "formats": lambda made, chosen: {"cbsz": _numbers(5), "blgp": _numbers(5)},
    "matrix_formats": lambda made, chosen: dict.fromkeys(("matrix_a_fmt", "matrix_b_fmt"), MATRIX_NAMES),
    "scale_bytes": lambda made, chosen: dict.fromkeys(("op_sel", "op_sel_hi"), _bits(0, 1)),
    "scale_rows": lambda made, chosen: dict.fromkeys(("matrix_a_scale", "matrix_b_scale"), SCALE_ROWS),
    "scale_row_b": lambda made, chosen: {"matrix_b_scale": SCALE_ROWS},  # 32 rows of A take the scales of all lanes
    "scale_formats": lambda made, chosen: dict.fromkeys(
        ("matrix_a_scale_fmt", "matrix_b_scale_fmt"), tuple(SCALE_FORMATS)
    ),
    "index_set": lambda made, chosen: {"abid": _numbers(index_sets(made))},
    "index_key_1": lambda made, chosen: {"index_key": _numbers(1)},
    "index_key_2": lambda made, chosen: {"index_key": _numbers(2)},
    "index_key_4": lambda made, chosen: {"index_key": _numbers(4)},
    "negate": lambda made, chosen: {"neg": _bits(0, 1, 2)},
    "negate_halves": lambda made, chosen: dict.fromkeys(("neg_lo", "neg_hi"), _bits(0, 1)),
    "negate_ab": lambda made, chosen: {"neg_lo": _bits(0, 1)},
    "negate_c": lambda made, chosen: dict.fromkeys(("neg_lo", "neg_hi"), _bits(2)),
    "signs": lambda made, chosen: {"neg_lo": _bits(0, 1)},
    "clamp": lambda made, chosen: {"clamp": ("off", "")},
    "result_half": lambda made, chosen: {"op_sel": _bits(2)},
    "reuse": lambda made, chosen: dict.fromkeys(("matrix_a_reuse", "matrix_b_reuse"), ("off", "")),
    "lscale_4": lambda made, chosen: {"lscale": _numbers(1 << 4)},
    "lscale_7": lambda made, chosen: {"lscale": _numbers(1 << 7)},
}
"""What each role of ``takes`` lets an id say; where two roles share a key of bits, both have their bits."""

ROLES = frozenset(_ROLES)
_NEGATING = frozenset({"negate", "negate_halves", "negate_ab", "negate_c"})
"""Those whose bits ``neg``, ``neg_lo`` and ``neg_hi`` are of signs."""


def legal(made: Instruction, chosen: Chosen) -> dict[str, Choices]:
    """The values that each modifier of an instruction may have, the default first, beside those ``chosen``."""
    found: dict[str, Choices] = {}
    for role in made.takes:
        for key, values in _ROLES[role](made, chosen).items():
            found[key] = _joined(found[key], values) if key in found else values
    return found


def _joined(bits: Choices, more: Choices) -> Choices:
    return tuple(sorted({"".join(map(max, x, y)) for x in bits for y in more}))


def keys(made: Instruction) -> frozenset[str]:
    """The modifiers that the instruction takes by rule."""
    return frozenset(legal(made, {}))


def unmodified(made: Instruction) -> str:
    """The id without the modifiers taken by rule: the catalog's row."""
    taken = keys(made)
    return spell(made.opcode, tuple(pair for pair in made.modifiers if pair[0] not in taken))


def resolve(base: Instruction, wanted: Chosen) -> Instruction:
    """``base`` with these modifiers; UsageError naming the legal values where one is not."""
    allowed = legal(base, wanted) if base.takes else {}
    for key, value in wanted.items():
        if key not in allowed:
            raise UsageError(f"{base.id} takes no modifier {key}{near(key, allowed) or '; it takes none'}")
        if value not in allowed[key]:
            raise UsageError(f"{base.id}: {key}={value} is not legal here; it is {_listed(key, allowed[key])}")
    kept = [(key, value) for key, value in wanted.items() if value != allowed[key][0]]
    modifiers = tuple(sorted((*base.modifiers, *kept)))
    changes: dict[str, Any] = _formats(base, {key: values[0] for key, values in allowed.items()} | dict(wanted))
    return replace(base, id=spell(base.opcode, modifiers), modifiers=modifiers, **changes)


def _listed(key: str, choices: Choices) -> str:
    if len(choices) > MOST_LISTED:
        return f"{key}={choices[0]} to {key}={choices[-1]}"
    return "one of " + ", ".join(key if not choice else f"{key}={choice}" for choice in choices)


def _formats(base: Instruction, chosen: Chosen) -> dict[str, Any]:
    """The operand formats that the modifiers choose."""
    if "formats" in base.takes:
        return {"a": MATRIX_FORMATS[int(chosen["cbsz"])], "b": MATRIX_FORMATS[int(chosen["blgp"])]}
    changes = {}
    if "signs" in base.takes:
        for name, sign in zip("ab", chosen["neg_lo"], strict=False):
            changes[name] = f"{'s' if sign == '1' else 'u'}{formats.get(getattr(base, name)).bits}"
    if "matrix_formats" in base.takes:
        for name in "ab":
            changes[name] = MATRIX_FORMATS[MATRIX_NAMES.index(chosen[f"matrix_{name}_fmt"])]
    if "scale_formats" in base.takes:
        first, second = chosen["matrix_a_scale_fmt"], chosen["matrix_b_scale_fmt"]
        if first != second:
            raise UsageError(
                f"{base.id}: scales of two formats ({first}, {second}) are not modelled; give both the same"
            )
        changes["scale"] = SCALE_FORMATS[first]
    if int(chosen.get("lscale", "0")):
        changes["a"] = formats.downscaled(formats.get(base.a), int(chosen["lscale"])).name
    return changes


def retyped(way: Lowering, row: Instruction, wanted: Instruction) -> Lowering:
    """A row's lowering for the formats that an id's modifiers choose: its primitives take those instead."""
    made = resolve(row, dict(pair for pair in wanted.modifiers if pair not in row.modifiers))
    before, after = _types(row), _types(made)
    if after != _types(wanted):
        raise UsageError(f"{wanted.id} takes {after} on {way.architecture}, not {_types(wanted)}")
    if before == after or "lscale" in made.modifier:  # a state of FPMR, as a rounding mode is one of FPCR
        return way
    applications = tuple(
        replace(step, primitive=step.primitive.replace(f"[{before}->", f"[{after}->")) for step in way.applications
    )
    return replace(way, applications=applications)


def _types(made: Instruction) -> str:
    return ",".join(name for name in (made.a, made.b, made.scale) if name)


def operand_signs(made: Instruction) -> dict[str, tuple[str, str]]:
    """What happens to the sign bits of A, B and C, in even and in odd lanes: ``keep``, ``flip``, ``clear``, ``set``.

    ``neg_a``, ``neg_b`` and ``neg_c``, ``neg`` and, of 32-bit and wider operands, ``neg_lo``
    negate an operand; of 16-bit A and B ``neg_lo`` and ``neg_hi`` negate the low
    and the high halves of the registers, which hold the even and the odd lanes.
    Of C ``neg_lo`` negates, ``neg_hi`` takes the absolute value before.
    """
    given = made.modifier
    found = {name: ("flip", "flip") for name in "abc" if f"neg_{name}" in given}
    if "signs" in made.takes or not _NEGATING & set(made.takes):
        return found
    whole, low, high = (given.get(key, "000") for key in ("neg", "neg_lo", "neg_hi"))
    if "negate_halves" not in made.takes:
        high = low[:2] + high[2]
    even = [int(x) ^ int(y) for x, y in zip(whole, low, strict=True)]
    odd = [int(x) ^ int(y) for x, y in zip(whole, high, strict=True)]
    words = ("keep", "flip")
    c = (words, ("clear", "set"))[int(high[2])][even[2]]
    return found | {"a": (words[even[0]], words[odd[0]]), "b": (words[even[1]], words[odd[1]]), "c": (c, c)}


def changes_batch(made: Instruction) -> bool:
    """True where modifiers change operands in ways that no datapath says (``models.modifiers``)."""
    return moves_operands(made) or any(even != odd for even, odd in operand_signs(made).values())


def moves_operands(made: Instruction) -> bool:
    """True where modifiers feed a place of the tile from another place: ``cbsz`` blocks of A, ``blgp`` lanes of B."""
    return bool({"broadcast", "permute", "permute_blocks"} & set(made.takes)) and bool(
        {"cbsz", "blgp"} & made.modifier.keys()
    )
