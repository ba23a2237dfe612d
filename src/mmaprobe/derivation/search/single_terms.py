"""What one product, or C, becomes on its own: nothing is added, so the roundings on its way show without any structure.

The device's answers to vectors with one term are fitted by one aligned sum of all lanes: the rounding of products,
the cuts of products and of C at a single term, the rounding of the sum and of a last conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.structures import fused_structures
from mmaprobe.derivation.search.descent import Group, descend
from mmaprobe.derivation.search.fields import (
    Precisions,
    converted,
    odd,
    splits,
    tied_widths,
    truncations,
    with_product,
)
from mmaprobe.derivation.search.loss import Found, Graded, unused
from mmaprobe.errors import UsageError
from mmaprobe.models.combinations import Axis
from mmaprobe.models.program import plain_program
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Encode, Fused, Term, walk
from mmaprobe.parameters.rewrite import formats_of, map_fused, map_node, map_terms, narrowed, with_encode

WIDE = 60
"""Fraction bits of a sum that the engine cannot hold uncut: more than plain vectors show."""
WIDER = "f32"
"""The format between the steps that structures of a narrower result begin with, beside the result's own."""


@dataclass(frozen=True)
class Alone:
    """``cut``: an aligned sum that makes of single terms what the device makes of them; ``uncut``: one that only
    rounds results; None where none does.  ``precisions``: the numbers of fraction bits seen.  ``results``: formats that
    can be the result's, a narrower one first where its bits suffice.  ``complements``: a term and its opposite did not
    cancel, as where sums negate by ones' complement."""

    cut: Datapath
    uncut: Datapath | None
    precisions: Precisions
    results: tuple[str, ...]
    complements: bool = False

    def with_precision(self, bits: int) -> Alone:
        """With the number of fraction bits that sums show beside those that single terms do, where they show fewer."""
        fewer = 0 < bits < formats.get(self.cut.d).fraction_bits
        return replace(self, precisions=tuple(sorted({*self.precisions, bits}))) if fewer else self

    def _narrower(self) -> list[str]:
        """Formats other than the result's with as many bits as answers show."""
        return [name for bits in self.precisions for name in formats_of(bits) if name != self.cut.d]

    def starts(self, shape: Callable[[Encode], Datapath]) -> list[Datapath]:
        """The datapath of a structure with these numbers: those of each fit that applies to it."""
        first = numbered(shape(self.cut.tree.to), self.cut)  # type: ignore[union-attr, arg-type]
        fits = [self.cut, self.uncut] if any(isinstance(node, Fused) for node in walk(first.tree)) else [self.uncut]
        found = [numbered(shape(fit.tree.to), fit) for fit in fits if fit is not None] or [first]  # type: ignore[union-attr, arg-type]
        exact = [with_product(path, None) for path in found if self.cut.product.to is None]
        every = [*found, *exact]
        if self.complements:
            fused = [path for path in every if any(isinstance(n, Fused) for n in walk(path.tree))]
            every += [each for path in fused for each in complemented(path)]
        twice = [narrowed(path, WIDER, "RNE") for path in every if _may_hold_more(path) and len(path.steps) > 1]
        every += [converted(path, WIDER) for path in every if _may_hold_more(path)]
        every += twice
        every += [converted(path, name) for path in every[:1] for name in self._narrower() if path.result is None]
        return list(dict.fromkeys([*(path for name in self.results[:-1] for path in _to(every, name)), *every]))


def fit_alone(instruction: Instruction, vectors: Batch, answers: Bits, seen: Graded) -> Alone:
    """The fits of single terms; ``seen`` are the same answers, graded, ``vectors`` as they were asked."""
    fmt = formats.get(instruction.d)
    of_c = vectors.c != 0 if vectors.c is not None else np.zeros(len(answers), bool)
    normal = formats.decode(fmt, answers).kind == formats.NORMAL
    counts = {fmt.fraction_bits + fmt.padding - unused(fmt, answers[normal & part]) for part in (of_c, ~of_c)}
    precisions = tuple(sorted(count for count in counts if 0 < count < fmt.fraction_bits))
    start = held(_reference(instruction))
    cut, lost = descend(start, seen, lambda path: odd(path, precisions), best=True)
    uncut, loss = descend(start, seen, lambda path: odd(path, precisions, False), best=True)
    if lost and loss:  # no rounding makes these products of any
        cut = _of_other_products(start, seen, precisions, (cut, lost))
    return Alone(cut, uncut if loss == 0 else None, precisions, tuple(_result_formats(instruction, answers[normal])))


