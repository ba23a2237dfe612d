"""The schedule of a matrix product: in which order a library adds the K products of each element of D = A B + C.

A schedule cuts the result into regions by rule, and gives each the kernel that computes its elements
(``docs/gemm.md``).  It is a file of its own, TOML, and knows nothing of a shape until it is asked: ``Ranges.of`` and
``Bands.of`` follow the rules for one K, M or N.

What is done to operands before and to sums after is ``epilogue``'s, how workers share K ``stream_k``'s.  Of integers,
whose sums have no order where they wrap, ``integer_sums`` says all, and there are neither kernels nor regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import tomli_w
from numpy.typing import NDArray

from mmaprobe.catalog.toml import parsed, shipped, text_of
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.parameters import checks
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.described import says
from mmaprobe.parameters.epilogue import MOST_NODES, SUM, Compute, Input, Scaling, check_epilogue, check_float
from mmaprobe.parameters.integer_sums import IntegerSums
from mmaprobe.parameters.lookup import parameters_of
from mmaprobe.parameters.stream_k import Shares
from mmaprobe.parameters.table import read_record, write_record

SCHEMA = 1
"""What a schedule file says its schema is."""
LONGEST = 1 << 30
"""Largest K, M or N, and largest length that a rule may say."""
MOST_ACCUMULATORS = 64
"""Accumulators of one element at most: twice the vector registers that a processor has."""
FEWEST_BEFORE = 3
"""Accumulators of which two are added before the last addition of their sum, at least."""
MOST_WORKERS = 1 << 16
"""Workers that share K at most."""
LAYOUTS = ("NN", "NT", "TN", "TT")
"""How A and B are stored: as they are, or (T) with rows and columns exchanged."""
MOST_SCALES = 2
"""Scales of a promotion at most: of A and of B."""
MOST_FILLED = 64
"""Largest number that a range is filled up to a multiple of."""
_AXES = {"m": "M", "n": "N", "k": "K", "batch": "the batch"}
_READ_BY: dict[str, tuple[str, ...]] = {
    "whole": (), "uniform": ("length",), "halve_last": ("length", "half", "unit"),
    "halve_short": ("length", "half", "unit"), "ceil_split": ("parts", "unit"), "residue_first": ("length",),
    "given": ("lengths",), "stream_k": ("tile", "workers", "group", "groups_of"),
}  # fmt: skip
_UNSAID: dict[str, object] = {
    "length": None, "half": "down", "unit": 1, "parts": None, "lengths": (), "tile": (), "workers": None, "group": 1,
    "groups_of": "rows",
}  # fmt: skip
_OPTIONAL = ("half", "unit", "group", "groups_of")


def _up(length: int, unit: int) -> int:
    """Rounded up to a multiple of a unit."""
    return -(-length // unit) * unit


def _check_lengths(what: str, value: object, least: int = 1, most: int = LONGEST) -> None:
    if not isinstance(value, tuple):
        raise UsageError(f"{what} is {brief(value)}; it must be a tuple of whole numbers")
    for each in value:
        checks.whole(what, each, least, most)


@dataclass(frozen=True)
class Ranges:
    """How K is cut into ranges, each added by itself.

    ``whole``: not at all.  ``uniform``: lengths of ``length``, the last one what is left.  ``residue_first``: the same
    with K mod ``length`` in front.  ``halve_last``: ``length`` while at least twice as much is left; of what is left
    then, where it is more than ``length``, half, rounded by ``half``; then the rest.  ``halve_short``: as ``uniform``,
    but where K is above ``length`` and below twice as much the length is half of K, rounded by it.  ``ceil_split``:
    ``parts`` ranges of ceil(K / parts) rounded up to a multiple of ``unit``, the last one what is left; those of which
    nothing is left are none.  ``given``: these ``lengths``, for the K that is their sum alone.  ``stream_k``: where a
    worker's share of all products of the result ends, which is another place in each tile (``stream_k.Shares``).

    ``half``: to a whole number ``down`` or ``up`` and then up to a multiple of ``unit``; or to the multiple ``below``,
    which is one unit at least.
    """

    cut: Literal[
        "whole", "uniform", "halve_last", "halve_short", "ceil_split", "residue_first", "given", "stream_k"
    ] = field(default="whole", metadata=says("rule by which K is cut"))
    length: int | None = field(default=None, metadata=says("length of a range"))
    unit: int = field(default=1, metadata=says("what a length is rounded up to a multiple of"))
    parts: int | None = field(default=None, metadata=says("number of ranges"))
    lengths: tuple[int, ...] = field(default=(), metadata=says("the lengths one by one"))
    half: Literal["down", "up", "below"] = field(default="down", metadata=says("how half of K is rounded"))
    tile: tuple[int, ...] = field(default=(), metadata=says("M and N of a tile, and K of a unit of work"))
    workers: int | None = field(default=None, metadata=says("workers that share all products"))
    group: int = field(default=1, metadata=says("rows, or columns, of tiles that are visited together"))
    groups_of: Literal["rows", "columns"] = field(default="rows", metadata=says("what tiles are grouped by"))

    def __post_init__(self) -> None:
        checks.words("", self)
        checks.whole("unit", self.unit, 1, LONGEST)
        checks.whole("group", self.group, 1, LONGEST)
        checks.whole("workers", self.workers, 1, MOST_WORKERS, optional=True)
        read = _READ_BY[self.cut]
        for name in ("length", "parts"):
            checks.whole(name, getattr(self, name), 1, LONGEST, optional=True)
        for name, unsaid in _UNSAID.items():
            said = getattr(self, name) != unsaid
            if said and name not in read:
                raise UsageError(
                    f"{name} is {brief(getattr(self, name))}; {self.cut} takes {', '.join(read) or 'none'}"
                )
            if not said and name in read and name not in _OPTIONAL:
                raise UsageError(f"{name} is missing; {self.cut} takes {', '.join(read)}")
        _check_lengths("lengths", self.lengths)
        _check_lengths("tile", self.tile)
        if self.cut == "stream_k" and len(self.tile) != 3:
            raise UsageError(f"tile is {brief(self.tile)}; it must be three lengths: M and N of a tile, K of a unit")

    def of(self, k: int) -> tuple[range, ...]:
        """The ranges of this K in order, every k once; UsageError where ``given`` lengths are those of another K, and
        of ``stream_k``, which ``Schedule.areas`` asks for a shape."""
        ends = accumulate(self.sizes(k), initial=0)
        return tuple(range(start, stop) for start, stop in pairwise(ends))

    def sizes(self, k: int) -> tuple[int, ...]:
        """The lengths of these ranges."""
        if self.cut == "stream_k":
            raise UsageError("stream_k cuts K by tile; ask for the areas of a shape")
        found = tuple(self._lengths(k))
        if sum(found) != k:
            end = sum(found)
            more = f"k = {end} is left out" if end < k else f"k = {k} and more are used, which are not there"
            raise UsageError(f"K is {k}, the lengths given add up to {end}: {more}")
        return found

    def areas(self, m: int, n: int, k: int) -> Iterator[tuple[Ranges, NDArray[np.intp], NDArray[np.intp]]]:
        """Of ``stream_k`` the ranges of this K, and the rows and columns of all elements of M x N that have them."""
        tile_m, tile_n, tile_k = self.tile
        shares = Shares((tile_m, tile_n, tile_k), self.workers or 1, self.group, self.groups_of == "columns", (m, n, k))
        down, across = np.arange(m) // tile_m, np.arange(n) // tile_n
        for lengths, rows, columns in shares.areas():
            ranges = Ranges("given", lengths=lengths) if len(lengths) > 1 else Ranges()
            yield ranges, np.flatnonzero(np.isin(down, rows)), np.flatnonzero(np.isin(across, columns))

    def _lengths(self, k: int) -> Iterator[int]:
        if self.cut == "given":
            yield from self.lengths
            return
        length = self.length or _up(-(-k // (self.parts or 1)), self.unit)
        if self.cut == "halve_short" and length < k < 2 * length:
            length = self._half(k)
        if self.cut == "residue_first" and k % length:
            yield k % length
            k -= k % length
        while k:
            halved = self.cut == "halve_last" and length < k < 2 * length
            taken = min(self._half(k) if halved else length, k)
            yield taken
            k -= taken

    def _half(self, k: int) -> int:
        if self.half == "below":
            return max(k // 2 - k // 2 % self.unit, self.unit)
        return _up((k + (self.half == "up")) // 2, self.unit)


@dataclass(frozen=True)
class Join:
    """How the partial sums P0, P1, ... of the ranges become one element.

    Each is rounded to ``format``, and so is every sum of them.  ``chain``: ((s + P0) + P1) + ...; ``pairwise``:
    s + T, T the sum of neighbours, (P0 + P1) + (P2 + P3), one without a neighbour as it is; ``last_first``: as a chain,
    but with the last of them in front.  s is ``zero``, +0, or
    ``c``, the element of C; with ``first`` there is none, the sum begins with P0 or is T.  Where C is not s it is added
    last.
    """

    format: str = field(metadata=says("format of partial sums"))
    order: Literal["chain", "pairwise", "last_first"] = field(
        default="chain", metadata=says("order in which ranges are added")
    )
    start: Literal["zero", "first", "c"] = field(default="zero", metadata=says("what the sum of ranges starts from"))

    def __post_init__(self) -> None:
        checks.words("", self)
        check_float("format", self.format)

    def chained(self, ranges: tuple[range, ...]) -> tuple[range, ...]:
        """The ranges in the order in which their partial sums are added, or paired."""
        return ranges[-1:] + ranges[:-1] if self.order == "last_first" else ranges


@dataclass(frozen=True)
class Accumulators:
    """The accumulators that the steps of a range go to, and how they become its partial sum.

    Step s of the range goes to accumulator floor(s / ``run``) mod ``count``; with a ``block``, which is a multiple of
    ``count`` times ``run``, steps beyond the last whole block of the range, and the ``late`` last ones of that block,
    all go to accumulator 0, or one by one onto the sum of the accumulators, where ``rest`` is ``after``, or is
    ``before``, onto the first term of the last addition of that sum.  An accumulator that no step goes to is +0.  They
    start from +0, or (``product``) with the rounded product of their first step.  They are joined by rounded additions:
    ``chain``, ((x0 + x1) + x2) + x3; ``pairwise``, neighbours, (x0 + x1) + (x2 + x3); ``halves``, the upper half onto
    the lower, (x0 + x2) + (x1 + x3).
    """

    format: str = field(metadata=says("format of an accumulator"))
    count: int = field(default=1, metadata=says("accumulators of a range"))
    run: int = field(default=1, metadata=says("steps in a row that go to one accumulator"))
    block: int = field(default=1, metadata=says("steps of which a whole number is dealt out"))
    start: Literal["zero", "product"] = field(default="zero", metadata=says("what an accumulator starts from"))
    join: Literal["chain", "pairwise", "halves"] = field(default="chain", metadata=says("how accumulators are added"))
    rest: Literal["first", "before", "after"] = field(default="first", metadata=says("what steps beyond are added to"))
    late: int = field(default=0, metadata=says("last steps of the last whole block that are as those beyond"))

    def __post_init__(self) -> None:
        checks.words("", self)
        check_float("format", self.format)
        checks.whole("count", self.count, 1, MOST_ACCUMULATORS)
        checks.whole("run", self.run, 1, LONGEST)
        checks.whole("block", self.block, 1, LONGEST)
        if self.block != 1 and self.block % (self.count * self.run):
            raise UsageError(f"block is {self.block}; it must be a multiple of count * run = {self.count * self.run}")
        checks.whole("late", self.late, 0, LONGEST)
        if self.rest != "first" and self.block == 1:
            raise UsageError(f"rest is {self.rest}; without a block no steps are left")
        if self.rest == "before" and self.count < FEWEST_BEFORE:
            raise UsageError(f"rest is before; of {self.count} accumulators that is first, or there is no addition")
        if self.late and self.late >= self.block:
            raise UsageError(f"late is {self.late}; it must be less than block, {self.block}")
        if self.join == "halves" and self.count & (self.count - 1):
            raise UsageError(f"count is {self.count}; accumulators that are joined by halves must be a power of two")

    def steps(self, number: int, count: int) -> tuple[Dealt, ...]:
        """Of a range of ``count`` steps those that go to accumulator ``number``, in order."""
        whole, group = self.whole(count), self.count * self.run
        own = whole // group * self.run + min(max(whole % group - number * self.run, 0), self.run)
        parts = [Dealt(number * self.run, self.run, group, 0, own)]
        if number == 0 and self.rest == "first":
            parts.append(Dealt(whole, 1, 1, 0, count - whole))
        return tuple(part for part in parts if part.count)

    def after(self, count: int) -> Dealt:
        """Of a range of ``count`` steps those that go to no accumulator, but onto a sum of them; there may be none."""
        whole = count if self.rest == "first" else self.whole(count)
        return Dealt(whole, 1, 1, 0, count - whole)

    def whole(self, count: int) -> int:
        """Of a range of ``count`` steps those of whole blocks, without the late ones."""
        return max(count - count % self.block - self.late, 0)

    def terms(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The accumulators that are in the first term of the last addition of their sum, and those in the second one,
        in the order in which they are added or paired; of one accumulator there is no second term."""
        every, last = self.order(), self.count - 1
        first = last if self.join == "chain" else 1 << last.bit_length() >> 1
        return every[: max(first, 1)], every[max(first, 1) :]

    def order(self) -> tuple[int, ...]:
        """The accumulators in an order in which those that are added to each other lie side by side."""
        if self.join != "halves":
            return tuple(range(self.count))
        found = [0]
        while len(found) < self.count:
            found = [2 * number + half for half in (0, 1) for number in found]
        return tuple(found)

    def dealt(self, count: int) -> tuple[NDArray[np.intp], ...]:
        """Of a range of ``count`` steps those of each accumulator, in order: every step that is not ``after``, once."""
        none = np.zeros(0, np.intp)
        return tuple(
            np.concatenate([none, *(part.places() for part in self.steps(number, count))])
            for number in range(self.count)
        )


