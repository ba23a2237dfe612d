"""The datapath record: what one primitive computes, as data.

A datapath applies an expression tree to the lanes of a step, step after step
along K.  ``docs/datapath.md`` is the normative text; three interpreters (the
NumPy stages, the native engine and the test oracle) follow it to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args

from mmaprobe import formats
from mmaprobe.catalog.instruction import RANDOM_FORMATS
from mmaprobe.catalog.lanes import MOST_LANES
from mmaprobe.errors import UsageError, brief
from mmaprobe.parameters import checks
from mmaprobe.parameters.described import descriptions, says

Subnormals = Literal["keep", "zero", "signed_zero"]
SUBNORMALS: tuple[Subnormals, ...] = get_args(Subnormals)
Overflow = Literal["ieee", "infinity", "largest", "wrap"]
OVERFLOWS: tuple[Overflow, ...] = get_args(Overflow)[:3]
"""Those of floats."""
# What a person reads for the values of these fields; of a sign, how the operand is written.
_OF_SUBNORMALS = {"keep": "kept", "signed_zero": "flushed, sign kept", "zero": "flushed to +0"}
_OF_OVERFLOW = {"infinity": "overflow to infinity", "largest": "saturates", "wrap": "wraps"}
_OF_CARRY = {"wrap": "wraps", "saturate": "saturates"}
_OF_SPECIALS = {"whole": "not split", "parts": "split"}
_SIGNED = {"keep": "{}", "flip": "-{}", "clear": "|{}|", "set": "-|{}|"}


MOST_DEPTH = 192
"""Nodes one below the other at most: what walks a tree calls itself for each."""
MOST_BITS = 1 << 13
"""Bounds every number that counts bits or names an exponent: an exact product of two f64 spans 4,196."""
MOST_COLUMNS = 106
"""Columns of the partial products of two f64."""
MOST_PARTS = 4
"""Parts of an operand at most: three of bf16 hold an f32."""
MOST_RANDOM = 32
"""Random bits that a rounding takes at most: the operand is an integer of at most so many."""
PART_ROUNDINGS = ("RZ", "RNE", "RNO", "RNA", "RNZ", "RNU", "RND")
"""What may round a part: what it leaves is no larger than what it is a part of, so that it needs no more bits."""


Kind = TypeVar("Kind", bound=type)
_HASH = "_hash"


def hashed_once(kind: Kind) -> Kind:
    """A record that keeps its hash: that of a node is asked for at every node above it.  It stays in its process, since
    another has another hash of the same text."""
    compute: Any = kind.__hash__

    def hash_of(self: Any) -> int:
        own = self.__dict__
        if _HASH not in own:
            own[_HASH] = compute(self)
        return int(own[_HASH])

    def state_of(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _HASH}

    for name, method in (("__hash__", hash_of), ("__getstate__", state_of)):
        setattr(kind, name, method)
    return kind


@dataclass(frozen=True)
class Operand:
    """How an operand is read: subnormals kept or flushed, container bits ANDed with ``mask`` first.

    ``sign`` is what happens to the sign bit before the operand is decoded:
    ``flip`` is a negation modifier, ``clear`` an absolute value, ``set`` both.
    """

    subnormals: Subnormals = field(
        default="keep", metadata=says("subnormals", "word", "float", ends=True, values=_OF_SUBNORMALS)
    )
    mask: int | None = field(default=None, metadata=says("bits that are read"))
    sign: Literal["keep", "flip", "clear", "set"] = field(
        default="keep", metadata=says("what happens to the sign bit", "sign", values=_SIGNED)
    )

    def __post_init__(self) -> None:
        checks.words("operand", self)
        checks.whole("mask", self.mask, 0, (1 << 64) - 1, optional=True)

    def code_bits(self, fmt: formats.Format) -> tuple[int, int]:
        """(mask, flip): what is decoded is ``(code & mask) ^ flip``; a mask of -1 keeps every bit."""
        mask = -1 if self.mask is None else self.mask
        if self.sign in ("clear", "set"):
            mask &= ~fmt.sign_mask
        return mask, fmt.sign_mask if self.sign in ("flip", "set") else 0


@hashed_once
@dataclass(frozen=True)
class Encode:
    """Round an exact value to a format: an optional first cut, the rounding, overflow, flush, zeros.

    ``first`` = (bits, rounding): before the rounding proper, cut to that many
    fraction bits below the value's own exponent (not below the format's lowest
    normal exponent).  ``tininess`` says when a result counts as subnormal for
    the flush: before or after rounding (with unbounded exponent), or as ``encoded``.  ``zero`` is
    the sign of an exact zero sum: ``positive`` or ``ieee``.  ``underflow`` is the
    sign of a zero that a nonzero value was rounded or flushed to: ``signed``
    or ``positive``.  ``random_bits`` = w above 0 is stochastic rounding by bits that the instruction is handed
    (``Datapath.random``): with R the w ``lowest`` or ``highest`` of them, u the place to which x is rounded and f the
    part of |x|/u behind the point, x becomes the next multiple of u away from zero where
    floor(f 2**w) + R >= 2**w, before ``rounding`` (RZ, of a unit that adds the bits and truncates).
    """

    format: str = field(default="f32", metadata=says("format"))
    rounding: str = field(default="RNE", metadata=says("rounding", "rounding", "cut"))
    overflow: Overflow = field(default="ieee", metadata=says("overflow", "overflow", ends=True, values=_OF_OVERFLOW))
    subnormals: Subnormals = field(
        default="keep", metadata=says("subnormals", "word", "float", ends=True, values=_OF_SUBNORMALS)
    )
    tininess: Literal["before", "after", "encoded"] = field(
        default="after", metadata=says("when tiny is judged", "word", "flushed", ends=True)
    )
    zero: Literal["ieee", "positive"] = field(
        default="ieee", metadata=says("sign of a zero sum", "word", "float", ends=True, values={"positive": "never -0"})
    )
    underflow: Literal["signed", "positive"] = field(
        default="signed", metadata=says("sign of an underflow", "word", "float", ends=True)
    )
    first: tuple[int, str] | None = field(default=None, metadata=says("first cut", "first"))
    random_bits: int = field(default=0, metadata=says("random bits added below the last place", "random_bits"))
    random_from: Literal["lowest", "highest"] = field(
        default="lowest", metadata=says("which bits of the random operand", "word", "random_bits")
    )

    def __post_init__(self) -> None:
        fmt = checks.result_format("format", self.format)
        checks.words("", self)
        if fmt.is_float and self.overflow == "wrap":
            raise UsageError(
                f"overflow is wrap, which only integers do, not {fmt.name}; it must be one of {', '.join(OVERFLOWS)}"
            )
        checks.whole("random_bits", self.random_bits, 0, MOST_RANDOM)
        if self.first is not None:
            self._check_first(fmt)

    def _check_first(self, fmt: formats.Format) -> None:
        if not isinstance(self.first, tuple) or len(self.first) != 2:
            raise UsageError(f"first is {brief(self.first)}; it must be a number of bits and a rounding, or none")
        checks.whole("bits of first", self.first[0], 0, MOST_BITS)
        checks.one_of("rounding of first", self.first[1], formats.ROUNDINGS)
        if not fmt.is_float:
            raise UsageError(f"first is a cut below a leading bit; {fmt.name} is an integer and must have none")


@dataclass(frozen=True)
class Accumulator:
    """The leaf c: operand C in the first step, the previous step's result after it."""


