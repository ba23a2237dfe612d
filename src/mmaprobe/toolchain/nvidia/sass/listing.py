"""A disassembly as nvdisasm prints it, taken apart: instructions, their guards and operands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from mmaprobe.errors import UsageError

Kind = Literal["R", "UR", "P", "UP", "immediate", "constant", "memory", "name"]
ZERO = -1
"""Number of RZ, URZ, PT and UPT: no register."""

_LABEL = re.compile(r"^(\.L_\w+):")
_REMARK = re.compile(r"\(\*.*?\*\)")
_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?)(U?P(?:\d|T))\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_OPERAND = re.compile(r"(?:[^,\[\]`(]|\[[^\]]*\]|`?\([^)]*\))+")
_REGISTER = re.compile(r"^(-?)([!~|]?)(UR|UP|R|P)(\d+|Z|T)\|?((?:\.\w+)*)$")


@dataclass(frozen=True)
class CodeOperand:
    """One operand: a register or predicate ``number`` (``ZERO``: RZ, PT), negated with ``minus``, complemented with
    ``inverse``; an immediate's ``number``; a ``memory`` address, the sum of ``parts`` and ``number``; else a name."""

    kind: Kind
    number: int = 0
    minus: bool = False
    inverse: bool = False
    text: str = ""
    parts: tuple[CodeOperand, ...] = ()


@dataclass(frozen=True)
class MachineCode:
    """One instruction, ``name`` its opcode without ``modifiers``: it acts in lanes where ``guard`` holds."""

    address: int
    opcode: str
    name: str
    modifiers: frozenset[str]
    operands: tuple[CodeOperand, ...]
    guard: CodeOperand | None
    text: str


@dataclass(frozen=True)
class CodeListing:
    """The instructions of a kernel in order, and which one each label stands before."""

    codes: tuple[MachineCode, ...]
    labels: dict[str, int] = field(default_factory=dict)


def listing(text: str) -> CodeListing:
    """A disassembly taken apart; UsageError where an operand is of no form that is known."""
    codes: list[MachineCode] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(codes)
        elif found := _CODE.match(_REMARK.sub("", line)):
            address, no, guard, opcode, rest = found.groups()
            operands = tuple(_operand(each.strip()) for each in _OPERAND.findall(rest))
            condition = _operand(no + guard) if guard else None
            name, *modifiers = opcode.split(".")
            shown = line.split("*/", 1)[1].strip()
            codes.append(MachineCode(int(address, 16), opcode, name, frozenset(modifiers), operands, condition, shown))
    return CodeListing(tuple(codes), labels)


def _operand(text: str) -> CodeOperand:
    if found := _REGISTER.match(text):
        minus, sign, kind, number, _ = found.groups()
        place = ZERO if number in "ZT" else int(number)
        return CodeOperand(_kind(kind), place, bool(minus), sign in ("!", "~") and bool(sign), text)
    if re.fullmatch(r"-?0x[0-9a-f]+", text):
        return CodeOperand("immediate", int(text, 16), text=text)
    if found := re.fullmatch(r"(-?)c\[0x0\]\[(0x[0-9a-f]+)\]", text):
        return CodeOperand("constant", int(found[2], 16), bool(found[1]), text=text)
    if found := re.fullmatch(r"(?:g?desc\[UR\d+\])?\[([^\]]*)\]((?:\.\w+)*)", text):
        return _address(found[1], text)
    if re.fullmatch(r"`?\(?[\w.]+\)?", text) or re.fullmatch(r"[\w.\[\]+{},-]+", text):
        return CodeOperand("name", text=text.strip("`()"))
    raise UsageError(f"operand {text!r} of a disassembly is of no form that is known")


def _kind(name: str) -> Kind:
    kinds: dict[str, Kind] = {"R": "R", "UR": "UR", "P": "P", "UP": "UP"}
    return kinds[name]


def _address(inner: str, text: str) -> CodeOperand:
    """``R2.64+UR4+-0x10``: the registers, ``number`` the constant."""
    parts, number = [], 0
    for part in inner.split("+"):
        one = _operand(part)
        if one.kind == "immediate":
            number += one.number
        else:
            parts.append(one)
    return CodeOperand("memory", number, text=text, parts=tuple(parts))
