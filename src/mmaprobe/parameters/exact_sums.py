"""Emulated integer instructions: an exact sum that wraps has no order, so it needs no place for its terms.

A routine that widens 4-bit operands or bits to what exact integer primitives
take computes d = c + sum a_k b_k modulo 2^32, whichever lanes each application
gets and from whatever it starts; so does one that makes XOR of AND
(a xor b = a + b - 2 (a and b)).  ``satfinite``: the primitives inside wrap; that
the routine limits the whole sum once is an assumption.
"""

from __future__ import annotations

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Operand, Product, Products


def is_exact_sum(datapath: Datapath) -> bool:
    """Whether this is an exact sum of C and all integer products of a step, wrapped."""
    tree = datapath.tree
    if not isinstance(tree, Exact) or tree.to is None or tree.scaled or datapath.scale or datapath.result:
        return False
    plain = all(operand == Operand() for operand in (datapath.operand_a, datapath.operand_b, datapath.operand_c))
    integer = not any(formats.get(name).is_float for name in (datapath.a, datapath.b, datapath.d))
    leaves = {type(term) for term in tree.terms} == {Accumulator, Products}
    return plain and integer and leaves and tree.to == Encode(datapath.d, overflow="wrap") and datapath.c == datapath.d


def compose_exact(datapath: Datapath, way: Lowering, made: Instruction) -> Datapath:
    """The datapath of an instruction that a routine emulates by a primitive that ``is_exact_sum``.

    UsageError where the primitive's operands do not hold the instruction's, its
    products are others, or the applications have too few lanes.
    """
    held = _holds(datapath.a, made.a) and _holds(datapath.b, made.b) and (made.c, made.d) == (datapath.c, datapath.d)
    _require(held, way, f"it does not hold {made.a}, {made.b} and {made.d}")
    _require(datapath.product in (Product(), Product(multiply="and")), way, "its products are no plain products")
    _require(way.count * datapath.k >= made.selected, way, f"{way.count} of {datapath.k} lanes are too few")
    limit = Encode(made.d, overflow="largest" if made.saturates else "wrap")
    tree = Exact((Accumulator(), Products(tuple(range(made.selected)))), limit)
    product = Product(multiply=made.multiply)
    return Datapath(made.a, made.b, made.c, made.d, made.selected, tree, product=product, random=made.random)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of an integer format is one of another's."""
    (low, high), (least, most) = map(_limits, (wide, narrow))
    return low <= least and most <= high


def _limits(name: str) -> tuple[int, int]:
    fmt = formats.get(name)
    return (-(1 << fmt.bits - 1), (1 << fmt.bits - 1) - 1) if fmt.signed else (0, (1 << fmt.bits) - 1)


def _require(holds: bool, way: Lowering, reason: str) -> None:
    if not holds:
        raise UsageError(f"{way.instruction}: {way.primitives[0]} cannot be composed: {reason}")