@dataclass(frozen=True)
class Zero:
    """The leaf +0."""


@dataclass(frozen=True)
class Products:
    """The products of these lanes of the step, each a term of its own."""

    lanes: tuple[int, ...] = field(metadata=says("lanes", kind="lanes"))

    def __post_init__(self) -> None:
        checks.lanes("products", self.lanes, MOST_LANES)


@hashed_once
@dataclass(frozen=True)
class Fma:
    """A chain: acc = round(acc + p_k) over ``lanes`` in the order written, each product exact."""

    acc: Node = field(metadata=says("the start value", place="the start value"))
    lanes: tuple[int, ...] = field(metadata=says("lanes", kind="lanes"))
    to: Encode = field(metadata=says("rounding to a format", place="the result"))

    def __post_init__(self) -> None:
        checks.a(NODES, "acc", self.acc)
        checks.lanes("lanes of fma", self.lanes, MOST_LANES)
        checks.a(Encode, "to of fma", self.to)


@hashed_once
@dataclass(frozen=True)
class Add:
    """One rounded binary addition x + y (x is the operand written first, for NaN priority)."""

    x: Node = field(metadata=says("the first operand", place="the first operand"))
    y: Node = field(metadata=says("the second operand", place="the second operand"))
    to: Encode = field(metadata=says("rounding to a format", place="the result"))

    def __post_init__(self) -> None:
        checks.a(NODES, "x of add", self.x)
        checks.a(NODES, "y of add", self.y)
        checks.a(Encode, "to of add", self.to)


