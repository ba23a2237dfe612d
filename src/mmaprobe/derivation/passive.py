"""The hypotheses that a recording is held against, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import axes
from mmaprobe.derivation import hypotheses as grammar
from mmaprobe.derivation.living import Living, several
from mmaprobe.derivation.structures import Structure, fused_structures, orders, rounded_structures
from mmaprobe.errors import UsageError
from mmaprobe.models.grid import Change, Grid
from mmaprobe.parameters.datapath import Datapath, Encode, Special

ALIGNMENTS = ("RZ", "RD", "RU", "RNE", "RNA")
RESULTS = ("RZ", "RNE", "RD", "RU")


def plain_hypotheses(instruction: Instruction, results: Iterable[str], code: int, moved: bool) -> Iterator[Living]:
    """Structure by structure: every precision and rounding, the policies at the ends of the range as they come.

    ``moved``: with the lanes taken in every way, else only as they come.
    """
    k, has_c = instruction.k, instruction.c is not None
    special = Special("canonical", code)
    for name in results:
        modes = tuple(dict.fromkeys(("RNE", "RZ", *formats.ROUNDINGS)))
        for structure in rounded_structures(k, has_c):
            base = replace(grammar.build(instruction, structure, Encode(name)), special=special)
            yield from _moved(base, [axes.rounding(modes)], _orders(k, structure, moved))
        for structure in fused_structures(k, has_c):
            to = Encode(name, "RZ", "infinity", zero="positive", underflow="positive")
            base = replace(axes.cut(grammar.build(instruction, structure, to), 8, "RZ"), special=special)
            widths = axes.fraction_bits(axes.may_be_uncut(base))
            changes = [widths, axes.alignment(ALIGNMENTS), axes.rounding(RESULTS)]
            yield from _moved(base, changes, _orders(k, structure, moved))


def _moved(base: Datapath, changes: Sequence[Sequence[Change]], ways: list[tuple[int, ...] | None]) -> Iterator[Living]:
    """All combinations of changes, with the lanes taken in each way."""
    try:
        grid = Grid(base, changes)
    except UsageError:  # the engine cannot hold it
        made = [reduce(lambda path, change: change(path), each, base) for each in product(*changes)]
        yield from (several([replace(path, order=order) for path in made]) for order in ways)
        return
    for order in ways:
        yield Living.of([grid if order is None else grid.moved(replace(base, order=order))])


def _orders(k: int, structure: Structure, moved: bool) -> list[tuple[int, ...] | None]:
    return orders(k, structure.piece or structure.step, structure.fused) if moved else [None]


def zero_variants(datapath: Datapath, like: Iterable[Datapath] = ()) -> Iterator[Datapath]:
    """Every exponent that zeros can show, and none; ``like``: those that these datapaths have."""
    exponents = [axes.zero_of(path) for path in like] or axes.zero_exponents(datapath)
    if not grammar.has_fused(datapath):
        yield datapath
        return
    yield from (change(datapath) for change in axes.zero_exponent(exponents))


def end_variants(datapath: Datapath) -> Iterator[Datapath]:
    """Policies at the ends of the range: subnormal operands and results, signs of zeros, overflow."""
    names = ("a", "b", "c") if datapath.c is not None else ("a", "b")
    rules = [axes.flush(), axes.zero_sign(), axes.underflow_sign(), axes.overflow(), *map(axes.operand, names)]
    for changes in product(*rules):
        yield reduce(lambda path, change: change(path), changes, datapath)
