"""The datapath record: what one primitive computes, as data.

A datapath applies an expression tree to the lanes of a step, step after step
along K.  ``docs/datapath.md`` is the normative text; three interpreters (the
NumPy stages, the native engine and the test oracle) follow it to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mmaprobe import formats
from mmaprobe.errors import UsageError

Subnormals = Literal["keep", "zero", "signed_zero"]
SUBNORMALS: tuple[Subnormals, ...] = ("keep", "zero", "signed_zero")
SIGNS = ("keep", "flip", "clear", "set")


def _one_of(what: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{what} is {value!r}; it must be one of {', '.join(map(str, choices))}")


@dataclass(frozen=True)
class Operand:
    """How an operand is read: subnormals kept or flushed, container bits ANDed with ``mask`` first.

    ``sign`` is what happens to the sign bit before the operand is decoded:
    ``flip`` is a negation modifier, ``clear`` an absolute value, ``set`` both.
    """

    subnormals: Subnormals = "keep"
    mask: int | None = None
    sign: Literal["keep", "flip", "clear", "set"] = "keep"

    def __post_init__(self) -> None:
        _one_of("operand subnormals", self.subnormals, SUBNORMALS)
        _one_of("operand sign", self.sign, SIGNS)

    def code_bits(self, fmt: formats.Format) -> tuple[int, int]:
        """(mask, flip): what is decoded is ``(code & mask) ^ flip``; a mask of -1 keeps every bit."""
        mask = -1 if self.mask is None else self.mask
        if self.sign in ("clear", "set"):
            mask &= ~fmt.sign_mask
        return mask, fmt.sign_mask if self.sign in ("flip", "set") else 0


@dataclass(frozen=True)
class Encode:
    """Round an exact value to a format: an optional first cut, the rounding, overflow, flush, zeros.

    ``first`` = (bits, rounding): before the rounding proper, cut to that many
    fraction bits below the value's own exponent (not below the format's lowest
    normal exponent).  ``tininess`` says when a result counts as subnormal for
    the flush: before or after rounding (with unbounded exponent), or as ``encoded``.  ``zero`` is
    the sign of an exact zero sum: ``positive`` or ``ieee``.  ``underflow`` is the
    sign of a zero that a nonzero value was rounded or flushed to: ``signed``
    or ``positive``.
    """

    format: str = "f32"
    rounding: str = "RNE"
    overflow: Literal["ieee", "infinity", "largest", "wrap"] = "ieee"
    subnormals: Subnormals = "keep"
    tininess: Literal["before", "after", "encoded"] = "after"
    zero: Literal["ieee", "positive"] = "ieee"
    underflow: Literal["signed", "positive"] = "signed"
    first: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        formats.get(self.format)
        _one_of("rounding", self.rounding, formats.ROUNDINGS)
        _one_of("overflow", self.overflow, ("ieee", "infinity", "largest", "wrap"))
        _one_of("result subnormals", self.subnormals, SUBNORMALS)
        _one_of("tininess", self.tininess, ("before", "after", "encoded"))
        _one_of("zero sign", self.zero, ("ieee", "positive"))
        _one_of("underflow sign", self.underflow, ("signed", "positive"))
        if self.first is not None:
            _one_of("first rounding", self.first[1], formats.ROUNDINGS)


@dataclass(frozen=True)
class Accumulator:
    """The leaf c: operand C in the first step, the previous step's result after it."""


@dataclass(frozen=True)
class Zero:
    """The leaf +0."""


@dataclass(frozen=True)
class Products:
    """The products of these lanes of the step, each a term of its own."""

    lanes: tuple[int, ...]


@dataclass(frozen=True)
class Fma:
    """A chain: acc = round(acc + p_k) over ``lanes`` in the order written, each product exact."""

    acc: Node
    lanes: tuple[int, ...]
    to: Encode


@dataclass(frozen=True)
class Add:
    """One rounded binary addition x + y (x is the operand written first, for NaN priority)."""

    x: Node
    y: Node
    to: Encode


@dataclass(frozen=True)
class Term:
    """A term of a fused sum with rules of its own; None inherits the node's rule.

    ``cutoff``: the term is dropped when its exponent is below the largest
    exponent minus ``cutoff``.
    """

    of: Node
    fraction_bits: int | None = None
    rounding: str | None = None
    zero_exponent: int | None = None
    cutoff: int | None = None


@dataclass(frozen=True)
class Fused:
    """Align terms to the largest exponent, cut each at ``fraction_bits`` below it, add exactly.

    ``fraction_bits`` None keeps every bit.  ``zero_exponent`` is the exponent
    that a zero term shows to the maximum; None leaves zeros out of it.
    ``to`` None hands the exact sum on (with the largest exponent as its label).
    """

    terms: tuple[Term, ...]
    fraction_bits: int | None
    rounding: str = "RZ"
    zero_exponent: int | None = None
    to: Encode | None = None

    def __post_init__(self) -> None:
        _one_of("alignment rounding", self.rounding, formats.ROUNDINGS)


