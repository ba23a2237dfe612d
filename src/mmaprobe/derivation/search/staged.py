"""Staged descent: numbers of single terms, structures ranked by a loss, numbers, the ends of the range, signs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from math import inf

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.nested_trees import handed_on
from mmaprobe.derivation.hypotheses.read_trees import read
from mmaprobe.derivation.hypotheses.structures import (
    Structure, fused_structures, grouped_structures, rounded_structures, scaled_structures,
)
from mmaprobe.derivation.hypotheses.tree_structures import structures_of
from mmaprobe.derivation.search import numbers, range_ends
from mmaprobe.derivation.search.descent import descend
from mmaprobe.derivation.search.lane_orders import Places, ordered, shapes
from mmaprobe.derivation.search.loss import Axis, Budget, Graded, grid_of
from mmaprobe.derivation.search.single_terms import Alone, fit_alone, held
from mmaprobe.derivation.session import ContradictedError, State, View, blind
from mmaprobe.derivation.vectors.few import few_vectors
from mmaprobe.derivation.vectors.mixtures import hard_vectors, nan_operands, plain
from mmaprobe.derivation.vectors.plain import single_vectors, uniform_vectors
from mmaprobe.derivation.vectors.range_ends import near_vectors
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import join
from mmaprobe.parameters.datapath import SUBNORMALS, OVERFLOWS, Accumulator, Datapath, Encode, Fused, walk
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.moves import MOVES
from mmaprobe.parameters.rewrite import simpler

SINGLE, UNIFORM, SAFE, FEW = 128, 64, 96, 320
ROUGH, CLOSE, BEST = 40, 12, 4
TRACE = False


@dataclass(frozen=True)
class Near:
    path: Datapath
    loss: float
    name: str = ""


class Staged:
    def __init__(self, state: State, pools: Pools) -> None:
        self.state, self.session, self.pools = state, state.session, pools
        self.instruction = state.instruction
        self.view = View(self.session, partial(plain, self.instruction))
        self.finite = View(self.session, self._is_finite)
        self.budget = Budget(inf, self.session.allowance)
        self.ends_asked = False

    def _say(self, text: str) -> None:
        if TRACE:
            print(f"   {time.thread_time():7.2f} {text}", flush=True)

    # --- structure and numbers

    def run(self) -> Iterator[Datapath]:
        alone, seen = self._ask()
        self.precisions = alone.precisions
        finding = read(self.state)
        if finding.status == "contradictory":
            raise ContradictedError(f"{finding.question}: {finding.text}")
        k, has_c, size = self.instruction.k, self.instruction.c is not None, self.instruction.scale_size
        known = list(structures_of(finding.answer, k, size))
        known += [each.structure for each in handed_on(finding.answer, k, has_c)]
        every = [*fused_structures(k, has_c), *(scaled_structures(k, has_c, size) if size else ()),
                 *rounded_structures(k, has_c), *grouped_structures(k, has_c)]
        self.alone = alone
        read_near: list[Near] = []
        if known:
            self.session.begin("structures, read")
            read_near = self._numbers(self._starts(known, alone), seen)
            yield from self._complete([each for each in read_near if each.loss == 0], "read")
        self.session.begin("structures, all")
        near = [each for shape, each in self._shapes(every, alone, seen) for each in self._laned(shape, each, seen)]
        near = self._nearest([*near, *read_near], seen)
        yield from self._complete([each for each in near if each.loss == 0], "all")
        near = self._further(near, seen)
        yield from self._complete(near, "further")

    def _complete(self, near: list[Near], name: str) -> Iterator[Datapath]:
        self._say(f"{name}: {[(round(e.loss, 1), e.name) for e in near[:4]]}")
        if near and near[0].loss <= 40:
            yield from self._ended([each for each in near if each.loss <= near[0].loss + 5][:CLOSE])

    def _shapes(self, every, alone, seen):
        """Shapes on equal lanes."""
        equal = self.equal
        starts = [(shape, path) for shape in shapes(every) for path in self._starts(shape.members[:1], alone)]
        rough = sorted(((shape, self._rough(path, shape.name, equal)) for shape, path in starts), key=lambda e: e[1].loss)
        self._say(f"{len(starts)} shapes: {[(round(e.loss), e.name) for _, e in rough[:5]]}")
        close = sorted(((shape, self._simple(each, equal, 1)) for shape, each in rough[:ROUGH]), key=lambda e: e[1].loss)
        best = {}
        for shape, each in close:
            best.setdefault(id(shape), (shape, each))
        found = list(best.values())[:CLOSE]
        self._say(f"simple: {[(round(e.loss, 1), e.name) for _, e in found[:5]]}")
        if found and found[0][1].loss > 0:
            found = sorted(((shape, self._simple(self._odd(each, equal, False), equal, 2)) for shape, each in found[:BEST + 2]), key=lambda e: e[1].loss)
            self._say(f"odd: {[(round(e.loss, 1), e.name) for _, e in found[:5]]}")
        return found

    def _laned(self, shape, near: Near, seen: Graded) -> list[Near]:
        ways = [Near(path, seen.total(path), near.name) for path in ordered(self.instruction, shape, near.path)]
        ways = _unlike(sorted(ways, key=lambda e: e.loss))[:3]
        if ways[0].loss > 0:
            places = Places(self.instruction, near.path, self.session.seed)
            if places.vectors is not None:
                order = places.order(self.view.answers(places.vectors, lambda d: np.zeros(len(d), bool)))
                if order is not None:
                    path = replace(near.path, order=order)
                    ways.append(Near(path, seen.total(path), near.name + ", placed"))
        return sorted(ways, key=lambda e: e.loss)[:2]

    def _ask(self) -> tuple[Alone, Graded]:
        made, seed = self.instruction, self.session.seed
        single = single_vectors(made, seed, SINGLE)
        rest = [uniform_vectors(made, seed, UNIFORM), self.pools.safe(seed + 1, SAFE), few_vectors(made, seed, FEW)]
        begin = self.session.all.count
        answers = self.view.answers(join([single, *rest]))
        alone = Graded.of(made, [(single, answers[:SINGLE])], self.budget)
        fits = fit_alone(made, single, answers[:SINGLE], alone)
        self._say(f"alone {numbers_of(fits.cut)} loss {alone.total(fits.cut)}")
        uniform = rest[0], answers[SINGLE : SINGLE + UNIFORM]
        self.equal = Graded.of(made, [uniform, (single, answers[:SINGLE])], self.budget)
        return fits, Graded.of(made, [self.view.seen()], self.budget)

    def _starts(self, structures: Iterable[Structure], alone: Alone) -> dict[Datapath, str]:
        found: dict[Datapath, str] = {}
        for each in structures:
            for path in alone.starts(lambda to, each=each: grammar.build(self.instruction, each, to)):
                found.setdefault(replace(path, order=each.order or path.order), each.name)
        return found

    def _numbers(self, starts, seen: Graded) -> list[Near]:
        rough = sorted((self._rough(path, name, seen) for path, name in starts.items()), key=lambda e: e.loss)
        self._say(f"{len(starts)} starts: {[(round(e.loss), e.name) for e in rough[:5]]}")
        return self._nearest(rough[:ROUGH], seen)

    def _nearest(self, near: list[Near], seen: Graded) -> list[Near]:
        near = sorted((self._simple(each, seen, 1) if each.loss else each for each in near), key=lambda e: e.loss)
        near = _unlike(near)[:CLOSE]
        self._say(f"simple: {[(round(e.loss, 1), e.name) for e in near[:5]]}")
        return near

    def _further(self, near: list[Near], seen: Graded) -> list[Near]:
        for turn in range(4):
            if not near or near[0].loss == 0:
                break
            moved = [self._odd(each, seen) for each in near[:BEST]]
            moved = [self._simple(each, seen, 2) for each in moved]
            before = near[0].loss
            near = _unlike(sorted([*moved, *near], key=lambda e: e.loss))[:CLOSE]
            self._say(f"odd {turn}: {[(round(e.loss, 1), e.name) for e in near[:5]]}")
            if near[0].loss >= before:
                break
        return near

    def _rough(self, path: Datapath, name: str, seen: Graded) -> Near:
        terms = roles.term_roles(path)
        if not terms:
            return Near(path, seen.total(path), name)
        ways = [[numbers.tied_widths(field_choices.may_be_uncut(path))]]
        return Near(*descend(path, seen, lambda at: [(at, way) for way in ways], 1), name)

    def _simple(self, near: Near, seen: Graded, sweeps: int) -> Near:
        return Near(*descend(near.path, seen, simple, sweeps), near.name)

    def _odd(self, near: Near, seen: Graded, moving: bool = True) -> Near:
        ways = partial(odd, precisions=self.precisions)
        best = Near(*descend(near.path, seen, ways, 1, best=True), near.name)
        for field in ("accumulation", "grouping") if moving else ():
            for value, path in MOVES[field](near.path):
                try:
                    tried = self._rough(held(path), f"{near.name}, {field}={value}", seen)
                    if tried.loss < best.loss * 1.5:
                        tried = self._simple(tried, seen, 1)
                except (UsageError, ValueError):
                    continue
                if tried.loss < best.loss:
                    best = tried
        return best

    # --- the ends of the range

    def _ended(self, near: list[Near]) -> Iterator[Datapath]:
        self.session.begin("the ends of the range")
        made = self.instruction
        self._ask_ends(near[0].path)
        seen = self._blindly()
        ended = sorted((Near(*descend(each.path, seen, ends, 1), each.name) for each in near), key=lambda e: e.loss)
        self._say(f"ends: {[(round(e.loss, 1), e.name) for e in ended[:6]]} of {len(seen.answers)}")
        for each in _unlike(ended)[:BEST]:
            if each.loss <= ended[0].loss + 20:
                yield from self.finished(each.path)

    def _ask_ends(self, path: Datapath) -> None:
        if self.ends_asked:
            return
        self.ends_asked = True
        seed, made = self.session.seed, self.instruction
        names = list(dict.fromkeys([made.d, *(to.format for part in roles.PARTS if (to := roles.encode_of(path, part)))]))
        near = [near_vectors(made, formats.get(n), seed + 13 + i, 64, top) for i, n in enumerate(names) for top in (True, False)]
        self.finite.answers(pool_without_nans(made, join([self.pools.range(seed + 11, 64), self.pools.low(seed + 12, 24), *near])))

    def _blindly(self) -> Graded:
        d = self.instruction.d
        seen = Graded.of(self.instruction, [self.finite.seen()], self.budget, True, partial(blind, d))
        return replace(seen, answers=blind(d, seen.answers))

    def finished(self, path: Datapath) -> Iterator[Datapath]:
        made, seed = self.instruction, self.session.seed
        for turn in range(8):
            seen = self._blindly()
            path, loss = descend(path, seen, ends, 3)
            if loss:
                before = loss
                path, loss = descend(path, seen, partial(odd_ends, precisions=self.precisions), 2)
                if loss and loss < before:
                    path, loss = descend(path, seen, ends, 3)
            self._say(f"  ends {turn}: {loss:.1f} of {len(seen.answers)}")
            if loss > 20:
                return
            seen = Graded.of(made, [self.finite.seen()], self.budget, True)
            path, sharp = descend(path, seen, lambda at: [(at, signs(at))], 1)
            if sharp:
                path, sharp = descend(path, seen, ends, 2)
            self._say(f"  signs {turn}: {sharp:.1f}")
            if not sharp:
                path = self._simplest(path, seen)
            fresh = pool_without_nans(made, self.pools.finite(seed + 1000 + turn, 200))
            view = View(self.session, lambda v, d: np.zeros(len(d), bool))
            answers = view.answers(fresh)
            wrong = int((self.session.allowance.evaluate([path], fresh)[0] != answers).sum())
            self._say(f"  fresh {turn}: {wrong} of {fresh.size} wrong")
            if not wrong:
                if not sharp:
                    yield path
                return

    def _simplest(self, path: Datapath, seen: Graded) -> Datapath:
        for less in simpler(path):
            if seen.total(less) == 0:
                return self._simplest(less, seen)
        return path

    def _is_finite(self, vectors, answers):
        return (formats.decode(formats.get(self.instruction.d), answers).kind != formats.NAN) & ~nan_operands(self.instruction, vectors)


def pool_without_nans(instruction, pool):
    from mmaprobe.operands.batch import take
    return take(pool, np.flatnonzero(~nan_operands(instruction, pool)))


def numbers_of(path: Datapath):
    return [(t.fraction_bits, t.rounding) for n in walk(path.tree) if isinstance(n, Fused) for t in n.terms], path.product.to and (path.product.to.format, path.product.to.first), roles.encode_of(path, "root")


def _unlike(near: Sequence[Near]) -> list[Near]:
    return list({each.path: each for each in reversed(near)}.values())[::-1]


def _started(path: Datapath) -> Datapath:
    return path


# --- fields


def simple(path: Datapath) -> Iterator[tuple[Datapath, list[Axis]]]:
    """Numbers and roundings, tied and by role."""
    terms, uncut = roles.term_roles(path), field_choices.may_be_uncut(path)
    if terms:
        yield path, [numbers.tied_widths(uncut), numbers.tied_modes()]
        for role in terms if len(terms) > 1 else ():
            yield path, [roles.widths(role, uncut), roles.modes(role)]
        if any(handed for _, handed in terms):
            for handed in (True, False):
                yield path, [numbers.level_widths(handed, uncut), numbers.level_modes(handed)]
    for part in roles.parts_of(path):
        yield path, [numbers.rounding(part)]
    if terms:
        yield path, [roles.products(path)[0], numbers.tied_widths(uncut)]
        yield path, [roles.zeros(terms[0], field_choices.zero_exponents(path))] if len(terms) == 1 else [range_ends._tied_zeros(field_choices.zero_exponents(path))]


def odd(path: Datapath, precisions) -> Iterator[tuple[Datapath, list[Axis]]]:
    yield from numbers.groups(path, precisions)


def ends(path: Datapath) -> Iterator[tuple[Datapath, list[Axis]]]:
    names = [n for n in "abc" if n != "c" or path.c is not None]
    parts = roles.parts_of(path)
    terms = roles.term_roles(path)
    values = field_choices.zero_exponents(path)
    if terms:
        yield path, [range_ends._tied_zeros(values)]
    yield path, [[field_choices.operand_set(n, how) for how in ("keep", "signed_zero")] for n in names]
    flush = [flush_of(part) for part in parts]
    over = [roles.encode_axis(part, overflow=OVERFLOWS) for part in parts]
    for f in flush:
        yield path, [f]
    yield path, [field_choices.flush()]
    yield path, [field_choices.overflow()]
    for o in over:
        yield path, [o]
    yield path, [[field_choices.operand_set(n, how) for how in ("keep", "signed_zero")] for n in names] + [field_choices.flush()]
    yield path, [roles.products(path)[1]]
    for role in terms if len(terms) > 1 else ():
        yield path, [roles.zeros(role, values)]
    if terms:
        for f in flush:
            yield path, [range_ends._tied_zeros(values), f]
        for n in names:
            yield path, [range_ends._tied_zeros(values), [field_choices.operand_set(n, how) for how in ("keep", "signed_zero")]]
        yield path, [roles.products(path)[0]]
        yield path, [roles.products(path)[0], range_ends._tied_zeros(values)]
    for first, second in combinations(range(len(parts)), 2):
        if "sums" not in (parts[first], parts[second]):
            yield path, [flush[first], flush[second]]
    for part in parts:
        yield path, [roles.encode_axis(part, overflow=OVERFLOWS, rounding=formats.ROUNDINGS)]


def odd_ends(path: Datapath, precisions) -> Iterator[tuple[Datapath, list[Axis]]]:
    yield from simple(path)
    terms, values = roles.term_roles(path), field_choices.zero_exponents(path)
    for role in terms:
        yield path, [roles.zeros(role, values), roles.widths(role, False)]
        yield path, [roles.cutoffs(role), roles.widths(role, False)]
    for role in terms if len(terms) > 1 else ():
        for f in [flush_of(part) for part in roles.parts_of(path)]:
            yield path, [roles.zeros(role, values), f]
    yield from odd(path, precisions)


def flush_of(part: str) -> Axis:
    tiny = [("keep", "after"), *product(("signed_zero",), choices(Encode, "tininess"))]
    return [roles.encodes(part, lambda to, v=v: replace(to, subnormals=v[0], tininess=v[1])) for v in tiny]


def signs(path: Datapath) -> list[Axis]:
    """The joint grid of signs: of operands and parts, as far as it is not too large."""
    names = [n for n in "abc" if n != "c" or path.c is not None]
    axes: list[Axis] = []
    for n in names:
        now = getattr(path, f"operand_{n}").subnormals
        axes.append([field_choices.operand_set(n, how) for how in (("zero", "signed_zero") if now != "keep" else ("keep", "zero"))])
    parts = [p for p in roles.parts_of(path) if p != "sums"]
    for part in parts:
        to = roles.encode_of(path, part)
        both = {"zero": choices(Encode, "zero"), "underflow": choices(Encode, "underflow")}
        if to.subnormals != "keep":
            both["subnormals"] = ("zero", "signed_zero")
        axes.append(roles.encode_axis(part, **both))
    while np.prod([len(a) for a in axes]) > 12_000:
        axes.pop()
    return axes