@dataclass(frozen=True)
class Dealt:
    """Steps ``first`` + floor(t / ``run``) ``stride`` + t mod ``run``, of ``count`` t from ``skip`` on."""

    first: int
    run: int
    stride: int
    skip: int
    count: int

    def cut(self, at: int) -> tuple[Dealt, Dealt]:
        """The first ``at`` of them, and the others."""
        return replace(self, count=at), replace(self, skip=self.skip + at, count=self.count - at)

    def of(self, number: int) -> int:
        """Number so many of them."""
        t = self.skip + number
        return self.first + t // self.run * self.stride + t % self.run

    def places(self) -> NDArray[np.intp]:
        """All of them, in order."""
        t = np.arange(self.skip, self.skip + self.count)
        return self.first + t // self.run * self.stride + t % self.run

    def last(self) -> int:
        """The last one of them."""
        return self.of(self.count - 1)


@dataclass(frozen=True)
class GemmStep:
    """What is added to an accumulator at a time.

    ``fma``: one product, exact, and one rounding of the sum.  ``multiply_add``: one product, rounded, and a rounded
    addition.  ``primitive``: the ``primitive`` of that name of an ``architecture``'s parameters, with the accumulator
    as its C; its lane i takes product ``order[i]`` of the step, i itself where nothing is said.

    ``beyond``: what adds the products beyond the last whole block of a range, and its late ones, where that is another
    one than ``by``: compilers turn the loop over blocks, and the one over what is left, into different code.

    ``filled``: a range goes on to a multiple of so many products with those of +0 and +0: a sum of -0 becomes +0 by
    them, and no other one is changed.
    """

    by: Literal["fma", "multiply_add", "primitive"] = field(default="fma", metadata=says("what adds products"))
    architecture: str = field(default="", metadata=says("architecture whose parameters know the primitive"))
    primitive: str = field(default="", metadata=says("name of the primitive"))
    order: tuple[int, ...] = field(default=(), metadata=says("product of the step that each lane takes"))
    beyond: Literal["alike", "fma", "multiply_add"] = field(
        default="alike", metadata=says("what adds products beyond the last whole block")
    )
    filled: int = field(default=1, metadata=says("products to a multiple of which a range is filled up by zeros"))

    def __post_init__(self) -> None:
        checks.words("", self)
        checks.whole("filled", self.filled, 1, MOST_FILLED)
        for name in ("architecture", "primitive"):
            value = getattr(self, name)
            if not isinstance(value, str) or bool(value) != (self.by == "primitive"):
                needed = "it must be a name" if self.by == "primitive" else f"{self.by} takes none"
                raise UsageError(f"{name} is {brief(value)}; {needed}")
        if self.beyond == self.by or (self.beyond != "alike" and self.by == "primitive"):
            takes = "alike alone" if self.by == "primitive" else "alike or the other one"
            raise UsageError(f"beyond is {self.beyond}; {self.by} takes {takes}")
        _check_lengths("order", self.order, least=0)
        if self.order and (self.by != "primitive" or sorted(self.order) != list(range(len(self.order)))):
            raise UsageError(f"order is {brief(self.order)}; it must be a permutation of a primitive's lanes")

    @property
    def width(self) -> int:
        """Products of a step, as the architecture that it names has them."""
        return self.datapath().k if self.by == "primitive" else 1

    def datapath(self, architecture: str | None = None) -> Datapath:
        """The datapath of the primitive, by the parameters of ``architecture`` where it is given (a name or the path of
        a parameter file).  UsageError naming the primitive where there is none, or none that adds to an accumulator."""
        home = architecture or self.architecture
        entries = parameters_of(home).entries
        if self.primitive not in entries:
            raise UsageError(f"{home} knows no datapath of {brief(self.primitive)}{near(self.primitive, entries)}")
        found = entries[self.primitive].datapath
        if found.c is None or found.c != found.d or found.scale is not None or found.random is not None:
            raise UsageError(f"{self.primitive} of {home} is no step: it must take C in the format of D, no scales")
        if self.order and len(self.order) != found.k:
            raise UsageError(f"order is of {len(self.order)} lanes; {self.primitive} of {home} has {found.k}")
        return found


