"""The certificate: for every neighbour of a datapath, why it is wrong, or that nothing was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mmaprobe.derivation.rewrite import encodes
from mmaprobe.evidence.records import Witness
from mmaprobe.parameters.datapath import Accumulator, Add, Datapath, Exact, Fma, Fused, Node, Operand, Products, walk
from mmaprobe.parameters.neighbours import Neighbour

Verdict = Literal["refuted", "equivalent", "open"]


@dataclass(frozen=True)
class Entry:
    """The verdict on one neighbour.

    ``refuted``: ``witness`` is a vector on which the device contradicts it.
    ``equivalent``: ``argument`` says why it is the same function.  ``open``: no
    vector among ``searched`` told it apart.
    """

    field: str
    value: str
    verdict: Verdict
    witness: Witness | None = None
    argument: str = ""
    searched: int = 0


@dataclass(frozen=True)
class Certificate:
    """All verdicts; ``open_fields`` are what a report must not state as a number."""

    entries: tuple[Entry, ...]

    @property
    def refuted(self) -> int:
        return sum(entry.verdict == "refuted" for entry in self.entries)

    @property
    def equivalent(self) -> int:
        return sum(entry.verdict == "equivalent" for entry in self.entries)

    @property
    def open_fields(self) -> dict[str, tuple[str, ...]]:
        """Values that no vector told apart from the datapath's own, by field."""
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.verdict == "open":
                found.setdefault(entry.field, []).append(entry.value)
        return {name: tuple(values) for name, values in found.items()}


def argument(datapath: Datapath, neighbour: Neighbour) -> str:
    """Why a neighbour is the same function as the datapath, by the rules of the record alone; empty if unknown."""
    path, _, name = neighbour.field.rpartition(".")
    other = neighbour.datapath
    if name == "swap" and datapath.special.nan != "local":
        return "addition commutes, and which NaN comes out does not depend on the order of the operands"
    if name == "label" and not any(isinstance(node, Fused) for node in walk(datapath.tree)):
        return "no node aligns terms, so nothing reads a product's label"
    if name == "overflow" and _overflow_rules(datapath) == _overflow_rules(other):
        return "under these roundings the IEEE rule gives the same result beyond the largest finite value"
    if name == "tininess" and _sums_on_grid(datapath, path):
        return "the operands are multiples of the result's lowest place, so a tiny sum needs no rounding"
    if name == "underflow" and _sums_on_grid(datapath, path) and not _flushes(datapath, path):
        return "the operands are multiples of the result's lowest place, so no sum underflows to zero"
    if name == "priority" and _product_order(datapath) == _product_order(other) and not _has(datapath, Fma):
        return "there is no fma, so the place of the accumulator is never read"
    if name == "step" and _wraps(datapath) and _wraps(other):
        return "sums that wrap do not depend on their grouping"
    if name == "step" and (chain := _chain(datapath)) is not None and chain == _chain(other):
        return "a chain of fused multiply-adds is the same chain however it is cut into steps"
    return ""


def _has(datapath: Datapath, kind: type[Node]) -> bool:
    return any(isinstance(node, kind) for node in walk(datapath.tree))


def _product_order(datapath: Datapath) -> tuple[str, ...]:
    return tuple(name for name in datapath.special.priority if name != "acc")


def _wraps(datapath: Datapath) -> bool:
    return all(isinstance(node, (Exact, Products, Accumulator)) for node in walk(datapath.tree)) and all(
        to.overflow == "wrap" for to in encodes(datapath)
    )


def _chain(datapath: Datapath) -> tuple[object, ...] | None:
    """The lanes of one FMA chain from c through all steps, with its rounding; None for any other tree."""
    tree = datapath.tree
    if not isinstance(tree, Fma) or not isinstance(tree.acc, Accumulator) or datapath.c != tree.to.format:
        return None
    if datapath.result is not None or datapath.operand_c != Operand():
        return None
    return tree.to, *(step[lane] for step in datapath.steps for lane in tree.lanes)


def _sums_on_grid(datapath: Datapath, path: str) -> bool:
    """Whether the Encode at ``path`` is that of an Add of two values of its own format."""
    holder = _at(datapath, path.removesuffix(".to"))
    if not isinstance(holder, Add):
        return False
    return all(_format_of(datapath, part) == holder.to.format for part in (holder.x, holder.y))


def _flushes(datapath: Datapath, path: str) -> bool:
    """Whether the Encode at ``path`` flushes, which makes zeros of nonzero sums."""
    return getattr(_at(datapath, path), "subnormals", "keep") != "keep"


def _format_of(datapath: Datapath, node: Node) -> str | None:
    if isinstance(node, Accumulator):
        return datapath.c
    if isinstance(node, Products):
        return datapath.product.to.format if datapath.product.to else None
    to = getattr(node, "to", None)
    return None if to is None else to.format


def _at(datapath: Datapath, path: str) -> object:
    """The part of a datapath that a dotted path names."""
    part: object = datapath
    for key in path.split("."):
        part = part[int(key)] if isinstance(part, tuple) and key.isdecimal() else getattr(part, key, None)
    return part


def _overflow_rules(datapath: Datapath) -> list[str]:
    """What each Encode makes of a result beyond the largest finite value."""
    return [
        {"RZ": "largest", "RO": "largest", "RU": "ieee", "RD": "ieee"}.get(to.rounding, "infinity")
        if to.overflow == "ieee"
        else to.overflow
        for to in encodes(datapath)
    ]
