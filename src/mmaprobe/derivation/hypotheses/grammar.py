"""The grammar: every datapath worth considering, stage by stage, as plain lists.

Nothing here knows what any real unit does: the lists are products of
structures, widths, roundings and policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product
from typing import Any

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.hypotheses.structures import Structure
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import (
    SUBNORMALS,
    Accumulator,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Product,
    Products,
    Scale,
    Special,
    Subnormals,
    walk,
)
from mmaprobe.parameters.rewrite import encodes, map_encodes, map_fused, with_encode


def integer_hypotheses(instruction: Instruction, order: tuple[int, ...] | None = None) -> list[Datapath]:
    """Exact sums of every step length that wrap or saturate; of bits, by each way of multiplying them; where there is
    an ``order``, with the lanes in it too."""
    found = []
    ways: tuple[Any, ...] = ("and", "xor") if instruction.a == instruction.b == "b1" else ("exact",)
    for step in (s for s in range(instruction.k, 0, -1) if instruction.k % s == 0):
        if step < instruction.k and instruction.c is None:
            continue
        terms: tuple[Node, ...] = (Products(tuple(range(step))),)
        if instruction.c is not None:
            terms = (Accumulator(), *terms)
        for overflow, multiply in product(("wrap", "largest"), ways):
            to: Any = Encode(instruction.d, overflow=overflow)  # type: ignore[arg-type]
            path = _datapath(instruction, Structure("exact", step, lambda _: None), Exact(terms, to))  # type: ignore[return-value, arg-type]
            found.append(replace(path, product=Product(multiply=multiply)))
            if order is not None and step < instruction.k and overflow == "largest":
                found.append(replace(found[-1], order=order))
    return found


def build(instruction: Instruction, structure: Structure, to: Encode, result: Encode | None = None) -> Datapath:
    """The structure's datapath with this Encode everywhere, and another for the result where one is given."""
    return replace(_datapath(instruction, structure, structure.build(to), to), result=result)


def _datapath(instruction: Instruction, structure: Structure, tree: Node, to: Encode | None = None) -> Datapath:
    where: Any = "group" if structure.scaled else "product"
    scale = Scale(instruction.scale, instruction.scale_size, where) if instruction.scale else None
    return Datapath(
        a=instruction.a,
        b=instruction.b,
        c=instruction.c,
        d=instruction.d,
        k=instruction.k,
        tree=tree,
        step=0 if structure.step == instruction.k else structure.step,
        order=structure.order,
        product=Product(to=to if structure.rounded else None),
        scale=scale,
    )


def control_variants(datapath: Datapath) -> Iterator[Datapath]:
    """What a control register can change: the rounding of everything, flushing of operands, of results, and of
    results on their way into the next operation (an operand there)."""
    for rounding, flush, read in product(formats.ROUNDINGS, SUBNORMALS, SUBNORMALS):
        for tiny in ("after", "before") if flush != "keep" else ("after",):
            changed = map_encodes(
                datapath,
                lambda to, r=rounding, f=flush, t=tiny: replace(to, rounding=r, subnormals=f, tininess=t),  # type: ignore[misc]
            )
            yield (changed := _operands_read(changed, read))
            if flush == "keep" and read != "keep":
                yield _flush_inside(changed, read)


def _operands_read(datapath: Datapath, subnormals: Subnormals) -> Datapath:
    """The datapath that reads subnormal operands so."""
    a, b, c = (
        replace(of, subnormals=subnormals) for of in (datapath.operand_a, datapath.operand_b, datapath.operand_c)
    )
    return replace(datapath, operand_a=a, operand_b=b, operand_c=c if datapath.c is not None else datapath.operand_c)


def control_words(datapath: Datapath) -> str:
    """A control variant in words: rounding, flushing of operands, of results, and in between."""
    every = encodes(replace(datapath, result=None))
    last, inner = every[-1], every[0]
    words = f"{last.rounding}, operands {datapath.operand_a.subnormals}, results {last.subnormals} ({last.tininess})"
    return words if inner == last else f"{words}, in between {inner.subnormals}"


def _flush_inside(datapath: Datapath, policy: Subnormals) -> Datapath:
    """Every result but the last is flushed as an operand of the next operation would be."""
    inner = map_encodes(datapath, lambda to: replace(to, subnormals=policy, tininess="encoded"))
    last = encodes(replace(datapath, product=Product(), result=None))[-1]
    return replace(inner, tree=with_encode(inner.tree, lambda _: last), result=datapath.result)


def special_variants(datapath: Datapath, codes: Sequence[int]) -> Iterator[Datapath]:
    """NaN rules: one code; where several were seen also simple ones that hand payloads on."""
    for code in codes:
        yield replace(datapath, special=Special("canonical", code))
    if len(codes) > 1:
        yield from simple_rules(datapath, codes)


def cause_rules(datapath: Datapath, codes: Sequence[int]) -> Iterator[Datapath]:
    """One code for NaNs of factors, one for what is invalid, and of c its own."""
    for code, of_factors, quiet in product(codes, codes, (True, False)):
        with suppress(UsageError):
            yield replace(datapath, special=Special("cause", code, quiet=quiet, factor_code=of_factors))


def simple_rules(datapath: Datapath, codes: Sequence[int]) -> Iterator[Datapath]:
    """The first operand NaN of an order, or every node's own choice."""
    names = ("a", "b", "acc") if any(isinstance(node, Fma) for node in walk(datapath.tree)) else ("a", "b")
    orders = [("global", order) for order in _priorities(datapath)] if datapath.k > 1 else []
    orders += [("local", order) for order in permutations(names)]
    for code, (kind, order), quiet, first in product(codes, orders, (True, False), (False, True)):
        yield from with_rule(datapath, kind, code, order, quiet, first)


def with_rule(
    path: Datapath, kind: Any, code: int, order: tuple[str, ...], quiet: bool, first: bool
) -> Iterator[Datapath]:
    """The datapath with this NaN rule; none where the record refuses it, such as a code that is not quiet for NaNs
    that are quieted."""
    with suppress(UsageError):
        yield replace(path, special=Special(kind, code, order, quiet, first))


def _priorities(datapath: Datapath) -> Iterator[tuple[str, ...]]:
    lanes = list(range(datapath.k))
    c = ["c"] if datapath.c is not None else []
    for order in (lanes, lanes[::-1]):
        for x, y in (("a", "b"), ("b", "a")):
            paired = [f"{name}{lane}" for lane in order for name in (x, y)]
            apart = [f"{name}{lane}" for name in (x, y) for lane in order]
            for names in (paired, apart):
                yield (*names, *c)
                if c:
                    yield (*c, *names)
    for x, y in (("a", "b"), ("b", "a")):
        swapped = [f"{name}{lane ^ 1}" for lane in lanes if lane ^ 1 < datapath.k for name in (x, y)]
        if len(swapped) == 2 * datapath.k > 2:
            yield (*swapped, *c)


def has_fused(datapath: Datapath) -> bool:
    """True where some node aligns terms."""
    found: list[Fused] = []

    def note(node: Fused) -> Fused:
        found.append(node)
        return node

    map_fused(datapath, note)
    return bool(found)
