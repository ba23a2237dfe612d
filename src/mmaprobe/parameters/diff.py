"""What changed between two parameter files, in meaning: primitives and fields, not lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mmaprobe.catalog.lanes import format_lanes
from mmaprobe.parameters.datapath import FIELDS, Accumulator, Add, Datapath, Exact, Fma, Fused, Node, Products, Zero
from mmaprobe.parameters.files import Entry, ParameterFile
from mmaprobe.parameters.table import Table, flatten, spelt_out_table


@dataclass(frozen=True)
class Change:
    """One field of one primitive with its old and new value; field ``""`` is the primitive itself."""

    primitive: str
    field: str
    old: Any
    new: Any

    def __str__(self) -> str:
        if not self.field:
            return f"{self.primitive}: {'new' if self.old is None else 'gone'}"
        return f"{self.primitive}: {in_words(self.field)}: {self.old} -> {self.new}"


def diff(old: ParameterFile, new: ParameterFile) -> list[Change]:
    """The changes of meaning from ``old`` to ``new``: datapaths, control state followed, basis.

    Sources, notes and witnesses are not meaning.  Where the trees have
    different nodes the change is the tree as a whole.
    """
    changes: list[Change] = []
    for name in dict.fromkeys((*old.entries, *new.entries)):
        before, after = old.entries.get(name), new.entries.get(name)
        if before is None or after is None:
            changes.append(Change(name, "", before and before.basis, after and after.basis))
        else:
            changes += (Change(name, *rest) for rest in _entry_changes(before, after))
    return changes


def _entry_changes(old: Entry, new: Entry) -> Iterator[tuple[str, Any, Any]]:
    yield from datapath_changes(old.datapath, new.datapath)
    if set(old.follows) != set(new.follows):
        yield "follows", " ".join(old.follows) or "nothing", " ".join(new.follows) or "nothing"
    if old.basis != new.basis:
        yield "basis", old.basis, new.basis


TERM_FIELD = re.compile(r"(.*)\.terms\.\d+\.(fraction_bits|rounding|zero_exponent)")


def datapath_changes(old: Datapath, new: Datapath) -> Iterator[tuple[str, Any, Any]]:
    """(dotted path, old value, new value) of every field in which two datapaths differ.

    A rule of the terms of an aligned sum that all of them share before and after is one field, of the sum.
    """
    if outline(old.tree) != outline(new.tree):
        yield "tree", outline(old.tree), outline(new.tree)
    before, after = (dict(flatten(spelt_out_table(each))) for each in (old, new))
    told: set[str] = set()
    for path in dict.fromkeys((*before, *after)):
        if path.startswith("tree.") and (path not in before or path not in after or is_structure(path)):
            continue  # said by the outlines
        if before.get(path) != after.get(path):
            place = _shared_place(path, before, after)
            if place not in told:
                yield place, _said(before.get(path)), _said(after.get(path))
            told.add(place)


def _shared_place(path: str, before: Table, after: Table) -> str:
    """The path of a term's rule, or that of its sum where all terms have one rule before and one after."""
    found = TERM_FIELD.fullmatch(path)
    if found is None:
        return path
    node, name = found.groups()
    same = re.compile(rf"{re.escape(node)}\.terms\.\d+\.{name}")
    alike = all(len({value for key, value in table.items() if same.fullmatch(key)}) == 1 for table in (before, after))
    return f"{node}.{name}" if alike else path


def _said(value: Any) -> str:
    return "none" if value is None else str(value)


def is_structure(path: str) -> bool:
    """Whether a dotted path is a place in a tree, not a rule of what stands there."""
    last = path.rpartition(".")[2]
    return last.isdigit() or last in ("node", "x", "y", "of", "acc", "lanes")


def outline(node: Node) -> str:
    """A tree in one line: ``fused(c, 0..15)``, ``fma(c; 1,0)``, ``add(add(0, 1), add(2, 3))``."""
    if isinstance(node, Accumulator):
        return "c"
    if isinstance(node, Zero):
        return "zero"
    if isinstance(node, Products):
        return format_lanes(node.lanes)
    if isinstance(node, Fma):
        return f"fma({outline(node.acc)}; {format_lanes(node.lanes)})"
    if isinstance(node, Add):
        return f"add({outline(node.x)}, {outline(node.y)})"
    name, parts = _sum_of(node)
    return f"{name}({', '.join(map(outline, parts))})"


def _sum_of(node: Fused | Exact) -> tuple[str, Iterable[Node]]:
    if isinstance(node, Fused):
        return "fused", [term.of for term in node.terms]
    return "exact", node.terms


_OTHERS = {
    "follows": "control state obeyed", "basis": "basis", "swap": "order of the operands",
    "arrangement": "order of the lanes in a step", "grouping": "which products are summed together",
    "accumulation": "where C enters", "between": "format between the steps and the last conversion",
    "products": "rounding of the products", "nan_rule": "kind of NaN rule", "cut": "where terms are cut",
}  # fmt: skip
"""What changes beside the fields of records."""


def in_words(field: str) -> str:
    """A dotted path as words: ``tree.to.rounding`` is "rounding of the result of the sum"."""
    *parents, last = field.split(".")
    places = []
    for place in parents:
        if place.isdigit():
            places.append(f"term {int(place) + 1}")
        elif place in FIELDS and FIELDS[place].place:
            places.append(FIELDS[place].place)
    name = FIELDS[last].words if last in FIELDS else _OTHERS.get(last, last)
    return " of ".join((name, *reversed(places)))
