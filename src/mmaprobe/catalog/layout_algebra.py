"""The algebra of layouts: functions from coordinates to offsets, put together, taken apart, inverted and proved.

A layout is a shape and a stride, nested tuples of integers of one profile.  A number c in [0, size) stands for
the coordinate whose first index runs fastest (colexicographic order), and

    L(c) = sum of (index i of c) * (stride i) over the leaves.

Every operation says its rule in its docstring and holds it for the whole domain; where no layout of the rule's
form does, UsageError names the layouts.  Where CuTe rounds up or leaves the domain instead, this refuses.

Sources: C. Cecka, "CuTe Layout Representation and Algebra" (2024); NVIDIA, CuTe documentation, "CuTe
Layouts" and "CuTe Layout Algebra".  ``tests/catalog/cute_layouts`` holds it against numbers that CuTe prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd, prod
from typing import Any, TypeAlias, cast

from mmaprobe.errors import UsageError, brief
from mmaprobe.showing import counted

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"
Leaf: TypeAlias = tuple[int, int]
MOST_BITS = 64
"""Bits of an offset that a swizzle reaches at most."""
DEEPEST = 32
"""Tuples within tuples that the notation takes at most."""


@dataclass(frozen=True)
class Layout:
    """``shape:stride``; called on a number, on one index a mode, or on a nested coordinate.

    Indices may be integers, which are held against the shape, or arrays of integers, which are not.
    """

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        if not _congruent(self.shape, self.stride):
            raise UsageError(f"{_text(self.shape)}:{_text(self.stride)}: shape and stride are no tuples of one profile")
        if any(size < 1 or step < 0 for size, step in self.leaves):
            raise UsageError(f"{self}: sizes are at least 1, strides at least 0")

    def __call__(self, *coordinate: Any) -> Any:
        """L(c); UsageError where c is no coordinate of the shape."""
        return _offset(coordinate[0] if len(coordinate) == 1 else coordinate, self)

    def __str__(self) -> str:
        return f"{_text(self.shape)}:{_text(self.stride)}"

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """(size, stride) of each leaf, in order."""
        return tuple(zip(_flat(self.shape), _flat(self.stride), strict=True))

    @property
    def modes(self) -> tuple[Layout, ...]:
        """The layouts of the top level's modes; of an integer shape, itself."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return (self,)
        return tuple(map(Layout, self.shape, self.stride))

    @property
    def size(self) -> int:
        """How many coordinates: the product of the leaves' sizes."""
        return prod(_flat(self.shape))

    @property
    def cosize(self) -> int:
        """One more than the largest offset: L(size - 1) + 1."""
        return 1 + sum((size - 1) * step for size, step in self.leaves)

    @property
    def rank(self) -> int:
        """How many modes the top level has."""
        return len(self.modes)

    @property
    def depth(self) -> int:
        """How deep the tuples are nested: 0 for an integer."""
        return _depth(self.shape)


Tiler: TypeAlias = "Layout | int | tuple[Tiler, ...]"
"""A layout, an integer n for n:1, or a tuple of tilers, one a mode."""