@dataclass(frozen=True)
class Promotion:
    """After ``every`` steps of an accumulator, and at the end of a range, it is added to a second one of this format,
    which starts from +0, and starts again; what is joined is the second.

    With ``scales`` one fma adds it times a scale: that input, or the product of both, rounded to this format.  Inputs
    like ``a`` or ``b`` have items for groups of K, in one of which the products since the last promotion lie.
    """

    every: int = field(metadata=says("steps after which an accumulator is promoted"))
    format: str = field(metadata=says("format of the second accumulator"))
    scales: tuple[str, ...] = field(default=(), metadata=says("inputs that an accumulator is multiplied by"))

    def __post_init__(self) -> None:
        checks.whole("every", self.every, 1, LONGEST)
        check_float("format", self.format)
        if not isinstance(self.scales, tuple) or len(self.scales) > MOST_SCALES:
            raise UsageError(f"scales is {brief(self.scales)}; they must be at most {MOST_SCALES} names of inputs")


@dataclass(frozen=True)
class GemmKernel:
    """How an element of a region is computed from its row of A and its column of B.

    ``tail``: of a primitive's last step of a range, lanes that the range does not have are products of +0 and +0
    (``zeros``; what a masked load gives too), or the products left are added one by one by fma (``scalar``), in place
    of the step, to the accumulator that it goes to.
    """

    name: str = field(metadata=says("name of the kernel"))
    ranges: Ranges = field(metadata=says("ranges of K"))
    join: Join = field(metadata=says("sum of the ranges"))
    accumulators: Accumulators = field(metadata=says("accumulators of a range"))
    step: GemmStep = field(default=GemmStep(), metadata=says("step"))
    promotion: Promotion | None = field(default=None, metadata=says("promotion"))
    tail: Literal["zeros", "scalar"] = field(default="zeros", metadata=says("lanes beyond the last whole step"))

    def __post_init__(self) -> None:
        checks.words("", self)
        if self.step.by == "primitive" and self.accumulators.start != "zero":
            raise UsageError(f"start of accumulators is {self.accumulators.start}; a primitive starts from zero")
        if self.step.by != "primitive" and self.tail != "zeros":
            raise UsageError(f"tail is {self.tail}; a step of one product has none")
        if self.step.beyond != "alike" and self.accumulators.block == 1:
            raise UsageError(f"beyond is {self.step.beyond}; without a block of accumulators no products are beyond")
        if self.promotion is not None and self.accumulators.rest != "first":
            rest = self.accumulators.rest
            raise UsageError(f"rest of accumulators is {rest}; what is promoted has no steps that go to none of them")
        alone = self.step.by != "primitive" and self.accumulators.count == 1 and self.promotion is None
        if self.step.filled > 1 and not alone:
            raise UsageError(
                f"filled is {self.step.filled}; it must be 1 of all but ranges of one accumulator, of single products, "
                "without promotion"
            )


