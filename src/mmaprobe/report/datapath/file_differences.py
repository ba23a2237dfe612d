"""What tells two parameter files apart, primitive by primitive, in the words of ``unit_differences``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from mmaprobe.catalog.lookup import instructions
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.report.datapath.known import folded
from mmaprobe.report.datapath.unit_differences import alike, counts_line, first_of, told_lines, work
from mmaprobe.survey.unit_pairs import OneSided, PairedUnits, UnitPair

REWRITTEN = "written otherwise"
"""The verdict of a pair that is the same function in other words."""


def file_lines(found: PairedUnits, names: tuple[str, str], architectures: tuple[str, str]) -> list[str]:
    """Which primitives one file alone has; of pairs that are not one datapath on one basis what differs, the smallest
    vector that shows it and both results; how many are the same function."""
    lines: list[str] = []
    for name, other, alone, inside in _single(found, names, architectures):
        unlike = [each.name for each in alone if each.name not in inside]
        lines += [f"{name} alone, {other} has no such primitive: {folded(unlike)}", ""] if unlike else []
        lines += [f"{name} alone, inside of other instructions: {folded(inside)}", ""] if inside else []
    shown = [pair for pair in found.pairs if not _silent(pair)]
    for pairs in _together(shown, names):
        lines += [*_group(pairs, names), ""]
    rewritten = sum(pair.found.verdict == REWRITTEN for pair in found.pairs)
    counts = counts_line(found) + (f"; {rewritten} the same in other words" if rewritten else "")
    return [*lines, counts if files_differ(found, architectures) else f"no difference in meaning: {counts}"]


def files_differ(found: PairedUnits, architectures: tuple[str, str]) -> bool:
    """Whether a function differs, the control state that one follows, or which primitives the files know; on what a
    function rests is no difference of it, nor is a primitive that no instruction runs alone: no device can be asked."""
    single = any(len(inside) < len(alone) for *_, alone, inside in _single(found, architectures, architectures))
    return single or not all(pair.same for pair in found.pairs)


def _single(
    found: PairedUnits, names: tuple[str, str], architectures: tuple[str, str]
) -> Iterator[tuple[str, str, Sequence[OneSided], list[str]]]:
    """Of each file what it alone has, and the names of those that are inside of other instructions alone."""
    for name, other, architecture, alone in zip(names, reversed(names), architectures, found.alone, strict=True):
        if alone:
            run = {bare_primitive(architecture, made) for made in instructions(architecture)}
            yield name, other, alone, [each.name for each in alone if each.name not in run]


def _silent(pair: UnitPair) -> bool:
    return pair.found.verdict == "same" and pair.same and pair.bases[0] == pair.bases[1]


def _together(pairs: Sequence[UnitPair], names: tuple[str, str]) -> Iterator[list[UnitPair]]:
    """Pairs of which the same is said, also of what they rest on."""
    groups: dict[str, list[UnitPair]] = defaultdict(list)
    for pair in pairs:
        groups[_basis(pair, names)].append(pair)
    for group in groups.values():
        yield from alike(group, names)


def _group(pairs: Sequence[UnitPair], names: tuple[str, str]) -> Iterator[str]:
    yield folded([work(pair) for pair in pairs])
    made = [tuple(dict.fromkeys(each for pair in pairs for each in pair.names[side])) for side in (0, 1)]
    if made[0] == made[1]:
        yield from (f"  in {first_of(ids)}" for ids in made[:1] if ids)
    else:
        yield from (f"  {name}: {first_of(ids)}" for name, ids in zip(names, made, strict=True) if ids)
    yield from told_lines(pairs[0], names)
    yield from filter(None, [_basis(pairs[0], names)])


def _basis(pair: UnitPair, names: tuple[str, str]) -> str:
    """On what both rest, where that is not the same."""
    old, new = (" or ".join(bases) for bases in pair.bases)
    return "" if old == new else f"  basis: {old} in {names[0]}, {new} in {names[1]}"