@hashed_once
@dataclass(frozen=True)
class Term:
    """A term of a fused sum and its rules: nothing is inherited.

    ``fraction_bits`` None keeps every bit.  ``zero_exponent`` is the exponent
    that the term shows to the maximum where it is zero; None leaves it out.
    ``cutoff``: the term is dropped when its exponent is below the largest
    exponent minus ``cutoff``; None never drops it.  ``label_offset``: the term shows its label plus this, to the
    maximum and to its cutoff.  ``sticky_bits``: so many bits below the last one kept are all that the rounding looks
    at (guard, round and a sticky bit of limited reach); None: every bit.  ``shift_limit``: a term further below the
    largest exponent is shifted by this much and no more; None: by its distance.
    """

    of: Node = field(metadata=says("what it is"))
    fraction_bits: int | None = field(
        default=None, metadata=says("fraction bits kept below the largest exponent", "fraction_bits")
    )
    rounding: str = field(default="RZ", metadata=says("rounding", "rounding", "cut"))
    zero_exponent: int | None = field(
        default=None, metadata=says("exponent of a zero in the alignment", "zero_exponent", ends=True)
    )
    cutoff: int | None = field(default=None, metadata=says("distance at which a term is dropped", "number"))
    label_offset: int = field(default=0, metadata=says("how much higher its exponent is shown", "offset", "aligned"))
    sticky_bits: int | None = field(default=None, metadata=says("bits that its rounding looks at", "number", "looked"))
    shift_limit: int | None = field(default=None, metadata=says("most that it is shifted", "number", "aligned"))

    def __post_init__(self) -> None:
        checks.a(NODES, "of", self.of)
        checks.whole("fraction_bits", self.fraction_bits, 0, MOST_BITS, optional=True)
        checks.words("alignment", self)
        checks.whole("zero_exponent", self.zero_exponent, -MOST_BITS, MOST_BITS, optional=True)
        checks.whole("cutoff", self.cutoff, 0, MOST_BITS, optional=True)
        checks.whole("label_offset", self.label_offset, -MOST_BITS, MOST_BITS)
        checks.whole("sticky_bits", self.sticky_bits, 0, MOST_BITS, optional=True)
        checks.whole("shift_limit", self.shift_limit, 0, MOST_BITS, optional=True)


@hashed_once
@dataclass(frozen=True)
class Fused:
    """Align terms to the largest exponent, cut each at its ``fraction_bits`` below it, add exactly.

    ``to`` None hands the exact sum on (with the largest exponent as its label).
    ``complement``: terms are negated by ones' complement in the frame of c's sign: a term of the other sign, a zero
    too, is one unit of the sum's last place larger.  ``carry_bits``: the sum has so many bits above the largest
    exponent, in two's complement, and what they do not hold wraps or saturates, as ``carry`` says; None: as many as it
    needs.  A sum of which a term keeps every bit has no last place: nothing is complemented, and nothing carried away.
    """

    terms: tuple[Term, ...] = field(metadata=says("terms"))
    to: Encode | None = field(default=None, metadata=says("rounding to a format", place="the result"))
    complement: bool = field(default=False, metadata=says("ones' complement in the frame of c's sign", "rare"))
    carry_bits: int | None = field(default=None, metadata=says("bits above the largest exponent", "number", "aligned"))
    carry: Literal["wrap", "saturate"] = field(
        default="wrap", metadata=says("what they do not hold", "word", "carried", values=_OF_CARRY)
    )

    def __post_init__(self) -> None:
        checks.items("terms of fused", self.terms, Term)
        checks.a(Encode, "to of fused", self.to, optional=True)
        checks.flag("complement", self.complement)
        checks.whole("carry_bits", self.carry_bits, 0, MOST_BITS, optional=True)
        checks.words("fused", self)

    @property
    def last_place(self) -> int | None:
        """How far below the largest exponent the last place of the sum lies; None where a term keeps every bit."""
        bits = [term.fraction_bits for term in self.terms]
        return None if None in bits else max(filter(None, bits), default=0)

    @property
    def is_complemented(self) -> bool:
        """Whether a term can be complemented."""
        return self.complement and self.last_place is not None

    @property
    def is_carried(self) -> bool:
        """Whether the sum can be too large for its bits."""
        return self.carry_bits is not None and self.last_place is not None

    @staticmethod
    def alike(
        nodes: Iterable[Node],
        fraction_bits: int | None,
        rounding: str = "RZ",
        zero_exponent: int | None = None,
        to: Encode | None = None,
    ) -> Fused:
        """The sum of these, all by the same rules."""
        return Fused(tuple(Term(node, fraction_bits, rounding, zero_exponent) for node in nodes), to)