@dataclass(frozen=True)
class Bands:
    """Some of the rows, or of the columns, by a rule that knows their number alone.

    The axis is cut into ``blocks`` as K is into ranges, and ``every`` one or the ``first`` alone into pieces: ``lead``,
    once each, then of every length in ``pieces``, in the order written, as many as fit.  Chosen are, of the pieces
    whose number in (lead, pieces) is in ``take`` (all, where it is empty), the places ``places`` (all).  Without pieces
    a block is chosen whole.  Of a block shorter than ``least`` or longer than ``most`` nothing is.
    """

    blocks: Ranges = field(default=Ranges(), metadata=says("how the axis is cut into blocks"))
    of_blocks: Literal["every", "first"] = field(default="every", metadata=says("blocks in which something is chosen"))
    lead: tuple[int, ...] = field(default=(), metadata=says("lengths that are cut off a block once"))
    pieces: tuple[int, ...] = field(default=(), metadata=says("lengths that are cut off while they fit"))
    take: tuple[int, ...] = field(default=(), metadata=says("numbers of the lengths chosen"))
    places: tuple[int, ...] = field(default=(), metadata=says("places of a piece that are chosen"))
    least: int = field(default=0, metadata=says("shortest block of which something is chosen"))
    most: int = field(default=LONGEST, metadata=says("longest block of which something is chosen"))

    def __post_init__(self) -> None:
        checks.words("", self)
        if self.blocks.cut == "stream_k":
            raise UsageError("blocks is stream_k; workers share K alone")
        _check_lengths("lead", self.lead)
        _check_lengths("pieces", self.pieces)
        checks.whole("least", self.least, 0, LONGEST)
        checks.whole("most", self.most, self.least, LONGEST)
        lengths = self.lead + self.pieces
        _check_lengths("take", self.take, 0, len(lengths) - 1)
        _check_lengths("places", self.places, 0, min([lengths[i] for i in self.take] or lengths, default=0) - 1)

    def of(self, length: int) -> NDArray[np.bool_]:
        """Which places of an axis of this length are chosen."""
        chosen = np.zeros(length, bool)
        for block in self.blocks.of(length)[: 1 if self.of_blocks == "first" else None]:
            if not self.least <= len(block) <= self.most:
                continue
            if not self.lead + self.pieces:
                chosen[block.start : block.stop] = True
            for number, start, size in self._pieces(block):
                if not self.take or number in self.take:
                    chosen[start : start + size][list(self.places) or slice(None)] = True
        return chosen

    def _pieces(self, block: range) -> Iterator[tuple[int, int, int]]:
        """Number of the length, start and size of every piece of a block."""
        start = block.start
        for number, size in enumerate(self.lead + self.pieces):
            fit = (block.stop - start) // size
            for _ in range(min(fit, 1) if number < len(self.lead) else fit):
                yield number, start, size
                start += size


