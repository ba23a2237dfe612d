"""Maps of which kernel computes which element, at several shapes, to regions by rule.

An axis is cut into pieces, each as long as it can be, down to single places; the pieces' numbers and the places in them
are labels.  Rows are cut so that rows of one label are alike in every map.  For each group of labels whose rows are
alike everywhere the columns are cut so that those of a label all are of a kernel, or none is, whatever N is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.parameters.schedule import Bands, Ranges, Region
from mmaprobe.probing.gemm.elements import distinct_rows

Map = NDArray[np.intp]
"""Of each element of one D (M, N) the number of its kernel."""
LONGEST_PIECE = 64
"""Longest piece that an axis is cut into."""
MOST_AXES = 3
"""Ways to cut the rows for which columns are cut."""
LEAST = (8, 16, 32)
"""Lengths below which nothing of a block may be chosen."""
NUMBERS = 64
"""Numbers of lengths that a label tells apart."""
PLACES = 1024
"""Places of a piece that a label tells apart."""
Labels = NDArray[np.intp]
"""(Whether the block is not the first, the number of the piece's length, the place in the piece) as one number, or
``UNLABELLED``."""
UNLABELLED = -1
"""The label of a place in a block that is too short."""


@dataclass(frozen=True)
class Axis:
    """How an axis is cut: blocks, a lead, and pieces."""

    blocks: Ranges
    lead: tuple[int, ...]
    pieces: tuple[int, ...]

    def labels(self, length: int, least: int = 0) -> Labels:
        """The label of every place."""
        return _labels(self, length, least)


@lru_cache(maxsize=65536)
def _labels(axis: Axis, length: int, least: int) -> Labels:
    found = []
    for index, block in enumerate(axis.blocks.of(length)):
        left = len(block)
        if left < least:
            found.append(np.full(left, UNLABELLED))
            continue
        for number, size in enumerate(axis.lead + axis.pieces):
            count = min(left // size, 1) if number < len(axis.lead) else left // size
            first = ((index > 0) * NUMBERS + number) * PLACES
            if count:
                found.append(first + np.arange(count * size) % size)
                left -= count * size
    return np.concatenate(found)


def fit_regions(maps: Sequence[Map], names: Sequence[str], blocks: Sequence[Ranges]) -> tuple[Region, ...] | None:
    """Regions that give every map, ``names`` being the kernels'; the kernel of most elements has the rest.

    ``blocks``: rules by which an axis may be cut into blocks before it is cut into pieces.  None: no rule was found.
    """
    counts = np.sum([np.bincount(each.ravel(), minlength=len(names)) for each in maps], axis=0)
    rest = int(np.argmax(counts))
    if counts[rest] == counts.sum():
        return (Region(names[rest], rest=True),)
    by_length = _by_length(maps, names)
    if by_length is not None:
        return by_length
    for axis in islice(_fitting(maps, blocks), MOST_AXES):
        found = _by_groups(maps, axis, names, blocks, rest)
        if found is not None:
            return (*found, Region(names[rest], rest=True))
    return None


def kernels_by_length(maps: Sequence[Map]) -> tuple[int, dict[int, int]] | None:
    """Where every D is of one kernel by its rows (axis 0) or its columns (1), whichever has less ends of kernels: the
    axis, and the kernel of each length that was asked, the smallest first; None where it is not so."""
    found = list[tuple[int, int, dict[int, int]]]()
    for axis in (1, 0):
        kernels = dict[int, int]()
        for each in maps:
            kernel = int(each[0, 0])
            if (each != kernel).any() or kernels.setdefault(each.shape[axis], kernel) != kernel:
                break
        else:
            kernels = dict(sorted(kernels.items()))
            found.append((sum(one != other for one, other in pairwise(kernels.values())), axis, kernels))
    ends, axis, kernels = min(found, key=lambda each: each[0], default=(0, 0, {}))
    return (axis, kernels) if ends else None


def _by_length(maps: Sequence[Map], names: Sequence[str]) -> tuple[Region, ...] | None:
    """The regions where a D is of one kernel by its columns, or by its rows, and it is known where each ends: that of
    the longest has the rest."""
    by_length = kernels_by_length(maps)
    if by_length is None:
        return None
    axis, kernels = by_length
    changes = [(one, two) for one, two in pairwise(kernels) if kernels[one] != kernels[two]]
    if any(two - one > 1 for one, two in changes):
        return None
    ends = [(length, kernels[length]) for length, _ in changes]
    least, found = 0, list[Region]()
    for length, kernel in ends:
        bands = Bands(least=least, most=length)
        found.append(Region(names[kernel], *((Bands(), bands) if axis else (bands, Bands()))))
        least = length + 1
    return (*found, Region(names[[*kernels.values()][-1]], rest=True))


def _by_groups(
    maps: Sequence[Map], axis: Axis, names: Sequence[str], blocks: Sequence[Ranges], rest: int
) -> list[Region] | None:
    """The regions of all kernels but the rest's, rows cut so; None where columns are by no rule."""
    across = dict[tuple[int, tuple[Bands, ...]], set[int]]()
    for rows, lines in _groups(maps, axis):
        for kernel in {*np.unique(np.concatenate(lines)).tolist()} - {rest}:
            columns = fit_bands([line == kernel for line in lines], blocks)
            if columns is None:
                return None
            across.setdefault((kernel, tuple(columns)), set()).update(rows)
    every = np.unique(np.concatenate([axis.labels(len(each)) for each in maps]))
    found = list[Region]()
    for (kernel, chosen), rows in across.items():
        bands = _bands(axis, rows, every, 0)
        if bands is None:
            return None
        found += [Region(names[kernel], row, column) for row in bands for column in chosen]
    return found


def fit_bands(masks: Sequence[NDArray[np.bool_]], blocks: Sequence[Ranges]) -> list[Bands] | None:
    """The plainest bands that choose these places of an axis of each length."""
    for axis in _axes(blocks):
        for least in _leasts(axis, masks):
            chosen = _chosen(axis, masks, least)
            if not chosen or UNLABELLED in chosen:
                continue
            every = np.unique(np.concatenate([axis.labels(len(mask), least) for mask in masks]))
            found = _bands(axis, chosen, every[every != UNLABELLED], least)
            if found is not None:
                return found
    return None


def _leasts(axis: Axis, masks: Sequence[NDArray[np.bool_]]) -> Iterator[int]:
    """Lengths below which nothing of a block may be chosen: 0, and those above the shortest block that there is."""
    yield 0
    if axis.lead or axis.blocks != Ranges():
        shortest = min(size for mask in masks for size in axis.blocks.sizes(len(mask)))
        yield from (least for least in LEAST if least > shortest)


def _chosen(axis: Axis, masks: Sequence[NDArray[np.bool_]], least: int) -> set[int]:
    """The labels of all places that are chosen; none where one of them is of another place, too."""
    chosen, others = set[int](), set[int]()
    for mask in sorted(masks, key=len):
        labels = axis.labels(len(mask), least)
        chosen.update(labels[mask].tolist())
        others.update(labels[~mask].tolist())
        if not chosen.isdisjoint(others):
            return set()
    return chosen


def _fitting(maps: Sequence[Map], blocks: Sequence[Ranges]) -> Iterator[Axis]:
    """Ways to cut the rows under which rows of one label are alike in every map."""
    kinds = [distinct_rows(each)[1] for each in maps]
    for axis in _axes(blocks):
        if all(_alike(axis.labels(len(kind)), kind) for kind in kinds):
            yield axis


def _alike(labels: Labels, kinds: NDArray[np.intp]) -> bool:
    kind = np.empty(int(labels.max()) + 1, np.intp)
    kind[labels] = kinds
    return bool((kind[labels] == kinds).all())


def _axes(blocks: Sequence[Ranges]) -> Iterator[Axis]:
    """Every way to cut an axis, the plainest first."""
    for block in (Ranges(), *blocks):
        for lead in (False, True):
            for longest in range(1, LONGEST_PIECE + 1):
                tail = tuple(1 << bit for bit in reversed(range((longest - 1).bit_length())))
                for size in tail if lead else (0,):
                    yield Axis(block, (size,) if size else (), (longest, *tail))


def _groups(maps: Sequence[Map], axis: Axis) -> list[tuple[set[int], list[NDArray[np.intp]]]]:
    """Labels of rows of one piece that are alike in every map that has them, and one row of each of these maps."""
    lines = dict[int, dict[int, NDArray[np.intp]]]()
    for number, each in enumerate(maps):
        labels, first = np.unique(axis.labels(len(each)), return_index=True)
        for label, at in zip(labels.tolist(), first, strict=True):
            lines.setdefault(label, {})[number] = each[at]
    groups = list[tuple[set[int], dict[int, NDArray[np.intp]]]]()
    for label, own in sorted(lines.items(), key=lambda each: (-len(each[1]), each[0])):
        for labels_, known in groups:
            if label // PLACES == min(labels_) // PLACES and all(
                (known[number] == line).all() for number, line in own.items() if number in known
            ):
                labels_.add(label)
                known.update(own)
                break
        else:
            groups.append(({label}, dict(own)))
    return [(labels_, list(known.values())) for labels_, known in groups]