@hashed_once
@dataclass(frozen=True)
class Exact:
    """The infinitely precise sum of the terms; one rounding where ``to`` is given.

    ``scaled``: the sum is multiplied by the scale block's two scales and its label is
    the scales' exponent alone (mxf4, mxf4nvf4).
    """

    terms: tuple[Node, ...] = field(metadata=says("terms"))
    to: Encode | None = field(default=None, metadata=says("rounding to a format", place="the result"))
    scaled: bool = field(default=False, metadata=says("block scales"))

    def __post_init__(self) -> None:
        checks.items("terms of exact", self.terms, NODES)
        checks.a(Encode, "to of exact", self.to, optional=True)
        checks.flag("scaled", self.scaled)


Node = Accumulator | Zero | Products | Fma | Add | Fused | Exact
NODES = (Accumulator, Zero, Products, Fma, Add, Fused, Exact)


@dataclass(frozen=True)
class Split:
    """Operands of a and b as sums of parts in a narrower format of the same range, and the products of parts that are
    added: x is x_0 + x_1 + ..., x_i being what the parts before it leave of x, rounded to the format.

    ``pairs`` are these products in order: ``12`` is a_1 b_2; ``00`` is one of them.  ``added``: ``together``, each is a
    term of its own where the tree has the lane's product (a link of its own in a chain, one after the other; where one
    value stands, an operand of an addition, it is their exact sum); ``apart``:
    the tree of a step is evaluated once a pair, from the second on with the result so far as the accumulator.
    ``infinities``: a lane one of whose x_0 is a NaN or an infinity has the product a_0 b_0 alone, its others are +0
    (``whole``); or what an infinity leaves is one of the other sign (``parts``), so that the sum is invalid, as is
    infinity - infinity.

    So a unit that multiplies f32 in three bf16 passes a lane is ``together``; a library that issues a bf16 instruction
    once for every product of parts, smallest first (BF16x9; 3xTF32), is ``apart``.  A lane stays one lane of the tree,
    so that every shape and order of sums goes with every split.
    """

    format: str = field(metadata=says("format"))
    pairs: tuple[str, ...] = field(metadata=says("products of parts", "pairs"))
    rounding: str = field(default="RNE", metadata=says("rounding", "rounding", "cut"))
    added: Literal["together", "apart"] = field(default="together", metadata=says("how they are added", "word"))
    infinities: Literal["whole", "parts"] = field(
        default="whole", metadata=says("infinities and NaNs", "word", ends=True, values=_OF_SPECIALS)
    )

    def __post_init__(self) -> None:
        fmt = checks.result_format("format of split", self.format)
        if not fmt.is_float or fmt.nan != "ieee":
            raise UsageError(f"format of split is {fmt.name}; it must be a float with infinities and NaNs")
        checks.words("split", self)
        checks.one_of("rounding of split", self.rounding, PART_ROUNDINGS)
        legal = [f"{i}{j}" for i in range(MOST_PARTS) for j in range(MOST_PARTS)]
        if not isinstance(self.pairs, tuple):
            raise UsageError(f"pairs are {brief(self.pairs)}; they must be a tuple such as ('01', '10', '00')")
        for pair in self.pairs:
            checks.one_of("a pair", pair, legal)
        if "00" not in self.pairs or len(set(self.pairs)) != len(self.pairs):
            raise UsageError(f"pairs are {' '.join(self.pairs) or 'none'}; 00 must be one of them, none may be twice")

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """The parts of a and of b that each pair multiplies."""
        return tuple((int(pair[0]), int(pair[1])) for pair in self.pairs)