@dataclass(frozen=True)
class Region:
    """The elements in these rows and these columns, and the kernel that computes them; or (``rest``) all that no other
    region has."""

    kernel: str = field(metadata=says("name of the kernel"))
    rows: Bands = field(default=Bands(), metadata=says("rows"))
    columns: Bands = field(default=Bands(), metadata=says("columns"))
    rest: bool = field(default=False, metadata=says("all that no other region has"))

    def __post_init__(self) -> None:
        checks.flag("rest", self.rest)
        if self.rest and (self.rows, self.columns) != (Bands(), Bands()):
            raise UsageError("rest is true; such a region has no rows and columns of its own")


@dataclass(frozen=True)
class Scope:
    """What a schedule holds for.  The numbers are checked where a shape is asked for; the words are for people."""

    library: str = field(metadata=says("library"))
    version: str = field(default="", metadata=says("its version"))
    call: str = field(default="", metadata=says("the call"))
    threads: int = field(default=1, metadata=says("threads"))
    environment: tuple[str, ...] = field(default=(), metadata=says("environment, as NAME=VALUE"))
    processor: str = field(default="", metadata=says("processor"))
    source: str = field(default="", metadata=says("how it is known"))
    least_m: int = field(default=1, metadata=says("fewest rows"))
    most_m: int = field(default=LONGEST, metadata=says("most rows"))
    least_n: int = field(default=1, metadata=says("fewest columns"))
    most_n: int = field(default=LONGEST, metadata=says("most columns"))
    least_k: int = field(default=0, metadata=says("smallest K"))
    most_k: int = field(default=LONGEST, metadata=says("largest K"))
    least_batch: int = field(default=1, metadata=says("fewest products of a call"))
    most_batch: int = field(default=LONGEST, metadata=says("most products of a call"))
    layouts: tuple[str, ...] = field(default=(), metadata=says("how A and B are stored"))

    def __post_init__(self) -> None:
        if not isinstance(self.layouts, tuple) or not set(self.layouts) <= set(LAYOUTS):
            raise UsageError(f"layouts is {brief(self.layouts)}; they must be of {', '.join(LAYOUTS)}")
        checks.whole("threads", self.threads, 1, LONGEST)
        for axis in _AXES:
            checks.whole(f"least_{axis}", getattr(self, f"least_{axis}"), 0, LONGEST)
            checks.whole(f"most_{axis}", getattr(self, f"most_{axis}"), getattr(self, f"least_{axis}"), LONGEST)

    def check(self, m: int, n: int, k: int, batch: int = 1, layout: str = "NN") -> None:
        """UsageError naming what is outside."""
        for (axis, name), value in zip(_AXES.items(), (m, n, k, batch), strict=True):
            least, most = getattr(self, f"least_{axis}"), getattr(self, f"most_{axis}")
            if not least <= value <= most:
                raise UsageError(f"{name} is {value}; the schedule holds for {name} from {least} to {most}")
        if self.layouts and layout not in self.layouts:
            raise UsageError(f"the layout is {layout}; the schedule holds for {', '.join(self.layouts)}")


