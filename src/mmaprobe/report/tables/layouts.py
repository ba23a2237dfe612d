"""Operand layouts on a terminal: a line an operand, or one fragment as lanes x registers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mmaprobe.catalog import layouts, lookup
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_algebra import Composed, Layout, Swizzle, collision, is_bijection, parse
from mmaprobe.catalog.shared_memory import matrix
from mmaprobe.errors import UsageError

SHOWN = 8
"""Registers that a table shows unless more are asked for."""
MOST_OFFSETS = 4096
"""The largest layout whose offsets are drawn."""


def find(identifier: str, architecture: str | None) -> tuple[Instruction, str]:
    """An instruction and the architecture: the one given (of a generation the first), else the first that has it.

    UsageError where it has none, or a generation's parts differ in where the operands lie.
    """
    wanted = lookup.instruction(identifier, architecture)
    if architecture:
        home = partial(_home, wanted)
        return wanted, lookup.agreed(architecture, home, "where operands lie", partial(_places, wanted))
    for name in lookup.architectures():
        try:
            return wanted, _home(wanted, name)
        except UsageError:
            continue
    raise UsageError(f"{wanted.id} is on no architecture")


def _home(wanted: Instruction, part: str) -> str:
    """The architecture of a part; UsageError where it lacks the instruction."""
    lookup.lowering(wanted, part)
    return lookup.architecture_base(part)


def _places(wanted: Instruction, home: str) -> str:
    return str(operand_rows(wanted, home))


def operand_rows(instruction: Instruction, architecture: str) -> list[dict[str, Any]]:
    """Every operand: where it lies, how many lanes and registers, what a place holds, how sure that is."""
    return [_operand_row(instruction, architecture, operand) for operand in layouts.operands(instruction)]


def _operand_row(instruction: Instruction, architecture: str, operand: str) -> dict[str, Any]:
    try:
        found = layouts.layout(instruction, architecture, operand)
    except UsageError as error:
        try:
            shared = matrix(instruction, operand)
        except UsageError:
            status, _, reason = str(error).partition(f"the layout of {operand} is ")[2].partition(": ")
            return {"operand": operand, "where": "-", "holds": reason or str(error), "status": status or "unknown"}
        return {"operand": operand, "where": "shared memory", "status": "checked", "source": shared.source,
                "holds": f"{shared.mn} x {shared.k}, {shared.name.replace('_', ' ')}, swizzle {shared.swizzle} bytes, "
                         f"LBO {shared.lbo}, SBO {shared.sbo}"}  # fmt: skip
    holds = [f"{axis} = {formula.text}" for axis, formula in found.at]
    if found.active is not None:
        holds.append(f"if {found.active.text}")
    return {
        "operand": operand, "where": found.space, "lanes": found.lanes, "registers": found.registers,
        "element": f"{found.width} of {found.bits} bits" if found.width != found.bits else f"{found.bits} bits",
        "copies": found.replication, "holds": ", ".join(holds), "status": found.status, "name": found.name,
        "choices": dict(found.choices), "source": found.source, "note": found.note,
    }  # fmt: skip


def heading(found: Fragment) -> list[str]:
    """A fragment in lines: its size, formulas, what is chosen, source."""
    unit = "columns" if found.space == "tensor memory" else "registers"
    axes = " x ".join(f"{axis} {size}" for axis, size in found.axes)
    lines = [f"{found.name}: {axes} in {found.lanes} lanes x {found.registers} {unit}, {found.bits} bits a place"]
    lines += [f"  {axis} = {formula.text}" for axis, formula in found.at]
    if found.active is not None:
        lines.append(f"  where {found.active.text}")
    lines += [f"  {name} = {values[0]} of {', '.join(map(str, sorted(values)))}" for name, values in found.choices]
    if algebraic := found.as_layout():
        lines.append(f"  layout {algebraic}")
    if found.replication > 1:
        lines.append(f"  every element in {found.replication} lanes")
    lines.append(f"  {found.status}: {found.source}" + (f"; {found.note}" if found.note else ""))
    return lines


def grid_rows(found: Fragment, first: int = 0, last: int | None = None) -> list[dict[str, Any]]:
    """A row a lane, a column a register: the elements that it holds, ``0,0..1`` where one index runs."""
    index = np.stack(list(found.coordinates().values()))
    held = found.held()
    register = np.arange(found.slots) * found.bits // found.register_bits
    last = found.registers if last is None else min(last, found.registers)
    rows = []
    for lane in range(found.lanes):
        row: dict[str, Any] = {"lane": str(lane)}
        for number in range(first, last):
            slots = np.flatnonzero((register == number) & held[lane])
            row[f"r{number}"] = _elements(index[:, lane, slots].T.tolist())
        rows.append(row)
    return rows


def in_notation(text: str) -> bool:
    """Whether a word is a layout in CuTe's notation, and no instruction."""
    return text[:1] in "(0123456789" or text.startswith("Sw<")


def drawn(text: str) -> tuple[str, list[dict[str, Any]]]:
    """A layout in CuTe's notation: what is proved of it, and its offsets, mode 0 downward, the other modes across."""
    found = parse(text)
    if isinstance(found, Swizzle):
        raise UsageError(f"{found} has no shape; write {found} o 0 o (8,8):(8,1), or another layout")
    plain = found.layout if isinstance(found, Composed) else found
    if plain.size > MOST_OFFSETS:
        raise UsageError(f"{found} has {plain.size} coordinates; at most {MOST_OFFSETS} are drawn")
    down = plain.modes[0].size if plain.rank > 1 else 1
    rows = [
        {"row": str(row)} | {str(column): found(row + down * column) for column in range(plain.size // down)}
        for row in range(down)
    ]
    return f"{found}: {plain.size} coordinates, {_proved(found)}", rows


def _proved(found: Layout | Composed) -> str:
    if pair := collision(found):
        return " and ".join(str(place).replace(" ", "") for place in pair) + " have one offset"
    return "a bijection" if is_bijection(found) else "injective, with gaps"


def _elements(elements: list[list[int]]) -> str:
    """Indices of elements, one text: a run along one axis is written as one."""
    runs: list[list[list[int]]] = []
    for element in elements:
        if runs and _goes_on(runs[-1], element):
            runs[-1].append(element)
        else:
            runs.append([element])
    return " ".join(_run(run) for run in runs) or "-"


def _goes_on(run: list[list[int]], element: list[int]) -> bool:
    """Whether an element follows a run's last one, one further along one axis, the run's own if it has one."""
    steps = [after - before for before, after in zip(run[-1], element, strict=True)]
    if sorted(steps) != [*[0] * (len(steps) - 1), 1]:
        return False
    return len(run) == 1 or steps == [after - before for before, after in zip(run[-2], run[-1], strict=True)]


def _run(run: list[list[int]]) -> str:
    pairs = zip(run[0], run[-1], strict=True)
    return ",".join(str(low) if low == high else f"{low}..{high}" for low, high in pairs)


def span(text: str, found: Fragment) -> tuple[int, int]:
    """``8:16`` as two register numbers; UsageError where the fragment lacks them."""
    low, colon, high = text.partition(":")
    if not (low.isdigit() and high.isdigit() and colon and int(low) < int(high) <= found.registers):
        raise UsageError(f"--registers {text!r}: it is FIRST:LAST with 0 <= FIRST < LAST <= {found.registers}")
    return int(low), int(high)