@dataclass(frozen=True)
class Product:
    """How a product is formed.

    ``to`` rounds each product (None: exact).  ``label`` is the exponent that a
    product shows to an alignment: ``encoded`` (e_a + e_b of the operands as
    encoded), ``operands`` (subnormal operands normalised first) or
    ``normalised`` (of the product's own leading bit).  ``overflow_exponent``:
    a product of magnitude >= 2**that is an infinity.  ``missing_columns``: of the partial products of the significands,
    a_i b_j 2**(i + j) in units of the last places that the formats have, those below 2**that are not added
    (a truncated multiplier); a product of which nothing is left is a zero.  ``split``: products of parts of the
    operands in place of their own; all that is said here of a product holds of each of these.
    """

    to: Encode | None = field(default=None, metadata=says("rounding to a format", place="the result"))
    label: Literal["encoded", "operands", "normalised"] = field(
        default="encoded", metadata=says("exponent shown to an alignment", "word", "aligned")
    )
    overflow_exponent: int | None = field(
        default=None, metadata=says("exponent from which it is infinite", "number", ends=True)
    )
    multiply: Literal["exact", "and", "xor"] = field(default="exact", metadata=says("multiplication", "multiply"))
    missing_columns: int = field(default=0, metadata=says("columns of partial products left out", "offset", "float"))
    split: Split | None = field(default=None, metadata=says("operands in parts", place="the parts of operands"))

    def __post_init__(self) -> None:
        checks.a(Encode, "to of product", self.to, optional=True)
        checks.words("product", self)
        checks.whole("missing_columns", self.missing_columns, 0, MOST_COLUMNS)
        checks.whole("overflow_exponent", self.overflow_exponent, -MOST_BITS, MOST_BITS, optional=True)
        checks.a(Split, "split", self.split, optional=True)

    @property
    def count(self) -> int:
        """How many products a lane has."""
        return 1 if self.split is None else len(self.split.pairs)

    @property
    def together(self) -> int:
        """How many of them are terms of one step."""
        return 1 if self.split is None or self.split.added == "apart" else self.count

    def places(self, lanes: Iterable[int]) -> tuple[int, ...]:
        """Where the products of these lanes of a step stand among all of it (``Datapath.products``)."""
        each = self.together
        return tuple(lanes) if each == 1 else tuple(lane * each + i for lane in lanes for i in range(each))


@dataclass(frozen=True)
class Scale:
    """Block scales: their format and how many lanes share one; ``product`` scales each product
    before the alignment, ``group`` scales the exact sum of a scale block (node ``Exact.scaled``)."""

    format: str = field(metadata=says("format"))
    size: int = field(metadata=says("lanes that share one"))
    where: Literal["product", "group"] = field(default="product", metadata=says("place of use"))

    def __post_init__(self) -> None:
        fmt = checks.number_format("scale format", self.format)
        if not fmt.is_float or fmt.signed:
            some = ", ".join(name for name, one in formats.FORMATS.items() if one.is_float and not one.signed)
            raise UsageError(f"scale format is {fmt.name}; it must have an exponent and no sign: {some}")
        checks.whole("scale size", self.size, 1, MOST_LANES)
        checks.words("scale", self)