@dataclass(frozen=True)
class Schedule:
    """The order of every sum of D = A B + C; see ``docs/gemm.md``."""

    a: str = field(metadata=says("format of A"))
    b: str = field(metadata=says("format of B"))
    d: str = field(metadata=says("format of D"))
    scope: Scope = field(metadata=says("what it holds for"))
    kernels: tuple[GemmKernel, ...] = field(default=(), metadata=says("kernels"))
    regions: tuple[Region, ...] = field(default=(), metadata=says("regions of the result"))
    c: str | None = field(default=None, metadata=says("format of C"))
    inputs: tuple[Input, ...] = field(default=(), metadata=says("what a call hands over beside A, B and C"))
    scalings: tuple[Scaling, ...] = field(default=(), metadata=says("operands that are scaled before"))
    epilogue: tuple[Compute, ...] = field(default=(), metadata=says("what becomes of the sum"))
    amax: tuple[str, ...] = field(default=(), metadata=says("values whose largest size is handed back"))
    integers: IntegerSums | None = field(default=None, metadata=says("sums of integers"))

    def __post_init__(self) -> None:
        if self.integers is not None:
            self._check_integers(self.integers)
            return
        for name in ("kernels", "regions"):
            if getattr(self, name) == ():
                raise UsageError(f"{name}: missing")
        for name in ("a", "b", "d", "c"):
            if name != "c" or self.c is not None:
                check_float(name, getattr(self, name), narrow=name in "ab")
        checks.items("kernels", self.kernels, GemmKernel)
        checks.items("regions", self.regions, Region)
        names = [kernel.name for kernel in self.kernels]
        for kernel in self.kernels:
            if names.count(kernel.name) > 1:
                raise UsageError(f"kernel {brief(kernel.name)} is there twice")
            if kernel.join.start == "c" and self.c is None:
                raise UsageError(f"kernel {kernel.name} starts from c; the schedule has no C")
        for index, region in enumerate(self.regions):
            if region.kernel not in names:
                raise UsageError(f"regions.{index}: no kernel {brief(region.kernel)}{near(region.kernel, names)}")
        if sum(region.rest for region in self.regions) > 1:
            raise UsageError("two regions are the rest; one may be")
        self._check_around()

    def _check_integers(self, integers: IntegerSums) -> None:
        """Sums of integers, and that nothing is there that they have not."""
        for name in ("kernels", "regions", "scalings", "epilogue", "amax"):
            if getattr(self, name) != ():
                raise UsageError(f"{name}: sums of integers have none; what they have is in integers")
        if self.c not in (None, integers.format):
            raise UsageError(
                f"c is {brief(self.c)}; of integers C is added to the sum, and is {integers.format} as it is"
            )
        if self.inputs != ():
            checks.items("inputs", self.inputs, Input)
        names = {each.name: each for each in self.inputs}
        if len(names) != len(self.inputs):
            raise UsageError("inputs: a name is there twice")
        integers.check(self.a, self.b, self.d, names)
        unused = [name for name in names if name not in integers.names()]
        if unused:
            raise UsageError(f"input {unused[0]} is used nowhere")

    def _check_around(self) -> None:
        """Inputs, scalings and the epilogue."""
        for name, kind in (("inputs", Input), ("scalings", Scaling), ("epilogue", Compute)):
            found = getattr(self, name)
            if found != ():
                checks.items(name, found, kind)
            if len(found) > MOST_NODES:
                raise UsageError(f"{name}: {len(found)} of them; there may be {MOST_NODES}")
        names = [each.name for each in self.inputs]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise UsageError(f"input {twice[0]} is there twice")
        if len({scaling.operand for scaling in self.scalings}) != len(self.scalings):
            raise UsageError("scalings: an operand is scaled once")
        for scaling in self.scalings:
            scaling.check(dict(zip(names, self.inputs, strict=True)))
            if scaling.operand == "c" and self.c != self.inputs[names.index(scaling.by)].format:
                raise UsageError(f"scaling: C is {self.c or 'not there'}; {scaling.by} must be of its format")
        check_epilogue(self.epilogue, self.inputs, self.c is not None, self.amax)
        scales = {name for kernel in self.kernels if kernel.promotion for name in kernel.promotion.scales}
        for name in sorted(scales - set(names)):
            raise UsageError(f"promotion: no input {brief(name)}{near(name, names)}")
        used = {name for node in self.epilogue for name in node.of} | {scaling.by for scaling in self.scalings} | scales
        unused = [name for name in names if name not in used]
        if unused:
            raise UsageError(f"input {unused[0]} is used nowhere")
        sums = {kernel.join.format for kernel in self.kernels}
        if SUM in self.amax and len(sums) > 1:
            raise UsageError(f"amax: the sums of kernels are of {', '.join(sorted(sums))}; they must be of one format")
        if self.epilogue and self.epilogue[-1].format != self.d:
            raise UsageError(f"the last value of the epilogue is {self.epilogue[-1].format}; D is {self.d}")

    def areas(self, m: int, n: int, k: int) -> Iterator[tuple[GemmKernel, NDArray[np.intp], NDArray[np.intp]]]:
        """The kernel, rows and columns of areas that hold each element of an M x N result of K products once.

        What workers share is cut here: the kernel of such an area has the ranges that K has in its tiles.
        Sums of integers have no areas.  UsageError naming the first element that no region has, or two.
        """
        if self.integers is not None:
            return
        for kernel, rows, columns in self._regions(m, n):
            if kernel.ranges.cut != "stream_k":
                yield kernel, rows, columns
                continue
            for ranges, down, across in kernel.ranges.areas(m, n, k):
                here = np.intersect1d(rows, down), np.intersect1d(columns, across)
                if here[0].size and here[1].size:
                    yield replace(kernel, ranges=ranges), *here

    def _regions(self, m: int, n: int) -> Iterator[tuple[GemmKernel, NDArray[np.intp], NDArray[np.intp]]]:
        """The kernel, rows and columns of parts of regions that hold each element once."""
        kernels = {kernel.name: kernel for kernel in self.kernels}
        own = [region for region in self.regions if not region.rest]
        rest = next((region for region in self.regions if region.rest), None)
        for in_rows, rows in _alike([region.rows.of(m) for region in own], m):
            for in_columns, columns in _alike([region.columns.of(n) for region in own], n):
                there = np.flatnonzero(in_rows & in_columns)
                if len(there) > 1 or (rest is None and not len(there)):
                    what = f"lies in regions {there[0]} and {there[1]}" if len(there) else "lies in no region"
                    raise UsageError(f"element ({rows[0]}, {columns[0]}) of {m} x {n} {what}")
                region = own[there[0]] if len(there) else rest
                assert region is not None
                yield kernels[region.kernel], rows, columns