@dataclass(frozen=True)
class Exact:
    """The infinitely precise sum of the terms; one rounding where ``to`` is given.

    ``scaled``: the sum is multiplied by the scale block's two scales and its label is
    the scales' exponent alone (mxf4, mxf4nvf4).
    """

    terms: tuple[Node, ...]
    to: Encode | None = None
    scaled: bool = False


Node = Accumulator | Zero | Products | Fma | Add | Fused | Exact


@dataclass(frozen=True)
class Product:
    """How a product is formed.

    ``to`` rounds each product (None: exact).  ``label`` is the exponent that a
    product shows to an alignment: ``encoded`` (e_a + e_b of the operands as
    encoded), ``operands`` (subnormal operands normalised first) or
    ``normalised`` (of the product's own leading bit).  ``overflow_exponent``:
    a product of magnitude >= 2**that is an infinity.
    """

    to: Encode | None = None
    label: Literal["encoded", "operands", "normalised"] = "encoded"
    overflow_exponent: int | None = None
    multiply: Literal["exact", "and", "xor"] = "exact"

    def __post_init__(self) -> None:
        _one_of("product label", self.label, ("encoded", "operands", "normalised"))


@dataclass(frozen=True)
class Scale:
    """Block scales: their format and how many lanes share one; ``product`` scales each product
    before the alignment, ``group`` scales the exact sum of a scale block (node ``Exact.scaled``)."""

    format: str
    size: int
    where: Literal["product", "group"] = "product"


@dataclass(frozen=True)
class Special:
    """What a NaN result looks like.

    ``canonical``: every NaN is ``code``.  ``global``: the first NaN among the
    operands in ``priority`` (names like ``a0 b0 a1 b1 c``) gives its payload;
    without one an invalid operation gives ``code``.  ``local``: every node
    chooses among its own operands, in the order ``priority`` of ``a b acc``
    for Fma, x before y for Add, and a before b for a product; an invalid
    operation makes ``code`` right there.
    ``quiet`` sets the quiet bit of a propagated payload.  ``signalling_first``:
    signalling NaNs win over quiet ones.
    """

    nan: Literal["canonical", "global", "local"] = "canonical"
    code: int = 0x7FFFFFFF
    priority: tuple[str, ...] = ()
    quiet: bool = True
    signalling_first: bool = False

    def __post_init__(self) -> None:
        _one_of("NaN rule", self.nan, ("canonical", "global", "local"))


@dataclass(frozen=True)
class Datapath:
    """What one primitive computes on one vector; see ``docs/datapath.md``."""

    a: str
    b: str
    c: str | None
    d: str
    k: int
    tree: Node
    step: int = 0  # lanes a step; 0 = all of K
    order: tuple[int, ...] | None = None  # lanes in the order in which steps take them; None = ascending
    operand_a: Operand = Operand()
    operand_b: Operand = Operand()
    operand_c: Operand = Operand()
    product: Product = Product()
    scale: Scale | None = None
    result: Encode | None = None  # a last conversion after the last step
    special: Special = Special()

    def __post_init__(self) -> None:
        for name in (self.a, self.b, self.d, *([self.c] if self.c else [])):
            formats.get(name)
        for operand, of in ((self.operand_a, self.a), (self.operand_b, self.b), (self.operand_c, self.c)):
            if operand.sign != "keep" and not (of and formats.get(of).has_sign_bit):
                raise UsageError(f"operand sign is {operand.sign!r}; {of or 'an absent operand'} has no sign bit")
        length = self.step_length
        if self.k % length:
            raise UsageError(f"a step of {length} lanes does not divide K = {self.k}")
        if self.order is not None and sorted(self.order) != list(range(self.k)):
            raise UsageError(f"order is not a permutation of 0..{self.k - 1}")
        lanes = sorted(lane for node in walk(self.tree) for lane in lanes_of(node))
        if lanes != list(range(length)):
            raise UsageError(f"the tree does not use each of the lanes 0..{length - 1} exactly once: {lanes}")
        for node in walk(self.tree):
            single = children(node) if isinstance(node, (Fma, Add)) else ()
            if any(isinstance(child, Products) and len(child.lanes) != 1 for child in single):
                raise UsageError("an operand of add, and acc of fma, is one value: products of one lane there")
        if getattr(self.tree, "to", None) is None:
            raise UsageError("the root of the tree has no result format (to)")

    @property
    def step_length(self) -> int:
        return self.step or self.k

    @property
    def steps(self) -> tuple[tuple[int, ...], ...]:
        """The lanes of each step, in order."""
        order = self.order or tuple(range(self.k))
        size = self.step_length
        return tuple(order[i : i + size] for i in range(0, self.k, size))


def children(node: Node) -> tuple[Node, ...]:
    """The operands of a node, in the order written."""
    if isinstance(node, Fma):
        return (node.acc,)
    if isinstance(node, Add):
        return (node.x, node.y)
    if isinstance(node, Fused):
        return tuple(term.of for term in node.terms)
    return node.terms if isinstance(node, Exact) else ()


def lanes_of(node: Node) -> tuple[int, ...]:
    """The lanes that this node itself (not its children) multiplies."""
    return node.lanes if isinstance(node, (Fma, Products)) else ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)