@dataclass(frozen=True)
class Special:
    """What a NaN result looks like.

    ``canonical``: every NaN is ``code``.  ``global``: the first NaN among the
    operands in ``priority`` (names like ``a0 b0 a1 b1 c``) gives its payload;
    without one an invalid operation gives ``code``.  ``local``: every node
    chooses among its own operands, in the order ``priority`` of ``a b acc``
    for Fma, x before y for Add, and a before b for a product; an invalid
    operation makes ``code`` right there.  ``cause``: a step with a NaN among its
    a and b gives ``factor_code``; else one with an invalid product, or infinities of both signs among
    its products, gives ``code``; else the NaN of c, or what an earlier step gave, stays; else it is ``code``.
    ``quiet`` sets the quiet bit of a propagated payload.  ``signalling_first``:
    signalling NaNs win over quiet ones.  A code is one of d; the default is f32's, of a narrower d its low bits.
    """

    nan: Literal["canonical", "global", "local", "cause"] = field(default="canonical", metadata=says("rule"))
    code: int = field(default=0x7FFFFFFF, metadata=says("code", "code"))
    priority: tuple[str, ...] = field(default=(), metadata=says("priority", "priority", "choices"))
    quiet: bool = field(default=True, metadata=says("quieting", "flag", "payloads"))
    signalling_first: bool = field(default=False, metadata=says("signalling ones first", "flag", "choices"))
    factor_code: int = field(default=0x7FFFFFFF, metadata=says("code of a NaN among a and b", "code", "causes"))

    def __post_init__(self) -> None:
        checks.words("special", self)
        checks.whole("NaN code", self.code, 0, (1 << 64) - 1)
        if not isinstance(self.priority, tuple) or not all(isinstance(name, str) for name in self.priority):
            raise UsageError(f"priority is {brief(self.priority)}; it must be a tuple of names such as a0, b0, c")
        checks.flag("quiet", self.quiet)
        checks.flag("signalling_first", self.signalling_first)
        checks.whole("NaN code of a and b", self.factor_code, 0, (1 << 64) - 1)


@hashed_once
@dataclass(frozen=True)
class Datapath:
    """What one primitive computes on one vector; see ``docs/datapath.md``."""

    a: str = field(metadata=says("format of a"))
    b: str = field(metadata=says("format of b"))
    c: str | None = field(metadata=says("format of c"))
    d: str = field(metadata=says("format of d"))
    k: int = field(metadata=says("number of lanes"))
    tree: Node = field(metadata=says("the sum", place="the sum"))
    step: int = field(default=0, metadata=says("lanes a step (0: all)"))
    order: tuple[int, ...] | None = field(
        default=None, metadata=says("order of the lanes")
    )  # in which steps take them; None = ascending
    operand_a: Operand = field(default=Operand(), metadata=says("operand a", place="operand a"))
    operand_b: Operand = field(default=Operand(), metadata=says("operand b", place="operand b"))
    operand_c: Operand = field(default=Operand(), metadata=says("operand c", place="operand c"))
    product: Product = field(default=Product(), metadata=says("the product", place="the product"))
    scale: Scale | None = field(default=None, metadata=says("the scales", place="the scales"))
    result: Encode | None = field(
        default=None, metadata=says("the last conversion", place="the last conversion")
    )  # after the last step
    special: Special = field(default=Special(), metadata=says("NaN results", place="NaN results"))
    random: str | None = field(default=None, metadata=says("format of the random bits"))

    def __post_init__(self) -> None:
        _check_operands(self)
        _check_steps(self)
        _check_tree(self)
        _check_scale(self)
        _check_special(self)
        _check_random(self)

    @property
    def root(self) -> Encode:
        """The encoding of the tree's root."""
        return self.tree.to  # type: ignore[union-attr, return-value]

    @property
    def step_length(self) -> int:
        return self.step or self.k

    @property
    def most_random_bits(self) -> int:
        """The most random bits that a rounding takes."""
        nodes = (getattr(node, "to", None) for node in walk(self.tree))
        return max(to.random_bits for to in (*nodes, self.product.to, self.result) if to is not None)

    @property
    def steps(self) -> tuple[tuple[int, ...], ...]:
        """The lanes of each step, in order."""
        order = self.order or tuple(range(self.k))
        size = self.step_length
        return tuple(order[i : i + size] for i in range(0, self.k, size))

    @property
    def products(self) -> tuple[tuple[int, ...], ...]:
        """The products of each evaluation of the tree, in order: ``n * lane + i`` is number i of the n of a lane."""
        every, count = self.steps, self.product.count
        if count == 1:
            return every
        if self.product.together == 1:
            return tuple(tuple(count * lane + i for lane in lanes) for lanes in every for i in range(count))
        return tuple(tuple(count * lane + i for lane in lanes for i in range(count)) for lanes in every)


