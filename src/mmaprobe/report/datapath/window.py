"""Which bits of which term survive a sum: terms at a few distances from the largest exponent, place by place.

Place 0 is the largest exponent of an aligned sum, and the leading bit of any other sum; place -1 is one binary digit
below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mmaprobe import formats
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Term,
    Zero,
    children,
    walk,
)
from mmaprobe.report.datapath.meaning import ROUNDINGS
from mmaprobe.report.datapath.naming import encoding, kind
from mmaprobe.showing import counted

TRUNCATED = "RZ"
"""The rounding that looks at nothing of what it cuts."""
LEADING = "the leading bit of the sum"
"""Place 0 of a sum that is rounded once."""
MOST_PLACES = 12
"""Places below the last one kept that are shown at most."""
WHOLE = 8
"""Places below the largest exponent at which a term is shown where nothing is ever cut."""


@dataclass(frozen=True)
class TermBits:
    """One term at one distance: ``size`` bits from place ``top`` down, of which the first ``kept`` enter the sum, and
    the next ``seen`` only decide how it is rounded; ``shift`` is how far below place 0 it lies, which is ``origin``."""

    name: str
    shift: int
    top: int
    size: int
    kept: int
    seen: int = 0
    note: str = ""
    origin: str = "the largest exponent"

    @property
    def lost(self) -> int:
        """Bits of which the result knows nothing."""
        return self.size - self.kept - self.seen

    @property
    def words(self) -> str:
        """What becomes of its bits, for who cannot see them."""
        where = f"{counted(self.shift, 'place')} below {self.origin}" if self.shift else f"at {self.origin}"
        parts = [f"{self.kept} of {self.size} bits kept"]
        parts += [f"{self.seen} only round"] if self.seen else []
        parts += [f"{self.lost} lost"] if self.lost else []
        return f"{self.name}, {where}: {', '.join(parts)}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class Window:
    """The places of one sum: what it is, the last place that is kept (None: every one), its terms, its result."""

    title: str
    last: int | None
    terms: tuple[TermBits, ...]
    result: TermBits | None = None

    @property
    def rows(self) -> tuple[TermBits, ...]:
        """The terms and the result below them."""
        return (*self.terms, *([self.result] if self.result is not None else []))

    @property
    def span(self) -> tuple[int, int]:
        """The highest and the lowest place that is shown."""
        kept = min(row.top - row.kept for row in self.rows if row.kept) + 1
        lowest = min(row.top - row.size for row in self.rows) + 1
        return max(row.top for row in self.rows), max(lowest, kept - MOST_PLACES)


def windows(datapath: Datapath) -> list[Window]:
    """The windows of all unlike sums of a datapath, the innermost first; of integers, which lose nothing, none."""
    if not formats.get(datapath.d).is_float:
        return []
    sums = [node for node in walk(datapath.tree) if isinstance(node, (Fused, Exact, Add, Fma))]
    return list(dict.fromkeys(_window(datapath, node) for node in reversed(sums)))


def _window(datapath: Datapath, node: Node) -> Window:
    if isinstance(node, Fused):
        return _aligned(datapath, node)
    to = getattr(node, "to", None)
    precision = _precision(to) if to is not None else None
    terms = [row for of in _unlike(datapath, node) for row in _rounded(datapath, of, to, precision)]
    name = {"fma": "fused multiply-add", "add": "addition", "exact": "exact sum"}[kind(node)]
    title = f"{name}: every bit is added" + (f", then one rounding to {encoding(to)}" if to is not None else "")
    return Window(title, None if precision is None else 1 - precision, tuple(terms))


def _unlike(datapath: Datapath, node: Node) -> list[Node]:
    """One operand of each kind of a node that rounds once."""
    below = [*children(node), *([Products((0,))] if isinstance(node, Fma) else [])]
    return list({(_name(of), _size(datapath, of)): of for of in below if not isinstance(of, Zero)}.values())


def _rounded(datapath: Datapath, of: Node, to: Encode | None, precision: int | None) -> Iterator[TermBits]:
    """A term of a sum that is exact before its one rounding, at its leading bit and further down."""
    size = _size(datapath, of) or 1
    if precision is None or to is None:
        yield TermBits(_name(of), 0, 0, size, size, origin=LEADING)
        return
    for shift in (0, precision - min(size, precision) // 2, precision + 1):
        kept = min(max(precision - shift, 0), size)
        seen = size - kept if to.rounding != TRUNCATED else 0
        yield TermBits(_name(of), shift, -shift, size, kept, seen, origin=LEADING)


def _aligned(datapath: Datapath, node: Fused) -> Window:
    """A sum whose terms are cut before they are added."""
    rows: list[TermBits] = []
    for term in dict.fromkeys(_bare(term) for term in node.terms if not isinstance(term.of, Zero)):
        rows += _cut_rows(datapath, term)
    bits = node.last_place
    result = None
    if node.to is not None and bits is not None:
        kept = min(_precision(node.to), bits + 1)
        seen = bits + 1 - kept if node.to.rounding != TRUNCATED else 0
        result = TermBits(f"result, {encoding(node.to)}", 0, 0, bits + 1, kept, seen)
    return Window(_title(node), None if bits is None else -bits, tuple(dict.fromkeys(rows)), result)


def _title(node: Fused) -> str:
    cuts = dict.fromkeys((term.fraction_bits, term.rounding) for term in node.terms)
    said = [
        "every bit" if bits is None else f"{counted(bits, 'bit')} below the largest exponent, {ROUNDINGS[rounding]}"
        for bits, rounding in cuts
    ]
    return f"aligned sum: {' or '.join(dict.fromkeys(said))}"


def _bare(term: Term) -> Term:
    """The term, of several products the first."""
    of = Products((0,)) if isinstance(term.of, Products) else term.of
    return Term(of, term.fraction_bits, term.rounding, None, term.cutoff, 0, term.sticky_bits, term.shift_limit)


def _cut_rows(datapath: Datapath, term: Term) -> Iterator[TermBits]:
    """A term at the largest exponent, where half of it is cut, and where nothing is left."""
    size, bits = _size(datapath, term.of), term.fraction_bits
    top = int(isinstance(term.of, Products) and datapath.product.to is None)
    if bits is None or size is None:
        every = size or 1
        yield from (TermBits(_name(term.of), shift, top - shift, every, every) for shift in (0, WHOLE))
        return
    gone = top + bits + 1
    for shift in (0, gone - min(size, gone) // 2, gone):
        if term.cutoff is not None and shift > term.cutoff:
            yield TermBits(_name(term.of), term.cutoff + 1, top - term.cutoff - 1, size, 0, 0, "dropped whole")
            return
        kept = min(max(gone - shift, 0), size)
        seen = 0 if term.rounding == TRUNCATED else size - kept
        seen = seen if term.sticky_bits is None else min(seen, term.sticky_bits)
        yield TermBits(_name(term.of), shift, top - shift, size, kept, seen)


def _name(node: Node) -> str:
    if isinstance(node, Accumulator):
        return "c"
    return "a product" if isinstance(node, Products) else "an inner sum"


def _size(datapath: Datapath, node: Node) -> int | None:
    """Bits of a term; None where an inner sum hands on every bit that its terms have."""
    if isinstance(node, Products):
        if datapath.product.to is not None:
            return _precision(datapath.product.to)
        part = datapath.product.split.format if datapath.product.split else None
        return sum(formats.get(part or name).fraction_bits + 1 for name in (datapath.a, datapath.b))
    if isinstance(node, Accumulator):
        to: Encode = datapath.root
        return formats.get(datapath.c or to.format).fraction_bits + 1
    to_or_none = getattr(node, "to", None)
    if to_or_none is not None:
        return _precision(to_or_none)
    return node.last_place + 1 if isinstance(node, Fused) and node.last_place is not None else None


def _precision(to: Encode) -> int:
    return formats.get(to.format).fraction_bits + 1