def _bands(axis: Axis, chosen: set[int], every: NDArray[np.intp], least: int) -> list[Bands] | None:
    """The chosen labels of an axis as bands; None for what the record cannot say: all blocks but the first."""
    if len(chosen) == len(every) and not least:
        return [Bands()]
    by_places = dict[tuple[bool, tuple[int, ...]], list[int]]()
    for number, size in enumerate(axis.lead + axis.pieces):
        first, later = (_places(chosen, number, side) for side in (False, True))
        known = [_places({*every.tolist()}, number, side) for side in (False, True)]
        if not first and not later:
            continue
        both = first == later or not known[0] or not known[1]
        if not both and later:
            return None
        own = first | later
        key = () if len(own) == size else tuple(sorted(own))
        by_places.setdefault((both, key), []).append(number)
    found = []
    for (both, key), numbers in by_places.items():
        pieces = axis.pieces[: max(max(numbers) + 1 - len(axis.lead), 0)]
        of_blocks: Literal["every", "first"] = "every" if both else "first"
        found.append(Bands(axis.blocks, of_blocks, axis.lead, pieces, tuple(numbers), key, least))
    return found


def _places(labels: set[int], number: int, later: bool) -> set[int]:
    """The places that labels have of pieces of a number, in the first block or in later ones."""
    first = (later * NUMBERS + number) * PLACES
    return {label - first for label in labels if first <= label < first + PLACES}