RECORDS = (Datapath, Operand, Encode, Split, Product, Scale, Special, Fma, Add, Fused, Term, Exact, Products)
"""Every record that has fields."""
FIELDS = {name: each for record in RECORDS for name, each in descriptions(record).items()}
"""The description of a field by its name, which means the same in every record (a test)."""


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
    left = [node]
    while left:
        node = left.pop()
        yield node
        left += children(node)[::-1]


def _check_operands(path: Datapath) -> None:
    """Formats, and what is done to operands and products, agree."""
    checks.result_format("d", path.d)
    for name in ("a", "b", "c"):
        of, operand = getattr(path, name), getattr(path, f"operand_{name}")
        fmt = None if of is None and name == "c" else checks.number_format(name, of)
        checks.a(Operand, f"operand_{name}", operand)
        if operand.sign != "keep" and not (fmt and fmt.has_sign_bit):
            raise UsageError(f"operand sign is {operand.sign!r}; {of or 'an absent operand'} has no sign bit")
        if operand.mask is not None and fmt:
            checks.whole(f"mask of operand_{name} ({fmt.name})", operand.mask, 0, (1 << fmt.container_bits) - 1)
    checks.a(Product, "product", path.product)
    bits = formats.get(path.a).kind == formats.get(path.b).kind == "bits"
    if path.product.multiply != "exact" and not bits:
        raise UsageError(f"multiply is {path.product.multiply}, which is for b1; {path.a} times {path.b} must be exact")
    if path.product.missing_columns and not (formats.get(path.a).is_float and formats.get(path.b).is_float):
        raise UsageError(f"missing_columns is {path.product.missing_columns}; products of integers must have 0")
    _check_split(path)
    checks.a(Encode, "result", path.result, optional=True)
    if path.result is not None and not holds(formats.get(path.d), formats.get(path.result.format)):
        raise UsageError(
            f"format of result is {path.result.format}; it must be that of d, {path.d}, or laid out as it is"
        )


def _check_split(path: Datapath) -> None:
    """The parts have the operands' range; no block scales beside them."""
    if path.product.split is None:
        return
    part = formats.get(path.product.split.format)
    for name in (path.a, path.b):
        if not same_range(formats.get(name), part):
            raise UsageError(f"format of split is {part.name}, which has not the range of {name}")
    if path.scale is not None:
        raise UsageError("operands are split; that goes with no block scales")


def same_range(fmt: formats.Format, part: formats.Format) -> bool:
    """Whether two float formats have the same exponents, and signs, subnormals and infinities alike."""
    read = attrgetter("is_float", "exponent_bits", "bias", "nan", "signed", "subnormal", "infinity")
    return fmt.is_float and read(fmt) == read(part)


def holds(d: formats.Format, narrow: formats.Format) -> bool:
    """Whether every code of the narrower format is one of d: f32 holds e8m13, whose last fraction bits are padding."""
    if not (d.is_float and narrow.is_float):
        return d == narrow
    same = (d.bits + d.padding, d.exponent_bits, d.bias, d.nan) == (
        narrow.bits + narrow.padding, narrow.exponent_bits, narrow.bias, narrow.nan)  # fmt: skip
    return same and narrow.fraction_bits <= d.fraction_bits


def _check_steps(path: Datapath) -> None:
    checks.whole("k", path.k, 1, MOST_LANES)
    checks.whole("step", path.step, 0, path.k)
    if path.k % path.step_length:
        raise UsageError(f"a step of {path.step_length} lanes does not divide K = {path.k}")
    if path.order is not None:
        checks.lanes("order", path.order, path.k)
        if len(path.order) != path.k:
            raise UsageError(f"order is not a permutation of 0..{path.k - 1}")