def complemented(path: Datapath) -> list[Datapath]:
    """The datapath, its aligned sums negating by ones' complement and cut just below what the result shows; where that
    is narrow, also cut below what a wider format holds, to which every step rounds them first."""
    bits, wide = (formats.get(name).fraction_bits for name in (path.d, WIDER))

    def cut(bits: int) -> Datapath:
        made = map_terms(path, lambda term: replace(term, fraction_bits=bits + 1))
        return map_fused(made, lambda node: replace(node, complement=True))

    return [cut(bits), *([narrowed(cut(wide), WIDER, "RNE")] if _may_hold_more(path) else [])]


def _of_other_products(start: Datapath, seen: Graded, precisions: Precisions, known: Found) -> Datapath:
    """The fit whose products lack their lowest columns, or are those of parts, where that is nearer than the one known.
    What products of parts lose shows beside what each of them is cut at."""
    columns = truncations(start)
    lacking: list[Group] = [(start, columns)] if columns else []
    in_parts: list[Group] = [(base, [*axes, tied_widths(False)]) for base, axes in splits(start)]
    for ways, again in ((lacking, lacking), (in_parts, [])):
        found = [first for group in ways if (first := seen.nearest(*group)) is not None]
        if found:
            base = min(found, key=_lost)[0]
            groups = partial(_beside, precisions, [axes for _, axes in again])
            known = min(known, descend(base, seen, groups, best=True), key=_lost)
    return known[0]


def _beside(precisions: Precisions, axes: list[list[Axis]], path: Datapath) -> Iterator[Group]:
    yield from ((path, each) for each in axes)
    yield from odd(path, precisions)


def _lost(found: Found) -> float:
    return found[1]


def _to(paths: list[Datapath], name: str) -> list[Datapath]:
    """The datapaths with every sum rounded to another format."""

    def change(to: Encode) -> Encode:
        return replace(to, format=name, first=None)

    return [replace(path, tree=map_node(path.tree, lambda node: with_encode(node, change))) for path in paths]


def _may_hold_more(path: Datapath) -> bool:
    """Whether sums of a narrow result may well be kept in a wider format in between."""
    narrow = formats.get(path.d).fraction_bits < formats.get(WIDER).fraction_bits
    return narrow and path.result is None


def _terms(path: Datapath) -> list[tuple[object, ...]]:
    nodes = [node for node in walk(path.tree) if isinstance(node, Fused)]
    return [(term.fraction_bits, term.rounding) for node in nodes for term in node.terms]


def _result_formats(instruction: Instruction, answers: Bits) -> list[str]:
    """The result format, and a narrower one where no answer uses its last places."""
    fmt = formats.get(instruction.d)
    used = int(np.bitwise_or.reduce(answers)) if len(answers) else -1
    twins = [
        other.name
        for other in formats.FORMATS.values()
        if other.is_float
        and other.padding > fmt.padding
        and other.container_bits == fmt.container_bits
        and other.exponent_bits == fmt.exponent_bits
        and used & ((1 << other.padding) - 1) == 0
    ]
    return [*sorted(twins, key=lambda name: formats.get(name).fraction_bits), fmt.name]


def _reference(instruction: Instruction) -> Datapath:
    shape = next(fused_structures(instruction.k, instruction.c is not None))
    to = Encode(instruction.d, "RNE", zero="positive")
    return grammar.build(instruction, shape, to)


def numbered(path: Datapath, fit: Datapath) -> Datapath:
    """The datapath with the products, the last conversion, and of each kind of term the numbers, of a fit."""
    assert isinstance(fit.tree, Fused)
    terms = {roles.term_role(term): term for term in fit.tree.terms}

    def at(node: Fused) -> Fused:
        return replace(node, terms=tuple(_like(term, terms) for term in node.terms))

    product = fit.product if fit.product.to or path.product.to is None else replace(fit.product, to=path.product.to)
    return held(replace(map_fused(path, at), product=product, result=fit.result))


def _like(term: Term, terms: dict[str, Term]) -> Term:
    known = terms.get(roles.term_role(term), terms["products"])
    return replace(term, fraction_bits=known.fraction_bits, rounding=known.rounding)


def held(path: Datapath) -> Datapath:
    """The datapath, its uncut sums cut far below where the engine cannot hold them, or makes them other operations."""
    if (field_choices.may_be_uncut(path) and _holds(path)) or all(bits is not None for bits, _ in _terms(path)):
        return path

    def at(node: Fused) -> Fused:
        wide = (replace(t, fraction_bits=WIDE) if t.fraction_bits is None else t for t in node.terms)
        return replace(node, terms=tuple(wide))

    return map_fused(path, at)


def _holds(path: Datapath) -> bool:
    try:
        return plain_program(path) is not None
    except UsageError:
        return False
