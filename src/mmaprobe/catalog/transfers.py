"""Maps beside the fragments: what tcgen05.ld and .st move, and AMD's broadcasts of A and permutations of B."""

from __future__ import annotations

from mmaprobe.catalog.formula import Formula
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.layouts import Binder, sheets
from mmaprobe.errors import UsageError, near


def transfer(shape: str, count: int, split: int | None = None) -> Fragment:
    """What ``tcgen05.ld`` and ``.st`` of a shape (``16x64b``) and ``.x<count>`` move, relative to the address.

    Register ``slot`` of thread ``lane`` is the 32-bit cell (lane, column) of
    tensor memory.  Of ``16x32bx2`` the second half of the threads is ``split``
    columns further (default: ``count``).  UsageError for an unknown shape.
    """
    tables = {
        table["name"].removeprefix("tcgen05."): table for sheet in sheets() for table in sheet.data.get("transfer", ())
    }
    if shape not in tables:
        raise UsageError(f"unknown shape {shape!r} of tcgen05.ld{near(shape, tables)}")
    if count < 1 or count & (count - 1):
        raise UsageError(f"tcgen05.ld.{shape}: .x is a power of two; {count} came")
    table = tables[shape]
    bind = Binder({}, {"N": count, "split": count if split is None else split})
    registers = bind.number(table["registers"])
    if registers > 128:
        raise UsageError(f"tcgen05.ld.{shape}.x{count} would take {registers} registers; at most 128")
    at = tuple((axis, bind.formula(text)) for axis, text in table["at"].items())
    columns = 1 + max(int(dict(at)["column"](lane=lane, slot=registers - 1)) for lane in range(32))
    return Fragment(
        table["name"], "transfer", "registers", 32, registers, 32, 32,
        (("lane", table["lanes"]), ("column", columns)), at,
        source="PTX ISA 9.4, tcgen05.ld; CuTe copy_traits_sm100",
    )  # fmt: skip


def lane_map(name: str, value: int = 0) -> Formula:
    """An AMD operand map before the multiply.

    ``cbsz_abid``: the MFMA block of A that feeds ``mfma_block``, in the names
    cbsz and abid too.  ``blgp`` with its value 0 to 7: the lane of B that
    feeds ``lane``.  UsageError for another name or value.
    """
    tables = {table["name"]: table for sheet in sheets() for table in sheet.data.get("map", ())}
    if name not in tables:
        raise UsageError(f"unknown map {name!r}{near(name, tables)}")
    rows = tables[name].get("by_value", [tables[name].get("at")])
    if not 0 <= value < len(rows):
        raise UsageError(f"{name} is 0 to {len(rows) - 1}; {value} came")
    return Formula(rows[value])