@dataclass(frozen=True)
class Swizzle:
    """Bits [base + shift, base + shift + bits) of an offset, XORed into its bits [base, base + bits).

    S(x) = x XOR ((x AND Y) >> shift), Y the mask of those upper bits; of a negative shift the lower are XORed into
    the upper.  As the two fields do not meet, S(S(x)) = x: it is a bijection.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise UsageError(f"{self}: bits and base are at least 0, and the shift is no smaller than the bits")
        if self.bits + self.base + abs(self.shift) > MOST_BITS:
            raise UsageError(f"{self}: reaches bits beyond the {MOST_BITS} of an offset")

    def __call__(self, offset: Any) -> Any:
        """S(x), of an integer or an array of integers."""
        read = offset & ((1 << self.bits) - 1) << self.base + max(0, self.shift)
        return offset ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def keeps(self, count: int) -> bool:
        """Whether S permutes [0, count) at sight: none of these has a bit that is read, or they are whole blocks."""
        written = 1 << self.base + self.bits + max(0, -self.shift)
        return self.bits == 0 or count <= 1 << self.base + max(0, self.shift) or count % written == 0


@dataclass(frozen=True)
class Composed:
    """A swizzle after a layout: R(c) = S(offset + L(c))."""

    swizzle: Swizzle
    offset: int
    layout: Layout

    def __call__(self, *coordinate: Any) -> Any:
        """R(c); UsageError where c is no coordinate of the layout."""
        return self.swizzle(self.offset + self.layout(*coordinate))

    def __str__(self) -> str:
        return f"{self.swizzle} o {self.offset} o {self.layout}"


# Tuples and coordinates


def _flat(tree: IntTuple) -> tuple[int, ...]:
    return (tree,) if isinstance(tree, int) else tuple(leaf for branch in tree for leaf in _flat(branch))


def _congruent(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) > 0 and all(map(_congruent, one, other))
    return type(one) is int and type(other) is int


def _depth(tree: IntTuple) -> int:
    return 0 if isinstance(tree, int) else 1 + max(map(_depth, tree))


def _text(tree: object) -> str:
    return f"({','.join(map(_text, tree))})" if isinstance(tree, tuple) else str(tree)


def coordinate(shape: IntTuple, number: int) -> IntTuple:
    """The coordinate of a shape that a number stands for: index i is number // (product of the sizes before) % size."""
    if isinstance(shape, int):
        return number
    indices = []
    for mode in shape:
        number, index = divmod(number, prod(_flat(mode)))
        indices.append(coordinate(mode, index))
    return tuple(indices)


def _offset(index: Any, layout: Layout) -> Any:
    if isinstance(index, tuple):
        if isinstance(layout.shape, int) or len(index) != layout.rank:
            raise UsageError(f"{brief(index)} is no coordinate of {layout}")
        return sum(map(_offset, index, layout.modes))
    if isinstance(index, int) and not 0 <= index < layout.size:
        raise UsageError(f"{layout} has coordinates 0 to {layout.size - 1}; {index} came")
    total, leaves = 0, layout.leaves
    for size, step in leaves[:-1]:
        total, index = total + index % size * step, index // size
    return total + index * leaves[-1][1]


def joined(*modes: Layout) -> Layout:
    """The layout with these modes: L(c0, c1, ...) = L0(c0) + L1(c1) + ..."""
    return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))


def compact(shape: IntTuple) -> Layout:
    """The layout with L(c) = c: column-major, without gaps."""
    step = 1

    def leaf(size: int, _: int) -> Layout:
        nonlocal step
        stride, step = step, step * size
        return Layout(size, stride)

    return _each_leaf(Layout(shape, shape), leaf)


def _of_leaves(leaves: list[Leaf]) -> Layout:
    """A flat layout; of one leaf an integer shape, of none 1:0."""
    if len(leaves) < 2:
        return Layout(*(leaves or [(1, 0)])[0])
    return Layout(*cast(tuple[IntTuple, IntTuple], tuple(zip(*leaves, strict=True))))


# Notation


def parse(text: str) -> Layout | Swizzle | Composed:
    """A layout in CuTe's notation: ``((2,4),8):((1,16),2)``, ``Sw<3,4,3>``, ``Sw<3,4,3> o 0 o (8,8):(8,1)``."""
    plain = re.sub(r"\s+|_(?=\d)", "", text)
    found = re.fullmatch(r"Sw<(\d+),(\d+),(-?\d+)>(?:o(\d+)o(.*))?", plain)
    if not found:
        return _parse_layout(plain, text)
    swizzle = Swizzle(*map(int, found.groups()[:3]))
    return swizzle if found[4] is None else Composed(swizzle, int(found[4]), _parse_layout(found[5], text))