def _check_tree(path: Datapath) -> None:
    """Every lane of a step once; few enough nodes, not too deep; values where values stand."""
    length = path.step_length
    checks.a(NODES, "tree", path.tree)
    checks.a(Encode, "the root of the tree has no result format: to", getattr(path.tree, "to", None))
    seen: list[int] = []
    nodes, level, depth = 0, [path.tree], 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if depth > MOST_DEPTH or nodes > 2 * MOST_LANES:
            raise UsageError(f"the tree is deeper than {MOST_DEPTH} nodes or has over {2 * MOST_LANES}")
        for node in level:
            seen += lanes_of(node)
            single = children(node) if isinstance(node, (Fma, Add)) else ()
            if any(isinstance(child, Products) and len(child.lanes) != 1 for child in single):
                raise UsageError("an operand of add, and acc of fma, is one value: products of one lane there")
        level = [child for node in level for child in children(node)]
    if len(seen) != length or set(seen) != set(range(length)):
        wrong = _misused(seen, length)
        raise UsageError(f"the tree does not use each of the lanes 0..{length - 1} exactly once{wrong}")


def _misused(seen: list[int], length: int) -> str:
    """The first lanes that are missing, beyond or there twice."""
    missing = sorted(set(range(length)) - set(seen))[:4]
    extra = sorted({lane for lane in seen if lane >= length or seen.count(lane) > 1})[:4] if len(seen) < 4096 else []
    return f": without {missing}" * bool(missing) + f": {extra} too much" * bool(extra)


def _check_scale(path: Datapath) -> None:
    """A scale block divides K, and a scaled sum lies in one block at every step."""
    checks.a(Scale, "scale", path.scale, optional=True)
    scaled = [node for node in walk(path.tree) if isinstance(node, Exact) and node.scaled]
    if scaled and (path.scale is None or path.scale.where != "group"):
        raise UsageError("a node is scaled; that needs a scale whose where is group")
    if path.scale is None:
        return
    if path.k % path.scale.size:
        raise UsageError(f"scale size is {path.scale.size}; it must divide K = {path.k}")
    for node in scaled:
        below = [lane for part in walk(node) for lane in lanes_of(part)]
        blocks = [{lanes[lane] // path.scale.size for lane in below} for lanes in path.steps]
        if any(len(each) != 1 for each in blocks):
            raise UsageError(f"a scaled node must sum lanes of one scale block of {path.scale.size}")
        if any(isinstance(part, Exact) and part.scaled for child in node.terms for part in walk(child)):
            raise UsageError("a scaled node lies below another; a sum is scaled once")


def _check_special(path: Datapath) -> None:
    """Codes of d, and operands that are there."""
    checks.a(Special, "special", path.special)
    rule, d = path.special, formats.get(path.d)
    some = (path.a, path.b, path.c, path.root.format)
    if any(name and formats.get(name).is_float for name in (*some, path.d)):
        for what, code in (("NaN code", rule.code), ("NaN code of a and b", rule.factor_code)):
            if code != Special.code:
                checks.whole(f"{what} ({d.name})", code, 0, (1 << d.container_bits) - 1)
    if rule.nan == "canonical":
        return
    if d.nan_code is None:
        raise UsageError(f"NaN rule is {rule.nan}; {d.name} has no NaN to carry a payload, it must be canonical")
    if rule.nan == "cause" and rule.priority:
        raise UsageError(f"priority is {brief(' '.join(rule.priority))}; under cause there is none, it must be empty")
    names = _operand_names(path.k, path.c is not None) if rule.nan == "global" else frozenset(("a", "b", "acc"))
    for name in rule.priority:
        if name not in names:
            legal = "a, b, acc" if rule.nan == "local" else f"a0 to b{path.k - 1}{', c' * (path.c is not None)}"
            raise UsageError(f"priority names {brief(name)}; under {rule.nan} it may name {legal}")
    if len(set(rule.priority)) != len(rule.priority):
        raise UsageError("priority names an operand twice")


def _check_random(path: Datapath) -> None:
    """No rounding takes more random bits than there are."""
    held = 0
    if path.random is not None:
        checks.one_of("random", path.random, RANDOM_FORMATS)
        held = formats.get(path.random).bits
    if path.most_random_bits > held:
        there = f"{path.random} holds {held}" if path.random else "the datapath has no operand of random bits: random"
        raise UsageError(f"random_bits is {path.most_random_bits}; {there}")


@cache
def _operand_names(k: int, has_c: bool) -> frozenset[str]:
    """Every operand as a priority names it."""
    return frozenset([*(f"{side}{lane}" for side in "ab" for lane in range(k)), *(["c"] if has_c else [])])
