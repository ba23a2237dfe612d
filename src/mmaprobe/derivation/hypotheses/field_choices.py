"""The fields of a datapath that a search varies, each as an axis of edits.

Nothing here knows what any real unit does: an axis holds every rounding, every
width up to a limit, every policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from mmaprobe import formats
from mmaprobe.models.combinations import Axis, Edit, NumberAxis, ValueAxis
from mmaprobe.parameters.datapath import OVERFLOWS, SUBNORMALS, Datapath, Encode, Fused, Operand, Products, Term, walk
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.rewrite import map_encodes, map_terms

TINY: list[dict[str, Any]] = [
    {"subnormals": policy, "tininess": tiny}
    for policy, tiny in [("keep", "after"), *product(SUBNORMALS[1:], choices(Encode, "tininess"))]
]
"""Every rule of tiny results."""
MOST_BITS = 64
"""The widest alignment that a search counts out; above it nothing is cut."""


def fraction_bits(uncut: bool) -> Axis:
    """Every width of all aligned sums, no limit first."""
    return NumberAxis(lambda bits: _fused(fraction_bits=bits), widths(uncut))


def widths(uncut: bool) -> tuple[int | None, ...]:
    """Every number of fraction bits, no limit first."""
    return (*((None,) if uncut else ()), *range(MOST_BITS + 1))


def alignment(modes: Iterable[str] = formats.ROUNDINGS) -> Axis:
    """Every rounding of all aligned sums' terms."""
    return _axis(_fused, [{"rounding": mode} for mode in modes])


def rounding(modes: Iterable[str] = formats.ROUNDINGS) -> Axis:
    """Every rounding of all results."""
    return _axis(_encodes, [{"rounding": mode} for mode in modes])


def _axis(edit: Callable[..., Edit], values: Sequence[dict[str, Any]]) -> ValueAxis:
    return ValueAxis(tuple(edit(**value) for value in values), tuple(values))


def zero_exponent(values: Iterable[int | None]) -> Axis:
    """These exponents of a zero in all aligned sums."""
    return NumberAxis(lambda value: _fused(zero_exponent=value), tuple(values))


def operand(name: str) -> list[Edit]:
    """What becomes of an operand's subnormals."""
    return [operand_set(name, policy) for policy in SUBNORMALS]


def flush() -> Axis:
    """What becomes of tiny results, and how they are judged tiny."""
    return _axis(_encodes, TINY)


def zero_sign() -> Axis:
    return _axis(_encodes, [{"zero": sign} for sign in choices(Encode, "zero")])


def underflow_sign() -> Axis:
    return _axis(_encodes, [{"underflow": sign} for sign in choices(Encode, "underflow")])


def overflow() -> Axis:
    return _axis(_encodes, [{"overflow": rule} for rule in OVERFLOWS])


def cut(datapath: Datapath, bits: int | None, mode: str) -> Datapath:
    """All aligned sums with this width and rounding."""
    return map_terms(datapath, lambda term: replace(term, fraction_bits=bits, rounding=mode))


def may_be_uncut(datapath: Datapath) -> bool:
    """Whether every aligned sum has three terms or more: of fewer, never cut, the engine makes another operation."""
    nodes = [node for node in walk(datapath.tree) if isinstance(node, Fused)]
    counts = [sum(len(t.of.lanes) if isinstance(t.of, Products) else 1 for t in node.terms) for node in nodes]
    return min(counts, default=0) > 2


def zero_exponents(datapath: Datapath) -> list[int | None]:
    """Every exponent of a zero that a term can have or be cut by, from the formats' ranges, and none."""
    a, b, d = (formats.get(name) for name in (datapath.a, datapath.b, datapath.d))
    others = [d] if datapath.c is None else [d, formats.get(datapath.c)]
    scale = formats.get(datapath.scale.format) if datapath.scale else None
    low = min(a.min_exponent + b.min_exponent, *(fmt.min_exponent for fmt in others))
    low -= max(fmt.fraction_bits for fmt in others)
    high = max(a.max_exponent + b.max_exponent + 2, *(fmt.max_exponent for fmt in others))
    if scale is not None:
        low, high = low + 2 * scale.min_exponent, high + 2 * scale.max_exponent
    return [None, *range(max(low - MOST_BITS, -LIMIT), min(high, LIMIT) + 1)]


LIMIT = 600
"""Beyond this exponent, of either sign, no zero exponent is looked for."""


@lru_cache(maxsize=4096)
def _fused(**fields: Any) -> Edit:
    def at(term: Term) -> Term:
        return replace(term, **fields)

    return lambda path: map_terms(path, at)


@lru_cache(maxsize=256)
def _encodes(**fields: Any) -> Edit:
    def at(to: Encode) -> Encode:
        return replace(to, **fields)

    return lambda path: map_encodes(path, at)


@lru_cache(maxsize=64)
def operand_set(name: str, policy: Any) -> Edit:
    """Give an operand's subnormals this end."""
    field = f"operand_{name}"
    operand = Operand(policy)
    return lambda path: replace(path, **{field: replace(getattr(path, field), subnormals=operand.subnormals)})