def _parse_layout(plain: str, text: str) -> Layout:
    halves = [_parse_tuple(half) for half in plain.split(":")]
    if len(halves) != 2 or None in halves:
        raise UsageError(f"{brief(text)} is no layout, such as ((2,4),8):((1,16),2) or Sw<3,4,3> o 0 o (8,8):(8,1)")
    return Layout(*cast(list[IntTuple], halves))


def _parse_tuple(text: str) -> IntTuple | None:
    """A nested tuple of digits, brackets and commas; None where the text is anything else, or too deep."""
    stack: list[list[IntTuple]] = [[]]
    due = True
    for token in re.findall(r"\d+|.", text):
        if token == "(" and due and len(stack) <= DEEPEST:
            stack.append([])
        elif token.isdecimal() and due:
            stack[-1].append(int(token))
            due = False
        elif token == ")" and not due and len(stack) > 1:
            branch = tuple(stack.pop())
            stack[-1].append(branch)
        elif token == "," and not due and len(stack) > 1:
            due = True
        else:
            return None
    return stack[0][0] if len(stack) == 1 and not due else None


# Operations


def coalesce(layout: Layout, profile: IntTuple = 1) -> Layout:
    """The same function of numbers in the fewest modes: R(c) = L(c); by mode where the profile is a tuple.

    A leaf of size 1 goes, and two neighbours s0:d0 and s1:(s0*d0) are one, s0*s1:d0.
    """
    if isinstance(profile, tuple):
        modes = layout.modes
        if len(profile) > len(modes):
            raise UsageError(f"{layout} has {counted(len(modes), 'mode')}, fewer than {_text(profile)}")
        return joined(*map(coalesce, modes, profile), *modes[len(profile) :])
    kept: list[Leaf] = []
    for size, step in layout.leaves:
        if kept and kept[-1][0] * kept[-1][1] == step and size > 1:
            kept[-1] = kept[-1][0] * size, kept[-1][1]
        elif size > 1:
            kept.append((size, step))
    return _of_leaves(kept)


def composition(outer: Layout | Swizzle | Composed, inner: Tiler) -> Layout | Composed:
    """R(c) = A(B(c)) for each c of B, with B's shape above; by mode where B is a tuple, whose modes alone remain.

    A swizzle of any bits, or a layout with one, stays in front: R is ``Composed``.
    """
    if isinstance(outer, Swizzle):
        if not isinstance(inner, Layout):
            raise UsageError(f"{outer} has no modes; {_tiler_text(inner)} is no layout")
        return Composed(outer, 0, inner) if outer.bits else inner
    if isinstance(outer, Composed):
        return Composed(outer.swizzle, outer.offset, compose(outer.layout, inner))
    return compose(outer, inner)


def compose(outer: Layout, inner: Tiler) -> Layout:
    """The ``composition`` of layouts.

    B must map into A's domain, and each leaf s:d of B must cut A's leaves n:a, coalesced, in whole parts: d a multiple
    of n, which is stepped over; or s steps within n; or d a divisor of n and s a multiple of n / d.  The largest
    indices that B's leaves reach in one n:a must add up to less than n, for a carry would be no sum of A's offsets.
    """
    if isinstance(inner, tuple):
        return _by_mode("composition", compose, outer, inner, rest=False)
    inner = _as_layout(inner)
    where = f"composition of {outer} with {inner}: "
    if inner.cosize > outer.size:
        raise UsageError(f"{where}its offset {inner.cosize - 1} is outside of the first")
    leaves = list(coalesce(outer).leaves)
    reached = [0] * len(leaves)

    def leaf(size: int, step: int) -> Layout:
        parts = _cut(leaves, size, step)
        if parts is None:
            raise UsageError(f"{where}{size}:{step} does not divide the first's modes")
        for part, index_step, place in parts:
            reached[place] += (part - 1) * index_step
        return _of_leaves([(part, index_step * leaves[place][1]) for part, index_step, place in parts])

    made = _each_leaf(inner, leaf)
    for (size, stride), index in zip(leaves[:-1], reached, strict=False):
        if index >= size:
            raise UsageError(f"{where}its modes add up to index {index} of the first's {size}:{stride}")
    return made