def _alike(chosen: list[NDArray[np.bool_]], length: int) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """The places of an axis that the same regions have: which regions, and the places."""
    table = np.array(chosen, bool).reshape(len(chosen), length).T
    kinds, first, number = np.unique(table, axis=0, return_index=True, return_inverse=True)
    for kind in np.argsort(first):
        yield kinds[kind], np.flatnonzero(number.ravel() == kind)


def read_schedule(path: str | Path) -> Schedule:
    """The schedule in the file at ``path``; UsageError naming the file and the field for anything wrong or unknown."""
    return from_text(text_of(Path(path)), str(path))


def from_text(text: str, name: str) -> Schedule:
    """The schedule in ``text``; ``name`` is how errors call it."""
    table = parsed(name, text, SCHEMA)
    made: Schedule = read_record(Schedule, {key: value for key, value in table.items() if key != "schema"}, name)
    return made


def to_text(schedule: Schedule) -> str:
    """The schedule's canonical TOML: the same record gives the same bytes."""
    return tomli_w.dumps({"schema": SCHEMA} | write_record(schedule), indent=2)


def schedule_named(name: str | Path) -> Schedule:
    """The schedule that ships under a name, or that of the file of this path, which ends in ``.toml``."""
    if str(name).endswith(".toml"):
        return read_schedule(name)
    known = known_schedules()
    if name not in known:
        listed = near(str(name), known) or f"; those that ship: {', '.join(known)}"
        raise UsageError(f"no schedule {brief(str(name))} ships, and a file ends in .toml{listed}")
    return from_text((_SHIPPED / f"{name}.toml").read_text("utf-8"), f"{name}.toml")


def known_schedules() -> tuple[str, ...]:
    """The schedules that ship, by name."""
    return tuple(file.removesuffix(".toml") for file in shipped("mmaprobe.parameters", "data", "schedules"))


_SHIPPED = resources.files("mmaprobe.parameters") / "data" / "schedules"