def _each_leaf(layout: Layout, change: Callable[[int, int], Layout]) -> Layout:
    if isinstance(layout.shape, int) and isinstance(layout.stride, int):
        return change(layout.shape, layout.stride)
    return joined(*(_each_leaf(mode, change) for mode in layout.modes))


def _cut(leaves: list[Leaf], size: int, step: int) -> list[tuple[int, int, int]] | None:
    """c * step for c < size, cut along A's leaves: parts, each its size, its step in a leaf, and which leaf.

    None where they do not divide.
    """
    if step == 0:
        return [(size, 0, 0)]
    made: list[tuple[int, int, int]] = []
    for place, (length, _) in enumerate(leaves[:-1]):
        if size > 1 and step % length:
            part = -(-length // step)
            if step > length or (size > part and (length % step or size % part)):
                return None
            part = min(part, size)
            made.append((part, step, place))
            size //= part
        step = -(-step // length)
    if size > 1 or not made:
        made.append((size, step, len(leaves) - 1))
    return made


def complement(layout: Layout, target: int | None = None) -> Layout:
    """A* with (A, A*) injective and onto [0, n), n the least multiple of A's period that is at least ``target``.

    Its offsets increase.  Strides d of A in order must each be a multiple of the period s*d of the one before, the
    last of which is A's; leaves of size 1 or stride 0 do not count.  ``target`` is A's cosize unless given.
    """
    target = layout.cosize if target is None else target
    made, period = [], 1
    for step, size in sorted((step, size) for size, step in layout.leaves if size > 1 and step):
        if step % period:
            raise UsageError(f"complement of {layout} in {target}:1: stride {step} is no multiple of {period}")
        made.append((step // period, period))
        period = size * step
    return coalesce(_of_leaves([*made, (-(-target // period), period)]))


def right_inverse(layout: Layout) -> Layout:
    """R with L(R(i)) = i for each i < R's size: along the strides that follow each other from 1 without a gap."""
    made, reached = [], 1
    for step, size, place in _by_stride(layout):
        if step == reached:
            made.append((size, place))
            reached = size * step
    return coalesce(_of_leaves(made))


def left_inverse(layout: Layout) -> Layout:
    """R with R(L(c)) = c for each c; strides must divide one another.  UsageError where L is not injective."""
    if pair := collision(layout):
        raise UsageError(f"{layout} has no left inverse: {_text(pair[0])} and {_text(pair[1])} have one offset")
    sizes, strides, period, last = [], [0], 1, 1
    for step, size, place in _by_stride(layout):
        if step % period:
            raise UsageError(f"{layout} has no left inverse among layouts: stride {step} is no multiple of {period}")
        sizes.append(step // period)
        strides.append(place)
        period, last = step, size
    return coalesce(_of_leaves(list(zip([*sizes, last], strides, strict=True))))


def _by_stride(layout: Layout) -> list[tuple[int, int, int]]:
    """Leaves of more than one index, coalesced, by stride: (stride, size, product of the sizes before it)."""
    found, before = [], 1
    for size, step in coalesce(layout).leaves:
        if size > 1:
            found.append((step, size, before))
        before *= size
    return sorted(found, key=lambda each: each[0])


def fit(offsets: Sequence[int]) -> Layout | None:
    """The layout, coalesced, that has these offsets in order of its numbers; None where none has."""
    leaves: list[Leaf] = []
    rest = list(offsets)
    while len(rest) > 1 and rest[0] == 0:
        run = next((number for number, offset in enumerate(rest) if offset != number * rest[1]), len(rest))
        leaves.append((run, rest[1]))
        rest = rest[::run]
    if any(step < 0 for _, step in leaves):
        return None
    made = _of_leaves(leaves)
    return made if [*map(made, range(made.size))] == list(offsets) else None


# Divide and product


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """A o (B, B*), B* the complement of B in A's size: mode 0 within a tile, mode 1 across; by mode of a tuple."""
    if isinstance(tiler, tuple):
        return _by_mode("division", logical_divide, layout, tiler)
    tile = _as_layout(tiler)
    try:
        parts = joined(tile, complement(tile, layout.size))
        return compose(layout, parts)
    except UsageError as error:
        raise UsageError(f"{layout} divided by {tile}: {error}") from None


def logical_product(layout: Layout, tiler: Tiler) -> Layout:
    """(A, A* o B), A* the complement of A in size(A) * cosize(B): mode 0 one copy, mode 1 where each copy lies."""
    if isinstance(tiler, tuple):
        return _by_mode("product", logical_product, layout, tiler)
    copies = _as_layout(tiler)
    try:
        return joined(layout, compose(complement(layout, layout.size * copies.cosize), copies))
    except UsageError as error:
        raise UsageError(f"{layout} times {copies}: {error}") from None


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """``logical_divide`` with its modes gathered: ((tile of each mode), (rest of each mode))."""
    return joined(*_unzipped(logical_divide(layout, tiler), tiler))


def tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    """``zipped_divide`` with the rests side by side: ((tile of each mode), rest, rest, ...)."""
    tile, rest = _unzipped(logical_divide(layout, tiler), tiler)
    return joined(tile, *_spread(rest))


def flat_divide(layout: Layout, tiler: Tiler) -> Layout:
    """``zipped_divide`` with all side by side: (tile, tile, ..., rest, rest, ...)."""
    tile, rest = _unzipped(logical_divide(layout, tiler), tiler)
    return joined(*_spread(tile), *_spread(rest))


def zipped_product(layout: Layout, tiler: Tiler) -> Layout:
    """``logical_product`` with its modes gathered: ((copy of each mode), (places of each mode))."""
    return joined(*_unzipped(logical_product(layout, tiler), tiler))


def tiled_product(layout: Layout, tiler: Tiler) -> Layout:
    """``zipped_product`` with the places side by side."""
    tile, rest = _unzipped(logical_product(layout, tiler), tiler)
    return joined(tile, *_spread(rest))


def flat_product(layout: Layout, tiler: Tiler) -> Layout:
    """``zipped_product`` with all side by side."""
    tile, rest = _unzipped(logical_product(layout, tiler), tiler)
    return joined(*_spread(tile), *_spread(rest))


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """((A0, P0), (A1, P1), ...) of the ``logical_product`` (A, P): whole blocks, laid out as the tiler says."""
    return joined(*(joined(one, place) for one, place in _paired(block, tiler)))


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """((P0, A0), (P1, A1), ...) of the ``logical_product`` (A, P): blocks whose elements interleave."""
    return joined(*(joined(place, one) for one, place in _paired(block, tiler)))


def _paired(block: Layout, tiler: Layout) -> Iterator[tuple[Layout, Layout]]:
    """The modes of a block beside those of its places, as many of each."""
    rank = max(block.rank, tiler.rank)
    one, places = logical_product(_filled(block, rank), _filled(tiler, rank)).modes
    alike = isinstance(one.shape, int) == isinstance(places.shape, int)
    return zip(one.modes, places.modes, strict=True) if alike else iter([(one, places)])


def _filled(layout: Layout, rank: int) -> Layout:
    return layout if layout.rank == rank else joined(*layout.modes, *[Layout(1, 0)] * (rank - layout.rank))


def _spread(layout: Layout) -> tuple[Layout, ...]:
    """A layout's modes to stand side by side; one alone stays in its brackets, as in CuTe."""
    return layout.modes if layout.rank > 1 else (layout,)


def _as_layout(tiler: Layout | int) -> Layout:
    return Layout(tiler, 1) if isinstance(tiler, int) else tiler


def _tiler_text(tiler: Tiler) -> str:
    return f"<{', '.join(map(_tiler_text, tiler))}>" if isinstance(tiler, tuple) else str(tiler)


def _by_mode(
    name: str, operation: Callable[[Layout, Tiler], Layout], layout: Layout, tiler: tuple[Tiler, ...], rest: bool = True
) -> Layout:
    modes = layout.modes
    if not 0 < len(tiler) <= len(modes):
        raise UsageError(f"{name} of {layout} by mode with {_tiler_text(tiler)}: it has {counted(len(modes), 'mode')}")
    return joined(*map(operation, modes, tiler), *modes[len(tiler) :] if rest else ())


def _unzipped(layout: Layout, tiler: Tiler) -> tuple[Layout, Layout]:
    """Of a division or product by mode the first parts, and the second ones with the modes that no tiler touched."""
    if not isinstance(tiler, tuple):
        tile, rest = layout.modes
        return tile, rest
    pairs = list(map(_unzipped, layout.modes, tiler))
    return joined(*(tile for tile, _ in pairs)), joined(*(rest for _, rest in pairs), *layout.modes[len(tiler) :])


# Proofs


def collision(layout: Layout | Composed) -> tuple[IntTuple, IntTuple] | None:
    """Two coordinates with one offset, or None: then the layout is injective.

    Injective without counting where each stride, in order, is larger than all offsets below it.  Two leaves s:d and
    t:e meet at index e/g of the first and d/g of the second, g = gcd(d, e), if they have them.  Else it counts.
    """
    plain = layout.layout if isinstance(layout, Composed) else layout
    reach, increasing = 0, True
    for step, size in sorted((step, size) for size, step in plain.leaves if size > 1):
        increasing, reach = increasing and step > reach, reach + (size - 1) * step
    return None if increasing else _meeting(plain) or _counted(plain)


def _meeting(layout: Layout) -> tuple[IntTuple, IntTuple] | None:
    numbered, before = [], 1
    for size, step in layout.leaves:
        if size > 1 and step == 0:
            return coordinate(layout.shape, 0), coordinate(layout.shape, before)
        if size > 1:
            numbered.append((size, step, before))
        before *= size
    for (size, step, place), (other_size, other_step, other_place) in combinations(numbered, 2):
        common = gcd(step, other_step)
        index, other = other_step // common, step // common
        if index < size and other < other_size:
            return coordinate(layout.shape, index * place), coordinate(layout.shape, other * other_place)
    return None


def _counted(layout: Layout) -> tuple[IntTuple, IntTuple] | None:
    seen: dict[int, int] = {}
    for number in range(layout.size):
        first = seen.setdefault(layout(number), number)
        if first != number:
            return coordinate(layout.shape, first), coordinate(layout.shape, number)
    return None


def is_injective(layout: Layout | Composed) -> bool:
    """Whether no two coordinates have one offset; ``collision`` shows two that have."""
    return collision(layout) is None


def is_bijection(layout: Layout | Composed) -> bool:
    """Whether each offset of [0, size) is that of one coordinate.

    Of a layout: exactly where the strides in order are 1 and then each the product of the sizes below it, for the least
    offset that the leaves below do not reach must be the next stride.  Of one with a swizzle: where that holds and the
    swizzle ``keeps`` [0, size), else by counting.
    """
    if isinstance(layout, Composed):
        plain, size = layout.layout, layout.layout.size
        if layout.offset == 0 and is_bijection(plain) and layout.swizzle.keeps(size):
            return True
        return {layout(number) for number in range(size)} == set(range(size))
    due = 1
    for step, size in sorted((step, size) for size, step in layout.leaves if size > 1):
        if step != due:
            return False
        due *= size
    return True
